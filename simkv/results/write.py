"""The result folder: written beside its place, then put there, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from simkv.errors import InputError, Problem
from simkv.files import alone_in, reason, replace_folder
from simkv.results.frames import request_tables, timeseries_table
from simkv.results.recorded import RECORDING, to_json
from simkv.results.result import RunResult

SUMMARY = "summary.json"
REQUESTS = "requests.parquet"
TIMESERIES = "timeseries.parquet"
RESOLVED = "scenario.resolved.yaml"
FILES = (SUMMARY, REQUESTS, TIMESERIES, RESOLVED, RECORDING)
"""What a result folder has."""

_SHOWN = 5
_MOST_BYTES = 64 << 20


def summary_text(summary: Mapping[str, object]) -> str:
    """Return ``summary.json``: two blanks a level, keys in the summary's order, no nan or inf."""
    return json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def check_out(out_dir: Path, name: str, owner: Callable[[Path], str | None] | None = None) -> Path:
    """Return where ``out_dir`` really is if a result of scenario ``name`` may be written there.

    ``owner`` says which scenario what lies in a folder is of, None: it is nothing of simkv's (absent:
    that of a run). Changes nothing. Raises :class:`InputError` where something else is there.
    """
    try:
        place = out_dir.resolve()
        if not place.exists():
            return place
        if not place.is_dir():
            raise _refusal(out_dir, "a file is there")
        if owner is None and Path.cwd().is_relative_to(place):
            raise _refusal(out_dir, "the working directory is there, and a result takes a folder's place")
        with alone_in(place.parent):
            _check_folder(out_dir, place, name, owner or _owner)
    except (OSError, RuntimeError) as error:  # RuntimeError: a circle of links
        raise _failure(out_dir, error) from error
    return place


def write_result(result: RunResult, out_dir: Path) -> None:
    """Write ``result`` as folder ``out_dir``; an older result of the same scenario is replaced whole.

    Raises :class:`InputError` where anything else is there, or where it can't be written; then
    nothing has changed.
    """
    place = check_out(out_dir, result.name)
    try:
        replace_folder(
            place, lambda draft: _fill(result, draft), lambda: _check_folder(out_dir, place, result.name, _owner)
        )
    except OSError as error:
        raise _failure(out_dir, error) from error


def _fill(result: RunResult, folder: Path) -> None:
    import pyarrow.parquet as pq

    options = {"compression": "zstd", "compression_level": 1, "use_dictionary": ["class"]}
    tables = request_tables(result.data)
    first = next(tables)
    with (folder / REQUESTS).open("wb") as file, pq.ParquetWriter(file, first.schema, **options) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)
    with (folder / TIMESERIES).open("wb") as file:
        pq.write_table(timeseries_table(result.data), file, compression="zstd")
    for recording in result.data.recordings:
        if recording.rule == "latest":
            (folder / RECORDING).write_bytes(to_json(recording))
    (folder / RESOLVED).write_text(result.resolved, encoding="utf-8")
    (folder / SUMMARY).write_text(summary_text(result.summary), encoding="utf-8")


def _check_folder(shown: Path, place: Path, name: str, owner_of: Callable[[Path], str | None]) -> None:
    entries = sorted(entry.name for entry in place.iterdir()) if place.exists() else []
    if not entries:
        return
    owner = owner_of(place)
    if owner is None:
        listed = ", ".join(entries[:_SHOWN]) + (", ..." if len(entries) > _SHOWN else "")
        raise _refusal(shown, f"something that is no result of this command is there ({listed})")
    if owner != name:
        raise _refusal(shown, f"a result of scenario '{owner}' is there, and this one is '{name}'")


def _owner(place: Path) -> str | None:
    """Return the scenario of the run whose result lies in ``place``; None: there is none."""
    file = place / SUMMARY
    try:
        if not file.is_file() or file.stat().st_size > _MOST_BYTES:
            return None
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or "schema_version" not in found:
        return None
    owner = found.get("scenario")
    return owner if isinstance(owner, str) else None


def _refusal(out_dir: Path, what: str) -> InputError:
    mend = "pick another folder with --out, or move it away"
    return InputError(Problem(what, mend, path="--out", value=str(out_dir)))


def _failure(out_dir: Path, error: OSError | RuntimeError) -> InputError:
    what = f"can't write there: {reason(error)}"
    return InputError(Problem(what, "pick another folder with --out", path="--out", value=str(out_dir)))
