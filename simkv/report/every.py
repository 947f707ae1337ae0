"""Every figure of a run's summary, exactly as ``summary.json`` has it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from simkv.report.document import Cell, Details, Section, Table, Text
from simkv.results.metrics import METRICS

_HEADS = ("Figure", "Value", "Unit")


def every_figure(summary: Mapping[str, Any]) -> Section:
    """Return all plain values of ``summary`` by dotted name, with their units, folded up."""
    rows = [[Cell(name), Cell(shown(value), _exact(value)), Cell(_unit(name))] for name, value in values(summary)]
    table = Table(_HEADS, rows, "every-figure")
    about = Text("As summary.json has them, to the last digit; null where a figure has no meaning in this scenario.")
    return Section("every-figure", "Every figure", [about, Details(f"All {len(rows)} figures", [table])])


def values(found: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted name, value) of everything below ``found``: ``ttft_s.ci95.0``."""
    if isinstance(found, Mapping | list) and not found:
        return
    if isinstance(found, Mapping):
        for key, value in found.items():
            yield from values(value, f"{name}.{key}" if name else str(key))
    elif isinstance(found, list):
        for number, value in enumerate(found):
            yield from values(value, f"{name}.{number}")
    else:
        yield name, found


def shown(value: Any) -> str:
    """Return a value as JSON writes it; texts without quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def _exact(value: Any) -> float | int | str:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else shown(value)


def _unit(name: str) -> str:
    """Return the unit of a figure: its metric's, or what its own name ends with."""
    first, _, rest = name.partition(".")
    metric = METRICS.get(first)
    if metric is None or (rest and metric.unit in ("", "1")):
        return next((unit for end, unit in _UNITS if name.endswith(end)), "")
    return "" if metric.unit == "1" else metric.unit


_UNITS = (("bytes_per_s", "B/s"), ("tokens_per_s", "tokens/s"), ("requests_per_s", "1/s"), ("_bytes", "B"), ("_s", "s"))
