"""Metrics of a run whose name alone tells that no run has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from simkv.errors import InputError, Problem
from simkv.results.metrics import METRICS, Metric
from simkv.validation.asks.metrics import LANES, MADE, OF_ALL, SHARES, SOME, TIMES

_FREE = ("classes", "baselines", "closed_form", "slo_attainment", "kv_usage", "concurrency")
"""Below these the run decides what there is."""
_NAMES = (
    *MADE,
    OF_ALL,
    *(f"{lane}.bytes_per_busy_s" for lane in LANES),
    *(f"turn.0.{figure}" for figure in (*TIMES, *SHARES)),
)


def check_names(names: Iterable[str]) -> None:
    """Raise InputError for every name that is no metric's, with the nearest ones that are."""
    wrong = [name for name in names if not _known(name)]
    if wrong:
        raise InputError([Problem("is no metric", _mend(name), path="metric", value=name) for name in wrong])


def _known(name: str) -> bool:
    some = SOME.fullmatch(name)
    if some is not None:
        return some[5].partition(".")[0] in (*TIMES, *SHARES)
    head, _, rest = name.partition(".")
    if name in _NAMES or head in _FREE:
        return True
    return head in METRICS and rest.partition(".")[0] in _below(METRICS[head])


def _below(metric: Metric) -> tuple[str, ...]:
    """Return what a metric has below it; ``("",)``: it is a number itself."""
    return tuple(metric.shape.split(", ")) if metric.shape else ("",)


def _mend(name: str) -> str:
    parts = [] if name not in METRICS else [f"{name}.{part}" for part in _below(METRICS[name])]
    if parts:
        return f"it has {', '.join(parts)}"
    near = get_close_matches(name, _valid(), 3) or [one for one in _valid() if _words(name) & _words(one)][:5]
    guess = f"did you mean {', '.join(near)}? " if near else ""
    return f"{guess}docs/validation-cases.md and docs/results.md list them"


def _valid() -> list[str]:
    kept = [metric for metric in METRICS.values() if metric.kind != "identity" and metric.name not in _FREE]
    return [*(f"{one.name}.{part}".rstrip(".") for one in kept for part in _below(one)), *_NAMES]


def _words(name: str) -> set[str]:
    return set(re.split(r"[._]", name)) - {"s", "mean", "per"}
