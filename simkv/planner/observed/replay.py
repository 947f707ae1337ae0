"""A measured run again, simulated: the same requests, and the same figures of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isinf
from typing import Any

import numpy as np

from simkv.errors import InfeasibleError
from simkv.planner.observed.types import Observed, Rows, figures_of
from simkv.rng import stream
from simkv.scenario.as_measured import Measured, as_measured
from simkv.scenario.build import system_config, workload_source
from simkv.scenario.resolve import Resolved
from simkv.scenario.workload_schema import PlainWorkload
from simkv.simulation import simulate
from simkv.sweeps.simulate import Written
from simkv.workload.request import PRIVATE_STREAM_BASE, Request


@dataclass(frozen=True, slots=True)
class Asked:
    """What is sent: every request's lengths and time, and how many may be in flight."""

    prompt_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]
    arrival_s: tuple[float, ...]
    concurrency: int | None


class Replayed:
    """The requests of a measured run as a workload; their prompts share nothing."""

    class_names = ("",)

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._next = 0

    def arrivals(self) -> Iterator[Request]:
        """Yield all, or as many as may be in flight."""
        left = self._asked.concurrency or len(self._asked.arrival_s)
        while left and self._next < len(self._asked.arrival_s):
            left -= 1
            yield self._request(0.0)

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        """Return the next one, where one had to wait until another was through."""
        if self._asked.concurrency is None or self._next == len(self._asked.arrival_s):
            return ()
        return (self._request(ended_s),)

    def session_over(self, request: Request) -> bool:
        """Return True: there are no sessions."""
        return True

    def _request(self, earliest_s: float) -> Request:
        n = self._next
        self._next += 1
        prompt, output = self._asked.prompt_tokens[n], self._asked.output_tokens[n]
        spans = ((PRIVATE_STREAM_BASE + n, 0, prompt + output),)
        return Request(n, max(earliest_s, self._asked.arrival_s[n]), prompt, output, spans)


def asked_of(observed: Observed, resolved: Resolved) -> Asked:
    """Return what was sent, as far as the file says it; the rest as the scenario and the benchmark make it.

    Lengths that the file doesn't have are drawn as the scenario draws those of independent requests and scaled to the
    means that were measured; of other workloads all are alike. Times that it doesn't have are drawn at the rate and
    the burstiness of the run.
    """
    seed = resolved.scenario.run.seed
    rows = observed.rows or _lengths(observed, resolved, seed)
    times = rows.arrival_s
    if times is None or observed.concurrency is not None:  # who waited for others there, waits for others here
        times = _times(observed, len(rows.output_tokens), seed)
    return Asked(rows.prompt_tokens, rows.output_tokens, times, observed.concurrency)


def _lengths(observed: Observed, resolved: Resolved, seed: int) -> Rows:
    prompts = np.full(observed.requests, observed.mean_prompt_tokens)
    outputs = np.full(observed.requests, observed.mean_output_tokens)
    if isinstance(resolved.scenario.workload, PlainWorkload):
        drawn = [(r.prompt_tokens, r.output_tokens) for r in workload_source(resolved, seed).arrivals()]
        shapes = np.resize(np.array(drawn, float), (observed.requests, 2))
        prompts = shapes[:, 0] * (observed.mean_prompt_tokens / shapes[:, 0].mean())
        outputs = shapes[:, 1] * (observed.mean_output_tokens / shapes[:, 1].mean())
    return Rows(tuple(max(1, round(n)) for n in prompts), tuple(max(1, round(n)) for n in outputs))


def _times(observed: Observed, requests: int, seed: int) -> tuple[float, ...]:
    """Return when requests are sent; the last when the rate says so, as the benchmarks have it."""
    if isinf(observed.rate_per_s):
        return (0.0,) * requests
    shape = observed.burstiness
    gaps = stream(seed, "observed").gamma(shape, 1.0 / (observed.rate_per_s * shape), requests)
    gaps *= requests / observed.rate_per_s / gaps.sum()
    return tuple((np.cumsum(gaps) - gaps[0]).tolist())


def replay(observed: Observed, written: Written, measured: Measured) -> dict[str, Any]:
    """Return the figures that the simulator predicts of a measured run, and how many requests it couldn't serve.

    Raises InfeasibleError where the configuration serves none of them.
    """
    resolved = as_measured(resolve(written), measured)
    config = replace(system_config(resolved), duration_s=None)
    data = simulate(config, Replayed(asked_of(observed, resolved)))
    requests = data.requests
    served = np.logical_not(requests["rejected"])
    if not served.any():
        raise InfeasibleError("the scenario's configuration serves no request of the measured run: all are too long")
    arrival_s, finish_s = requests["arrival_s"][served], requests["finish_s"][served]
    figures = figures_of(
        requests["first_token_s"][served] - arrival_s,
        finish_s - arrival_s,
        requests["output_tokens"][served],
        float(finish_s.max() - arrival_s.min()),
    )
    return {"figures": figures, "rejected": int(len(served) - served.sum())}


def resolve(written: Written) -> Resolved:
    """Return the scenario that was measured."""
    from simkv.scenario.resolve import resolve_text

    return resolve_text(written.text, written.file, written.assignments)
