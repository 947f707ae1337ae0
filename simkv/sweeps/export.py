"""The points of a sweep as flat files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkv.files import Content, replace_files
from simkv.sweeps.result import SweepResult
from simkv.sweeps.rows import mean_rows

if TYPE_CHECKING:
    import pandas as pd

CSV = "points.csv"
PARQUET = "points.parquet"
MEANS = "means.csv"


def write(result: SweepResult, folder: Path) -> tuple[str, ...]:
    """Write the points as CSV and parquet, and with several seeds the means; return their names.

    Raises InputError where they can't be written.
    """
    table = result.points
    files: dict[str, Content] = {
        CSV: lambda path: table.to_csv(path, index=False, lineterminator="\n"),
        PARQUET: lambda path: _storable(table).to_parquet(path, index=False, compression="zstd"),
    }
    if any(len(setting.ended) > 1 for setting in result.settings):
        files[MEANS] = lambda path: mean_rows(result.settings).to_csv(path, index=False, lineterminator="\n")
    replace_files(folder, files, gone=[MEANS] if MEANS not in files else [])
    return tuple(files)


def _storable(table: pd.DataFrame) -> pd.DataFrame:
    """Return ``table`` with a column of several kinds of values (numbers here, text there) as text."""
    mixed = {name: "string" for name in table if _mixed(table[name])}
    return table.astype(mixed)


def _mixed(column: pd.Series[Any]) -> bool:
    kinds = {type(value) for value in column.dropna()} if column.dtype == object else set()
    return len(kinds) > 1 and not kinds <= {int, float}
