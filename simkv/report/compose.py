"""Result folders to one document: the answer first, then what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from simkv import units
from simkv.errors import InputError
from simkv.report import compare, curves, plan, run, sweep
from simkv.report.compare.sections import called
from simkv.report.document import Block, Details, Document, Draw, Figure, Note, Section, Widget
from simkv.report.every import every_figure
from simkv.report.files import damaged
from simkv.report.folders import (
    CURVES,
    PLAN,
    RECORDING,
    RESOLVED,
    SUMMARY,
    SWEEP,
    CurvesFolder,
    Folder,
    PlanFolder,
    RunFolder,
    SweepFolder,
)
from simkv.report.player import player
from simkv.report.sliders import sliders
from simkv.report.telling import listed

_CURVES_AFTER = ("cost", "active-offload", "blocks", "resources", "over-time", "hit-rates", "latency", "answer")
_SENSELESS = (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError)
_PLAYER_AFTER = ("resources", "over-time", "hit-rates", "latency", "answer")
"""Sections of a run that others follow, the last one first; each that is there: what was simulated before what-ifs."""


def document(folders: Sequence[Folder], title: str | None = None, no_curves: str | None = None) -> Document:
    """Return the report of ``folders``: one in full, several runs against the first, kinds that differ as parts.

    ``title``: instead of the scenario's name; ``no_curves``: why the curves of a run aren't there. Raises InputError
    where a file of a folder doesn't read, or where two plans, sweeps or curves are to be compared.
    """
    parts = list(_parts(folders, no_curves))
    found = [section for name, sections in parts for section in _named(sections, name if len(parts) > 1 else None)]
    return Document(title or _title(folders), _subtitle(folders), found)


def _parts(folders: Sequence[Folder], no_curves: str | None) -> Iterator[tuple[str, list[Section]]]:
    """Yield what a part is called, and its sections; runs together, in the place of the first."""
    runs = [folder for folder in folders if isinstance(folder, RunFolder)]
    for folder in folders:
        if not isinstance(folder, RunFolder):
            yield folder.path.resolve().name, _of_one(folder)
        elif folder is runs[0]:
            yield ("Run", _run(folder, no_curves)) if len(runs) == 1 else ("Comparison", _runs(runs))


def _of_one(folder: SweepFolder | PlanFolder | CurvesFolder) -> list[Section]:
    if isinstance(folder, SweepFolder):
        return _read(lambda: sweep.sections(folder), folder.path / SWEEP)
    if isinstance(folder, PlanFolder):
        return _read(lambda: plan.sections(folder), folder.path / PLAN)
    return _read(lambda: curves.sections(folder.answer), folder.path / CURVES)


def _read(build: Callable[[], list[Section]], file: Path) -> list[Section]:
    """Return what ``build`` makes of a file, or a folder of them, that was only looked at from outside.

    Its figures, which are drawn later, are held to the same: what the file leaves no sense in is its fault.
    """
    with _fault_of(file):
        sections = build()
    return [replace(section, blocks=_guarded(section.blocks, file)) for section in sections]


@contextmanager
def _fault_of(file: Path) -> Iterator[None]:
    try:
        yield
    except _SENSELESS as error:
        what = f"it is damaged, or of another version of simkv ({type(error).__name__}: {units.shown(str(error))})"
        raise damaged(file, what) from error


def _guarded(blocks: Sequence[Block], file: Path) -> list[Block]:
    """Return ``blocks`` whose figures, when they are drawn, say that ``file`` is damaged where they can't be."""
    found: list[Block] = []
    for block in blocks:
        if isinstance(block, Figure):
            block = replace(block, draw=partial(_drawn, block.draw, file))
        elif isinstance(block, Details):
            block = replace(block, blocks=_guarded(block.blocks, file))
        elif isinstance(block, Widget):
            block = replace(block, instead=_guarded(block.instead, file))
        found.append(block)
    return found


def _drawn(draw: Draw, file: Path, picture: BinaryIO, form: str) -> None:
    with _fault_of(file):
        draw(picture, form)


