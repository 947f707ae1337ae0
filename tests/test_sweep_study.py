"""A sweep as a library: its layout, shared runs, failed points, and what comes back as tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from simkv.errors import InputError
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from simkv.results.write import summary_text
from simkv.scenario.resolve import resolve_text
from simkv.simulation import run_scenario
from simkv.sweeps import layout as layout_module
from simkv.sweeps import simulate as simulate_module
from simkv.sweeps.axes import parse_axes
from simkv.sweeps.grid import Values
from simkv.sweeps.layout import Layout, lay_out
from simkv.sweeps.point import Point, number_or_text
from simkv.sweeps.read import FILE, read
from simkv.sweeps.result import SweepResult
from simkv.sweeps.simulate import Written
from simkv.sweeps.study import Tally, carry_out, sweep

ACTIVE = Written(
    """\
name: short-active
model: llama-3.1-8b
hardware: h100-sxm5-80gb
engine: {max_num_seqs: 4, prefix_caching: false, prefill: vram}
workload: {kind: batch, size: 2, prompt_tokens: {dist: uniform, low: 4096, high: 8192}, output_tokens: 4}
tiers: {dram: {capacity: 64GiB}}
link: {latency: 0us}
offload:
  residency: 0.3
  access: {pattern: topk, budget: 1024, recent: 256, sinks: 64, skew: 1.0, stickiness: 0.5}
  eviction: {policy: score, lambda: 0.7}
  prefetch: {policy: fixed_overlap, beta: 0.5}
