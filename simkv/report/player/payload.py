"""A recording as the player's script reads it: columns of numbers, times in seconds from the window's beginning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simkv.report.player.cells import Cells
from simkv.report.player.ground import THERE, Pool, Row, known
from simkv.report.player.replay import Shelves, untold
from simkv.report.player.traffic import ends
from simkv.sim.record.recording import FATES, KINDS, PURPOSES, TIERS, WHATS, Recording, Table

_DIGITS = 9
"""After the decimal point: nanoseconds."""

Columns = dict[str, list[Any]]


def payload(
    recording: Recording, pools: Sequence[Pool], rows: Sequence[Row], cells: Cells, policy: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all that the player needs. Cells count in the smallest blocks of any tier; ``scale`` says what is what."""
    shown = cells.shown()
    used = sorted({cells.label[cell] for cell in shown})
    label = {name: index for index, name in enumerate(used)}
    carriers = _carriers(recording)
    start, events, hidden = _blocks(recording, pools, rows, cells, carriers)
    return {
        "window": {
            "begin_s": recording.begin_s,
            "end_s": recording.end_s,
            "run_end_s": recording.run_end_s,
            "whole": recording.whole,
            "full": recording.full,
        },
        "policy": dict(policy),
        "words": {"kinds": KINDS, "purposes": PURPOSES, "fates": FATES, "whats": WHATS, "tiers": TIERS},
        "pools": [_pool(pool, pools) for pool in pools],
        "labels": [recording.labels[name] for name in used],
        "cells": {
            "label": [label[cells.label[cell]] for cell in shown],
            "first": [cells.first[cell] for cell in shown],
            "end": [cells.end[cell] for cell in shown],
        },
        "start": start,
        "events": events,
        "hidden": hidden,
        "private": _private(recording, pools),
        "lanes": [_lane(name) for name in recording.lanes],
        "transfers": _transfers(recording),
        "slices": _slices(recording),
        "steps": _steps(recording),
    }


def _since(recording: Recording, t_s: float) -> float:
    return round(t_s - recording.begin_s, _DIGITS)


def _pool(pool: Pool, pools: Sequence[Pool]) -> dict[str, Any]:
    return {
        "tier": pool.tier,
        "name": pool.name(pools),
        "capacity_blocks": pool.capacity_blocks,
        "block_bytes": pool.block_bytes,
        "block_tokens": pool.block_tokens,
        "scale": pool.scale,
    }


def _lane(name: str) -> dict[str, Any]:
    origin, target = ends(name)
    return {"name": name, "from": origin, "to": target}


def _carriers(recording: Recording) -> dict[tuple[int, int], int]:
    """Return the row of the transfer that brings something, by its id and the tier that it brings it to."""
    table, found = recording.transfers, {}
    for index, (number, lane) in enumerate(zip(table["id"], table["lane"], strict=True)):
        found[int(number), ends(recording.lanes[int(lane)])[1]] = index
    return found


def _blocks(
    recording: Recording,
    pools: Sequence[Pool],
    rows: Sequence[Row],
    cells: Cells,
    carriers: Mapping[tuple[int, int], int],
) -> tuple[Columns, Columns, Columns]:
    """Return what is there as the window begins, what happens to drawn cells, and how many others each pool holds."""
    start: Columns = {"pool": [], "first": [], "end": [], "transfer": [], "last_s": [], "uses": []}
    events: Columns = {"t": [], "pool": [], "what": [], "first": [], "end": [], "transfer": []}
    hidden: Columns = {"t": [], "pool": [], "blocks": []}
    unseen = untold(pools, rows, cells)
    for index, cell in unseen:
        if cells.drawn[cell] >= 0:
            _add(start, index, cells.drawn[cell], cells.drawn[cell] + 1, -1, None, 0)
    shelves = Shelves(pools, cells, unseen)
    before = [shelves.hidden(index) for index in range(len(pools))]
    for index, blocks in enumerate(before):
        if blocks:
            _add(hidden, 0.0, index, blocks)
    there = 0
    for row in rows:
        shelves.apply(row)
        now = max(0.0, _since(recording, row.t_s))
        if shelves.hidden(row.pool) != before[row.pool]:
            before[row.pool] = shelves.hidden(row.pool)
            _add(hidden, now, row.pool, before[row.pool])
        if row.what == THERE:
            last, uses = _before(recording, there)
            there += 1
        carrier = carriers.get((row.transfer, pools[row.pool].tier), -1)
        for first, end in _runs(cells, row):
            if row.what == THERE:
                _add(start, row.pool, first, end, carrier, last, uses)
            else:
                _add(events, now, row.pool, row.what, first, end, carrier)
    return start, events, _last_of_each_moment(hidden)


