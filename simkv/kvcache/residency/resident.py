"""The units that running sequences keep in VRAM when each step reads only some of them.

A *unit* is (block, layer group) of one sequence; a sequence has a region of the arena, and its units are
``base + unit``. Residency is earned: what a step reads and doesn't find is let in, and the eviction policy says who
makes room. A step of an engine is ``resident``, ``touch``, ``admit`` of what is missing, ``arrived``.

Ids are arrays that hold each unit once. Their order decides who gets the room that there is (``admit``, ``place``),
and nothing in ``touch``: reads of one step are equally recent, and ties go to the tail.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simkv.errors import InputError, Problem
from simkv.kvcache.eviction.base import DEFAULT_PRIORITY
from simkv.kvcache.residency.counts import make_count
from simkv.kvcache.residency.in_order import InOrder, Turns
from simkv.kvcache.residency.orders import check_count, make_order
from simkv.kvcache.residency.ranked import RANKED
from simkv.kvcache.residency.regions import Regions
from simkv.kvcache.residency.units import ABSENT, NOBODY, PENDING, RESIDENT, AnyIds, Flags, Ids, Units


class Admitted(NamedTuple):
    """Who got room, and who made it."""

    entered: Ids
    """In the order asked for; what isn't among them found no room."""
    evicted: Ids
    """First to go first."""
    evicted_dirty: Ids
    """Those of ``evicted`` that were not written down yet."""


