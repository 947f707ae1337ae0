"""The trace file: valid, and it says what the run says."""

from __future__ import annotations

import json
from math import fsum
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simkv.chrometrace import is_trace, write
from simkv.chrometrace import requests as drawn_requests
from simkv.sim.record.recording import Wanted
from simkv.sim.rundata import RunData
from tests import test_tiers
from tests.active_factory import active_config, decoding
from tests.record_factory import WHOLE, recorded, rows, transfers
from tests.sim_factory import request, same, system_config
from tests.test_record_transfers import SPARSE
from tests.test_record_windows import MANY, tiered
from tests.test_swap import TWO, short
from tests.test_tiers import evicting, twice, waiting_for_its_turn, with_prefetch
from tests.trace_format import ROUNDING, by_row, check, read

Events = list[dict[str, Any]]


def trace(data: RunData, folder: Path, which: int = 0, **about: Any) -> dict[str, Any]:
    """Write a run's recording and read it back, checked."""
    file = folder / "trace.json"
    written = write(data.recordings[which], data, about, file)
    found = read(file)
    assert written.events == len(found["traceEvents"]) and written.size_bytes == file.stat().st_size
    return found


def events_of(data: RunData, folder: Path, which: int = 0) -> Events:
    found: Events = trace(data, folder, which)["traceEvents"]
    return found


