"""Lengths in tokens: a number, or a distribution given by name and parameters.

Drawn values are rounded to whole tokens and held between ``min`` (1 unless given) and ``max``;
holding them there moves the mean, as it would for a server that cuts its prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from math import log, sqrt

import numpy as np

from simkv.workload.draws import Sampler, ints, picker
from simkv.workload.numberfile import numbers_of
from simkv.workload.spec import Spec, bad, choose, need, number, whole

MAX_TOKENS = 2**31 - 1


def lengths(spec: object, rng: np.random.Generator, where: str) -> Iterator[int]:
    """Yield lengths in tokens without end; ``spec`` is an int or ``{dist: ..., ...}``.

    Raises InputError where the spec can't be read. ``rng`` must serve nobody else.
    """
    if not isinstance(spec, dict):
        return repeat(whole(spec, where, 1))
    draw = choose(_SAMPLERS, need(spec, "dist", where), f"{where}.dist")(spec, rng, where)
    low, high = _bounds(spec, where)
    return ints(lambda n: np.clip(np.rint(draw(n)), low, high).astype(np.int64))


def log_parameters(spec: Spec, where: str) -> tuple[float, float]:
    """Return mu and sigma of a lognormal given by ``mean`` or ``median`` with ``sigma`` or ``cv``."""
    if spec.get("sigma") is not None:
        sigma = number(spec["sigma"], f"{where}.sigma", 0)
    else:
        sigma = sqrt(log(1 + number(need(spec, "cv", where), f"{where}.cv", 0) ** 2))
    if spec.get("median") is not None:
        return log(number(spec["median"], f"{where}.median", 0, above=True)), sigma
    return log(number(need(spec, "mean", where), f"{where}.mean", 0, above=True)) - sigma**2 / 2, sigma


def _bounds(spec: Spec, where: str) -> tuple[int, int]:
    low = 1 if spec.get("min") is None else whole(spec["min"], f"{where}.min", 1)
    high = MAX_TOKENS if spec.get("max") is None else whole(spec["max"], f"{where}.max", 1)
    if high < low:
        raise bad(f"{where}.max", high, f"is below min = {low}", "swap them")
    return low, high


def _constant(spec: Spec, rng: np.random.Generator, where: str) -> Sampler:
    value = whole(need(spec, "value", where), f"{where}.value", 1)
    return lambda n: np.full(n, value)


def _uniform(spec: Spec, rng: np.random.Generator, where: str) -> Sampler:
    low = whole(need(spec, "low", where), f"{where}.low", 1)
    high = whole(need(spec, "high", where), f"{where}.high", 1)
    if high < low:
        raise bad(f"{where}.high", high, f"is below low = {low}", "swap them")
    return lambda n: rng.integers(low, high, n, endpoint=True)


def _lognormal(spec: Spec, rng: np.random.Generator, where: str) -> Sampler:
    mu, sigma = log_parameters(spec, where)
    ceiling = log(MAX_TOKENS)
    return lambda n: np.exp(np.minimum(rng.normal(mu, sigma, n), ceiling))


def _geometric(spec: Spec, rng: np.random.Generator, where: str) -> Sampler:
    mean = number(need(spec, "mean", where), f"{where}.mean", 1)
    return lambda n: rng.geometric(1 / mean, n)


def _empirical(spec: Spec, rng: np.random.Generator, where: str) -> Sampler:
    raw = numbers_of(spec["path"]) if spec.get("path") is not None else list(need(spec, "values", where))
    if not raw:
        raise bad(f"{where}.values", raw, "is empty", "list at least one length")
    values = np.array([whole(v, f"{where}.values[{i}]", 1) for i, v in enumerate(raw)])
    weights = spec.get("weights")
    if weights is None:
        return lambda n: values[rng.integers(0, len(values), n)]
    if len(weights) != len(values):
        raise bad(f"{where}.weights", weights, f"has {len(weights)} entries for {len(values)} values", "give one each")
    shares = [number(w, f"{where}.weights[{i}]", 0) for i, w in enumerate(weights)]
    if sum(shares) <= 0:
        raise bad(f"{where}.weights", weights, "sum to zero", "give at least one above zero")
    pick = picker(shares, rng)
    return lambda n: values[pick(n)]


_SAMPLERS: dict[str, Callable[[Spec, np.random.Generator, str], Sampler]] = {
    "constant": _constant,
    "uniform": _uniform,
    "lognormal": _lognormal,
    "geometric": _geometric,
    "empirical": _empirical,
}
