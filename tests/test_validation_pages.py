"""The pages on validation: examples that run, tables that are the code's, results that are of the cases as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from simkv.validation.groups import BY_NAME
from simkv.validation.judge import tally
from simkv.validation.read import PAGE, own_cases
from simkv.validation.reference import BLOCKS, filled
from simkv.validation.schema import Observation
from simkv.validation.words import figure
from tests.validation_factory import case, case_file, studied

ROOT = Path(__file__).parents[1]
FORMAT = (ROOT / PAGE).read_text("utf-8")
RESULTS = (ROOT / "docs" / "validation.md").read_text("utf-8")
EXAMPLES = re.findall(r"```yaml\n(simkv_cases:.*?)```", FORMAT, re.DOTALL)
TRACE = [[1, 2, 3], [1, 2, 4], [1, 2, 3]]
"""Blocks of the example's trace."""


def case_of(example: str) -> str:
    found = re.search(r"- id: (\S+)", example)
    return found[1] if found else ""


@pytest.mark.parametrize("example", EXAMPLES, ids=case_of)
def test_example_runs_and_is_near_what_it_expects(example: str, tmp_path: Path) -> None:
    lines = [
        {"timestamp": 1000 * k, "input_length": 1500, "output_length": 1, "hash_ids": blocks}
        for k, blocks in enumerate(TRACE)
    ]
    (tmp_path / "chat-trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    path = tmp_path / "cases.yaml"
    path.write_text(example, "utf-8")
    rows = studied(path, tmp_path)
    assert {row.status for row in rows} == {"judged"}
    assert (tally(rows).largest or 0) < 0.3


def test_every_way_to_ask_has_an_example() -> None:
    asked = {
        name for name in ("scenario", "step", "calc", "hits", "queue") if any(f"    {name}:" in e for e in EXAMPLES)
    }
    assert len(asked) == 5


def test_tables_of_the_format_are_those_of_the_code() -> None:
    assert filled(FORMAT) == FORMAT, f"run: python -m simkv.validation.reference {PAGE}"
    assert all(f"<!-- from code: {name} -->" in FORMAT for name in BLOCKS)


def told_of(scenario: dict[str, Any], folder: Path, **asked: Any) -> list[float | None]:
    """Return what is predicted of a scenario: the observations' metrics and settings are ``asked``, label by label."""
    seen = [{"expected": 0.5, "label": label, **how} for label, how in asked.items()]
    one = case(group="hit_curves", scenario=scenario, observations=seen)
    return [row.predicted for row in studied(case_file(folder, one))]


def of_engine(preset: str, workload: dict[str, Any], **engine: Any) -> dict[str, Any]:
    """Return a scenario of two prompts or more of 4000 tokens, with tiers."""
    return {
        "name": "head", "model": "llama-3.1-8b", "hardware": "h100-sxm5-80gb", "tiers": {"dram": {"capacity": "8GiB"}},
        "engine": {"preset": preset, "max_model_len": 4608, **engine}, "run": {"warm_up": "0s"},
        "workload": {"prompt_tokens": 256, "output_tokens": 16, **workload},
    }  # fmt: skip


HEAD = {
    "kind": "plain", "requests": 2, "system_prompt": {"tokens": 4000},
    "arrival": {"process": "closed_loop", "users": 1},
}  # fmt: skip
CHATS = {
    "kind": "sessions", "requests": 4, "turns": 2, "first_prompt_tokens": 4000,
    "arrival": {"process": "ready_queue", "users": 2, "max_parallel": 1, "round_barrier": True, "order": "fifo"},
}  # fmt: skip


@pytest.mark.parametrize(("preset", "share"), [("vllm", 0.9), ("lmcache", 0.9), ("sglang-hicache", 0.0)])
def test_cached_head_is_in_cpu_memory_without_prefix_caching_but_for_sglang(
    preset: str, share: float, tmp_path: Path
) -> None:
    asked = {"dram": {"metric": "request.1.hit_rate_dram"}, "vram": {"metric": "request.1.hit_rate_vram"}}
    dram, vram = told_of(of_engine(preset, HEAD, prefix_caching=False), tmp_path, **asked)
    assert dram == pytest.approx(share, abs=0.05) and vram == 0


def test_cached_head_of_sglang_is_in_cpu_memory_after_another_chat(tmp_path: Path) -> None:
    scenario = of_engine("sglang-hicache", CHATS, kv_cache_tokens=4608)
    [dram] = told_of(scenario, tmp_path, dram={"metric": "turn.1.hit_rate_dram"})
    assert dram is not None and dram > 0.9


def test_null_in_set_takes_a_key_out(tmp_path: Path) -> None:
    stored = {"kind": "plain", "requests": 4, "arrival": {"process": "closed_loop", "users": 1}, "stored": 0.5}
    scenario = of_engine("vllm", stored | {"prompt_tokens": 2000}, prefix_caching=False)
    hits = {"metric": "hit_rate.miss"}
    half, none = told_of(scenario, tmp_path, half=hits, none=hits | {"set": {"workload.stored": None}})
    assert half == pytest.approx(0.5, abs=0.02) and none == 1


def expected_in(seen: Observation) -> str:
    """Return how the page has an expected figure; empty where theory says it when it is asked."""
    if seen.figure is None:
        return ""
    row = {"unit": seen.figure.unit or None, "metric": seen.metric, "label": seen.name}
    return figure(row, seen.figure.value)


def test_results_are_of_the_cases_that_come_with_simkv() -> None:
    """Every observation is a row of its group, in order, with what is expected of it as the case says it now."""
    for name, group in BY_NAME.items():
        section = re.search(rf"^## [^\n]*\(`{name}`\)\n(.*?)(?=^## |\Z)", RESULTS, re.DOTALL | re.MULTILINE)
        rows = re.findall(r"^\| `([^`]+)` \| (.*?) \| (.*?) \| (.*?) \| ", section[1] if section else "", re.MULTILINE)
        wanted = [
            (read.case.id, seen.name.replace("|", "\\|"), expected_in(seen))
            for read in own_cases()
            if read.case.group == name
            for seen in read.case.observations
        ]
        found = [(case, what, expected) for case, what, _, expected in rows]
        assert len(found) == len(wanted), f"run: make validation-page ({group.title})"
        for is_there, should in zip(found, wanted, strict=True):
            assert is_there[:2] == should[:2] and should[2] in ("", is_there[2]), "run: make validation-page"
