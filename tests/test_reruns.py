"""Baselines that scenarios have in common: simulated once, and the same to the last byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simkv.reruns import Reruns
from simkv.results.write import summary_text
from simkv.scenario.resolve import resolve, resolve_text
from simkv.simulation import run_scenario

ACTIVE = """\
name: short-active
model: llama-3.1-8b
hardware: h100-sxm5-80gb
engine: {max_num_seqs: 4, prefix_caching: false, prefill: vram}
workload: {kind: batch, size: 2, prompt_tokens: {dist: uniform, low: 8192, high: 16384}, output_tokens: 8}
tiers: {dram: {capacity: 64GiB}}
link: {latency: 0us}
offload:
  residency: 0.3
  access: {pattern: topk, budget: 3072, recent: 256, sinks: 64, skew: 1.0, stickiness: 0.5}
  eviction: {policy: score, lambda: 0.7}
  prefetch: {policy: fixed_overlap, beta: 0.5}
run: {warm_up: 0s}
"""
CHAT = """\
name: short-chat
model: llama-3.1-8b
hardware: h100-sxm5-80gb
workload:
  kind: sessions
  requests: 40
  arrival: {process: poisson, rate: 2 req/s}
  turns: {dist: uniform, low: 2, high: 4}
  prompt_tokens: 800
  output_tokens: 40
tiers: {dram: {capacity: 40GiB}}
"""


@pytest.mark.parametrize(
    ("text", "settings", "hits"),
    [
        (ACTIVE, ["offload.prefetch.beta=0", "offload.prefetch.beta=0.5", "offload.residency=0.5"], 3),
        (ACTIVE, ["offload.eviction.lambda=0.5", "run.seed=1", "workload.output_tokens=7"], 0),
        (CHAT, ["tiers.dram.capacity=10GiB", "tiers.dram.capacity=80GiB", "tiers.ssd.capacity=1TB"], 2),
    ],
    ids=["active", "what-the-baseline-keeps", "chat"],
)
def test_summaries_with_remembered_baselines_are_the_same_bytes(text: str, settings: list[str], hits: int) -> None:
    reruns = Reruns()
    for setting in settings:
        resolved = resolve_text(text, "short.yaml", [setting])
        alone, together = run_scenario(resolved), run_scenario(resolved, reruns=reruns)
        assert alone.baselines
        assert summary_text(together.summary) == summary_text(alone.summary)
    assert reruns.hits == hits


def test_baseline_of_runs_that_took_other_steps_is_simulated_once() -> None:
    reruns = Reruns()
    rates = []
    for capacity in ("1GiB", "40GiB"):
        given = [f"tiers.dram.capacity={capacity}", "engine.num_gpu_blocks=600", "workload.requests=120"]
        rates.append(run_scenario(resolve_text(CHAT, assignments=given), reruns=reruns).summary["hit_rate"])
    assert rates[0] != rates[1]
    assert reruns.hits == 1


def test_reruns_of_a_changed_trace_are_not_remembered(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    (tmp_path / "s.yaml").write_text(
        "name: logged\nmodel: llama-3.1-8b\nhardware: h100-sxm5-80gb\ntiers: {dram: {capacity: 10GiB}}\n"
        "workload: {kind: trace, path: t.csv}\n"
    )
    reruns, found = Reruns(), []
    for tokens in (100, 2000):
        trace.write_text("arrival,prompt_tokens,output_tokens\n" + f"0,{tokens},10\n1,{tokens},10\n")
        found.append(run_scenario(resolve(str(tmp_path / "s.yaml")), reruns=reruns).summary)
    assert reruns.hits == 0
    assert found[0]["baselines"] != found[1]["baselines"]


def test_reruns_of_a_changed_access_log_are_not_remembered(tmp_path: Path) -> None:
    log = tmp_path / "reads.jsonl"
    text = ACTIVE.replace("{dist: uniform, low: 8192, high: 16384}", "64").replace("size: 2", "size: 1")
    access = f"offload.access={{pattern: replay, path: {log}}}"
    given = [access, "offload.prefetch.beta=0.5", "offload.residency=0.5"]
    reruns = Reruns()
    for blocks in ([0, 3], [0, 1, 2, 3]):
        lines = [json.dumps({"step": step, "sequence": 0, "blocks": blocks}) for step in range(8)]
        log.write_text("\n".join(lines) + "\n")
        resolved = resolve_text(text, assignments=given)
        alone, together = run_scenario(resolved), run_scenario(resolved, reruns=reruns)
        assert alone.baselines
        assert summary_text(together.summary) == summary_text(alone.summary)
    assert reruns.hits == 0


def test_reruns_without_room_remember_nothing() -> None:
    reruns = Reruns(most_bytes=10)
    resolved = resolve_text(CHAT)
    for _ in range(2):
        run_scenario(resolved, reruns=reruns)
    assert reruns.hits == 0


def test_reruns_are_shared_through_a_folder_and_torn_files_are_not_taken(tmp_path: Path) -> None:
    resolved = resolve_text(CHAT)
    alone = summary_text(run_scenario(resolved).summary)
    folder = tmp_path / "shared"
    first, second, third = (Reruns(folder) for _ in range(3))
    for reruns, hits in ((first, 0), (second, 1)):
        assert summary_text(run_scenario(resolved, reruns=reruns).summary) == alone
        assert reruns.hits == hits
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    for torn in (whole[:-100], whole.replace(b"RunData", b"RunDate"), b"", b"\x00" * 100, b"cno.such\nmodule\n."):
        file.write_bytes(torn)
        assert summary_text(run_scenario(resolved, reruns=third).summary) == alone
        third = Reruns(folder)
    assert third.hits == 0


def test_reruns_in_a_folder_without_room_drop_the_oldest(tmp_path: Path) -> None:
    run_scenario(resolve_text(CHAT), reruns=Reruns(tmp_path))
    (file,) = tmp_path.iterdir()
    most = int(1.5 * file.stat().st_size)
    run_scenario(resolve_text(CHAT, assignments=["run.seed=1"]), reruns=Reruns(tmp_path, most_bytes=most))
    (left,) = tmp_path.iterdir()
    assert left.name != file.name


def test_mutant_log_of_reads_by_its_name_alone_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simkv.scenario.resolve.content_digest", lambda ref: ref.path)
    with pytest.raises(AssertionError):
        test_reruns_of_a_changed_access_log_are_not_remembered(tmp_path)
