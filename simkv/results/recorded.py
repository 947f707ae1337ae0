"""``recording.json``: what a run recorded of its own events, as columns, nan as null."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from math import isfinite, nan
from typing import Any, get_args

from simkv.errors import InputError, Problem
from simkv.sim.record.recording import (
    BLOCKS,
    FATES,
    KINDS,
    POOLS,
    PRIVATE,
    PURPOSES,
    SLICES,
    STEPS,
    TIERS,
    TRANSFERS,
    WHATS,
    Recording,
    Rule,
)

RECORDING = "recording.json"
FORMAT = "simkv recording 1"
MOST_BYTES = 64 << 20
"""No recording that simkv writes comes near."""
_MOST = 2.0**63
_TABLES = {
    "steps": STEPS,
    "transfers": TRANSFERS,
    "slices": SLICES,
    "blocks": BLOCKS,
    "private": PRIVATE,
    "pools": POOLS,
}
_TIMES = ("begin_s", "end_s", "run_end_s")
_INDEX = {"kind": len(KINDS), "purpose": len(PURPOSES), "fate": len(FATES), "tier": len(TIERS), "what": len(WHATS)}
"""Columns whose values index what never changes."""
_COUNTS = ("bytes", "blocks", "first", "end", "steps", "decodes", "prefill_tokens", "replica", "pool")
_SIZES = ("capacity_blocks", "block_bytes", "block_tokens")

Columns = dict[str, tuple[Any, ...]]


def to_json(recording: Recording) -> bytes:
    """Return ``recording`` as one line of JSON, the same bytes for the same recording."""
    import orjson

    parts = {field.name: getattr(recording, field.name) for field in fields(recording)}
    times = {name: float(parts[name]) for name in _TIMES}
    return orjson.dumps({"format": FORMAT, **parts, **times}, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n"


def from_json(text: bytes, file: str = RECORDING) -> Recording:
    """Return the recording that ``text`` is; raises :class:`InputError`, which names what is wrong and where."""
    import orjson

    if len(text) > MOST_BYTES:
        raise _damaged(file, "", f"it has {len(text):,} bytes, and no recording has more than {MOST_BYTES:,}")
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _damaged(file, "", f"it is no JSON: {error}") from error
    return _Reader(found, file).recording()


class _Reader:
    """Takes a recording out of what JSON said, and believes none of it."""

    def __init__(self, found: object, file: str) -> None:
        self._file = file
        if not isinstance(found, dict):
            raise _damaged(file, "", "it is no object")
        self._found: dict[str, Any] = found
        if found.get("format") != FORMAT:
            raise _damaged(file, "format", f"it isn't {FORMAT!r}")

    def recording(self) -> Recording:
        """Return the recording."""
        times = {name: self._time(name) for name in _TIMES}
        if not times["begin_s"] <= times["end_s"] <= times["run_end_s"]:
            raise self._bad("end_s", "begin_s, end_s and run_end_s aren't in this order")
        lanes, labels = self._texts("lanes"), self._texts("labels")
        tables = {name: self._table(name, columns) for name, columns in _TABLES.items()}
        self._check(tables, len(lanes), len(labels))
        there = sum(what == WHATS.index("there") for what in tables["blocks"]["what"])
        whole, full = (self._flag(name) for name in ("whole", "full"))
        return Recording(
            begin_s=times["begin_s"],
            end_s=times["end_s"],
            run_end_s=times["run_end_s"],
            whole=whole,
            full=full,
            steps=tables["steps"],
            transfers=tables["transfers"],
            slices=tables["slices"],
            blocks=tables["blocks"],
            private=tables["private"],
            pools=tables["pools"],
            lanes=lanes,
            labels=labels,
            rule=self._rule(),
            last_use_s=self._row("last_use_s", there, _a_time),
            uses=self._row("uses", there, _a_count),
            left_out_blocks=self._row("left_out_blocks", len(tables["pools"]["pool"]), _a_count),
        )

    # ---- values by their kind

    def _get(self, name: str) -> Any:
        if name not in self._found:
            raise self._bad(name, "it is missing")
        return self._found[name]

    def _time(self, name: str) -> float:
        value = self._get(name)
        if value is None or not _a_time(value):
            raise self._bad(name, "it is no time in seconds", value)
        return float(value)

    def _flag(self, name: str) -> bool:
        value = self._get(name)
        if not isinstance(value, bool):
            raise self._bad(name, "it is neither true nor false", value)
        return value

    def _rule(self) -> Rule:
        value = self._get("rule")
        for rule in get_args(Rule):
            if value == rule:
                known: Rule = rule
                return known
        raise self._bad("rule", f"it is none of {', '.join(get_args(Rule))}", value)

    def _texts(self, name: str) -> tuple[str, ...]:
        value = self._get(name)
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self._bad(name, "it is no list of names")
        return tuple(value)

    def _row(self, name: str, length: int, fits: Callable[[object], bool]) -> tuple[Any, ...]:
        column = self._column(name, self._get(name), fits)
        if len(column) != length:
            raise self._bad(name, f"it has {len(column):,} values where {length:,} are due")
        return column

    def _table(self, name: str, columns: Sequence[str]) -> Columns:
        value = self._get(name)
        if not isinstance(value, dict):
            raise self._bad(name, "it is no object of columns")
        for column in columns:
            if column not in value:
                raise self._bad(f"{name}.{column}", "the column is missing")
        table = {column: self._column(f"{name}.{column}", value[column], _kind(column)) for column in columns}
        lengths = {column: len(values) for column, values in table.items()}
        for column, length in lengths.items():
            if length != lengths[columns[0]]:
                what = f"it has {length:,} rows where {columns[0]} has {lengths[columns[0]]:,}"
                raise self._bad(f"{name}.{column}", what)
        return table

    def _column(self, path: str, values: object, fits: Callable[[object], bool]) -> tuple[Any, ...]:
        if not isinstance(values, list):
            raise self._bad(path, "it is no list")
        for row, value in enumerate(values):
            if not fits(value):
                raise self._bad(f"{path}[{row}]", "it is no number that can stand there", value)
        return tuple(nan if value is None else value for value in values)

    # ---- what columns say of each other

    def _check(self, tables: Mapping[str, Columns], lanes: int, labels: int) -> None:
        self._below("transfers.lane", tables["transfers"]["lane"], lanes)
        self._below("blocks.label", tables["blocks"]["label"], labels)
        pools = set(zip(tables["pools"]["tier"], tables["pools"]["pool"], strict=True))
        if len(pools) != len(tables["pools"]["pool"]):
            raise self._bad("pools.pool", "a pool is there twice")
        for name in ("blocks", "private"):
            for row, pool in enumerate(zip(tables[name]["tier"], tables[name]["pool"], strict=True)):
                if pool not in pools:
                    raise self._bad(f"{name}.pool[{row}]", "there is no such pool", pool[1])
            self._in_order(f"{name}.t_s", tables[name]["t_s"])
        runs = zip(tables["blocks"]["first"], tables["blocks"]["end"], strict=True)
        for row, (first, end) in enumerate(runs):
            if first >= end:
                raise self._bad(f"blocks.end[{row}]", f"the run of blocks begins at {first} and has none", end)

    def _below(self, path: str, values: Sequence[int], most: int) -> None:
        for row, value in enumerate(values):
            if not 0 <= value < most:
                raise self._bad(f"{path}[{row}]", f"there are {most:,} of them, from 0 up", value)

    def _in_order(self, path: str, times_s: Sequence[float]) -> None:
        last_s = -_MOST
        for row, at_s in enumerate(times_s):
            if not at_s >= last_s:
                raise self._bad(f"{path}[{row}]", "it is before the row above", at_s)
            last_s = at_s

    def _bad(self, path: str, what: str, value: object = "") -> InputError:
        return _damaged(self._file, path, what, value)


def _a_time(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and abs(value) < _MOST


def _a_number(value: object) -> bool:
    return type(value) is int and -_MOST < value < _MOST


def _a_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _MOST


def _a_size(value: object) -> bool:
    return _a_count(value) and value != 0


def _kind(column: str) -> Callable[[object], bool]:
    """Return what tells whether a value can stand in ``column``."""
    if column.endswith("_s"):
        return _a_time
    if column in _INDEX:
        most = _INDEX[column]
        return lambda value: type(value) is int and 0 <= value < most
    if column == "capacity_blocks" or column in _COUNTS:
        return _a_count
    return _a_size if column in _SIZES else _a_number


def _damaged(file: str, path: str, what: str, value: object = "") -> InputError:
    shown = "" if value == "" else repr(value)[:40]
    mend = "write the result anew with simkv run"
    return InputError(
        Problem(f"{what}; the recording is damaged, or of another version", mend, file, None, path, shown)
    )
