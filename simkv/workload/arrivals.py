"""When things happen: arrival processes, and think times between them. Seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate, chain, count, repeat

import numpy as np

from simkv.workload.draws import floats
from simkv.workload.lengths import log_parameters
from simkv.workload.spec import Spec, choose, need, number, whole

SLOWEST_RATE = 1e-9
LONGEST_S = 1e9


def arrival_times(spec: Spec, rng: np.random.Generator, where: str) -> Iterator[float]:
    """Yield the arrival times of an open process without end, never falling.

    ``poisson`` and ``gamma`` (interarrival times with coefficient of variation ``cv``) start after
    one gap; ``constant`` starts at 0; ``all_at_once`` is 0 without end. ``rng`` must serve nobody else.
    """
    return choose(_PROCESSES, spec.get("process", "poisson"), f"{where}.process")(spec, rng, where)


def batch_times(size: int, interval_s: float | None) -> Iterator[float]:
    """Yield 0 ``size`` times, then each multiple of ``interval_s`` ``size`` times; None: only once."""
    if interval_s is None:
        return repeat(0.0, size)
    return chain.from_iterable(repeat(k * interval_s, size) for k in count())


def think_times(spec: object, rng: np.random.Generator, where: str) -> Iterator[float]:
    """Yield pauses without end; ``spec`` is seconds, None (no pause) or ``{dist: ..., mean, cv}``."""
    if spec is None:
        return repeat(0.0)
    if not isinstance(spec, dict):
        return repeat(number(spec, where, 0))
    return choose(_PAUSES, spec.get("dist", "constant"), f"{where}.dist")(spec, rng, where)


def _rate(spec: Spec, where: str) -> float:
    return number(need(spec, "rate", where), f"{where}.rate", SLOWEST_RATE)


def _poisson(spec: Spec, rng: np.random.Generator, where: str) -> Iterator[float]:
    gap_s = 1 / _rate(spec, where)
    return accumulate(floats(lambda n: rng.exponential(gap_s, n)))


def _gamma(spec: Spec, rng: np.random.Generator, where: str) -> Iterator[float]:
    gap_s = 1 / _rate(spec, where)
    squared = number(need(spec, "cv", where), f"{where}.cv", 0) ** 2
    if squared == 0:
        return _constant(spec, rng, where)
    return accumulate(floats(lambda n: rng.gamma(1 / squared, squared * gap_s, n)))


def _constant(spec: Spec, rng: np.random.Generator, where: str) -> Iterator[float]:
    rate = _rate(spec, where)
    return (k / rate for k in count())


def _all_at_once(spec: Spec, rng: np.random.Generator, where: str) -> Iterator[float]:
    return repeat(0.0)


def _no_draws(spec: Spec, rng: np.random.Generator, where: str) -> Iterator[float]:
    key = "mean" if spec.get("mean") is not None else "value"
    return repeat(number(need(spec, key, where), f"{where}.{key}", 0))


def _exponential(spec: Spec, rng: np.random.Generator, where: str) -> Iterator[float]:
    mean_s = number(need(spec, "mean", where), f"{where}.mean", 0)
    return floats(lambda n: rng.exponential(mean_s, n))


def _uniform(spec: Spec, rng: np.random.Generator, where: str) -> Iterator[float]:
    low_s = number(need(spec, "low", where), f"{where}.low", 0)
    high_s = number(need(spec, "high", where), f"{where}.high", low_s)
    return floats(lambda n: rng.uniform(low_s, high_s, n))


def _lognormal(spec: Spec, rng: np.random.Generator, where: str) -> Iterator[float]:
    mu, sigma = log_parameters(spec, where)
    low_s = number(spec.get("min") or 0.0, f"{where}.min", 0)
    high_s = number(LONGEST_S if spec.get("max") is None else spec["max"], f"{where}.max", low_s)
    return floats(lambda n: np.clip(rng.lognormal(mu, sigma, n), low_s, high_s))


_Maker = Callable[[Spec, np.random.Generator, str], Iterator[float]]
_PROCESSES: dict[str, _Maker] = {
    "poisson": _poisson,
    "gamma": _gamma,
    "constant": _constant,
    "all_at_once": _all_at_once,
}
_PAUSES: dict[str, _Maker] = {
    "constant": _no_draws,
    "exponential": _exponential,
    "uniform": _uniform,
    "lognormal": _lognormal,
}


def users(spec: Spec, where: str) -> int:
    """Return the number of users of a closed loop."""
    return whole(need(spec, "users", where), f"{where}.users", 1)
