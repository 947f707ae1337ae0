"""The points of a sweep as flat files: one row a point, one column a value."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkv.errors import InputError, Problem
from simkv.sweep.leaves import HEADLINE, leaves
from simkv.sweep.result import SweepResult

if TYPE_CHECKING:
    import pandas as pd

CSV = "points.csv"
PARQUET = "points.parquet"
MEANS = "means.csv"
PARAMS = "params."
"""Begins the column of an axis: ``params.beta`` is what was set, ``beta`` what was found."""
_STATE = ("seed", "status", "attempts", "error")


def frame(result: SweepResult) -> pd.DataFrame:
    """Return one row a point: ``params.*``, ``seed``, ``status``, ``attempts``, ``error``, then its metrics."""
    import pandas as pd

    names = [*(f"{PARAMS}{axis}" for axis in result.axes), *_STATE, *(m for m in result.metrics if m not in _STATE)]
    table = pd.DataFrame(list(_rows(result)), columns=names)
    for axis in result.axes:
        if table[f"{PARAMS}{axis}"].map(lambda value: isinstance(value, str)).any():
            table[f"{PARAMS}{axis}"] = table[f"{PARAMS}{axis}"].astype(str)
    return table


def _rows(result: SweepResult) -> Iterator[dict[str, Any]]:
    for one in result.ended:
        row: dict[str, Any] = dict(leaves(one.summary)) if one.summary is not None else {}
        row |= {f"{PARAMS}{name}": value for name, value in one.values.items()}
        error = one.failure.message if one.failure is not None else None
        yield row | dict(zip(_STATE, (one.point.seed, one.status, one.attempts, error), strict=True))


def means(result: SweepResult) -> pd.DataFrame:
    """Return one row a combination of values: mean and 95 % interval over its seeds of the main metrics."""
    import pandas as pd

    shown = [name for name in HEADLINE if any(setting.mean(name) for setting in result.settings)]
    rows = []
    for setting in result.settings:
        row: dict[str, Any] = {f"{PARAMS}{name}": value for name, value in setting.ended[0].values.items()}
        row["seeds"] = len(setting.found)
        for name in shown:
            mean = setting.mean(name)
            half = mean.half if mean is not None else None
            row[f"{name}.mean"] = mean.value if mean is not None else None
            row[f"{name}.low"] = mean.value - half if mean is not None and half is not None else None
            row[f"{name}.high"] = mean.value + half if mean is not None and half is not None else None
        rows.append(row)
    return pd.DataFrame(rows)


def write(result: SweepResult, folder: Path) -> tuple[str, ...]:
    """Write the points as CSV and parquet, and with several seeds the means; each file whole or not at all.

    Returns their names. Raises InputError where they can't be written.
    """
    table = frame(result)
    files: dict[str, Callable[[Path], object]] = {
        CSV: lambda path: table.to_csv(path, index=False, lineterminator="\n"),
        PARQUET: lambda path: _storable(table).to_parquet(path, index=False, compression="zstd"),
    }
    if any(len(setting.ended) > 1 for setting in result.settings):
        files[MEANS] = lambda path: means(result).to_csv(path, index=False, lineterminator="\n")
    for name, into in files.items():
        replace_file(folder / name, into)
    return tuple(files)


def _storable(table: pd.DataFrame) -> pd.DataFrame:
    """Return ``table`` with a column of several kinds of values (numbers here, text there) as text."""
    mixed = {name: "string" for name in table if _mixed(table[name])}
    return table.astype(mixed)


def _mixed(column: pd.Series[Any]) -> bool:
    kinds = {type(value) for value in column.dropna()} if column.dtype == object else set()
    return len(kinds) > 1 and not kinds <= {int, float}


def replace_file(path: Path, into: Callable[[Path], object]) -> None:
    """Have ``into`` write a file beside ``path`` that then takes its name; raises InputError where that fails."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        into(draft)
        draft.replace(path)
    except OSError as error:
        raise InputError(Problem(f"can't be written: {error.strerror or error}", file=str(path))) from error
    finally:
        draft.unlink(missing_ok=True)
