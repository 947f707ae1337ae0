"""The Markdown of a document: a function a kind of block, and the files that it refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simkv import __version__
from simkv.report.document import Block, Code, Details, Document, Facts, Figure, Note, Table, Text, Widget
from simkv.report.drawing import Drawings
from simkv.report.markdown.escaped import code, inline, paragraph, prose, tag, verbatim
from simkv.report.parts import file_names
from simkv.report.tabular import csv_of

FOLDER = "report-files"
"""Beside the page, with its figures and tables."""
_TONES: Mapping[str, str] = {"good": "✓", "bad": "✕ Bad:", "warning": "⚠ Warning:", "plain": "Note:"}


@dataclass(frozen=True, slots=True)
class Written:
    """A page, and the files in ``FOLDER`` by name."""

    text: str
    files: Mapping[str, bytes]


def page(document: Document, drawings: Drawings | None = None) -> Written:
    """Return ``document`` as Markdown; the same document gives the same bytes."""
    writer = _Writer(document, drawings or Drawings())
    parts = [f"# {inline(document.title)}", *([paragraph(document.subtitle)] if document.subtitle else [])]
    for section in document.sections:
        parts += [f"## {inline(section.title)}", *writer.blocks(section.blocks)]
    parts.append(f"---\n\nMade by simkv {__version__}.")
    return Written("\n\n".join(part for part in parts if part) + "\n", writer.files)


class _Writer:
    """Writes blocks, and keeps the files that they need."""

    def __init__(self, document: Document, drawings: Drawings) -> None:
        self.files: dict[str, bytes] = {}
        self._drawings = drawings
        self._names = file_names(document)
        self._writers: Mapping[type, Callable[[Any], Iterator[str]]] = {
            Text: self._text, Note: self._note, Table: self._table, Figure: self._figure, Widget: self._widget,
            Facts: self._facts, Code: self._code, Details: self._details,
        }  # fmt: skip

    def blocks(self, blocks: Sequence[Block]) -> Iterator[str]:
        for block in blocks:
            yield from self._writers[type(block)](block)

    def _text(self, block: Text) -> Iterator[str]:
        yield f"**{prose(block.text)}**" if block.lead else paragraph(block.text)

    def _note(self, block: Note) -> Iterator[str]:
        yield f"> {_TONES[block.tone]} {prose(block.text)}" + (f" ({code(block.code)})" if block.code else "")

    def _table(self, block: Table) -> Iterator[str]:
        if block.caption:
            yield f"**{inline(block.caption)}**"
        rules = ["---:" if column in block.right else "---" for column in range(len(block.heads))]
        rows = [[inline(head) for head in block.heads], rules, *([inline(cell.text) for cell in r] for r in block.rows)]
        yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
        yield self._csv(block)

    def _figure(self, block: Figure) -> Iterator[str]:
        yield f"### {inline(block.finding)}"
        name = f"{self._names[id(block)]}.svg"
        self.files[name] = self._drawings(block, "paths")
        yield f"![{inline(block.alt)}]({FOLDER}/{name})"
        yield paragraph(block.note)
        yield self._csv(block)

    def _csv(self, block: Figure | Table) -> str:
        if id(block) not in self._names:
            return ""
        name = f"{self._names[id(block)]}.csv"
        self.files[name] = csv_of(block).encode("utf-8", "replace")
        return f"[data (CSV)]({FOLDER}/{name})"

    def _widget(self, block: Widget) -> Iterator[str]:
        yield f"### {inline(block.finding)}"
        yield from self.blocks(block.instead)

    def _facts(self, block: Facts) -> Iterator[str]:
        yield "\n".join(f"- **{inline(label)}:** {prose(value)}" for label, value in block.rows)

    def _code(self, block: Code) -> Iterator[str]:
        yield paragraph(block.caption)
        yield verbatim(block.text)

    def _details(self, block: Details) -> Iterator[str]:
        yield f"<details>\n<summary>{tag(block.title)}</summary>"
        yield from self.blocks(block.blocks)
        yield "</details>"
