"""Sessions behind one client that keeps no more than so many requests under way (SGLang's ``bench_multiturn``).

Every session has its next turn ready in one queue. While fewer than ``max_parallel`` requests are under way, the
client takes one of the queue, sends it, and pauses. With a barrier nobody's turn k + 1 is ready before everybody's
turn k has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat

import numpy as np

from simkv.workload.arrivals import users
from simkv.workload.draws import floats
from simkv.workload.request import Request
from simkv.workload.sessions import Session, SessionContent, SessionSource
from simkv.workload.single import Limits
from simkv.workload.spec import Spec, choose, number, whole
from simkv.workload.streams import Streams

Pick = Callable[[int], int]
"""Takes how many are ready, returns which of them is sent next."""


class ReadyQueueSource(SessionSource):
    """One session for each of ``users``; who sends when depends on the run.

    What is taken next and how long the client pauses is drawn in the order of sending, so it is the same for runs that
    are compared, whichever session it then falls to.
    """

    def __init__(self, content: SessionContent, arrival: Spec, streams: Streams, limits: Limits, where: str) -> None:
        """``arrival``: ``users``, ``max_parallel``, ``rate`` (None: no pauses), ``order``, ``round_barrier``."""
        self._users = users(arrival, where)
        most = arrival.get("max_parallel")
        self._most = whole(self._users if most is None else most, f"{where}.max_parallel", 1)
        rate = arrival.get("rate")
        self._gap_s = 0.0 if rate is None else 1 / number(rate, f"{where}.rate", 0, above=True)
        self._make_pick = choose(_ORDERS, arrival.get("order") or "random", f"{where}.order")
        self._barrier = bool(arrival.get("round_barrier"))
        self._streams = streams
        self._ready: list[Session] = []
        self._next_round: list[Session] = []
        self._under_way = 0
        self._free_s = 0.0
        """When the client's pause ends."""
        super().__init__(content, limits, lambda: repeat(0.0, self._users))

    def arrivals(self) -> Iterator[Request]:
        """Yield the first requests, as many as are under way at once; each call starts the workload over."""
        self._restart()
        for start_s in self._times():
            session = self._draw(start_s)
            if session is None:
                break
            self._ready.append(session)
        return iter(self._send(0.0))

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        """Return what the client sends now that ``request`` has ended; a refused turn ends its session."""
        self._under_way -= 1
        session = self._live[request.session]
        if session.plan and finished:
            (self._next_round if self._barrier else self._ready).append(session)
        else:
            del self._live[request.session]
        if not self._under_way and not self._ready:
            self._ready, self._next_round = self._next_round, []
        return self._send(ended_s)

    def _restart(self) -> None:
        super()._restart()
        self._ready, self._next_round = [], []
        self._under_way, self._free_s = 0, 0.0
        gap_s, pauses = self._gap_s, self._streams("sending_pauses")
        self._pauses = floats(lambda n: pauses.exponential(gap_s, n)) if gap_s else repeat(0.0)
        self._pick = self._make_pick(self._streams("ready_queue"))

    def _send(self, now_s: float) -> tuple[Request, ...]:
        sent: list[Request] = []
        while self._ready and self._under_way < self._most:
            session = self._ready.pop(self._pick(len(self._ready)))
            at_s = max(now_s, self._free_s)
            turn = self._turn(session, at_s)
            if turn:
                self._under_way += 1
                self._free_s = at_s + next(self._pauses)
                sent += turn
        return tuple(sent)


def _random(rng: np.random.Generator) -> Pick:
    return lambda ready: int(rng.integers(ready))


def _fifo(rng: np.random.Generator) -> Pick:
    return lambda ready: 0


_ORDERS: dict[str, Callable[[np.random.Generator], Pick]] = {"random": _random, "fifo": _fifo}
