"""The requests that a run's latencies are over: finished, by arrival, without those of the warm-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simkv.report.folders import RunFolder

if TYPE_CHECKING:
    import pandas as pd


def finished(folder: RunFolder) -> pd.DataFrame:
    """Return the finished requests in order of arrival."""
    frame = folder.requests
    return frame[~frame["rejected"].astype(bool)].sort_values("arrival_s", kind="stable")


def window(folder: RunFolder) -> pd.DataFrame:
    """Return the finished requests that arrived after the warm-up, in order of arrival."""
    served = finished(folder)
    warm_up_s = folder.summary["warm_up_s"]
    if not warm_up_s or not len(served):
        return served
    arrival = served["arrival_s"].to_numpy()
    return served.iloc[int(np.searchsorted(arrival, arrival[0] + warm_up_s)) :]


def first_arrival_s(folder: RunFolder) -> float:
    """Return when the first request arrived; 0 for none."""
    arrival = folder.requests["arrival_s"]
    return float(arrival.min()) if len(arrival) else 0.0
