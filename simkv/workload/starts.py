"""Arrival processes as a scenario has them, made anew each time a workload starts over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from simkv.workload.arrivals import arrival_times, batch_times, think_times, users
from simkv.workload.spec import Spec
from simkv.workload.streams import Streams

Times = Callable[[], Iterator[float]]
"""Makes an iterator of seconds, the same at each call."""


def open_times(arrival: Spec, streams: Streams, where: str) -> Times:
    """Return what makes the times of an open process; raises InputError for a wrong ``arrival``."""
    return _start_over(arrival_times, arrival, streams, "arrivals", where)


def user_pauses(arrival: Spec, streams: Streams, where: str) -> Times:
    """Return what makes the pauses of users of a closed loop; raises InputError for a wrong ``arrival``."""
    return _start_over(think_times, arrival.get("think_time"), streams, "user_think_times", f"{where}.think_time")


def session_starts(arrival: Spec, streams: Streams, where: str) -> tuple[Times, Times | None]:
    """Return what makes the starts of sessions and, in a closed loop, the pauses of users between two.

    A closed loop starts one session a user at 0. Raises InputError for a wrong ``arrival``.
    """
    if arrival.get("process") == "closed_loop":
        return partial(batch_times, users(arrival, where), None), user_pauses(arrival, streams, where)
    return open_times(arrival, streams, where), None


def _start_over(
    make: Callable[[Any, np.random.Generator, str], Iterator[float]],
    spec: Any,
    streams: Streams,
    purpose: str,
    where: str,
) -> Times:
    """Return what makes the same iterator anew at each call; a wrong ``spec`` is refused here."""

    def again() -> Iterator[float]:
        return make(spec, streams(purpose), where)

    again()
    return again
