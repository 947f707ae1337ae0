"""Step boundaries of a batch that doesn't change: an arithmetic series, always from its anchor.

Macro-steps, single steps and interrupts all use the same two functions, so that no tie between an
event and a boundary is decided by the last bit.
"""

from __future__ import annotations

from math import sqrt


class Series:
    """The steps under way: from engine step ``anchor_step`` on, each longer by the same, while nothing changes."""

    __slots__ = ("anchor_s", "anchor_step", "first_s", "growth_s", "valid_to")

    def __init__(self) -> None:
        self.anchor(0.0, 0, 0.0, 0.0, 0)

    def anchor(self, now: float, step: int, first_s: float, growth_s: float, valid_to: int) -> None:
        """Let ``step`` begin now and take ``first_s``, the next ones ``growth_s`` more each, before ``valid_to``."""
        self.anchor_s = now
        self.anchor_step = step
        self.first_s = first_s
        self.growth_s = growth_s
        self.valid_to = valid_to

    def once(self, now: float, step: int, step_s: float) -> None:
        """Let ``step``, which is of its own kind, begin now and take ``step_s``: what follows begins a new series."""
        self.anchor(now, step, step_s, 0.0, 0)

    def step_s(self, step: int) -> float:
        """Return how long ``step`` takes."""
        return self.first_s + self.growth_s * (step - self.anchor_step)

    def begins_s(self, step: int) -> float:
        """Return when ``step`` begins: the boundary before it."""
        return boundary_s(self.anchor_s, self.first_s, self.growth_s, step - self.anchor_step)

    def first_at(self, now: float) -> int:
        """Return the first step that begins at or after ``now``."""
        return self.anchor_step + steps_to_reach(self.anchor_s, self.first_s, self.growth_s, now)


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
