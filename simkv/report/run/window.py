"""The requests that a run's latencies are over: finished, by arrival, without those of the warm-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simkv.report.folders import RunFolder

if TYPE_CHECKING:
    import pandas as pd

Rows = NDArray[np.intp]


def finished(folder: RunFolder) -> pd.DataFrame:
    """Return the finished requests in order of arrival."""
    return folder.requests.iloc[_finished_rows(folder)]


def window(folder: RunFolder) -> pd.DataFrame:
    """Return the finished requests that arrived after the warm-up, in order of arrival."""
    return folder.requests.iloc[window_rows(folder)]


def window_rows(folder: RunFolder) -> Rows:
    """Return the rows of the finished requests that arrived after the warm-up, in order of arrival."""
    rows = _finished_rows(folder)
    warm_up_s = folder.summary["warm_up_s"]
    if not warm_up_s or not len(rows):
        return rows
    arrival = folder.requests["arrival_s"].to_numpy()[rows]
    return rows[np.searchsorted(arrival, arrival[0] + warm_up_s) :]


def _finished_rows(folder: RunFolder) -> Rows:
    frame = folder.requests
    rows = np.flatnonzero(~frame["rejected"].to_numpy(dtype=bool))
    return rows[np.argsort(frame["arrival_s"].to_numpy()[rows], kind="stable")]


def first_arrival_s(folder: RunFolder) -> float:
    """Return when the first request arrived; 0 for none."""
    arrival = folder.requests["arrival_s"]
    return float(arrival.min()) if len(arrival) else 0.0
