"""Whether offloading pays in a plan: with and without, where it breaks even, how much DRAM, how long drives last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

from simkv import units
from simkv.planner.words import money
from simkv.plots.plan import knee
from simkv.report.document import Block, Cell, Data, Facts, Figure, Note, Table, Tone
from simkv.report.run.shown import cell, part, time
from simkv.results.quantity import digits, seconds, share

Row: TypeAlias = Mapping[str, Any]
Show: TypeAlias = Callable[[Row], str]
"""Says what is gained at one size of DRAM."""

TONES: Mapping[bool | None, Tone] = {True: "good", False: "plain", None: "warning"}
"""How a verdict is told, by whether offloading helps; None: that can't be said."""
_FEWEST = 2


def offload(answer: Row) -> Iterator[Block]:
    """Yield the verdict with its figures; nothing where there is no winner to judge."""
    found = answer["verdict"]
    if found is None:
        return
    yield Note(TONES[found["offload_helps"]], found["because"])
    if found["with"] is not None and found["without"] is not None:
        yield _sides(found, answer["currency"] or "price")
    figure = _knee(found["dram_knee"])
    if figure is not None:
        yield figure
    yield Facts(list(_facts(found)))


def _sides(found: Row, currency: str) -> Table:
    heads = ["A unit", "carries", "±", "TTFT p95 at the planned load", f"{currency}/h"]
    rows = [
        [
            Cell(name), Cell(f"{digits(side['load'])} x", side["load"]), part(side["doubt"]),
            time(side["ttft_p95_s"]), cell(side["price_per_hour"], money),
        ]
        for name, side in (("with lower tiers", found["with"]), ("without", found["without"]))
    ]  # fmt: skip
    return Table(heads, rows, "offload", right=frozenset(range(1, len(heads))))


def _knee(found: Row | None) -> Figure | None:
    """Return what is gained over sizes of DRAM; None where fewer than two were measured."""
    if found is None:
        return None
    by = found["by"] or "load"
    sizes = [row for row in found["sizes"] if row["load" if by == "load" else "ttft_mean"] is not None]
    if len(sizes) < _FEWEST:
        return None
    show = _load if by == "load" else _wait
    told = "; ".join(f"{show(row)} with {_size(row['dram_bytes'])}" for row in sizes)
    what = "Load that a unit carries" if by == "load" else "Mean TTFT at the planned load"
    return Figure(
        name="plan-dram-knee",
        finding=_finding(found, by, show, sizes),
        draw=partial(knee, sizes, by, found["bytes"]),
        data=Data(
            ["DRAM of a host (bytes)", "load that a unit carries", "mean TTFT (s)", "hit rate"],
            [[row["dram_bytes"], row["load"], row["ttft_mean"], row["hit_rate"]] for row in found["sizes"]],
        ),
        alt=f"{what} over the DRAM of a host: {told}. {found['because']}",
    )


def _load(row: Row) -> str:
    return f"{digits(row['load'])} x"


def _wait(row: Row) -> str:
    return seconds(row["ttft_mean"])


def _finding(found: Row, by: str, show: Show, sizes: list[Row]) -> str:
    if found["bytes"] is None:
        return "DRAM of no size gains what could be told apart"
    at = next((row for row in sizes if row["dram_bytes"] == found["bytes"]), None)
    what = "carries" if by == "load" else "has a mean TTFT of"
    then = f": a unit {what} {show(at)}, {show(sizes[0])} without" if at is not None else ""
    return f"{_size(found['bytes'])} of DRAM have nearly all that DRAM can gain{then}"


def _size(value_bytes: float) -> str:
    return units.short(value_bytes, "size") if value_bytes else "none"


def _facts(found: Row) -> Iterator[tuple[str, str]]:
    even = found["break_even"]
    if even is not None:
        if even["because"]:
            yield "Bandwidth to break even", even["because"]
        reuse = even["reuse"]
        now = "" if reuse["now"] is None else f", now {share(reuse['now'])}"
        at = "" if reuse["share"] is None else f"{share(reuse['share'])} of prompt tokens found below VRAM{now}. "
        yield "Reuse to break even", f"{at}{reuse['how']}"
    for key, label in (("dram_knee", "DRAM"), ("ssd", "SSD below it"), ("wear", "Wear of the drives")):
        one = found[key]
        if one is not None and one["because"]:
            source = f" Source: {one['source']}." if one.get("source") else ""
            yield label, f"{one['because']}{source}"
