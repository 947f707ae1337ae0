"""Requests of many clients: each sends by its own windows, and all are merged in order of time."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice, takewhile
from math import inf
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simkv.errors import InputError, Problem
from simkv.workload.clients.dataset import Dataset
from simkv.workload.clients.folder import ClientFiles, client_files
from simkv.workload.clients.windows import Window, read_windows
from simkv.workload.request import PRIVATE_STREAM_BASE, Request
from simkv.workload.single import Limits
from simkv.workload.spec import Spec, need, number, whole
from simkv.workload.streams import Streams

Drawn = tuple[float, int, int]
"""``(time_s, prompt_tokens, output_tokens)``."""

WHERE = "workload"
MOST_REQUESTS = 10_000_000
"""Of one client in one window: they are drawn together."""


def build_clients(spec: Spec, seed: int, duration_s: float | None = None) -> ClientsSource:
    """Return the source of the clients in ``spec["path"]``; equal arguments give equal requests.

    ``start`` and ``duration`` choose a stretch of the recording (seconds; its arrivals count from
    ``start``), ``rate_scale`` multiplies every rate, ``requests`` and ``duration_s`` end it early.
    Raises InputError for files that don't read well, or where no client sends anything.
    """
    start_s = number(spec.get("start") or 0.0, f"{WHERE}.start", 0)
    wanted_s = spec.get("duration")
    end_s = inf if wanted_s is None else start_s + number(wanted_s, f"{WHERE}.duration", 0, above=True)
    scale = number(spec.get("rate_scale", 1.0), f"{WHERE}.rate_scale", 0, above=True)
    most = None if spec.get("requests") is None else whole(spec["requests"], f"{WHERE}.requests", 1)
    path = Path(need(spec, "path", WHERE))
    clients = [Client(files, start_s, end_s, scale, Streams(seed)) for files in client_files(path)]
    if not any(client.sends for client in clients):
        raise _silent(path, clients, start_s, end_s)
    return ClientsSource(clients, start_s, Limits(most, duration_s))


def _silent(path: Path, clients: list[Client], start_s: float, end_s: float) -> InputError:
    busy = [w for client in clients for w in client.busy]
    mend = "choose other clients"
    if busy:
        first_s, last_s = min(w.start_s for w in busy), max(w.end_s for w in busy)
        mend = f"they send from {first_s:g} s to {last_s:g} s: choose workload.start and workload.duration among these"
    until = f"{end_s:g} s" if end_s < inf else "its end"
    return InputError(Problem(f"no client sends anything from {start_s:g} s to {until}", mend, file=str(path)))


class Client:
    """One client over a stretch of time; each window has random streams of its own.

    So a window's requests are the same whichever stretch is chosen and whichever clients there are.
    """

    def __init__(self, files: ClientFiles, start_s: float, end_s: float, scale: float, streams: Streams) -> None:
        """``scale`` multiplies the rate. Raises InputError for files that don't read well."""
        self.busy = [window for window in read_windows(files.trace) if window.rate_per_s > 0]
        self._number = files.number
        self._windows = [w for w in self.busy if w.end_s > start_s and w.start_s < end_s]
        self._dataset = Dataset(files.dataset) if self._windows else None
        busiest = max((w.rate_per_s * (w.end_s - w.start_s) for w in self._windows), default=0.0) * scale
        if busiest > MOST_REQUESTS:
            what = f"makes {busiest:,.0f} requests in one window; the most is {MOST_REQUESTS:,}"
            raise InputError(Problem(what, "lower workload.rate_scale", file=str(files.trace)))
        self._start_s, self._end_s, self._scale, self._streams = start_s, end_s, scale, streams

    @property
    def sends(self) -> bool:
        """Whether there is any request in the stretch."""
        return bool(self._windows)

    def expected_requests(self, until_s: float) -> float:
        """Return how many requests there are before ``until_s`` of the recording."""
        first_s, end_s = self._start_s, min(self._end_s, until_s)
        overlaps = ((w.rate_per_s, min(w.end_s, end_s) - max(w.start_s, first_s)) for w in self._windows)
        return self._scale * sum(rate * width_s for rate, width_s in overlaps if width_s > 0)

    def requests(self) -> Iterator[Drawn]:
        """Yield the client's requests in order of time; each call starts over."""
        if self._dataset is None:
            return
        for window in self._windows:
            purpose = f"clients.{self._number}.{window.start_s:.15g}"
            times = window_times(window, self._scale, self._streams(f"{purpose}.arrivals"))
            prompts, outputs = self._dataset.draw(window.start_s, len(times), self._streams(f"{purpose}.lengths"))
            for drawn in zip(times.tolist(), prompts, outputs, strict=True):
                if self._start_s <= drawn[0] < self._end_s:
                    yield drawn


def window_times(window: Window, scale: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the times of a window's requests: as many as its rate times ``scale`` makes, by gaps of its shape.

    n requests are n + 1 gaps, stretched to fill the window, so the rate holds in every window and
    burstiness inside it; a fraction of a request is one with that probability.
    """
    width_s = window.end_s - window.start_s
    expected = window.rate_per_s * scale * width_s
    count = int(expected) + int(rng.random() < expected % 1)
    if window.gaps == "Gamma":
        gaps = rng.standard_gamma(window.shape, count + 1)
    elif window.gaps == "Weibull":
        gaps = rng.weibull(window.shape, count + 1)
    else:
        gaps = rng.standard_exponential(count + 1)
    ends = np.cumsum(gaps)
    return window.start_s + ends[:-1] * (width_s / ends[-1]) if ends[-1] > 0 else np.full(count, window.start_s)


class ClientsSource:
    """The merged requests of all clients; nothing is shared and nothing follows a request."""

    def __init__(self, clients: list[Client], start_s: float, limits: Limits) -> None:
        self._clients = clients
        self._start_s = start_s
        self._limits = limits

    @property
    def class_names(self) -> tuple[str, ...]:
        """Every value that ``Request.cls`` can take."""
        return ("",)

    def expected_requests(self) -> int:
        """Return about how many requests there are, for a progress bar."""
        until_s = inf if self._limits.duration_s is None else self._start_s + self._limits.duration_s
        number = round(sum(client.expected_requests(until_s) for client in self._clients))
        return max(1, number if self._limits.requests is None else min(number, self._limits.requests))

    def arrivals(self) -> Iterator[Request]:
        """Yield the requests in order of arrival, which counts from the start of the stretch; each call starts over."""
        merged = merge(*(client.requests() for client in self._clients), key=itemgetter(0))
        shifted = ((time_s - self._start_s, prompt, output) for time_s, prompt, output in merged)
        within = takewhile(lambda drawn: self._limits.open(drawn[0]), shifted)
        for i, (arrival_s, prompt, output) in enumerate(islice(within, self._limits.requests)):
            yield Request(i, arrival_s, prompt, output, ((PRIVATE_STREAM_BASE + i, 0, prompt + output),))

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        """Return (): nothing follows."""
        return ()

    def session_over(self, request: Request) -> bool:
        """Return False: there are no sessions."""
        return False
