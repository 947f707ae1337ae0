"""Points as rows of a data frame: one a point, one a combination of values; one column a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from simkv.sweeps.leaves import HEADLINE, leaves
from simkv.sweeps.point import Ended
from simkv.sweeps.settings import Setting

if TYPE_CHECKING:
    import pandas as pd

PARAMS = "params."
"""Begins the column of an axis: ``params.beta`` is what was set, ``beta`` what was found."""
_STATE = ("seed", "status", "attempts", "error")


def point_rows(axes: Sequence[str], metrics: Sequence[str], ended: Sequence[Ended]) -> pd.DataFrame:
    """Return one row a point: ``params.*``, ``seed``, ``status``, ``attempts``, ``error``, then its metrics."""
    import pandas as pd

    params = [f"{PARAMS}{axis}" for axis in axes]
    names = [*params, *_STATE, *(name for name in metrics if name not in _STATE)]
    table = pd.DataFrame(list(_rows(ended)), columns=names)
    for name in params:
        if any(isinstance(value, str) for value in table[name]):
            table[name] = table[name].astype(str)
    return table


def _rows(ended: Sequence[Ended]) -> Iterator[dict[str, Any]]:
    for one in ended:
        row: dict[str, Any] = dict(leaves(one.summary)) if one.summary is not None else {}
        row |= {f"{PARAMS}{name}": value for name, value in one.values.items()}
        error = one.failure.message if one.failure is not None else None
        yield row | dict(zip(_STATE, (one.point.seed, one.status, one.attempts, error), strict=True))


def mean_rows(settings: Sequence[Setting]) -> pd.DataFrame:
    """Return one row a combination of values: mean and 95 % interval over its seeds of the main metrics."""
    import pandas as pd

    shown = [name for name in HEADLINE if any(setting.mean(name) for setting in settings)]
    return pd.DataFrame([_means(setting, shown) for setting in settings])


def _means(setting: Setting, metrics: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {f"{PARAMS}{name}": value for name, value in setting.ended[0].values.items()}
    row["seeds"] = len(setting.found)
    for name in metrics:
        mean = setting.mean(name)
        half = mean.half if mean is not None else None
        row[f"{name}.mean"] = mean.value if mean is not None else None
        row[f"{name}.low"] = mean.value - half if mean is not None and half is not None else None
        row[f"{name}.high"] = mean.value + half if mean is not None and half is not None else None
    return row
