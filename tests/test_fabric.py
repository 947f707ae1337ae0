"""Links, SSD queues and what they share: exact times by hand, and laws on random traffic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.sim import fabric as fabric_module
from simkv.sim.clock import ARRIVAL_RANK, Clock
from simkv.sim.fabric import DEMAND, LOOK_AHEAD, NEXT_STEP, WRITE_BACK, Fabric, Lane, fill, max_min

CHUNK = 100


@dataclass
class Bench:
    """A host's fabric with one link, or more, and an SSD; notes when each transfer is through."""

    h2d: float = 1000.0
    d2h: float = 1000.0
    duplex: float = inf
    dram: float = inf
    latency: float = 0.0
    read: float = 500.0
    write: float = 500.0
    links: int = 1
    uplink: float = inf
    behind: int = 2
    """Links that share an uplink, where there are uplinks."""
    through: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = Clock()
        self.fabric = Fabric(self.clock, self.dram)
        self.lanes: dict[str, Lane] = {}
        for number in range(self.links):
            down = self._lane(f"h2d{number}" if number else "h2d", self.h2d)
            up = self._lane(f"d2h{number}" if number else "d2h", self.d2h)
            self.fabric.add_link(down, up, self.duplex)
        self._add_uplinks()
        self.fabric.add_ssd(self._lane("read", self.read), self._lane("write", self.write))

    def _add_uplinks(self) -> None:
        for first in range(0, self.links if self.uplink < inf else 0, self.behind):
            numbers = range(first, min(first + self.behind, self.links))
            for direction in ("h2d", "d2h"):
                lanes = [self.lanes[f"{direction}{number or ''}"] for number in numbers]
                self.fabric.add_uplink(lanes, self.uplink)

    def _lane(self, name: str, rate: float) -> Lane:
        lane = self.lanes[name] = Lane(self.fabric, name, rate, self.latency, CHUNK)
        return lane

    def send(self, at_s: float, name: str, nbytes: int, lane: str = "h2d", priority: int = DEMAND, pieces: int = 1):
        """Submit at ``at_s``."""

        def done() -> None:
            self.through[name] = self.clock.now

        self.clock.at(at_s, ARRIVAL_RANK, lambda _: self.lanes[lane].submit(nbytes, pieces, priority, done))

    def run(self, watch: Callable[[], None] | None = None) -> dict[str, float]:
        """Run to the end; ``watch`` looks at the lanes after every event."""
        while self.clock.drain(1):
            if watch is not None:
                watch()
        if watch is not None:
            watch()
        return self.through


# ---- one transfer


@pytest.mark.parametrize("pieces", [0, 1, 7])
@pytest.mark.parametrize("rate", [1e-3, 1000.0, 25e9])
def test_transfer_alone_takes_latency_a_piece_and_bytes_over_bandwidth(rate: float, pieces: int) -> None:
    bench = Bench(h2d=rate, latency=0.25)
    bench.send(3.0, "a", 1200, pieces=pieces)
    assert bench.run()["a"] == pytest.approx(3.0 + pieces * 0.25 + 1200 / rate, rel=1e-12)
    assert bench.lanes["h2d"].service_s(1200, pieces) == pieces * 0.25 + 1200 / rate


def test_transfer_infinite_bandwidth_takes_the_latency_alone() -> None:
    bench = Bench(h2d=inf, latency=0.25)
    bench.send(1.0, "a", 10**15, pieces=2)
    assert bench.run() == {"a": pytest.approx(1.5)}


def test_transfer_infinite_bandwidth_without_latency_is_through_at_once() -> None:
    bench = Bench(h2d=inf)
    for name in "abc":
        bench.send(1.0, name, 10**15)
    assert bench.run() == {"a": 1.0, "b": 1.0, "c": 1.0}


def test_lane_zero_bandwidth_is_unusable_and_says_so() -> None:
    lane = Bench(h2d=0.0).lanes["h2d"]
    assert not lane.usable
    assert lane.service_s(1, 1) == inf
    assert Bench(h2d=1e-9).lanes["h2d"].usable
    assert not Bench(duplex=0.0).lanes["h2d"].usable


