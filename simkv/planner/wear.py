"""How fast a plan wears its SSDs out: bytes written a day against what the drives are rated for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simkv.hardware import Figure
from simkv.instances import DAYS_A_YEAR
from simkv.results.quantity import digits
from simkv.scenario.resolve import Resolved

DAY_S = 86_400
TB = 1e12
_LONG_YEARS = 100.0


def wear(resolved: Resolved, summary: Mapping[str, Any], more: float = 1.0) -> dict[str, Any] | None:
    """Return what is written to the SSDs of one host, and in how many years that is what they are rated for.

    ``summary``: of a run of ``resolved``; ``more``: the planned load over the load of that run, with which writes
    grow in proportion. Rated endurance counts what a host writes, so nothing is added for what drives rewrite
    themselves. TB are decimal. Keys: ``written_tb_per_day``, ``endurance_tb``, ``years``, ``standing``, ``source``
    (null: nobody says what the drives are rated for), ``because``. None where there is no SSD tier.
    """
    written, makespan_s = (summary.get("bytes") or {}).get("ssd_write"), summary.get("makespan_s")
    if written is None or not makespan_s:
        return None
    hosts = resolved.scenario.replicas.hosts
    daily_bytes = more * written / makespan_s * DAY_S / hosts
    rated = endurance(resolved)
    years = rated.value / daily_bytes / DAYS_A_YEAR if rated is not None and daily_bytes > 0 else None
    return {
        "written_tb_per_day": daily_bytes / TB,
        "endurance_tb": rated.value / TB if rated is not None else None,
        "years": years,
        "standing": rated.standing if rated is not None else None,
        "source": rated.source if rated is not None else None,
        "because": _because(resolved, daily_bytes, rated, years),
    }


def endurance(resolved: Resolved) -> Figure | None:
    """Return the bytes that all drives of a host are rated for together; None: not known."""
    return resolved.instance.figures.get("ssd_endurance_bytes") if resolved.instance is not None else None


def _because(resolved: Resolved, daily_bytes: float, rated: Figure | None, years: float | None) -> str:
    if not daily_bytes:
        return "Nothing is written to SSD."
    text = f"{terabytes(daily_bytes)} a day go to the SSDs of a host"
    if rated is None:
        instance = resolved.instance
        whose = f"the drives of {instance.name}" if instance is not None else "the drives, as no instance is named"
        return f"{text}; nobody says what {whose}, are rated for.".replace(f"{whose},", whose)
    assert years is not None, "something is written"
    lasting = f"more than {_LONG_YEARS:.0f}" if years > _LONG_YEARS else digits(years, 2)
    return f"{text}; rated for {terabytes(rated.value)} ({rated.standing}), they last {lasting} years."


def terabytes(size_bytes: float) -> str:
    """``4.84e15`` to ``4,840 TB``, as drives are rated: decimal."""
    value = size_bytes / TB
    return f"{value:,.0f} TB" if value >= 1000 else f"{digits(value)} TB"
