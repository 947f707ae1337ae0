"""Tiers that are warm before a run begins: the run is the late part of a long one, and compared runs time the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simkv.errors import InputError, LawError
from simkv.scenario.build import system_config, workload_source
from simkv.scenario.explain import to_yaml
from simkv.scenario.resolve import resolve_text
from simkv.sim import untimed, warm
from simkv.sim.rundata import RunData, Warmed
from simkv.simulation import run_scenario, simulate
from simkv.workload.handover import Handover

SESSIONS = """
  kind: sessions
  arrival: {process: poisson, rate: 30 req/min}
  turns: {dist: geometric, mean: 5, max: 20}
  think_time: {dist: exponential, mean: 10s}
  system_prompt: {tokens: 500, variants: 3}
  prompt_tokens: {dist: lognormal, median: 300, sigma: 1.0, max: 4000}
  output_tokens: {dist: lognormal, median: 100, sigma: 0.6, max: 500}
"""
DOCUMENTS = """
  kind: documents
  arrival: {process: poisson, rate: 3 req/s}
  documents: {count: 100, tokens: 3000, popularity: 0.9}
  prompt_tokens: 200
  output_tokens: {dist: lognormal, median: 60, sigma: 0.6, max: 500}
"""
SCENARIO = """
name: warm
model: llama-3.1-8b
hardware: a100-sxm4-80gb
engine: {preset: vllm, kv_cache_tokens: 100000, max_model_len: 32Ki tokens}
workload:%s
tiers: {dram: {capacity: 20GiB}, ssd: {capacity: 0TB}}
run: {baselines: []}
"""
TIMED = 400
COLUMNS = ("id", "session", "turn", "arrival_s", "prompt_tokens", "output_tokens")


def run(*changes: str, workload: str = SESSIONS, audit: bool = True) -> RunData:
    """Run the scenario with ``changes``."""
    resolved = resolve_text(SCENARIO % workload, "s.yaml", changes)
    return simulate(replace(system_config(resolved), audit=audit), workload_source(resolved, 0))


def warmed(*changes: str, workload: str = SESSIONS, requests: int = TIMED) -> tuple[RunData, Warmed]:
    """Run ``requests`` of them after what ``auto`` lets pass."""
    data = run("run.warm_tiers=auto", f"workload.requests={requests}", *changes, workload=workload)
    assert data.warmed is not None
    return data, data.warmed


def shares(data: RunData, ids: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return the shares of the prompt tokens of requests ``ids`` hit in each tier, and by a cache without limit."""
    rows = np.isin(data.requests["id"], ids)
    tokens = [data.requests[f"{name}_tokens"][rows].sum() for name in ("hit_vram", "hit_dram", "hit_ssd", "ceiling")]
    return np.array(tokens) / data.requests["prompt_tokens"][rows].sum()


def ttft_s(data: RunData, ids: Sequence[int]) -> float:
    rows = np.isin(data.requests["id"], ids)
    return float((data.requests["first_token_s"] - data.requests["arrival_s"])[rows].mean())


# ---- the late part of a long cold run -----------------------------------------------------------


