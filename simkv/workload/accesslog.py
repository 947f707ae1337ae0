"""Logs of sparse attention: which blocks a sequence read, and prefetched, at each decode step.

JSON Lines, plain or gzip::

    {"step": 3, "sequence": 0, "blocks": [0, 17, 18], "prefetch": [19]}

``step`` counts decode steps of the sequence from 0, ``sequence`` is the request's number in order
of arrival, ``blocks`` are numbered from 0 at the beginning of the prompt and stand in the order of access.
``prefetch`` may be left out. Steps that aren't named read nothing. Rows of different sequences may
be mixed; those of one have rising steps. Further keys are ignored.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simkv.errors import InputError, Problem
from simkv.workload.readers.files import head
from simkv.workload.readers.jsonl import Fields, Row, kind, rows
from simkv.workload.readers.report import ReadReport

MOST = 2**31 - 1
MOST_IDS = 1 << 27
"""In one log: 512 MiB of them."""
STEP, SEQUENCE, BLOCKS, PREFETCH = KEYS = ("step", "sequence", "blocks", "prefetch")

Ids = NDArray[np.int32]


def _none() -> Ids:
    return np.empty(0, dtype=np.int32)


def _no_lines() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class SequenceLog:
    """The rows of one sequence by rising step; the ids of row i end before ``ends[i]``."""

    steps: Ids = field(default_factory=_none)
    lines: NDArray[np.int64] = field(default_factory=_no_lines)
    blocks: Ids = field(default_factory=_none)
    block_ends: NDArray[np.int64] = field(default_factory=_no_lines)
    prefetched: Ids = field(default_factory=_none)
    prefetched_ends: NDArray[np.int64] = field(default_factory=_no_lines)

    def reads(self, step: int) -> Ids:
        """Return the blocks read at ``step`` in order of access; none where the log doesn't name it."""
        return self._row(step, self.blocks, self.block_ends)

    def prefetches(self, step: int) -> Ids:
        """Return the blocks prefetched at ``step``, in the order of the log."""
        return self._row(step, self.prefetched, self.prefetched_ends)

    def lists(self) -> tuple[tuple[str, Ids, NDArray[np.int64]], ...]:
        """Return key, ids and ends of both lists."""
        return (BLOCKS, self.blocks, self.block_ends), (PREFETCH, self.prefetched, self.prefetched_ends)

    def _row(self, step: int, ids: Ids, ends: NDArray[np.int64]) -> Ids:
        row = int(self.steps.searchsorted(step))
        if row == len(self.steps) or self.steps[row] != step:
            return ids[:0]
        return ids[ends[row - 1] if row else 0 : ends[row]]


@dataclass(frozen=True, slots=True)
class AccessLog:
    """A log, whole."""

    path: Path
    sequences: dict[int, SequenceLog]
    """By number, in order of first appearance."""
    most_blocks: int
    """Read by one step of one sequence."""
    has_prefetch: bool
    """Some row names prefetched blocks."""


class _Rows:
    """The rows of one sequence while the file is read."""

    __slots__ = ("block_ends", "blocks", "lines", "prefetched", "prefetched_ends", "steps")

    def __init__(self) -> None:
        self.steps, self.blocks, self.prefetched = array("i"), array("i"), array("i")
        self.lines, self.block_ends, self.prefetched_ends = array("q"), array("q"), array("q")

    def add(self, line: int, step: int, blocks: list[int], prefetched: list[int]) -> None:
        """Append a row."""
        self.steps.append(step)
        self.lines.append(line)
        self.blocks.extend(blocks)
        self.block_ends.append(len(self.blocks))
        self.prefetched.extend(prefetched)
        self.prefetched_ends.append(len(self.prefetched))

    def packed(self) -> SequenceLog:
        """Return the rows as arrays that share their memory."""
        ids = (np.frombuffer(a, np.int32) for a in (self.steps, self.blocks, self.prefetched))
        counts = (np.frombuffer(a, np.int64) for a in (self.lines, self.block_ends, self.prefetched_ends))
        (steps, blocks, prefetched), (lines, block_ends, prefetched_ends) = ids, counts
        found = SequenceLog(steps, lines, blocks, block_ends, prefetched, prefetched_ends)
        for values in (steps, blocks, prefetched, lines, block_ends, prefetched_ends):
            values.flags.writeable = False
        return found


