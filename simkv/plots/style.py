"""What all figures look like: colours that can be told apart, few lines, fixed output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#8C6D31")
"""Okabe and Ito's colours (2008) but for yellow and black, and two more of other lightness."""
INK, FAINT = "#222222", "#8A8A8A"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
FORMATS = ("png", "svg")
SMALL = (5.6, 3.6)
"""Inches of a figure in a report: two stand beside each other, and one can be read on a narrow screen."""
TIER_COLOURS = {"vram": PALETTE[0], "dram": PALETTE[2], "ssd": PALETTE[4], "miss": FAINT}
RUN, WITHOUT = PALETTE[0], PALETTE[1]
"""This run, and what it is compared with."""

_TITLE_CHARS_AN_INCH, _LONGEST_TITLE = 9.75, 200
_COLOURS = 48
_PANELS_A_ROW, _PANEL_INCHES = 3, (5.8, 4.4)
_RC: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 12.0,
    "axes.titlesize": 12.0,
    "figure.dpi": 100,
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "grid.color": "#E6E6E6",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.0,
    "savefig.dpi": 160,
    "svg.hashsalt": "simkv",
    "text.color": INK,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
}


_ALONE: ContextVar[tuple[str, float] | None] = ContextVar("alone", default=None)


@contextmanager
def alone(title: str, dots_per_inch: float) -> Iterator[None]:
    """Have pictures inside, which would stand under their title in a report, carry ``title`` themselves.

    Those that have a title keep it. ``dots_per_inch`` holds for all of them.
    """
    token = _ALONE.set((title, dots_per_inch))
    try:
        yield
    finally:
        _ALONE.reset(token)


def _titled(title: str, width_inches: float) -> str:
    """Return what stands over a picture, in lines that are as long as it is wide."""
    given = _ALONE.get()
    text = title or (clean(given[0], _LONGEST_TITLE) if given is not None else "")
    return "\n".join(wrap(text, max(20, int(_TITLE_CHARS_AN_INCH * width_inches))))


@contextmanager
def figure(title: str, file: BinaryIO, form: str, size_inches: tuple[float, float] = (8.0, 4.6)) -> Iterator[Axes]:
    """Yield the axes of a new figure under ``title``, and write it to ``file`` (``form``: png or svg) at the end.

    The same figure gives the same bytes: no date and no random names are in it.
    """
    with _page(file, form, size_inches) as page:
        axes = page.add_subplot()
        yield axes
        axes.set_title(_titled(title, size_inches[0]))


@contextmanager
def panels(title: str, file: BinaryIO, form: str, count: int) -> Iterator[list[Axes]]:
    """Yield ``count`` axes of one figure, three to a row; ``title`` stands over them all."""
    columns = min(count, _PANELS_A_ROW)
    rows = -(-count // columns)
    with _page(file, form, (_PANEL_INCHES[0] * columns, _PANEL_INCHES[1] * rows)) as page:
        yield [page.add_subplot(rows, columns, k + 1) for k in range(count)]
        page.suptitle(title, x=0.01, ha="left", fontsize=14)


@contextmanager
def _page(file: BinaryIO, form: str, size_inches: tuple[float, float]) -> Iterator[Figure]:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_RC):
        page: Figure = Figure(figsize=size_inches, layout="constrained")
        FigureCanvasAgg(page)
        yield page
        metadata = {"Date": None} if form == "svg" else {"Software": None}
        given = _ALONE.get()
        page.savefig(file, format=form, dpi=given[1] if given else _RC["savefig.dpi"], metadata=metadata)


def fewer_colours(png: bytes) -> bytes:
    """Return a picture with as many colours as its lines and letters need: a third of the bytes."""
    from PIL import Image

    small = BytesIO()
    with Image.open(BytesIO(png)) as page:
        page.convert("RGB").quantize(_COLOURS).save(small, "png", optimize=True)
    return small.getvalue()


@contextmanager
def lettering(as_text: bool) -> Iterator[None]:
    """Have what is drawn meanwhile as SVG keep its letters as text, or as paths."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none" if as_text else "path"}):
        yield


def label_side(axes: Axes, columns: int = 1) -> None:
    """Put the legend to the right of the axes, where it hides nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, ncols=columns)


def label_below(axes: Axes, columns: int = 2) -> None:
    """Put the legend under the axes, where it takes nothing of their width."""
    page = axes.get_figure(root=True)
    assert page is not None, "axes are on a page"
    handles, labels = axes.get_legend_handles_labels()
    page.legend(handles, labels, loc="outside lower left", ncols=columns, fontsize=9.0, columnspacing=1.2)


NAME_CHARS = 26
"""Of a name beside a bar or in a legend, at most."""


def clean(text: str, most: int = 40) -> str:
    """Return ``text``, which may be anything, as matplotlib shows it letter by letter, and not too long."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return (plain if len(plain) <= most else plain[: most - 1] + "…").replace("$", r"\$")
