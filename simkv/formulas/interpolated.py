"""Time of one forward step of one replica, put together from measured points of a calibration profile.

    T = step overhead + layers * (linear(tokens) + layer overhead + attention) + head(sampled)

Points are joined by straight lines.

    decode attention    of a batch size that was measured over the tokens of context of all sequences together; of one
                        between two that were, the mean of both at the same context a sequence, by distance
    prefill chunk       over pairs of query and key, as a prompt of n tokens has n (n + 1) / 2; behind context that is
                        there already no less than decode attention takes to read all of it

Outside the range that was measured: above, the last point times what a roofline says of the two, which for attention
is the ratio of tokens read, or of pairs; below, the first point. Both join the range without a jump. More context never
takes less time: a point below the one before it counts as high as that.

A pure decode is an arithmetic series between two knots, the points that lines join.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import inf, sqrt
from typing import NamedTuple

from simkv.formulas.step import FOREVER, RooflineStep
from simkv.profile.schema import AttentionRow, Compute

Roof = Callable[[float], float]


class Outside(NamedTuple):
    """A figure that was asked for outside the range that was measured; the farthest that it was."""

    figure: str
    """``linear``, ``head``, ``batch``, ``context`` (of one sequence) or ``prompt``."""
    asked: float
    low: float
    high: float


class Table:
    """Points joined by straight lines; before the first as that one, after the last along ``roof``."""

    __slots__ = ("_roof", "xs", "ys")

    def __init__(self, points: Sequence[tuple[float, float]], roof: Roof) -> None:
        self.xs = tuple(x for x, _ in points)
        self.ys = tuple(y for _, y in points)
        self._roof = roof

    def at(self, x: float) -> float:
        """Return the value at ``x``."""
        right = bisect_right(self.xs, x)
        if right == 0:
            return self.ys[0]
        left_x, left_y = self.xs[right - 1], self.ys[right - 1]
        if right == len(self.xs):
            return left_y * self._roof(x) / self._roof(left_x)
        return left_y + (self.ys[right] - left_y) * (x - left_x) / (self.xs[right] - left_x)


def pairs(tokens: float) -> float:
    """Return the pairs of query and key of a prompt."""
    return tokens * (tokens + 1.0) / 2.0


def tokens_of(count: float) -> float:
    """Return the length of the prompt that has ``count`` pairs."""
    return (sqrt(8.0 * count + 1.0) - 1.0) / 2.0


def _in_proportion(x: float) -> float:
    return x


class _Batch:
    """Decode attention of one layer for one number of sequences, over the tokens of context of all together."""

    __slots__ = ("base_s", "knots", "sequences", "slopes", "values")

    def __init__(self, sequences: int, base_s: float, knots: Sequence[float], values: Sequence[float]) -> None:
        self.sequences = sequences
        self.base_s = base_s
        """Everything of a step but attention."""
        self.knots = tuple(knots)
        self.values = tuple(values)
        rises = [
            (self.values[n + 1] - self.values[n]) / (self.knots[n + 1] - self.knots[n]) for n in range(len(knots) - 1)
        ]
        self.slopes = (0.0, *rises, self.values[-1] / self.knots[-1])
        """Before each knot, and after the last."""

    def at(self, context_tokens: float) -> tuple[float, float, float]:
        """Return seconds, seconds a further token, and the context at which that changes (inf: never)."""
        right = bisect_right(self.knots, context_tokens)
        slope = self.slopes[right]
        if right == 0:
            return self.values[0], slope, self.knots[0]
        seconds = self.values[right - 1] + slope * (context_tokens - self.knots[right - 1])
        return seconds, slope, self.knots[right] if right < len(self.knots) else inf


class InterpolatedStep:
    """Step times of the model that was measured, on the machine that was; satisfies the simulator's ``StepCost``."""

    __slots__ = ("_batches", "_head", "_heads", "_layer_overhead_s", "_linear", "_outside", "_overhead_s", "_prefill",
                 "_rows", "_tokens", "layers")  # fmt: skip

    def __init__(
        self,
        layers: int,
        linear: Table,
        head: Table,
        decode: Sequence[AttentionRow],
        prefill: Sequence[tuple[float, float]],
        layer_overhead_s: float,
        step_overhead_s: float,
    ) -> None:
        """``prefill``: (tokens of a prompt, seconds of one layer)."""
        self.layers = layers
        self._linear = linear
        self._head = head
        self._rows = [(row.batch, Table(_never_falling(row.context), _in_proportion)) for row in decode]
        self._prefill = Table([(pairs(tokens), seconds) for tokens, seconds in prefill], _in_proportion)
        self._layer_overhead_s = layer_overhead_s
        self._overhead_s = step_overhead_s
        self._batches: dict[int, _Batch] = {}
        self._tokens: dict[int, float] = {}
        self._heads: dict[int, float] = {}
        self._outside: dict[str, tuple[float, Outside]] = {}

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        """Return what decides the times: pickled, costs are equal whatever they were asked before."""
        asked: dict[str, object] = {"_batches": {}, "_tokens": {}, "_heads": {}, "_outside": {}}
        return None, {name: getattr(self, name) for name in self.__slots__} | asked

    def decode(self, sequences: int, context_tokens: int) -> tuple[float, float, int]:
        """Pure decode: ``(first_s, growth_s, steps)``, an arithmetic series up to the next knot (see ``StepCost``)."""
        batch = self._batches.get(sequences) or self._batch(sequences)
        if not sequences:
            return batch.base_s, 0.0, FOREVER
        seconds, slope, knot = batch.at(context_tokens)
        if not batch.knots[0] <= context_tokens <= batch.knots[-1]:
            self._note_context(batch, context_tokens)
        steps = FOREVER if knot == inf else int((knot - context_tokens) // sequences) + 1
        return batch.base_s + self.layers * seconds, self.layers * slope * sequences, steps

    def mixed(self, sequences: int, context_tokens: int, chunks: list[tuple[int, int]], sampled: int) -> float:
        """One step with prefill ``chunks`` of ``(new_tokens, context_before)`` (see ``StepCost``)."""
        attention = self._attention_s(sequences, context_tokens) if sequences else 0.0
        tokens = sequences
        for new, before in chunks:
            tokens += new
            attention += self._chunk_s(new, before)
        return self._token_part(tokens) + self._head_s(sampled) + self.layers * attention

    def outside(self) -> list[Outside]:
        """Return what was asked for outside the measured range since the beginning, one entry a figure."""
        return [entry for _, entry in self._outside.values()]

    def _chunk_s(self, new: int, before: int) -> float:
        """Attention of one layer for the tokens of one sequence's prompt."""
        count = new * before + new * (new + 1) / 2
        if not self._prefill.xs[0] <= count <= self._prefill.xs[-1]:
            self._note("prompt", tokens_of(count), tokens_of(self._prefill.xs[0]), tokens_of(self._prefill.xs[-1]))
        computing = self._prefill.at(count)
        return max(computing, self._attention_s(1, before + new)) if before else computing

    def _attention_s(self, sequences: int, context_tokens: int) -> float:
        batch = self._batches.get(sequences) or self._batch(sequences)
        if not batch.knots[0] <= context_tokens <= batch.knots[-1]:
            self._note_context(batch, context_tokens)
        return batch.at(context_tokens)[0]

    def _batch(self, sequences: int) -> _Batch:
        """Return decode attention of ``sequences``, made of the rows that were measured next to it."""
        base_s = self._token_part(sequences) + self._head_s(sequences)
        knots, values = _between(self._rows, max(1, sequences))
        found = self._batches[sequences] = _Batch(sequences, base_s, knots, values)
        if sequences:
            self._note("batch", sequences, self._rows[0][0], self._rows[-1][0])
        return found

    def _token_part(self, tokens: int) -> float:
        """Overheads and linear layers."""
        known = self._tokens.get(tokens)
        if known is None:
            layer_s = self._linear.at(tokens) + self._layer_overhead_s
            known = self._tokens[tokens] = self._overhead_s + self.layers * layer_s
            self._note("linear", tokens, self._linear.xs[0], self._linear.xs[-1])
        return known

    def _head_s(self, sampled: int) -> float:
        known = self._heads.get(sampled)
        if known is None:
            known = self._heads[sampled] = self._head.at(sampled)
            self._note("head", sampled, self._head.xs[0], self._head.xs[-1])
        return known

    def _note_context(self, batch: _Batch, context_tokens: int) -> None:
        each = batch.sequences
        self._note("context", context_tokens / each, batch.knots[0] / each, batch.knots[-1] / each)

    def _note(self, figure: str, asked: float, low: float, high: float) -> None:
        """Keep what was asked for, where it is farther outside its range than before."""
        if asked <= 0 or low <= asked <= high:
            return
        ratio = max(asked / high, low / asked)
        known = self._outside.get(figure)
        if known is None or ratio > known[0]:
            self._outside[figure] = ratio, Outside(figure, asked, low, high)


def interpolated_step(compute: Compute, roofline: RooflineStep, kernels: str = "contiguous") -> InterpolatedStep:
    """Return the step times of the model that ``compute`` measured.

    ``roofline``: of the same model on the same machine, for how times go on outside the range. ``kernels``:
    ``contiguous``, or ``paged`` where that was measured.
    """
    decode = compute.paged if kernels == "paged" and compute.paged is not None else compute.decode
    return InterpolatedStep(
        layers=compute.shape["layers"],
        linear=Table(compute.linear, roofline.linear.seconds),
        head=Table(compute.head, roofline.head.seconds),
        decode=decode,
        prefill=compute.prefill,
        layer_overhead_s=compute.layer_overhead_s,
        step_overhead_s=compute.step_overhead_s,
    )


def _never_falling(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    highest = accumulate((y for _, y in points), max)
    return [(x, y) for (x, _), y in zip(points, highest, strict=True)]


def _between(rows: Sequence[tuple[int, Table]], sequences: int) -> tuple[list[float], list[float]]:
    """Return knots (tokens of context of all sequences) and seconds for a batch between two measured ones."""
    upper = next((n for n, (batch, _) in enumerate(rows) if batch >= sequences), len(rows))
    if upper == 0 or upper == len(rows):
        batch, row = rows[min(upper, len(rows) - 1)]
        more = max(1.0, sequences / batch)
        return [x * sequences / batch for x in row.xs], [y * more for y in row.ys]
    (fewer, below), (more_sequences, above) = rows[upper - 1], rows[upper]
    share = (sequences - fewer) / (more_sequences - fewer)
    if share == 1.0:
        return list(above.xs), list(above.ys)
    each = sorted({x / fewer for x in below.xs} | {x / more_sequences for x in above.xs})
    values = [(1 - share) * below.at(x * fewer) + share * above.at(x * more_sequences) for x in each]
    return [x * sequences for x in each], values
