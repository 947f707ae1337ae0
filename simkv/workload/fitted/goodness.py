"""How well a fit describes its trace: the figures of requests drawn from it beside those of the trace."""

from __future__ import annotations

from typing import Any

from simkv.workload.fitted.model import FittedModel
from simkv.workload.fitted.source import FittedSource
from simkv.workload.inspect import Inspection, inspect_requests
from simkv.workload.readers.report import ReadReport
from simkv.workload.single import Limits
from simkv.workload.streams import Streams

FEWEST_DRAWN, MOST_DRAWN = 10_000, 20_000


def compare(model: FittedModel, trace: Inspection, seed: int) -> dict[str, Any]:
    """Return the figures of ``trace`` and of requests drawn from ``model``.

    They are as many within bounds: enough that chance says little of how well the fit describes the trace.
    ``ks`` is the Kolmogorov-Smirnov distance of the lengths: the largest difference between the
    two cumulative distributions.
    """
    count = min(max(model.origin.requests, FEWEST_DRAWN), MOST_DRAWN)
    source = FittedSource(model, Limits(count, None), 1.0, Streams(seed))
    report = ReadReport("fitted", block_tokens=model.origin.block_tokens)
    drawn = inspect_requests(source.arrivals(), report)
    return {
        "trace": _chosen(trace.answer()),
        "drawn": _chosen(drawn.answer()),
        "ks": {
            "prompt_tokens": trace.prompts.distance(drawn.prompts),
            "output_tokens": trace.outputs.distance(drawn.outputs),
        },
    }


_KEYS = ("requests", "span_s", "prompt_tokens", "output_tokens", "arrivals", "reuse", "infinite_cache")


def _chosen(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: answer[key] for key in _KEYS}
