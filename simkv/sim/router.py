"""Which replica serves an arrival."""

from __future__ import annotations

from collections.abc import Callable

from simkv.sim.config import RouterName
from simkv.sim.engine import Engine
from simkv.workload.request import Request

Router = Callable[[Request], Engine]


def make_router(name: RouterName, engines: list[Engine]) -> Router:
    """Return the function that picks a replica; ties go to the lowest number."""
    if len(engines) == 1:
        return lambda request: engines[0]
    return {"round_robin": _round_robin, "least_loaded": _least_loaded, "prefix_aware": _prefix_aware}[name](engines)


def _round_robin(engines: list[Engine]) -> Router:
    turn = -1

    def pick(request: Request) -> Engine:
        nonlocal turn
        turn = (turn + 1) % len(engines)
        return engines[turn]

    return pick


def _least_loaded(engines: list[Engine]) -> Router:
    return lambda request: min(engines, key=lambda engine: engine.live_requests)


def _prefix_aware(engines: list[Engine]) -> Router:
    """Fewest prompt tokens ahead of the newcomer's first token: those queued, and its own that the replica lacks.

    A replica has what its VRAM and its DRAM pool hold. What only the host's SSD holds counts as lacking:
    it is far, and all replicas of a host have it alike.
    """

    def pick(request: Request) -> Engine:
        return min(engines, key=lambda engine: (_tokens_ahead(engine, request), engine.live_requests))

    return pick


def _tokens_ahead(engine: Engine, request: Request) -> int:
    engine.sync()
    config = engine.config
    limit = config.most_hit_blocks(request.prompt_tokens)
    hit = engine.pool.index.match(request.spans, limit).end
    hit = engine.tiers.lookup(request.spans, limit, hit).dram_end
    return engine.pending_tokens + request.prompt_tokens - hit * config.block_tokens
