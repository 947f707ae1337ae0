"""Looking into sections of a report."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TypeVar

from simkv.report.document import Block, Code, Details, Facts, Figure, Note, Section, Table, Text
from simkv.report.parts import walk

T = TypeVar("T", bound=Block)


def blocks(sections: Sequence[Section], kind: type[T]) -> list[T]:
    """Return every block of a kind, those that are folded up too."""
    return [block for section in sections for block in walk(section.blocks) if isinstance(block, kind)]


def table(sections: Sequence[Section], name: str) -> Table:
    """Return the table of that name."""
    return next(one for one in blocks(sections, Table) if one.name == name)


def drawn(figure: Figure) -> str:
    """Return the figure as SVG."""
    file = io.BytesIO()
    figure.draw(file, "svg")
    return file.getvalue().decode()


def words(sections: Sequence[Section]) -> str:
    """Return every word of the sections, a line each text."""
    return "\n".join(text for section in sections for text in (section.title, *_texts(section)))


def _texts(section: Section) -> Iterator[str]:
    for block in walk(section.blocks):
        match block:
            case Text() | Note() | Code():
                yield block.text
            case Facts():
                yield from (f"{label}: {text}" for label, text in block.rows)
            case Figure():
                yield from (block.finding, block.alt, block.note)
            case Table():
                yield from (cell.text for row in block.rows for cell in row)
            case Details():
                yield block.title
