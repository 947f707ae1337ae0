"""The access patterns and their parameters, in tokens; each default, those of scenarios too, with its source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path

from simkv.errors import InputError, Problem

MAX_TOKENS = 2**31 - 1
MAX_SKEW = 10.0


@dataclass(frozen=True, slots=True)
class Dense:
    """Every step reads all blocks."""


@dataclass(frozen=True, slots=True)
class Window:
    """The newest tokens and the first few: StreamingLLM (arXiv 2309.17453).

    The blocks that hold these tokens are read. Four attention sinks suffice there (section 3.1), beside 1,020 tokens
    in one of the cache sizes that it is measured with.
    """

    window_tokens: int = 1020
    sink_tokens: int = 4


@dataclass(frozen=True, slots=True)
class TopK:
    """A budget of tokens a step: the newest, the sinks, and heavy hitters among all others.

    - ``budget_tokens``: 2048 as in ShadowKV (arXiv 2410.21465); Quest (arXiv 2406.10774) picks pages
      of 16 tokens by bounds on their keys, 1024 tokens a step, InfiniGen (arXiv 2406.19707) 400 at
      most, H2O (arXiv 2306.14048) keeps 10 % heavy hitters and 10 % newest. Rounded up to blocks,
      and to what ``recent_tokens`` and ``sink_tokens`` need.
    - ``recent_tokens``: an assumption: sixteen Quest pages. H2O gives half of its budget to them.
    - ``sink_tokens``: 4 as in StreamingLLM (arXiv 2309.17453, section 3.1).
    - ``skew``: exponent of the Zipf-like weights. H2O finds that accumulated attention follows a
      power law but gives no exponent; 1 is an assumption.
    - ``stickiness``: share of a step's far picks that the next step keeps; the others are drawn
      anew and may come back. ShadowKV saves 60 % of its fetches by keeping the last step's; 0.5 and what
      comes back by itself (docs/access.md) is near that.
    """

    budget_tokens: int = 2048
    recent_tokens: int = 256
    sink_tokens: int = 4
    skew: float = 1.0
    stickiness: float = 0.5


@dataclass(frozen=True, slots=True)
class Recall:
    """The newest tokens, and at steps 0, ``every``, 2·``every`` ... one block of those before them.

    Every fourth step as in the article's toy program, which keeps two blocks; ``window_tokens`` is
    an assumption. ``skew`` 0 draws the far block uniformly.
    """

    window_tokens: int = 4096
    every: int = 4
    skew: float = 0.0


@dataclass(frozen=True, slots=True)
class Replay:
    """What a log says was read (``workload/accesslog.py``)."""

    path: Path


AccessSpec = Dense | Window | TopK | Recall | Replay

_Fault = Callable[[object], tuple[str, str] | None]
"""Says what is wrong with a value, and the mend; None where nothing is."""


def _whole(low: int) -> _Fault:
    def fault(value: object) -> tuple[str, str] | None:
        if type(value) is int and low <= value <= MAX_TOKENS:
            return None
        return f"is not a whole number from {low} to {MAX_TOKENS:,}", f"write {low} or more"

    return fault


def _real(high: float, what: str, mend: str) -> _Fault:
    def fault(value: object) -> tuple[str, str] | None:
        sound = type(value) in (int, float) and isfinite(value) and 0 <= value <= high  # type: ignore[arg-type,operator]
        return None if sound else (what, mend)

    return fault


_FAULTS: dict[str, _Fault] = {
    "window_tokens": _whole(1),
    "budget_tokens": _whole(1),
    "recent_tokens": _whole(1),
    "sink_tokens": _whole(0),
    "every": _whole(1),
    "skew": _real(MAX_SKEW, f"is no exponent from 0 to {MAX_SKEW:g}", "write 0 (uniform) to about 2"),
    "stickiness": _real(1.0, "is not a share", "write 0 (all drawn anew) to 1 (all kept)"),
}


def check(spec: AccessSpec, under: str = "offload.access") -> None:
    """Raise InputError for parameters out of range, all at once, named below the path ``under``."""
    problems = []
    for field in fields(spec):
        value = getattr(spec, field.name)
        found = _FAULTS[field.name](value) if field.name in _FAULTS else None
        if found:
            problems.append(Problem(*found, path=f"{under}.{field.name}", value=str(value)))
    if problems:
        raise InputError(problems)
