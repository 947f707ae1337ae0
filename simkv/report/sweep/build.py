"""A sweep as sections of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simkv.report.document import Block, Note, Section, Text
from simkv.report.folders import SweepFolder
from simkv.report.sweep.figures import figures
from simkv.report.sweep.front import front_figure
from simkv.report.sweep.headline import answer, differing, doubts, moving
from simkv.report.sweep.tables import failures, obtained, settings_table, warnings
from simkv.results.quantity import MISSING
from simkv.sweeps.best import Front

_NAMED = 8
"""Values of an axis that are named one by one."""


def sections(folder: SweepFolder) -> list[Section]:
    """Return what a report says of a sweep."""
    result = folder.result
    front = result.front()
    some = any(setting.found for setting in result.settings)
    found = [Section("answer", "What is best", list(_answer(folder, front)))]
    if some:
        drawn = list(_figures(folder, front))
        if drawn:
            found.append(Section("settings", "What each axis does", drawn))
        found.append(Section("table", "Every setting", list(settings_table(result, front))))
    return [*found, Section("obtained", "How it was obtained", list(obtained(folder)))]


def _figures(folder: SweepFolder, front: Front) -> Iterator[Block]:
    yield from figures(folder.result, front.objectives)
    best = front_figure(folder.result, front)
    if best is not None:
        yield best


def _answer(folder: SweepFolder, front: Front) -> Iterator[Block]:
    result = folder.result
    yield Text(answer(result, front.objectives), lead=True)
    if result.pending:
        yield Note("warning", f"{result.pending:,} points have no answer yet: this is what is there now.", "pending")
    yield from failures(result)
    yield from warnings(result)
    yield from (Text(text) for text in (differing(result, front.objectives), moving(result, front.objectives)) if text)
    yield from (Text(text) for text in doubts(result, front.objectives))
    yield from (Note("plain", note) for note in result.notes)
    yield Text(_varied(folder))


def _varied(folder: SweepFolder) -> str:
    """Say what was asked, and what varied."""
    asked = (str(one.summary["question"] or "") for one in folder.result.ended if one.summary is not None)
    question = next(asked, "").strip()
    said = "; ".join(f"{name} ({_values(values)})" for name, values in folder.result.axes.items())
    return f"{question} Varied: {said or MISSING}.".strip()


def _values(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) <= _NAMED else f"{values[0]} to {values[-1]}, {len(values)} values"
