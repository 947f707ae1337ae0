"""Law L9: the same scenario, seed and version give the same bytes, however and wherever a run is started."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.cli import app
from simkv.jobs.workers import Workers
from simkv.results.write import summary_text
from simkv.scenario.resolve import resolve
from simkv.simulation import run_scenario
from simkv.sweeps.axes import parse_axes
from simkv.sweeps.simulate import Written
from simkv.sweeps.study import sweep

ROOT = Path(__file__).parents[1]
MODEL = "model: llama-3.1-8b\nhardware: a100-sxm4-80gb\n"
CHAT = """
engine: {preset: vllm, max_num_seqs: 16, max_num_batched_tokens: 2048, num_gpu_blocks: 900}
workload:
  kind: sessions
  requests: 120
  arrival: {process: poisson, rate: 1 req/s}
  turns: {dist: geometric, mean: 4, max: 10}
  think_time: {dist: lognormal, median: 5s, sigma: 0.8}
  system_prompt: {tokens: 300, variants: 2}
  prompt_tokens: {dist: lognormal, median: 400, sigma: 0.8, max: 1500}
  output_tokens: {dist: uniform, low: 5, high: 60}
  max_context: 6000
tiers: {dram: {capacity: 3GiB}, ssd: {capacity: 20GiB}}
run: {warm_up: 0s, baselines: [no_offload]}
"""
ROUTED = CHAT.replace("requests: 120", "requests: 200") + "replicas: {count: 3, router: prefix_aware}\n"
ACTIVE = """
engine: {max_num_seqs: 8, prefix_caching: false, prefill: vram, max_model_len: 8Ki}
workload: {kind: batch, size: 6, prompt_tokens: {dist: uniform, low: 1000, high: 4000}, output_tokens: 40}
tiers: {dram: {capacity: 16GiB}}
offload:
  residency: 0.3
  access: {pattern: topk, budget: 512, recent: 64, sinks: 16, skew: 1.0, stickiness: 0.5}
  eviction: {policy: score, lambda: 0.7}
  prefetch: {policy: next_step, predictor: heavy_hitters}
run: {warm_up: 0s}
"""
BATCHES = """
model: opt-30b
hardware: t4
engine:
  preset: flexgen
  placement: {weights: [20, 80], kv: [0, 100], activations: [0, 100]}
  gpu_batch_size: 4
  num_gpu_batches: 2
  cpu_attention: true
  constants: flexgen-t4
workload: {kind: batch, size: 8, prompt_tokens: 64, output_tokens: 6}
tiers: {dram: {capacity: 208GB, bandwidth: 100 GB/s}}
run: {warm_up: 0s}
"""
TRACE = """
engine: {num_gpu_blocks: 900}
workload: {kind: trace, path: trace.jsonl, format: mooncake}
tiers: {dram: {capacity: 4GiB}}
run: {warm_up: 0s, baselines: [no_offload]}
"""
TEXTS = {
    "chat": MODEL + CHAT,
    "routed": MODEL + ROUTED,
    "active": MODEL + ACTIVE,
    "batches": BATCHES,
    "trace": MODEL + TRACE,
}
EVERY = """
import sys
from typer.testing import CliRunner
from simkv.cli import app
folder, more, names = sys.argv[1], sys.argv[2].split(), sys.argv[3:]
for name in names:
    done = CliRunner().invoke(app, ["run", f"{name}.yaml", "--out", f"{folder}/{name}", *more])
    assert done.exit_code == 0, done.output
"""
"""Runs each scenario by the command, in one new process."""
Digests = dict[str, dict[str, str]]


def write_trace(path: Path) -> None:
    """Write requests that share blocks of prompts, as Mooncake's traces tell of them."""
    rows = []
    for number in range(120):
        shared = [1 + number % 5, 10 + number % 3, 100 + number % 7]
        rows.append({
            "timestamp": 400 * number, "input_length": 2048, "output_length": 5 + number % 40,
            "hash_ids": [*shared, 1000 + number],
        })  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the scenarios and what they read."""
    folder = tmp_path_factory.mktemp("determinism")
    write_trace(folder / "trace.jsonl")
    for name, text in TEXTS.items():
        (folder / f"{name}.yaml").write_text(f"name: {name}\n{text}", "utf-8")
    sessions = (ROOT / "scenarios" / "agent-sessions.yaml").read_text("utf-8")
    (folder / "recorded.yaml").write_text(sessions, "utf-8")
    shutil.copytree(ROOT / "scenarios" / "agent-sessions", folder / "agent-sessions")
    return folder


NAMES = (*TEXTS, "recorded")


def digests(folder: Path) -> Digests:
    """Return the hashes of every file of every result in ``folder``."""
    return {
        place.name: {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(place.iterdir())}
        for place in sorted(folder.iterdir())
    }


def in_a_new_process(home: Path, folder: str, *more: str, **environ: str) -> Digests:
    """Run every scenario in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", EVERY, folder, " ".join(more), *NAMES], cwd=home, text=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return digests(home / folder)