@given(st.integers(1, 10**9), st.integers(1, 64), st.floats(1e3, 1e12), st.floats(1.0, 1e3), st.floats(0, 1))
def test_transfer_more_bandwidth_never_takes_longer_alone(
    nbytes: int, pieces: int, rate: float, factor: float, latency: float
) -> None:
    slow, fast = Bench(h2d=rate, latency=latency), Bench(h2d=rate * factor, latency=latency)
    for bench in (slow, fast):
        bench.send(0.0, "a", nbytes, pieces=pieces)
    assert fast.run()["a"] <= slow.run()["a"] * (1 + 1e-12)


# ---- order


def test_transfers_of_equal_priority_go_in_order_of_submission() -> None:
    bench = Bench()
    bench.send(0.0, "a", 1000)
    bench.send(0.1, "b", 500)
    bench.send(0.1, "c", 100)
    assert bench.run() == pytest.approx({"a": 1.0, "b": 1.5, "c": 1.6})
    assert list(bench.through) == ["a", "b", "c"]


def test_transfers_waiting_go_in_order_of_priority() -> None:
    bench = Bench()
    bench.send(0.0, "first", 100)
    for name, priority in (("write", WRITE_BACK), ("ahead", LOOK_AHEAD), ("next", NEXT_STEP), ("demand", DEMAND)):
        bench.send(0.0, name, 100, priority=priority)
    bench.run()
    assert list(bench.through) == ["first", "demand", "next", "ahead", "write"]
    assert bench.through["write"] == pytest.approx(0.5)


def test_demand_takes_over_at_the_next_chunk_boundary() -> None:
    bench = Bench()
    bench.send(0.0, "write", 1000, priority=WRITE_BACK)
    bench.send(0.25, "demand", 200)  # 250 bytes are through: the chunk ends at 0.3 s
    assert bench.run() == pytest.approx({"demand": 0.5, "write": 1.2})


def test_demand_in_the_last_chunk_waits_for_its_end() -> None:
    bench = Bench()
    bench.send(0.0, "write", 950, priority=WRITE_BACK)
    bench.send(0.92, "demand", 200)
    assert bench.run() == pytest.approx({"write": 0.95, "demand": 1.15})


def test_demand_at_the_start_of_a_chunk_takes_over_at_once() -> None:
    bench = Bench()
    bench.send(0.0, "write", 1000, priority=WRITE_BACK)
    bench.send(0.0, "demand", 200)
    assert bench.run() == pytest.approx({"demand": 0.2, "write": 1.2})


def test_interrupted_transfer_goes_on_before_later_ones_of_its_priority() -> None:
    bench = Bench()
    bench.send(0.0, "old", 1000, priority=WRITE_BACK)
    bench.send(0.1, "new", 100, priority=WRITE_BACK)
    bench.send(0.25, "demand", 100)
    assert bench.run() == pytest.approx({"demand": 0.4, "old": 1.1, "new": 1.2})


def test_more_urgent_one_overtakes_while_the_first_gives_way() -> None:
    bench = Bench()
    bench.send(0.0, "write", 1000, priority=WRITE_BACK)
    bench.send(0.21, "ahead", 100, priority=LOOK_AHEAD)
    bench.send(0.25, "demand", 100)
    assert bench.run() == pytest.approx({"demand": 0.4, "ahead": 0.5, "write": 1.2})


# ---- sharing


def test_directions_without_a_cap_do_not_slow_each_other() -> None:
    bench = Bench()
    bench.send(0.0, "down", 1000)
    bench.send(0.0, "up", 1000, "d2h")
    assert bench.run() == pytest.approx({"down": 1.0, "up": 1.0})


def test_duplex_cap_is_shared_while_both_directions_are_busy() -> None:
    bench = Bench(duplex=1000.0)
    bench.send(0.0, "down", 1000)
    bench.send(0.5, "up", 250, "d2h")  # both at 500 from 0.5 s on; up through at 1.0, down has 250 left
    assert bench.run() == pytest.approx({"up": 1.0, "down": 1.25})


def test_duplex_cap_below_one_direction_binds_it_alone() -> None:
    bench = Bench(duplex=250.0)
    bench.send(0.0, "down", 1000)
    assert bench.run() == pytest.approx({"down": 4.0})


def test_duplex_cap_is_each_links_own() -> None:
    bench = Bench(duplex=1000.0, links=2)
    bench.send(0.0, "a", 1000)
    bench.send(0.0, "b", 1000, "h2d1")
    assert bench.run() == pytest.approx({"a": 1.0, "b": 1.0})


