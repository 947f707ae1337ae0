"""Waiting times of classic queues: oracles for the simulator, which never imports them.

Rates in requests a second, times in seconds. Sources: L. Kleinrock, Queueing Systems I (1975), 3.2 (M/M/1),
3.5 (M/M/m) and 5.6 (Pollaczek-Khinchine); A. Cobham, Priority assignment in waiting line problems (Operations
Research 2, 1954) for priorities. All raise InputError for a queue that has no steady state.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from simkv.errors import InputError, Problem


class Service(NamedTuple):
    """First and second moment of a service time."""

    mean_s: float
    square_s2: float


def exponential(mean_s: float) -> Service:
    """Service times without memory."""
    return Service(mean_s, 2 * mean_s**2)


def constant(mean_s: float) -> Service:
    """Equal service times."""
    return Service(mean_s, mean_s**2)


def geometric(mean_steps: float, step_s: float) -> Service:
    """1, 2, ... steps of ``step_s``, each the last with probability ``1 / mean_steps``."""
    return Service(mean_steps * step_s, mean_steps * (2 * mean_steps - 1) * step_s**2)


def discrete(values_s: Sequence[float], weights: Sequence[float]) -> Service:
    """One of ``values_s``, in proportion to ``weights``."""
    total = sum(weights)
    mean = sum(w * v for v, w in zip(values_s, weights, strict=True)) / total
    return Service(mean, sum(w * v * v for v, w in zip(values_s, weights, strict=True)) / total)


def mg1_wait_s(rate: float, service: Service) -> float:
    """Mean time before service of an M/G/1 queue (Pollaczek-Khinchine): rate * E[S^2] / 2(1 - load)."""
    load = _load(rate * service.mean_s)
    return rate * service.square_s2 / (2 * (1 - load))


def mm1_wait_s(rate: float, mean_s: float) -> float:
    """Mean time before service of an M/M/1 queue: load / (1 - load) * mean service."""
    load = _load(rate * mean_s)
    return load / (1 - load) * mean_s


def md1_wait_s(rate: float, mean_s: float) -> float:
    """Mean time before service of an M/D/1 queue, half of M/M/1's."""
    load = _load(rate * mean_s)
    return load / (2 * (1 - load)) * mean_s


def mm1_present(rate: float, mean_s: float, count: int) -> float:
    """Probability that ``count`` requests are in an M/M/1 queue, the one in service included."""
    load = _load(rate * mean_s)
    return (1 - load) * load**count


def erlang_c(rate: float, mean_s: float, servers: int) -> float:
    """Probability that an arrival at an M/M/c queue has to wait."""
    offered = rate * mean_s
    load = _load(offered / servers)
    blocked = 1.0
    for number in range(1, servers + 1):  # Erlang B by its recursion, which doesn't overflow
        blocked = offered * blocked / (number + offered * blocked)
    return blocked / (1 - load * (1 - blocked))


def mmc_wait_s(rate: float, mean_s: float, servers: int) -> float:
    """Mean time before service of an M/M/c queue."""
    return erlang_c(rate, mean_s, servers) * mean_s / (servers - rate * mean_s)


def mg1_priority_waits_s(classes: Sequence[tuple[float, Service]]) -> list[float]:
    """Mean time before service by class, most urgent first; nobody in service is interrupted (Cobham).

    ``classes``: each one's rate and service.
    """
    residual = sum(rate * service.square_s2 for rate, service in classes) / 2
    waits, before = [], 0.0
    for rate, service in classes:
        after = _load(before + rate * service.mean_s)
        waits.append(residual / ((1 - before) * (1 - after)))
        before = after
    return waits


def _load(load: float) -> float:
    if not 0 <= load < 1 or load == inf:
        raise InputError(Problem("is not below 1: the queue grows without bound", path="load", value=f"{load:g}"))
    return load