run: {warm_up: 0s, seed: 3}
""",
    "short-active.yaml",
)


@pytest.fixture(scope="module")
def worker() -> Iterator[Workers]:
    with Workers(1) as workers:
        yield workers


def laid_out(*grid: str, written: Written = ACTIVE, replications: int = 1, sample: int | None = None) -> Layout:
    return lay_out(written, parse_axes(grid), replications=replications, sample=sample)


def test_layout_of_a_grid_has_the_last_axis_fastest_and_each_point_its_seeds() -> None:
    layout = laid_out("p=0.3,0.5", "lambda=0.5,0.8", replications=2)
    found = [(point.params["p"], point.params["lambda"], point.seed) for point in layout.points]
    assert found == [(p, lam, seed) for p in ("0.3", "0.5") for lam in ("0.5", "0.8") for seed in (3, 4)]
    assert len({point.key for point in layout.points}) == len(layout.jobs) == 8


def test_layout_gives_a_point_the_same_run_whatever_is_asked_beside_it() -> None:
    first = {tuple(point.params.values()): point.key for point in laid_out("p=0.3,0.5", "lambda=0.5,0.8").points}
    other = {tuple(point.params.values()): point.key for point in laid_out("p=0.5,0.9", "lambda=0.8").points}
    assert first["0.5", "0.8"] == other["0.5", "0.8"]
    assert other["0.9", "0.8"] not in first.values()


def test_layout_key_follows_what_decides_a_run_and_not_what_it_is_called() -> None:
    (key,) = [point.key for point in laid_out("p=0.5").points]
    renamed = Written(ACTIVE.text.replace("name: short-active", "name: other\nquestion: Why?"), ACTIVE.file)
    longer = Written(ACTIVE.text, ACTIVE.file, ("workload.output_tokens=5",))
    assert [point.key for point in laid_out("p=0.5", written=renamed).points] == [key]
    assert [point.key for point in laid_out("p=0.5", written=longer).points] != [key]


def test_layout_of_points_that_differ_in_what_cannot_matter_shares_a_run_and_says_so() -> None:
    layout = laid_out("p=0.3,1.0", "beta=0,0.9", "lambda=0.5,0.8")
    keys = [point.key for point in layout.points]
    assert len(set(keys[:4])) == 4
    assert len(set(keys[4:])) == 1
    assert len(layout.jobs) == 5
    assert [point.params["beta"] for point in layout.points[4:]] == ["0", "0", "0.9", "0.9"]
    assert any("beta and lambda can't matter at p = 1.0" in note for note in layout.notes)


def test_layout_of_more_runs_than_anybody_waits_for_is_refused() -> None:
    with pytest.raises(InputError, match=r"--replications.*200,000 runs"):
        laid_out("workload.output_tokens=1:200:1", replications=1000)


def test_sweep_equals_single_runs(worker: Workers) -> None:
    result = sweep(ACTIVE, parse_axes(["p=0.3,0.6", "beta=0,0.9"]), workers=worker)
    for one in result.ended:
        given = [f"offload.residency={one.point.params['p']}", f"offload.prefetch.beta={one.point.params['beta']}"]
        alone = run_scenario(resolve_text(ACTIVE.text, ACTIVE.file, given))
        assert one.summary is not None
        assert summary_text(one.summary) == summary_text(alone.summary)


def test_sweep_with_a_store_is_read_back_as_it_was_given(worker: Workers, tmp_path: Path) -> None:
    told: list[tuple[int, int, int]] = []

    def report(tally: Tally) -> None:
        told.append((tally.done, tally.failed, tally.left))

    axes = parse_axes(["p=0.3,1.0", "beta=0,0.9"])
    with Store(tmp_path / FILE) as store:
        result = sweep(ACTIVE, axes, workers=worker, store=store, report=report)
    again = read(tmp_path)
    assert again.summary == result.summary
    assert told == [(1, 0, 2), (2, 0, 1), (3, 0, 0)]
    assert {path.name for path in tmp_path.iterdir()} <= {FILE, f"{FILE}.lock"}  # what processes shared is gone
    assert [one.point.params["beta"] for one in again.ended] == ["0", "0.9", "0", "0.9"]


def test_sweep_of_points_that_do_not_resolve_fails_there_and_goes_on(worker: Workers, tmp_path: Path) -> None:
    axes = parse_axes(["engine.num_gpu_blocks=200,2000", "engine.max_model_len=2048,8192"])
    written = Written(
        "name: plain\nmodel: llama-3.1-8b\nhardware: h100-sxm5-80gb\nrun: {baselines: []}\n"
        "workload: {kind: plain, requests: 3, arrival: {process: poisson, rate: 5 req/s}, prompt_tokens: 100, "
        "output_tokens: 4}\n",
        "plain.yaml",
    )
    with Store(tmp_path / FILE) as store:
        result = sweep(written, axes, workers=worker, store=store)
    for found in (result, read(tmp_path)):
        assert [one.status for one in found.ended] == ["done", "failed", "done", "done"]
        failed = found.ended[1]
        assert failed.failure is not None
        assert failed.failure.kind == "InfeasibleError"
        assert failed.attempts == 1


def test_sweep_of_a_trace_that_changed_meanwhile_fails_and_keeps_no_answer(worker: Workers, tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("arrival,prompt_tokens,output_tokens\n0,100,4\n")
    written = Written(
        "name: logged\nmodel: llama-3.1-8b\nhardware: h100-sxm5-80gb\nrun: {baselines: []}\n"
        "workload: {kind: trace, path: t.csv}\n",
        str(tmp_path / "logged.yaml"),
    )
    layout = laid_out("link.h2d=10 GB/s,20 GB/s", "tiers.dram.capacity=1GiB", written=written)
    trace.write_text("arrival,prompt_tokens,output_tokens\n0,200,4\n")
    with Store(tmp_path / "answers" / FILE) as store:
        result = carry_out(layout, worker, store)
        assert not store.finished()
    assert [one.status for one in result.ended] == ["failed", "failed"]
    assert "isn't what it was" in result.ended[0].failure.message  # type: ignore[union-attr]
    again = laid_out("link.h2d=10 GB/s,20 GB/s", "tiers.dram.capacity=1GiB", written=written)
    assert {point.key for point in again.points}.isdisjoint(point.key for point in layout.points)


def test_sweep_result_as_data_frames(worker: Workers) -> None:
    result: SweepResult = sweep(ACTIVE, parse_axes(["p=0.3,0.6"]), replications=2, workers=worker)
    points = result.points
    assert points["params.p"].tolist() == [0.3, 0.3, 0.6, 0.6]
    assert points["seed"].tolist() == [3, 4, 3, 4]
    assert points["p_hit"].tolist() == [one.summary["p_hit"] for one in result.ended if one.summary]
    best = result.pareto
    assert set(best["params.p"]) <= {0.3, 0.6}
    assert "itl_s.p95" in best


@pytest.mark.parametrize(
    ("written", "value"),
    [("0.1", 0.1), ("12", 12), ("-3", -3), ("1e3", 1000.0), ("400GiB", "400GiB"), ("nan", "nan"), ("1_0", "1_0"),
     ("true", "true"), ("", "")],
)  # fmt: skip
def test_values_are_numbers_where_they_are_plain_numbers(written: str, value: float | str) -> None:
    found = number_or_text(written)
    assert found == value
    assert type(found) is type(value)


# ---- mutants ------------------------------------------------------------------------------------


def test_mutant_seeds_that_go_on_from_point_to_point_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = layout_module._Drawer.points

    def points(self: layout_module._Drawer, params: Values, replications: int) -> list[Point]:
        self._written = replace(self._written, assignments=(f"run.seed={len(self.jobs)}",))
        return drawn(self, params, replications)

    monkeypatch.setattr(layout_module._Drawer, "points", points)
    with pytest.raises(AssertionError):
        test_layout_of_a_grid_has_the_last_axis_fastest_and_each_point_its_seeds()
    with pytest.raises(AssertionError):
        test_layout_gives_a_point_the_same_run_whatever_is_asked_beside_it()


def test_mutant_key_without_what_decides_a_run_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate_module, "key_of", lambda resolved, seed: f"{resolved.scenario.model}, {seed}")
    with pytest.raises(AssertionError):
        test_layout_key_follows_what_decides_a_run_and_not_what_it_is_called()