def test_dram_bandwidth_is_shared_by_links_and_ssd() -> None:
    bench = Bench(dram=900.0, links=2)
    bench.send(0.0, "a", 1000)
    bench.send(0.0, "b", 1000, "d2h1")
    bench.send(0.0, "c", 500, "read")
    # all three want more than 300 of 900 and get that; c ends at 500 / 300, and a and b share 900 from there on
    assert bench.run() == pytest.approx({"a": 5 / 3 + 500 / 450, "b": 5 / 3 + 500 / 450, "c": 5 / 3})


def test_ssd_reads_and_writes_share_the_devices_time() -> None:
    bench = Bench(read=1000.0, write=500.0)
    bench.send(0.0, "read", 1000, "read")
    bench.send(0.5, "write", 250, "write")  # half speed each from 0.5 s: write ends at 1.5, read as well
    assert bench.run() == pytest.approx({"read": 1.5, "write": 1.5})


def test_unlimited_ssd_beside_a_capped_link_keeps_every_cap() -> None:
    bench = Bench(duplex=1200.0, dram=10_000.0, read=inf)
    bench.send(0.0, "down", 1000)
    bench.send(0.0, "up", 1000, "d2h")
    bench.send(0.0, "read", 100_000, "read")
    bench.run()
    assert bench.through["down"] >= 1000 / 600 * (1 - 1e-9)
    assert bench.through["up"] >= 1000 / 600 * (1 - 1e-9)


def test_unlimited_direction_leaves_nothing_of_the_duplex_cap_unused() -> None:
    bench = Bench(h2d=inf, d2h=100.0, duplex=1000.0)
    bench.send(0.0, "up", 200, "d2h")
    bench.send(0.0, "down", 900)
    assert bench.run() == pytest.approx({"down": 1.0, "up": 2.0})


# ---- uplinks


@pytest.mark.parametrize("direction", ["h2d", "d2h"])
@pytest.mark.parametrize("links", [1, 2, 3, 4])
def test_uplink_links_loading_at_once_take_as_many_times_as_long(direction: str, links: int) -> None:
    bench = Bench(uplink=1000.0, links=links, behind=4)
    for number in range(links):
        bench.send(0.0, str(number), 1000, f"{direction}{number or ''}")
    assert bench.run() == pytest.approx({str(number): float(links) for number in range(links)})


def test_uplink_one_after_the_other_takes_no_longer_than_without() -> None:
    bench = Bench(uplink=1000.0, links=2)
    bench.send(0.0, "a", 1000)
    bench.send(1.0, "b", 1000, "h2d1")
    assert bench.run() == pytest.approx({"a": 1.0, "b": 2.0})


def test_uplink_is_shared_only_while_its_links_are_busy_together() -> None:
    bench = Bench(uplink=1000.0, links=2)
    bench.send(0.0, "a", 1000)
    bench.send(0.5, "b", 1000, "h2d1")  # halves from 0.5 s on: a ends at 1.5 s, b has 500 left and all of the uplink
    assert bench.run() == pytest.approx({"a": 1.5, "b": 2.0})


def test_uplink_directions_do_not_slow_each_other() -> None:
    bench = Bench(uplink=1000.0, links=2)
    bench.send(0.0, "down", 1000)
    bench.send(0.0, "up", 1000, "d2h1")
    assert bench.run() == pytest.approx({"down": 1.0, "up": 1.0})


def test_uplink_is_each_groups_own() -> None:
    bench = Bench(uplink=1000.0, links=4, behind=2)
    bench.send(0.0, "a", 1000)
    bench.send(0.0, "b", 1000, "h2d2")
    assert bench.run() == pytest.approx({"a": 1.0, "b": 1.0})


def test_uplink_below_a_link_binds_it_alone() -> None:
    bench = Bench(uplink=250.0, links=2)
    bench.send(0.0, "a", 1000)
    assert bench.run() == pytest.approx({"a": 4.0})
    assert not Bench(uplink=0.0).lanes["h2d"].usable


def test_uplink_slow_link_leaves_the_rest_to_the_others() -> None:
    bench = Bench(h2d=inf, d2h=inf, uplink=900.0, duplex=600.0, links=2)
    bench.send(0.0, "up", 400, "d2h")  # 300: half of the first link's duplex
    bench.send(0.0, "down", 400)  # the other half
    bench.send(0.0, "other", 800, "h2d1")  # 600 of the uplink are left
    bench.run()
    assert bench.through == pytest.approx({"up": 4 / 3, "down": 4 / 3, "other": 4 / 3})


