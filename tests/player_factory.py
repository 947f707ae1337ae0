"""Synthetic recordings for the player: blocks that move between three tiers, within capacity, each by a transfer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import nan
from random import Random
from typing import Any

from simkv.sim.record.recording import (
    BLOCKS, FATES, POOLS, PRIVATE, PURPOSES, SLICES, STEPS, TRANSFERS, Recording, Table,
)  # fmt: skip

VRAM, DRAM, SSD = range(3)
THERE, COMING, HERE, USED, GONE = range(5)
LANES = ("replica 0 h2d", "replica 0 d2h", "host 0 ssd_read", "host 0 ssd_write")
H2D, D2H, READ, WRITE = range(4)
BLOCK_BYTES, BLOCK_TOKENS = 2 << 20, 16
SUMMARY = {"scenario": "made-up"}
RESOLVED = "offload:\n  eviction: {policy: score, lambda: 0.6}\n  write: write_back\n  prefetch: {policy: queue}\n"


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Return rows as columns."""
    return {head: [row[k] for row in rows] for k, head in enumerate(heads)}


@dataclass
class Maker:
    """Moves runs of blocks up and down; a run is ``(label, first, end)``."""

    capacity: tuple[int, int, int]
    block_s: float = 0.01
    begin_s: float = 100.0
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    transfers: list[tuple[Any, ...]] = field(default_factory=list)
    slices: list[tuple[Any, ...]] = field(default_factory=list)
    private: list[tuple[Any, ...]] = field(default_factory=list)
    steps: list[tuple[Any, ...]] = field(default_factory=list)
    last: list[float] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)

    def there(self, tier: int, label: int, first: int, end: int, last_s: float = nan, uses: int = 0) -> None:
        """Have a run of blocks there as the window begins."""
        self.rows.append((self.begin_s, tier, 0, THERE, label, first, end, 0))
        self.last.append(last_s)
        self.uses.append(uses)

    def note(self, t: float, tier: int, what: int, run: tuple[int, int, int], transfer: int = 0) -> None:
        """Have something happen to a run of blocks."""
        self.rows.append((t, tier, 0, what, *run, transfer))

    def move(
        self, t: float, lane: int, run: tuple[int, int, int], purpose: str, fate: str = "none", over: bool = True
    ) -> float:
        """Bring a run of blocks by a transfer; return when it is through (``over``: within the window)."""
        number = len(self.transfers) + 1
        tier = {H2D: VRAM, D2H: DRAM, READ: DRAM, WRITE: SSD}[lane]
        blocks = run[2] - run[1]
        end = t + blocks * self.block_s
        codes = PURPOSES.index(purpose), 7, FATES.index(fate)
        self.note(t, tier, COMING, run, number)
        nbytes = blocks * BLOCK_BYTES
        self.transfers.append((number, lane, t, end if over else nan, nbytes, 0, *codes))
        self.slices.append((number, t, end))
        if over:
            self.note(end, tier, HERE, run, number)
        return end

    def recording(self, end_s: float, labels: Sequence[str]) -> Recording:
        """Return what was made, in order of time."""
        rows = sorted(self.rows, key=lambda row: row[0])
        pools = [(tier, 0, room, BLOCK_BYTES, BLOCK_TOKENS) for tier, room in enumerate(self.capacity) if room]
        return Recording(
            begin_s=self.begin_s,
            end_s=end_s,
            run_end_s=2 * end_s,
            whole=False,
            full=False,
            lanes=LANES,
            steps=table(STEPS, self.steps),
            transfers=table(TRANSFERS, self.transfers),
            slices=table(SLICES, [row for row in self.slices if row[1] <= end_s]),
            blocks=table(BLOCKS, [row for row in rows if row[0] <= end_s]),
            private=table(PRIVATE, self.private),
            pools=table(POOLS, pools),
            labels=tuple(labels),
            last_use_s=tuple(self.last),
            uses=tuple(self.uses),
        )


def sessions(
    count: int = 12, moves: int = 60, seed: int = 1, capacity: tuple[int, int, int] = (96, 140, 512)
) -> Recording:
    """Return ``count`` conversations that come up from DRAM and SSD in turn; the least recently used make room."""
    random = Random(seed)
    maker = Maker(capacity)
    size = [random.randint(4, 24) for _ in range(count)]
    where: list[list[int]] = [[], [], []]
    room = list(capacity)
    for label in range(count):
        tier = DRAM if size[label] <= room[DRAM] else SSD
        where[tier].append(label)
        room[tier] -= size[label]
        maker.there(tier, label, 0, size[label], maker.begin_s - random.uniform(1, 90), random.randint(0, 9))
    now = maker.begin_s
    for number in range(moves):
        now += random.expovariate(8.0)
        label = random.randrange(count)
        run = (label, 0, size[label])
        if label in where[VRAM]:
            where[VRAM].remove(label)
            where[VRAM].append(label)
            maker.note(now, VRAM, USED, run)
            continue
        while room[VRAM] < size[label]:
            old = where[VRAM].pop(0)
            maker.note(now, VRAM, GONE, (old, 0, size[old]))
            room[VRAM] += size[old]
            if old not in where[DRAM] and size[old] <= room[DRAM]:
                where[DRAM].append(old)
                room[DRAM] -= size[old]
                maker.move(now, D2H, (old, 0, size[old]), "spill")
        if label in where[SSD] and label not in where[DRAM] and size[label] <= room[DRAM]:
            room[DRAM] -= size[label]
            now = maker.move(now, READ, run, "promote")
            where[DRAM].append(label)
        room[VRAM] -= size[label]
        where[VRAM].append(label)
        ahead = number % 3 == 0
        fate = ("useful", "late", "wasted")[number % 9 // 3] if ahead else "none"
        begun = now
        now = maker.move(now, H2D, run, "prefetch" if ahead else "load", fate)
        maker.note(now, VRAM, USED, run)
        maker.steps.append((0, begun, now, 4, number % 7, 0 if number % 4 else 512, 0.02))
        maker.steps.append((0, now, now + 0.01, 1, 5, 0, 0.0))
    return maker.recording(now + 0.5, [f"session {label}" for label in range(count)])


def named(recording: Recording, names: Sequence[str]) -> Recording:
    """Return ``recording`` with other names for its first labels."""
    return replace(recording, labels=(*names, *recording.labels[len(names) :]))
