"""Windows of recordings: where they begin, why they end, and that what is in them is what happened there."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

import pytest

from simkv.results.recorded import from_json, to_json
from simkv.sim.config import SystemConfig
from simkv.sim.record.recording import Recording, Wanted
from simkv.sim.system import System
from simkv.workload.replay import FixedSource
from simkv.workload.request import Request
from tests.record_factory import WHOLE, check_shape, recorded, rows
from tests.sim_factory import request, same, system_config

MANY = [same(number, 5.0 * number, 20, 6, stream=number % 7) for number in range(60)]
"""A request every five seconds for five minutes; their prompts come again and again."""


def tiered(**changes: Any) -> SystemConfig:
    return system_config(**({"num_gpu_blocks": 16, "max_num_seqs": 2, "dram_blocks": 120, "replicas": 2} | changes))


def record(
    *wanted: Wanted, config: SystemConfig | None = None, requests: list[Request] = MANY
) -> tuple[Recording, ...]:
    recordings = recorded(config or tiered(), requests, *wanted).recordings
    for recording in recordings:
        check_shape(recording)
    return recordings


def size(recording: Recording) -> int:
    """Return the rows of what ended."""
    ended = sum(not isnan(end_s) for table in (recording.steps, recording.transfers) for end_s in table["end_s"])
    return ended + len(recording.slices["transfer"])


def within(recording: Recording, begin_s: float, end_s: float) -> dict[str, list[dict[str, Any]]]:
    """Return what a whole recording has of a part of the run."""
    steps = [row for row in rows(recording.steps) if row["end_s"] > begin_s and row["begin_s"] < end_s]
    moved = [row for row in rows(recording.transfers) if row["end_s"] >= begin_s and row["submitted_s"] <= end_s]
    slices = [row for row in rows(recording.slices) if row["end_s"] >= begin_s and row["begin_s"] < end_s]
    for row in slices:
        row |= {"begin_s": max(begin_s, row["begin_s"]), "end_s": min(end_s, row["end_s"])}
    for row in steps:
        row |= {"end_s": nan, "steps": 0, "wait_s": 0.0} if row["end_s"] > end_s else {}
    for row in moved:
        row |= {"end_s": nan} if row["end_s"] > end_s else {}
    return {"steps": steps, "transfers": moved, "slices": slices}


def assert_part(part: Recording, whole: Recording) -> None:
    """``part`` says what ``whole`` says of its window; numbers that only recordings give out may differ."""
    for name, wanted in within(whole, part.begin_s, part.end_s).items():
        found = rows(getattr(part, name))
        if part.full:  # what else happened at its last instant it doesn't know
            wanted, found = _before(wanted, part.end_s), _before(found, part.end_s)
        for row in [*wanted, *found]:
            row.pop("id", None), row.pop("transfer", None)
            row.pop("fate", None), row.pop("kind", None)  # as far as they were known at the window's end
        assert sorted(map(repr, found)) == sorted(map(repr, wanted)), name


def _before(found: list[dict[str, Any]], end_s: float) -> list[dict[str, Any]]:
    """Return rows that had begun and, where they ended at ``end_s``, as if they hadn't."""
    begun = [row for row in found if row.get("begin_s", row.get("submitted_s")) < end_s]
    return [row | ({"end_s": nan, "steps": 0, "wait_s": 0.0} if row["end_s"] == end_s else {}) for row in begun]


def test_from_start_ends_with_its_rows_and_says_so() -> None:
    whole, few = record(WHOLE, Wanted("from_start", 50, blocks=False))
    assert whole.whole and not whole.full and not few.whole and few.full
    assert few.begin_s == whole.begin_s == 0.0 and 0 < few.end_s < whole.end_s
    assert 50 <= size(few) <= 50 + 1 + len(few.lanes)  # the last event may have two rows; a slice under way is cut
    assert_part(few, whole)


def test_asked_is_that_part_of_the_run() -> None:
    whole, part = record(WHOLE, Wanted("asked", 10**6, False, 101.3, 144.4))
    assert (part.begin_s, part.end_s) == (101.3, 144.4)
    assert not part.whole and not part.full
    assert any(isnan(end_s) for end_s in part.steps["end_s"]), "a step was under way"
    assert_part(part, whole)


def test_asked_without_an_end_goes_on_to_the_runs() -> None:
    whole, part = record(WHOLE, Wanted("asked", 10**6, False, 200.0))
    assert (part.begin_s, part.end_s) == (200.0, whole.end_s)
    assert_part(part, whole)


