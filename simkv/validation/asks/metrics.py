"""Numbers of a run by name: a summary's by their dotted names, and some that are made of its rows.

``turn.N.F``, ``turns.A-B.F``, ``request.N.F`` and ``requests.A-B.F`` are figures F of some of its requests: those of
turn N of their sessions, of turns A to B, the N-th to arrive, or those from the A-th to the B-th, each counted from 0.
F is one of :data:`TIMES`, a mean unless ``.p50``, ``.p99``, ``.max`` or the like follows, or one of :data:`SHARES`.
``classes.NAME.total_tokens_per_s`` is what a class (a stage of the load) got through between its first arrival and its
last end.

``LANE.bytes_per_busy_s`` is the rate of ``h2d``, ``d2h``, ``ssd_read`` or ``ssd_write`` while it carries something, and
``ttft_s.mean_of_all`` a mean that counts refused requests with 0, as some clients do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkv.errors import InputError, Problem
from simkv.results.metrics import METRICS
from simkv.results.result import RunResult
from simkv.validation.asks.found import NothingError

Rows = dict[str, NDArray[Any]]
MADE: dict[str, Callable[[dict[str, Any]], float]] = {
    "total_tokens_per_s": lambda s: (s["prompt_tokens"] + s["output_tokens"]) / s["makespan_s"],
    "prompt_tokens_per_s": lambda s: s["prompt_tokens"] / s["makespan_s"],
    "output_tokens_per_makespan_s": lambda s: s["output_tokens"] / s["makespan_s"],
    "hit_rate.total": lambda s: 1 - s["hit_rate"]["miss"],
    "decode_s": lambda s: s["e2e_s"]["mean"] - s["ttft_s"]["mean"],
    "decode_tokens_per_s": lambda s: (
        (s["output_tokens"] - s["requests"]["finished"]) / (s["e2e_s"]["mean"] - s["ttft_s"]["mean"])
    ),
}
"""``hit_rate.total``: of all tiers together; ``decode_*``: of one static batch, from its first output token on."""
OF_ALL = "ttft_s.mean_of_all"
LANES = ("h2d", "d2h", "ssd_read", "ssd_write")
TIMES: dict[str, Callable[[Rows], NDArray[Any]]] = {
    "ttft_s": lambda rows: rows["first_token_s"] - rows["arrival_s"],
    "e2e_s": lambda rows: rows["finish_s"] - rows["arrival_s"],
    "queue_s": lambda rows: rows["queue_time_s"],
    "tpot_s": lambda rows: _tpot_s(rows),
}
SHARES: dict[str, tuple[str, ...]] = {
    "hit_rate": ("hit_vram_tokens", "hit_dram_tokens", "hit_ssd_tokens"),
    "hit_rate_vram": ("hit_vram_tokens",),
    "hit_rate_dram": ("hit_dram_tokens",),
    "hit_rate_ssd": ("hit_ssd_tokens",),
}
"""Columns whose sum is taken as a share of the prompts' tokens."""
SOME = re.compile(r"(turn|request)(?:\.(\d{1,9})|s\.(\d{1,9})-(\d{1,9}))\.([a-z0-9_.]+)")
"""Of which requests, the first and the last, and what of them."""
_CLASS_RATE = re.compile(r"classes\.([A-Za-z0-9._-]+)\.total_tokens_per_s")
_QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)")


def metric_of(result: RunResult, name: str) -> float:
    """Return a number of ``result``.

    Raises InputError for a name that the summary hasn't got, or whose value is no number, NothingError where it has a
    value in other runs and none in this.
    """
    if name in MADE:
        return _made(result, name)
    if name == OF_ALL:
        return _ttft_of_all(result)
    lane = name.removesuffix(".bytes_per_busy_s")
    if lane in LANES and lane != name:
        return _lane_rate(result, lane)
    rate = _CLASS_RATE.fullmatch(name)
    if rate is not None:
        return _tokens_per_s(result, name, rate[1])
    some = SOME.fullmatch(name)
    return _of_rows(result, name, *_chosen(result, some)) if some is not None else _of_summary(result, name)


def _made(result: RunResult, name: str) -> float:
    if not result.summary["requests"]["finished"]:
        raise NothingError(_unserved(result))
    try:
        return MADE[name](result.summary)
    except ZeroDivisionError:
        raise NothingError(f"this run has no {name}: nothing takes time in it") from None


