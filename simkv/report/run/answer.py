"""The answer of a run: one sentence with its number and interval, and whatever could put it in question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from simkv.report.document import Block, Note, Text, Tone
from simkv.report.folders import RunFolder
from simkv.report.run.settings import Settings, settings
from simkv.report.run.shown import capital, difference_text, half_width_s, mean_text
from simkv.report.run.window import window
from simkv.report.telling import listed
from simkv.results.quantity import count, digits, seconds, share
from simkv.results.verdict import MATTERS, figures_text
from simkv.results.words import Summary, attainment_texts

_JUDGED = (("TTFT", "ttft_s"), ("E2E", "e2e_s"))
_APART = re.compile(r"(?<=\d)(?=[A-Za-z])")
"""Between a number and its unit."""
_CLASSES_SAID = 4
_TIMES = 1.5
"""From this ratio on a change is told as times, below as percent."""


def blocks(folder: RunFolder) -> list[Block]:
    """Return the answer, the verdict on its SLO, what binds, warnings and what isn't modelled."""
    summary = folder.summary
    lead, *more = _answers(folder)
    found: list[Block] = [Text(lead, lead=True), *(Text(text) for text in more)]
    found += [*_slo(summary), *_slo_without(summary)]
    if summary["bottleneck_because"]:
        found.append(Text(f"Bottleneck: {summary['bottleneck_because']}."))
    found += [Note("warning", warning["message"], warning["code"]) for warning in summary["warnings"]]
    found += _baselines_own(summary)
    found += [Note("plain", note) for note in summary["notes"]]
    return found


def _answers(folder: RunFolder) -> list[str]:
    """Return the answer, and sentences that go with it."""
    summary = folder.summary
    helps, because = summary["verdict"]["offload_helps"], summary["verdict"]["because"]
    given = settings(folder)
    ahead = _prefetch(summary, given)
    if helps is not None and summary["baselines"].get("no_offload", {}).get("difference"):
        return [f"{_offload(summary, given)}.", because, *ahead]
    if "no_offload" in summary["baselines"]:
        first, stop, rest = because.partition(". ")
        return [f"{first}{stop}".strip(), *([rest] if rest else []), *_differences(summary), *ahead]
    reason = because.removeprefix(figures_text(summary))
    plain = _plain(summary, len(window(folder)))
    return [*ahead, *([f"{plain}."] if plain else []), *_by_class(summary), reason]


def _offload(summary: Summary, given: Settings) -> str:
    """Say what offloading does to the latency that decides, with its interval."""
    differences = summary["baselines"]["no_offload"]["difference"]
    label, key = _decisive(differences, summary["verdict"]["offload_helps"])
    one = differences[key]
    before, who = _baseline_mean(one), f"Offloading{_below(given)}"
    if before is None or one["mean"] == 0:
        stays = f": mean {label} stays at {mean_text(summary[key])}" if summary[key] else ""
        return f"{who} changes nothing{stays}"
    after = before + one["mean"]
    instead = f"{seconds(after)}{_half(summary[key])} instead of {seconds(before)}"
    matters = abs(one["relative"]) >= MATTERS and _certain(one)
    what = f"makes mean {label} {_factor(before, after)}" if matters else "makes no difference that matters to"
    what = what if matters else f"{what} mean {label}"
    return f"{who} {what}: {instead}, over the same {one['pairs']:,} requests; difference {difference_text(one)}"


def _decisive(differences: Mapping[str, Any], helps: bool) -> tuple[str, str]:
    """Return the latency that the verdict rests on: the first that moved its way, else the first there is."""
    there = [(label, key) for label, key in _JUDGED if key in differences]
    moved = [
        one
        for one in there
        if _certain(differences[one[1]])
        and (differences[one[1]]["mean"] < 0) == helps
        and abs(differences[one[1]]["relative"] or 0.0) >= MATTERS
    ]
    return (moved or there)[0]


def _certain(difference: Mapping[str, Any]) -> bool:
    ends = difference["ci95"]
    return bool(ends) and (ends[0] > 0 or ends[1] < 0)


def _baseline_mean(difference: Mapping[str, Any]) -> float | None:
    return difference["mean"] / difference["relative"] if difference["relative"] else None


def _half(values: Mapping[str, Any] | None) -> str:
    half = half_width_s(values) if values else None
    return "" if not half else f" ± {seconds(half)}"


def _factor(before: float, after: float) -> str:
    way = "smaller" if after < before else "larger"
    ratio = max(before, after) / min(before, after) if min(before, after) > 0 else float("inf")
    return (
        f"{digits(ratio)} times {way}" if _TIMES <= ratio < float("inf") else f"{share(abs(after / before - 1))} {way}"
    )


def _below(given: Settings) -> str:
    """Return `` to 200 GiB of DRAM and 4 TB of SSD``; nothing where no size is known."""
    sizes = [
        f"{_APART.sub(' ', given.text(f'tiers.{tier}.capacity') or '')} of {tier.upper()}"
        for tier in ("dram", "ssd")
        if given.amount(f"tiers.{tier}.capacity", "size")
    ]
    return f" to {listed(sizes)}" if sizes else ""


