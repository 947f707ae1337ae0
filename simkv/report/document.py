"""What a report is made of, whatever it is written as: sections of texts, tables, figures and widgets, as plain data.

Builders (``report/run/``, ``report/compare/``, ...) make a :class:`Document` of result folders; ``report/html``,
``report/markdown`` and ``report/pdf`` write it. Texts are plain: whoever writes them escapes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, TypeAlias

Draw: TypeAlias = Callable[[BinaryIO, str], None]
"""Draws a figure without its title into a file, as ``png`` or ``svg``."""
Tone = Literal["good", "bad", "warning", "plain"]


def _check_texts(what: str, *found: object) -> None:
    """Raise TypeError for what is no text: an answer that was read back may hold anything."""
    for one in found:
        if not isinstance(one, str):
            raise TypeError(f"{what} that is no text: {one!r}")


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; ``lead``: in large letters, the answer itself."""

    text: str
    lead: bool = False

    def __post_init__(self) -> None:
        """Raise TypeError for what is no text."""
        _check_texts("a paragraph", self.text)


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence that must not be overlooked: a warning with its code, a verdict."""

    tone: Tone
    text: str
    code: str = ""

    def __post_init__(self) -> None:
        """Raise TypeError for what is no text."""
        _check_texts("a note", self.text, self.code)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table: what is shown, and the exact value behind it where that says more (for CSV)."""

    text: str
    value: float | int | str | None = None
    tone: Tone = "plain"

    def __post_init__(self) -> None:
        """Raise TypeError for what is no text."""
        _check_texts("a cell", self.text)

    @property
    def exact(self) -> float | int | str:
        """What stands in the CSV."""
        return self.text if self.value is None else self.value


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads; ``name`` is that of its CSV file, without ``.csv`` (empty: there is none)."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    name: str = ""
    caption: str = ""
    right: frozenset[int] = frozenset()
    """Columns of numbers."""

    def __post_init__(self) -> None:
        """Raise TypeError for what is no text."""
        _check_texts("a head or caption", *self.heads, self.name, self.caption)


@dataclass(frozen=True, slots=True)
class Data:
    """The figures behind a picture: heads with units, and rows of exact values."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture: ``finding`` is its title and says what is seen; ``alt`` says it to who can't see it, in full."""

    name: str
    finding: str
    draw: Draw
    data: Data
    alt: str
    note: str = ""
    wide: bool = False
    """Takes the whole width of a wide screen, instead of half of it."""

    def __post_init__(self) -> None:
        """Raise TypeError for what is no text."""
        _check_texts("a finding or note", self.name, self.finding, self.alt, self.note)


@dataclass(frozen=True, slots=True)
class Widget:
    """Something to play with, where there is a browser; ``instead`` stands for it elsewhere.

    ``kind`` names its script and styles, ``report/assets/KIND.js`` and ``KIND.css``; the script finds
    ``data`` as JSON in its element: ``<div class="widget" data-kind="KIND"><script type="application/json">``.
    """

    kind: Literal["player", "sliders"]
    finding: str
    data: Mapping[str, Any]
    instead: Sequence[Block] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """Labels with what belongs to them."""

    rows: Sequence[tuple[str, str]]

    def __post_init__(self) -> None:
        """Raise TypeError for what is no text."""
        _check_texts("a fact", *(text for row in self.rows for text in row))


@dataclass(frozen=True, slots=True)
class Code:
    """Something to copy: a command, a file."""

    text: str
    caption: str = ""

    def __post_init__(self) -> None:
        """Raise TypeError for what is no text."""
        _check_texts("code", self.text, self.caption)


@dataclass(frozen=True, slots=True)
class Details:
    """What is there for whoever wants it: folded up in a browser."""

    title: str
    blocks: Sequence[Block]

    def __post_init__(self) -> None:
        """Raise TypeError for what is no text."""
        _check_texts("a title", self.title)


Block: TypeAlias = Text | Note | Table | Figure | Widget | Facts | Code | Details


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what stands under it; ``key`` is its anchor, in small letters and hyphens."""

    key: str
    title: str
    blocks: Sequence[Block]

    def __post_init__(self) -> None:
        """Raise TypeError for what is no text."""
        _check_texts("a heading", self.key, self.title)


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report; names that it was given come from files, so they may contain anything."""

    title: str
    subtitle: str
    sections: Sequence[Section]
