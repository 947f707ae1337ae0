"""One lane of the copy engine with pieces of KV to carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from types import TracebackType

from simkv.calibrate.copies import CopyEngine, Ticket
from simkv.calibrate.drive import Drive, padded
from simkv.calibrate.measure.kvpool import BLOCK_TOKENS, cold_bytes
from simkv.calibrate.measure.places import Places
from simkv.calibrate.measure.without_pause import without_pause
from simkv.calibrate.model import Decoder
from simkv.calibrate.task import Bench
from simkv.profile.schema import Lane

LEAST_PIECE_BYTES = 64 << 10
PIECES = 32
"""Of one transfer, unless said otherwise."""
_IN_FLIGHT = 2
"""Transfers: the lane finds the next one when it has carried one."""


def piece_bytes_of(model: Decoder) -> int:
    """Return the bytes of a piece: of a block as verification moves it, or of so many that they make 64 KiB."""
    tokens = BLOCK_TOKENS
    while model.piece_bytes(tokens) < LEAST_PIECE_BYTES:
        tokens *= 2
    return model.piece_bytes(tokens)


class Carrier:
    """Transfers on ``lane``, each of pieces in the next random places; a context manager.

    ``ssd_read`` reads into host memory, no further; ``ssd_write`` copies down what it writes, as a run has to.
    """

    def __init__(self, bench: Bench, model: Decoder, lane: Lane, pieces: int = PIECES, up: bool = False) -> None:
        """``up``: what is read goes on up to the device, as a run's loads do."""
        self._pieces = pieces
        backend, nbytes = bench.backend, piece_bytes_of(model)
        on_drive = lane in ("ssd_read", "ssd_write")
        slots = 2 * _IN_FLIGHT * pieces if on_drive else max(4 * pieces, cold_bytes(backend) // nbytes)
        hot = backend.device_memory(slots * nbytes).view(slots, nbytes)
        dram = None if on_drive else backend.host_memory(slots * nbytes, pinned=True).view(slots, nbytes)
        places = 4 * slots if on_drive else slots
        self._slots, self._places = Places(slots, f"{lane}/slots"), Places(places, f"{lane}/places")
        self._submit = _load if up else _SUBMIT[lane]
        with ExitStack() as opened:
            drive: Drive | None = None
            if on_drive:
                assert bench.ssd_path is not None
                drive = opened.enter_context(Drive(bench.ssd_path, places * padded(nbytes)))
            self._engine = opened.enter_context(closing(CopyEngine(backend, hot, dram, drive, nbytes)))
            self._opened = opened.pop_all()

    def __enter__(self) -> Carrier:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._opened.close()

    def transfer(self) -> None:
        """Carry one transfer, from handing it over until it is through."""
        self._begin().wait()
        self._engine.poll()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Have the lane carry without pause: another transfer waits whenever one ends."""
        flying: list[Ticket] = []

        def keep_flying() -> None:
            while len(flying) < _IN_FLIGHT:
                flying.append(self._begin())
            flying.pop(0).wait()
            self._engine.poll()

        with without_pause(keep_flying):
            yield
        for ticket in flying:
            ticket.wait()
        self._engine.poll()

    def _begin(self) -> Ticket:
        return self._submit(self._engine, self._places.take(self._pieces), self._slots.take(self._pieces))


def _up(engine: CopyEngine, places: list[int], slots: list[int]) -> Ticket:
    return engine.load("dram", places, slots)


def _down(engine: CopyEngine, places: list[int], slots: list[int]) -> Ticket:
    return engine.store("dram", places, slots)


def _read(engine: CopyEngine, places: list[int], slots: list[int]) -> Ticket:
    return engine.fetch(places)


def _load(engine: CopyEngine, places: list[int], slots: list[int]) -> Ticket:
    return engine.load("ssd", places, slots)


def _write(engine: CopyEngine, places: list[int], slots: list[int]) -> Ticket:
    return engine.store("ssd", places, slots)


_SUBMIT: dict[Lane, Callable[[CopyEngine, list[int], list[int]], Ticket]] = {
    "h2d": _up,
    "d2h": _down,
    "ssd_read": _read,
    "ssd_write": _write,
}
