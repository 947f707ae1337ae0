"""Copies between host and device memory, as a run makes them: handed to the copy engine, until they are through.

Each repeat takes other places of pools that the last-level cache can't serve (four times its size, within an eighth of
free memory), in a seeded order, at both ends. On a CPU the device's memory is the host's, all of it is pageable, and
the copy is one thread's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial

from simkv.calibrate.backend import Backend, Tensor, load_torch, repeated, repeats_take, wall_s
from simkv.calibrate.copies import CopyEngine
from simkv.calibrate.measure.between import between
from simkv.calibrate.measure.pace import piece_bytes
from simkv.calibrate.measure.places import Places
from simkv.calibrate.measure.topology import beyond_caches_bytes, free_device_bytes, free_host_bytes
from simkv.calibrate.task import Bench, Task
from simkv.profile.schema import Sample

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_QUICK = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB)
_FULL = (*_QUICK, 256 * MIB)
_PIECES = (1, 4, 16, 64)
_DUPLEX = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB)
_DUPLEX_PIECES = (1, 16)
_BUFFERS = (256 * MIB, GIB, 4 * GIB, 8 * GIB, 16 * GIB)
_FROM_BUFFER, _BUFFER_PIECE = 256 * MIB, 4 * MIB
_BYTES_PER_S = {"pageable": 5e9, "pinned": 2e10}
_PIECE_S, _SETUP_S, _TOUCHED_PER_S = 1e-5, 1e-4, 1e9
"""For estimates of the time alone."""


class _Pools:
    """The memory that pieces lie in, made when first asked for and shared by all tasks."""

    def __init__(self, backend: Backend, most_bytes: int) -> None:
        self._backend = backend
        room = min(free_host_bytes(), free_device_bytes(backend)) // 8
        self.nbytes = max(MIB, min(max(beyond_caches_bytes(), 2 * most_bytes), room) // MIB * MIB)

    @cached_property
    def hot(self) -> Tensor:
        """Return the device's end."""
        return self._backend.device_memory(self.nbytes)

    @cached_property
    def pinned(self) -> Tensor:
        """Return the host's end where the GPU may reach it."""
        return self._backend.host_memory(self.nbytes, pinned=True)

    @cached_property
    def pageable(self) -> Tensor:
        """Return the host's end as any program has it."""
        return self._backend.host_memory(self.nbytes, pinned=False)

    def host(self, memory: str) -> Tensor:
        """Return the host's end, ``pinned`` or ``pageable``."""
        return self.pinned if memory == "pinned" else self.pageable


@dataclass(frozen=True)
class _Point:
    """One transfer that is measured."""

    kind: str
    memory: str
    piece_bytes: int
    pieces: int

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.memory}/{self.piece_bytes}x{self.pieces}"

    @property
    def once_s(self) -> float:
        nbytes = self.piece_bytes * self.pieces
        return _SETUP_S + self.pieces * _PIECE_S + nbytes / _BYTES_PER_S[self.memory]


