"""Column buffers for what a run leaves behind; numpy only where it is over."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkv.sim.rundata import REQUEST_COLUMNS, STEP_COLUMNS, TIMESERIES_COLUMNS

FLUSH_ROWS = 4096

_CODES = {"i8": "q", "i4": "i", "i2": "h", "f8": "d", "?": "b"}


class Columns:
    """Rows appended as tuples, kept as typed columns that grow in place."""

    def __init__(self, dtypes: dict[str, str]) -> None:
        self.dtypes = dtypes
        self.rows: list[tuple[Any, ...]] = []
        self._columns: list[array[Any]] = [array(_CODES[kind]) for kind in dtypes.values()]

    def append(self, row: tuple[Any, ...]) -> None:
        """Add one row."""
        rows = self.rows
        rows.append(row)
        if len(rows) >= FLUSH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Move the buffered rows into the columns."""
        if self.rows:
            for column, values in zip(self._columns, zip(*self.rows, strict=True), strict=True):
                column.extend(values)
            self.rows.clear()

    def total(self, name: str) -> int:
        """Return the sum of a column of whole numbers so far."""
        self.flush()
        return int(sum(self._columns[list(self.dtypes).index(name)]))

    def finish(self) -> dict[str, NDArray[np.generic]]:
        """Return the columns as arrays over the same memory; nothing may be appended afterwards."""
        self.flush()
        named = zip(self.dtypes.items(), self._columns, strict=True)
        self._columns = []  # the arrays own the memory from here on
        return {name: np.frombuffer(column, dtype=kind) for (name, kind), column in named}


class Recorder:
    """Everything a run writes down as it goes."""

    def __init__(self) -> None:
        self.requests = Columns(REQUEST_COLUMNS)
        self.steps = Columns(STEP_COLUMNS)
        self.gaps = Columns({"end_s": "f8", "gap_s": "f8"})
        self.samples = Columns(dict.fromkeys(TIMESERIES_COLUMNS, "f8"))
        self.sojourn_s = 0.0
        self.step_row = self.steps.rows.append
        """Adds a row of ``steps`` without a look at the buffer; requests see to that."""

    def request(self, row: tuple[Any, ...], sojourn_s: float) -> None:
        """Add the row of a request that ended after ``sojourn_s`` in the system."""
        self.requests.append(row)
        self.sojourn_s += sojourn_s
        if len(self.steps.rows) >= FLUSH_ROWS:
            self.steps.flush()
