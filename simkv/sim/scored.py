"""The router of llm-d and of the Gateway API inference extension: scores of 0 to 1 for each replica, weighted.

Queue and KV usage are what the replica last published, which is after each of its steps, and what the router last
asked for. Sources: llm-d-router, pkg/epp/framework/plugins/scheduling (scorers, max-score picker).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from simkv import rng
from simkv.sim.config import Scores
from simkv.sim.live import Live
from simkv.sim.remembered import Remembered
from simkv.sim.replica import ReplicaEngine


class Scored:
    """Picks the replica with the highest weighted sum; ties are drawn."""

    def __init__(self, scores: Scores, engines: list[ReplicaEngine]) -> None:
        self._scores = scores
        self._engines = engines
        self._published = [_Published(engine, scores.poll_s) for engine in engines]
        self._prefixes = [(one, Remembered(one, len(engines))) for one in scores.prefixes]
        self._cold: OrderedDict[int, None] = OrderedDict()
        """Replicas that were sent a prompt nobody knew, the latest last."""
        self._rng = rng.stream(scores.seed, "router")

    def __call__(self, live: Live) -> ReplicaEngine:
        """Return the replica for ``live``, and remember what it is sent."""
        blocks = [memory.blocks(live.request) for _, memory in self._prefixes]
        matched = [
            [memory.matched(mine, replica) for replica in range(len(self._engines))]
            for (_, memory), mine in zip(self._prefixes, blocks, strict=True)
        ]
        cold = not any(map(any, matched[:1]))
        sums = self._weighted(blocks, matched, cold)
        best = max(sums)
        ties = [replica for replica, total in enumerate(sums) if total == best]
        chosen = ties[int(self._rng.integers(len(ties)))] if len(ties) > 1 else ties[0]
        for (_, memory), mine in zip(self._prefixes, blocks, strict=True):
            memory.sent(mine, chosen)
        if cold:
            self._cold[chosen] = None
            self._cold.move_to_end(chosen)
        return self._engines[chosen]

    def _weighted(self, blocks: list[list[int]], matched: list[list[int]], cold: bool) -> list[float]:
        weights = self._scores
        states = [published.look() for published in self._published]
        terms: list[tuple[float, Callable[[], list[float]]]] = [
            (weights.queue, lambda: _shortest([waiting for waiting, _ in states])),
            (weights.kv_usage, lambda: [1 - used for _, used in states]),
            (weights.in_flight, lambda: _fewest([engine.live_requests for engine in self._engines])),
            (weights.cold, lambda: self._least_recently_cold() if cold else [0.5] * len(states)),
        ]
        sums = [0.0] * len(states)
        for weight, score in terms:
            if weight:
                sums = [total + weight * one for total, one in zip(sums, score(), strict=True)]
        for (config, _), mine, found in zip(self._prefixes, blocks, matched, strict=True):
            share = config.weight / len(mine) if mine else 0.0
            sums = [total + share * one for total, one in zip(sums, found, strict=True)]
        return sums

    def _least_recently_cold(self) -> list[float]:
        """Return 1 for the replica that has gone longest without a prompt nobody knew, down to 0 for the latest."""
        replicas = range(len(self._engines))
        order = [replica for replica in replicas if replica not in self._cold] + list(self._cold)
        rank = {replica: place for place, replica in enumerate(order)}
        return [1 - rank[replica] / max(1, len(order) - 1) for replica in replicas]


class _Published:
    """What one replica last told of itself."""

    def __init__(self, engine: ReplicaEngine, poll_s: float) -> None:
        self._engine = engine
        self._poll_s = poll_s
        self._step = -1
        self._at_s = 0.0
        self._state = (0, 0.0)

    def look(self) -> tuple[int, float]:
        """Return how many requests wait, and the share of KV blocks that running requests hold."""
        engine = self._engine
        now = engine.clock.now
        engine.sync()
        ended = engine.steps_ended
        if ended != self._step and (self._step < 0 or now - self._at_s >= self._poll_s):
            pool = engine.pool
            waiting = engine.scheduler.queued + engine.gauge.held
            self._state = waiting, 1 - pool.available_blocks / pool.capacity_blocks
            self._step, self._at_s = ended, now
        return self._state


def _fewest(requests: list[int]) -> list[float]:
    """Return 1 for none and 0 for the most."""
    most = max(requests)
    return [(most - one) / most if one else 1.0 for one in requests]


def _shortest(waiting: list[int]) -> list[float]:
    """Return 1 for the shortest queue and 0 for the longest; 1 for all where they are alike."""
    least, most = min(waiting), max(waiting)
    return [(most - one) / (most - least) if most > least else 1.0 for one in waiting]