def _of_summary(result: RunResult, name: str) -> float:
    value: Any = result.summary
    for part in name.split("."):
        if value is not None and value is not result.summary and part not in (value if isinstance(value, dict) else ()):
            there = ", ".join(map(str, value)) if isinstance(value, dict) else f"a number before {part}"
            raise NothingError(f"this run has no {name}; it has {there or 'nothing'}")
        value = value.get(part) if isinstance(value, dict) else None
    head = METRICS.get(name.partition(".")[0])
    if value is None and head is not None:
        served = result.summary["requests"]["finished"]
        needs = f", it needs {head.needs}" if head.needs else ""
        raise NothingError(f"this run has no {name}{needs}" if served else _unserved(result))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unknown(name, "docs/results.md lists the numbers of a run")
    return float(value)


def _tokens_per_s(result: RunResult, name: str, cls: str) -> float:
    """Return prompt and output tokens of a class for each second from its first arrival to its last end."""
    rows: Rows = dict(result.data.requests)
    names = result.data.class_names
    chosen = (rows["cls"] == (names.index(cls) if cls in names else -1)) & ~rows["rejected"].astype(bool)
    if not chosen.any():
        raise NothingError(f"no request that was served is of class {cls!r}")
    tokens = rows["prompt_tokens"][chosen].sum() + rows["output_tokens"][chosen].sum()
    return float(tokens / (rows["finish_s"][chosen].max() - rows["arrival_s"][chosen].min()))


def _ttft_of_all(result: RunResult) -> float:
    """Return the mean TTFT where a request that was refused counts with 0, as some clients book it."""
    rows: Rows = dict(result.data.requests)
    served = ~rows["rejected"].astype(bool)
    return float(TIMES["ttft_s"](rows)[served].sum() / len(served))


def _lane_rate(result: RunResult, lane: str) -> float:
    """Return the bytes of a lane for each second that it carried something."""
    busy_s = result.data.busy_s[lane]
    if not busy_s:
        raise NothingError(f"nothing went over {lane}")
    return result.data.bytes[lane] / busy_s


def _chosen(result: RunResult, some: re.Match[str]) -> tuple[Rows, str]:
    """Return the rows that a metric is about, refused requests left out, and what it wants of them."""
    rows: Rows = dict(result.data.requests)
    by, number, first, last, figure = some.groups()
    least, most = int(first or number), int(last or number)
    place = rows["turn"] if by == "turn" else _order(rows)
    if by == "request" and most >= len(place):
        raise NothingError(f"there is no request {most}: {len(place)} arrived, counted from 0")
    chosen = (place >= least) & (place <= most)
    chosen &= ~rows["rejected"].astype(bool)
    return {key: column[chosen] for key, column in rows.items()}, figure


def _order(rows: Rows) -> NDArray[Any]:
    """Return how many requests arrived before each."""
    order = np.empty(len(rows["id"]), dtype=np.int64)
    order[np.lexsort((rows["id"], rows["arrival_s"]))] = np.arange(len(order))
    return order


def _of_rows(result: RunResult, name: str, rows: Rows, figure: str) -> float:
    if not len(rows["id"]):
        raise NothingError(f"no request that was served is of {name.partition('.')[0]} {name.split('.')[1]}")
    if figure in SHARES:
        return float(sum(rows[column].sum() for column in SHARES[figure]) / rows["prompt_tokens"].sum())
    time, _, statistic = figure.partition(".")
    if time not in TIMES:
        raise _unknown(name, f"its figure is one of {_words((*TIMES, *SHARES))}")
    values = TIMES[time](rows)
    if not len(values):
        raise NothingError(f"this run has no {name}, it needs more than one output token")
    if statistic in ("", "mean"):
        return float(values.mean())
    if statistic == "max":
        return float(values.max())
    quantile = _QUANTILE.fullmatch(statistic)
    if quantile is None:
        raise _unknown(name, "its statistic is mean, max, or a quantile such as p50 or p99")
    return float(np.quantile(values, float(quantile[1]) / 100))


def _tpot_s(rows: Rows) -> NDArray[Any]:
    """Return the seconds an output token after the first, of requests that have more than one."""
    several = rows["output_tokens"] > 1
    return ((rows["finish_s"] - rows["first_token_s"])[several]) / (rows["output_tokens"][several] - 1)  # type: ignore[no-any-return]


def _unserved(result: RunResult) -> str:
    """Return why nobody was served, as the run's own warnings have it."""
    told = [one["message"].partition(";")[0] for one in result.summary["warnings"] if one["code"] == "rejected"]
    return ": ".join(("no request was served", *told))


def _unknown(name: str, mend: str) -> InputError:
    return InputError(Problem("is no metric", mend, path="metric", value=name))


def _words(names: Iterable[str]) -> str:
    return ", ".join(names)
