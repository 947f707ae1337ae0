"""Fills the tables of docs/article.md from runs of its scenarios; ``python -m tests.article`` rewrites them.

A table to be filled lies between two comments, ``<!-- table: NAME -->`` and ``<!-- end -->``. A row is one run of a
scenario with some values set, or a baseline of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from simkv.results.quantity import data, digits, seconds
from simkv.scenario.resolve import resolve
from simkv.simulation import run_scenario
from tests.article_program import totals

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "article.md"
TABLE = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n)(?P<rows>.*?)(<!-- end -->)", re.DOTALL)

RUN, PLAIN = "run", "no_offload"
FREE = (
    "link={h2d: inf GB/s, d2h: inf GB/s, duplex: inf GB/s, latency: 0s}",
    "tiers.dram.bandwidth=inf GB/s",
)
TOPK = "offload.access={pattern: topk, stickiness: 0.5}"
ORACLE = "offload.prefetch={policy: oracle}"
ALONE = "offload.prefetch={policy: none}"
Summary = Mapping[str, Any]


class Row(NamedTuple):
    """One line of a table: what it says of itself, and where its figures come from."""

    what: str
    assignments: tuple[str, ...] = ()
    which: str = RUN
    """The run itself, or its baseline of that name."""


class Table(NamedTuple):
    """Rows of one scenario, and the columns with how a summary fills them."""

    scenario: str
    columns: Mapping[str, Callable[[Summary], str]]
    rows: tuple[Row, ...]
    against: int | None = None
    """The row that others' throughput is told against."""


@cache
def summary(scenario: str, assignments: tuple[str, ...], which: str) -> Summary:
    """Return the summary of a run, or of its baseline ``which``."""
    baselines = "[]" if which == RUN else f"[{which}]"
    path = str(ROOT / "scenarios" / f"{scenario}.yaml")
    found = run_scenario(resolve(path, [*assignments, f"run.baselines={baselines}"])).summary
    return found if which == RUN else found["baselines"][which]


def _at_once(s: Summary) -> str:
    return str(s["concurrency"]["max"])


def _carried(s: Summary) -> str:
    return data(s["bytes"]["h2d"] * s["t_step_s"] / s["makespan_s"]) if s["bytes"]["h2d"] else "0"


def _in_service_s(s: Summary) -> float:
    """Return the mean time of a request from its admission on."""
    return float(s["e2e_s"]["mean"] - s["queue_s"]["mean"])


def _cards(s: Summary) -> float:
    return float(s["cost_per_million_output_tokens"] * s["output_tokens"] / 1e6 * 3600 / 2 / s["makespan_s"])


def _p95(name: str) -> Callable[[Summary], str]:
    return lambda s: seconds(s[name]["p95"])


STEP = {"at once": _at_once, "T_step": lambda s: seconds(s["t_step_s"])}
YIELD = {"output tokens/s": lambda s: digits(s["output_tokens_per_s"])}

