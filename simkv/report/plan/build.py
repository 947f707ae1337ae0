"""A plan as sections of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simkv.planner import words
from simkv.planner.objective import HOUR_S, MILLION
from simkv.planner.why import spoken
from simkv.report.document import Block, Cell, Note, Section, Table, Text
from simkv.report.folders import PlanFolder
from simkv.report.plan.candidates import candidates
from simkv.report.plan.obtained import fit, flags, obtained
from simkv.report.plan.offload import TONES, offload
from simkv.report.plan.question import question
from simkv.report.plan.sensitivity import sensitivity
from simkv.report.run.shown import capital, time
from simkv.results.quantity import MISSING, share


def sections(folder: PlanFolder) -> list[Section]:
    """Return what a report says of a plan; of one that nothing satisfies, what comes nearest instead."""
    found = [
        Section("answer", "What to take", list(_answer(folder))),
        Section("question", "What was asked", list(question(folder.answer))),
        Section("candidates", "What there was to choose from", list(candidates(folder.answer))),
        Section("sensitivity", "What more of a resource would buy", list(sensitivity(folder.answer))),
        Section("offload", "Whether offloading pays", list(offload(folder.answer))),
        Section("fit", "The machine as it was measured", list(fit(folder.answer))),
        Section("flags", "How to start it", list(flags(folder))),
        Section("obtained", "How it was obtained", list(obtained(folder))),
    ]
    return [section for section in found if section.blocks]


def _answer(folder: PlanFolder) -> Iterator[Block]:
    answer = folder.answer
    winner = answer["winner"]
    if winner is None:
        yield Text("Nothing holds the SLO.", lead=True)
        yield Note("bad", f"{capital(answer['nearest'] or 'no candidate is left to choose from')}.", "infeasible")
        return
    yield Text(words.headline(answer), lead=True)
    yield Text(f"{words.holds(winner)}{_made(winner, answer['currency'] or '')}")
    if not winner["confirmed"]["surely"]:
        yield Note("warning", "An interval reaches beyond its limit: with other seeds the SLO may not hold.", "unsure")
    yield from (
        Note("warning", f"{winner['name']}: {warning['message']}", str(warning["code"]))
        for warning in winner["warnings"]
    )
    yield _targets(winner["confirmed"])
    yield from (Text(text) for text in answer["why"])
    verdict = answer["verdict"]
    if verdict is not None:
        yield Note(TONES[verdict["offload_helps"]], verdict["because"], "offload")


def _made(winner: Mapping[str, Any], currency: str) -> str:
    """Say what a million tokens cost by what was made with several seeds; nothing where there is no interval."""
    made = winner["confirmed"]["figures"].get("output_tokens_per_s")
    if winner["cost_per_hour"] is None or made is None or made["ci95"] is None or made["ci95"][0] <= 0:
        return ""
    hour = winner["cost_per_hour"] if winner["confirmed"]["whole"] else winner["cost_per_hour"] / winner["units"]
    mean, dear, cheap = (hour / HOUR_S / rate * MILLION for rate in (made["mean"], *made["ci95"]))
    return (
        f" By what the seeds made, a million output tokens cost {mean:.2f} {currency} "
        f"(95 %: {cheap:.2f} to {dear:.2f})."
    )


def _targets(confirmed: Mapping[str, Any]) -> Table:
    """Return what the SLO asks beside what there is: at the planned load, and with the headroom used up."""
    strained = confirmed["without_headroom"]
    heads = ["Target", "limit", "at the planned load", "95 % from", "to", "left"]
    heads += ["with the headroom used up", "left"] if strained else []
    rows = []
    for key, one in confirmed["targets"].items():
        row = [Cell(spoken(key)), time(one["limit"]), *_estimate(one)]
        rows.append([*row, *(_strained(strained.get(key)) if strained else [])])
    return Table(heads, rows, "targets", right=frozenset(range(1, len(heads))))


def _estimate(one: Mapping[str, Any]) -> list[Cell]:
    low, high = one["ci95"] or (None, None)
    return [time(one["mean"]), time(low), time(high), _left(one)]


def _strained(one: Mapping[str, Any] | None) -> list[Cell]:
    return [Cell(MISSING), Cell(MISSING)] if one is None else [time(one["mean"]), _left(one)]


def _left(one: Mapping[str, Any]) -> Cell:
    """Return how far below its limit a target is, as a share of the limit."""
    if not one["limit"]:
        return Cell(MISSING)
    left = 1 - one["mean"] / one["limit"]
    return Cell(share(left), left, "good" if left >= 0 else "bad")
