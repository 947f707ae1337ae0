"""Texts that came from files, made fit to be shown: what can't be seen, or would turn a line round, is written out."""

from __future__ import annotations

import re
from collections.abc import Iterator

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Control characters, directions of writing, separators of lines, halves of surrogate pairs."""
_BLANKS = re.compile("[ \t\n]+")
_TYPED = re.compile("`([^`]{1,120})`")


def shown(text: str) -> str:
    """Return ``text`` in one line, with what can't be seen written out: ``\\x07``."""
    return _BLANKS.sub(" ", _UNSEEN.sub(_written, text)).strip()


def pieces(text: str) -> Iterator[tuple[bool, str]]:
    """Yield ``text`` (shown) in pieces: whether it is something to be typed, `between backticks`, and what it is."""
    for number, piece in enumerate(_TYPED.split(shown(text))):
        if piece:
            yield number % 2 == 1, piece


def lines(text: str) -> str:
    """Return ``text`` with its lines and their indents, and with what can't be seen written out."""
    return _UNSEEN.sub(_written, text.replace("\r\n", "\n")).expandtabs(4)


def _written(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]
