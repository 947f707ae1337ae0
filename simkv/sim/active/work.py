"""What one step has to do: its compute, and by layer what must be in VRAM before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from simkv.sim.active.sequence import Sequence
from simkv.sim.active.traffic import Load, Pieces
from simkv.sim.ledger import Done
from simkv.sim.record.errand import Errand


class Flight:
    """A prefetch on its way: units that were predicted, brought in layer by layer."""

    __slots__ = ("_left", "_on_end", "_waiting", "arrived", "ids", "loads", "service_s", "unread")

    def __init__(self, ids: NDArray[Any], layers: int, on_end: Callable[[Flight], None]) -> None:
        self.ids = ids
        """Arena ids of the units."""
        self.arrived = [False] * layers
        self.loads: dict[int, Load] = {}
        self.unread = len(ids)
        """Units that nobody has read yet, and that weren't evicted either."""
        self.service_s = 0.0
        """Time to bring one of its pieces up on idle lanes."""
        self._left = layers
        self._on_end = on_end
        self._waiting: dict[int, list[Done]] = {}

    def judge(self, fate: int) -> None:
        """Settle what became of all of it that isn't settled."""
        for load in self.loads.values():
            load.judge(fate)

    def layer_arrived(self, layer: int) -> None:
        """Note that the pieces of ``layer`` are here."""
        self.arrived[layer] = True
        self._left -= 1
        if not self._left:
            self._on_end(self)
        for call in self._waiting.pop(layer, ()):
            call()

    def wait_for_all(self, call: Done) -> None:
        """Have ``call`` made once for each layer that isn't here, when its pieces, urgent from now on, are."""
        for layer in self.missing:
            self.wait(layer, call, self.loads[layer].pieces)

    @property
    def missing(self) -> list[int]:
        """Return the layers that aren't here."""
        return [layer for layer, arrived in enumerate(self.arrived) if not arrived]

    def wait(self, layer: int, call: Done, needed: int) -> None:
        """Have ``call`` made when ``layer``, of which ``needed`` pieces are, is here; it is urgent from now on."""
        self._waiting.setdefault(layer, []).append(call)
        self.loads[layer].urge(needed)


@dataclass(slots=True)
class Late:
    """A prefetch of a step before that this one needs something of."""

    flight: Flight
    units: list[int]
    """By layer group, how many units."""
    first: list[int]
    """Of them, those that are read for the first time since they were fetched."""


@dataclass(slots=True)
class Whole:
    """A block that is loaded in all its layers at once."""

    from_ssd: bool
    errand: Errand
    load: Load | None = None
    """Once it has begun."""

    def judge(self, fate: int) -> None:
        """Settle what became of it, where it was fetched ahead of need."""
        self.errand.judge(fate)
        if self.load is not None:
            self.load.judge(fate)


@dataclass(slots=True)
class Work:
    """One step, as the pipeline runs it."""

    layers: int
    resident: list[int]
    """By layer group: units read that are resident when the step begins."""
    demand: list[Pieces]
    """By layer group: what each of its layers must load."""
    compute_s: float = 0.0
    reads: int = 0
    """(block, layer) pieces that decoding reads, and that prompts under way stream."""
    read_tokens: int = 0
    """Tokens whose KV decoding reads, over all sequences."""
    late: list[Late] = field(default_factory=list)
    flights: list[Flight] = field(default_factory=list)
    """Prefetches begun with this step."""
    host_s: float = 0.0
    """CPU time before the step can be launched."""
    one_by_one: list[Whole] | None = None
    """In order, blocks that are loaded whole and one at a time instead of by layer."""
    streamed: dict[Sequence, tuple[int, int]] = field(default_factory=dict)
    """Dense access: by sequence what each layer streams, blocks from DRAM and from SSD."""
    streams: bool = False
    """The next step will read the same again, and more."""

    def count_reads(self) -> None:
        """Note how many pieces are read: resident, on their way, or to be loaded."""
        for group, resident in enumerate(self.resident):
            late = sum(one.units[group] for one in self.late)
            self.reads += (resident + late + len(self.demand[group])) * self.layers_of(group)

    def group(self, layer: int) -> int:
        """Return the layer group that ``layer`` belongs to."""
        return group_of(layer, self.layers, len(self.demand))

    def moves(self, layer: int) -> bool:
        """Whether ``layer`` needs anything that isn't resident."""
        group = self.group(layer)
        return len(self.demand[group]) > 0 or any(late.units[group] for late in self.late)

    def layers_of(self, group: int) -> int:
        """Return how many layers ``group`` has."""
        return layers_in(group, self.layers, len(self.demand))


def group_of(layer: int, layers: int, groups: int) -> int:
    """Return which of ``groups`` layer groups ``layer`` belongs to: they are as equal as can be."""
    return layer * groups // layers


def layers_in(group: int, layers: int, groups: int) -> int:
    """Return how many layers ``group`` has."""
    return -(-(group + 1) * layers // groups) - -(-group * layers // groups)
