"""Synthetic recordings for the player: blocks that move between three tiers, within capacity, each by a transfer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import nan
from random import Random
from typing import Any

from simkv.sim.record.recording import (
    BLOCKS,
    FATES,
    POOLS,
    PRIVATE,
    PURPOSES,
    SLICES,
    STEPS,
    TRANSFERS,
    Recording,
    Table,
)  # fmt: skip

VRAM, DRAM, SSD = range(3)
THERE, COMING, HERE, USED, GONE = range(5)
LANES = ("replica 0 h2d", "replica 0 d2h", "host 0 ssd_read", "host 0 ssd_write")
H2D, D2H, READ, WRITE = range(4)
BLOCK_BYTES, BLOCK_TOKENS = 2 << 20, 16
Place = tuple[int, int, int]
"""Pool, label, block."""
HOSTILE = ("<img src=x onerror=alert(1)>", '</script><script>alert("x")</script>', "ab" * 150, "\u202e🚀 'quoted'")
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


class _Sessions:
    """Conversations that come up into VRAM in turn: from DRAM (odd ones leave it), from SSD, or computed anew."""

    def __init__(self, count: int, seed: int, capacity: tuple[int, int, int]) -> None:
        self.random = Random(seed)
        self.maker = Maker(capacity)
        self.now = self.maker.begin_s
        self.size = [self.random.randint(4, 24) for _ in range(count)]
        self.where: list[list[int]] = [[], [], []]
        self.room = list(capacity)
        for label in range(count):
            tier = DRAM if self.fits(DRAM, label) else SSD
            self.put(tier, label)
            last_s = self.now - self.random.uniform(1, 90)
            self.maker.there(tier, label, 0, self.size[label], last_s, self.random.randint(0, 9))

    def run(self, label: int) -> tuple[int, int, int]:
        return label, 0, self.size[label]

    def fits(self, tier: int, label: int) -> bool:
        return self.size[label] <= self.room[tier]

    def put(self, tier: int, label: int) -> None:
        self.where[tier].append(label)
        self.room[tier] -= self.size[label]

    def drop(self, tier: int, label: int) -> None:
        self.where[tier].remove(label)
        self.room[tier] += self.size[label]
        self.maker.note(self.now, tier, GONE, self.run(label))

    def spill(self) -> None:
        """The conversation that was used longest ago leaves VRAM, for DRAM where that has room."""
        old = self.where[VRAM][0]
        if old not in self.where[DRAM] and self.fits(DRAM, old):
            self.put(DRAM, old)
            self.now = self.maker.move(self.now, D2H, self.run(old), "spill")
        self.drop(VRAM, old)

    def turn(self, label: int, number: int) -> None:
        """A turn of one conversation."""
        self.now += self.random.expovariate(8.0)
        maker, run = self.maker, self.run(label)
        if label in self.where[VRAM]:
            self.where[VRAM].remove(label)
            self.where[VRAM].append(label)
            maker.note(self.now, VRAM, USED, run)
            return
        while not self.fits(VRAM, label):
            self.spill()
        if label in self.where[SSD] and label not in self.where[DRAM] and self.fits(DRAM, label):
            self.put(DRAM, label)
            self.now = maker.move(self.now, READ, run, "promote")
        self.put(VRAM, label)
        begun = self.now
        if label in self.where[DRAM]:
            ahead = number % 3 == 0
            fate = ("useful", "late", "wasted")[number % 9 // 3] if ahead else "none"
            self.now = maker.move(self.now, H2D, run, "prefetch" if ahead else "load", fate)
            if label % 2:
                self.drop(DRAM, label)
        else:
            self.now += 0.1
            maker.note(self.now, VRAM, HERE, run)
        maker.note(self.now, VRAM, USED, run)
        maker.private.append((self.now, VRAM, 0, self.random.randint(0, 8)))
        maker.steps.append((0, begun, self.now, 4, number % 7, 0 if number % 4 else 512, 0.02))


def sessions(
    count: int = 12, turns: int = 60, seed: int = 1, capacity: tuple[int, int, int] = (104, 140, 512)
) -> Recording:
    """Return ``count`` conversations of ``turns`` turns; VRAM keeps eight blocks free for what requests hold alone."""
    made = _Sessions(count, seed, capacity)
    made.room[VRAM] -= 8
    for number in range(turns):
        made.turn(made.random.randrange(count), number)
    made.room[VRAM] += 8
    return made.maker.recording(made.now + 0.5, [f"session {label}" for label in range(count)])


def named(recording: Recording, names: Sequence[str]) -> Recording:
    """Return ``recording`` with other names for its first labels."""
    return replace(recording, labels=(*names, *recording.labels[len(names) :]))


def truth(recording: Recording, until_s: float) -> dict[Place, bool]:
    """Replay the recording block by block up to ``until_s``: what is on a shelf, and whether it can be read."""
    state: dict[Place, bool] = {}
    pools = {key: index for index, key in enumerate(zip(recording.pools["tier"], recording.pools["pool"], strict=True))}
    columns = (recording.blocks[name] for name in BLOCKS)
    for t_s, tier, pool, what, label, first, end, transfer in zip(*columns, strict=True):
        if t_s > until_s:
            break
        for block in range(int(first), int(end)):
            place = pools[tier, pool], int(label), block
            if what == GONE:
                state.pop(place, None)
            elif what != USED:
                state[place] = what == HERE or (what == THERE and not transfer)
    return state