TABLES = {
    "p03": Table(
        "article-p03-concurrency",
        STEP | {"up the link, a step": _carried} | YIELD,
        (
            Row("p = 1", (), PLAIN),
            Row("p = 0.3"),
            Row("p = 0.3, no prefetch", (ALONE,)),
            Row("p = 0.3, link and DRAM take no time", FREE),
            Row("p = 0.3, GH200 (NVLink-C2C)", ("hardware=gh200-96gb", "link={}")),
            Row("sparse, p = 1", (TOPK,), PLAIN),
            Row("sparse, p = 0.3, next reads known", (TOPK, ORACLE)),
            Row("... and pieces gathered, no descriptors", (TOPK, ORACLE, "link.latency=0s")),
        ),
        against=0,
    ),
    "support-bot": Table(
        "article-support-bot",
        {"at once": _at_once, "TTFT p95": _p95("ttft_s"), "ITL p95": _p95("itl_s"), "E2E p95": _p95("e2e_s")} | YIELD,
        (
            Row("96K, no offload", (), PLAIN),
            Row("96K, p = 0.3"),
            Row("96K, p = 0.3, sparse", (TOPK, ALONE)),
            Row("96K, p = 1, histories in DRAM", ("offload.residency=1", ALONE)),
            Row("16K, no offload", ("workload.first_prompt_tokens=15000",), PLAIN),
            Row("16K, p = 0.3", ("workload.first_prompt_tokens=15000",)),
        ),
        against=0,
    ),
    "batch-summaries": Table(
        "article-batch-summaries",
        {
            "cards": lambda s: f"{_cards(s):.0f}",
            "at once": _at_once,
            "whole run": lambda s: seconds(s["makespan_s"]),
            "a document in service": lambda s: seconds(_in_service_s(s)),
            "card time a document": lambda s: seconds(_cards(s) * s["makespan_s"] / s["requests"]["finished"]),
        },
        (
            Row("all in VRAM", ("replicas.tensor_parallel=8",), PLAIN),
            Row("all in VRAM", (), PLAIN),
            Row("p = 0.3"),
            Row("p = 0.3, 64 GiB of DRAM, then SSD", ("tiers.dram.capacity=64GiB",)),
            Row("p = 0.3, link and DRAM take no time", FREE),
        ),
    ),
    "maas": Table(
        "article-maas",
        {"at once, mean": lambda s: digits(s["concurrency"]["mean"])}
        | YIELD
        | {"USD a million tokens": lambda s: f"{s['cost_per_million_output_tokens']:.2f}"},
        (
            Row("p = 1", (), PLAIN),
            Row("p = 0.4"),
            Row("p = 0.4, link and DRAM take no time", FREE),
            Row("decoding alone, p = 1", ("engine.prefill=vram",), PLAIN),
            Row("decoding alone, p = 0.4, link and DRAM take no time", ("engine.prefill=vram", *FREE)),
        ),
        against=0,
    ),
    "long-context": Table(
        "long-context-active",
        {
            "p_hit": lambda s: f"{s['p_hit']:.4f}",
            "T_c": lambda s: seconds(s["t_compute_s"]),
            "T_step": lambda s: seconds(s["t_step_s"]),
            "at once": _at_once,
        }
        | YIELD,
        (
            Row("p = 0.3, λ = 0.7, β = 0.5"),
            Row("p = 0.1", ("offload.residency=0.1",)),
            Row("p = 0.6", ("offload.residency=0.6",)),
            Row("p = 1", ("offload.residency=1",)),
            Row("β = 0", ("offload.prefetch.beta=0",)),
            Row("β = 0.9", ("offload.prefetch.beta=0.9",)),
            Row("p = 0.1, λ = 0", ("offload.residency=0.1", "offload.eviction.lambda=0")),
            Row("p = 0.1, λ = 0.5", ("offload.residency=0.1", "offload.eviction.lambda=0.5")),
            Row("p = 0.1, λ = 0.8", ("offload.residency=0.1", "offload.eviction.lambda=0.8")),
            Row("p = 0.1, λ = 1", ("offload.residency=0.1", "offload.eviction.lambda=1")),
            Row("next reads known", (ORACLE,)),
        ),
    ),
}


def table(name: str) -> str:
    """Return a table as it stands in the page."""
    if name == "toy":
        return _toy()
    spec = TABLES[name]
    found = [summary(spec.scenario, row.assignments, row.which) for row in spec.rows]
    heads = ["", *spec.columns]
    lines = [[row.what, *(fill(s) for fill in spec.columns.values())] for row, s in zip(spec.rows, found, strict=True)]
    if spec.against is not None:
        base = found[spec.against]["output_tokens_per_s"]
        heads.append(f"against {spec.rows[spec.against].what}")
        for line, s in zip(lines, found, strict=True):
            line.append(f"{digits(s['output_tokens_per_s'] / base)} x")
    return _rendered(heads, lines)


def _toy() -> str:
    """The program beside the scenarios that are it."""
    lines = []
    for name, what, switches in (
        ("article-toy", "as it is", {}),
        ("article-toy-lru", "proper LRU", {"proper_lru": True}),
        ("article-toy-corrected", "and own loads stall", {"proper_lru": True, "stalls": True}),
    ):
        without, ahead = totals(**switches)
        lines.append([f"the program, {what}", f"{without}", f"{ahead}", f"{without / ahead:.2f}"])
        without, ahead = (summary(name, (), which)["makespan_s"] for which in ("no_prefetch", RUN))
        lines.append([f"`{name}.yaml`", f"{without}", f"{ahead}", f"{without / ahead:.2f}"])
    return _rendered(["", "without prefetch", "with", "times as fast"], lines)


def _rendered(heads: list[str], lines: list[list[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def filled(text: str) -> str:
    """Return the page with every table filled anew."""
    return TABLE.sub(lambda found: found[1] + table(found["name"]) + found[4], text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")
