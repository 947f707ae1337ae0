"""What stands in a report for the player where nothing plays: the same window as a text, tables and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import BinaryIO

from simkv.report.document import Block, Cell, Data, Figure, Table, Text
from simkv.report.player.cells import Cells
from simkv.report.player.ground import Pool, Row
from simkv.report.player.replay import Shelves, untold
from simkv.report.player.traffic import Traffic, traffic
from simkv.results.quantity import count, data, seconds, share
from simkv.results.words import TIERS as NAMES
from simkv.sim.record.recording import Recording

_MOMENTS = ("beginning", "middle", "end")
_FELT = 0.005
"""A smaller change of the share that is used isn't one."""


def instead(recording: Recording, pools: Sequence[Pool], rows: Sequence[Row], cells: Cells) -> list[Block]:
    """Return the window of ``recording`` in plain blocks."""
    filled, shelves = _filled(recording, pools, rows, cells)
    span = recording.end_s - recording.begin_s
    part = "the whole run" if recording.whole else f"{seconds(span)} of a run of {seconds(recording.run_end_s)}"
    text = f"What was recorded block by block: {part}, from {recording.begin_s:.3f} s to {recording.end_s:.3f} s."
    return [Text(text), *_traffic(recording), _shelves(pools, shelves, filled), *_figure(pools, filled)]


def _traffic(recording: Recording) -> list[Block]:
    """Return what was carried where, one row a way and purpose."""
    carried = traffic(recording)
    if not carried:
        return []
    heads = ("From", "To", "Purpose", "Transfers", "Bytes", "Prefetches: useful", "late", "wasted")
    found = [_way(*way, one) for way, one in carried.items()]
    return [Table(heads, found, "player_transfers", "Transfers in the window", frozenset(range(3, 8)))]


def _way(origin: int, target: int, purpose: str, one: Traffic) -> list[Cell]:
    judged = any(one.fates[fate] for fate in ("useful", "late", "wasted", "open"))
    fates = [_count(one.fates[fate]) if judged else Cell("") for fate in ("useful", "late", "wasted")]
    ends = [Cell(_tier(tier)) for tier in (origin, target)]
    return [*ends, Cell(purpose.replace("_", " ")), _count(one.transfers), Cell(data(one.nbytes), one.nbytes), *fates]


def _shelves(pools: Sequence[Pool], shelves: Shelves, filled: Sequence[Sequence[int]]) -> Table:
    """Return what every pool held at three moments, and what came and went between them."""
    heads = ("Shelf", "Room, blocks", *(f"Used at the {moment}" for moment in _MOMENTS), "Came", "Left")
    body = []
    for index, pool in enumerate(pools):
        room = Cell("without bounds") if pool.capacity_blocks is None else _count(pool.capacity_blocks)
        used = [_count(each[index]) for each in filled]
        body.append([Cell(pool.name(pools)), room, *used, *map(_count, shelves.moved(index))])
    return Table(heads, body, "player_shelves", "Blocks by shelf", frozenset(range(1, 7)))


def _figure(pools: Sequence[Pool], filled: Sequence[Sequence[int]]) -> list[Block]:
    """Return how full the tiers with bounds were, all their shelves together, as bars."""
    room: dict[int, int] = {}
    used: dict[int, list[int]] = {}
    for index, pool in enumerate(pools):
        if pool.capacity_blocks:
            room[pool.tier] = room.get(pool.tier, 0) + pool.capacity_blocks
            before = used.get(pool.tier, [0] * len(filled))
            used[pool.tier] = [sum(both) for both in zip(before, (each[index] for each in filled), strict=True)]
    if not room:
        return []
    names = [_tier(tier) for tier in room]
    shares = [[blocks / room[tier] for blocks in used[tier]] for tier in room]
    table = Data(("tier", *(f"{moment}_share" for moment in _MOMENTS)), _rows(names, shares))
    alt = ". ".join(f"{name} is {_course(each)}" for name, each in zip(names, shares, strict=True))
    return [Figure("player_shelves_filled", _found(names, shares), partial(_draw, names, shares), table, f"{alt}.")]


def _rows(names: Sequence[str], shares: Sequence[Sequence[float]]) -> list[list[object]]:
    return [[name, *each] for name, each in zip(names, shares, strict=True)]


def _found(names: Sequence[str], shares: Sequence[Sequence[float]]) -> str:
    """Return what is seen: the shelf that changes most, or that none does."""
    name, each = max(zip(names, shares, strict=True), key=lambda one: abs(one[1][-1] - one[1][0]))
    if abs(each[-1] - each[0]) >= _FELT:
        return f"{name} goes from {share(each[0])} to {share(each[-1])} full within the window"
    full = ", ".join(f"{name} {share(each[-1])}" for name, each in zip(names, shares, strict=True))
    return f"The tiers are as full at the end of the window as at its beginning: {full}"


def _course(shares: Sequence[float]) -> str:
    return ", ".join(f"{share(each)} full at the {moment}" for each, moment in zip(shares, _MOMENTS, strict=True))


def _draw(names: Sequence[str], shares: Sequence[Sequence[float]], file: BinaryIO, form: str) -> None:
    from simkv.plots.shelves import filled_shelves

    filled_shelves(names, _MOMENTS, shares, file, form)


def _filled(
    recording: Recording, pools: Sequence[Pool], rows: Sequence[Row], cells: Cells
) -> tuple[list[list[int]], Shelves]:
    """Return the used blocks of every pool at each moment, what happens at that very moment included; and the shelves
    as the window ends."""
    shelves = Shelves(pools, cells, untold(pools, rows, cells))
    place = {(pool.tier, pool.number): index for index, pool in enumerate(pools)}
    columns = (recording.private[name] for name in ("t_s", "tier", "pool", "blocks"))
    private = list(zip(*columns, strict=True))
    middle = (recording.begin_s + recording.end_s) / 2
    found = []
    done = taken = 0
    for until in (recording.begin_s, middle, recording.end_s):
        while done < len(rows) and rows[done].t_s <= until:
            shelves.apply(rows[done])
            done += 1
        while taken < len(private) and private[taken][0] <= until:
            _, tier, number, blocks = private[taken]
            shelves.private[place[int(tier), int(number)]] = int(blocks)
            taken += 1
        found.append([shelves.used(index) for index in range(len(pools))])
    return found, shelves


def _tier(index: int) -> str:
    return NAMES[index][0] if index >= 0 else "within the host"


def _count(value: int) -> Cell:
    return Cell(count(value), value)
