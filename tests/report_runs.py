"""Result folders of runs for tests of reports: shipped scenarios made small, and runs that went another way."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from simkv.report.document import Block, Figure, Section
from simkv.report.folders import RunFolder, read_folder
from simkv.report.parts import walk
from simkv.results.result import RunResult
from simkv.results.summary import summarize
from simkv.results.write import write_result
from simkv.scenario.explain import to_yaml
from simkv.scenario.resolve import resolve
from simkv.simulation import run_scenario
from tests.results_factory import make_context, make_run

SCENARIOS = Path(__file__).parents[1] / "scenarios"
FEW = {
    "chatbot": ("workload.requests=2000",),
    "article-toy": (),
    "article-toy-corrected": (),
    "article-maas": ("workload.requests=12",),
    "article-support-bot": ("workload.requests=8",),
    "calibrated-small": ("workload.requests=80",),
    "flexgen-opt-30b-t4": (),
    "long-context-active": ("workload.size=4", "workload.output_tokens=48"),
    "qos-two-classes": (),
    "agent-sessions": (),
}
"""Shipped scenarios that run in a moment, with what is set for that."""


@cache
def shipped(name: str, *extra: str) -> RunFolder:
    """Return the folder of a shipped scenario's run, made small."""
    result = run_scenario(resolve(str(SCENARIOS / f"{name}.yaml"), [*FEW[name], *extra]))
    return folder_of(result)


_PLACE = TemporaryDirectory(prefix="simkv-report-")
"""Gone when the tests have ended."""


def folder_of(result: RunResult) -> RunFolder:
    """Return ``result`` written and read back."""
    place = Path(mkdtemp(dir=_PLACE.name)) / "run"
    write_result(result, place)
    folder = read_folder(place)
    assert isinstance(folder, RunFolder)
    return folder


def made_up(n: int = 400, context: dict[str, Any] | None = None, plain: bool = True, **changes: Any) -> RunFolder:
    """Return the folder of a run by :func:`tests.results_factory.make_run`, with its baseline if ``plain``."""
    ctx = make_context(**context or {})
    data = make_run(n, **changes)
    baselines = {"no_offload": make_run(n, **{**changes, "dram_hit": 0.0})} if plain else {}
    summary = summarize(data, ctx, baselines)
    return folder_of(RunResult(summary, data, _resolved(), ctx.scenario, "0" * 64, baselines))


@cache
def _resolved() -> str:
    return to_yaml(resolve(str(SCENARIOS / "chatbot.yaml")))


def changed(folder: RunFolder, **values: Any) -> RunFolder:
    """Return ``folder`` with some of its summary replaced."""
    return RunFolder(folder.path, copy.deepcopy({**folder.summary, **values}))


def all_blocks(sections: Sequence[Section]) -> list[Block]:
    """Return every block, those inside details too."""
    return [block for section in sections for block in walk(section.blocks)]


def figures(sections: Sequence[Section]) -> dict[str, Figure]:
    """Return the figures by name."""
    return {block.name: block for block in all_blocks(sections) if isinstance(block, Figure)}
