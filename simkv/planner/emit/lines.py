"""What an engine is told, piece by piece, each with why; and how that is written for bash and as YAML."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import wrap

Plain = bool | int | float | str | None
COLUMN = 46
"""Where comments begin, of lines that are shorter."""
WIDEST = 120
"""Of a line with its comment beside it; of longer ones the comment stands above."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One argument of a command line, or one flag with its value."""

    name: str
    """Empty: the value stands by itself."""
    value: str | None
    """None: the flag stands by itself."""
    why: str
    """What it is, in which unit, and where it is from."""

    @property
    def words(self) -> list[str]:
        """The flag as the program gets it."""
        return [word for word in (self.name, self.value) if word]


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a YAML file; the keys of one section follow one another."""

    path: tuple[str, ...]
    """The key, or its section and itself."""
    value: Plain
    why: str


@dataclass(frozen=True, slots=True)
class Launch:
    """One process to start: an engine of one replica."""

    environment: Mapping[str, str]
    words: tuple[str, ...] = ()
    """Arguments that only this one gets."""


def argv(flags: Iterable[Flag]) -> list[str]:
    """Return the arguments that a program gets."""
    return [word for flag in flags for word in flag.words]


def number(value: float) -> str:
    """Return the shortest text of a number that reads back as it, whole ones without a point."""
    return str(int(value)) if value == int(value) else repr(float(value))


def rounded(value: float) -> str:
    """Return a number for a comment: three digits behind the point at most."""
    return number(round(value, 3))


def compact(value: Mapping[str, object]) -> str:
    """Return a JSON object in one word."""
    return json.dumps(value, separators=(",", ":"))


def said(text: str) -> str:
    """Return a comment's text on one line."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _commented(code: str, why: str) -> list[str]:
    """Return a line with its comment; of a long one the comment's lines stand above it."""
    line = f"{code:<{COLUMN}}  # {said(why)}"
    if len(line) <= WIDEST:
        return [line]
    start = " " * (len(code) - len(code.lstrip())) + "# "
    return [*wrap(said(why), WIDEST, initial_indent=start, subsequent_indent=start, break_on_hyphens=False), code]


def script(
    title: Sequence[str],
    program: Sequence[str],
    flags: Sequence[Flag],
    launches: Sequence[Launch],
    files: Mapping[str, str],
) -> str:
    """Return a bash script that writes ``files`` where it is run, and starts ``program`` once for each launch."""
    lines = [
        one for line in title for one in wrap(said(line), WIDEST, initial_indent="# ", subsequent_indent="#   ")
    ]  # fmt: skip
    for name, content in files.items():
        lines += [f"cat > {shlex.quote(name)} <<'YAML'", content.rstrip("\n"), "YAML"]
    lines.append("args=(")
    for flag in flags:
        lines += _commented(f"  {shlex.join(flag.words)}", flag.why)
    lines.append(")")
    several = len(launches) > 1
    lines += [_started(program, launch) + (" &" if several else "") for launch in launches]
    return "\n".join([*lines, *(["wait"] if several else [])]) + "\n"


def _started(program: Sequence[str], launch: Launch) -> str:
    settings = [f"{name}={shlex.quote(value)}" for name, value in launch.environment.items()]
    return " ".join([*settings, shlex.join(program), '"${args[@]}"', *map(shlex.quote, launch.words)])


def yaml_text(entries: Sequence[Entry]) -> str:
    """Return a YAML file of one or two levels, a comment a line."""
    lines: list[str] = []
    for section, group in groupby(entries, key=lambda entry: entry.path[:-1]):
        lines += [f"{key}:" for key in section]
        for entry in group:
            lines += _commented(f"{'  ' * len(section)}{entry.path[-1]}: {json.dumps(entry.value)}", entry.why)
    return "\n".join(lines) + "\n"