@pytest.fixture(scope="module")
def first(home: Path) -> Digests:
    """Return what a new process writes, unaudited, under one hash seed."""
    return in_a_new_process(home, "first", SIMKV_AUDIT="0", PYTHONHASHSEED="1")


def test_every_result_has_its_files(first: Digests) -> None:
    assert first.keys() == set(NAMES)
    wanted = {"summary.json", "requests.parquet", "timeseries.parquet", "recording.json", "scenario.resolved.yaml"}
    assert [name for name, files in first.items() if not wanted <= files.keys()] == []
    assert len({files["summary.json"] for files in first.values()}) == len(NAMES)


def test_another_process_under_another_hash_seed_with_audit_gives_the_same_bytes(home: Path, first: Digests) -> None:
    assert in_a_new_process(home, "second", "--audit", PYTHONHASHSEED="2") == first


def test_first_and_second_run_of_one_process_give_the_same_bytes(
    home: Path, first: Digests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whatever order: what ran before leaves nothing behind."""
    monkeypatch.chdir(home)
    for folder, names in (("third", NAMES[:2]), ("fourth", NAMES[::-1])):
        for name in names:
            done = CliRunner().invoke(app, ["run", f"{name}.yaml", "--out", f"{folder}/{name}"])
            assert done.exit_code == 0, done.output
        assert digests(home / folder) == {name: first[name] for name in names}


def test_recording_changes_no_figure(home: Path) -> None:
    plain, recorded = (
        run_scenario(resolve(str(home / "chat.yaml")), record=record).summary for record in ((), _wanted())
    )
    assert summary_text(plain) == summary_text(recorded)


def _wanted() -> Any:
    from simkv.sim.record.recording import PLAYER

    return (PLAYER,)


def test_a_terminal_changes_no_byte(home: Path, first: Digests) -> None:
    command = [sys.executable, "-m", "simkv", "run", "chat.yaml", "--out", "terminal/chat"]
    main, terminal = pty.openpty()
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "71"}
    with subprocess.Popen(command, cwd=home, env=environ, stdin=terminal, stdout=terminal, stderr=terminal) as child:
        os.close(terminal)
        told = _read(main)
        assert child.wait(120) == 0, told
    os.close(main)
    assert digests(home / "terminal") == {"chat": first["chat"]}


def _read(terminal: int) -> str:
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            return b"".join(parts).decode()
        if not part:
            return b"".join(parts).decode()
        parts.append(part)


@pytest.mark.parametrize(
    ("name", "axis", "values"),
    [("chat", "tiers.dram.capacity", ("2GiB", "4GiB")), ("active", "offload.residency", ("0.2", "0.5"))],
)
def test_points_of_a_sweep_are_single_runs_whatever_the_number_of_processes(
    home: Path, name: str, axis: str, values: tuple[str, ...]
) -> None:
    file = str(home / f"{name}.yaml")
    alone = [summary_text(run_scenario(resolve(file, [f"{axis}={value}"])).summary) for value in values]
    for jobs in (1, 2):
        with Workers(jobs) as workers:
            found = sweep(
                Written(Path(file).read_text("utf-8"), file),
                parse_axes([f"{axis}={','.join(values)}"]),
                workers=workers,
            )
        assert [summary_text(one.summary or {}) for one in found.ended] == alone


def test_a_run_that_draws_from_the_clock_is_seen(home: Path, first: Digests, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a figure that depends on how long the run took."""
    import simkv.simulation as simulation

    right: Callable[..., Any] = simulation.summarize

    def wrong(data: Any, *rest: Any) -> Any:
        return right(data, *rest) | {"wall_s": data.wall_s}

    monkeypatch.setattr(simulation, "summarize", wrong)
    monkeypatch.chdir(home)
    done = CliRunner().invoke(app, ["run", "chat.yaml", "--out", "mutant/chat"])
    assert done.exit_code == 0, done.output
    assert digests(home / "mutant")["chat"]["summary.json"] != first["chat"]["summary.json"]