class ResidentSet:
    """Which units are in VRAM, by one of the eviction policies.

    ``policy``: ``lru``, ``lfu``, ``fifo``, ``priority`` and ``score`` choose the victims of one admission at once,
    over columns (``ranked.py``); the others, and these too with ``one_by_one``, choose them one by one with the
    policy object of ``kvcache/eviction``. ``lam`` is the λ of ``score``; ``count`` and ``half_life`` (in steps) say
    how ``lfu`` and ``score`` count uses (``counts.py``). ``incoming="candidate"`` is for reads in order alone
    (``in_order.py``). InputError for anything that doesn't fit.
    """

    def __init__(
        self,
        policy: str,
        lam: float | None = None,
        count: str = "in_cache",
        half_life: float | None = None,
        incoming: str = "protected",
        one_by_one: bool = False,
    ) -> None:
        self.policy = policy
        self.capacity_units = 0
        """May be set at any time; below ``used_units``, ``trim`` makes good for it."""
        self.used_units = 0
        """Units resident, or pending: on their way."""
        self._count = make_count(count, half_life)
        self._units = Units(count == "decayed")
        self._ranked = policy in RANKED and not one_by_one
        self._order = make_order(policy, self._units, lam, one_by_one)
        check_count(policy, count, self._ranked)
        self._turns = Turns(self._units, incoming)
        if incoming == "candidate":
            self._check_in_order()
        self._by_turns: bool | None = True if incoming == "candidate" else None  # None: not known yet
        self._regions = Regions()
        self._step = 0

    # --- sequences ---------------------------------------------------------------------------------------------

    def open(self, units: int, priority: int = DEFAULT_PRIORITY) -> int:
        """Return the base of a region for a sequence of at most ``units`` units; ``priority``: higher stays longer."""
        base = self._regions.take(units)
        self._units.ensure(self._regions.end)
        self._units.blank(base, units, priority)
        self._order.opened(base, units)
        return base

    def close(self, base: int) -> int:
        """Forget a region, which may be handed out again; returns how many of its units were resident or pending.

        Transfers to it must have been dropped: a later ``arrived`` would be the next owner's.
        """
        units = self._regions.units(base)
        self._order.closed(base, units)
        region = slice(base, base + units)
        held = int(np.count_nonzero(self._units.state[region]))
        self._units.blank(base, units, 0)
        self._regions.give(base)
        self.used_units -= held
        return held

    # --- what is where -----------------------------------------------------------------------------------------

    def resident(self, ids: AnyIds) -> Flags:
        """Return which of ``ids`` are here now; pending ones are not."""
        here: Flags = self._units.state[ids] == RESIDENT
        return here

    def pending(self, ids: AnyIds) -> Flags:
        """Return which of ``ids`` have room and are on their way."""
        coming: Flags = self._units.state[ids] == PENDING
        return coming

    def states(self, base: int) -> NDArray[np.uint8]:
        """Return the region's column of states, ``ABSENT``, ``PENDING`` or ``RESIDENT``; not to be changed."""
        return self._units.state[base : base + self._regions.units(base)]

    @property
    def fades(self) -> bool:
        """Whether uses count for less as they age."""
        return self._units.decayed

    def uses(self, base: int) -> NDArray[Any]:
        """Return the region's column of uses, as they are counted; not to be changed."""
        return self._units.uses[base : base + self._regions.units(base)]

    def dirty(self, ids: AnyIds) -> Flags:
        """Return which of ``ids`` are resident and not written down as they are."""
        return self._units.dirty[ids]

    # --- one step ----------------------------------------------------------------------------------------------

    def touch(self, ids: AnyIds, step: int) -> None:
        """Note that ``step`` reads ``ids``, in or not: their recency and, once a call, their count."""
        self._enter_step(step)
        read: Ids = np.asarray(ids, np.intp)
        self._count.read(self._units, read, step)
        self._units.last[read] = step
        self._order.touched(read)

    def admit(self, ids: AnyIds, step: int, protect: AnyIds) -> Admitted:
        """Reserve room for those of ``ids`` that are not in, which makes them pending and as recent as ``step``.

        Room that lacks is made by eviction, never of ``protect`` or of what is pending. Where that isn't enough the
        last of ``ids`` go without, and nobody is evicted in vain.
        """
        self._enter_step(step)
        wanted = self._units.absent(ids)
        room = self.capacity_units - self.used_units
        evicted, evicted_dirty = NOBODY, NOBODY
        if wanted.size > room:
            offered = self._order.offer(protect, self.capacity_units)
            wanted = wanted[: max(0, room + offered)]
            if wanted.size > room and wanted.size:
                evicted, evicted_dirty = self._evict(wanted.size - room, wanted)
        self._count.enters(self._units, wanted, step)
        self._units.state[wanted] = PENDING
        self._units.last[wanted] = step
        self._units.entered[wanted] = step
        self.used_units += wanted.size
        return Admitted(wanted, evicted, evicted_dirty)

    def arrived(self, ids: AnyIds) -> None:
        """Make those of ``ids`` that are pending resident; others are no longer awaited and stay as they are."""
        here: Ids = np.asarray(ids, np.intp)
        here = here[self._units.state[here] == PENDING]
        self._units.state[here] = RESIDENT
        self._order.arrived(here)

    def place(self, ids: AnyIds, step: int, dirty: bool = False, protect: AnyIds = NOBODY) -> Admitted:
        """Make ``ids`` resident at once, as far as there is room or room can be made without ``protect``.

        For what is computed here: a prefill's newest units, new KV. ``dirty`` marks it as not written down, also
        where it was in already (a block that grows). Where reads are taken in order they come in one at a time, as
        recent as the last read; with ``incoming="candidate"`` some may be among the evicted.
        """
        if self._by_turns:
            admitted = self._place_in_order(ids, step)
        else:
            self.arrived(ids)
            admitted = self.admit(ids, step, np.append(protect, ids))
            self.arrived(admitted.entered)
        if dirty:
            self.mark_dirty(ids)
        return admitted

    def trim(self, step: int, protect: AnyIds) -> Admitted:
        """Evict until ``capacity_units`` holds again, or nothing is left but what is pending or in ``protect``."""
        self._enter_step(step, bool(self._by_turns))
        over = self.used_units - self.capacity_units
        if over <= 0:
            return Admitted(NOBODY, NOBODY, NOBODY)
        evictable = self._order.offer(protect, self.capacity_units)
        return Admitted(NOBODY, *self._evict(min(over, evictable), NOBODY))

    # --- written down, or not ----------------------------------------------------------------------------------

    def mark_dirty(self, ids: AnyIds) -> None:
        """Note that those of ``ids`` that are resident have changed since they were written down."""
        self._units.dirty[ids] = self._units.state[ids] == RESIDENT

    def clean(self, ids: AnyIds) -> None:
        """Note that ``ids`` are written down as they are."""
        self._units.dirty[ids] = False

    # --- reads in order ----------------------------------------------------------------------------------------

    def read_in_order(self, ids: AnyIds, step: int) -> InOrder:
        """Read ``ids`` one at a time; what isn't in is loaded at once, and makes room before the next is looked for.

        For ``lru`` on columns, and not to be mixed with ``touch`` and ``admit``: recency counts reads here, not steps.
        """
        self._enter_step(step, by_turns=True)
        return self._moved(self._turns.read(np.asarray(ids, np.intp), self.capacity_units - self.used_units))

    def prefetch_in_order(self, ids: AnyIds) -> InOrder:
        """Load ``ids`` in the same way, without reading them: as recent as the last read, which is no turn."""
        self._enter_step(self._step, by_turns=True)
        return self._moved(self._turns.prefetch(np.asarray(ids, np.intp), self.capacity_units - self.used_units))

    # --- inside ------------------------------------------------------------------------------------------------

    def check_integrity(self) -> None:
        """Raise AssertionError where counters and columns contradict each other."""
        units = self._units
        held = np.flatnonzero(units.state)
        assert held.size == self.used_units, f"{self.used_units} used, {held.size} in the columns"
        assert not units.dirty[units.state != RESIDENT].any(), "dirty and not resident"
        assert not units.scratch.any(), "marks left behind"
        opened = np.zeros(len(units), np.bool_)
        for base, size in self._regions.open():
            assert not opened[base : base + size].any(), "regions overlap"
            opened[base : base + size] = True
        assert opened[held].all(), "held by nobody"
        known = self._order.known()
        assert known is None or np.array_equal(known, np.flatnonzero(units.state == RESIDENT)), "order and columns"

    def _enter_step(self, step: int, by_turns: bool = False) -> None:
        assert step >= self._step, f"step {step} after step {self._step}"
        if self._by_turns is None:
            if by_turns:
                self._check_in_order()
            self._by_turns = by_turns
        assert self._by_turns == by_turns, "a set goes by steps or by reads in order, not by both"
        self._step = step

    def _check_in_order(self) -> None:
        if self.policy != "lru" or not self._ranked:
            mend = "choose lru, on columns"
            raise InputError(Problem("only lru reads in order", mend, path="policy", value=self.policy))

    def _evict(self, most: int, incoming: Ids) -> tuple[Ids, Ids]:
        units = self._units
        evicted = self._order.victims(most, incoming)
        evicted_dirty = evicted[units.dirty[evicted]]
        units.state[evicted] = ABSENT
        units.dirty[evicted_dirty] = False
        self._count.leaves(units, evicted)
        self.used_units -= evicted.size
        return evicted, evicted_dirty

    def _place_in_order(self, ids: AnyIds, step: int) -> Admitted:
        self._enter_step(step, by_turns=True)
        moved = self.prefetch_in_order(ids)
        return Admitted(moved.missed[self.resident(moved.missed)], moved.evicted, moved.evicted_dirty)

    def _moved(self, moved: InOrder) -> InOrder:
        self.used_units += moved.missed.size - moved.evicted.size
        evicted_dirty = np.unique(moved.evicted[self._units.dirty[moved.evicted]])
        self._units.dirty[evicted_dirty] = False
        return moved._replace(evicted_dirty=evicted_dirty)
