"""Runs whose blocks are recorded and looked at meanwhile, and what must hold of both (law L48)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from random import Random
from typing import Any, NamedTuple

import numpy as np

from simkv.kvcache.pool import KVPool
from simkv.kvcache.spans import cut, merged
from simkv.sim.active.earned import EarnedShare
from simkv.sim.active.engine import ActiveEngine
from simkv.sim.active.reuse import SharedHomes
from simkv.sim.config import SystemConfig
from simkv.sim.record.labels import content_name
from simkv.sim.record.log import Log
from simkv.sim.record.recording import TIERS, WHATS, Recording, Wanted
from simkv.sim.record.windows import Windows
from simkv.sim.rundata import RunData
from simkv.sim.system import System
from simkv.workload.replay import FixedSource
from simkv.workload.request import Request, Source
from tests.record_factory import rows

WITH_BLOCKS = Wanted("from_start", 10**7, blocks=True)
Pool = tuple[int, int]
"""(tier, number)"""
_ORDINAL = re.compile(r"( after .*)?( \(\d+\))?$")


class Seen(NamedTuple):
    """What one pool holds, by identity: content, or a block of a sequence; and how many blocks are taken in all."""

    held: set[object]
    used: int
    capacity: int


class Watched(NamedTuple):
    """A run, and what was seen of it at some times, when all that happened at that time was over."""

    data: RunData
    seen: dict[float, dict[Pool, Seen]]
    source: Source
    began: dict[int, dict[Pool, int]]
    """By window, in the order asked: the blocks that were taken in each pool as it began; not while reads in turn are
    told."""


def watched(
    config: SystemConfig,
    source: Source | Iterable[Request],
    *wanted: Wanted,
    share: float = 1.0,
    seed: int = 0,
) -> Watched:
    """Run and record, and look at about ``share`` of the times at which something happens."""
    if not hasattr(source, "arrivals"):
        source = FixedSource(source)  # type: ignore[arg-type]
    system = System(replace(config, audit=False), source, record=wanted or (WITH_BLOCKS,))  # type: ignore[arg-type]
    assert system.windows is not None
    began = _note_beginnings(system.windows)
    seen: dict[float, dict[Pool, Seen]] = {}
    rng = Random(seed)
    state: dict[str, Any] = {"at": -1.0, "looks": False}

    def drain() -> bool:
        more = system.clock.drain(1)
        now = system.clock.now
        if now > state["at"]:
            state.update(at=now, looks=rng.random() < share)
        if state["looks"]:
            seen[now] = look(system)
        if any(one.behind for one in system.windows.blocks.sequences):  # reads in turn: told as they go
            seen.pop(now, None)
        return more

    system._drain = drain  # type: ignore[method-assign]
    return Watched(system.run(), seen, source, began)  # type: ignore[arg-type]


def _note_beginnings(windows: Windows) -> dict[int, dict[Pool, int]]:
    """Return where it will say what was taken as each window began, or began anew."""
    began: dict[int, dict[Pool, int]] = {}
    opens = windows._open

    def opening(log: Log, now: float) -> None:
        behind = any(one.behind for one in windows.blocks.sequences)
        opens(log, now)
        pools = windows.system.pools()
        taken = {(tier, n): pool.used_blocks for tier, name in enumerate(TIERS) for n, pool in enumerate(pools[name])}
        began[windows.logs.index(log)] = {} if behind else taken

    windows._open = opening  # type: ignore[method-assign]
    return began


def look(system: System) -> dict[Pool, Seen]:
    """Return what each pool holds now."""
    found: dict[Pool, Seen] = {}
    by_pool: dict[KVPool, set[object]] = {}
    for tier, name in enumerate(TIERS):
        for number, pool in enumerate(system.pools()[name]):
            held = by_pool[pool] = contents(pool)
            found[tier, number] = Seen(held, pool.used_blocks, pool.capacity_blocks)
    for engine in system.engines:
        if isinstance(engine, ActiveEngine):
            _add_sequences(engine, by_pool)
    return found


def contents(pool: KVPool) -> set[object]:
    """Return the content of every resident block: the runs of streams up to its end."""
    size, found = pool.index.block_tokens, set[object]()
    stack = list(pool.index.root.children.values())
    while stack:
        node = stack.pop()
        stack += node.children.values()
        if node.resident:
            runs = merged(cut(node.spans, 0, 0, node.end * size))
            ends = list(accumulate(length for _, _, length in runs))
            for end in range(node.end - node.blocks + 1, node.end + 1):
                last = bisect_left(ends, end * size)
                found.add((end, (*runs[:last], runs[last][:2])))
    return found


def _add_sequences(engine: ActiveEngine, by_pool: dict[KVPool, set[object]]) -> None:
    share, tiers = engine.store.residency, engine.tiers
    for seq in engine.store.sequences.values():
        number = seq.live.request.id
        shared = seq.homes.shared if isinstance(seq.homes, SharedHomes) else 0
        for block, home in enumerate(seq.homes.at.tolist()):
            if isinstance(share, EarnedShare) and seq.base >= 0:
                ids = seq.base + block * share.groups + np.arange(share.groups)
                inside = bool((share.set.resident(ids) | share.set.pending(ids)).all())
            else:
                inside = seq.here and seq.blocks - seq.resident <= block < seq.blocks
            if inside:
                by_pool[tiers.vram].add(("sequence", number, block))
            if home and block >= shared:
                pool = (tiers.dram, tiers.ssd)[home - 1]
                assert pool is not None
                by_pool[pool].add(("sequence", number, block))


class Replay:
    """The state that a recording's rows lead to."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.pools = [(row["tier"], row["pool"]) for row in rows(recording.pools)]
        self.held: dict[Pool, set[tuple[str, int]]] = {pool: set() for pool in self.pools}
        self.private: dict[Pool, int] = dict.fromkeys(self.pools, 0)
        self._blocks, self._private = rows(recording.blocks), rows(recording.private)
        self._coming: dict[tuple[Pool, tuple[str, int]], int] = {}
        self._began: set[tuple[Pool, tuple[str, int]]] = set()
        """What was there as the window began, or was coming and nobody knows with what."""
        self._ends = {row["id"]: row["end_s"] for row in rows(recording.transfers)}
        self.arrivals = 0

    def to(self, time_s: float) -> None:
        """Do what happened up to ``time_s``, at that time included."""
        while self._blocks and self._blocks[0]["t_s"] <= time_s:
            self._do(self._blocks.pop(0))
        while self._private and self._private[0]["t_s"] <= time_s:
            row = self._private.pop(0)
            self.private[row["tier"], row["pool"]] = row["blocks"]

    def _do(self, row: dict[str, Any]) -> None:
        pool, what = (row["tier"], row["pool"]), WHATS[row["what"]]
        for block in range(row["first"], row["end"]):
            name = self.recording.labels[row["label"]], block
            held, coming = self.held[pool], (pool, name)
            if what == "gone":
                held.discard(name)
                self._coming.pop(coming, None)
            elif what == "coming":
                assert name not in held, "it comes and is there"
                held.add(name)
                self._coming[coming] = row["transfer"]
            elif what == "here" and coming in self._coming:
                assert row["transfer"] == self._coming.pop(coming)
                if row["transfer"]:
                    assert self._ends[row["transfer"]] == row["t_s"], "its transfer ended at another time"
                    self.arrivals += 1
            elif what == "here":
                assert name not in held or coming in self._began, "it is here twice"
                self._began.discard(coming)
                held.add(name)
            elif what == "there":
                held.add(name)
                if row["transfer"]:
                    self._coming[coming] = row["transfer"]
                else:
                    self._began.add(coming)