def _run(folder: RunFolder, no_curves: str | None) -> list[Section]:
    """Return one run in full."""
    found = _read(lambda: run.sections(folder), folder.path)
    found = _after(found, _PLAYER_AFTER, _read(lambda: list(_player(folder)), folder.path / RECORDING))
    what_if = _read(lambda: list(_sliders(folder)), folder.path)
    found = _after(found, _CURVES_AFTER, [*what_if, *_curves(folder, no_curves)])
    return [*found, *_read(lambda: [every_figure(folder.summary)], folder.path / SUMMARY)]


def _runs(runs: Sequence[RunFolder]) -> list[Section]:
    """Return several runs against the first, and then what each has to say for itself."""
    found = _read(lambda: compare.sections(runs), runs[0].path)
    for name, folder in zip(called(runs), runs, strict=True):
        for answer in _read(lambda folder=folder: [run.answered(folder)], folder.path):  # type: ignore[misc]
            found.append(replace(answer, key=f"run-{name}", title=f"By itself: {name}"))
    return found


def _sliders(folder: RunFolder) -> Iterator[Section]:
    try:
        found = sliders(folder.summary, folder.resolved, folder.curves, str(folder.path / RESOLVED))
    except InputError as error:
        text = f"Nothing to move here: its scenario can't be read any more ({error})."
        yield Section("what-if", "What if", [Note("plain", text)])
        return
    if found is not None:
        yield Section("what-if", "What if", [found])


def _curves(folder: RunFolder, why_not: str | None) -> Iterator[Section]:
    answer = folder.curves
    if answer is not None:
        yield from _read(lambda: curves.sections(answer, of_run=True), folder.path / "curves" / CURVES)
    elif why_not is not None:
        yield Section("curves", curves.TITLE, [Note("plain", why_not)])


def _player(folder: RunFolder) -> Iterator[Section]:
    recording = folder.recording
    found = player(recording, folder.summary, folder.resolved) if recording is not None else None
    if found is not None:
        yield Section("blocks", "Blocks on the move", [found])


def _after(sections: Sequence[Section], keys: Sequence[str], more: Sequence[Section]) -> list[Section]:
    """Return ``sections`` with ``more`` behind the first of ``keys`` that is there."""
    there = [section.key for section in sections]
    place = next((there.index(key) + 1 for key in keys if key in there), len(there))
    return [*sections[:place], *more, *sections[place:]]


def _named(sections: Sequence[Section], part: str | None) -> Iterator[Section]:
    """Yield ``sections`` as those of a part, which their titles say."""
    for section in sections:
        yield (
            section if part is None else replace(section, key=f"{part}-{section.key}", title=f"{part}: {section.title}")
        )


def _title(folders: Sequence[Folder]) -> str:
    """Return the scenario's name; of several runs and nothing else, what they are called."""
    runs = [folder for folder in folders if isinstance(folder, RunFolder)]
    if 1 < len(runs) == len(folders):
        return f"{listed(called(runs))} compared"
    return ", ".join(dict.fromkeys(folder.name for folder in folders))


def _subtitle(folders: Sequence[Folder]) -> str:
    questions = dict.fromkeys(text for folder in folders if (text := _question(folder)))
    if questions:
        return " · ".join(questions)
    counts = {kind: sum(isinstance(folder, kind) for folder in folders) for kind in _KINDS}
    return ", ".join(
        f"{number} {name}s" if number > 1 else name for kind, name in _KINDS.items() if (number := counts[kind])
    )


def _question(folder: Folder) -> str | None:
    asked: Mapping[str, object] = {}
    if isinstance(folder, RunFolder):
        asked = folder.summary
    elif isinstance(folder, PlanFolder):
        asked = folder.answer
    question = asked.get("question")
    return question if isinstance(question, str) else None


_KINDS: Mapping[type, str] = {RunFolder: "run", PlanFolder: "plan", SweepFolder: "sweep", CurvesFolder: "curve"}
