"""The article's demo program once more, with its two choices as switches, as a reference for its scenarios.

Blocks are numbers; 3 fit in VRAM and 8 in CPU memory. A step of compute takes 1. Only the times of transfers and the
choice of victims matter; nothing here is simkv's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

VRAM_BLOCKS, CPU_BLOCKS, RING, STEPS = 3, 8, 12, 240
BANDWIDTH, CPU_COST, SSD_COST = 2.0, 1.0, 1.5


def needed(step: int) -> set[int]:
    """Return the blocks that ``step`` reads, as the set that the program builds: its order is CPython's."""
    need = {step % RING, (step - 1) % RING}
    if step % 4 == 0:
        need.add((step - 6) % RING)
    return need


@dataclass
class Program:
    """One run; ``total`` is what it prints."""

    prefetches: bool
    proper_lru: bool = False
    """What comes in is no candidate for eviction."""
    stalls: bool = False
    """With prefetch, the step's own loads aren't hidden."""
    keeps_step: bool = False
    """No block that a step reads makes room in that step; a prefetch that finds no room is left out."""
    ssd_cost: float = SSD_COST
    total: float = 0.0
    loads: int = 0
    _vram: list[int] = field(default_factory=list)
    _cpu: set[int] = field(default_factory=set)
    _used: dict[int, int] = field(default_factory=dict)
    _reads: int = 0

    def run(self) -> float:
        """Return the total time of all steps."""
        for step in range(STEPS):
            need = needed(step)
            demand = sum(self._read(block, need) for block in need)
            ahead = self._prefetch((step + 1) % RING, need) if self.prefetches else 0.0
            if not self.prefetches:
                self.total += 1.0 + demand
            elif self.stalls:
                self.total += demand + max(1.0, ahead)
            else:
                self.total += max(1.0, demand + ahead)
        return self.total

    def _read(self, block: int, need: set[int]) -> float:
        cost = self._load(block, need)
        self._reads += 1
        self._used[block] = self._reads
        return cost

    def _prefetch(self, block: int, need: set[int]) -> float:
        full = self.keeps_step and all(one in need for one in self._vram) and len(self._vram) == VRAM_BLOCKS
        if block in self._vram or full:
            return 0.0
        cost = self._load(block, need)
        self._used[block] = self._reads
        return cost

    def _load(self, block: int, need: set[int]) -> float:
        if block in self._vram:
            return 0.0
        cost = CPU_COST if block in self._cpu else self.ssd_cost
        self._cpu.discard(block)
        self._vram.append(block)
        self.loads += 1
        if len(self._vram) > VRAM_BLOCKS:
            self._evict(block, need)
        return cost / BANDWIDTH

    def _evict(self, incoming: int, need: set[int]) -> None:
        free = [one for one in self._vram if not (self.proper_lru and one == incoming)]
        if self.keeps_step:
            free = [one for one in free if one not in need]
        victim = min(free, key=lambda one: self._used.get(one, -1))
        self._vram.remove(victim)
        if len(self._cpu) < CPU_BLOCKS:
            self._cpu.add(victim)


def totals(**switches: bool | float) -> tuple[float, float]:
    """Return the total without and with prefetch."""
    return Program(False, **switches).run(), Program(True, **switches).run()  # type: ignore[arg-type]
