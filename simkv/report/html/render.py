"""Templates filled with a document: of a page for a browser, or for paper."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup, escape

from simkv.report.document import Block, Cell, Document, Figure, Table, Widget
from simkv.report.drawing import Drawings
from simkv.report.html.svg import inline
from simkv.report.html.thin import Thin
from simkv.report.parts import anchors, file_names
from simkv.report.tabular import csv_of
from simkv.report.words import lines, pieces, shown

TONES: Mapping[str, Mapping[str, str]] = {
    "good": {"icon": "✓", "word": "Good"},
    "bad": {"icon": "✕", "word": "Bad"},
    "warning": {"icon": "!", "word": "Warning"},
    "plain": {"icon": "i", "word": "Note"},
}
_TIGHT, _PROSE, _WORD = 12, 40, 28
"""Letters up to which a figure stays in one line, from which on a cell needs room, and a word may be broken."""
_ENDS_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_ENDING = re.compile("[<>&\u2028\u2029]")


def asset(name: str) -> str:
    """Return a script or styles of the package."""
    return files("simkv.report").joinpath("assets", name).read_text("utf-8")


def script(kind: str) -> str:
    """Return the script of a kind of widget: ``KIND.js``, after its parts where ``KIND/`` has any, in one scope."""
    assets = files("simkv.report").joinpath("assets")
    whole = assets.joinpath(f"{kind}.js").read_text("utf-8").strip()
    if not assets.joinpath(kind).is_dir():
        return whole
    parts = sorted(
        (part for part in assets.joinpath(kind).iterdir() if part.name.endswith(".js")), key=lambda one: one.name
    )
    texts = [part.read_text("utf-8").strip() for part in parts]
    return "\n\n".join(['(() => {\n"use strict";', *texts, whole, "})();"])


class Renderer:
    """What templates call; ``paper``: nothing can be clicked there."""

    def __init__(self, document: Document, drawings: Drawings, thin: Thin, paper: bool = False) -> None:
        self._document = document
        self._drawings = drawings
        self._thin = thin
        self._paper = paper
        self._names = file_names(document)

    def __call__(self, template: str, **more: Any) -> str:
        """Return ``template`` filled."""
        found = _environment().get_template(template)
        return found.render(
            document=self._document, anchors=anchors(self._document), paper=self._paper, tones=TONES,
            shorten=self._thin.shorten, classes=_classes, download=self._download, picture=self._picture,
            label=_label, instead_of=self._instead_of, data=_data, verbatim=_verbatim, prose=_prose,
            grouped=_grouped, **more,
        )  # fmt: skip

    def _download(self, block: Figure | Table) -> Markup:
        content = csv_of(block).encode("utf-8", "replace")
        if len(content) > self._thin.csv_bytes:
            return Markup()
        link = '<a download="{}.csv" href="data:text/csv;charset=utf-8;base64,{}">data (CSV)</a>'
        return Markup(link).format(self._names.get(id(block), "data"), base64.b64encode(content).decode())

    def _picture(self, figure: Figure) -> Markup:
        alt, thin = shown(figure.alt), self._thin
        if not thin.pictures:
            return Markup("<p>{}</p>").format(alt)
        if self._paper:
            return _image("svg+xml", self._drawings(figure, "paths"), alt)
        svg = inline(self._drawings(figure, "text"), self._names.get(id(figure), "figure"), alt)
        if len(svg) > thin.picture_bytes:
            return _image("png", self._drawings(figure, "png"), alt)
        return Markup(svg)

    def _instead_of(self, widget: Widget) -> bool:
        return self._paper or not self._thin.widgets


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("simkv.report.html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=False,
        finalize=lambda value: shown(value) if type(value) is str else value,
    )


def _image(kind: str, content: bytes, alt: str) -> Markup:
    link = '<img alt="{}" src="data:image/{};base64,{}">'
    return Markup(link).format(alt, kind, base64.b64encode(content).decode())


def _data(widget: Widget) -> Markup:
    """Return the widget's data as JSON that can't end its element; what is no number becomes null."""
    import orjson

    text = orjson.dumps(dict(widget.data), option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS).decode()
    return Markup(_ENDING.sub(lambda found: _ENDS_SCRIPT[found[0]], text))


def _prose(text: str) -> Markup:
    """Return a sentence, what is to be typed in it as code."""
    found = (Markup("<code>{}</code>").format(piece) if typed else escape(piece) for typed, piece in pieces(text))
    return Markup("").join(found)


def _verbatim(text: str) -> Markup:
    return escape(lines(text))


def _label(table: Table) -> str:
    return table.caption or ", ".join(table.heads)


def _classes(cell: Cell, right: bool) -> str:
    found = {
        "right": right,
        "tight": right and len(cell.text) <= _TIGHT,
        f"is-{cell.tone}": cell.tone != "plain",
        "prose": not right and len(cell.text) > _PROSE,
        "breaks": any(len(word) > _WORD for word in cell.text.split()),
    }
    return " ".join(name for name, holds in found.items() if holds)


def _grouped(blocks: Sequence[Block]) -> Iterator[tuple[str, Block | list[Figure]]]:
    """Yield (kind, block); figures that follow one another together."""
    group: list[Figure] = []
    for block in blocks:
        if isinstance(block, Figure):
            group.append(block)
            continue
        if group:
            yield "figures", group
            group = []
        yield type(block).__name__.lower(), block
    if group:
        yield "figures", group