def tasks(bench: Bench) -> Iterator[Task]:
    """Yield copies in one direction over sizes and pieces, then in both at once; on a GPU also from large buffers."""
    sizes, most_bytes = (_QUICK, 64 * MIB) if bench.quick else (_FULL, 256 * MIB)
    sizes = tuple(sorted({*sizes, piece_bytes(bench)}))
    pools = _Pools(bench.backend, most_bytes)
    touching_s = 2 * pools.nbytes / _TOUCHED_PER_S
    for point in _points(bench, sizes, min(most_bytes, pools.nbytes // 2)):
        estimate_s = repeats_take(point.once_s, bench.budget_s) + touching_s
        touching_s = 0.0
        yield Task(point.key, estimate_s, partial(_transfer, bench, pools, point))
    buffers = [nbytes for nbytes in _BUFFERS if nbytes <= free_host_bytes() // 4]
    if bench.backend.kind == "cuda" and not bench.quick and buffers:
        estimate_s = 2 * buffers[-1] / _TOUCHED_PER_S + 2 * len(buffers) * bench.budget_s
        yield Task("buffers/pinned", estimate_s, partial(_buffers, bench, buffers, _FROM_BUFFER))


def _points(bench: Bench, sizes: tuple[int, ...], most_bytes: int) -> Iterator[_Point]:
    memories = ("pinned", "pageable") if bench.backend.kind == "cuda" else ("pageable",)
    for memory in memories:
        for kind in ("h2d", "d2h"):
            for size in sizes:
                yield from (_Point(kind, memory, size, n) for n in _PIECES if n * size <= most_bytes)
        for size in _DUPLEX:
            yield from (_Point("duplex", memory, size, n) for n in _DUPLEX_PIECES if n * size <= most_bytes)


def _transfer(bench: Bench, pools: _Pools, point: _Point) -> list[Sample]:
    slots = pools.nbytes // point.piece_bytes
    hot, dram = (
        memory[: slots * point.piece_bytes].view(slots, point.piece_bytes)
        for memory in (pools.hot, pools.host(point.memory))
    )
    sources, targets = Places(slots, f"{point.key}/host"), Places(slots, f"{point.key}/device")
    compute = between(bench)
    with closing(CopyEngine(bench.backend, hot, dram, None, point.piece_bytes)) as engine:

        def once() -> float:
            compute()
            number = (2 if point.kind == "duplex" else 1) * point.pieces
            return wall_s(partial(_CARRY[point.kind], engine, sources.take(number), targets.take(number)))

        seconds = repeated(once, bench.budget_s)
    return [
        Sample(
            kind=point.kind,
            at={"bytes": point.piece_bytes, "pieces": point.pieces, "memory": point.memory},
            seconds=seconds,
        )
    ]


def _up(engine: CopyEngine, places: list[int], slots: list[int]) -> None:
    engine.load("dram", places, slots).wait()


def _down(engine: CopyEngine, places: list[int], slots: list[int]) -> None:
    engine.store("dram", places, slots).wait()


def _both(engine: CopyEngine, places: list[int], slots: list[int]) -> None:
    half = len(places) // 2
    up, down = engine.load("dram", places[:half], slots[:half]), engine.store("dram", places[half:], slots[half:])
    up.wait()
    down.wait()


_CARRY: dict[str, Callable[[CopyEngine, list[int], list[int]], None]] = {"h2d": _up, "d2h": _down, "duplex": _both}


def _buffers(bench: Bench, sizes: list[int], nbytes: int) -> Iterator[Sample]:
    """Yield copies of ``nbytes`` from and to places spread over the first bytes of one large buffer."""
    device = bench.backend.device_memory(nbytes).view(-1, _BUFFER_PIECE)
    with _locked(bench.backend, sizes[-1]) as memory:
        for size in sizes:
            host = memory[:size].view(-1, _BUFFER_PIECE)
            for kind in ("h2d_buffer", "d2h_buffer"):
                places = Places(len(host), f"{kind}/{size}")
                seconds = bench.backend.time(partial(_spread, kind, host, device, places), bench.budget_s)
                yield Sample(
                    kind=kind,
                    at={"buffer_bytes": size, "bytes": nbytes, "memory": "pinned"},
                    seconds=seconds,
                )


def _spread(kind: str, host: Tensor, device: Tensor, places: Places) -> None:
    for slot, place in enumerate(places.take(len(device))):
        here, there = (host[place], device[slot]) if kind == "h2d_buffer" else (device[slot], host[place])
        there.copy_(here, non_blocking=True)


@contextmanager
def _locked(backend: Backend, nbytes: int) -> Iterator[Tensor]:
    """Give host memory that the GPU may reach, and take it back: torch would keep what it pins until the end."""
    memory = backend.host_memory(nbytes, pinned=False)
    if backend.kind == "cpu":
        yield memory
        return
    cuda = load_torch().cuda
    cuda.check_error(cuda.cudart().cudaHostRegister(memory.data_ptr(), nbytes, 0))
    try:
        yield memory
    finally:
        cuda.synchronize()
        cuda.check_error(cuda.cudart().cudaHostUnregister(memory.data_ptr()))
