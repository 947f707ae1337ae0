"""Reads and writes of a drive, at random places of a file, by the number of requests at a time.

One at a time is what loads do: a thread of the copy engine reads piece after piece into host memory. More at a time are
as many threads. Past the page cache where the file system lets one (``direct``); the drive's own cache may still serve
bursts as short as these. Waiting for the drive to have what was written isn't part of a write, unless that is the only
way past the page cache.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from simkv.calibrate.backend import repeated, repeats_take, wall_s
from simkv.calibrate.copies import CopyEngine
from simkv.calibrate.drive import ALIGNMENT, Drive, aligned, padded
from simkv.calibrate.measure.between import between
from simkv.calibrate.measure.pace import piece_bytes
from simkv.calibrate.measure.places import Places
from simkv.calibrate.measure.threads import on_all
from simkv.calibrate.task import Bench, Task
from simkv.errors import InputError, Problem
from simkv.profile.schema import Sample
from simkv.rng import stream

KIB, MIB = 1 << 10, 1 << 20
_PIECES, _DEPTHS = (1, 4, 16, 64), (4, 16)
_SHARE_OF_FREE = 10
"""At most one part in so many of what is free on the drive is written."""
_BYTES_PER_S, _REQUEST_S, _SETUP_S = 1e9, 1e-4, 1e-4
"""For estimates of the time alone."""


@dataclass(frozen=True)
class _Extent:
    """How much of the drive is used, and how."""

    sizes: tuple[int, ...]
    file_bytes: int
    most_bytes: int
    """Of one repeat."""


_QUICK = _Extent((16 * KIB, 64 * KIB, 256 * KIB, MIB), 256 * MIB, 8 * MIB)
_FULL = _Extent((4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB), 2048 * MIB, 64 * MIB)


class _File:
    """The file that requests go to: made when first asked for, gone with the last task that holds it."""

    def __init__(self, folder: Path, nbytes: int) -> None:
        self.folder = folder
        self.nbytes = nbytes

    @cached_property
    def drive(self) -> Drive:
        """Return the open file, which has no name any more and so can't stay behind."""
        drive = Drive(self.folder, self.nbytes)
        weakref.finalize(self, drive.close)
        return drive


@dataclass(frozen=True)
class _Point:
    """Requests that are measured together."""

    kind: str
    request_bytes: int
    pieces: int
    depth: int

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.request_bytes}x{self.pieces}/{self.depth}"

    @property
    def once_s(self) -> float:
        return _SETUP_S + self.pieces * (_REQUEST_S / self.depth + self.request_bytes / _BYTES_PER_S)


def tasks(bench: Bench) -> Iterator[Task]:
    """Yield all reads, then all writes; nothing without a folder.

    Raises :class:`InputError` for a folder that isn't there, can't be written or is too full.
    """
    if bench.ssd_path is None:
        return
    extent = _QUICK if bench.quick else _FULL
    file = _File(bench.ssd_path, _file_bytes(bench.ssd_path, extent))
    making_s = file.nbytes / _BYTES_PER_S
    for kind in ("ssd_read", "ssd_write"):
        for point in _points(kind, extent, piece_bytes(bench)):
            estimate_s = repeats_take(point.once_s, bench.budget_s) + making_s
            making_s = 0.0
            yield Task(point.key, estimate_s, partial(_requests, bench, file, point))


def _points(kind: str, extent: _Extent, piece: int) -> Iterator[_Point]:
    for size in sorted({*extent.sizes, padded(piece)}):
        fits = extent.most_bytes // size
        yield from (_Point(kind, size, n, 1) for n in _PIECES if n <= fits)
        yield from (_Point(kind, size, min(4 * depth, fits), depth) for depth in _DEPTHS if depth <= fits)


def _file_bytes(folder: Path, extent: _Extent) -> int:
    """Return the size of the file, within what may be used of the drive."""
    with Drive(folder, ALIGNMENT, fill=False):
        free = shutil.disk_usage(folder).free
    least = 4 * extent.most_bytes
    nbytes = min(extent.file_bytes, free // _SHARE_OF_FREE // MIB * MIB)
    if nbytes < least:
        what = f"{free // MIB} MiB are free, and {_SHARE_OF_FREE * least // MIB} MiB must be to measure the drive"
        raise InputError(Problem(what, "make room, or name another folder", path="--ssd-path", value=str(folder)))
    return nbytes


def _requests(bench: Bench, file: _File, point: _Point) -> list[Sample]:
    drive = file.drive
    places = Places(file.nbytes // point.request_bytes, point.key)
    measured = _one_reader if (point.kind, point.depth) == ("ssd_read", 1) else _threads
    seconds = measured(bench, drive, point, places)
    at: dict[str, float | int | str | bool] = {"bytes": point.request_bytes, "pieces": point.pieces}
    return [Sample(kind=point.kind, at=at | {"depth": point.depth, "direct": drive.direct}, seconds=seconds)]


def _one_reader(bench: Bench, drive: Drive, point: _Point, places: Places) -> tuple[float, ...]:
    nowhere = bench.backend.device_memory(0).view(point.pieces, 0)
    compute = between(bench)
    with closing(CopyEngine(bench.backend, nowhere, None, drive, point.request_bytes)) as engine:

        def once() -> float:
            compute()
            taken = places.take(point.pieces)
            return wall_s(lambda: engine.fetch(taken).wait())

        return repeated(once, bench.budget_s)


def _threads(bench: Bench, drive: Drive, point: _Point, places: Places) -> tuple[float, ...]:
    size = point.request_bytes
    memory, view = aligned(bench.backend, point.pieces * size)
    memory.numpy()[:] = stream(0, point.key).integers(0, 256, len(view), "uint8")
    access = drive.read if point.kind == "ssd_read" else drive.write

    def some(thread: int, taken: list[int]) -> None:
        for piece in range(thread, point.pieces, point.depth):
            access(view[piece * size : (piece + 1) * size], taken[piece] * size)

    with ThreadPoolExecutor(point.depth, "simkv-ssd") as pool:

        def once() -> float:
            seconds = wall_s(partial(on_all, pool, range(point.depth), partial(some, taken=places.take(point.pieces))))
            if point.kind == "ssd_write":
                drive.sync()
            return seconds

        return repeated(once, bench.budget_s)
