"""Which replica serves an arrival."""

from __future__ import annotations

from collections.abc import Callable

from simkv.sim.config import RouterName, Scores
from simkv.sim.live import Live
from simkv.sim.replica import ReplicaEngine
from simkv.sim.scored import Scored

Router = Callable[[Live], ReplicaEngine]


def make_router(name: RouterName, engines: list[ReplicaEngine], scores: Scores | None = None) -> Router:
    """Return the function that picks a replica; ties go to the lowest number, with ``scored`` to any.

    ``scores`` are the weights of ``scored``.
    """
    if len(engines) == 1:
        return lambda live: engines[0]
    if name == "scored":
        assert scores is not None, "resolved"
        return Scored(scores, engines)
    return {"round_robin": _round_robin, "least_loaded": _least_loaded, "prefix_aware": _prefix_aware}[name](engines)


def _round_robin(engines: list[ReplicaEngine]) -> Router:
    turn = -1

    def pick(live: Live) -> ReplicaEngine:
        nonlocal turn
        turn = (turn + 1) % len(engines)
        return engines[turn]

    return pick


def _least_loaded(engines: list[ReplicaEngine]) -> Router:
    return lambda live: min(engines, key=lambda engine: engine.live_requests)


def _prefix_aware(engines: list[ReplicaEngine]) -> Router:
    """Fewest prompt tokens ahead of the newcomer's first token: its own that the replica lacks, and those queued.

    Under priority scheduling only what is queued as urgently counts: the newcomer passes the rest.
    A replica has what its VRAM and its DRAM pool hold. What only the host's SSD holds counts as lacking:
    it is far, and all replicas of a host have it alike.
    """

    def pick(live: Live) -> ReplicaEngine:
        return min(engines, key=lambda engine: (_tokens_ahead(engine, live), engine.live_requests))

    return pick


def _tokens_ahead(engine: ReplicaEngine, live: Live) -> int:
    engine.sync()
    config, request = engine.config, live.request
    limit = config.most_hit_blocks(request.prompt_tokens)
    hit = engine.pool.index.match(request.spans, limit).end
    hit = engine.tiers.lookup(
        request.spans, request.prompt_tokens, limit, hit, engine.tiers.owners[live.cls].dram
    ).dram_end
    return engine.tokens_ahead(live) + request.prompt_tokens - hit * config.block_tokens
