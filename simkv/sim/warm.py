"""Tiers that are warm before a run begins: its workload's beginning passes through them untimed."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from simkv.kvcache.pool import UNBOUNDED_BLOCKS, KVPool
from simkv.sim.config import StepCost
from simkv.sim.live import Live
from simkv.sim.rundata import Warmed
from simkv.sim.untimed import Untimed, at_once, untimed
from simkv.workload.handover import Handover
from simkv.workload.request import OLD_STREAM, Request, Storing

if TYPE_CHECKING:
    from simkv.sim.system import System

TIMES_OVER = 2
"""What passed before tiers were filled so often with new content is gone from them, under ``lru`` and ``fifo``."""
FORGETFUL = ("lru", "fifo")
"""Eviction policies to which only what came lately matters."""
MOST_OLD_NODES = 1 << 12
"""In one pool."""
NEW_AT_LEAST = 0.01
"""Of what passes; where less is new, tiers fill up with nothing else."""


def warm(system: System, source: Handover) -> Warmed:
    """Let the beginning of the workload pass through the tiers of ``system``, and return what that was.

    Afterwards nobody holds anything, no lane has carried and no counter has counted. Where ``auto`` lets a drawn
    workload pass (a recording has no more than it has), what that can't fill holds old content, as in a system that has
    run for long. Raises InputError where nothing is left to be timed.
    """
    passing = source.passing
    pools = system.pools()
    first = 0
    if system.config.offload.eviction in FORGETFUL:
        first = passing.first_for(TIMES_OVER * _capacity_tokens(pools))
    if passing.settled is not None and passing.fresh_share > NEW_AT_LEAST:
        for number, pool in enumerate(pool for tier in pools.values() for pool in tier):
            _fill(pool, OLD_STREAM + number * MOST_OLD_NODES * 2, passing.mean_tokens)
    written = _uncounted(system, first, source.replay)
    return Warmed(passing.requests, passing.until_s, passing.settled, written)


def store(system: System, source: Storing) -> Warmed:
    """Have the prompts that ``source`` says are stored pass through the tiers of ``system``, one after the other.

    Afterwards nobody holds anything, no lane has carried and no counter has counted.
    """
    requests = 0

    def one_by_one(passage: _Passage) -> None:
        nonlocal requests
        for request in source.stored():
            passage.arrived(request)
            passage.ended(request, False)
            requests += 1

    written = _uncounted(system, 0, one_by_one)
    return Warmed(requests, 0.0, None, written)


def _uncounted(system: System, first: int, serve: Callable[[_Passage], None]) -> dict[str, int]:
    """Have ``serve`` take requests through the tiers; return the blocks that it wrote by tier, which nobody counts."""
    refused = [ledger.refused_stores for ledger in system.ledgers]
    with at_once(system.engines) as lane:
        serve(_Passage(system, [untimed(engine, system.config.offload, lane) for engine in system.engines], first))
    for ledger, before in zip(system.ledgers, refused, strict=True):
        ledger.refused_stores = before
    for engine in system.engines:
        engine.mover.waited.clear()
    written = system.tier_written_blocks()
    for pool in (pool for tier in system.pools().values() for pool in tier):
        _count_anew(pool)
    return written


def _count_anew(pool: KVPool) -> None:
    """Let ``pool`` count what is written into it from here on; where nothing was, nothing was there before either."""
    if not pool.written_blocks:
        pool.index.evict(pool.index.resident_blocks)
    pool.written_blocks = 0


class _Passage:
    """Serves what passes, from request ``first`` on; those before only count as content that came."""

    def __init__(self, system: System, servers: list[Untimed | None], first: int) -> None:
        self._system = system
        self._servers = servers
        self._first = first
        self._seen = 0
        self._live: dict[int, tuple[Untimed, Live]] = {}

    def arrived(self, request: Request) -> None:
        """Route and serve ``request``."""
        system = self._system
        self._seen += 1
        if not system.can_ever_fit(request):
            return
        system.ceiling.add(request)
        if self._seen <= self._first:
            return
        live = system.enter(request)
        engine = system.route(live)
        server = self._servers[engine.number]
        if server is not None:
            live.owner = engine.tiers.owners[live.cls]
            server.arrive(live)
            self._live[request.id] = server, live

    def ended(self, request: Request, over: bool) -> None:
        """Let ``request`` go."""
        served = self._live.pop(request.id, None)
        if served is not None:
            served[0].end(served[1])
        if over:
            self._system.ceiling.forget(request)


class AssumedService:
    """How long a request is assumed to be served: its prefill alone, its output among those that are under way.

    First-order times of the step cost, for numbers as coarse as the powers of the root of two.
    """

    def __init__(self, cost: StepCost, max_num_seqs: int, replicas: int) -> None:
        """``cost`` is asked for what the run itself may never ask: give one of its own."""
        self._cost = cost
        self._most = max_num_seqs
        self._replicas = replicas
        self._prefill_s: dict[tuple[int, int], float] = {}
        self._token_s: dict[tuple[int, int], float] = {}

    def __call__(self, request: Request, computed_tokens: int, under_way: int) -> float:
        """Return the seconds from arrival to end of ``request``, of whose prompt so many tokens are computed."""
        prefill = _coarse(computed_tokens), _coarse(request.prompt_tokens - computed_tokens)
        sequences = _coarse(min(self._most, -(-under_way // self._replicas)))
        batch = sequences, _coarse(request.prompt_tokens + request.output_tokens // 2)
        prefill_s, token_s = self._prefill_s.get(prefill), self._token_s.get(batch)
        if prefill_s is None:
            prefill_s = self._prefill_s[prefill] = self._cost.mixed(0, 0, [prefill], 1)
        if token_s is None:
            token_s = self._token_s[batch] = self._cost.decode(sequences, sequences * batch[1])[0]
        return prefill_s + (request.output_tokens - 1) * token_s


def _coarse(tokens: int) -> int:
    """Return about as many tokens: the middle of two powers of two, or of one of them and that."""
    if tokens < 4:
        return tokens
    quarter = 1 << (tokens.bit_length() - 3)
    return 5 * quarter if tokens < 6 * quarter else 7 * quarter


def _capacity_tokens(pools: dict[str, list[KVPool]]) -> float:
    """Return how many tokens all pools hold together."""
    every = [pool for tier in pools.values() for pool in tier]
    if any(pool.capacity_blocks >= UNBOUNDED_BLOCKS for pool in every):
        return inf
    return float(sum(pool.capacity_blocks * pool.index.block_tokens for pool in every))


def _fill(pool: KVPool, stream: int, tokens: float) -> None:
    """Fill ``pool`` with content of requests of ``tokens`` tokens, from ``stream`` on, that nobody asks for again."""
    capacity, block_tokens = pool.capacity_blocks, pool.index.block_tokens
    if capacity >= UNBOUNDED_BLOCKS:
        return
    each = max(1, round(tokens / block_tokens), -(-capacity // MOST_OLD_NODES))
    index = pool.index
    for number, at in enumerate(range(0, capacity, each)):
        blocks = min(each, capacity - at)
        spans = ((stream + number, 0, blocks * block_tokens),)
        index.unpin(index.extend(index.root, spans, blocks, priority=0)[0])
