"""Hit rates of caches under independent references: oracles for the simulator, which never imports them.

Source: H. Che, Y. Tung, Z. Wang, Hierarchical Web caching systems (IEEE JSAC 20(7), 2002), section III; why it is
so near: C. Fricker, P. Robert, J. Roberts, A versatile and accurate approximation for LRU cache performance (2012).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, expm1


def zipf(items: int, exponent: float) -> list[float]:
    """Probabilities of items 1 .. ``items`` in proportion to ``rank ** -exponent``."""
    weights = [float(rank) ** -exponent for rank in range(1, items + 1)]
    total = sum(weights)
    return [weight / total for weight in weights]


def characteristic_references(probabilities: Sequence[float], capacity: int) -> float:
    """References for which an item stays in an LRU cache after its last use (Che): sum(1 - exp(-p t)) = capacity.

    Needs ``0 < capacity < number of items``.
    """
    return _filled(lambda span: -sum(expm1(-p * span) for p in probabilities), capacity)


def lru_hit_rate(probabilities: Sequence[float], capacity: int) -> float:
    """Share of references that an LRU cache of ``capacity`` equal items hits, by Che's approximation."""
    if capacity <= 0:
        return 0.0
    if capacity >= sum(p > 0 for p in probabilities):
        return 1.0
    span = characteristic_references(probabilities, capacity)
    return sum(p * (1 - exp(-p * span)) for p in probabilities)


def fifo_hit_rate(probabilities: Sequence[float], capacity: int) -> float:
    """Share of references that a FIFO (or random) cache hits: an item stays ``t`` references whatever its use.

    Fricker, Robert, Roberts (2012), section 2: hit probability of an item p t / (1 + p t).
    """
    if capacity <= 0:
        return 0.0
    if capacity >= sum(p > 0 for p in probabilities):
        return 1.0
    span = _filled(lambda span: sum(p * span / (1 + p * span) for p in probabilities), capacity)
    return sum(p * (p * span / (1 + p * span)) for p in probabilities)


def _filled(held: Callable[[float], float], capacity: int) -> float:
    """Return the references after which the items ``held``, which rise with them, are as many as ``capacity``."""
    low, high = 0.0, 1.0
    while held(high) < capacity:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if held(middle) < capacity:
            low = middle
        else:
            high = middle
    return high
