"""Moves pieces of KV between device memory, host memory and a drive, beside the computation.

Four lanes as the simulator has them, a thread each: reads from the drive, copies up, copies down, writes to the drive.
What comes from the drive is read into host memory whole, then copied up; the most urgent transfer goes first, and a
more urgent one takes over between two pieces. On a GPU each direction has a stream of its own, which carries pieces in
the order in which they were handed to it.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from time import perf_counter
from typing import Any

from simkv.calibrate.backend import Backend, Tensor, load_torch
from simkv.calibrate.drive import Drive, aligned, padded
from simkv.sim.fabric import DEMAND, WRITE_BACK

Done = Callable[[], None]
MOST_BUFFERS = 8192
"""Pieces of host memory between drive and device."""
_Rows = tuple[Any, Sequence[int]]
"""Memory as rows, and which of them."""


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
        self.release: Done | None = None
        """Gives back the host memory that it holds, at its end."""
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
        if self.release is not None:
            self.release()
        self.ended_s = perf_counter()
        self.error = error
        self._through.set()


class _Job:
    """What one lane has to do for a ticket: ``each`` of so many pieces, and then what follows."""

    __slots__ = ("each", "finish", "next", "pieces", "then", "ticket")

    def __init__(self, ticket: Ticket, each: Callable[[int], object], then: Done, finish: Done | None = None) -> None:
        self.ticket = ticket
        self.pieces = ticket.pieces
        self.each = each
        self.finish = finish
        """Waits until what was begun piece by piece is through; None: it is at once."""
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
            self._queue[:] = [(job.ticket.priority, order, job) for _, order, job in self._queue]
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
        begun, each, queue, ticket = perf_counter(), job.each, self._queue, job.ticket
        try:
            for piece in range(job.next, job.pieces):
                each(piece)
                if queue and piece + 1 < job.pieces and self._gives_way(job, order, piece + 1):
                    ticket.busy_s += perf_counter() - begun
                    return
            if job.finish is not None:
                job.finish()
            ticket.busy_s += perf_counter() - begun
            job.then()
        except BaseException as error:  # whoever waits for it is told
            ticket.end(error)

    def _gives_way(self, job: _Job, order: int, at: int) -> bool:
        if self._queue[0][0] >= job.ticket.priority:
            return False
        job.next = at
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
        self.drive = drive
        self.piece_bytes = piece_bytes
        self.stride = padded(piece_bytes)
        self._hot, self._dram = self._rows(hot), None if dram is None else self._rows(dram)
        self._buffers: deque[int] = deque()
        self._free = threading.Condition()
        if drive is not None:
            number = min(int(hot.shape[0]), MOST_BUFFERS)
            memory, view = aligned(backend, number * self.stride)
            self._bounce = self._rows(memory.view(number, self.stride)[:, :piece_bytes])
            self._views = [view[first : first + self.stride] for first in range(0, len(view), self.stride)]
            self._buffers.extend(range(number))
        self._streams: dict[str, Any] = {}
        if backend.kind == "cuda":
            cuda = load_torch().cuda
            self._streams = {"up": cuda.Stream(), "down": cuda.Stream()}
            backend.synchronize()  # what wrote the memory that was given is on another stream
        self._lanes = {name: _Lane(name) for name in ("read", "up", "down", "write")}
        self._through: deque[Ticket] = deque()

    def _rows(self, memory: Tensor) -> Any:
        """Return memory as rows that are copied by assignment: on a CPU numpy's, which costs less a row."""
        return memory.numpy() if self.backend.kind == "cpu" else memory

    # ---- asking

    def load(
        self, tier: str, places: Sequence[int], slots: Sequence[int], priority: int = DEMAND, done: Done | None = None
    ) -> Ticket:
        """Bring the pieces at ``places`` of ``tier`` (dram or ssd) up to ``slots`` of the hot pool.

        ``done`` is called by a :meth:`poll` after all are there.
        """
        ticket = Ticket(len(places), priority, done)
        if tier == "ssd":
            self._read(ticket, places, slots)
        else:
            self._copy("up", ticket, (self._dram, places), (self._hot, slots), lambda: self._end(ticket))
        return ticket

    def fetch(self, places: Sequence[int], priority: int = DEMAND, done: Done | None = None) -> Ticket:
        """Read the pieces at ``places`` of the drive into host memory, and no further."""
        ticket = Ticket(len(places), priority, done)
        self._read(ticket, places, None)
        return ticket

    def store(
        self, tier: str, places: Sequence[int], slots: Sequence[int], priority: int = WRITE_BACK,
        done: Done | None = None,
    ) -> Ticket:  # fmt: skip
        """Write what is in ``slots`` down to ``places`` of ``tier``."""
        ticket = Ticket(len(places), priority, done)
        if tier == "dram":
            self._copy("down", ticket, (self._hot, slots), (self._dram, places), lambda: self._end(ticket))
            return ticket
        buffers = self._take(ticket)
        then = partial(self._write, ticket, buffers, places)
        self._copy("down", ticket, (self._hot, slots), (self._bounce, buffers), then)
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
        for stream in self._streams.values():
            stream.synchronize()

    # ---- the hops

    def _read(self, ticket: Ticket, places: Sequence[int], slots: Sequence[int] | None) -> None:
        """Read from the drive, then go on up to ``slots`` (None: no further)."""
        drive, views, stride = self.drive, self._views, self.stride
        assert drive is not None
        buffers = self._take(ticket)

        def each(piece: int) -> None:
            drive.read(views[buffers[piece]], places[piece] * stride)

        def then() -> None:
            if slots is None:
                self._end(ticket)
            else:
                self._copy("up", ticket, (self._bounce, buffers), (self._hot, slots), lambda: self._end(ticket))

        self._lanes["read"].put(_Job(ticket, each, then))

    def _write(self, ticket: Ticket, buffers: Sequence[int], places: Sequence[int]) -> None:
        drive, views, stride = self.drive, self._views, self.stride
        assert drive is not None

        def each(piece: int) -> None:
            drive.write(views[buffers[piece]], places[piece] * stride)

        self._lanes["write"].put(_Job(ticket, each, lambda: self._end(ticket)))

    def _copy(self, lane: str, ticket: Ticket, source: _Rows, target: _Rows, then: Done) -> None:
        (sources, at), (targets, into) = source, target
        stream = self._streams.get(lane)
        if stream is None:

            def row(piece: int) -> None:
                targets[into[piece]] = sources[at[piece]]

            self._lanes[lane].put(_Job(ticket, row, then))
            return
        on_stream = load_torch().cuda.stream

        def begin(piece: int) -> None:
            with on_stream(stream):
                targets[into[piece]].copy_(sources[at[piece]], non_blocking=True)

        self._lanes[lane].put(_Job(ticket, begin, then, stream.synchronize))

    def _end(self, ticket: Ticket) -> None:
        self._through.append(ticket)
        ticket.end()

    # ---- host memory between drive and device

    def _take(self, ticket: Ticket) -> list[int]:
        """Return as many buffers as ``ticket`` has pieces, once there are; its end gives them back."""
        assert ticket.pieces <= len(self._views), "a transfer of more pieces than there is host memory for"
        with self._free:
            while len(self._buffers) < ticket.pieces:
                self._free.wait()
            buffers = [self._buffers.popleft() for _ in range(ticket.pieces)]
        ticket.release = partial(self._give, buffers)
        return buffers

    def _give(self, buffers: Sequence[int]) -> None:
        with self._free:
            self._buffers.extend(buffers)
            self._free.notify_all()
