"""The figures of active offload, from what its steps measured."""

from __future__ import annotations

from collections.abc import Mapping

from simkv.results.quantity import count, seconds, share
from simkv.results.stats import finite
from simkv.sim.active.config import ActiveConfig
from simkv.sim.active.measured import Measured

Figures = dict[str, object]

_SAME = 0.01
"""Relative difference below which a closed form and the run are said to agree."""


def figures(measured: Measured | None, closed: Mapping[str, object]) -> Figures:
    """Return the keys of ``summary.json`` that only active offload has, all null without it.

    ``closed``: the closed forms of :func:`simkv.firstorder.active_first_order`.
    """
    if measured is None or not measured.steps:
        return {}
    steps, reads = measured.steps, measured.reads
    waits = {
        "loads": measured.exposed_s,
        "writes": measured.write_wait_s,
        "cpu": measured.host_s,
        "contention": measured.contended_s,
    }
    return {
        "p_hit": finite(measured.hits / reads) if reads else None,
        "p_resident": finite(measured.resident / reads) if reads else None,
        "t_avg_s": _t_avg(measured, closed),
        "t_step_s": measured.step_s / steps,
        "t_compute_s": measured.compute_s / steps,
        "t_wait_s": {name: seconds_ / steps for name, seconds_ in waits.items()},
        "t_transfer_s": measured.carried_s / steps,
        "beta": finite(1 - measured.exposed_s / measured.carried_s) if measured.carried_s > 0 else None,
        "prefetch": _prefetch(measured),
    }


def _t_avg(measured: Measured, closed: Mapping[str, object]) -> Figures | None:
    if not measured.reads:
        return None
    read_s = closed.get("t_vram_s")
    assert isinstance(read_s, float), "a closed form of every run that read something"
    service_s = read_s + measured.service_s / measured.reads
    return {
        "formula": closed.get("t_avg_s"),
        "service": service_s,
        "queued": measured.queued_s / measured.reads,
        "exposed": measured.exposed_s / measured.reads,
    }


def _prefetch(measured: Measured) -> Figures | None:
    """Return what became of prefetches; null where nothing was predicted."""
    if not measured.prefetched:
        return None
    wanted = measured.used + measured.missed
    return {
        "accuracy": measured.used / measured.prefetched,
        "coverage": finite(measured.used / wanted) if wanted else None,
        "timeliness": finite(measured.timely / measured.used) if measured.used else None,
        "loaded_bytes": measured.prefetch_bytes,
        "wasted_bytes": measured.wasted_bytes,
        "wasted_link_s": measured.wasted_s,
        "demand_delayed_s": measured.demand_waited_s,
    }


def speedup(measured: Measured | None, closed: Mapping[str, object], baseline: Measured | None) -> Figures:
    """Return ``speedup.formula`` and ``speedup.measured`` against the same run without prefetch."""
    found: Figures = {"formula": closed.get("speedup"), "measured": None}
    if measured and baseline and measured.steps and baseline.steps and measured.step_s > 0:
        mine, other = measured.step_s / measured.steps, baseline.step_s / baseline.steps
        found["measured"] = finite(other / mine)
    return found


def warnings(measured: Measured | None, active: ActiveConfig | None) -> tuple[tuple[str, str], ...]:
    """Return ``(code, sentence)`` of what a run of active offload could not do as asked."""
    if measured is None or active is None or not measured.steps:
        return ()
    found = []
    if measured.clamped:
        text = f"β was cut in {share(measured.clamped / measured.steps)} of the steps to min(1, T_c / T_t): "
        found.append(("beta_clamped", f"{text}computing is too short to hide more of the transfer."))
    if measured.empty:
        text = (
            f"In {share(measured.empty / measured.steps)} of the decode steps attention reads nothing: the access log "
        )
        found.append(("empty_steps", f"{text}doesn't name them."))
    guesses = active.sparse and active.incoming != "candidate" and active.prefetch.policy in ("next_step", "oracle")
    if guesses and measured.missed and not measured.prefetched:
        text = (
            f"Prefetch fetched nothing: what it foresaw was in VRAM already, and none of the {count(measured.missed)} "
        )
        found.append(("prefetch_idle", f"{text}pieces that weren't there was foreseen."))
    return tuple(found)


def why(measured: Measured | None, closed: Mapping[str, object]) -> tuple[str, ...]:
    """Return sentences that say where the run and the closed forms part, and by what; none where they agree."""
    formula = closed.get("t_step_s")
    if measured is None or not measured.steps or not isinstance(formula, float) or formula <= 0:
        return ()
    mean_s = measured.step_s / measured.steps
    gap_s = mean_s - formula
    if abs(gap_s) <= _SAME * formula:
        return ()
    text = f"A decode step takes {seconds(mean_s)} where the closed form gives {seconds(formula)}"
    if gap_s < 0:
        return (f"{text} (-{share(-gap_s / formula)}).",)
    return (f"{text} (+{share(gap_s / formula)}): {_because(_causes(measured, closed), gap_s)}.",)


def _because(causes: list[tuple[float, str]], gap_s: float) -> str:
    """Name what makes up ``gap_s``, what of it nothing here accounts for, and whether the causes overlap."""
    told = [(value, text) for value, text in causes if value > 0.05 * gap_s]
    rest_s = gap_s - sum(value for value, _ in told)
    if rest_s > 0.2 * gap_s:
        told.append((rest_s, "of steps that differ (the closed form takes their mean)"))
    text = ", ".join(f"{seconds(value)} {text}" for value, text in told)
    return f"{text}; these overlap" if rest_s < -0.2 * gap_s else text


def _causes(measured: Measured, closed: Mapping[str, object]) -> list[tuple[float, str]]:
    """Return the seconds a step that each effect outside the closed form costs, with what it is."""
    steps = measured.steps
    bubble, bare_s = closed.get("bubble_s"), closed.get("t_transfer_s")
    unforeseen = measured.missed / max(1, measured.missed + measured.used) if measured.guesses else 0.0
    return [
        (unforeseen * bare_s if isinstance(bare_s, float) else 0.0, "of loads that no prefetch foresaw"),
        (measured.descriptors_s / steps, "of descriptors (many small pieces)"),
        (float(bubble) if isinstance(bubble, float) else 0.0, "of fill bubble (the first layer's pieces)"),
        (measured.wasted_s / steps, "of link time for prefetches that nobody read"),
        (measured.duplex_s / steps, "of sharing the link with write-backs (duplex)"),
        (
            max(0.0, measured.demand_waited_s - measured.duplex_s) / steps,
            "of queueing behind other transfers",
        ),
        (measured.host_s / steps, "of CPU time for managing blocks"),
        (measured.contended_s / steps, "of computing slowed by copies or after waits"),
        (measured.hindered_s / steps, "of copies slowed by computing"),
        (measured.write_wait_s / steps, "of waiting for write-backs"),
    ]