@pytest.mark.parametrize(
    ("workload", "changes"),
    [
        (SESSIONS, []),
        (SESSIONS, ["tiers.dram.capacity=16GiB", "tiers.ssd.capacity=20GB"]),
        (SESSIONS, ["offload.write=write_back", "tiers.ssd.capacity=60GB"]),
        (SESSIONS, ["offload.write=write_through_selective"]),
        (SESSIONS, ["offload.eviction.policy=s3fifo"]),
        (SESSIONS, ["engine.preset=sglang-hicache", "tiers.ssd.capacity=60GB"]),
        (SESSIONS, ["engine.preset=lmcache", "tiers.ssd.capacity=60GB"]),
        (SESSIONS, ["engine.preset=tensorrt-llm"]),
        (SESSIONS, ["engine.kv_cache_tokens=48000"]),
        (SESSIONS, ["replicas={count: 2, router: prefix_aware}", "workload.arrival.rate=50 req/min"]),
        (DOCUMENTS, ["tiers.dram.capacity=30GiB"]),
        (DOCUMENTS, ["tiers.dram.capacity=15GiB", "tiers.ssd.capacity=30GB"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value.split()[1],
)
def test_warmed_run_hits_what_the_same_requests_of_a_long_cold_run_hit(workload: str, changes: list[str]) -> None:
    data, passed = warmed(*changes, workload=workload)
    cold = run(f"workload.requests={passed.requests + TIMED + 300}", *changes, workload=workload, audit=False)
    ids = np.intersect1d(data.requests["id"], cold.requests["id"])
    assert passed.settled
    assert len(ids) > 0.95 * TIMED
    assert shares(data, ids) == pytest.approx(shares(cold, ids), abs=0.025)
    assert ttft_s(data, ids) == pytest.approx(ttft_s(cold, ids), rel=0.15)


def test_warmed_closed_loop_has_its_users_spread_over_their_cycle() -> None:
    users = "workload.arrival={process: closed_loop, users: 40, think_time: 5s}"
    data, _ = warmed(users)
    arrival_s = np.sort(data.requests["arrival_s"])
    cold = run(users, f"workload.requests={TIMED}", audit=False)
    assert np.sum(cold.requests["arrival_s"] == 0.0) == 40
    assert np.sum(arrival_s < 1.0) < 20
    assert 0.5 < np.sum(arrival_s < 20.0) / np.sum((arrival_s >= 20.0) & (arrival_s < 40.0)) < 2.0


def test_first_request_arrives_at_once_and_sessions_under_way_go_on() -> None:
    data, passed = warmed()
    turns = data.requests["turn"][np.argsort(data.requests["arrival_s"])]
    assert data.requests["arrival_s"].min() == pytest.approx(0.0, abs=2.0)
    assert np.mean(turns[:50] > 0) > 0.6
    assert passed.time_s > 0


# ---- what compared runs have in common ----------------------------------------------------------


def test_timed_requests_are_the_same_whatever_the_tiers_hold() -> None:
    def timed(*changes: str) -> dict[str, list[float]]:
        data, _ = warmed("workload.arrival.rate=20 req/min", *changes)
        order = np.argsort(data.requests["id"])
        return {name: data.requests[name][order].tolist() for name in COLUMNS}

    small, large = timed("tiers.dram.capacity=2GiB"), timed("tiers.dram.capacity=400GiB", "tiers.ssd.capacity=30TB")
    assert [small[name] for name in COLUMNS if name != "arrival_s"] == [
        large[name] for name in COLUMNS if name != "arrival_s"
    ]
    assert len(small["id"]) == TIMED
    assert small["arrival_s"] == pytest.approx(large["arrival_s"], abs=5.0)  # later turns follow their answers


def test_timed_documents_arrive_at_the_same_instants_whatever_the_tiers_hold() -> None:
    runs = [warmed(f"tiers.dram.capacity={size}", workload=DOCUMENTS)[0] for size in ("2GiB", "90GiB")]
    columns = [{name: np.sort(data.requests[name]).tolist() for name in COLUMNS} for data in runs]
    assert columns[0] == columns[1]


def test_warmed_run_is_the_same_each_time() -> None:
    first, second = (warmed("tiers.ssd.capacity=60GB")[0] for _ in range(2))
    for name, column in first.requests.items():
        assert column.tolist() == second.requests[name].tolist(), name
    assert first.warmed == second.warmed
    assert first.bytes == second.bytes


def test_baseline_is_warmed_alike() -> None:
    resolved = resolve_text(SCENARIO % SESSIONS, "s.yaml", [
        "run.warm_tiers=auto", f"workload.requests={TIMED}", "run.baselines=[no_offload]"
    ])  # fmt: skip
    result = run_scenario(resolved, audit=True)
    other = result.baselines["no_offload"]
    assert other.warmed is not None
    assert result.data.warmed is not None
    assert other.warmed.requests == result.data.warmed.requests
    assert np.sort(other.requests["id"]).tolist() == np.sort(result.data.requests["id"]).tolist()
    assert other.requests["hit_vram_tokens"].sum() > 0.5 * result.data.requests["hit_vram_tokens"].sum()
    assert other.warmed.written_blocks["dram"] == 0


# ---- nothing of it counts -----------------------------------------------------------------------


def test_what_passed_is_told_and_counts_nowhere_else() -> None:
    resolved = resolve_text(SCENARIO % SESSIONS, "s.yaml", ["run.warm_tiers=auto", f"workload.requests={TIMED}"])
    summary = json.loads(json.dumps(run_scenario(resolved, audit=True).summary))
    told, block_bytes = summary["warm_tiers"], system_config(resolved).engine.block_bytes
    capacity_bytes = system_config(resolved).dram.capacity_bytes
    assert summary["requests"] == {"arrived": TIMED, "finished": TIMED, "rejected": 0, "live": 0}
    assert told["settled"] is True
    assert told["written"]["ssd"] is None
    assert told["requests"] > TIMED
    assert told["written"]["dram"] * capacity_bytes // block_bytes > 0
    assert summary["bytes"]["d2h"] < 0.6 * told["written"]["dram"] * capacity_bytes
    assert summary["kv_usage"]["dram"]["mean"] > 0.99
    assert "cold_cache" not in [warning["code"] for warning in summary["warnings"]]


def test_a_tier_into_which_nothing_is_written_stays_empty() -> None:
    data, passed = warmed("offload.write=never")
    assert passed.written_blocks["dram"] == 0
    assert data.tier_mean_used["dram"] == 0.0


def test_zero_seconds_are_no_warming() -> None:
    bound = f"workload.requests={TIMED}"
    cold, none = run(bound), run(bound, "run.warm_tiers=0s")
    assert none.warmed is None
    for name, column in cold.requests.items():
        assert column.tolist() == none.requests[name].tolist(), name


def test_a_given_time_passes_and_a_tier_that_it_left_cold_is_told() -> None:
    resolved = resolve_text(
        SCENARIO % SESSIONS, "s.yaml", ["run.warm_tiers=60s", "workload.requests=100", "tiers.dram.capacity=300GiB"]
    )
    summary: dict[str, Any] = run_scenario(resolved, audit=True).summary
    assert summary["warm_tiers"]["time_s"] == 60.0
    assert summary["warm_tiers"]["settled"] is None
    assert "cold_cache" in [warning["code"] for warning in summary["warnings"]]


def test_run_duration_counts_from_where_the_timed_run_begins() -> None:
    data = run("run.warm_tiers=auto", "run.duration=60s")
    assert 0 < data.requests["arrival_s"].max() < 60.0
    assert data.arrived > 50


def test_vram_too_small_for_what_is_under_way_lets_the_first_end_early() -> None:
    data, passed = warmed("engine.kv_cache_tokens=33000", "workload.arrival.rate=90 req/min", requests=100)
    assert data.finished == 100
    assert passed.written_blocks["vram"] > 0


def test_active_offload_finds_in_dram_what_passed() -> None:
    changes = ("offload={residency: 0.5, write: write_through}", "workload.arrival.rate=4 req/min")
    data, passed = warmed(*changes, requests=20)
    hit = data.requests["hit_dram_tokens"].sum() / data.requests["prompt_tokens"].sum()
    assert passed.written_blocks["dram"] > 0
    assert hit > 0.6


# ---- recordings ---------------------------------------------------------------------------------


def _trace(tmp_path: Path, rows: int) -> str:
    def row(k: int) -> str:
        ids = [k % 40, 100 + k % 40, 1000 + k]
        return json.dumps({"timestamp": 500 * k, "input_length": 1400, "output_length": 20, "hash_ids": ids})

    path = tmp_path / "trace.jsonl"
    path.write_text("".join(row(k) + "\n" for k in range(rows)))
    return f"\n  {{kind: trace, path: {path}, format: mooncake}}"


def test_first_half_of_a_trace_passes_and_the_rest_is_timed(tmp_path: Path) -> None:
    workload = _trace(tmp_path, 400)
    data = run("run.warm_tiers=auto", workload=workload)
    cold = run(workload=workload)
    late = np.arange(200, 400)
    assert data.warmed is not None
    assert data.warmed.requests == 200
    assert np.sort(data.requests["id"]).tolist() == late.tolist()
    assert data.requests["arrival_s"].min() == 0.0
    assert shares(data, late) == pytest.approx(shares(cold, late), abs=0.02)


def test_recorded_sessions_under_way_go_on_where_they_were(tmp_path: Path) -> None:
    rows = [
        {"session_id": f"s{k}", "input_length": 300, "output_length": 30}
        | ({"delay": 4000} if turn else {"timestamp": 1000 * k})
        for k in range(60)
        for turn in range(4)
    ]
    path = tmp_path / "sessions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = run("run.warm_tiers=auto", workload=f"\n  {{kind: trace, path: {path}, format: aiperf}}")
    requests = data.requests
    assert data.warmed is not None
    assert data.warmed.requests == 120
    assert data.finished == 120
    under_way = requests["session"] < requests["session"][requests["turn"] == 0].min()
    assert len(set(requests["session"][under_way].tolist())) > 5
    assert (requests["hit_vram_tokens"] + requests["hit_dram_tokens"])[requests["turn"] > 0].min() > 250


def test_given_time_of_a_trace_passes(tmp_path: Path) -> None:
    data = run("run.warm_tiers=50s", workload=_trace(tmp_path, 400))
    assert np.sort(data.requests["id"]).tolist() == list(range(100, 400))
    assert data.requests["arrival_s"].min() == 0.0


def test_whole_trace_passing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r's\.yaml: run\.warm_tiers = "1000s": the whole workload, 400 requests'):
        run("run.warm_tiers=1000s", workload=_trace(tmp_path, 400))


# ---- the scenario -------------------------------------------------------------------------------

BATCH = """
  {kind: batch, size: 10, prompt_tokens: 100, output_tokens: 10}
"""


@pytest.mark.parametrize(
    ("workload", "changes", "told"),
    [
        (BATCH, [], "there is one batch, and nothing comes before it; give workload.interval, or leave it out"),
        (
            SESSIONS,
            ["workload.arrival={process: all_at_once}"],
            "everything arrives at once, so nothing comes before it; give arrivals a rate, or leave it out",
        ),
        (
            SESSIONS,
            ["offload={residency: 0.5, write: write_back}"],
            "under this active offload nothing of a sequence stays for others; write offload.write: write_through "
            "with engine.prefix_caching, or leave it out",
        ),
        (SESSIONS, ["run.warm_tiers=long"], 'not a time; write it like "20ms", or auto'),
    ],
)
def test_what_cant_be_warmed_is_refused(workload: str, changes: list[str], told: str) -> None:
    given = ["run.warm_tiers=auto", "workload.requests=50", *changes]
    with pytest.raises(InputError) as error:
        resolve_text(SCENARIO % workload, "s.yaml", given)
    assert any("run.warm_tiers" in line and told in line for line in str(error.value).splitlines())


def test_resolved_scenario_runs_again() -> None:
    changes = ["run.warm_tiers=auto", "workload.requests=50"]
    first = resolve_text(SCENARIO % SESSIONS, "s.yaml", changes)
    again = resolve_text(to_yaml(first), "resolved.yaml")
    assert again.scenario.run.warm_tiers == "auto"
    assert again.scenario_hash == first.scenario_hash
    assert run_scenario(again).summary == run_scenario(first).summary


# ---- mutants ------------------------------------------------------------------------------------


def test_mutant_counting_what_passed_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "_count_anew", lambda pool: None)
    with pytest.raises(LawError, match="L21"):
        warmed()


def test_mutant_one_that_passed_and_stays_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    end = untimed.UntimedReuse.end
    monkeypatch.setattr(untimed.UntimedReuse, "end", lambda self, live: live.request.id % 1000 and end(self, live))
    with pytest.raises(LawError, match="L1 "):
        warmed()


def test_mutant_passing_by_capacity_changes_what_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Handover.replay

    def replay(self: Handover, watcher: Any = None) -> None:
        capacity = watcher._system.tier_capacity_blocks()["dram"]
        self._passing = replace(self.passing, until_s=self.passing.until_s - capacity / 1e6)
        found(self, watcher)

    monkeypatch.setattr(Handover, "replay", replay)
    with pytest.raises(AssertionError):
        test_timed_documents_arrive_at_the_same_instants_whatever_the_tiers_hold()
