"""Ranks of classes on a lane: within a kind of transfer the more urgent class goes first, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.sim.clock import ARRIVAL_RANK, Clock
from simkv.sim.fabric import DEMAND, LOOK_AHEAD, WRITE_BACK, Fabric, Lane, Transfer

CHUNK = 100
RATE = 1000.0


@dataclass
class RankedLane:
    """One lane that knows three ranks, alone on its host; notes when each transfer is through."""

    ranks: int = 3
    through: dict[str, float] = field(default_factory=dict)
    sent: dict[str, Transfer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = Clock()
        self.fabric = Fabric(self.clock, inf, self.ranks)
        self.lane = Lane(self.fabric, "h2d", RATE, 0.0, CHUNK)
        self.fabric.add_link(self.lane, Lane(self.fabric, "d2h", RATE, 0.0, CHUNK), inf)

    def send(self, at_s: float, name: str, nbytes: int, kind: int = DEMAND, rank: int = 0) -> None:
        """Submit at ``at_s``."""

        def done() -> None:
            self.through[name] = self.clock.now

        def submit(_: object) -> None:
            self.sent[name] = self.lane.submit(nbytes, 1, kind, done, rank)

        self.clock.at(at_s, ARRIVAL_RANK, submit)

    def urge(self, at_s: float, name: str, kind: int, rank: int) -> None:
        """Raise a transfer at ``at_s``."""
        self.clock.at(at_s, ARRIVAL_RANK, lambda _: self.lane.urge(self.sent[name], kind, rank))

    def run(self, watch: Callable[[], None] = lambda: None) -> dict[str, float]:
        while self.clock.drain(1):
            watch()
        return self.through


def test_more_urgent_class_takes_over_at_the_next_chunk_boundary() -> None:
    bench = RankedLane()
    bench.send(0.0, "batch", 1000, rank=1)
    bench.send(0.25, "chat", 200, rank=0)  # 250 bytes are through: the chunk ends at 0.3 s
    assert bench.run() == pytest.approx({"chat": 0.5, "batch": 1.2})


def test_equal_ranks_go_in_order_of_submission() -> None:
    bench = RankedLane()
    bench.send(0.0, "first", 1000, rank=1)
    bench.send(0.25, "second", 200, rank=1)
    assert bench.run() == pytest.approx({"first": 1.0, "second": 1.2})


def test_kind_goes_before_rank() -> None:
    bench = RankedLane()
    bench.send(0.0, "busy", 100)
    bench.send(0.0, "chat write", 100, WRITE_BACK, 0)
    bench.send(0.0, "chat ahead", 100, LOOK_AHEAD, 0)
    bench.send(0.0, "batch ahead", 100, LOOK_AHEAD, 2)
    bench.send(0.0, "batch demand", 100, DEMAND, 2)
    bench.send(0.0, "chat demand", 100, DEMAND, 0)
    bench.run()
    order = ["busy", "chat demand", "batch demand", "chat ahead", "batch ahead", "chat write"]
    assert list(bench.through) == order


def test_urge_raises_a_waiting_transfer_to_the_rank_of_who_waits() -> None:
    bench = RankedLane()
    bench.send(0.0, "busy", 400, rank=1)
    bench.send(0.0, "batch", 100, rank=2)
    bench.send(0.0, "other", 100, rank=1)
    bench.urge(0.05, "batch", DEMAND, 0)  # passes even the one that is being served
    assert bench.run() == pytest.approx({"batch": 0.2, "busy": 0.5, "other": 0.6})


def test_urge_never_lowers_a_transfer() -> None:
    bench = RankedLane()
    bench.send(0.0, "busy", 400, rank=0)
    bench.send(0.0, "chat", 100, rank=0)
    bench.send(0.0, "batch", 100, rank=1)
    bench.urge(0.05, "chat", DEMAND, 2)
    bench.urge(0.05, "chat", LOOK_AHEAD, 0)
    bench.run()
    assert list(bench.through) == ["busy", "chat", "batch"]


def test_urged_transfer_in_service_gives_way_to_nobody_less_urgent() -> None:
    bench = RankedLane()
    bench.send(0.0, "batch", 1000, rank=2)
    bench.urge(0.05, "batch", DEMAND, 0)
    bench.send(0.15, "other", 100, rank=1)
    assert bench.run() == pytest.approx({"batch": 1.0, "other": 1.1})


def test_lane_without_ranks_takes_calls_without_one() -> None:
    bench = RankedLane(ranks=1)
    through: list[float] = []
    bench.lane.submit(500, 1, DEMAND, lambda: through.append(bench.clock.now))
    bench.run()
    assert through == [pytest.approx(0.5)]


class Patience:
    """Adds up, for each waiting transfer, what was served of less urgent ones since it got its level."""

    def __init__(self, bench: RankedLane) -> None:
        self.bench = bench
        self.then_s = 0.0
        self.served: dict[Transfer, tuple[int, float]] = {}
        self.active: Transfer | None = None

    def __call__(self) -> None:
        lane = self.bench.lane
        passed_s = self.bench.clock.now - self.then_s
        for transfer, (level, served) in self.served.items():
            if self.active is not None and self.active_level > level:
                self.served[transfer] = level, served + passed_s * RATE
        waiting = [transfer for queue in lane.queues for transfer in queue]
        kept = self.served
        self.served = {}
        for transfer in waiting:
            level, served = kept.get(transfer, (transfer.level, 0.0))
            self.served[transfer] = (transfer.level, served if level == transfer.level else 0.0)
            assert self.served[transfer][1] <= CHUNK * (1 + 1e-9), "a less urgent chunk went before it"
        self.then_s = self.bench.clock.now
        self.active = lane.active
        self.active_level = lane.active.level if lane.active is not None else 0
        assert lane.submitted_bytes == lane.delivered_bytes + lane.in_flight_bytes()


@settings(max_examples=200)
@given(st.randoms(use_true_random=False))
def test_random_ranks_lose_no_byte_and_nobody_waits_for_more_than_a_lesser_chunk(rng: Random) -> None:
    bench = RankedLane()
    now, nbytes = 0.0, 0
    for number in range(rng.randint(1, 30)):
        now += rng.choice((0.0, 0.03, 0.1, rng.random()))
        size = rng.randint(1, 1500)
        nbytes += size
        bench.send(now, str(number), size, rng.randint(0, 3), rng.randint(0, 2))
        if rng.random() < 0.2:
            bench.urge(now + rng.random(), str(rng.randint(0, number)), rng.randint(0, 3), rng.randint(0, 2))
    bench.run(Patience(bench))
    lane = bench.lane
    assert lane.submitted_bytes == lane.delivered_bytes == nbytes
    assert lane.active is None and lane.in_flight_bytes() == 0
    assert lane.busy_s == pytest.approx(nbytes / RATE)


@settings(max_examples=60)
@given(st.randoms(use_true_random=False))
def test_random_ranks_that_are_all_equal_change_nothing(rng: Random) -> None:
    plain, ranked = RankedLane(ranks=1), RankedLane(ranks=3)
    now = 0.0
    for number in range(rng.randint(1, 30)):
        now += rng.choice((0.0, 0.03, 0.1, rng.random()))
        size, kind = rng.randint(1, 1500), rng.randint(0, 3)
        plain.send(now, str(number), size, kind)
        ranked.send(now, str(number), size, kind, rank=1)
    assert plain.run() == ranked.run()
    assert list(plain.through) == list(ranked.through)
