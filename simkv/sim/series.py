"""Step boundaries of a batch that doesn't change: an arithmetic series, always from its anchor.

Macro-steps, single steps and interrupts all use these two functions, so that no tie between an
event and a boundary is decided by the last bit.
"""

from __future__ import annotations

from math import sqrt


def boundary_s(anchor_s: float, first_s: float, growth_s: float, steps: int) -> float:
    """Return when ``steps`` steps are over that began at ``anchor_s``: first, first+growth, ..."""
    return anchor_s + steps * (first_s + growth_s * (steps - 1) * 0.5)


def steps_to_reach(anchor_s: float, first_s: float, growth_s: float, time_s: float) -> int:
    """Return the fewest steps whose boundary is at or after ``time_s`` (0 at or before the anchor)."""
    span = time_s - anchor_s
    if span <= 0.0:
        return 0
    b = first_s - 0.5 * growth_s
    if growth_s > 0.0:
        guess = 2.0 * span / (b + sqrt(b * b + 2.0 * growth_s * span))
    else:
        guess = span / b if b > 0.0 else 0.0
    steps = int(guess)
    while boundary_s(anchor_s, first_s, growth_s, steps) < time_s:
        steps += 1
    while steps > 0 and boundary_s(anchor_s, first_s, growth_s, steps - 1) >= time_s:
        steps -= 1
    return steps
