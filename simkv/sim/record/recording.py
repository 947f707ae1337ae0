"""The events of one window of a run, as columns; and what was asked to be recorded.

A recording changes nothing of the run. It is bounded by rows: once ``most`` are reached the window ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Table: TypeAlias = Mapping[str, Sequence[float | int]]
"""Columns of equal length."""

STEPS = ("replica", "begin_s", "end_s", "steps", "decodes", "prefill_tokens", "wait_s")
"""One row a macro-step that ended in the window: ``steps`` forward steps after one another, ``decodes`` sequences in
each, ``prefill_tokens`` of prompts. A replica's last row may be of steps under way at the window's end: ``end_s`` nan,
``steps`` 0. ``wait_s`` of it was waited for transfers; under active offload and with static batches, where a row is a
pass over all layers, it is all the time in which the GPU computed nothing.
"""
TRANSFERS = ("id", "lane", "submitted_s", "end_s", "bytes", "kind", "purpose", "request", "fate")
"""One row a transfer that ended in the window, or that was under way at its end (``end_s`` nan).

``lane``: index into ``lanes``; ``kind``: index into ``KINDS``, as it was when it ended; ``purpose``: into
``PURPOSES``; ``request``: for whom, -1: for nobody in particular; ``fate``: into ``FATES``.
"""
SLICES = ("transfer", "begin_s", "end_s")
"""When a lane served a transfer: it gives way to more urgent ones in between. A lane's slices don't overlap."""
BLOCKS = ("t_s", "tier", "pool", "what", "label", "first", "end", "transfer")
"""One row each time a run of blocks ``first .. end-1`` of content ``label`` changes in a tier, in order of time.

``tier``: index into ``TIERS``; ``pool``: number of the replica (VRAM) or of the pool within the tier; ``what``: index
into ``WHATS``; ``label``: index into ``labels``; blocks count from the beginning of the sequence that they are of;
``transfer``: what brings them, 0: none.
"""
PRIVATE = ("t_s", "tier", "pool", "blocks")
"""Blocks that running requests hold for themselves alone (partly filled, or what they are decoding), from then on."""

POOLS = ("tier", "pool", "capacity_blocks", "block_bytes", "block_tokens")
"""One row a pool of the system, in order of tier and number: its room in blocks, as ``blocks`` and ``private`` count
them there (a lower tier's may be units of several of VRAM's), and what one of those is."""

KINDS = ("demand", "next_step", "look_ahead", "write_back")
PURPOSES = ("other", "load", "promote", "prefetch", "store", "spill", "cascade", "swap_out", "swap_in", "stream")
FATES = ("none", "useful", "late", "wasted", "open")
"""Of prefetches; ``open``: not known at the window's end."""
TIERS = ("vram", "dram", "ssd")
WHATS = ("there", "coming", "here", "used", "gone")
"""``there``: it had room as the window began (``here`` follows where it was still coming); ``coming``: room is taken,
bytes are on their way; ``here``: they can be read."""

Rule = Literal["from_start", "latest", "asked"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to record. ``from_start``: from the first arrival until ``most`` rows; ``asked``: from ``begin_s`` to
    ``end_s`` of the run; ``latest``: begins anew whenever simulated time has grown fourfold and the window is over by
    then: it lies in a long run's later part, and a run with few events is there as a whole."""

    rule: Rule
    most: int
    blocks: bool
    """Also which blocks are where (for the player)."""
    begin_s: float = 0.0
    end_s: float | None = None


PLAYER = Wanted("latest", 6_000, blocks=True)
TRACE_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class Recording:
    """What was recorded, from ``begin_s`` to ``end_s`` of simulated time."""

    begin_s: float
    end_s: float
    run_end_s: float
    whole: bool
    """It covers the run from the first arrival to the last end."""
    full: bool
    """It ended since it had as many rows as it may have."""
    lanes: Sequence[str]
    """Names: ``replica 0 h2d``, ``replica 0 d2h``, ``host 0 ssd_read``, ..."""
    steps: Table
    transfers: Table
    slices: Table
    blocks: Table
    private: Table
    pools: Table
    labels: Sequence[str]
    """What content is, for people: ``session 12``, ``shared prefix 3``, ``request 7``."""
    rule: Rule = "latest"
    last_use_s: Sequence[float] = ()
    """By row of ``blocks`` that is ``there``: when it was used last before the window, nan where nobody knows."""
    uses: Sequence[int] = ()
    """By row of ``blocks`` that is ``there``: how often it was used before the window."""
    left_out_blocks: Sequence[int] = ()
    """By row of ``pools``: blocks that were there as the window began and have no row, the least recently used ones."""
