"""What somebody measured of a serving engine, in SI units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STATISTICS: Mapping[str, float] = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}
"""Percentiles that are compared, as far as a file has them."""
FIGURES = (
    *(f"{metric}_s.{name}" for metric in ("ttft", "tpot", "itl", "e2e") for name in ("mean", *STATISTICS)),
    "output_tokens_per_s",
    "requests_per_s",
)
"""All that a run may tell, in the order in which it is shown."""
MOST_REQUESTS = 100_000
"""A fit simulates a run some dozens of times: of more it would take hours."""
A_PART = "give a part of the run"


@dataclass(frozen=True, slots=True)
class Rows:
    """What is known of each request, in order of arrival."""

    prompt_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]
    arrival_s: tuple[float, ...] | None = None
    """From the first on; None: only at which rate they came."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One measured run."""

    file: str
    tool: str
    """What wrote the file: ``vllm bench serve``, ``sglang.bench_serving`` or a log of requests."""
    model: str
    """As the file names it; empty: it doesn't."""
    requests: int
    """That were served."""
    figures: Mapping[str, float]
    """By ``METRIC_s.STATISTIC`` (ttft, tpot, itl, e2e), seconds, and ``output_tokens_per_s``, ``requests_per_s``."""
    prompt_tokens: int
    """Of all requests together."""
    output_tokens: int
    duration_s: float
    rate_per_s: float
    """At which requests were sent; ``inf``: at once."""
    burstiness: float = 1.0
    """Shape of the gamma distribution of the gaps between them; 1: exponential."""
    concurrency: int | None = None
    """The most that were ever in flight; None: no bound."""
    rows: Rows | None = None
    notes: tuple[str, ...] = ()

    @property
    def mean_prompt_tokens(self) -> float:
        """Mean length of a prompt."""
        return self.prompt_tokens / self.requests

    @property
    def mean_output_tokens(self) -> float:
        """Mean length of an output."""
        return self.output_tokens / self.requests


def figures_of(
    ttft_s: Sequence[float] | NDArray[np.float64],
    e2e_s: Sequence[float] | NDArray[np.float64],
    output_tokens: Sequence[int] | NDArray[np.int64],
    duration_s: float,
) -> dict[str, float]:
    """Return the figures of requests that were served, as both benchmarks define them.

    TPOT is of a request: its decoding over its tokens but the first; the mean ITL is of tokens: the decoding of all
    over theirs.
    """
    ttft, e2e, outputs = np.asarray(ttft_s, float), np.asarray(e2e_s, float), np.asarray(output_tokens, np.int64)
    several = outputs > 1
    decoding = (e2e - ttft)[several]
    tokens = outputs[several] - 1
    figures = {**_spread("ttft_s", ttft), **_spread("e2e_s", e2e)}
    if several.any():
        figures |= _spread("tpot_s", decoding / tokens)
        figures["itl_s.mean"] = float(decoding.sum() / tokens.sum())
    if duration_s > 0:
        figures["output_tokens_per_s"] = float(outputs.sum() / duration_s)
        figures["requests_per_s"] = len(outputs) / duration_s
    return figures


def _spread(metric: str, values: NDArray[np.float64]) -> dict[str, float]:
    found = {f"{metric}.mean": float(values.mean())}
    for name, percent in STATISTICS.items():
        found[f"{metric}.{name}"] = float(np.percentile(values, percent))
    return found
