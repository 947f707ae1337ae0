"""What all figures look like: colours that can be told apart, few lines, fixed output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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

_TITLE_WIDTH = 78
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


@contextmanager
def figure(title: str, file: BinaryIO, form: str, size_inches: tuple[float, float] = (8.0, 4.6)) -> Iterator[Axes]:
    """Yield the axes of a new figure under ``title``, and write it to ``file`` (``form``: png or svg) at the end.

    The same figure gives the same bytes: no date and no random names are in it.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_RC):
        made: Figure = Figure(figsize=size_inches, layout="constrained")
        FigureCanvasAgg(made)
        axes = made.add_subplot()
        yield axes
        axes.set_title("\n".join(wrap(title, _TITLE_WIDTH)))
        made.savefig(file, format=form, metadata={"Date": None} if form == "svg" else {"Software": None})


def label_side(axes: Axes, columns: int = 1) -> None:
    """Put the legend to the right of the axes, where it hides nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, ncols=columns)
