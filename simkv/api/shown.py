"""How results show themselves: a line in a terminal, a small table in a notebook, pictures where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from simkv.api.given import StrPath
from simkv.errors import InputError, Problem
from simkv.report.document import Data, Draw

if TYPE_CHECKING:
    import pandas as pd

_NOTEBOOK_DPI, _PRINT_DPI = 110, 160
_LONGEST = 300


class Picture:
    """A figure that a notebook shows as it stands; ``save`` writes it as PNG or SVG, with more dots an inch."""

    def __init__(self, finding: str, draw: Draw, data: Data | None = None, note: str = "") -> None:
        self.finding = finding
        """What is to be seen."""
        self.note = note
        """What marks stand for, and what isn't drawn; often empty."""
        self._draw = draw
        self._data = data

    @property
    def data(self) -> pd.DataFrame | None:
        """The figures behind it; None where they are a frame of their result anyway."""
        import pandas as pd

        return None if self._data is None else pd.DataFrame(self._data.rows, columns=list(self._data.heads))

    def save(self, path: StrPath) -> Path:
        """Write the picture to ``path`` (.png or .svg) and return it; raises InputError for another ending."""
        from simkv.files import replace_bytes
        from simkv.plots.style import FORMATS

        place = Path(path)
        form = place.suffix.lower()[1:]
        if form not in FORMATS:
            mend = f"end it in {' or '.join('.' + known for known in FORMATS)}"
            raise InputError(Problem("is no kind of picture that is drawn", mend, path="path", value=str(place)))
        replace_bytes(place, self._bytes(form))
        return place

    @cached_property
    def _png(self) -> bytes:
        from simkv.plots.style import fewer_colours

        return fewer_colours(self._bytes("png", _NOTEBOOK_DPI))

    def _bytes(self, form: str, dots_per_inch: float = _PRINT_DPI) -> bytes:
        from simkv.plots.style import alone

        file = BytesIO()
        with alone(self.finding, dots_per_inch):
            self._draw(file, form)
        return file.getvalue()

    def _repr_png_(self) -> bytes:
        return self._png

    def __repr__(self) -> str:
        return f"<simkv.Picture: {clean(self.finding)}>"


def clean(text: str) -> str:
    """Return ``text`` in one line, cut where it is long; control characters are written out."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def page(title: str, facts: Iterable[tuple[str, str]], notes: Sequence[str] = (), lead: str = "") -> str:
    """Return a heading, a sentence, a table of facts and a list of notes as HTML; whatever is in them comes escaped."""
    rows = "".join(f"<tr><th style='text-align:left'>{_safe(a)}</th><td style='text-align:left'>{_safe(b)}</td></tr>"
                   for a, b in facts)  # fmt: skip
    told = "".join(f"<li>{_safe(note)}</li>" for note in notes)
    parts = [
        f"<b>{_safe(title)}</b>",
        f"<p>{_safe(lead)}</p>" if lead else "",
        f"<table>{rows}</table>",
        f"<ul>{told}</ul>" if told else "",
    ]
    return "".join(parts)


def _safe(text: str) -> str:
    return escape(clean(text))