def test_uplink_that_slows_one_direction_leaves_more_of_duplex_to_the_other() -> None:
    bench = Bench(uplink=400.0, duplex=1000.0, links=2)
    bench.send(0.0, "down", 200)
    bench.send(0.0, "other", 200, "h2d1")  # 200 each
    bench.send(0.0, "up", 400, "d2h")  # 400: all that its uplink lets through, more than half of duplex less 200
    bench.run()
    assert bench.through == pytest.approx({"down": 1.0, "other": 1.0, "up": 1.0})


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 10**6), min_size=1, max_size=6),
    st.floats(10.0, 1e6),
    st.floats(10.0, 1e6),
    st.sampled_from(("h2d", "d2h")),
)
def test_uplink_transfers_sent_at_once_end_as_processor_sharing_says(
    sizes: list[int], link: float, uplink: float, direction: str
) -> None:
    """Links of rate r behind an uplink of rate u: with n busy each has min(r, u / n)."""
    bench = Bench(h2d=link, d2h=link, uplink=uplink, links=len(sizes), behind=len(sizes))
    for number, nbytes in enumerate(sizes):
        bench.send(0.0, str(number), nbytes, f"{direction}{number or ''}")
    through = bench.run()
    now = carried = 0.0
    for done, (nbytes, number) in enumerate(sorted((nbytes, number) for number, nbytes in enumerate(sizes))):
        now += (nbytes - carried) / min(link, uplink / (len(sizes) - done))
        carried = nbytes
        assert through[str(number)] == pytest.approx(now)


@settings(max_examples=200)
@given(st.randoms(use_true_random=False))
def test_filling_nested_caps_equals_sharing_them_from_the_inside_out(rng: Random) -> None:
    bench = Bench()
    lanes = [Lane(bench.fabric, str(number), 1.0, 0.0, CHUNK) for number in range(6)]
    wanted = dict(zip(lanes, (rng.choice((100.0, rng.uniform(1, 1000), inf)) for _ in lanes), strict=True))
    inner = [(lanes[:2], rng.uniform(1, 1500)), (lanes[2:4], inf), (lanes[4:], rng.choice((1.0, 300.0)))]
    whole = rng.choice((50.0, 700.0, 5000.0, inf))
    shares = [rate for group, cap in inner for rate in max_min([wanted[lane] for lane in group], cap)]
    expected = max_min(shares, whole)
    filled = fill(wanted, [*inner, (lanes, whole)])
    assert [filled[lane] for lane in lanes] == pytest.approx(expected)


# ---- laws


LANES = ("h2d", "d2h", "h2d1", "d2h1", "h2d2", "d2h2", "read", "write")


@dataclass
class Watch:
    """Looks at every lane after every event: caps, conservation, no idling, no long wait behind the less urgent."""

    bench: Bench

    def __call__(self) -> None:
        bench = self.bench
        rates = {}
        for name, lane in bench.lanes.items():
            assert lane.submitted_bytes == lane.delivered_bytes + lane.in_flight_bytes()
            rates[name] = lane.rate if lane.active else 0.0
            assert lane.active is not None or not any(lane.queues), f"{name} idles with work to do"
            assert lane.active is None or lane.rate > 0, f"{name} stands still"
            assert rates[name] <= lane.bytes_per_s * (1 + 1e-9)
            if lane.active is not None:
                assert 0 <= lane.active.stop <= lane.active.remaining <= lane.active.bytes
        slack = 1 + 1e-9
        numbers = [number or "" for number in range(bench.links)]
        caps = [([f"h2d{number}", f"d2h{number}"], bench.duplex) for number in numbers]
        for first in range(0, bench.links, bench.behind):
            group = numbers[first : first + bench.behind]
            caps += [([f"{direction}{number}" for number in group], bench.uplink) for direction in ("h2d", "d2h")]
        caps.append((list(rates), bench.dram))
        for names, cap in caps:
            assert sum(rates[name] for name in names) <= cap * slack, f"{names} carry more than {cap}"
        self.all_have_what_they_can(rates, caps)
        if rates["read"] and rates["write"]:
            assert rates["read"] / bench.read + rates["write"] / bench.write <= slack

    def all_have_what_they_can(self, rates: dict[str, float], caps: list[tuple[list[str], float]]) -> None:
        """Max-min: who has less than it wants is behind a full cap where nobody has more."""
        bench = self.bench
        near = 1 - 1e-9
        for name, rate in rates.items():
            lane = bench.lanes[name]
            if lane.active is None or rate >= lane.active.cap_bytes_per_s * near:
                continue
            full = [names for names, cap in caps if name in names and sum(rates[n] for n in names) >= cap * near]
            if name in ("read", "write") and rates["read"] and rates["write"]:
                continue  # they share time, not bytes
            assert any(rate >= max(rates[n] for n in names) * near for names in full), f"{name} could be faster"


