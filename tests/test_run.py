"""Whole scenarios through ``run_scenario`` and the command line: same bytes, same draws, interrupts, audits."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from simkv.results.result import RunResult
from simkv.results.write import summary_text, write_result
from simkv.scenario.build import system_config, workload_source
from simkv.scenario.resolve import Resolved, resolve, resolve_text
from simkv.sim.rundata import REQUEST_COLUMNS
from simkv.sim.system import System
from simkv.simulation import run_scenario

ROOT = Path(__file__).parents[1]
SCENARIOS = sorted((ROOT / "scenarios").glob("*.yaml"))

TOY = """
name: toy
model: {kv_bytes_per_token: 1MB}
hardware: {step_time: 20ms, kv_tokens: 4000}
engine: {block_tokens: 16, max_num_seqs: 8, max_num_batched_tokens: 512}
workload:
  kind: sessions
  requests: 150
  arrival: {process: poisson, rate: 1 req/s}
  turns: {dist: geometric, mean: 4, max: 10}
  think_time: {dist: exponential, mean: 5s}
  system_prompt: {tokens: 200, variants: 2}
  prompt_tokens: {dist: lognormal, median: 60, sigma: 0.8, max: 400}
  output_tokens: {dist: uniform, low: 1, high: 60}
  max_context: 2000
tiers:
  dram: {capacity: 20GB}
  ssd: {capacity: 50GB}
link: {h2d: 5 GB/s, d2h: 5 GB/s, duplex: 8 GB/s, latency: 10us}
offload: {write: write_through}
run: {warm_up: 0s}
"""


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener hears of every hundred events, not of every twenty thousand."""
    monkeypatch.setattr("simkv.sim.system.STRETCH_EVENTS", 100)


def toy(*assignments: str) -> Resolved:
    return resolve_text(TOY, assignments=assignments)


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def python(*args: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        timeout=120,
    )


# ---- the same bytes


def test_another_seed_gives_another_run() -> None:
    one, other = run_scenario(toy()), run_scenario(toy(), seed=1)
    assert summary_text(one.summary) != summary_text(other.summary)
    assert one.summary["seed"] == 0 and other.summary["seed"] == 1
    assert one.hash == other.hash


def test_audit_changes_nothing_and_is_on_in_tests() -> None:
    assert system_config(toy()).audited
    assert summary_text(run_scenario(toy(), audit=False).summary) == summary_text(run_scenario(toy()).summary)


def test_listener_changes_nothing_and_hears_of_all_parts(talkative: None) -> None:
    heard: list[float] = []
    listened = run_scenario(toy(), progress=heard.append)
    assert summary_text(listened.summary) == summary_text(run_scenario(toy()).summary)
    assert len(heard) > 4 and heard == sorted(heard)
    assert heard[0] == 0 and 0.5 < heard[-1] <= 1


def test_single_steps_give_the_same_requests() -> None:
    macro, single = run_scenario(toy()), run_scenario(toy(), step_exact=True)
    exact = ("scheduled_s", "first_token_s", "finish_s", "hit_vram_tokens", "hit_dram_tokens", "hit_ssd_tokens")
    for name in REQUEST_COLUMNS:
        a, b = macro.data.requests[name], single.data.requests[name]
        if name.endswith("_time_s"):
            np.testing.assert_allclose(a, b, atol=1e-9, err_msg=name)
        else:
            np.testing.assert_array_equal(a, b, name)
    assert set(exact) <= set(REQUEST_COLUMNS)
    assert single.data.macro_steps == single.data.steps_total > macro.data.macro_steps
    assert macro.data.steps_total == single.data.steps_total


# ---- baselines


