"""A resident set in dicts and loops, for tests to hold the real one against: ranked policies, unit by unit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf


@dataclass
class Unit:
    """What is known of a unit, here or not."""

    local: int
    priority: int
    state: str = "absent"
    dirty: bool = False
    last: int = -1
    entered: int = -1
    reads: list[int] = field(default_factory=list)
    """Steps that read it since it came in, or the read that may bring it in."""
    all_reads: list[int] = field(default_factory=list)


@dataclass
class NaiveSet:
    """The documented rules, each choice by sorting everything anew."""

    policy: str
    lam: Fraction = Fraction(0)
    count: str = "in_cache"
    half_life: int = 1
    capacity: int = 0
    units: dict[int, Unit] = field(default_factory=dict)

    def open(self, base: int, units: int, priority: int) -> None:
        for local in range(units):
            self.units[base + local] = Unit(local, priority)

    def close(self, base: int, units: int) -> int:
        return sum(self.units.pop(base + local).state != "absent" for local in range(units))

    def used(self) -> int:
        return sum(unit.state != "absent" for unit in self.units.values())

    def touch(self, ids: Iterable[int], step: int) -> None:
        for unit in (self.units[i] for i in ids):
            unit.reads = [*(unit.reads if unit.state != "absent" else []), step]
            unit.all_reads.append(step)
            unit.last = step

    def admit(self, ids: list[int], step: int, protect: Iterable[int]) -> tuple[list[int], list[int], list[int]]:
        wanted = [i for i in ids if self.units[i].state == "absent"]
        room = self.capacity - self.used()
        going = self._in_order(protect)
        wanted = wanted[: max(0, room + len(going))]
        gone = going[: max(0, len(wanted) - room)] if wanted else []
        dirty = self._evict(gone)
        for unit in (self.units[i] for i in wanted):
            unit.reads = unit.reads if unit.last == step else []
            unit.state, unit.last, unit.entered = "pending", step, step
        return wanted, gone, dirty

    def trim(self, protect: Iterable[int]) -> tuple[list[int], list[int]]:
        gone = self._in_order(protect)[: max(0, self.used() - self.capacity)]
        return gone, self._evict(gone)

    def arrived(self, ids: Iterable[int]) -> None:
        for unit in (self.units[i] for i in ids):
            unit.state = "resident" if unit.state == "pending" else unit.state

    def _evict(self, ids: list[int]) -> list[int]:
        dirty = [i for i in ids if self.units[i].dirty]
        for unit in (self.units[i] for i in ids):
            unit.state, unit.dirty, unit.reads = "absent", False, []
        return dirty

    def _uses(self, unit: Unit) -> float | Fraction:
        if self.count == "decayed":
            return sum((Fraction(2) ** (step // self.half_life) for step in unit.all_reads), Fraction(0))
        return len(unit.reads if self.count == "in_cache" else unit.all_reads)

    def _in_order(self, protect: Iterable[int]) -> list[int]:
        kept = set(protect)
        candidates = {i: u for i, u in self.units.items() if u.state == "resident" and i not in kept}
        uses = {i: self._uses(unit) for i, unit in candidates.items()}

        def score(i: int) -> Fraction:
            scale = max(1, len(candidates) - 1)
            recency = Fraction(sum(u.last < candidates[i].last for u in candidates.values()), scale)
            freq = Fraction(sum(other < uses[i] for other in uses.values()), scale)
            return self.lam * recency + (1 - self.lam) * freq

        def key(i: int) -> tuple[object, ...]:
            unit = candidates[i]
            first: dict[str, tuple[object, ...]] = {
                "lru": (unit.last,),
                "lfu": (uses[i], unit.last),
                "fifo": (unit.entered,),
                "priority": (unit.priority, unit.last),
                "score": (score(i) if self.policy == "score" else inf, unit.last),
            }
            return (*first[self.policy], -unit.local, i)

        return sorted(candidates, key=key)
