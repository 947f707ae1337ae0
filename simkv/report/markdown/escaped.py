"""Texts as Markdown that shows them letter by letter, whatever they are."""

from __future__ import annotations

import html
import re

from simkv.report.words import lines, pieces, shown

_MARKS = re.compile(r"[\\`*\[\]~$|]|(?<![^\W_])_|_(?![^\W_])")
_LINE_START = re.compile(r"^(#{1,6}(?=\s|$)|[+-](?=\s|$)|\d+[.)](?=\s|$)|[=-]+$)")
_LINKS = re.compile(r"(?i):(?=//)|(?<=\bwww)\.")
_TICKS = re.compile("`+")


def inline(text: str) -> str:
    """Return ``text`` in one line, fit for a cell, a heading, or the middle of a paragraph."""
    return _escaped(shown(text))


def _escaped(text: str) -> str:
    plain = html.escape(_MARKS.sub(r"\\\g<0>", text), quote=False)
    return _LINKS.sub(r"\\\g<0>", plain)


def prose(text: str) -> str:
    """Return a sentence, what is to be typed in it as code."""
    return "".join(code(piece) if typed else _escaped(piece) for typed, piece in pieces(text))


def paragraph(text: str) -> str:
    """Return sentences as a paragraph, not a heading, a list or a rule that it may look like."""
    return _LINE_START.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", prose(text))


def tag(text: str) -> str:
    """Return ``text`` fit for the inside of an HTML element, whether Markdown is read there or not."""
    return _MARKS.sub(_entity, _LINKS.sub(_entity, html.escape(shown(text))))


def _entity(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


def verbatim(text: str) -> str:
    """Return ``text`` as a block of code that nothing in it can end."""
    fence = "`" * max(3, 1 + max((len(ticks) for ticks in _TICKS.findall(text)), default=0))
    return f"{fence}text\n{lines(text).rstrip()}\n{fence}"


def code(text: str) -> str:
    """Return ``text`` as code in the middle of a line."""
    return f"<code>{inline(text)}</code>" if _TICKS.search(text) or "|" in text else f"`{shown(text) or ' '}`"