def test_baseline_shares_its_random_numbers() -> None:
    """Lengths and turns are the same; so are the arrivals that don't depend on the run."""
    result = run_scenario(toy())
    own, other = result.data.requests, result.baselines["no_offload"].requests
    a, b = np.argsort(own["id"]), np.argsort(other["id"])
    keys = {tuple(row) for row in zip(own["session"][a], own["turn"][a], own["prompt_tokens"][a], strict=True)}
    assert keys & {
        tuple(row) for row in zip(other["session"][b], other["turn"][b], other["prompt_tokens"][b], strict=True)
    }
    first = {s: t for s, n, t in zip(own["session"], own["turn"], own["arrival_s"], strict=True) if n == 0}
    firsts = {s: t for s, n, t in zip(other["session"], other["turn"], other["arrival_s"], strict=True) if n == 0}
    assert len(first.keys() & firsts.keys()) > 20
    assert all(first[s] == firsts[s] for s in first.keys() & firsts.keys())


def test_baseline_of_open_arrivals_has_the_same_requests() -> None:
    workload = (
        TOY[: TOY.index("workload:")]
        + TOY[TOY.index("tiers:") :]
        + (
            "workload: {kind: documents, requests: 120, arrival: {process: poisson, rate: 2 req/s}, "
            "documents: {count: 20, tokens: 400}, prompt_tokens: 40, output_tokens: 30}\n"
        )
    )
    result = run_scenario(resolve_text(workload))
    own, other = result.data.requests, result.baselines["no_offload"].requests
    a, b = np.argsort(own["id"]), np.argsort(other["id"])
    for name in ("id", "arrival_s", "prompt_tokens", "output_tokens", "ceiling_tokens", "session"):
        np.testing.assert_array_equal(own[name][a], other[name][b], name)
    assert own["hit_dram_tokens"].sum() > 0 == other["hit_dram_tokens"].sum()


def test_baseline_is_left_out_where_there_is_nothing_to_leave_off() -> None:
    assert run_scenario(toy("tiers.dram.capacity=0GiB", "tiers.ssd.capacity=0GiB")).baselines == {}
    assert run_scenario(toy("run.baselines=[]")).baselines == {}


def test_no_offload_is_what_a_scenario_without_tiers_gives() -> None:
    without = run_scenario(toy("tiers.dram.capacity=0GiB", "tiers.ssd.capacity=0GiB", "offload.write=never"))
    baseline = run_scenario(toy()).baselines["no_offload"]
    for name in REQUEST_COLUMNS:
        np.testing.assert_array_equal(without.data.requests[name], baseline.requests[name], name)


# ---- interrupts


def interrupted_at(share: float) -> RunResult:
    def stop(done: float) -> None:
        if done >= share:
            raise KeyboardInterrupt

    return run_scenario(toy(), progress=stop)


def test_interrupt_keeps_what_is_finished(talkative: None, tmp_path: Path) -> None:
    result = interrupted_at(0.2)
    data = result.data
    assert data.interrupted and 0 < data.finished < 150
    assert data.requests["id"].size == data.finished + data.rejected
    assert data.arrived == data.finished + data.rejected + data.live
    assert result.baselines == {}
    write_result(result, tmp_path / "out")
    assert "summary.json" in digests(tmp_path / "out")


def test_interrupt_in_the_baseline_is_told(talkative: None) -> None:
    result = interrupted_at(0.6)
    assert result.data.finished == 150 and result.baselines == {}
    assert result.data.interrupted  # so the command exits with 130
    assert "interrupted" in [warning["code"] for warning in result.summary["warnings"]]


STOPS_ITSELF = """
import os, signal, sys
from simkv.cli import main
from simkv.sim.system import System

def drain(self):
    if self.finished >= 50:
        os.kill(os.getpid(), signal.SIGINT)
    return self.clock.drain(100)

System._drain = drain
sys.argv = ["simkv", "run", "toy.yaml", "--out", "out"]
main()
"""


def test_interrupted_command_writes_and_exits_130(tmp_path: Path) -> None:
    (tmp_path / "toy.yaml").write_text(TOY, "utf-8")
    done = python("-c", STOPS_ITSELF, cwd=tmp_path)
    assert done.returncode == 130, done.stderr
    assert "interrupted: what was finished is in out" in done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert 50 <= summary["requests"]["finished"] < 150 and summary["requests"]["live"] > 0
    assert (tmp_path / "out" / "requests.parquet").is_file()


