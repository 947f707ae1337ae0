"""What a metric measures, as its name tells, and what an expected figure of it may then be.

A name is read from its end: ``ttft_s.mean`` is a time by ``ttft_s``, ``h2d.bytes_per_busy_s`` a rate of bytes. A metric
whose name doesn't tell is left alone, and so is the sign of what may be below zero.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from simkv.results.metrics import METRICS
from simkv.units import shown as excerpt
from simkv.validation.expected import UNITS, Figure
from simkv.validation.schema import Observation


@dataclass(frozen=True, slots=True)
class Dimension:
    """What is measured, and the units that it may be written in; a plain number is right everywhere."""

    noun: str
    units: tuple[str, ...]
    example: str
    """How to write one."""
    also: tuple[str, ...] = ()
    """Units of something else that say it as well."""


def _units(pattern: str) -> tuple[str, ...]:
    return tuple(unit for unit in UNITS if re.fullmatch(pattern, unit))


TIME = Dimension("a time", ("s", "ms", "us", "µs", "ns", "min", "h"), "20 ms")
BYTE_RATE = Dimension("a rate of bytes", _units(r".*B/s|Gbit/s|Gbps"), "20 GB/s")
TOKEN_RATE = Dimension("a rate of tokens", _units(r".*tok(en|ens)?/(s|min|h)"), "500 tokens/s")
REQUEST_RATE = Dimension("a rate of requests", _units(r"req(uests)?/(s|min|h)"), "2 req/s")
FLOP_RATE = Dimension("a rate of operations", _units(r".*FLOP/s"), "300 TFLOP/s")
SHARE = Dimension("a share", ("%", "pp"), "85 %")
SIZE = Dimension("a size", _units(r"[^/]*B"), "8 GiB")
TOKEN_SIZE = Dimension("a size a token", _units(r".*B/token"), "128 KiB/token", SIZE.units)
TOKENS = Dimension("a number of tokens", ("token", "tokens"), "4096 tokens")
BLOCKS = Dimension("a number of blocks", ("blocks",), "256 blocks")
REQUESTS = Dimension("a number of requests", ("requests",), "60 requests")
COUNT = Dimension("a count", (), "256", (*TOKENS.units, *BLOCKS.units, *REQUESTS.units))
RATIO = Dimension("a ratio", ("x",), "1.5 x", ("%",))
DIMENSIONS = (
    TIME, BYTE_RATE, TOKEN_RATE, REQUEST_RATE, FLOP_RATE, SHARE, SIZE, TOKEN_SIZE, TOKENS, BLOCKS, REQUESTS, COUNT,
    RATIO,
)  # fmt: skip
OF_UNIT = {unit: dimension for dimension in DIMENSIONS for unit in dimension.units}
"""What a figure is by its unit."""

_PARTS: tuple[tuple[str, Dimension | None], ...] = (
    (r"(.*_)?bytes_per_(\w+_)?s", BYTE_RATE),
    (r"(.*_)?tokens_per_(\w+_)?s", TOKEN_RATE),
    (r"(.*_)?requests_per_(\w+_)?s", REQUEST_RATE),
    (r"(.*_)?flops_per_s", FLOP_RATE),
    (r"(.*_)?bytes_per_token(_\w+)?", TOKEN_SIZE),
    (r"(.*_)?bytes_per_(sequence|rank)|bytes_all_ranks|(.*_)?bytes", SIZE),
    (r".*_per_.*|per_.*", None),
    (r".*_s(_\d+)?|seconds", TIME),
    (r"(infinite_)?hit_rate(_\w+)?|present_\d+|beta(_\w+)?|accuracy|coverage|timeliness", SHARE),
    (r"speedup|relative|s_max_\w+|slowdown|what_if", RATIO),
    (r"(.*_)?tokens", TOKENS),
    (r"(.*_)?blocks", BLOCKS),
    (r"requests", REQUESTS),
    (r"(infinite_)?hits|references|preemptions", COUNT),
)
"""What a part of a name says, the first that fits; None: that the dimension can't be told."""
_BY_UNIT = {"1": SHARE, "requests": REQUESTS, "tokens": TOKENS, "s": TIME, "B": SIZE}
_SIGNED = {"difference", "closed_form", "t_wait_s"}
"""Parts of names below which a figure may be negative."""
MOST_OF_A_SHARE = 1.1
"""As measured: what a counter of a busy device says may be a little above all of it."""