def hold_law(found: Watched, least: int = 1, follows: bool = True) -> int:
    """Law L48 for each recording of a run; returns how many states were compared.

    Content is told apart by all that comes before it, and labels without what only tells two alike apart: two blocks
    that are named alike show as one too few. Of requests that aren't followed nothing is told; ``follows``: all are
    whose names are told.
    """
    compared = 0
    for number, recording in enumerate(found.data.recordings):
        if not recording.private["t_s"]:  # it has no blocks, or was over before anything arrived
            continue
        hold_beginning(recording, found.began[number])
        for time_s in (*recording.blocks["t_s"], *recording.private["t_s"]):
            assert not recording.full or time_s < recording.end_s or time_s == recording.begin_s, "half of an instant"
        left_out = dict(zip([pool_of(row) for row in rows(recording.pools)], recording.left_out_blocks, strict=True))
        replay = Replay(recording)
        for time_s, pools in found.seen.items():
            cut = recording.rule != "asked" and not recording.whole  # perhaps in the middle of its last instant
            if not recording.begin_s <= time_s <= recording.end_s or (cut and time_s == recording.end_s):
                continue
            replay.to(time_s)
            compared += 1
            for pool, seen in pools.items():
                told = {(_ORDINAL.sub("", text, count=1), block) for text, block in replay.held[pool]}
                held = {called(one, found.source) for one in seen.held}
                where = f"pool {pool} at {time_s}"
                assert len(told) == len(replay.held[pool]) and len(held) == len(seen.held), f"{where}: one name for two"
                assert told <= held, f"{where}: {sorted(told - held)} aren't there"
                named = set(recording.labels) if follows else set()
                missing = [one for one in held - told if one[0] in named or not one[0].startswith("request")]
                assert len(missing) <= left_out[pool], f"{where}: {sorted(missing)} aren't told"
                assert len(told) + replay.private[pool] <= seen.used <= seen.capacity, f"{where}: more than is used"
                if not left_out[pool]:
                    assert len(told) + replay.private[pool] == seen.used, where
    assert compared >= least, "nothing was compared"
    return compared


def hold_beginning(recording: Recording, taken: dict[Pool, int]) -> None:
    """What is there as a window begins is told, private or left out, and once."""
    told = dict(zip([pool_of(row) for row in rows(recording.pools)], recording.left_out_blocks, strict=True))
    private = {}
    for row in rows(recording.private):
        if row["t_s"] == recording.begin_s:
            private.setdefault(pool_of(row), row["blocks"])
    for row in rows(recording.blocks):
        if WHATS[row["what"]] == "there":
            told[pool_of(row)] += row["end"] - row["first"]
    for pool, blocks in taken.items():
        assert told[pool] + private[pool] == blocks, f"pool {pool} as the window begins"


def pool_of(row: dict[str, Any]) -> Pool:
    """Return the pool that a row of a table is of."""
    return row["tier"], row["pool"]


def called(one: Any, source: Source) -> tuple[str, int]:
    """Return what a block should be called: by the content of its last token, or by whose it is."""
    if one[0] == "sequence":
        return f"request {one[1]}", one[2]
    end, runs = one
    return content_name(source, *runs[-1]), end - 1
