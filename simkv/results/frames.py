"""Columns of a run as flat tables: Arrow for the files, pandas for people. Heavy imports inside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simkv.results.window import Rows, e2e_s, tpot_s, ttft_s
from simkv.sim.rundata import REQUEST_COLUMNS, RunData

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

ROW_GROUP = 1 << 17

DERIVED = {"ttft_s": ttft_s, "tpot_s": tpot_s, "e2e_s": e2e_s}
"""Columns of ``requests.parquet`` beyond the recorded ones; null where they have no meaning."""


def request_columns(data: RunData, rows: Rows) -> dict[str, NDArray[Any]]:
    """Return recorded and derived columns of the given rows; ``class`` still as an index."""
    columns = {name: data.requests[name][rows] for name in REQUEST_COLUMNS}
    columns["class"] = columns.pop("cls")
    return columns | {name: derive(data, rows) for name, derive in DERIVED.items()}


def request_frame(data: RunData) -> pd.DataFrame:
    """Return one row a request as pandas, ``class`` as a category."""
    import pandas as pd

    columns = request_columns(data, np.arange(data.requests["id"].size))
    names = pd.Index(_class_names(data))
    frame = pd.DataFrame(columns)
    frame["class"] = pd.Categorical.from_codes(columns["class"], names)
    return frame


def request_tables(data: RunData) -> Iterator[pa.Table]:
    """Yield Arrow tables of at most ``ROW_GROUP`` requests; at least one, perhaps empty."""
    import pyarrow as pa

    total = data.requests["id"].size
    names = _text_array(_class_names(data))
    for begin in range(0, max(total, 1), ROW_GROUP):
        columns = request_columns(data, np.arange(begin, min(begin + ROW_GROUP, total)))
        arrays = {name: arrow_array(values) for name, values in columns.items()}
        codes = arrow_array(columns["class"].astype("i4"))
        arrays["class"] = pa.DictionaryArray.from_arrays(codes, names)
        yield pa.Table.from_arrays(list(arrays.values()), names=list(arrays))


def timeseries_table(data: RunData) -> pa.Table:
    """Return the samples as one Arrow table."""
    import pyarrow as pa

    arrays = [arrow_array(np.asarray(values)) for values in data.timeseries.values()]
    return pa.Table.from_arrays(arrays, names=list(data.timeseries))


def arrow_array(values: NDArray[Any]) -> pa.Array:
    """Return an Arrow array over ``values`` without a copy and without pandas; nan becomes null."""
    import pyarrow as pa

    values = np.ascontiguousarray(values)
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])
    valid = None
    if values.dtype.kind == "f":
        known = ~np.isnan(values)
        valid = None if known.all() else _bits(known)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [valid, pa.py_buffer(values)])


def _text_array(texts: list[str]) -> pa.Array:
    """Return an Arrow string array; ``pa.array`` would import pandas to look at its argument."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype="i4")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def _bits(flags: NDArray[np.bool_]) -> pa.Buffer:
    import pyarrow as pa

    return pa.py_buffer(np.packbits(flags, bitorder="little").tobytes())


def _class_names(data: RunData) -> list[str]:
    return list(data.class_names) or [""]
