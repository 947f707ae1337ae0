"""Every error that simkv raises on purpose. Libraries raise these; only the CLI exits."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches


class SimkvError(Exception):
    """Base of all deliberate errors; ``exit_code`` is what the CLI ends with."""

    exit_code = 1


class InputError(SimkvError):
    """Something the user gave is wrong; carries one or more :class:`Problem`."""

    exit_code = 2

    def __init__(self, problems: Problem | list[Problem] | str) -> None:
        if isinstance(problems, str):
            problems = [Problem(problems)]
        elif isinstance(problems, Problem):
            problems = [problems]
        self.problems = problems
        super().__init__("\n".join(str(p) for p in problems))


class InfeasibleError(SimkvError):
    """The input is fine but cannot work (a model that doesn't fit); says by how much and what would."""

    exit_code = 3


class LawError(SimkvError):
    """A law of INVARIANTS.md doesn't hold in a run: a fault of simkv's."""


def broken_law(law: str, time_s: float, thing: str, what: str) -> str:
    """Return how a breach is told: which law, when (simulated), of which object, and what was found."""
    return f"law {law} broken at {time_s:.9g} s, {thing}: {what}"


def unknown(what: str, name: str, valid: Collection[str], path: str) -> InputError:
    """Return the error that there is no ``what`` called ``name``; it lists the valid names, the nearest first."""
    near = get_close_matches(name, valid, 1)
    mend = (f"did you mean {near[0]}? " if near else "") + f"valid: {', '.join(valid)}"
    return InputError(Problem(f"no such {what}", mend, path=path, value=name))


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong: where, what, and the mend.

    Prints as ``file:line: path = value: what; mend`` with absent parts left out.
    """

    what: str
    mend: str = ""
    file: str = ""
    line: int | None = None
    path: str = ""
    value: str = ""

    def __str__(self) -> str:
        place = self.file + (f":{self.line}" if self.line is not None else "")
        subject = self.path + (f" = {self.value}" if self.value else "")
        text = ": ".join(part for part in (place, subject, self.what) if part)
        return f"{text}; {self.mend}" if self.mend else text
