"""The points of a sweep as flat files, each whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkv.errors import InputError, Problem
from simkv.sweeps.result import SweepResult
from simkv.sweeps.rows import mean_rows

if TYPE_CHECKING:
    import pandas as pd

CSV = "points.csv"
PARQUET = "points.parquet"
MEANS = "means.csv"


def write(result: SweepResult, folder: Path) -> tuple[str, ...]:
    """Write the points as CSV and parquet, and with several seeds the means; each file whole or not at all.

    Returns their names. Raises InputError where they can't be written.
    """
    table = result.points
    files: dict[str, Callable[[Path], object]] = {
        CSV: lambda path: table.to_csv(path, index=False, lineterminator="\n"),
        PARQUET: lambda path: _storable(table).to_parquet(path, index=False, compression="zstd"),
    }
    if any(len(setting.ended) > 1 for setting in result.settings):
        files[MEANS] = lambda path: mean_rows(result.settings).to_csv(path, index=False, lineterminator="\n")
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


def replace_bytes(path: Path, content: bytes) -> None:
    """Have ``path`` hold ``content``, whole or not at all; raises InputError where that fails."""
    replace_file(path, lambda draft: draft.write_bytes(content))


def replace_file(path: Path, into: Callable[[Path], object]) -> None:
    """Have ``into`` write a file beside ``path`` that then takes its name; raises InputError where that fails."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        into(draft)
        draft.replace(path)
    except OSError as error:
        raise InputError(Problem(f"can't be written: {error.strerror or error}", file=str(path))) from error
    finally:
        with contextlib.suppress(OSError):  # nothing can be written there: nothing lies there
            draft.unlink(missing_ok=True)
