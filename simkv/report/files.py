"""Files of result folders read with distrust: whatever is wrong with one is an InputError that names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkv.errors import InputError, Problem

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 256 << 20
"""Of a file that is read at once."""
MOST_ROWS = 20_000_000
"""Of a table."""
AGAIN = "move it away, and run again what made this folder"


def read_bytes(path: Path) -> bytes:
    """Return what is in ``path``; raises InputError where that can't be read, or is too much."""
    try:
        if not path.is_file():
            raise _no_file(path)
        if (size := path.stat().st_size) > MOST_BYTES:
            raise damaged(path, f"it has {size / 1e6:,.0f} MB, at most {MOST_BYTES / 1e6:,.0f} are read")
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error


def read_text(path: Path) -> str:
    """Return the text in ``path``; raises InputError where there is none."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise damaged(path, f"it is no text: byte {error.start} is not UTF-8") from error


def read_json(path: Path) -> Mapping[str, Any]:
    """Return the mapping in ``path``; raises InputError for anything else, numbers that are none among it."""
    import orjson

    content = read_bytes(path)
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        problem = Problem(f"it is no JSON: {error.msg}", AGAIN, str(path), error.lineno)
        raise InputError(problem) from error
    if not isinstance(found, dict):
        raise damaged(path, f"it has {_kind(found)} where a mapping is expected")
    return found


def read_table(path: Path, needed: Sequence[str]) -> pd.DataFrame:
    """Return the parquet table in ``path``, numbers in every column of ``needed``; raises InputError for others."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise _no_file(path)
    try:
        with pq.ParquetFile(path) as file:
            _check_columns(path, file, needed)
            found: pd.DataFrame = file.read().to_pandas()
            return found
    except OSError as error:
        if error.errno:
            raise unreadable(path, error) from error
        raise damaged(path, "it is damaged, or cut off") from error
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise damaged(path, "it is no parquet file, or cut off") from error


def _check_columns(path: Path, file: Any, needed: Sequence[str]) -> None:
    import pyarrow.types as kinds

    rows = file.metadata.num_rows
    if rows > MOST_ROWS:
        raise damaged(path, f"it has {rows:,} rows, at most {MOST_ROWS:,} are read")
    schema = file.schema_arrow
    missing = [name for name in needed if name not in schema.names]
    if missing:
        raise damaged(path, f"it has no column {missing[0]}, it has {first_few(schema.names)}")
    for name in needed:
        kind = schema.field(name).type
        if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
            raise damaged(path, f"column {name} has {kind} where numbers are expected")


def damaged(path: Path, what: str, key: str = "") -> InputError:
    """Return the error that ``path`` isn't what simkv wrote."""
    return InputError(Problem(what, AGAIN, str(path), path=key))


def _no_file(path: Path) -> InputError:
    if path.exists():
        return damaged(path, "that is no file")
    return InputError(Problem("no file is there, and a report needs it", "run again what made this folder", str(path)))


def unreadable(path: Path, error: OSError) -> InputError:
    """Return the error that the system doesn't let ``path`` be read."""
    return InputError(Problem(f"it can't be read: {error.strerror or error}", "let it be read", str(path)))


def _kind(value: object) -> str:
    names = {list: "a list", str: "a text", bool: "a truth value", type(None): "nothing"}
    return names.get(type(value), "a number")


def first_few(names: Sequence[str], most: int = 4) -> str:
    """``a, b, c, d, ...``."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") if names else "none"
