"""score = λ·recency + (1−λ)·freq, the lowest first.

Both terms are ranks among the candidates, scaled to 0..1 by the number of candidates less one:
``recency`` the number of candidates used longer ago, ``freq`` the number of candidates with
fewer uses (so equal counts have equal rank). Ties go to the less recent. λ=1 orders as ``lru``
and λ=0 as ``lfu`` with the same counter.

Scores are compared exactly: with λ = p/q (the decimal as written) as whole numbers
``p·recency + (q−p)·freq``, the common scale left out.
"""

from __future__ import annotations

from fractions import Fraction

from simkv.errors import InputError, Problem
from simkv.kvcache.eviction.base import E
from simkv.kvcache.eviction.counts import Counter
from simkv.kvcache.eviction.lfu import Counted
from simkv.kvcache.eviction.ranks import RecencyRanks


def whole_weights(lam: float) -> tuple[int, int]:
    """Return λ and 1−λ on their common whole scale; raises InputError where λ is no share."""
    if not 0 <= lam <= 1:
        raise InputError(Problem("λ is not a share", "write a number from 0 to 1", path="lambda", value=str(lam)))
    exact = Fraction(repr(float(lam)))
    return exact.numerator, exact.denominator - exact.numerator


class Score(Counted[E]):
    """Only the least recent of each class of use counts can have the lowest score."""

    __slots__ = ("_freq_weight", "_ranks", "_recency_weight")

    def __init__(self, lam: float, counter: Counter[E]) -> None:
        super().__init__(counter)
        self._recency_weight, self._freq_weight = whole_weights(lam)
        self._ranks: RecencyRanks[E] = RecencyRanks()

    def add(self, e: E) -> None:
        """Make ``e`` the most recent candidate."""
        self._classes.add(e, self._counter.take(e))
        self._ranks.append(e)

    def discard(self, e: E) -> None:
        """Forget candidate ``e``."""
        self._ranks.remove(e)
        self._classes.discard(e, self._counter.taken(e))

    def victim(self) -> E | None:
        """Return the candidate with the lowest score.

        Classes are met by rising ``freq``; one whose least recent member is more recent than that
        of a class before it can't win, none can once ``freq`` alone outweighs the best score, and
        one needn't be ranked that is too few slots before a ranked one to get below that.
        """
        ranks, members = self._ranks, self._classes.members
        slot_of, share = ranks.slot_of, self._recency_weight
        best: E | None = None
        best_score = oldest_slot = ranked_slot = rank = lower = 0  # lower: candidates in the classes before this one
        for uses in self._classes.counts:
            least = self._freq_weight * lower
            if best is not None and (least > best_score or not best_score):
                break
            oldest = next(iter(members[uses]))
            slot = slot_of[oldest]
            if best is None:
                rank = ranks.rank(slot)
                best, best_score = oldest, share * rank
                oldest_slot = ranked_slot = slot
            elif slot < oldest_slot:
                oldest_slot = slot
                if share * (rank - (ranked_slot - slot)) + least <= best_score:
                    rank = ranks.rank(slot)
                    ranked_slot = slot
                    score = share * rank + least
                    if score <= best_score:
                        best, best_score = oldest, score
            lower += len(members[uses])
        return best

    def __len__(self) -> int:
        return len(self._ranks)