def rows_by_name(events: Events) -> dict[tuple[str, str], Events]:
    """Return complete events by the names of their group and row."""
    names = {
        (event["name"], event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event["name"] in ("process_name", "thread_name")
    }
    return {
        (names["process_name", pid, 0], names["thread_name", pid, tid]): found
        for (pid, tid), found in by_row(events).items()
    }


def spans(events: Events, category: str) -> list[tuple[str, str, float, float]]:
    """Return id, name, begin and end of spans, in the order that they begin in."""
    open_: dict[tuple[str, str], dict[str, Any]] = {}
    found = []
    for event in events:
        if event["ph"] == "b" and event["cat"] == category:
            open_[event["id"], event["name"]] = event
        elif event["ph"] == "e" and event["cat"] == category:
            begun = open_.pop((event["id"], event["name"]))
            found.append((event["id"], event["name"], begun["ts"] / 1e6, event["ts"] / 1e6))
    return sorted(found, key=lambda one: one[2])


# ---- what is in it


def test_durations_sum_to_what_the_run_was_busy(tmp_path: Path) -> None:
    data = recorded(tiered(ssd_blocks=40), MANY)
    by_name = rows_by_name(events_of(data, tmp_path))
    for name, resource in (
        ("GPU steps", "gpu"),
        ("DRAM to VRAM (h2d)", "h2d"),
        ("VRAM to DRAM (d2h)", "d2h"),
        ("SSD write", "ssd_write"),
    ):
        drawn_us = [event["dur"] for (_, row), found in by_name.items() if row == name for event in found]
        assert data.busy_s[resource] > 0
        assert fsum(drawn_us) / 1e6 == pytest.approx(data.busy_s[resource], abs=len(drawn_us) * 1e-9)


def test_rows_are_of_replicas_and_hosts(tmp_path: Path) -> None:
    data = recorded(tiered(replicas=3, hosts=2, ssd_blocks=40), MANY)
    events = events_of(data, tmp_path)
    groups = {event["args"]["name"]: event["pid"] for event in events if event["name"] == "process_name"}
    assert list(groups) == [
        "replica 0",
        "replica 1",
        "replica 2",
        "host 0",
        "host 1",
        "requests",
        "all replicas together",
    ]
    order = [event["args"]["sort_index"] for event in events if event["name"] == "process_sort_index"]
    assert order == sorted(order)
    assert {row for group, row in rows_by_name(events) if group == "replica 2"} <= {
        "GPU steps",
        "DRAM to VRAM (h2d)",
        "VRAM to DRAM (d2h)",
    }


def test_steps_say_what_they_do(tmp_path: Path) -> None:
    config = system_config(num_gpu_blocks=100, max_num_batched_tokens=16)
    data = recorded(config, [request(0, 0.0, 8, 6), request(1, 2.5, 20, 3)])
    steps = rows_by_name(events_of(data, tmp_path))["replica 0", "GPU steps"]
    assert [step["name"] for step in steps] == [
        "prefill 8",
        "decode ×2, batch 1",
        "prefill 15 + decode 1",
        "prefill 5 + decode 1",
        "decode, batch 2",
        "decode, batch 1",
    ]
    assert steps[1]["args"] == {"steps": 2, "decodes": 1, "prefill_tokens": 0, "step_ms": 1000.0}
    assert [step["dur"] for step in steps] == [1e6, 2e6, 1e6, 1e6, 1e6, 1e6]


def test_step_that_waits_says_so_and_has_its_colour(tmp_path: Path) -> None:
    data = recorded(short(d2h=500.0), TWO)
    steps = rows_by_name(events_of(data, tmp_path))["replica 0", "GPU steps"]
    (waited,) = [step for step in steps if "wait_ms" in step["args"]]
    assert waited["args"]["wait_ms"] == pytest.approx(4000.0)
    assert waited["cname"] == "thread_state_iowait" and waited["cname"] not in [
        s["cname"] for s in steps if s is not waited
    ]


def test_transfers_say_what_for_for_whom_and_how_long_they_queued(tmp_path: Path) -> None:
    data = recorded(evicting(), twice())
    (load,) = rows_by_name(events_of(data, tmp_path))["replica 0", "DRAM to VRAM (h2d)"]
    assert (load["name"], load["cat"]) == ("load", "transfer,load")
    assert load["args"] == {"bytes": 4000, "kind": "demand", "request": 2, "queued_ms": 0.0}
    assert load["dur"] == pytest.approx(0.4e6, abs=ROUNDING)


@pytest.mark.parametrize(
    ("changes", "name", "color"),
    [
        ({}, "prefetch, useful", "good"),
        ({"h2d": 100.0}, "prefetch, late", "bad"),
        ({"num_gpu_blocks": 6}, "prefetch, wasted", "terrible"),
    ],
)
def test_prefetches_are_useful_late_or_wasted(tmp_path: Path, changes: dict[str, Any], name: str, color: str) -> None:
    config, requests = waiting_for_its_turn(**changes)
    requests[1] = request(1, 100.0, 4, 20)
    events = events_of(recorded(with_prefetch(config), requests), tmp_path)
    found = [event for event in events if event["ph"] == "X" and event["name"].startswith("prefetch")]
    assert [(event["name"], event["cname"]) for event in found] == [(name, color)]


def test_transfer_that_gives_way_has_slices_and_a_span_around_them(tmp_path: Path) -> None:
    data = recorded(active_config(policy="next_step", accuracy=0.5, h2d=3e3, **SPARSE), [decoding(80, 12)])
    events = events_of(data, tmp_path)
    queued = spans(events, "queue")
    assert queued and {name for _, name, _, _ in queued} <= {"queued: h2d", "queued: d2h"}
    around = {key: (begin_s, end_s) for key, _, begin_s, end_s in queued}
    stretches: dict[str, list[tuple[float, float]]] = {}
    for row in rows(data.recordings[0].slices):
        stretches.setdefault(f"transfer {row['transfer']}", []).append((row["begin_s"], row["end_s"]))
    several = [key for key, found in stretches.items() if len(found) > 1]
    assert several and set(several) <= set(around)
    for key in several:
        assert around[key][0] <= stretches[key][0][0] + 1e-8
        assert around[key][1] == pytest.approx(stretches[key][-1][1], abs=1e-8)
    straight = [row for row in transfers(data) if f"transfer {row['id']}" not in around]
    assert straight and all(stretches[f"transfer {row['id']}"][0][0] == row["submitted_s"] for row in straight)


def test_arrow_goes_from_a_load_to_the_step_that_needed_it(tmp_path: Path) -> None:
    data = recorded(evicting(), twice())
    events = events_of(data, tmp_path)
    (tail,) = [event for event in events if event["ph"] == "s"]
    (head,) = [event for event in events if event["ph"] == "f"]
    (load,) = rows_by_name(events)["replica 0", "DRAM to VRAM (h2d)"]
    assert tail["ts"] == pytest.approx(load["ts"] + load["dur"], abs=ROUNDING)
    scheduled_s = data.requests["scheduled_s"][list(data.requests["id"]).index(2)]
    assert head["ts"] / 1e6 == pytest.approx(float(scheduled_s), abs=1e-8)


def test_requests_are_spans_with_their_phases(tmp_path: Path) -> None:
    data = recorded(system_config(num_gpu_blocks=100, max_num_seqs=1), [request(0, 0.0, 8, 4), request(1, 1.0, 8, 2)])
    events = events_of(data, tmp_path)
    assert spans(events, "request") == [
        ("request 0", "prefill", 0.0, 1.0),
        ("request 0", "request", 0.0, 4.0),
        ("request 0", "decode", 1.0, 4.0),
        ("request 1", "waiting", 1.0, 4.0),
        ("request 1", "request", 1.0, 6.0),
        ("request 1", "prefill", 4.0, 5.0),
        ("request 1", "decode", 5.0, 6.0),
    ]
    (args,) = [event["args"] for event in events if event["ph"] == "b" and event["id"] == "request 1" and event["args"]]
    assert args == {
        "id": 1, "replica": 0, "prompt_tokens": 8, "output_tokens": 2, "queue_ms": 3000.0, "prefill_ms": 1000.0,
        "decode_ms": 1000.0,
    }  # fmt: skip


def test_rejected_request_is_a_mark(tmp_path: Path) -> None:
    data = recorded(system_config(num_gpu_blocks=10), [request(0, 0.0, 8, 2), request(1, 0.5, 400, 2)])
    marks = [event for event in events_of(data, tmp_path) if event["ph"] == "n"]
    assert [(event["name"], event["args"]["id"], event["ts"]) for event in marks] == [("rejected", 1, 0.5e6)]


def test_charts_follow_the_time_series(tmp_path: Path) -> None:
    data = recorded(tiered(), MANY)
    charts = [event for event in events_of(data, tmp_path) if event["ph"] == "C"]
    running = [event["args"]["running"] for event in charts if event["name"] == "requests"]
    in_time = data.timeseries["t_s"] <= data.end_s
    assert running == data.timeseries["running"][in_time].tolist()
    assert {event["name"] for event in charts} == {
        "requests", "VRAM blocks", "DRAM blocks", "GPU busy, %", "h2d busy, %", "d2h busy, %",
    }  # fmt: skip
    assert all(0 <= event["args"]["%"] <= 100 + 1e-6 for event in charts if "%" in event["args"])


# ---- parts of a run


def test_window_cuts_what_goes_on_beyond_it_and_says_so(tmp_path: Path) -> None:
    data = recorded(tiered(), MANY, Wanted("asked", 10**6, False, 101.3, 144.4))
    found = trace(data, tmp_path, scenario="many", seed=3)
    assert found["otherData"] == {
        "scenario": "many", "seed": 3, "window_begin_s": 101.3, "window_end_s": 144.4, "run_end_s": data.end_s,
        "whole_run": False, "window_ended_because": "it was asked for until then", "requests_left_out": 0,
    }  # fmt: skip
    events = found["traceEvents"]
    drawn = [event for event in events if event["ph"] != "M"]
    assert all(101.3e6 - ROUNDING <= event["ts"] <= 144.4e6 + ROUNDING for event in drawn)
    assert all(event["ts"] + event["dur"] <= 144.4e6 + ROUNDING for event in drawn if event["ph"] == "X")
    cut = [event for event in drawn if "cut" in event.get("args", {})]
    assert {event["cat"].split(",")[0] for event in cut} >= {"step", "request"}


def test_full_window_says_why_it_ended(tmp_path: Path) -> None:
    data = recorded(tiered(), MANY, Wanted("from_start", 40, blocks=False))
    other = trace(data, tmp_path)["otherData"]
    assert other["window_ended_because"] == "it had as many events as it may have" and not other["whole_run"]
    assert trace(recorded(tiered(), MANY), tmp_path)["otherData"]["window_ended_because"] == "the run ended"


def test_requests_beyond_the_most_are_left_out_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_requests, "MOST", 10)
    found = trace(recorded(tiered(), MANY), tmp_path)
    assert found["otherData"]["requests_left_out"] == 50
    assert {key for key, name, _, _ in spans(found["traceEvents"], "request") if name == "request"} == {
        f"request {number}" for number in range(10)
    }


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False))
def test_any_window_of_any_system_is_a_valid_trace(tmp_path: Path, rng: Random) -> None:
    config, requests = test_tiers.random_case(rng)
    begin_s = rng.uniform(0, 60)
    wanted = Wanted("asked", rng.choice((30, 10**6)), False, begin_s, begin_s + rng.uniform(0, 40))
    data = recorded(config, requests, WHOLE, wanted)
    for which in range(2):
        trace(data, tmp_path, which)


