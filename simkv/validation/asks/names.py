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

WORDS = {
    **dict.fromkeys(("cpu", "host", "ram", "l2"), "dram"),
    **dict.fromkeys(("gpu", "hbm", "device", "l1"), "vram"),
    **dict.fromkeys(("disk", "nvme", "storage", "file", "l3"), "ssd"),
    **dict.fromkeys(("median", "p50.0"), "p50"),
    **dict.fromkeys(("avg", "average"), "mean"),
    "maximum": "max", "misses": "miss",
}  # fmt: skip
"""What others call parts of a name."""
_UNIT = re.compile(r"_(ms|us|sec|seconds)(?=\.|$)")
_STATISTIC_FIRST = re.compile(r"(mean|avg|average|median|max|p\d{1,2})_(\w+)")
_RATES = ("output_tokens_per_s", "total_tokens_per_s", "requests_per_s")
CALLED = {
    **dict.fromkeys(("throughput", "tps", "tokens_per_second"), _RATES),
    **dict.fromkeys(("output_throughput", "decode_throughput"), ("output_tokens_per_s", "decode_tokens_per_s")),
    **dict.fromkeys(("total_throughput", "total_token_throughput"), ("total_tokens_per_s",)),
    **dict.fromkeys(("request_throughput", "rps", "qps"), ("requests_per_s",)),
    **dict.fromkeys(("goodput", "request_goodput"), ("goodput_requests_per_s",)),
    **dict.fromkeys(("slo.attainment", "slo", "attainment"), ("slo_attainment.overall",)),
    **dict.fromkeys(("latency", "e2e_latency", "mean_latency"), ("e2e_s.mean",)),
    **dict.fromkeys(("duration", "total_time", "runtime"), ("makespan_s",)),
    **dict.fromkeys(("inter_token_latency", "tbt"), ("itl_s.mean",)),
    **dict.fromkeys(("hit_rate.overall", "hit_rate.all", "hit_rate.hit"), ("hit_rate.total",)),
}
"""What others call a whole metric."""
SAID = {
    **dict.fromkeys(
        ("max_rate", "max_throughput", "max_qps", "capacity"),
        "no single run finds it: ask for slo_attainment.overall, or for a latency, at the rate that was found "
        "(set: {workload.arrival.rate: ...})",
    ),
}
"""Mends of names that stand for what no single metric is."""


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
    made = [name.partition(".")[2] for name in MADE if name.startswith(f"{metric.name}.")]
    return (*metric.shape.split(", "), *made) if metric.shape else ("",)


def _mend(name: str) -> str:
    if name in SAID:
        return SAID[name]
    head = name.partition(".")[0]
    parts = () if head not in METRICS or name in METRICS else _below(METRICS[head])
    near = _near(name)
    guess = f"did you mean {', '.join(near)}? " if near else ""
    if name in METRICS:
        return f"it has {', '.join(f'{name}.{part}' for part in _below(METRICS[name]))}"
    if any(parts):
        return f"{guess}{head} has {', '.join(parts)}; see docs/results.md"
    return f"{guess}docs/validation-cases.md and docs/results.md list them"


def _near(name: str) -> list[str]:
    """Return the metrics that are likely meant: by what others call them, by their letters, by their words."""
    valid = _valid()
    if name.lower() in CALLED:
        return list(CALLED[name.lower()])
    spelt = _respelt(name)
    if spelt in valid:
        return [spelt]
    if spelt in METRICS:
        return [f"{spelt}.{part}" for part in _below(METRICS[spelt])[:4]]
    near = get_close_matches(spelt, valid, 3)
    return near or [one for one in valid if _words(spelt) & _words(one)][:5]


def _respelt(name: str) -> str:
    """Return a name in our words: ``hit_rate.cpu`` is ``hit_rate.dram``, ``ttft_ms.avg`` and ``mean_ttft`` are ours."""
    bare = _UNIT.sub("", name.lower())
    parts = [WORDS.get(part, part) for part in _STATISTIC_FIRST.sub(r"\2.\1", bare).split(".")]
    parts[0] = {metric.removesuffix("_s"): metric for metric in METRICS}.get(parts[0], parts[0])
    return ".".join(parts)


def _valid() -> list[str]:
    kept = [metric for metric in METRICS.values() if metric.kind != "identity" and metric.name not in _FREE]
    return [*(f"{one.name}.{part}".rstrip(".") for one in kept for part in _below(one)), *_NAMES]


def _words(name: str) -> set[str]:
    return set(re.split(r"[._]", name)) - {"s", "mean", "per"}
