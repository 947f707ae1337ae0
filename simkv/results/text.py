"""The terminal summary: question, answer, then the figures behind it. Fits a screen of 40 x 100."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from simkv.results.quantity import count, data, digits, seconds, share
from simkv.results.result import RunResult
from simkv.results.words import (
    LATENCIES,
    PARTS,
    RESOURCES,
    TIERS,
    WAITS,
    Summary,
    attainment_texts,
    closed_label,
    preemption_text,
    quantity,
    target_texts,
)

MAX_WIDTH = 100
_LABEL = 13
_BAR = 30
_WARNINGS = 5
_CLASSES = 4
_LINES = 6
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|[A-Za-z]{1,3}\b)|(?<=±) |(?<=E2E) (?=\d)")

_MARKS = {"vram": "█", "dram": "▓", "ssd": "▒"}
_ASCII = str.maketrans(
    {"█": "#", "▓": "=", "▒": "-", "░": ".", "±": "+/-", "·": "|", "…": "...", "←": "<-", "│": "|", "×": "x"}
)


def render(result: RunResult, out_dir: Path | None, width: int = MAX_WIDTH, ascii_only: bool | None = None) -> str:
    """Return the summary as text, at most ``width`` (and 100) columns wide.

    ``out_dir``: where the files are, None where none were written. ``ascii_only``: None asks
    standard output's encoding.
    """
    width = max(60, min(width, MAX_WIDTH))
    summary = result.summary
    blocks = (
        _answer(summary, width),
        _warnings(summary, width),
        _latencies(summary),
        _active(summary, width),
        _shares(summary, width),
        _throughput(summary, width),
        _resources(summary),
        [*_closed_form(summary, width), *_where(result, out_dir, width)],
    )
    text = "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block)))
    return _encodable(text, ascii_only) + "\n"


def _encodable(text: str, ascii_only: bool | None) -> str:
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    if ascii_only is None:
        ascii_only = encoding not in ("utf8", "utf8sig", "utf16", "utf32")
    return text.translate(_ASCII).encode("ascii", "replace").decode() if ascii_only else text


def _answer(summary: Summary, width: int) -> Iterator[str]:
    name, question = summary["scenario"], summary["question"]
    yield from _wrapped(f"{name}: {question}" if question else name, width)
    verdict = summary["verdict"]
    yield from _wrapped(verdict["because"], width)
    if summary["bottleneck_because"]:
        yield from _wrapped(f"Bottleneck: {summary['bottleneck_because']}.", width)


def _warnings(summary: Summary, width: int) -> Iterator[str]:
    warnings = summary["warnings"]
    for warning in warnings[:_WARNINGS]:
        yield from _wrapped(f"! {warning['code']}: {warning['message']}", width, "    ")
    if len(warnings) > _WARNINGS:
        yield f"! and {len(warnings) - _WARNINGS} more in summary.json"
    for note in summary["notes"]:
        yield from _wrapped(f"Note: {note}", width, "    ")


def _latencies(summary: Summary) -> Iterator[str]:
    plain = summary["baselines"].get("no_offload")
    if all(summary[key] is None for _, key in LATENCIES):
        return
    head = f"{'Latency':<{_LABEL}}{'mean':>8}{'':11}" + "".join(f"{p:>9}" for p in ("p50", "p95", "p99", "max"))
    yield head + (f"{'no offload: mean':>18}{'p95':>9}" if plain else "")
    for label, key in LATENCIES:
        values = summary[key]
        if values is None:
            continue
        row = f"  {label:<{_LABEL - 2}}{seconds(values['mean']):>8} {_spread(values):<10}"
        row += "".join(f"{seconds(values[p]):>9}" for p in ("p50", "p95", "p99", "max"))
        other = plain[key] if plain else None
        yield row + (f"{seconds(other['mean']):>18}{seconds(other['p95']):>9}" if other else "")
    yield from _class_latencies(summary)
    warmed = summary.get("warm_tiers")
    if warmed:
        passed = f"{count(warmed['requests'])} requests ({seconds(warmed['time_s'])})"
        yield f"  tiers warmed by {passed} that passed untimed before"
    if summary["warm_up_s"]:
        yield f"  without the first {seconds(summary['warm_up_s'])} of arrivals (warm-up)"


def _class_latencies(summary: Summary) -> Iterator[str]:
    """Yield the TTFT of each request class: the blend above hides who waits."""
    classes = {name: row for name, row in (summary["classes"] or {}).items() if row["ttft_s"] is not None}
    if len(classes) < 2:
        return
    yield "TTFT by class"
    for name, row in list(classes.items())[:_CLASSES]:
        values, label = row["ttft_s"], _visible(name)[: _LABEL - 2]
        line = f"  {label:<{_LABEL - 2}}{seconds(values['mean']):>8} {_spread(values):<10}"
        yield line + "".join(f"{seconds(values[p]):>9}" for p in ("p50", "p95", "p99", "max"))
    if len(classes) > _CLASSES:
        yield f"  and {len(classes) - _CLASSES} more classes in summary.json"


def _spread(values: Mapping[str, Any]) -> str:
    if not values["ci95"] or not values["mean"]:
        return ""
    return f"± {share((values['ci95'][1] - values['mean']) / values['mean'])}"


def _shares(summary: Summary, width: int) -> Iterator[str]:
    rates = summary["hit_rate"]
    if rates:
        named = [f"{label} {share(rates[key])}" for label, key in TIERS if rates[key] or key == "vram"]
        text = f"{' · '.join(named)} · computed {share(rates['miss'])} · ceiling {share(rates['ceiling'])}"
        yield from _labelled("Prompt from", f"{_hit_bar(rates)}  {text}", width)
        plain = summary["baselines"].get("no_offload")
        if plain and plain["hit_rate"]:
            before = plain["hit_rate"]
            text = f"VRAM {share(before['vram'])} · computed {share(before['miss'])}"
            yield from _labelled("  no offload", f"{_hit_bar(before)}  {text}", width)
    parts = summary["time_breakdown_s"]
    total = sum(parts.values()) if parts else 0.0
    if total > 0:
        named = [f"{label} {share(parts[key] / total)}" for label, key in PARTS if parts[key] / total >= 0.0005]
        yield from _labelled("Time goes to", " · ".join(named), width)


def _active(summary: Summary, width: int) -> Iterator[str]:
    """Yield what steps of active offload waited for; nothing without it."""
    if summary["t_step_s"] is None:
        return
    closed = summary["closed_form"]
    parts = [f"T_step {seconds(summary['t_step_s'])}", f"computing {seconds(summary['t_compute_s'])}"]
    waits = summary["t_wait_s"]
    parts += [f"{what} {seconds(waits[key])}" for what, key in WAITS if waits[key]]
    if "t_step_s" in closed:
        parts.append(f"closed form {seconds(closed['t_step_s'])}")
    yield from _labelled("Decode step", " · ".join(parts), width)
    parts = [f"needed transfers {seconds(summary['t_transfer_s'])}"]
    named = (("p_hit", summary["p_hit"]), ("resident", summary["p_resident"]), ("β", summary["beta"]))
    parts += [f"{name} {digits(value)}" for name, value in named if value is not None]
    average, faster = summary["t_avg_s"], summary["speedup"]["measured"]
    if average is not None:
        text = f"T_avg {seconds(average['service'])}{_closed(average['formula'], seconds)}"
        parts.append(f"{text}, queued {seconds(average['queued'])}")
    if faster is not None:
        formula = _closed(summary["speedup"]["formula"], digits)
        parts.append(f"{digits(faster)} times as fast as without prefetch{formula}")
    yield from _labelled("", " · ".join(parts), width)
    ahead = summary["prefetch"]
    if ahead is not None and ahead["coverage"] is not None:
        text = f"accuracy {share(ahead['accuracy'])} · coverage {share(ahead['coverage'])}"
        if ahead["timeliness"] is not None:
            text += f" · in time {share(ahead['timeliness'])}"
        yield from _labelled("Prefetch", f"{text} · wasted {data(ahead['wasted_bytes'])}", width)


def _closed(formula: float | None, show: Callable[[float], str]) -> str:
    """Return what a closed form gives, in brackets; nothing where there is none."""
    return f" (closed form {show(formula)})" if formula is not None else ""


def _hit_bar(rates: Mapping[str, float]) -> str:
    """Return a bar of hits by tier, ``│`` where an infinite cache would end."""
    cells, filled, done = "", 0.0, 0
    for key, mark in _MARKS.items():
        filled += rates[key]
        until = round(filled * _BAR)
        cells += mark * (until - done)
        done = until
    cells += "░" * (_BAR - len(cells))
    ceiling = min(round(rates["ceiling"] * _BAR), _BAR - 1) if rates["ceiling"] else -1
    return cells[:ceiling] + "│" + cells[ceiling + 1 :] if ceiling >= done else cells


def _throughput(summary: Summary, width: int) -> Iterator[str]:
    requests = summary["requests"]
    finished = f"{requests['finished']:,} of {requests['arrived']:,} requests in {seconds(summary['makespan_s'])}"
    parts = [finished]
    if summary["requests_per_s"] is not None:
        parts += [
            f"{digits(summary['requests_per_s'])} requests/s",
            f"{count(summary['output_tokens_per_s'])} output tokens/s",
        ]
    yield from _labelled("Throughput", " · ".join(parts), width)
    targets = _targets(summary)
    if targets:
        yield from _labelled("SLO", " · ".join(targets), width)
    if summary["cost_per_million_output_tokens"] is not None:
        yield from _labelled("Cost", _cost(summary), width)


def _targets(summary: Summary) -> list[str]:
    attained = summary["slo_attainment"]
    return [*(text for text, _ in target_texts(attained)), *attainment_texts(summary)] if attained else []


def _cost(summary: Summary) -> str:
    currency = summary["cost"]["currency"] or ""
    text = f"{digits(summary['cost_per_million_output_tokens'])} {currency} per million output tokens"
    plain = summary["baselines"].get("no_offload") or {}
    other = plain.get("cost_per_million_output_tokens")
    return text if other is None else f"{text} · {digits(other)} without offload"


def _resources(summary: Summary) -> Iterator[str]:
    rows = list(_resource_rows(summary))
    if rows:
        yield f"{'Resources':<{_LABEL}}{'busy':>8}{'':{_BAR // 2 + 2}}{'moved':>12}"
    yield from rows
    yield from _room(summary)
    yield from _running(summary)


def _resource_rows(summary: Summary) -> Iterator[str]:
    for label, key in RESOURCES:
        busy, moved = summary["utilization"][key], summary["bytes"].get(key)
        if busy is None or not (busy or moved):
            continue
        row = f"  {label:<{_LABEL - 2}}{share(busy):>8}  {_bar(busy)}{data(moved) if moved is not None else '':>12}"
        yield (row + _mark(summary, key)).rstrip()


def _room(summary: Summary) -> Iterator[str]:
    parts = []
    for label, key in TIERS:
        usage = summary["kv_usage"][key]
        if usage is None or usage["mean"] is None:
            continue
        most = f" (max {share(usage['max'])})" if usage["max"] is not None else ""
        parts.append(f"{label} {share(usage['mean'])}{most}{_mark(summary, key)}")
    if parts:
        yield f"  {'KV room':<{_LABEL - 2}}{' · '.join(parts)}"


def _mark(summary: Summary, key: str) -> str:
    return "  ← bottleneck" if summary["bottleneck"] == key else ""


def _running(summary: Summary) -> Iterator[str]:
    running = summary["concurrency"]
    if running["mean"] is None:
        return
    text = f"mean {digits(running['mean'])} · max {running['max']}"
    if running["formula"] is not None:
        text += f" · closed form {count(running['formula'])}"
    staged = summary["closed_form"].get("concurrency_with_staging")
    if staged is not None and staged != running["formula"]:
        text += f", {count(staged)} with staging buffers and whole blocks"
    preempted = preemption_text(summary)
    if preempted:
        text += f" · {preempted}"
    yield f"  {'running':<{_LABEL - 2}}{text}{_mark(summary, 'max_num_seqs')}"


def _bar(value: float) -> str:
    cells = _BAR // 2
    full = min(cells, round(value * cells))
    return "█" * full + "░" * (cells - full)


def _closed_form(summary: Summary, width: int) -> Iterator[str]:
    parts = [_beside(key, value, summary) for key, value in summary["closed_form"].items()]
    parts = [part for part in parts if part]
    if parts:
        yield from _labelled("Closed form", " · ".join(parts), width)


def _beside(key: str, value: object, summary: Summary) -> str:
    """Return one closed form with the simulated figure of the same name, if there is one."""
    if isinstance(value, Mapping):
        value = value.get("value")
    if not isinstance(value, (int, float)) or isinstance(value, bool) or key.startswith("concurrency"):
        return ""
    simulated = summary.get(key)
    if isinstance(simulated, Mapping):
        simulated = simulated.get("mean")
    text = f"{closed_label(key)} {quantity(key, value)}"
    return f"{text} (simulated {quantity(key, simulated)})" if isinstance(simulated, (int, float)) else text


def _where(result: RunResult, out_dir: Path | None, width: int) -> Iterator[str]:
    summary = result.summary
    if out_dir is not None:
        files = "summary.json, {requests,timeseries}.parquet, scenario.resolved.yaml"
        if any(recording.rule == "latest" for recording in result.data.recordings):
            files += ", recording.json"
        yield from _labelled("Files", f"{out_dir}/ ({files})", width)
    run = f"simkv {summary['simkv_version']} · seed {summary['seed']} · scenario {str(summary['scenario_hash'])[:12]}"
    yield from _labelled("Run", run, width)


def _labelled(label: str, text: str, width: int) -> list[str]:
    return _wrapped(f"{label:<{_LABEL}}{text}", width, " " * _LABEL)


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Return lines of ``text`` without anything that a terminal would obey; a number stays with its unit."""
    kept = _BEFORE_UNIT.sub("\xa0", _visible(text))
    lines = textwrap.wrap(kept, width, subsequent_indent=indent, break_on_hyphens=False)
    lines = [line.replace("\xa0", " ") for line in lines]
    return lines if len(lines) <= _LINES else [*lines[: _LINES - 1], lines[_LINES - 1][: width - 1] + "…"]


def _visible(text: str) -> str:
    """Return ``text`` with whatever a terminal would obey, not show, blanked."""
    return "".join(c if c.isprintable() else " " for c in text)
