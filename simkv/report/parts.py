"""The parts of a document one by one, and a name of its own for each that becomes a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from simkv.report.document import Block, Details, Document, Figure, Table, Widget

_LONGEST = 60
_FILE_LESS = re.compile("[^a-z0-9]+")


def walk(blocks: Sequence[Block], instead: bool = False) -> Iterator[Block]:
    """Yield every block with those inside of it; ``instead``: what stands for widgets, too."""
    for block in blocks:
        yield block
        if isinstance(block, Details):
            yield from walk(block.blocks, instead)
        elif isinstance(block, Widget) and instead:
            yield from walk(block.instead, instead)


def everything(document: Document, instead: bool = False) -> Iterator[Block]:
    """Yield every block of ``document``."""
    for section in document.sections:
        yield from walk(section.blocks, instead)


def file_names(document: Document) -> Mapping[int, str]:
    """Return a file's name, without its ending, for each figure and each table that has one, by ``id``."""
    used: set[str] = set()
    return {
        id(block): unique(block.name, used)
        for block in everything(document, instead=True)
        if isinstance(block, Figure | Table) and block.name
    }


def anchors(document: Document) -> list[str]:
    """Return an anchor for each section."""
    used: set[str] = set()
    return [unique(section.key or section.title, used) for section in document.sections]


def unique(name: str, used: set[str]) -> str:
    """Return ``name`` in small letters, figures and hyphens, unlike all in ``used``; adds it there."""
    plain = _FILE_LESS.sub("-", name.lower()).strip("-")[:_LONGEST].strip("-") or "part"
    number, found = 1, plain
    while found in used:
        number += 1
        found = f"{plain}-{number}"
    used.add(found)
    return found