# ---- every scenario under audit


TRACES = {
    "mooncake-conversation": "mooncake/conversation_trace.jsonl",
    "vllm-rtx4090-llama-3.1-8b": "vllm_measured/sharegpt-llama-3.1-8b-300.jsonl",
}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_shipped_scenario_shortened_keeps_every_law(path: Path, request: pytest.FixtureRequest) -> None:
    workload = resolve(str(path)).scenario.workload
    requests, size = min(150, getattr(workload, "requests", None) or 150), getattr(workload, "size", None)
    if size is not None:
        requests, assignments = size, []
    elif path.stem in TRACES:
        trace = request.getfixturevalue("shared") / "traces" / TRACES[path.stem]
        assignments = [f"workload.path={trace}", "workload.limit=150"]
    elif path.stem == "agent-sessions":
        assignments = ["workload.limit=2"]
        requests = sum(_requests_of(file) for file in sorted((path.parent / path.stem).glob("*.json"))[:2])
    else:
        assignments = [f"workload.requests={requests}"]
    result = run_scenario(resolve(str(path), assignments), audit=True)
    assert result.data.arrived == result.data.finished + result.data.rejected == requests
    for baseline in result.baselines.values():
        assert baseline.finished + baseline.rejected == requests


def _requests_of(session: Path) -> int:
    """Count the requests of a recorded agent session, those of its subagents included."""
    todo, count = json.loads(session.read_text("utf-8"))["requests"], 0
    while todo:
        entry = todo.pop()
        todo += entry.get("requests", [])
        count += "in" in entry
    return count


def test_baseline_closed_loop_is_over_the_same_requests() -> None:
    """Behind slower answers requests arrive later, but the columns that stand side by side are of the same ones."""
    path = next(path for path in SCENARIOS if path.stem == "agent-sessions")
    summary = run_scenario(resolve(str(path), ["run.warm_up=200s"])).summary
    plain = summary["baselines"]["no_offload"]
    for name in ("ttft_s", "e2e_s", "queue_s"):
        assert summary[name]["mean"] - plain["difference"][name]["mean"] == pytest.approx(plain[name]["mean"], rel=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        "engine.load=overlap",
        "engine.scheduling=priority",
        "engine.store_outputs=true",
        "engine.prefix_caching=false",
        "offload.write=write_back",
        "offload.write=write_through_selective",
        "offload.prefetch.policy=queue",
        "offload.eviction.policy=lfu",
        "tiers.relation=exclusive",
        "tiers.dram.shared=false",
        "replicas.count=3",
        "tiers.dram.bandwidth=3 GB/s",
        "link.duplex=0 GB/s",
        "link.h2d=0 GB/s",
        "tiers.ssd.read=0 GB/s",
        "tiers.dram.bandwidth=0 GB/s",
    ],
)
def test_toy_keeps_every_law_whatever_the_knob(change: str) -> None:
    also = ("offload.write=write_back",) if "exclusive" in change else ()
    result = run_scenario(toy(change, *also, "workload.requests=80", "hardware.kv_tokens=2500"), audit=True)
    assert result.data.finished == 80


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ("link.h2d=200 MB/s", "finish_s"),
        ("link.latency=20ms", "finish_s"),
        ("offload.write=never", "hit_dram_tokens"),
        ("engine.load=overlap", "load_dram_time_s"),
        ("tiers.dram.bandwidth=1 GB/s", "finish_s"),
        ("offload.eviction.policy=lfu", "hit_vram_tokens"),
        ("engine.max_num_seqs=2", "finish_s"),
        ("engine.max_num_batched_tokens=64", "first_token_s"),
        ("engine.prefix_caching=false", "hit_vram_tokens"),
    ],
)
def test_option_has_an_effect(change: str, column: str) -> None:
    """The trap: an accepted option that does nothing."""
    small = ("hardware.kv_tokens=2500", "run.baselines=[]")
    plain, changed = run_scenario(toy(*small)), run_scenario(toy(*small, change))
    assert plain.data.requests[column].tolist() != changed.data.requests[column].tolist()


