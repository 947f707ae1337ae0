"""What every curve is made of: when it has a meaning, what it asks, and what it draws from the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from simkv.curves.ask import Answers, Ask
from simkv.curves.house import House
from simkv.curves.setting import Setting

Row = dict[str, Any]
"""One line of a curve's CSV."""


@dataclass(frozen=True)
class Ground:
    """What a curve is drawn on."""

    setting: Setting
    house: House | None
    """None: no curve that is drawn needs one."""

    @property
    def full(self) -> House:
        """The full house."""
        assert self.house is not None, "asked for by a curve that needs one"
        return self.house


@dataclass(frozen=True)
class Curve:
    """A curve that was drawn: what it found in words, and every number of it. Plain data once ``as_dict``."""

    name: str
    title: str
    """The finding, in one sentence."""
    about: tuple[str, ...]
    """What was simulated, and from where the closed form has its figures."""
    reads: tuple[str, ...]
    """What can be read off."""
    parts: tuple[str, ...]
    """Where closed form and simulation part, and why."""
    rows: tuple[Row, ...]
    """``series`` says of which line or points each is."""
    marks: dict[str, Any]
    """Figures that the sentences rest on."""
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        texts = {key: list(getattr(self, key)) for key in ("about", "reads", "parts", "warnings")}
        return {"title": self.title, **texts, "marks": self.marks, "rows": list(self.rows)}


@dataclass(frozen=True)
class Kind:
    """One of the curves."""

    name: str
    needs_house: bool
    why_not: Callable[[Setting], str | None]
    """Why it has no meaning in a scenario; None where it has one."""
    first: Callable[[Ground], Sequence[Ask]]
    """What can be asked from the start."""
    then: Callable[[Ground, Answers], Sequence[Ask]]
    """What is asked once that is answered."""
    draw: Callable[[Ground, Answers], Curve]
    """Raises InfeasibleError where too little came back."""
    later: Callable[[Ground], int] = lambda ground: 0
    """About how many runs ``then`` asks for, for the progress bar."""


def nothing_more(ground: Ground, answers: Answers) -> Sequence[Ask]:
    """Return no further question."""
    return ()


IN_BATCHES = "the engine serves static batches, whose KV lies where engine.placement says: there is no "
