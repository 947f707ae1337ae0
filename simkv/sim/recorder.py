"""Column buffers for what a run leaves behind; numpy only where a buffer is flushed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkv.sim.rundata import REQUEST_COLUMNS, STEP_COLUMNS, TIMESERIES_COLUMNS

FLUSH_ROWS = 8192


class Columns:
    """Rows appended as tuples, kept as typed numpy columns."""

    def __init__(self, dtypes: dict[str, str]) -> None:
        self.dtypes = dtypes
        self.rows: list[tuple[Any, ...]] = []
        self._chunks: list[list[NDArray[np.generic]]] = []

    def append(self, row: tuple[Any, ...]) -> None:
        """Add one row."""
        rows = self.rows
        rows.append(row)
        if len(rows) >= FLUSH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Turn the buffered rows into arrays."""
        if not self.rows:
            return
        columns = zip(*self.rows, strict=True)
        kinds = self.dtypes.values()
        self._chunks.append([np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)])
        self.rows.clear()

    def finish(self) -> dict[str, NDArray[np.generic]]:
        """Return whole columns; the buffers are empty afterwards."""
        self.flush()
        chunks, self._chunks = self._chunks, []
        out: dict[str, NDArray[np.generic]] = {}
        for index, (name, kind) in enumerate(self.dtypes.items()):
            parts = [chunk[index] for chunk in chunks]
            out[name] = np.concatenate(parts) if parts else np.empty(0, dtype=kind)
            for chunk in chunks:
                chunk[index] = np.empty(0)
        return out


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
