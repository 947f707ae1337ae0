"""The trace file: written event by event, so that memory doesn't grow with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from simkv.chrometrace.charts import charts
from simkv.chrometrace.events import Event
from simkv.chrometrace.layout import Layout
from simkv.chrometrace.requests import in_window, requests
from simkv.chrometrace.steps import steps
from simkv.chrometrace.transfers import transfers
from simkv.files import new_file
from simkv.reading import read_bounded
from simkv.sim.record.recording import Recording
from simkv.sim.rundata import RunData

_BATCH = 4096
_HEAD = b'{"displayTimeUnit":"ms","otherData":'


@dataclass(frozen=True, slots=True)
class Written:
    """What a trace file has."""

    events: int
    size_bytes: int


def write(recording: Recording, data: RunData, about: Mapping[str, Any], file: Path) -> Written:
    """Write ``recording`` of the run ``data`` as ``file``, whole or not at all.

    ``about`` is said of it in the file: scenario, seed, hash, version. Raises OSError where it can't be written.
    """
    drawn, left_out = in_window(recording, data)
    other = {**about, **window(recording), "requests_left_out": left_out}
    layout = Layout(recording, data.instances["gpu"])
    events = chain(
        layout.names(),
        steps(recording, layout),
        transfers(recording, layout),
        requests(recording, data, layout, drawn),
        charts(recording, data, layout),
    )
    with new_file(file) as draft:
        count = _write(events, other, draft)
    return Written(count, file.stat().st_size)


def is_trace(file: Path) -> bool:
    """Return whether ``file`` is one that :func:`write` wrote. Raises OSError where it can't be read."""
    return read_bounded(file, len(_HEAD))[: len(_HEAD)] == _HEAD


def window(recording: Recording) -> dict[str, Any]:
    """Return which part of the run a recording has, and why it ended."""
    if recording.whole:
        ended = "the run ended"
    elif recording.full:
        ended = "it had as many events as it may have"
    else:
        ended = "it was asked for until then"
    return {
        "window_begin_s": recording.begin_s,
        "window_end_s": recording.end_s,
        "run_end_s": recording.run_end_s,
        "whole_run": recording.whole,
        "window_ended_because": ended,
    }


def _write(events: Iterator[Event], other: Mapping[str, Any], file: Path) -> int:
    import orjson

    count = 0
    with file.open("wb") as out:
        out.write(_HEAD)
        out.write(orjson.dumps(other))
        out.write(b',"traceEvents":[')
        while batch := [orjson.dumps(event) for event in islice(events, _BATCH)]:
            out.write(b",\n" if count else b"\n")
            out.write(b",\n".join(batch))
            count += len(batch)
        out.write(b"\n]}\n")
    return count
