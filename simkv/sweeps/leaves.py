"""A summary's plain values by dotted name: ``ttft_s.p95``, ``baselines.no_offload.makespan_s``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from simkv.errors import InputError, Problem
from simkv.results.metrics import METRICS

Leaf = str | int | float | bool | None

HEADLINE = (
    "p_hit",
    "t_step_s",
    "itl_s.p95",
    "ttft_s.p95",
    "output_tokens_per_s",
    "hit_rate.miss",
    "cost_per_million_output_tokens",
    "goodput_requests_per_s",
    "slo_attainment.overall",
    "speedup.vs_no_offload",
    "concurrency.mean",
    "bottleneck",
)
"""What a table shows where nobody chooses, most telling first."""


def leaves(summary: Mapping[str, Any], under: str = "") -> Iterator[tuple[str, Leaf]]:
    """Yield every value of ``summary`` that is neither a list nor a mapping, with its dotted name."""
    for key, value in summary.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{under}{key}.")
        elif not isinstance(value, list | tuple):
            yield f"{under}{key}", value


def leaf(summary: Mapping[str, Any], name: str) -> Leaf:
    """Return the plain value of a dotted name; None where there is none."""
    key, dot, rest = name, "", ""
    while key:
        below = summary.get(key)
        if isinstance(below, Mapping):
            found = leaf(below, rest)
            if found is not None:
                return found
        elif below is not None and not dot:
            return None if isinstance(below, list | tuple) else below
        key, dot, _ = key.rpartition(".")  # a class of requests may have a dot in its name
        rest = name[len(key) + 1 :]
    return None


def columns(found: Iterable[Iterable[Mapping[str, Any]]]) -> list[str]:
    """Return the name of every plain value of summaries, in their order; those below one metric as they come."""
    order = {name: number for number, name in enumerate(METRICS)}
    names = dict.fromkeys(name for each in found for summary in each for name, _ in leaves(summary))
    return sorted(names, key=lambda name: order.get(name.partition(".")[0], len(order)))


def number(value: Leaf) -> float | None:
    """Return a value that can be averaged and compared; None: it has none."""
    return float(value) if isinstance(value, int | float) else None


def chosen(names: Sequence[str], valid: Collection[str], option: str) -> tuple[str, ...]:
    """Return ``names`` if the points have such metrics; raises InputError that names the nearest."""
    for name in names:
        if name not in valid:
            near = get_close_matches(name, valid, 3) or [other for other in valid if other.startswith(f"{name}.")][:3]
            mend = f"did you mean {' or '.join(near)}? " if near else ""
            raise InputError(
                Problem("no point has such a metric", f"{mend}points.csv has all names", path=option, value=name)
            )
    return tuple(dict.fromkeys(names))


def nested(names: Sequence[str], summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chosen values of ``summary`` as it has them, one below the other."""
    tree: dict[str, Any] = {}
    for name in names:
        *outer, last = name.split(".")
        section = tree
        for key in outer:
            section = section.setdefault(key, {})
        section[last] = leaf(summary, name)
    return tree
