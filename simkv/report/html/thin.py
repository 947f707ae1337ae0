"""What a page leaves out where it would be too large to be sent: most of its size for least of what it says."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from simkv.report.document import Table

MOST_BYTES = 4_900_000
LIMIT = "5 MB"


@dataclass(frozen=True, slots=True)
class Thin:
    """What is left out; ``words``: how the page says it."""

    words: str = ""
    picture_bytes: float = inf
    """Figures with more become dots."""
    csv_bytes: float = inf
    """Data with more has no link."""
    rows: int | None = None
    """Tables with more are cut."""
    widgets: bool = True
    pictures: bool = True

    def shorten(self, table: Table) -> Shortened:
        """Return the rows of ``table`` that are shown."""
        if self.rows is None or len(table.rows) <= self.rows:
            return Shortened(table)
        return Shortened(table, self.rows)


class Shortened:
    """Rows of a table, and what is said of those that are left out."""

    def __init__(self, table: Table, most: int | None = None) -> None:
        self.rows = table.rows if most is None else table.rows[:most]
        self.left_out = "" if most is None else f"and {len(table.rows) - most:,} rows more"


_DOTS = "figures with very many lines are drawn as dots"
_CSV = "large data isn't in it (`--format md` writes all of it)"
STEPS = (
    Thin(),
    Thin(f"{_DOTS}.", picture_bytes=150_000),
    Thin(f"{_DOTS}, {_CSV}.", picture_bytes=100_000, csv_bytes=30_000),
    Thin(f"{_DOTS}, {_CSV}, tables end after 200 rows.", 100_000, 30_000, 200),
    Thin(f"{_DOTS}, {_CSV}, tables end after 100 rows, and nothing moves.", 100_000, 5_000, 100, widgets=False),
    Thin(f"figures are told in words, {_CSV}, tables end after 50 rows, and nothing moves.",
         csv_bytes=2_000, rows=50, widgets=False, pictures=False),
)  # fmt: skip
"""Taken one after another until the page is small enough."""