def test_closed_form_of_ttft_pays_for_what_it_loads() -> None:
    """A step of 20 ms, and each token that lay below VRAM 1 MB at 5 GB/s, 10 us a block."""
    result = run_scenario(toy("tiers.dram.capacity=600GB", "hardware.kv_tokens=2500", "run.baselines=[]"))
    dram, ssd = (result.data.requests[f"hit_{tier}_tokens"].mean() for tier in ("dram", "ssd"))
    assert dram > 10 and ssd == 0
    expected = pytest.approx(0.02 + dram * 1e6 / 5e9 + dram / 16 * 10e-6)
    assert result.summary["closed_form"]["ttft_s"] == expected


def test_rows_left_out_of_a_trace_are_told(tmp_path: Path) -> None:
    """The trap: a replay that loses requests while the mean looks the same."""
    trace = tmp_path / "trace.jsonl"
    rows = [(0, 5), (1, 0), (2, 5), (3, 0)]
    trace.write_text("".join(f'{{"arrival_s": {at}, "prompt_tokens": 9, "output_tokens": {n}}}\n' for at, n in rows))
    result = run_scenario(toy(f"workload={{kind: trace, path: {trace}}}"))
    (warning,) = (w for w in result.summary["warnings"] if w["code"] == "trace_rows")
    assert warning["message"].startswith("In the trace, 2 rows dropped: ") and "first on line 2" in warning["message"]
    assert result.summary["requests"]["finished"] == 2


def test_ssd_without_dram_is_told_to_do_nothing() -> None:
    for change, key in (("tiers.dram.capacity=0GiB", "capacity"), ("tiers.dram.bandwidth=0 GB/s", "bandwidth")):
        (warning,) = (w for w in run_scenario(toy(change)).summary["warnings"] if w["code"] == "unreachable")
        assert warning["message"].endswith(f"tiers.dram.{key} is 0")


@pytest.mark.parametrize(
    ("sets", "told"),
    [
        (("tiers.dram.capacity=10B",), "tiers.dram does nothing: a block takes "),
        (
            ("offload.unit_tokens=4096", "tiers.dram.capacity=1MiB"),
            "tiers.dram does nothing: a unit (offload.unit_tokens) takes ",
        ),
        (("tiers.ssd.capacity=10B",), "tiers.ssd does nothing: a block takes "),
    ],
)
def test_tier_without_room_for_a_block_is_told_to_do_nothing(sets: tuple[str, ...], told: str) -> None:
    (warning,) = (w for w in run_scenario(toy(*sets)).summary["warnings"] if w["code"] == "too_small")
    assert warning["message"].startswith(told)
    assert "too_small" not in [w["code"] for w in run_scenario(toy()).summary["warnings"]]


def test_unbounded_dram_has_no_price_where_one_is_given_and_costs_nothing_where_not() -> None:
    cost = "cost={gpu_hour: 2.0, dram_gib_hour: 0.003, currency: USD}"
    assert run_scenario(toy(cost, "tiers.dram.capacity=infGiB")).summary["cost_per_million_output_tokens"] is None
    bare = "cost={gpu_hour: 2.0, currency: USD}"
    assert run_scenario(toy(bare, "tiers.dram.capacity=infGiB")).summary["cost_per_million_output_tokens"] > 0


def test_memory_of_the_ceiling_is_that_of_live_sessions() -> None:
    resolved = toy("workload.requests=600")
    system = System(system_config(resolved), workload_source(resolved, 0))
    data = system.run()
    sessions = len(set(data.requests["session"].tolist()))
    assert sessions > 50
    assert len(system.ceiling) < sessions / 4
    assert data.requests["ceiling_tokens"].sum() > 0
