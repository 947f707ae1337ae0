"""Runs that are recorded, and what must hold of any recording."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import fsum, isnan
from typing import Any

import pytest

from simkv.sim.config import SystemConfig
from simkv.sim.record.recording import FATES, KINDS, PURPOSES, Recording, Table, Wanted
from simkv.sim.rundata import RunData
from simkv.sim.system import System
from simkv.workload.replay import FixedSource
from simkv.workload.request import Request, Source

WHOLE = Wanted("from_start", 10**7, blocks=False)
"""All of any run that a test makes."""


def recorded(config: SystemConfig, source: Source | Iterable[Request], *wanted: Wanted) -> RunData:
    """Run a source (or a list of requests) and record it, the whole run unless told otherwise."""
    if not hasattr(source, "arrivals"):
        source = FixedSource(source)  # type: ignore[arg-type]
    return System(config, source, record=wanted or (WHOLE,)).run()  # type: ignore[arg-type]


def rows(table: Table) -> list[dict[str, Any]]:
    """Return a table row by row."""
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def transfers(data: RunData, purpose: str = "") -> list[dict[str, Any]]:
    """Return the transfers of a run's first recording, with words for numbers; ``purpose``: of that alone."""
    (recording, *_) = data.recordings
    found = [
        row
        | {
            "lane": recording.lanes[row["lane"]],
            "kind": KINDS[row["kind"]],
            "purpose": PURPOSES[row["purpose"]],
            "fate": FATES[row["fate"]],
        }
        for row in rows(recording.transfers)
    ]
    return [row for row in found if purpose in ("", row["purpose"])]


def served_s(recording: Recording) -> dict[str, float]:
    """Return by lane for how long it served transfers."""
    lane_of = dict(zip(recording.transfers["id"], recording.transfers["lane"], strict=True))
    found: dict[str, list[float]] = {name: [] for name in recording.lanes}
    for row in rows(recording.slices):
        found[recording.lanes[int(lane_of[row["transfer"]])]].append(row["end_s"] - row["begin_s"])
    return {name: fsum(parts) for name, parts in found.items()}


def check_whole(data: RunData, steps_wait: bool = False) -> None:
    """Law L46 of a run that was recorded as a whole; ``steps_wait``: the GPU isn't busy while a step waits."""
    (recording, *_) = data.recordings
    assert recording.whole and not recording.full
    assert recording.end_s == recording.run_end_s == data.end_s
    check_shape(recording)
    lengths = [row["end_s"] - row["begin_s"] - steps_wait * row["wait_s"] for row in rows(recording.steps)]
    assert fsum(lengths) == pytest.approx(data.busy_s["gpu"], rel=1e-9, abs=1e-9)
    served = served_s(recording)
    for lane in ("h2d", "d2h", "ssd_read", "ssd_write"):
        of_lane = fsum(seconds for name, seconds in served.items() if name.endswith(f" {lane}"))
        assert of_lane == pytest.approx(data.busy_s[lane], rel=1e-9, abs=1e-9), lane
        moved = [
            row["bytes"] for row in transfers(data) if row["lane"].endswith(f" {lane}") and not isnan(row["end_s"])
        ]
        late = sum(isnan(row["end_s"]) for row in transfers(data))
        assert late or sum(moved) == data.bytes[lane], lane
    assert not any(isnan(end_s) for end_s in recording.steps["end_s"])
    assert sum(recording.steps["steps"]) == data.steps_total


def check_shape(recording: Recording) -> None:
    """What holds of any window: everything lies in it, nobody does two things at once, rows refer to rows."""
    begin_s, end_s = recording.begin_s, recording.end_s
    for replica in set(recording.steps["replica"]):
        steps = [row for row in rows(recording.steps) if row["replica"] == replica]
        _apart([(row["begin_s"], row["end_s"]) for row in steps])
        assert all(row["begin_s"] <= end_s and not row["end_s"] < begin_s for row in steps)
        assert all(row["steps"] >= 1 for row in steps if not isnan(row["end_s"]))
    ids = list(recording.transfers["id"])
    assert len(set(ids)) == len(ids) and 0 not in ids
    lane_of = dict(zip(ids, recording.transfers["lane"], strict=True))
    slices = rows(recording.slices)
    for lane in range(len(recording.lanes)):
        _apart([(row["begin_s"], row["end_s"]) for row in slices if lane_of[row["transfer"]] == lane])
    by_id = {row["id"]: row for row in rows(recording.transfers)}
    for row in slices:
        of = by_id[row["transfer"]]
        assert begin_s <= row["begin_s"] <= row["end_s"] <= end_s
        assert of["submitted_s"] <= row["begin_s"] and not row["end_s"] > of["end_s"]
    for row in by_id.values():
        assert row["submitted_s"] <= end_s and (isnan(row["end_s"]) or begin_s <= row["end_s"] <= end_s)
        assert 0 <= row["kind"] < len(KINDS) and 0 <= row["purpose"] < len(PURPOSES) and 0 <= row["fate"] < len(FATES)


def _apart(spans: list[tuple[float, float]]) -> None:
    assert spans == sorted(spans, key=lambda span: span[0])
    assert all(one[1] <= other[0] for one, other in pairwise(spans)), "two at once"
