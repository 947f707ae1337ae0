"""Moves pieces of KV between device memory, host memory and a drive, beside the computation.

Four lanes as the simulator has them, a thread each: reads from the drive, copies up, copies down, writes to the drive.
What comes from the drive is read into host memory whole, then copied up; the most urgent transfer goes first, and a
more urgent one takes over between two pieces. On a GPU the copies run on a stream of their own.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from time import perf_counter
from typing import Any

from simkv.calibrate.backend import Backend, Tensor, load_torch
from simkv.calibrate.drive import Drive, aligned, padded

Piece = tuple[str, int, int]
"""(tier ``dram`` or ``ssd``, place there, slot of the hot pool)."""
Done = Callable[[], None]
DEMAND, NEXT_STEP, LOOK_AHEAD, WRITE_BACK = range(4)
"""How urgent a transfer is, as in the simulator."""


class Ticket:
    """One transfer under way; times are those of the wall clock."""

    def __init__(self, pieces: int, priority: int, done: Done | None) -> None:
        self.pieces = pieces
        self.priority = priority
        self.done = done
        self.submitted_s = perf_counter()
        self.ended_s = 0.0
        self.busy_s = 0.0
        """How long lanes worked on it."""
        self.error: BaseException | None = None
        self._through = threading.Event()

    @property
    def is_through(self) -> bool:
        """Say whether all of it has arrived."""
        return self._through.is_set()

    def wait(self) -> None:
        """Return when it has arrived; raises what went wrong on the way."""
        self._through.wait()
        if self.error is not None:
            raise self.error

    def end(self, error: BaseException | None = None) -> None:
        """Say that it is through, or failed."""
        self.ended_s = perf_counter()
        self.error = error
        self._through.set()


class _Job:
    """What one lane has to do for a ticket: one call a piece, and then what follows."""

    __slots__ = ("calls", "finish", "next", "then", "ticket")

    def __init__(self, ticket: Ticket, calls: Sequence[Callable[[], None]], finish: Done, then: Done) -> None:
        self.ticket = ticket
        self.calls = calls
        self.finish = finish
        """Waits until what the calls began is through."""
        self.then = then
        self.next = 0


class _Lane:
    """A thread that serves jobs, the most urgent first, and turns to a more urgent one between two pieces."""

    def __init__(self, name: str) -> None:
        self._queue: list[tuple[int, int, _Job]] = []
        self._order = count()
        self._change = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name=f"simkv-{name}", daemon=True)
        self._thread.start()

    def put(self, job: _Job) -> None:
        with self._change:
            heapq.heappush(self._queue, (job.ticket.priority, next(self._order), job))
            self._change.notify()

    def urge(self, ticket: Ticket, priority: int) -> None:
        """Put what waits of ``ticket`` among those of ``priority``."""
        with self._change:
            ticket.priority = min(ticket.priority, priority)
            self._queue = [(job.ticket.priority, order, job) for _, order, job in self._queue]
            heapq.heapify(self._queue)

    def close(self) -> None:
        with self._change:
            self._closed = True
            self._change.notify()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            with self._change:
                while not self._queue and not self._closed:
                    self._change.wait()
                if self._closed:
                    return
                _, order, job = heapq.heappop(self._queue)
            self._work(job, order)

    def _work(self, job: _Job, order: int) -> None:
        begun = perf_counter()
        try:
            while job.next < len(job.calls):
                job.calls[job.next]()
                job.next += 1
                if job.next < len(job.calls) and self._gives_way(job, order):
                    job.ticket.busy_s += perf_counter() - begun
                    return
            job.finish()
        except BaseException as error:  # whoever waits for it is told
            job.ticket.end(error)
            return
        job.ticket.busy_s += perf_counter() - begun
        job.then()

    def _gives_way(self, job: _Job, order: int) -> bool:
        if not self._queue or self._queue[0][0] >= job.ticket.priority:
            return False
        with self._change:
            heapq.heappush(self._queue, (job.ticket.priority, order, job))
        return True


class CopyEngine:
    """The lanes of one device, its hot pool, host memory and drive."""

    def __init__(
        self, backend: Backend, hot: Tensor, dram: Tensor | None, drive: Drive | None, piece_bytes: int
    ) -> None:
        """``hot``: bytes ``[slots, piece_bytes]`` on the device; ``dram``: the same on the host, pinned on a GPU.

        A piece on the drive lies at ``place * padded(piece_bytes)``.
        """
        self.backend = backend
        self.hot = hot
        self.dram = dram
        self.drive = drive
        self.piece_bytes = piece_bytes
        self.stride = padded(piece_bytes)
        self._buffers: deque[int] = deque()
        self._free = threading.Condition()
        if drive is not None:
            slots = int(hot.shape[0])
            memory, self._view = aligned(backend, slots * self.stride)
            self._bounce = memory.view(slots, self.stride)
            self._buffers.extend(range(slots))
        self._streams: dict[str, Any] = {}
        if backend.kind == "cuda":
            cuda = load_torch().cuda
            self._streams = {"up": cuda.Stream(), "down": cuda.Stream()}
        self._lanes = {name: _Lane(name) for name in ("read", "up", "down", "write")}
        self._through: deque[Ticket] = deque()

    # ---- asking

    def load(self, pieces: Sequence[Piece], priority: int = DEMAND, done: Done | None = None) -> Ticket:
        """Bring ``pieces`` up to their slots; ``done`` is called by a :meth:`poll` after all are there.

        All of them come from one tier.
        """
        ticket = Ticket(len(pieces), priority, done)
        if pieces[0][0] == "ssd":
            self._read(ticket, pieces, up=True)
        else:
            assert self.dram is not None
            sources = [self.dram[place] for _, place, _ in pieces]
            self._up(ticket, sources, [slot for _, _, slot in pieces], lambda: self._end(ticket))
        return ticket

    def fetch(self, places: Sequence[int], priority: int = DEMAND, done: Done | None = None) -> Ticket:
        """Read the pieces at ``places`` of the drive into host memory, and no further."""
        ticket = Ticket(len(places), priority, done)
        self._read(ticket, [("ssd", place, -1) for place in places], up=False)
        return ticket

    def store(self, pieces: Sequence[Piece], priority: int = WRITE_BACK, done: Done | None = None) -> Ticket:
        """Write what is in the slots of ``pieces`` down to their places, all in one tier."""
        ticket = Ticket(len(pieces), priority, done)
        if pieces[0][0] == "dram":
            assert self.dram is not None
            into = [self.dram[place] for _, place, _ in pieces]
            self._down(ticket, [slot for _, _, slot in pieces], into, lambda: self._end(ticket))
            return ticket
        buffers = self._take(len(pieces))
        into = [self._bounce[buffer][: self.piece_bytes] for buffer in buffers]
        places = [place for _, place, _ in pieces]
        self._down(ticket, [slot for _, _, slot in pieces], into, lambda: self._write(ticket, buffers, places))
        return ticket

    def urge(self, ticket: Ticket, priority: int = DEMAND) -> None:
        """Somebody waits for ``ticket`` now."""
        for lane in self._lanes.values():
            lane.urge(ticket, priority)

    def poll(self) -> None:
        """Make the calls of what is through by now, in the order of their ends."""
        while self._through:
            ticket = self._through.popleft()
            if ticket.done is not None:
                ticket.done()

    def close(self) -> None:
        """Stop the threads; what is under way is finished or dropped."""
        for lane in self._lanes.values():
            lane.close()

    # ---- the hops

    def _read(self, ticket: Ticket, pieces: Sequence[Piece], up: bool) -> None:
        drive = self.drive
        assert drive is not None
        buffers = self._take(len(pieces))

        def reading(buffer: int, place: int) -> Callable[[], None]:
            view = self._view[buffer * self.stride : (buffer + 1) * self.stride]
            return lambda: drive.read(view, place * self.stride)

        def then() -> None:
            if not up:
                self._give(buffers)
                self._end(ticket)
                return
            sources = [self._bounce[buffer][: self.piece_bytes] for buffer in buffers]
            self._up(ticket, sources, [slot for _, _, slot in pieces], arrived)

        def arrived() -> None:
            self._give(buffers)
            self._end(ticket)

        calls = [reading(buffer, place) for buffer, (_, place, _) in zip(buffers, pieces, strict=True)]
        self._lanes["read"].put(_Job(ticket, calls, _nothing, then))

    def _up(self, ticket: Ticket, sources: Sequence[Tensor], slots: Sequence[int], then: Done) -> None:
        targets = [self.hot[slot] for slot in slots]
        self._lanes["up"].put(_Job(ticket, self._copies("up", sources, targets), self._finish("up"), then))

    def _down(self, ticket: Ticket, slots: Sequence[int], into: Sequence[Tensor], then: Done) -> None:
        sources = [self.hot[slot] for slot in slots]
        self._lanes["down"].put(_Job(ticket, self._copies("down", sources, into), self._finish("down"), then))

    def _write(self, ticket: Ticket, buffers: Sequence[int], places: Sequence[int]) -> None:
        drive = self.drive
        assert drive is not None

        def writing(buffer: int, place: int) -> Callable[[], None]:
            view = self._view[buffer * self.stride : (buffer + 1) * self.stride]
            return lambda: drive.write(view, place * self.stride)

        def then() -> None:
            self._give(buffers)
            self._end(ticket)

        calls = [writing(buffer, place) for buffer, place in zip(buffers, places, strict=True)]
        self._lanes["write"].put(_Job(ticket, calls, _nothing, then))

    def _copies(self, lane: str, sources: Sequence[Tensor], targets: Sequence[Tensor]) -> list[Callable[[], None]]:
        stream = self._streams.get(lane)

        def copying(source: Tensor, target: Tensor) -> Callable[[], None]:
            if stream is None:
                return lambda: target.copy_(source)

            def on_stream() -> None:
                with load_torch().cuda.stream(stream):
                    target.copy_(source, non_blocking=True)

            return on_stream

        return [copying(source, target) for source, target in zip(sources, targets, strict=True)]

    def _finish(self, lane: str) -> Done:
        stream = self._streams.get(lane)
        return stream.synchronize if stream is not None else _nothing

    def _end(self, ticket: Ticket) -> None:
        self._through.append(ticket)
        ticket.end()

    # ---- host memory between drive and device

    def _take(self, number: int) -> list[int]:
        with self._free:
            while len(self._buffers) < number:
                self._free.wait()
            return [self._buffers.popleft() for _ in range(number)]

    def _give(self, buffers: Sequence[int]) -> None:
        with self._free:
            self._buffers.extend(buffers)
            self._free.notify_all()


def _nothing() -> None:
    """Nothing to wait for: the calls return when they are done."""
