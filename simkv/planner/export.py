"""The folder of a plan: whose it is, and its files: the answer, a table of candidates, pictures, the engine's flags."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simkv.files import replace_files
from simkv.jobs.store import Store
from simkv.planner.answer import PlanResult
from simkv.plots.plan import cost_against_latency, sensitivity_bars
from simkv.plots.style import FORMATS
from simkv.sweeps.owned import check_owned

ANSWER, CANDIDATES, STORE, SCENARIO = "plan.json", "candidates.csv", "plan.sqlite", "scenario.yaml"
_META = "plan"


def check_folder(folder: Path, scenario: str) -> None:
    """Raise InputError where a plan of ``scenario`` can't be written to ``folder``, or go on there."""
    check_owned(folder, STORE, _META, scenario)


def claim(store: Store, scenario: str) -> None:
    """Say in the folder whose plan it is."""
    store.put(_META, {"scenario": scenario})


def write(result: PlanResult, folder: Path) -> list[str]:
    """Write everything, each file whole or not at all; return the names."""
    text = json.dumps(result.answer, indent=2, ensure_ascii=False) + "\n"
    files = {ANSWER: text.encode(), CANDIDATES: candidates_csv(result.answer).encode()}
    for emitted in result.emitted.values():
        files[f"{emitted.engine}.sh"] = emitted.text.encode()
        files |= {name: content.encode() for name, content in emitted.files.items()}
    if result.feasible:
        files |= dict(_pictures(result.answer))
    replace_files(folder, files)
    return list(files)


def _pictures(answer: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    drawn = {"pareto": (cost_against_latency, finding(answer)), "sensitivity": (sensitivity_bars, moving(answer))}
    for name, (draw, title) in drawn.items():
        for form in FORMATS:
            buffer = io.BytesIO()
            draw(dict(answer), title, buffer, form)
            yield f"{name}.{form}", buffer.getvalue()


def finding(answer: Mapping[str, Any]) -> str:
    """Return what the picture of candidates shows."""
    winner = answer["winner"]
    others = len(answer["candidates"]) - 1
    return f"{winner['units']} x {winner['name']} is best of {others + 1} that were simulated"


def moving(answer: Mapping[str, Any]) -> str:
    """Return what the picture of sensitivities shows."""
    felt = [name for name, one in answer["sensitivity"].items() if one.get("measurable")]
    if not felt:
        return "10 % more of any one resource buys nothing that can be measured"
    return f"Of 10 % more of one resource, {felt[0].replace('_', ' ')} buys most"


def candidates_csv(answer: Mapping[str, Any]) -> str:
    """Return the candidates as CSV, a row each, what was pruned and left out behind them with the reason."""
    axes = list(dict.fromkeys(name for row in _all(answer) for name in row["values"]))
    targets = list(answer["slo"]["limits"])
    head = ["name", *axes, "state", "units", "gpus", "cost_per_hour", "cost_per_million_output_tokens",
            "load_of_a_unit", "at_most", "binds", *targets, "bottleneck", "reason"]  # fmt: skip
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in answer["candidates"]:
        carries = row["carries"]
        writer.writerow([
            row["name"], *(row["values"].get(axis) for axis in axes), _state(row),
            row["units"], row["gpus"], row["cost_per_hour"], row["cost_per_million_output_tokens"], carries["load"],
            carries["at_most"], carries["binds"], *(row["latency"].get(key) for key in targets),
            carries["bottleneck"], None,
        ])  # fmt: skip
    for state in ("pruned", "left_out"):
        for row in answer[state]:
            blanks = [None] * (len(targets) + 8)
            writer.writerow([row["name"], *(row["values"].get(axis) for axis in axes), state, *blanks, row["reason"]])
    return text.getvalue()


def _state(row: Mapping[str, Any]) -> str:
    if row["confirmed"] is None:
        return "simulated"
    return "confirmed" if row["confirmed"]["holds"] else "refuted"


def _all(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*answer["candidates"], *answer["pruned"], *answer["left_out"]]
