"""Figures and tables as CSV, with exact values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from simkv.report.document import Data, Figure, Table

_FORMULA = ("=", "+", "-", "@")


def csv_of(block: Figure | Table) -> str:
    """Return what is behind ``block`` as CSV, its numbers so that they read back as they were."""
    if isinstance(block, Table):
        return _text(block.heads, ([cell.exact for cell in row] for row in block.rows))
    data: Data = block.data
    return _text(data.heads, data.rows)


def _text(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_cell(head) for head in heads])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Return ``value`` as it is written; a text that a spreadsheet would compute is marked as a text."""
    if hasattr(value, "item"):
        value = value.item()  # numpy's numbers
    if isinstance(value, float) and value != value:
        return ""
    if not isinstance(value, str):
        return value
    text = value.encode("utf-8", "replace").decode().replace("\0", "")
    return f"'{text}" if text[:1] in _FORMULA and not _is_number(text) and len(text) > 1 else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
