"""``topk``: a budget of blocks a step, of the newest, the sinks and heavy hitters.

Stands for what Quest, InfiniGen and ShadowKV choose by the keys and H2O by past attention: simkv
has no keys, so the choice is drawn. ``spec.TopK`` has the sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simkv.kvcache.access.base import Units
from simkv.kvcache.access.far import FarBlocks, Indices, Shares
from simkv.kvcache.access.forward import Forward
from simkv.kvcache.access.spec import TopK
from simkv.kvcache.access.units import Numbering, joined
from simkv.rng import stream

CHUNK_STEPS = 32
CHUNK_DRAWS = 1 << 18
"""Random numbers of a chunk; whatever it is, the draws are the same."""


@dataclass(frozen=True, slots=True)
class _Step:
    """What one step reads of a context, in blocks: sinks, ``picks`` of ``far`` far ones, ``first`` to ``end``."""

    sinks: int
    far: int
    picks: int
    first: int
    end: int


class TopKPattern:
    """Reads ``budget_tokens`` of each sequence and layer group, where it has as many."""

    sparse = True
    approximate = True

    def __init__(self, spec: TopK, numbering: Numbering, seed: int) -> None:
        self.spec = spec
        self.numbering = numbering
        self.groups = numbering.groups
        self._sinks = numbering.blocks(spec.sink_tokens)
        self._budget = numbering.blocks(spec.budget_tokens)
        self._seed = seed
        self.most_picks = max(0, self._budget - self._sinks - numbering.blocks(spec.recent_tokens))

    def open(self, request_id: int, prompt_tokens: int, output_tokens: int) -> Forward:
        """Return the reads of a request."""
        self.numbering.check(request_id, prompt_tokens + output_tokens)
        name, seed = f"access.{request_id}", self._seed
        if not self.most_picks:
            return Forward(lambda: self._without_picks(prompt_tokens + 1))
        return Forward(lambda: _TopKSteps(self, seed, name, prompt_tokens + 1).steps())

    def most_units(self, tokens: int) -> int:
        """Return the units of the budget, or of recent tokens and sinks where that is more, or of ``tokens`` tokens."""
        least = self._sinks + self.numbering.most_newest(self.spec.recent_tokens)
        return min(max(self._budget, least), self.numbering.blocks(tokens)) * self.groups

    def shape(self, tokens: int) -> _Step:
        """Return how the budget is spent in a context of ``tokens`` tokens."""
        end = self.numbering.blocks(tokens)
        first = self.numbering.first_of_newest(tokens, self.spec.recent_tokens)
        sinks = min(self._sinks, first)
        far = first - sinks
        return _Step(sinks, far, min(far, max(0, self._budget - sinks - (end - first))), first, end)

    def _without_picks(self, tokens: int) -> Iterator[Units]:
        run = self.numbering.run
        while True:
            step = self.shape(tokens)
            yield joined([run(0, step.sinks), run(step.first, step.end)])
            tokens += 1


class _TopKSteps:
    """Draws the far picks of one sequence, step by step.

    Each step keeps so many of the picks of the step before (whichever), and fills up by weight
    without replacement. Numbers are drawn for a chunk of steps at once: for each step, one that
    rounds how many are kept, and for each layer group one a pick, by which to keep it, and
    ``spare`` candidates. Where these don't suffice, mostly where weights are very uneven, the rest
    is drawn from those not picked yet.
    """

    def __init__(self, pattern: TopKPattern, seed: int, name: str, tokens: int) -> None:
        """``tokens`` is the context of step 0, ``name`` that of the sequence's streams."""
        self._pattern = pattern
        self._groups = pattern.groups
        self._run = pattern.numbering.run
        self._tokens = tokens
        self._draws = stream(seed, f"{name}.picks")
        self._far = FarBlocks(seed, name, self._groups, pattern.spec.skew, pattern.shape(tokens).far)
        self._sinks = pattern.numbering.blocks(pattern.spec.sink_tokens)
        self._stickiness = pattern.spec.stickiness
        self._spare = 2 * int((1 - self._stickiness) * pattern.most_picks + 1) + 16
        self._order = np.tile(np.arange(self._spare), self._groups)
        self._earliest = np.empty(0, dtype=np.intp)
        self._none: Indices = np.empty((self._groups, 0), dtype=np.intp)

    def steps(self) -> Iterator[Units]:
        """Yield what steps 0, 1, ... read."""
        keys_of, wide = self._pattern.most_picks, self._groups
        row = 1 + wide * (keys_of + self._spare)
        chunk = max(1, min(CHUNK_STEPS, CHUNK_DRAWS // row))
        picked = self._none
        while True:
            shapes = [self._pattern.shape(self._tokens + i) for i in range(chunk)]
            self._tokens += chunk
            self._far.grow(shapes[-1].far)
            draws = self._draws.random((chunk, row))
            keys = draws[:, 1 : 1 + wide * keys_of].reshape(chunk, wide, keys_of)
            candidates = self._candidates(draws[:, 1 + wide * keys_of :].reshape(chunk, wide, -1), shapes)
            for i, step in enumerate(shapes):
                kept = self._kept(picked, keys[i], draws[i, 0], step.picks)
                picked = self._filled(kept, candidates[i], step)
                far = np.sort(picked, axis=None).astype(np.int32)
                yield joined([self._run(0, step.sinks), far, self._run(step.first, step.end)])

    def _candidates(self, shares: Shares, shapes: list[_Step]) -> NDArray[np.intp]:
        """Return far units drawn with replacement, by step and layer group."""
        among = np.array([[max(1, step.far)] for step in shapes])
        found = np.empty(shares.shape, dtype=np.intp)
        if len(self._far):
            for group in range(self._groups):
                found[:, group] = self._units(self._far.draw(group, shares[:, group], among), group)
        return found

    def _units(self, far: Indices, group: int) -> Indices:
        return (far + self._sinks) * self._groups + group

    def _kept(self, picked: Indices, keys: Shares, rounding: float, most: int) -> Indices:
        """Return those of the picks before that stay, at most ``most``, as many in each layer group."""
        before = picked.shape[1]
        count = min(int(self._stickiness * before + rounding), before, most)
        if count == before:
            return picked
        if count == 0:
            return self._none
        keys = keys[:, :before]
        return picked[keys <= np.partition(keys, count - 1, axis=1)[:, count - 1 : count]].reshape(self._groups, count)

    def _filled(self, kept: Indices, candidates: Indices, step: _Step) -> Indices:
        """Return ``kept`` and what is drawn beside it."""
        missing = step.picks - kept.shape[1]
        if not missing:
            return kept
        if step.picks == step.far:
            return self._run(step.sinks, step.first).astype(np.intp).reshape(-1, self._groups).T
        fresh = self._fresh(kept, candidates, step)
        count = fresh.cumsum(axis=1)
        if count[:, -1].min() < missing:
            rows = [
                self._completed(group, kept[group], candidates[group][fresh[group]], step)
                for group in range(self._groups)
            ]
            return np.concatenate((kept, np.stack(rows)), axis=1)
        drawn = candidates[fresh & (count <= missing)].reshape(self._groups, missing)
        return np.concatenate((kept, drawn), axis=1)

    def _fresh(self, kept: Indices, candidates: Indices, step: _Step) -> NDArray[np.bool_]:
        """Return which candidates come for the first time and aren't in ``kept``."""
        if len(self._earliest) < step.end * self._groups:
            self._earliest = np.empty(2 * step.end * self._groups, dtype=np.intp)
        flat, earliest = candidates.ravel(), self._earliest
        earliest[flat] = self._spare
        np.minimum.at(earliest, flat, self._order)
        earliest[kept.ravel()] = -1
        first: NDArray[np.bool_] = earliest[flat] == self._order
        return first.reshape(candidates.shape)

    def _completed(self, group: int, kept: Indices, drawn: Indices, step: _Step) -> Indices:
        """Return the units that one layer group adds to ``kept``, beginning with those ``drawn``."""
        missing = step.picks - len(kept)
        drawn = drawn[:missing]
        if len(drawn) == missing:
            return drawn
        taken = np.concatenate((kept, drawn)) // self._groups - self._sinks
        more = self._far.others(group, missing - len(drawn), step.far, taken)
        return np.concatenate((drawn, self._units(more, group)))
