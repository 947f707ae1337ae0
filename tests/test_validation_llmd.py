"""The cases of serving behind llm-d's router: figures as published, set-ups that hold together, runs that are near."""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from simkv.results.result import RunResult
from simkv.scenario.resolve import Resolved, resolve_text
from simkv.simulation import run_scenario
from simkv.units import parse
from simkv.validation.asks.found import NothingError
from simkv.validation.asks.metrics import metric_of

FILE = files("simkv") / "data" / "validation" / "tiered_serving_llmd.yaml"
IN_THE_TABLE = (
    "llmd-qwen32b-30k-membound", "llmd-qwen32b-16k-5qps", "llmd-qwen32b-16k-20qps", "llmd-llama70b-50k-lustre",
    "llmd-fs-llama70b-50k",
)  # fmt: skip
"""Those of the table of published measurements; the others are further rows of the same sources."""
CASES: dict[str, Any] = {case["id"]: case for case in yaml.safe_load(FILE.read_text())["cases"]}
PUBLISHED = {
    "base_mean_ttft": "VRAM: mean TTFT",
    "base_p90_ttft": "VRAM: p90 TTFT",
    "base_mean_e2e": "VRAM: mean E2E",
    "base_tput": "VRAM: tokens/s",
    "hbm_mean_ttft": "VRAM: mean TTFT",
    "hbm_p90_ttft": "VRAM: p90 TTFT",
    "hbm_mean_e2e": "VRAM: mean E2E",
    "hbm_tput": "VRAM: tokens/s",
    "lustre_mean_ttft": "Lustre: mean TTFT",
    "lustre_mean_e2e": "Lustre: mean E2E",
    "lustre_tput": "Lustre: tokens/s",
    "fs_mean_ttft": "Lustre: mean TTFT",
    "fs_tput": "Lustre: tokens/s",
    "fs_itl": "Lustre: ITL",
}
STAGED = """
name: staged
model: {kv_bytes_per_token: 1KiB}
hardware: {step_time: 10ms, kv_tokens: 100000}
workload:
  kind: documents
  arrival: {process: stages, stages: [{rate: 5 req/s, duration: 2s}, {rate: 20 req/s, duration: 2s}], pause: 3s}
  documents: {count: 4, tokens: 100, questions: 5}
  prompt_tokens: 20
  output_tokens: 10
run: {warm_up: 0s, baselines: []}
"""


def resolved(case: dict[str, Any], settings: dict[str, Any]) -> Resolved:
    """Return the scenario of ``case`` with an observation's settings laid over it."""
    pairs = [f"{key}={yaml.safe_dump(value, default_flow_style=True, width=10**6)}" for key, value in settings.items()]
    return resolve_text(yaml.safe_dump(case["scenario"]), "case.yaml", [p.strip().removesuffix("\n...") for p in pairs])


def ways(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the different settings of a case's observations."""
    found: list[dict[str, Any]] = []
    for observation in case["observations"]:
        if observation.get("set", {}) not in found:
            found.append(observation.get("set", {}))
    return found


@cache
def staged() -> RunResult:
    return run_scenario(resolve_text(STAGED, "staged.yaml"))


@pytest.mark.parametrize("name", CASES)
def test_each_way_of_a_case_is_a_scenario_with_all_requests_in_its_tokens(name: str) -> None:
    case = CASES[name]
    for settings in ways(case):
        scenario = resolved(case, settings).scenario
        load = scenario.workload
        assert load.kind == "documents" and load.documents.questions
        assert scenario.replicas.count * scenario.replicas.tensor_parallel == 16, "16 GPUs in all of them"
        assert scenario.run.warm_up == 0 and not scenario.run.baselines, "load generators count every request"


@pytest.mark.shared
@pytest.mark.parametrize("name", IN_THE_TABLE)
def test_expected_figures_are_those_published(shared: Path, name: str) -> None:
    table = {row["id"]: row for row in yaml.safe_load((shared / "published" / "measurements.yaml").read_text())}
    ours = {o["label"]: o["expected"] for o in CASES[name]["observations"]}
    cpu = "CPU: " if "storage" in CASES[name]["kind"] else "CPU tier: "
    said = {"mean_ttft": "mean TTFT", "p90_ttft": "p90 TTFT", "mean_e2e": "mean E2E", "tput": "tokens/s", "itl": "ITL"}
    names = PUBLISHED | {f"cpu_{key}": cpu + text for key, text in said.items()}
    published = table[name]["observed"]
    assert set(ours) == {names[key] for key in published}
    for key, figure in published.items():
        number, unit = ours[names[key]].split()
        assert float(number) == figure["value"] and unit == figure["unit"], key


@cache
def memory_bound(way: int) -> RunResult:
    """Return a third of the memory-bound run, which is as good for what is held here."""
    case = CASES["llmd-qwen32b-30k-membound"]
    return run_scenario(resolved(case, {**ways(case)[way], "workload.requests": 900}))


@pytest.mark.parametrize("way", [0, 1])
def test_memory_bound_run_is_near_what_was_measured(way: int) -> None:
    case = CASES["llmd-qwen32b-30k-membound"]
    for observation in case["observations"]:
        if observation.get("set", {}) == ways(case)[way]:
            predicted = metric_of(memory_bound(way), observation["metric"])
            expected = observation["expected"].removesuffix(" token/s")
            expected_si = float(expected) if expected != observation["expected"] else parse(expected, "time")
            assert predicted == pytest.approx(expected_si, rel=0.35), observation["label"]


def test_tier_below_serves_what_vram_lost_and_nothing_else_changes() -> None:
    alone, tiered = (memory_bound(way).summary for way in (0, 1))
    assert alone["hit_rate"]["dram"] == 0 and tiered["hit_rate"]["dram"] > 0.2
    assert tiered["hit_rate"]["miss"] < 0.6 * alone["hit_rate"]["miss"]
    assert alone["prompt_tokens"] == tiered["prompt_tokens"] and alone["requests"] == tiered["requests"]
    assert tiered["e2e_s"]["mean"] < 0.95 * alone["e2e_s"]["mean"]


def test_each_prompt_of_a_case_is_asked_as_often() -> None:
    from simkv.scenario.build import workload_source

    source = workload_source(resolved(CASES["llmd-qwen32b-30k-membound"], {}), 0)
    waiting, asked = list(source.arrivals()), []
    while waiting:
        request = waiting.pop()
        asked.append(request.spans[:-1])
        waiting += source.after(request, request.arrival_s + 1, True)
    assert len(asked) == 2700 and len(set(asked)) == 45 * 10
    assert set(Counter(asked).values()) == {6}
    assert len({spans[0] for spans in asked}) == 45


def test_tokens_per_second_of_a_stage_are_over_its_own_time() -> None:
    result = staged()
    rows = result.data.requests
    second = rows["cls"] == result.data.class_names.index("stage-2")
    assert second.sum() == 40
    span_s = rows["finish_s"][second].max() - rows["arrival_s"][second].min()
    assert metric_of(result, "classes.stage-2.total_tokens_per_s") == pytest.approx(40 * 130 / span_s)
    assert metric_of(result, "classes.stage-2.ttft_s.mean") == result.summary["classes"]["stage-2"]["ttft_s"]["mean"]


def test_tokens_per_second_of_no_class_are_of_nothing() -> None:
    with pytest.raises(NothingError, match="stage-9"):
        metric_of(staged(), "classes.stage-9.total_tokens_per_s")
