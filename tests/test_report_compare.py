"""Runs side by side: differences, their intervals, and what is noise."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simkv.plots.comparison import cumulative
from simkv.report.compare import sections
from simkv.report.compare.columns import Columns, pairs
from simkv.report.compare.estimate import of_means, of_quantiles, of_series, of_shares
from simkv.report.compare.metrics import Comparison, compare
from simkv.report.compare.sections import called, headline, judged
from simkv.report.compare.settings import differing
from simkv.report.document import Figure, Note, Table, Text
from simkv.report.folders import RunFolder, read_folder
from simkv.results.write import write_result
from simkv.scenario.resolve import resolve
from simkv.simulation import run_scenario

CHATBOT = "scenarios/chatbot.yaml"
SMALL = ["workload.requests=800", "engine.num_gpu_blocks=3000", "run.warm_up=0s"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFolder]:
    """Return runs of one chatbot: as it is, without DRAM, and with another seed."""
    made = {}
    for name, more in {"tiered": [], "bare": ["tiers.dram.capacity=0GiB"], "reseeded": ["run.seed=1"]}.items():
        folder = tmp_path_factory.mktemp("runs") / name
        write_result(run_scenario(resolve(CHATBOT, [*SMALL, *more])), folder)
        found = read_folder(folder)
        assert isinstance(found, RunFolder)
        made[name] = found
    return made


def compared(one: RunFolder, other: RunFolder) -> Comparison:
    """Return two runs held against each other."""
    return compare(Columns(one), Columns(other))


def test_comparison_of_a_run_with_its_own_baseline_gives_the_difference_of_its_summary(
    runs: dict[str, RunFolder],
) -> None:
    """The run without tiers is the baseline that the tiered run had simulated itself, so both roads must agree."""
    known = runs["tiered"].summary["baselines"]["no_offload"]["difference"]
    rows = {row.key: row for row in compared(runs["tiered"], runs["bare"]).rows}
    assert runs["bare"].summary["warm_up_s"] == runs["tiered"].summary["warm_up_s"]
    for name in ("ttft_s", "tpot_s", "e2e_s", "queue_s"):
        found = rows[f"{name}.mean"].difference
        assert found.value == pytest.approx(-known[name]["mean"], rel=1e-9)
        assert found.half is not None
        assert [-found.value - found.half, -found.value + found.half] == pytest.approx(known[name]["ci95"], rel=1e-9)


def test_comparison_of_the_same_run_has_no_difference(runs: dict[str, RunFolder]) -> None:
    same = compared(runs["tiered"], runs["tiered"])
    assert all(row.difference.value == 0 for row in same.rows)
    assert {judged(row)[0] for row in same.rows} == {"none"}
    assert headline("one", "other", same).startswith("Nothing tells other from one")
    notes = [block for section in sections([runs["tiered"]] * 2) for block in section.blocks if isinstance(block, Note)]
    assert "same_run" in {note.code for note in notes}


def test_comparison_turned_round_turns_every_sign(runs: dict[str, RunFolder]) -> None:
    there = {row.key: row.difference for row in compared(runs["tiered"], runs["bare"]).rows}
    back = {row.key: row.difference for row in compared(runs["bare"], runs["tiered"]).rows}
    assert there.keys() == back.keys()
    for key, difference in there.items():
        assert difference.value == pytest.approx(-back[key].value, abs=1e-12)
        assert (difference.half is None) == (back[key].half is None)


def test_comparison_of_other_seeds_is_of_independent_samples(runs: dict[str, RunFolder]) -> None:
    other = compared(runs["tiered"], runs["reseeded"])
    assert other.same_requests is None
    paired = compared(runs["tiered"], runs["bare"])
    assert paired.same_requests is not None and paired.same_requests > 500


def test_pairs_of_another_workload_are_none(runs: dict[str, RunFolder], tmp_path: Path) -> None:
    write_result(run_scenario(resolve(CHATBOT, [*SMALL, "workload.turns.mean=2"])), tmp_path / "short")
    short = read_folder(tmp_path / "short")
    assert isinstance(short, RunFolder)
    assert pairs(Columns(runs["tiered"]), Columns(short)) is None


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("kind", ["mean", "p95", "share"])
def test_intervals_cover_no_difference_about_nineteen_times_in_twenty(kind: str, paired: bool) -> None:
    """Without any cause: 95 % are noise; 20 batches and heavy tails cost a little of that."""
    rng = np.random.default_rng(7)
    noise = 0
    for _ in range(150):
        common = rng.exponential(1.0, (2, 1000)) if not paired else np.tile(rng.exponential(1.0, 1000), (2, 1))
        one, other = common * rng.normal(1.0, 0.2, (2, 1000))
        if kind == "mean":
            found = of_means(one, other, paired)
        elif kind == "p95":
            found = of_quantiles(one, other, 0.95, paired)
        else:
            wholes = rng.exponential(1.0, 1000)
            parts = wholes * rng.uniform(0, 1, (2, 1000))
            found = of_shares((parts[0], wholes), (parts[1], wholes), paired)
        assert found is not None
        noise += bool(found.noise)
    assert noise >= 0.86 * 150


def test_intervals_find_a_difference_that_is_there() -> None:
    rng = np.random.default_rng(8)
    one = rng.exponential(1.0, 2000)
    for found in (of_means(one, 1.3 * one, True), of_quantiles(one, 1.5 * one, 0.9, True),
                  of_shares((0.5 * one, one), (0.6 * one, one), True),
                  of_series(np.linspace(0.4, 0.5, 20), np.linspace(0.6, 0.7, 20))):  # fmt: skip
        assert found is not None and found.noise is False


def test_estimates_of_too_few_values_have_no_interval() -> None:
    few = np.array([1.0, 2.0, 3.0])
    mean, quantile = of_means(few, few + 1, True), of_quantiles(few, few + 1, 0.5, True)
    assert mean is not None and mean.half is None and mean.noise is None
    assert quantile is not None and quantile.half is None
    nothing = np.zeros(0)
    assert of_means(nothing, few, False) is None and of_quantiles(nothing, few, 0.5, False) is None
    assert of_shares((nothing, nothing), (few, few), False) is None


def test_settings_that_differ_are_named_and_no_others(runs: dict[str, RunFolder]) -> None:
    table = section_table(sections([runs["tiered"], runs["bare"]]), "settings")
    hosts = ["engine.host_cost_per_block", "engine.host_cost_per_load"]  # of a tier that is asked about prompts
    assert [row[0].text for row in table.rows] == [*hosts, "tiers.dram.capacity"]
    assert [cell.text for cell in table.rows[-1][1:]] == ["200GiB", "0GiB"]
    assert differing({"a": {"x": "1"}, "b": {"x": "1", "y": "2"}}) == [("y", {"a": "", "b": "2"})]


def section_table(found: list, name: str) -> Table:
    """Return the table of that name."""
    return next(block for part in found for block in part.blocks if isinstance(block, Table) and block.name == name)


def test_sections_of_three_runs_draw_and_tell_every_figure(runs: dict[str, RunFolder]) -> None:
    found = sections(list(runs.values()))
    figures = [block for part in found for block in part.blocks if isinstance(block, Figure)]
    assert {"differences", "ttft-side-by-side", "hits-side-by-side", "time-side-by-side"} <= {f.name for f in figures}
    for one in figures:
        for form in ("png", "svg"):
            page = io.BytesIO()
            one.draw(page, form)
            assert len(page.getvalue()) > 2_000
        assert all(len(row) == len(one.data.heads) for row in one.data.rows)
        assert one.alt and one.finding
    leads = [b for part in found for b in part.blocks if isinstance(b, Text) and b.lead]
    assert len(leads) == 2 and "TTFT mean" in leads[0].text
    assert len({part.key for part in found}) == len(found)


def test_figures_side_by_side_hold_the_numbers_of_the_summaries(runs: dict[str, RunFolder]) -> None:
    figures = {
        b.name: b for part in sections([runs["tiered"], runs["bare"]]) for b in part.blocks if isinstance(b, Figure)
    }
    for name, *values, ceiling in figures["hits-side-by-side"].data.rows:
        assert sum(values) == pytest.approx(1.0)
        assert values[0] == runs[name].summary["hit_rate"]["vram"]
        assert ceiling == runs[name].summary["hit_rate"]["ceiling"]
    totals: dict[str, float] = {}
    for name, _, value in figures["time-side-by-side"].data.rows:
        totals[name] = totals.get(name, 0.0) + value
    assert totals == {name: pytest.approx(runs[name].summary["e2e_s"]["mean"], rel=1e-9) for name in ("tiered", "bare")}


def test_differences_count_only_what_has_an_interval(runs: dict[str, RunFolder]) -> None:
    figure = next(
        b for part in sections([runs["tiered"], runs["bare"]]) for b in part.blocks
        if isinstance(b, Figure) and b.name == "differences"
    )  # fmt: skip
    judged = [row for row in figure.data.rows if row[2] is not None]
    assert len(judged) < len(figure.data.rows)
    real = sum(not row[4] for row in judged)
    assert (
        figure.finding == f"{real} of {len(judged)} figures that have an interval differ from tiered by more than noise"
    )


def test_cumulative_shares_count_values_that_a_logarithmic_axis_cannot_show() -> None:
    shown, shares = cumulative(np.array([0.0, 0.0, 1.0, 2.0, np.nan]))
    assert (shown, shares) == ([1.0, 2.0], [0.75, 1.0])


def test_runs_of_the_same_folder_name_are_told_apart(runs: dict[str, RunFolder]) -> None:
    assert list(called([runs["tiered"], runs["tiered"], runs["bare"]])) == ["tiered", "tiered (2)", "bare"]


def test_runs_without_a_finished_request_are_compared_without_latencies(
    runs: dict[str, RunFolder], tmp_path: Path
) -> None:
    folder = tmp_path / "nothing"
    write_result(run_scenario(resolve(CHATBOT, [*SMALL, "workload.requests=5", "engine.max_model_len=16"])), folder)
    empty = read_folder(folder)
    assert isinstance(empty, RunFolder)
    assert not json.loads((folder / "summary.json").read_text())["requests"]["finished"]
    found = sections([runs["tiered"], empty])
    assert not [row for row in compared(runs["tiered"], empty).rows if row.key.startswith("ttft_s")]
    assert found[0].blocks


def test_columns_of_the_window_are_after_the_warm_up(runs: dict[str, RunFolder]) -> None:
    run = Columns(runs["tiered"])
    frame: pd.DataFrame = runs["tiered"].requests
    cut = frame["arrival_s"].min() + runs["tiered"].summary["warm_up_s"]
    assert len(run.window) == int((frame["arrival_s"] >= cut).sum())
    assert (np.diff(run.column("arrival_s")[run.window]) >= 0).all()
