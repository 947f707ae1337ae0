"""The hot pool: which unit of KV is in which slot, and what lies below it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from simkv.calibrate.backend import Backend, Tensor, load_torch
from simkv.calibrate.drive import Drive, aligned
from simkv.calibrate.model import Decoder

_NUMBERS = 1 << 22
"""Random numbers that pieces are cut from: each begins at another one."""
_STRIDE = 977


class HotPool:
    """Slots for whole units (a block of all layers) in device memory; a unit's pieces lie layer by layer.

    The piece of ``unit``'s layer is row ``layer * slots + where[unit]`` of ``pieces``.
    """

    def __init__(self, backend: Backend, model: Decoder, slots: int, block_tokens: int) -> None:
        self.slots = slots
        self.layers = model.layers
        rows, width = slots * model.layers, model.piece_bytes(block_tokens)
        self.memory = backend.device_memory(rows * width).view(rows, width)
        self.pieces = model.view_pool(self.memory)
        self.where: dict[int, int] = {}
        """By unit: its slot."""
        self._free = list(range(slots - 1, -1, -1))

    def row(self, unit: int, layer: int) -> int:
        """Return the row that holds ``unit``'s piece of ``layer``."""
        return layer * self.slots + self.where[unit]

    def take(self, units: Iterable[int]) -> None:
        """Give every one of ``units`` a slot."""
        for unit in units:
            self.where[unit] = self._free.pop()

    def give(self, units: Iterable[int]) -> None:
        """Take the slots of ``units`` back."""
        for unit in units:
            self._free.append(self.where.pop(unit))


class ColdStore:
    """The pieces below: on the drive all units have a place, in host memory as many as it holds.

    Every unit begins with random KV of its own, the same in every run.
    """

    def __init__(
        self, backend: Backend, model: Decoder, units: int, dram_units: int, drive: Drive | None, block_tokens: int
    ) -> None:
        self.layers = model.layers
        self.units = units
        self.dram_units = dram_units
        self.piece_bytes = model.piece_bytes(block_tokens)
        self.drive = drive
        torch = load_torch()
        generator = torch.Generator().manual_seed(1)
        width = max(_NUMBERS, self.piece_bytes)
        numbers = torch.empty(width, dtype=backend.torch_dtype).normal_(generator=generator)
        self._random = numbers.repeat(2).view(torch.uint8)
        self._item = int(backend.torch_dtype.itemsize)
        self._width = width
        rows = dram_units * self.layers
        self.dram = backend.host_memory(max(1, rows) * self.piece_bytes, True).view(-1, self.piece_bytes)
        self._in_dram: dict[int, int] = {}
        self._backend = backend

    def place(self, tier: str, unit: int, layer: int) -> int:
        """Return where ``unit``'s piece of ``layer`` lies in ``tier``."""
        if tier == "dram":
            unit = self._in_dram.setdefault(unit, len(self._in_dram))
            assert unit < self.dram_units, "more units in host memory than it holds"
        return unit * self.layers + layer

    def content(self, unit: int, layer: int) -> Tensor:
        """Return the bytes that ``unit``'s piece of ``layer`` begins with."""
        first = (unit * self.layers + layer) * _STRIDE % self._width * self._item
        return self._random[first : first + self.piece_bytes]

    def fill(self, stride: int) -> None:
        """Write the content of every unit to the drive, ``stride`` bytes a piece."""
        assert self.drive is not None
        memory, view = aligned(self._backend, self.layers * stride)
        rows = memory.view(self.layers, stride)
        for unit in range(self.units):
            for layer in range(self.layers):
                rows[layer, : self.piece_bytes].copy_(self.content(unit, layer))
            self.drive.write(view, unit * self.layers * stride)

    def begin(self, unit: int) -> None:
        """Put ``unit``, whose home is host memory, there."""
        for layer in range(self.layers):
            self.dram[self.place("dram", unit, layer)].copy_(self.content(unit, layer))

    def forget(self) -> None:
        """Let another run decide what is in host memory."""
        self._in_dram.clear()


def units_of(ids: np.ndarray) -> list[int]:
    """Return ids as plain numbers."""
    units: list[int] = ids.tolist()
    return units
