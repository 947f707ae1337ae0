"""``simkv run --trace-out``: which part of the run is recorded, where it may be written, and what is said of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simkv.errors import InputError, Problem

if TYPE_CHECKING:
    from simkv.results.result import RunResult
    from simkv.sim.record.recording import Recording, Wanted

TraceOption = Annotated[
    Path | None,
    typer.Option(
        "--trace-out", metavar="FILE", help="Write what happened, event by event, for ui.perfetto.dev.",
        show_default=False,
    ),
]  # fmt: skip
WindowOption = Annotated[
    str | None,
    typer.Option(
        "--trace-window", metavar="FROM:TO", help="Which part of the run, like 100s:130s [default: from the start, "
        "as much as 200,000 events].", show_default=False,
    ),
]  # fmt: skip

_WINDOW = "--trace-window"
_OUT = "--trace-out"


class Trace:
    """What the two options ask for; perhaps nothing."""

    def __init__(self, file: Path | None, window: str | None, folder: Path) -> None:
        """``folder`` is where the result will be. Raises InputError for what makes no sense, or can't be written."""
        self.file = file
        self.window = window
        self._folder = folder
        if file is not None:
            _check_file(file, folder)
        elif window is not None:
            raise _wrong(_WINDOW, window, "says which part of a trace, and none is asked for", f"add {_OUT} FILE")
        self.wanted = () if file is None else (_wanted(window),)
        """What is to be recorded for it."""

    def write(self, result: RunResult) -> str | None:
        """Write the trace, where one is asked for, from the last recording of ``result``; return what is said of it.

        Raises InputError where the window has nothing of the run, or the file can't be written.
        """
        if self.file is None:
            return None
        recording = result.data.recordings[-1]
        if self.window is not None and recording.begin_s >= recording.run_end_s:
            what = f"begins when the run is over, which ended at {_seconds(recording.run_end_s)}"
            raise _wrong(_WINDOW, self.window, what, "pick a part before that")
        _check_same(result, self._folder, self.file)
        return _write(result, recording, self.file)


def _wanted(window: str | None) -> Wanted:
    from simkv.sim.record.recording import TRACE_ROWS, Wanted

    if window is None:
        return Wanted("from_start", TRACE_ROWS, blocks=False)
    return Wanted("asked", TRACE_ROWS, False, *_bounds(window))


def _bounds(window: str) -> tuple[float, float | None]:
    from simkv.cli.given import parser

    first, colon, last = window.partition(":")
    if not colon or ":" in last:
        raise _wrong(_WINDOW, window, "not two times", "write it like 100s:130s, or 100s: for all that follows")
    parse = parser(_WINDOW, "time")
    begin_s = parse(first) if first.strip() else 0.0
    if not last.strip():
        return begin_s, None
    end_s = parse(last)
    if end_s <= begin_s:
        raise _wrong(_WINDOW, window, "ends before it begins", "write the earlier time first, like 100s:130s")
    return begin_s, end_s


def _check_file(file: Path, folder: Path) -> None:
    """Raise InputError unless a trace may be written as ``file``, in the result's ``folder`` or anywhere else."""
    from simkv.chrometrace import is_trace
    from simkv.results.write import FILES

    try:
        if file.is_dir():
            raise _wrong(_OUT, str(file), "a folder is there", f"name a file, like {file / 'trace.json'}")
        parent = file.parent.resolve()
        if parent == folder.resolve() and file.name in FILES:
            raise _wrong(_OUT, str(file), "the result has a file of that name", "name another, like trace.json")
        if file.exists() and not is_trace(file):
            raise _wrong(_OUT, str(file), "something that is no trace of simkv is there", "name another file")
        if parent != folder.resolve() and not parent.is_dir():
            raise _wrong(_OUT, str(file), "its folder doesn't exist", f"make {file.parent}, or name another file")
        if parent.is_dir() and not os.access(parent, os.W_OK):
            raise _wrong(_OUT, str(file), "nothing can be written into its folder", "name another file")
    except (OSError, RuntimeError, ValueError) as error:
        raise _unwritable(file, error) from error


def _check_same(result: RunResult, folder: Path, file: Path) -> None:
    """Raise InputError where ``file`` belongs into ``folder`` and another run has written its result there since."""
    from simkv.results.write import SUMMARY, summary_text

    try:
        if file.parent.resolve() != folder.resolve():
            return
        same = (folder / SUMMARY).read_bytes() == summary_text(result.summary).encode()
    except (OSError, RuntimeError) as error:
        raise _unwritable(file, error) from error
    if not same:
        what = "another run has written its result into this folder since"
        raise _wrong(_OUT, str(file), what, "give each run a folder of its own with --out")


def _write(result: RunResult, recording: Recording, file: Path) -> str:
    from simkv.chrometrace import write

    about = {name: result.summary[name] for name in ("scenario", "question", "seed", "scenario_hash", "simkv_version")}
    try:
        written = write(recording, result.data, about, file)
    except OSError as error:
        raise _unwritable(file, error) from error
    size = f"{written.events:,} events, {_size(written.size_bytes)}"
    return f"Trace        {file} ({_part(recording)}{size}; open it in ui.perfetto.dev or chrome://tracing)"


def _part(recording: Recording) -> str:
    """Return which part of the run a trace has, and why no more."""
    from simkv.sim.record.recording import TRACE_ROWS

    if recording.whole:
        return "whole run, "
    begin, end, run = (_seconds(at_s) for at_s in (recording.begin_s, recording.end_s, recording.run_end_s))
    if not recording.full:
        return f"{begin} to {end} of {run}, "
    return f"{begin} to {end} of {run}: {TRACE_ROWS:,} rows is the most, {_WINDOW} picks another part; "


def _seconds(time_s: float) -> str:
    return f"{time_s:,.0f} s" if time_s >= 100 else f"{time_s:.3g} s"


def _size(nbytes: int) -> str:
    return f"{nbytes / 1e6:,.1f} MB" if nbytes >= 1e5 else f"{nbytes / 1e3:.1f} kB"


def _wrong(option: str, value: str, what: str, mend: str) -> InputError:
    from simkv import units

    return InputError(Problem(what, mend, path=option, value=units.shown(value)))


def _unwritable(file: Path, error: OSError | RuntimeError | ValueError) -> InputError:
    reason = getattr(error, "strerror", None) or str(error)
    return _wrong(_OUT, str(file), f"can't write there: {reason}", "name another file")