def test_asked_from_before_the_first_arrival_is_the_whole() -> None:
    later = [request(0, 30.0, 8, 3)]
    whole, part = record(WHOLE, Wanted("asked", 10**6, False, 3.0, 1e9), requests=later)
    assert whole.begin_s == part.begin_s == 30.0 and part.whole
    assert_part(part, whole)


def test_asked_beyond_the_end_is_empty_there() -> None:
    (part,) = record(Wanted("asked", 100, False, 1e6, 2e6))
    assert part.begin_s == part.end_s == part.run_end_s and size(part) == 0


def test_asked_with_few_rows_ends_early() -> None:
    whole, part = record(WHOLE, Wanted("asked", 20, False, 101.3, 300.0))
    assert part.full and part.begin_s == 101.3 and part.end_s < 150.0
    assert_part(part, whole)


def test_asked_with_blocks_begins_where_somebody_looked() -> None:
    (part,) = record(Wanted("asked", 10**6, True, 101.3, 144.4))
    assert 100.0 < part.begin_s <= 101.3 and part.end_s == 144.4


def test_latest_of_a_short_run_is_all_of_it() -> None:
    whole, latest = record(WHOLE, Wanted("latest", 10**6, blocks=False))
    assert latest.whole and latest.steps == whole.steps and latest.slices == whole.slices


def test_latest_of_a_long_run_lies_in_its_later_part() -> None:
    whole, latest = record(WHOLE, Wanted("latest", 30, blocks=False))
    assert latest.begin_s == 256.0 and latest.full and latest.end_s < whole.end_s
    assert_part(latest, whole)


def test_windows_that_overlap_are_told_the_same() -> None:
    one, other = record(Wanted("asked", 10**6, False, 50.0, 150.0), Wanted("asked", 10**6, False, 100.0, 200.0))
    (alone,) = record(Wanted("asked", 10**6, False, 100.0, 200.0))
    assert (other.steps, other.transfers["submitted_s"]) == (alone.steps, alone.transfers["submitted_s"])
    assert one.end_s == 150.0


def test_hooks_are_free_before_and_after_a_window() -> None:
    system = System(tiered(), FixedSource(MANY), record=(Wanted("asked", 10**6, False, 100.0, 120.0),))
    windows = system.windows
    assert windows is not None
    seen, tick = [], windows.tick

    def spy(now: float, next_s: float) -> None:
        tick(now, next_s)
        hooks = [lane.log for _, lane in windows.lanes] + [engine.log for engine in system.engines]
        assert len({hook is None for hook in hooks}) == 1
        seen.append((now, hooks[0] is not None))

    windows.tick = spy  # type: ignore[method-assign]
    system.run()
    open_s = [now for now, is_open in seen if is_open]
    assert open_s and 98.0 < open_s[0] <= 100.0 and open_s[-1] <= 121.0
    assert len(open_s) < len(seen) / 2


def test_pools_say_what_room_there_is() -> None:
    (whole,) = record(WHOLE, config=tiered(ssd_blocks=50, unit_blocks=2))
    found = [(row["tier"], row["pool"], row["capacity_blocks"], row["block_tokens"]) for row in rows(whole.pools)]
    assert found == [(0, 0, 16, 4), (0, 1, 16, 4), (1, 0, 30, 8), (1, 1, 30, 8), (2, 0, 25, 8)]


@pytest.mark.parametrize("replicas", [1, 2])
def test_lanes_are_named_by_replica_and_host(replicas: int) -> None:
    (whole,) = record(WHOLE, config=tiered(replicas=replicas, hosts=replicas))
    assert list(whole.lanes) == [
        *(f"replica {number} {lane}" for number in range(replicas) for lane in ("h2d", "d2h")),
        *(f"host {number} {lane}" for number in range(replicas) for lane in ("ssd_read", "ssd_write")),
    ]


def test_asked_is_over_before_anything_arrives_is_empty_and_reads_back() -> None:
    requests = [request(0, 5.0, 20, 4)]
    (recording,) = record(Wanted("asked", 100, True, 0.5, 1.0), requests=requests)
    assert recording.begin_s == recording.end_s == 1.0 and not recording.whole and not recording.full
    assert not recording.steps["replica"] and not recording.blocks["t_s"]
    assert from_json(to_json(recording)) == recording


def test_window_that_is_full_in_the_instant_of_the_runs_end_is_not_called_whole() -> None:
    """What it had no room for may have happened at that very instant."""
    requests = [request(0, 0.0, 20, 4)]
    found = [record(Wanted("from_start", most, True), requests=requests)[0] for most in range(1, 40)]
    assert all(one.full != one.whole for one in found)
    assert {one.full for one in found if one.end_s == one.run_end_s} == {True, False}
