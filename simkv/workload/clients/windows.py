"""When a client sends: ``chunk-N-trace.csv``, a rate and a kind of burstiness a window of ten minutes.

A row is ``start_s,rate,cv,Gamma|Weibull|,shape,scale_s``, without a header. The rate is the
number of requests that were counted over the length of the window; ``shape`` and ``scale_s`` were
fitted to the gaps. The shape is what is used: gaps are scaled so that the rate holds, as
ServeGen's own generator does (alibaba/ServeGen, construct.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Literal, cast

from simkv.errors import InputError, Problem
from simkv.workload.readers.faults import LATEST_S
from simkv.workload.readers.files import excerpt, head, lines

Gaps = Literal["Gamma", "Weibull", ""]

USUAL_S = 600.0
"""Length of the last window, where there is no other."""
LEAST_SHAPE = 0.01
"""Below it a gap is longer than all others together, and too long for a number."""
_COLUMNS = ("start_s", "rate", "cv", "kind", "shape", "scale_s")
_KINDS = ("Gamma", "Weibull", "")


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time in which a client sends ``rate_per_s`` with gaps of a kind and ``shape``; "": Poisson."""

    start_s: float
    end_s: float
    rate_per_s: float
    gaps: Gaps
    shape: float


def read_windows(path: Path) -> list[Window]:
    """Return the windows of ``path`` in order, those without requests too; raises InputError with line and field."""
    head(path)
    rows: list[tuple[float, float, Gaps, float]] = []
    before_s = -inf
    for line, text in enumerate(lines(path), 1):
        cells = [cell.strip() for cell in text.decode("utf-8", "replace").lstrip("\ufeff").split(",")]
        if cells == [""]:
            continue
        start_s, rate, kind, shape = _row(cells, path, line)
        if start_s <= before_s:
            raise _bad(path, line, "start_s", cells[0], "is not after the row above", "sort the file by it")
        before_s = start_s
        rows.append((start_s, rate, kind, shape))
    ends = [row[0] for row in rows[1:]]
    ends.append(rows[-1][0] + (rows[-1][0] - rows[-2][0] if len(rows) > 1 else USUAL_S))
    return [Window(s, end, rate, kind, shape) for (s, rate, kind, shape), end in zip(rows, ends, strict=True)]


def _row(cells: list[str], path: Path, line: int) -> tuple[float, float, Gaps, float]:
    if len(cells) != len(_COLUMNS):
        what = f"has {len(cells)} fields, not {len(_COLUMNS)}"
        raise _bad(path, line, excerpt(",".join(cells)), "", what, f"write {','.join(_COLUMNS)}")
    start_s, rate, _, shape, _ = (_number(cells[k], path, line, _COLUMNS[k]) for k in (0, 1, 2, 4, 5))
    if cells[3] not in _KINDS:
        raise _bad(path, line, "kind", cells[3], "is not known", "valid: Gamma, Weibull, or nothing")
    if start_s > LATEST_S:
        raise _bad(path, line, "start_s", cells[0], f"is after {LATEST_S:g} s", "write seconds")
    if rate > 0 and cells[3] and shape < LEAST_SHAPE:
        raise _bad(path, line, "shape", cells[4], f"must be at least {LEAST_SHAPE:g}", "the shape of the gaps")
    return start_s, rate, cast(Gaps, cells[3]), shape


def _number(text: str, path: Path, line: int, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise _bad(path, line, column, text, "is not a number", "write a number") from None
    if not isfinite(value) or value < 0:
        raise _bad(path, line, column, text, "must be a finite number of at least 0", "write a number")
    return value


def _bad(path: Path, line: int, column: str, value: str, what: str, mend: str) -> InputError:
    return InputError(Problem(what, mend, file=str(path), line=line, path=column, value=excerpt(value)))
