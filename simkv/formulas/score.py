"""The article's eviction score over scaled ranks.

Source: score_i = lambda * recency_i + (1 - lambda) * freq_i, lowest evicted first. recency and freq are
ranks among the candidates, both scaled to 0..1, so that lambda weighs like with like.
"""

from __future__ import annotations

from collections.abc import Sequence

from simkv.errors import InputError, Problem


def scaled_ranks(values: Sequence[float]) -> list[float]:
    """Rank of each value among all, scaled to 0 (smallest) .. 1 (largest); ties share their lowest rank.

    One value, or all equal: all zero.
    """
    rank = {value: index for index, value in reversed(list(enumerate(sorted(values))))}
    top = max(rank.values(), default=0)
    return [rank[value] / top if top else 0.0 for value in values]


def scores(last_use: Sequence[float], counts: Sequence[float], weight: float) -> list[float]:
    """Score of each candidate from its last use and its count; ``weight`` is the article's lambda.

    Raises :class:`InputError` for a lambda outside 0..1 or sequences of unequal length.
    """
    if not 0 <= weight <= 1:
        raise InputError(Problem("is not a weight in 0..1", "the article uses 0.5 to 0.8", path="lambda",
                                 value=str(weight)))  # fmt: skip
    if len(last_use) != len(counts):
        raise InputError(Problem(f"{len(last_use)} times for {len(counts)} counts", "give one of each a block"))
    recency, frequency = scaled_ranks(last_use), scaled_ranks(counts)
    return [weight * r + (1 - weight) * f for r, f in zip(recency, frequency, strict=True)]