def random_traffic(rng: Random, bench: Bench) -> dict[str, tuple[float, str, int, int, int]]:
    """Submit a few dozen transfers; return each one's time, lane, bytes, priority and pieces."""
    sent = {}
    lanes = [name for name in LANES if name in bench.lanes]
    now = 0.0
    for number in range(rng.randint(1, 30)):
        now += rng.choice((0.0, 0.05, 0.1, rng.random(), 3.0))
        work = (now, rng.choice(lanes), rng.randint(1, 1500), rng.randint(0, 3), rng.randint(0, 2))
        sent[str(number)] = work
        bench.send(work[0], str(number), work[2], work[1], work[3], work[4])
    return sent


def random_bench(rng: Random) -> Bench:
    return Bench(
        rng.choice((100.0, 1000.0, inf)),
        rng.choice((100.0, 700.0, inf)),
        rng.choice((500.0, 1200.0, inf)),
        rng.choice((400.0, 2500.0, inf)),
        rng.choice((0.0, 0.02)),
        rng.choice((50.0, 800.0)),
        rng.choice((50.0, 300.0)),
        rng.choice((1, 2, 3)),
        rng.choice((60.0, 900.0, inf, inf)),
        rng.choice((1, 2, 3)),
    )


@settings(max_examples=150)
@given(st.randoms(use_true_random=False))
def test_random_traffic_keeps_every_cap_and_loses_no_byte(rng: Random) -> None:
    bench = random_bench(rng)
    sent = random_traffic(rng, bench)
    through = bench.run(Watch(bench))
    assert through.keys() == sent.keys()
    for name, (at_s, lane, nbytes, _, pieces) in sent.items():
        assert through[name] >= (at_s + bench.lanes[lane].service_s(nbytes, pieces)) * (1 - 1e-9)
    for name, lane in bench.lanes.items():
        mine = [work for work in sent.values() if work[1] == name]
        assert lane.submitted_bytes == lane.delivered_bytes == sum(work[2] for work in mine)
        assert lane.in_flight_bytes() == 0 and lane.active is None
        alone_s = sum(lane.service_s(work[2], work[4]) for work in mine)
        last_s = max((through[key] for key, work in sent.items() if work[1] == name), default=0.0)
        assert alone_s * (1 - 1e-9) <= lane.busy_s <= last_s * (1 + 1e-9)
        assert lane.busy_until(last_s + 5.0) == lane.busy_s


@settings(max_examples=60)
@given(st.randoms(use_true_random=False))
def test_random_traffic_on_one_lane_is_work_conserving(rng: Random) -> None:
    """One lane alone: it is busy for exactly the sum of the isolated times, whatever the priorities."""
    bench = Bench(latency=rng.choice((0.0, 0.02)))
    sent = {}
    now = 0.0
    for number in range(rng.randint(1, 25)):
        now += rng.choice((0.0, 0.01, rng.random()))
        sent[str(number)] = (now, rng.randint(1, 1500), rng.randint(0, 3))
        bench.send(now, str(number), sent[str(number)][1], priority=sent[str(number)][2])
    through = bench.run()
    lane = bench.lanes["h2d"]
    assert lane.busy_s == pytest.approx(sum(lane.service_s(nbytes, 1) for _, nbytes, _ in sent.values()))
    end = 0.0
    for at_s, nbytes, _ in sent.values():  # the same work in order of arrival ends at the same time
        end = max(end, at_s) + lane.service_s(nbytes, 1)
    assert max(through.values()) == pytest.approx(end)
    for priority in range(4):  # equals never pass each other
        ends = [through[name] for name, work in sent.items() if work[2] == priority]
        assert ends == sorted(ends)