def dimension_of(ask: str, metric: str) -> Dimension | None:
    """Return what a metric of the section ``ask`` measures; None where its name doesn't tell."""
    parts = metric.split(".")
    if ask == "calc" and parts[0] == "inputs":  # some are called as whoever asks calls his tiers
        return None
    if parts[0] == "slo_attainment":
        return SHARE if parts[1:2] in (["overall"], ["classes"]) else None
    for part in reversed(parts):
        for pattern, dimension in _PARTS:
            if re.fullmatch(pattern, part):
                return dimension
        if part in METRICS:
            return _BY_UNIT.get(METRICS[part].unit)
    return None


class Wrong(NamedTuple):
    """What is wrong with an expected figure, and the mend."""

    what: str
    mend: str


def wrong(ask: str, seen: Observation) -> Wrong | None:
    """Return why an expected figure can't be one of its metric; None where it can, or where that can't be told."""
    figure, measures = seen.figure, dimension_of(ask, seen.metric)
    if figure is None:
        return None
    signed = ask == "calc" or bool(_SIGNED & set(seen.metric.split(".")))
    if seen.relative_to is not None:
        base = seen.relative_to.metric
        if base is None or (measures is not None and dimension_of(ask, base) is measures):
            return _wrong_ratio(figure, seen.relative_to.change, signed or measures is None)
        return None
    return None if measures is None else _wrong_figure(figure, seen, measures, signed)


def _wrong_figure(figure: Figure, seen: Observation, measures: Dimension, signed: bool) -> Wrong | None:
    is_one = f"{excerpt(seen.metric)[1:-1]} is {measures.noun}"
    if figure.unit and figure.unit not in (*measures.units, *measures.also):
        mend = f'write it like "{measures.example}"'
        mend += ", or say with relative_to what it is a ratio to" if figure.unit == "x" else ""
        return Wrong(f"is {OF_UNIT[figure.unit].noun}, and {is_one}", mend)
    if signed or measures is RATIO:
        return None
    if figure.value < 0:
        mend = "give what was measured; a change is told with relative_to and change: true"
        return Wrong(f"is negative, and {is_one}", mend)
    if measures is SHARE and figure.value > MOST_OF_A_SHARE:
        return Wrong("is no share", _share(figure))
    return None


def _share(figure: Figure) -> str:
    if figure.unit or figure.value > 100:
        return "a share is from 0 to 1, or 0 to 100 %"
    return f'write {figure.value / 100:g} or "{figure.value:g} %"'


def _wrong_ratio(figure: Figure, change: bool, signed: bool) -> Wrong | None:
    like = 'write it like "-6 %" or -0.06' if change else 'write it like "1.5 x", 1.5 or "150 %"'
    if figure.unit and figure.unit not in (*RATIO.units, *RATIO.also):
        noun = "in percentage points" if figure.unit == "pp" else OF_UNIT[figure.unit].noun
        return Wrong(f"is {noun}, and relative_to makes it a ratio", f"{like}, or leave out relative_to")
    if signed:
        return None
    if change and figure.value < -1:
        return Wrong("is a change to less than nothing", like)
    if not change and figure.value < 0:
        return Wrong(
            "is negative, and relative_to makes it a ratio", "add change: true to relative_to if it's a change"
        )
    return None


def given(seen: Observation) -> str:
    """Return what an observation expects as it was written."""
    value = seen.expected
    return excerpt(int(value) if isinstance(value, float) and value.is_integer() else value)