def read_access_log(path: str | Path) -> AccessLog:
    """Return the log in ``path``.

    Raises InputError with file, line, key and value: for what is no such row, for ids that are negative or
    come twice in a list, for steps of a sequence that don't rise, and for more than 2^27 ids in all.
    """
    path = Path(path)
    head(path)
    sequences: dict[int, _Rows] = {}
    ids = most_blocks = 0
    for line, sequence, step, blocks, prefetched in _checked(path):
        found = sequences.get(sequence)
        if found is None:
            found = sequences[sequence] = _Rows()
        elif step <= found.steps[-1]:
            raise _not_rising(path, line, sequence, step, found)
        found.add(line, step, blocks, prefetched)
        most_blocks = max(most_blocks, len(blocks))
        ids += len(blocks) + len(prefetched)
        if ids > MOST_IDS:
            mend = "cut the log to fewer sequences or steps"
            raise InputError(Problem(f"has more than {MOST_IDS:,} block ids", mend, file=str(path), line=line))
    has_prefetch = any(len(found.prefetched) for found in sequences.values())
    packed = {sequence: found.packed() for sequence, found in sequences.items()}
    return AccessLog(path, packed, most_blocks, has_prefetch)


def _checked(path: Path) -> Iterator[tuple[int, int, int, list[int], list[int]]]:
    """Yield line, sequence, step, blocks and prefetched blocks of each row."""
    fields = Fields(path, KEYS)
    for line, row in rows(path, ReadReport()):
        step, sequence = _count(fields, row, STEP, line), _count(fields, row, SEQUENCE, line)
        if PREFETCH not in row and len(row) > 3:
            _check_spelling(fields, row, line)
        yield line, sequence, step, _ids(fields, row, BLOCKS, line), _ids(fields, row, PREFETCH, line, [])


def _count(fields: Fields, row: Row, key: str, line: int) -> int:
    value = row.get(key)
    if type(value) is int and 0 <= value <= MOST:
        return value
    if key not in row:
        raise fields.missing(row, key, line)
    what = "is negative" if type(value) is int and value < 0 else "is not a whole number"
    if type(value) is int and value > MOST:
        what = f"is more than {MOST:,}"
    raise fields.bad(line, key, value, what, "write a whole number, counted from 0")


def _ids(fields: Fields, row: Row, key: str, line: int, default: list[int] | None = None) -> list[int]:
    """Return the list of ids under ``key``, each once; ``default`` where there is none and that isn't None."""
    ids = row.get(key, default)
    if type(ids) is not list:
        if key not in row:
            raise fields.missing(row, key, line)
        raise fields.bad(line, key, ids, f"is {kind(ids)}, not a list", "write [0, 5, 6]; [] for none")
    if not ids:
        return ids
    for value in ids if set(map(type, ids)) != {int} else ():
        if type(value) is not int:
            raise fields.bad(
                line, key, value, f"is {kind(value)}, not a whole number", "write ids of blocks, from 0 up"
            )
    if min(ids) < 0:
        raise fields.bad(line, key, min(ids), "is negative", "write ids of blocks, from 0 up")
    if max(ids) > MOST:
        raise fields.bad(line, key, max(ids), f"is more than {MOST:,}", "number blocks from 0 a sequence")
    if len(set(ids)) < len(ids):
        seen: set[int] = set()
        twice = next(i for i in ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
        raise fields.bad(line, key, twice, "comes twice in one step", "write each block once, where it is read first")
    return ids


def _check_spelling(fields: Fields, row: Row, line: int) -> None:
    """Raise InputError where a key is likely meant as ``prefetch``, which would be ignored."""
    for key in row:
        if key not in KEYS and get_close_matches(key, [PREFETCH], 1, 0.75):
            raise fields.bad(line, key, row[key], "is no key of this format", f"rename it to {PREFETCH!r}")


def _not_rising(path: Path, line: int, sequence: int, step: int, found: _Rows) -> InputError:
    last, before = found.steps[-1], found.lines[-1]
    how = "comes twice" if step == last else f"goes back: it was {last}"
    what = f"{how} for sequence {sequence} (line {before})"
    mend = "write a sequence's rows by rising steps, one a step"
    return InputError(Problem(what, mend, file=str(path), line=line, path=STEP, value=str(step)))
