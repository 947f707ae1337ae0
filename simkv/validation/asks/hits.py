"""A trace's block references replayed without time, as ``simkv hitrate`` does.

Keys of the section:

- ``trace``: path of a trace, from the case file's folder; or of the data folder, as the case's ``data: {trace: ...}``.
  ``format`` (absent: as found), ``block_tokens`` (of formats without blocks: 16), ``limit``: first requests only
- ``policy``: lru, fifo, lfu, slru, arc, s3fifo, priority, score or belady (Belady's bound); ``lambda`` of score,
  ``count`` of score and lfu: in_cache (default) or lifetime
- ``order``: how a prompt touches its blocks, ``forward`` (default) or ``reverse``
- ``capacity_blocks``, or ``capacity_tokens``, of which whole blocks count
- ``blocks``: ``all`` (default), or ``full``: without the partial last block of each prompt, which engines don't keep

Metrics: ``references``, ``hits``, ``hit_rate`` (of references), ``infinite_hits``, ``infinite_hit_rate`` (of a cache
that never evicts), ``distinct_blocks``, ``requests``. Only ``hits`` and ``hit_rate`` need policy and capacity.

A process keeps what it read: many questions about one trace read it once.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from simkv.errors import InputError, Problem
from simkv.hitrate import CHOICES, Rules, load
from simkv.hitrate.counting import Job
from simkv.hitrate.references import References
from simkv.hitrate.study import AS_LRU
from simkv.kvcache.eviction import COUNTING, DEFAULT_LAMBDA, CountMode
from simkv.kvcache.replay import Order
from simkv.kvcache.stack import LruCurve, stack_distances
from simkv.scenario.base import FilePath, Section, fault
from simkv.scenario.quantity import Quantity
from simkv.validation.asks.section import section_of, wanted
from simkv.validation.question import Question
from simkv.workload.readers import ReadReport, open_trace

_KEPT = 4
"""Traces, in one order each, that a process remembers."""
BYTE_S = 1e-7
"""What a byte of a trace takes to be replayed, on a core of today, roughly."""
_OF_HITS = {"hits", "hit_rate"}
if TYPE_CHECKING:
    Policy = str
else:
    Policy = Literal[CHOICES]
MOST_CAPACITY = 10**12
Blocks = Annotated[int, Field(strict=True, ge=1, le=MOST_CAPACITY)]
Tokens = Annotated[int, Quantity("tokens", least=1, most=MOST_CAPACITY)]


class Hits(Section):
    """What is replayed, in which cache."""

    trace: FilePath
    format: str | None = None
    block_tokens: Annotated[int, Field(strict=True, ge=1, le=1 << 24)] | None = None
    limit: Annotated[int, Field(strict=True, ge=1)] | None = None
    policy: Policy | None = None
    lambda_: Annotated[float, Field(ge=0, le=1)] | None = Field(default=None, alias="lambda")
    count: Literal["in_cache", "lifetime"] | None = None
    order: Order = "forward"
    capacity_blocks: Blocks | None = None
    capacity_tokens: Tokens | None = None
    blocks: Literal["all", "full"] = "all"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.capacity_blocks is not None and self.capacity_tokens is not None:
            raise fault("is given beside capacity_blocks", "give one of the two", "capacity_tokens")
        if self.lambda_ is not None and self.policy != "score":
            raise fault("does nothing without policy score", "leave it out", "lambda")
        if self.count is not None and self.policy not in COUNTING:
            raise fault(f"does nothing without policy {' or '.join(COUNTING)}", "leave it out", "count")
        return self


class _Root(Section):
    hits: Hits


class _Trace(NamedTuple):
    """What decides the references; the file by what it was when it was read."""

    path: str
    changed_ns: int
    format: str | None
    order: Order
    block_tokens: int | None
    limit: int | None
    full: bool


def answer(question: Question) -> dict[str, float]:
    """Replay as often as the metrics need. Raises InputError for a wrong section, or a trace that doesn't read."""
    asked = _section(question)
    references, curve = _read(_trace(asked))
    found: dict[str, float] = {
        "references": curve.references,
        "infinite_hits": curve.infinite_hits,
        "infinite_hit_rate": curve.infinite_hits / curve.references,
        "distinct_blocks": references.distinct_blocks,
        "requests": references.requests,
    }
    if _OF_HITS & set(question.metrics):
        hits = _hits(asked, references, curve)
        found |= {"hits": hits, "hit_rate": hits / curve.references}
    return wanted(question, found)


def check(question: Question) -> float:
    """Return about how many seconds the answer takes. Raises InputError for a section that isn't one."""
    trace = _section(question).trace.path
    return os.path.getsize(trace) * BYTE_S if os.path.exists(trace) else 0.0


def _section(question: Question) -> Hits:
    if question.seeds > 1:
        raise InputError(Problem("does nothing for hits", "leave it out", path="seeds"))
    asked = section_of(question, _Root).hits
    needed = {"policy": asked.policy, "capacity_blocks": asked.capacity_blocks or asked.capacity_tokens}
    missing = [key for key, given in needed.items() if given is None]
    if missing and _OF_HITS & set(question.metrics):
        raise InputError(Problem("is missing", "hits are of a policy and a capacity", path=f"hits.{missing[0]}"))
    return asked


def _trace(asked: Hits) -> _Trace:
    path = asked.trace.path
    try:
        changed = os.stat(path).st_mtime_ns
    except OSError as error:
        raise InputError(Problem(f"can't be read: {error.strerror}", path="hits.trace", value=path)) from None
    return _Trace(path, changed, asked.format, asked.order, asked.block_tokens, asked.limit, asked.blocks == "full")


@lru_cache(_KEPT)
def _read(trace: _Trace) -> tuple[References, LruCurve]:
    """Return the references of a trace, and LRU's hits of them at every capacity."""
    source = open_trace(Path(trace.path), trace.format)
    found = load(source, ReadReport(source.reader.name), trace.order, trace.block_tokens, trace.limit)
    if trace.full:
        found = _full(found)
    return found, LruCurve(stack_distances(found.blocks))


def _full(found: References) -> References:
    """Return the references to whole blocks alone; raises InputError where there are none."""
    whole = found.tokens == found.block_tokens
    if not whole.any():
        raise InputError(Problem("leaves no block of the trace", "write all", path="hits.blocks", value="full"))
    _, blocks = np.unique(found.blocks[whole], return_inverse=True)
    return replace(found, blocks=blocks.astype(np.int64, copy=False), tokens=found.tokens[whole])


def _hits(asked: Hits, references: References, curve: LruCurve) -> int:
    capacity = asked.capacity_blocks or (asked.capacity_tokens or 0) // references.block_tokens
    if capacity < 1:
        mend = f"give {references.block_tokens} tokens at least"
        raise InputError(Problem("holds no block", mend, path="hits.capacity_tokens", value=str(asked.capacity_tokens)))
    assert asked.policy is not None
    if asked.policy in AS_LRU:
        return curve.hits(capacity)
    mode: CountMode = asked.count or "in_cache"
    rules = Rules(DEFAULT_LAMBDA if asked.lambda_ is None else asked.lambda_, mode)
    return rules.hits(references.blocks.tolist(), Job(asked.policy, capacity))
