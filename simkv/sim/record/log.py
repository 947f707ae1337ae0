"""Collects the rows of one window; it may be told more after the window is over, which is dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any

from simkv.sim.record.errand import Errand
from simkv.sim.record.recording import BLOCKS, PRIVATE, SLICES, STEPS, TRANSFERS, WHATS, Recording, Table, Wanted

if TYPE_CHECKING:
    from simkv.sim.fabric import Lane, Transfer
    from simkv.sim.record.names import Names
    from simkv.sim.replica import ReplicaEngine

THERE, COMING, HERE, USED, GONE = range(len(WHATS))

Row = tuple[Any, ...]


class Log:
    """The rows of one window, and the window's bounds."""

    def __init__(
        self,
        wanted: Wanted,
        lanes: Sequence[tuple[str, Lane]],
        engines: Sequence[ReplicaEngine],
        names: Names,
        closing: Callable[[], None],
        closed: Callable[[], None],
    ) -> None:
        """``closing`` is called as the window ends, to tell what is left to tell, ``closed`` when it is over."""
        self.wanted = wanted
        self.is_open = False
        self.begin_s = self.end_s = nan
        self.full = False
        self._lanes = lanes
        self._engines = engines
        self._names = names
        self._closing = closing
        self._closed = closed
        self._lane_number = {lane: number for number, (_, lane) in enumerate(lanes)}
        self._until_s = inf if wanted.end_s is None else wanted.end_s
        self._clear()
        self._tables = self._freeze()

    def _clear(self) -> None:
        self._left = self.wanted.most
        self._steps: list[Row] = []
        self._ended: list[tuple[Errand, Row]] = []
        self._slices: list[Row] = []
        self._blocks: list[Row] = []
        self._private: list[Row] = []
        self._last_use_s: list[float] = []
        self._uses: list[int] = []
        self._left_out: list[int] = []

    # ---- the window

    def open(self, begin_s: float) -> None:
        """Begin, or begin anew."""
        self._clear()
        self.is_open, self.full = True, False
        self.begin_s, self.end_s = begin_s, nan

    def close(self, end_s: float, full: bool = False) -> None:
        """End the window at ``end_s`` (not after now) and tell what is under way."""
        if not self.is_open:
            return
        self.is_open, self.full, self.end_s = False, full, end_s
        self._closing()
        if full:
            self._leave_instant_out(end_s)
        told = {row[0]: row[1] for row in self._steps}
        for engine in self._engines:
            begun = engine.under_way()
            if begun is not None and begun[0] < end_s and begun[0] != told.get(engine.number):
                begun_s, decodes, tokens = begun
                self._steps.append((engine.number, begun_s, nan, 0, decodes, tokens, 0.0))
        for _, lane in self._lanes:
            active = lane.active
            if active is not None:
                self._slices.append((self._names.number(active.errand), lane.served_since_s, end_s))
            for transfer in lane.in_flight():
                self._through(lane, transfer, nan)
        self._tables = self._freeze()
        self._clear()
        self._closed()

    def _leave_instant_out(self, end_s: float) -> None:
        """Forget which blocks changed at ``end_s``: it isn't over, and half of an instant is a state that never was."""
        begin_s = self.begin_s
        self._blocks = [row for row in self._blocks if row[0] < end_s or row[0] == begin_s]
        self._private = [row for row in self._private if row[0] < end_s or row[0] == begin_s]

    def _freeze(self) -> dict[str, list[Row]]:
        """Return the rows as they are known now; times are cut when the run is over."""
        return {
            "steps": self._steps,
            "transfers": [(*row, errand.purpose, errand.request, errand.fate) for errand, row in self._ended],
            "slices": self._slices,
            "blocks": self._blocks,
            "private": self._private,
            "uses": list(zip(self._last_use_s, self._uses, strict=True)),
            "left_out": [(blocks,) for blocks in self._left_out],
        }

    def finish(self, pools: Table, run_end_s: float, first_s: float) -> Recording:
        """Return what was recorded of a run from its first arrival at ``first_s`` to its last end."""
        self.close(run_end_s)
        begin_s, end_s = (run_end_s if isnan(at_s) else min(at_s, run_end_s) for at_s in (self.begin_s, self.end_s))
        begin_s = min(begin_s, end_s)  # what was asked for may be over before anything arrives
        pool_count = len(pools["pool"]) if self.wanted.blocks else 0
        rows = cut(self._tables, begin_s, end_s)
        labels, rows["blocks"] = _used_labels(rows["blocks"], self._names)
        uses = self._tables["uses"]
        return Recording(
            begin_s=begin_s,
            end_s=end_s,
            run_end_s=run_end_s,
            whole=begin_s <= first_s and end_s >= run_end_s and not self.full,
            full=self.full,
            lanes=tuple(name for name, _ in self._lanes),
            steps=_table(STEPS, rows["steps"]),
            transfers=_table(TRANSFERS, rows["transfers"]),
            slices=_table(SLICES, rows["slices"]),
            blocks=_table(BLOCKS, rows["blocks"]),
            private=_table(PRIVATE, rows["private"]),
            pools=pools,
            labels=labels,
            rule=self.wanted.rule,
            last_use_s=tuple(last_s for last_s, _ in uses),
            uses=tuple(number for _, number in uses),
            left_out_blocks=tuple(blocks for (blocks,) in self._tables["left_out"]) or (0,) * pool_count,
        )

    # ---- what is told (see Sink)

    def step(
        self, replica: int, begin_s: float, end_s: float, steps: int, decodes: int, prefill_tokens: int, wait_s: float
    ) -> None:
        """Take in steps that ended now."""
        if end_s > self.begin_s:
            self._steps.append((replica, begin_s, end_s, steps, decodes, prefill_tokens, wait_s))
            self._count(end_s)

    def served(self, lane: Lane, transfer: Transfer, over: bool) -> None:
        """Take in that a lane stops serving a transfer now."""
        now = lane.fabric.clock._now
        if now < self.begin_s:
            return
        errand = transfer.errand
        self._slices.append((self._names.number(errand), lane.served_since_s, now))
        if over:
            self._names.ended = errand.number
            self._left -= 1
            self._through(lane, transfer, now)
        self._count(now)

    def _through(self, lane: Lane, transfer: Transfer, end_s: float) -> None:
        errand = transfer.errand
        kind = transfer.level // lane.fabric.ranks
        row = (self._names.number(errand), self._lane_number[lane], transfer.submitted_s, end_s, transfer.bytes, kind)
        self._ended.append((errand, row))

    def blocks(
        self, t_s: float, tier: int, pool: int, what: int, label: int, first: int, end: int, transfer: int = 0
    ) -> None:
        """Take in that blocks change."""
        self._blocks.append((t_s, tier, pool, what, label, first, end, transfer))
        self._count(t_s)

    def there(
        self, tier: int, pool: int, label: int, first: int, end: int, transfer: int, last_use_s: float, uses: int
    ) -> None:
        """Take in what was there as the window began, when and how often it was used before (nan: nobody knows).

        It doesn't count against the rows that the window may have: it is no event.
        """
        self._last_use_s.append(last_use_s)
        self._uses.append(uses)
        self._blocks.append((self.begin_s, tier, pool, THERE, label, first, end, transfer))

    def leave_out(self, blocks: int) -> None:
        """Take in how many blocks of the next pool were there as the window began, and aren't told."""
        self._left_out.append(blocks)

    def private(self, t_s: float, tier: int, pool: int, blocks: int) -> None:
        """Take in how many blocks are held privately from now on."""
        self._private.append((t_s, tier, pool, blocks))
        if t_s > self.begin_s:
            self._count(t_s)

    def _count(self, now: float) -> None:
        self._left -= 1
        if now > self._until_s:
            self.close(self._until_s)
        elif self._left <= 0:
            self.close(now, full=True)