# ---- the file


def test_names_are_plain_text_whatever_they_are(tmp_path: Path) -> None:
    hostile = 'a"</script>\\ \x00 \N{GRINNING FACE}' + "x" * 300
    data = recorded(tiered(), [same(0, 0.0, 8, 2, cls=hostile)])
    found = trace(data, tmp_path, scenario=hostile)
    assert found["otherData"]["scenario"] == hostile
    assert any(event["name"] == f"request, {hostile}" for event in found["traceEvents"])


def test_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = recorded(tiered(), MANY)
    file = tmp_path / "trace.json"
    write(data.recordings[0], data, {}, file)
    before = file.read_bytes()

    def broken(*_: Any) -> Any:
        yield {"ph": "M"}
        raise OSError("no space is left")

    monkeypatch.setattr("simkv.chrometrace.file.charts", broken)
    with pytest.raises(OSError, match="no space"):
        write(data.recordings[0], data, {}, file)
    assert file.read_bytes() == before and list(tmp_path.iterdir()) == [file]


def test_trace_of_simkv_is_told_from_other_files(tmp_path: Path) -> None:
    data = recorded(tiered(), MANY)
    mine, other = tmp_path / "a.json", tmp_path / "b.json"
    write(data.recordings[0], data, {}, mine)
    other.write_text(json.dumps({"traceEvents": []}))
    assert is_trace(mine) and not is_trace(other)


def test_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one.json", "two.json")]
    for file in files:
        data = recorded(tiered(), MANY)
        write(data.recordings[0], data, {}, file)
    assert files[0].read_bytes() == files[1].read_bytes()


# ---- wrong traces must be seen


@pytest.mark.parametrize(
    "spoil",
    [
        lambda events: next(event for event in events if event["ph"] == "X").update(dur=1e12),
        lambda events: next(event for event in events if event["ph"] == "X").update(ts=-1.0),
        lambda events: events.remove(next(event for event in events if event["ph"] == "e")),
        lambda events: events.remove(next(event for event in events if event["ph"] == "f")),
        lambda events: events.reverse(),
        lambda events: next(event for event in events if event["ph"] == "C").pop("ts"),
    ],
    ids=[
        "two at once",
        "before the run",
        "a span without end",
        "an arrow to nowhere",
        "out of order",
        "without a time",
    ],
)
def test_mutant_trace_is_seen(tmp_path: Path, spoil: Any) -> None:
    events = events_of(recorded(evicting(), twice()), tmp_path)
    spoil(events)
    with pytest.raises((AssertionError, KeyError, IndexError)):
        check(events)
