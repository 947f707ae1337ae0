"""What a recording's transfers carried, summed: by lane and purpose, and what became of prefetches."""

from __future__ import annotations

from dataclasses import dataclass, field

from simkv.sim.record.recording import FATES, PURPOSES, TIERS, Recording

ENDS = {"h2d": ("dram", "vram"), "d2h": ("vram", "dram"), "ssd_read": ("ssd", "dram"), "ssd_write": ("dram", "ssd")}
"""From which tier to which a lane carries, by the last word of its name."""


@dataclass(slots=True)
class Traffic:
    """Transfers of one purpose in one direction."""

    transfers: int = 0
    nbytes: int = 0
    fates: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FATES, 0))


def ends(lane: str) -> tuple[int, int]:
    """Return the tiers that a lane carries from and to, as indices; -1 where it leads from no tier to another."""
    words = lane.split()
    found = ENDS.get(words[-1]) if words else None
    return (-1, -1) if found is None else (TIERS.index(found[0]), TIERS.index(found[1]))


def traffic(recording: Recording) -> dict[tuple[int, int, str], Traffic]:
    """Return what was carried by (from, to, purpose), in order of these; what is still under way counts whole."""
    found: dict[tuple[int, int, str], Traffic] = {}
    table = recording.transfers
    columns = (table[name] for name in ("lane", "purpose", "bytes", "fate"))
    for lane, purpose, nbytes, fate in zip(*columns, strict=True):
        way = *ends(recording.lanes[int(lane)]), PURPOSES[int(purpose)]
        one = found.setdefault(way, Traffic())
        one.transfers += 1
        one.nbytes += int(nbytes)
        one.fates[FATES[int(fate)]] += 1
    return {way: found[way] for way in sorted(found)}


def between(carried: dict[tuple[int, int, str], Traffic], origin: str, target: str) -> Traffic:
    """Return all that was carried from one tier to another."""
    total = Traffic()
    for (start, end, _), one in carried.items():
        if (start, end) == (TIERS.index(origin), TIERS.index(target)):
            total.transfers += one.transfers
            total.nbytes += one.nbytes
    return total