@settings(max_examples=60)
@given(st.integers(1, 5000), st.floats(0, 6), st.integers(1, 2000), st.integers(1, 3))
def test_urgent_transfer_waits_at_most_one_chunk_behind_a_lesser_one(
    lesser: int, at_s: float, nbytes: int, priority: int
) -> None:
    bench = Bench()
    bench.send(0.0, "lesser", lesser, priority=priority)
    bench.send(at_s, "urgent", nbytes, priority=priority - 1)
    waited = bench.run()["urgent"] - at_s - nbytes / 1000
    assert -1e-9 <= waited <= min(CHUNK, lesser) / 1000 + 1e-9
    assert (
        max(bench.through.values()) == pytest.approx(max(at_s, lesser / 1000) + nbytes / 1000) or at_s < lesser / 1000
    )


def test_busy_time_counts_what_is_under_way() -> None:
    bench = Bench()
    bench.send(1.0, "a", 1000)
    bench.send(5.0, "b", 500)
    bench.send(5.1, "c", 500, priority=WRITE_BACK)
    seen = []
    bench.clock.at(1.4, 99, lambda _: seen.append(bench.lanes["h2d"].busy_until(1.4)))
    bench.clock.at(5.2, 99, lambda _: seen.append(bench.lanes["h2d"].busy_until(5.2)))
    bench.run()
    assert seen == pytest.approx([0.4, 1.2])
    assert bench.lanes["h2d"].busy_s == pytest.approx(2.0)


# ---- a wrong fabric must be seen


def test_mutant_lane_that_idles_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: Lane) -> None:
        if not any(self.queues) or len(self.queues[DEMAND]) > 1:
            return
        original(self)

    original = Lane._start_next
    monkeypatch.setattr(Lane, "_start_next", forgetful)
    bench = Bench()
    for name in "abc":
        bench.send(0.0, name, 1000)
    with pytest.raises(AssertionError):
        bench.run(Watch(bench))
        assert bench.through.keys() == set("abc")


def test_mutant_uplink_shared_by_nobody_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric_module, "fill", lambda wanted, caps: wanted)
    bench = Bench(uplink=1000.0, links=2)
    bench.send(0.0, "a", 1000)
    bench.send(0.0, "b", 1000, "h2d1")
    with pytest.raises(AssertionError, match="carry more than"):
        bench.run(Watch(bench))


def test_mutant_uplink_that_wastes_what_a_slow_link_leaves_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        fabric_module, "fill", lambda wanted, caps: {lane: min(rate, 300.0) for lane, rate in wanted.items()}
    )
    bench = Bench(uplink=1000.0, links=2)
    bench.send(0.0, "a", 1000)
    bench.send(0.0, "b", 1000, "h2d1")
    with pytest.raises(AssertionError, match="could be faster"):
        bench.run(Watch(bench))


# ---- what somebody waits for


def test_urged_transfer_overtakes_at_the_next_chunk_and_an_active_one_keeps_its_place() -> None:
    bench = Bench()
    bench.send(0.0, "write", 1000, priority=WRITE_BACK)
    bench.send(0.0, "other", 300, priority=LOOK_AHEAD)
    carried = []
    lane = bench.lanes["h2d"]

    def ahead(_: object) -> None:
        carried.append(lane.submit(200, 1, LOOK_AHEAD, lambda: bench.through.setdefault("ahead", bench.clock.now)))

    bench.clock.at(0.05, ARRIVAL_RANK, ahead)
    bench.clock.at(0.15, ARRIVAL_RANK, lambda _: lane.urge(carried[0], DEMAND))
    # "other" took over at once; the urged one does at the end of the chunk in service, 0.2
    assert bench.run() == pytest.approx({"ahead": 0.4, "other": 0.5, "write": 1.5})


def test_urging_what_is_through_or_under_way_changes_no_time() -> None:
    bench = Bench()
    lane = bench.lanes["h2d"]
    carried = []
    bench.clock.at(0.0, ARRIVAL_RANK, lambda _: carried.append(lane.submit(500, 1, LOOK_AHEAD, lambda: None)))
    bench.clock.at(0.1, ARRIVAL_RANK, lambda _: lane.urge(carried[0], DEMAND))
    bench.send(0.2, "demand", 100)
    bench.clock.at(0.55, ARRIVAL_RANK, lambda _: lane.urge(carried[0], DEMAND))
    assert bench.run() == pytest.approx({"demand": 0.6})  # the active one is as urgent and was first
    assert lane.submitted_bytes == lane.delivered_bytes == 600
