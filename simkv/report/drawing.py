"""Figures drawn once each, however many forms of a report show them."""

from __future__ import annotations

import io
import warnings
from typing import Literal

from simkv.plots.style import lettering
from simkv.report.document import Figure

Form = Literal["text", "paths", "png"]
"""SVG whose letters are text; SVG whose letters are paths, the same wherever it is shown; dots."""


class Drawings:
    """What figures look like; draws when asked for the first time."""

    def __init__(self) -> None:
        self._drawn: dict[tuple[int, Form], bytes] = {}
        self._kept: list[Figure] = []  # so that no other object takes an ``id``

    def __call__(self, figure: Figure, form: Form) -> bytes:
        """Return ``figure`` as a file's content; the same each time."""
        key = (id(figure), form)
        if key not in self._drawn:
            self._kept.append(figure)
            self._drawn[key] = _draw(figure, form)
        return self._drawn[key]


def _draw(figure: Figure, form: Form) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings(), lettering(as_text=form == "text"):
        warnings.simplefilter("ignore", UserWarning)  # a name with letters that the font hasn't got
        figure.draw(file, "png" if form == "png" else "svg")
    return file.getvalue()