def cut(rows: dict[str, list[Row]], begin_s: float, end_s: float) -> dict[str, list[Row]]:
    """Return rows without what lies outside of a window; what is under way at its end has ``end_s`` nan."""
    return {
        "steps": [
            row if row[2] <= end_s else (*row[:2], nan, 0, *row[4:6], 0.0) for row in rows["steps"] if row[1] < end_s
        ],
        "transfers": [
            row if row[3] <= end_s else (*row[:3], nan, *row[4:]) for row in rows["transfers"] if row[2] <= end_s
        ],
        "slices": [
            (number, max(begin_s, since_s), min(end_s, until_s))
            for number, since_s, until_s in rows["slices"]
            if since_s < end_s and until_s >= begin_s
        ],
        "blocks": [row for row in rows["blocks"] if row[0] <= end_s],
        "private": [row for row in rows["private"] if row[0] <= end_s],
    }


def _used_labels(blocks: list[Row], names: Names) -> tuple[tuple[str, ...], list[Row]]:
    """Return the labels that ``blocks`` name, in the order that they are named in, and the rows numbered by them."""
    numbers: dict[int, int] = {}
    renamed = [(*row[:4], numbers.setdefault(row[4], len(numbers)), *row[5:7], names.carrier(row[7])) for row in blocks]
    return tuple(names.texts[number] for number in numbers), renamed


def _table(names: Sequence[str], rows: list[Row]) -> Table:
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return dict(zip(names, columns, strict=True))
