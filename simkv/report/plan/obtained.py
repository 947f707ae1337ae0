"""How a plan was obtained, what the machine was fitted to, and how an engine is started as the winner says."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from simkv.errors import InputError
from simkv.planner import words
from simkv.planner.export import SCENARIO, STORE
from simkv.report.document import Block, Cell, Code, Facts, Note, Table, Text
from simkv.report.files import read_text
from simkv.report.folders import PlanFolder
from simkv.results.quantity import change
from simkv.sweeps.simulate import settings_of


def fit(answer: Mapping[str, Any]) -> Iterator[Block]:
    """Yield what the machine was fitted to, with the residuals; nothing where nothing was observed."""
    found = answer["observed"]
    if found is None:
        return
    yield Text(words.fitted(found))
    heads = ["measured", "is", "before", "error before", "fitted", "error after"]
    rows = [
        [
            Cell(one["figure"]),
            *(Cell(words.figure(one["figure"], one[key]), one[key]) for key in ("observed", "before")),
            Cell(change(one["error_before"]), one["error_before"]),
            Cell(words.figure(one["figure"], one["after"]), one["after"]),
            Cell(change(one["error_after"]), one["error_after"]),
        ]
        for one in found["residuals"]
    ]
    yield Table(heads, rows, "residuals", right=frozenset(range(1, len(heads))))
    yield from (Note("plain", note) for note in found["notes"])


def flags(folder: PlanFolder) -> Iterator[Block]:
    """Yield the flags of each engine, and what they can't say."""
    answer = folder.answer
    for engine, arguments in answer["engine_flags"].items():
        missing = (answer.get("engine_missing") or {}).get(engine) or ()
        yield from (Note("warning", f"Flags of {engine} don't say: {one}", "not_said") for one in missing)
        yield Code(_script(folder, engine, arguments), f"{engine}, on each unit")


def _script(folder: PlanFolder, engine: str, arguments: list[str]) -> str:
    """Return the script that the plan left; of a folder without it the arguments alone."""
    name = f"{engine}.sh"
    try:
        if name in {entry.name for entry in folder.path.iterdir()}:
            return read_text(folder.path / name)
    except (InputError, OSError):
        pass
    return shlex.join(arguments)


def obtained(folder: PlanFolder) -> Iterator[Block]:
    """Yield on what the answer rests, and the command that does it again."""
    answer = folder.answer
    looked = {key: len(answer[key]) for key in ("candidates", "pruned", "left_out")}
    combinations = sum(looked.values())
    winner = answer["winner"]
    seeds = f", the winner with {winner['confirmed']['seeds']} seeds" if winner is not None else ""
    yield Facts([
        ("Runs", words.effort(answer)),
        ("Combinations", f"{combinations:,}: {looked['candidates']:,} simulated{seeds}, {looked['pruned']:,} pruned by "
                         f"a bound, {looked['left_out']:,} left out"),
        ("simkv", str(answer.get("simkv_version", "of an unknown version"))),
    ])  # fmt: skip
    try:
        text = read_text(folder.path / SCENARIO)
    except InputError:
        yield Text(f"The folder has no copy of its scenario; what was simulated is in {STORE}.")
        return
    yield Code(_command(folder, text), "Does it again, or goes on where it stopped")


def _command(folder: PlanFolder, text: str) -> str:
    answer = folder.answer
    parts = ["simkv", "plan", str(folder.path / SCENARIO)]
    for assignment in settings_of(text):
        parts += ["--set", assignment]
    if answer["observed"] is not None:
        parts += ["--observed", str(answer["observed"]["file"])]
    return shlex.join([*parts, "--out", str(folder.path)])