def _last_of_each_moment(table: Columns) -> Columns:
    """Leave out of a pool's counts those that stand for no time."""
    latest = {(t, pool): blocks for t, pool, blocks in zip(*table.values(), strict=True)}
    kept: Columns = {"t": [], "pool": [], "blocks": []}
    for (t, pool), blocks in latest.items():
        _add(kept, t, pool, blocks)
    return kept


def _before(recording: Recording, there: int) -> tuple[float | None, int]:
    """Return when what lay there as the window began was used last, and how often until then."""
    if there >= len(recording.last_use_s):
        return None, 0
    last = known(recording.last_use_s[there])
    return None if last is None else _since(recording, last), int(recording.uses[there])


def _runs(cells: Cells, row: Row) -> list[tuple[int, int]]:
    """Return the drawn cells of ``row`` as runs of indices that follow one another."""
    runs: list[tuple[int, int]] = []
    for cell in cells.of(row):
        index = cells.drawn[cell]
        if index < 0:
            continue
        if runs and runs[-1][1] == index:
            runs[-1] = runs[-1][0], index + 1
        else:
            runs.append((index, index + 1))
    return runs


def _add(table: Columns, *values: Any) -> None:
    for column, value in zip(table.values(), values, strict=True):
        column.append(value)


def _private(recording: Recording, pools: Sequence[Pool]) -> Columns:
    place = {(pool.tier, pool.number): index for index, pool in enumerate(pools)}
    table = recording.private
    where = zip(table["tier"], table["pool"], strict=True)
    return {
        "t": [max(0.0, _since(recording, t)) for t in table["t_s"]],
        "pool": [place[int(tier), int(number)] for tier, number in where],
        "blocks": [int(blocks) for blocks in table["blocks"]],
    }


def _transfers(recording: Recording) -> Columns:
    table = recording.transfers
    whole = ("lane", "bytes", "kind", "purpose", "request", "fate")
    times = {name: _times(recording, table, f"{name}_s") for name in ("submitted", "end")}
    return times | {name: [int(value) for value in table[name]] for name in whole}


def _slices(recording: Recording) -> Columns:
    place = {int(number): index for index, number in reversed(list(enumerate(recording.transfers["id"])))}
    table = recording.slices
    begins, ends = (_times(recording, table, name) for name in ("begin_s", "end_s"))
    known_ones = [k for k, number in enumerate(table["transfer"]) if int(number) in place]
    return {
        "transfer": [place[int(table["transfer"][k])] for k in known_ones],
        "begin": [begins[k] for k in known_ones],
        "end": [ends[k] for k in known_ones],
    }


def _steps(recording: Recording) -> Columns:
    table = recording.steps
    counts = {"replica": "replica", "count": "steps", "decodes": "decodes", "prefill": "prefill_tokens"}
    times = {"begin": "begin_s", "end": "end_s"}
    found: Columns = {name: [int(value) for value in table[column]] for name, column in counts.items()}
    found |= {name: _times(recording, table, column) for name, column in times.items()}
    return found | {"wait_s": [round(value, _DIGITS) for value in table["wait_s"]]}


def _times(recording: Recording, table: Table, column: str) -> list[float | None]:
    return [None if known(value) is None else _since(recording, value) for value in table[column]]