def _differences(summary: Summary) -> Iterator[str]:
    """Say of each latency by how much it differs, where the verdict is that nothing can be said."""
    differences = summary["baselines"]["no_offload"]["difference"]
    told = [f"{label} {difference_text(differences[key])}" for label, key in _JUDGED if key in differences]
    if told:
        pairs = max(differences[key]["pairs"] for _, key in _JUDGED if key in differences)
        yield f"Differences of the means over the same {pairs:,} requests: {', '.join(told)}."


def _prefetch(summary: Summary, given: Settings) -> list[str]:
    """Say what prefetch buys a decode step of active offload; nothing without a run to hold it against."""
    faster, plain = summary["speedup"]["measured"], summary["baselines"].get("no_prefetch")
    if faster is None or not plain or not plain["t_step_s"]:
        return []
    formula = summary["speedup"]["formula"]
    closed = f" (closed form: {digits(formula)} times)" if formula is not None else ""
    text = f"Prefetch makes a decode step {digits(faster)} times as fast: {seconds(summary['t_step_s'])}"
    return [f"{text} instead of {seconds(plain['t_step_s'])}{closed}.", *_demand_overlaps(given)]


def _demand_overlaps(given: Settings) -> Iterator[str]:
    """Say that it isn't prefetched blocks alone that save time, where loads on demand overlap too."""
    if given.text("offload.prefetch.demand") == "overlaps":
        yield (
            "With prefetch, what a step loads on demand overlaps with computing, too (offload.prefetch.demand: "
            "overlaps): the gain isn't that of the prefetched blocks alone."
        )


def _plain(summary: Summary, requests: int) -> str:
    """Return what came out, where nothing is compared."""
    parts = [f"mean {label} {mean_text(summary[key])}" for label, key in _JUDGED if summary[key]]
    rate = summary["output_tokens_per_s"]
    parts += [f"{count(rate)} output tokens/s"] if rate else []
    if not parts:
        return f"No request finished, of {summary['requests']['arrived']:,} that arrived"
    return f"{capital(', '.join(parts))}, over {requests:,} request{'s' if requests != 1 else ''}"


def _by_class(summary: Summary) -> Iterator[str]:
    """Say the mean TTFT of each request class: the mean over all hides who waits."""
    told = {name: row["ttft_s"] for name, row in (summary["classes"] or {}).items() if row["ttft_s"] is not None}
    if 1 < len(told) <= _CLASSES_SAID:
        yield f"Mean TTFT by class: {listed(f'{name} {mean_text(ttft)}' for name, ttft in told.items())}."


def _slo(summary: Summary) -> Iterator[Note]:
    attained = summary["slo_attainment"]
    if not attained:
        return
    targets = list(_targets(attained))
    missed, judged = any(met is False for _, met in targets), bool(targets)
    nobody = attained["overall"] == 0
    tone: Tone = "bad" if missed or nobody else "good" if judged else "plain"
    says = "The SLO is missed" if missed else "The SLO holds" if judged else "SLO of each request"
    free = sorted(set(summary["classes"] or {}) - set(attained["classes"])) if attained["classes"] else []
    counted = f"; requests of {listed(free)} have none and count as meeting it" if free and not targets else ""
    yield Note(tone, f"{says}: {'; '.join([*(text for text, _ in targets), *attainment_texts(summary)])}{counted}.")


def _slo_without(summary: Summary) -> Iterator[Text]:
    """Say what becomes of the SLO without offload: whether it is offload that holds it."""
    plain = (summary["baselines"] or {}).get("no_offload")
    if not summary["slo_attainment"] or not plain or not plain["slo_attainment"]:
        return
    targets = list(_targets(plain["slo_attainment"]))
    missed = any(met is False for _, met in targets)
    says = ("is missed" if missed else "holds, too") if targets else "of each request"
    told = "; ".join([*(text for text, _ in targets), *attainment_texts(plain)])
    yield Text(f"Without offload the SLO {says}: {told}.")


def _targets(attained: Mapping[str, Any]) -> Iterator[tuple[str, bool | None]]:
    """Yield each target with its value, and whether it holds: ``TTFT p95 328 ms ≤ 2.00 s``."""
    for name, target in attained["targets"].items():
        if target["value"] is not None:
            label, _, rank = name.partition("_")
            sign = "≤" if target["met"] else ">"
            yield f"{label.upper()} {rank} {seconds(target['value'])} {sign} {seconds(target['limit'])}", target["met"]


def _baselines_own(summary: Summary) -> Iterator[Note]:
    """Warn of what only a baseline has to be warned of."""
    mine = {warning["code"] for warning in summary["warnings"]}
    for name, other in summary["baselines"].items():
        theirs = [code for code in dict.fromkeys(other["warnings"]) if code not in mine]
        if theirs:
            what = name.replace("_", " ").replace("no ", "without ")
            yield Note("warning", f"The run {what} that this is compared with has: {', '.join(theirs)}.", "baseline")
