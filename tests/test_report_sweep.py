"""What reports say of sweeps: numbers are those of the points, whatever failed, is missing, or is called."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.cli import app
from simkv.jobs.job import Failure
from simkv.plots.sweep import _geometric, _kept
from simkv.report.document import Code, Details, Figure, Note, Section, Text
from simkv.report.folders import SweepFolder, read_folder
from simkv.report.sweep import sections
from simkv.sweeps.point import Ended, Point
from simkv.sweeps.result import SweepResult
from tests.report_blocks import blocks, drawn, table, words

Answer = Callable[[Mapping[str, str], int], Mapping[str, float] | None]
DRAM, SEATS, RATE = "tiers.dram.capacity", "engine.max_num_seqs", "workload.arrival.rate"
HOSTILE = "<script>alert('x')</script> $\\frac{1}{0}$ \u202e" + "n" * 300


def summary(params: Mapping[str, str], figures: Mapping[str, float]) -> dict[str, Any]:
    """Return what of a summary a sweep's report looks at."""
    found: dict[str, Any] = {
        "simkv_version": "0.1.0", "question": "How much?", "bottleneck": "gpu", "warnings": [],
        "output_tokens_per_s": figures["rate"], "ttft_s": {"p95": figures["ttft"]}, "itl_s": {"p95": 0.01},
    }  # fmt: skip
    if "cost" in figures:
        found["cost_per_million_output_tokens"] = figures["cost"]
    return found


def sweep(axes: Mapping[str, Sequence[str]], answer: Answer, seeds: int = 1, **more: Any) -> SweepFolder:
    """Return a sweep whose points say what ``answer`` does; None: that one failed."""
    ended = []
    for values in product(*axes.values()):
        params = dict(zip(axes, values, strict=True))
        for seed in range(seeds):
            figures = answer(params, seed)
            point = Point(params, seed, f"{values}{seed}")
            if figures is None:
                failure = Failure("InfeasibleError", f"does not fit: {HOSTILE}")
                ended.append(Ended(point, "failed", 2, None, failure))
            else:
                ended.append(Ended(point, "done", 1, summary(params, figures)))
    return SweepFolder(Path("somewhere"), SweepResult("s", axes, tuple(ended), **more))


def size(written: str) -> float:
    return float(written.removesuffix("GiB").split()[0])


def of_dram(params: Mapping[str, str], seed: int) -> Mapping[str, float]:
    """More DRAM: a shorter TTFT, and as many tokens."""
    return {"rate": 100.0, "ttft": 2.0 / (1 + size(params[DRAM])) + 0.01 * seed}


def of_two(params: Mapping[str, str], seed: int) -> Mapping[str, float]:
    """More seats: more tokens, and longer waits; more DRAM: shorter ones."""
    seats = size(params[SEATS])
    return {"rate": 10 * seats + seed, "ttft": seats / (1 + size(params[DRAM])), "cost": 4.0 / seats}


ONE = {DRAM: ("0GiB", "1GiB", "3GiB")}
TWO = {DRAM: ("0GiB", "1GiB", "3GiB"), SEATS: ("2", "4")}


def section(shown: Sequence[Section], key: str) -> Section:
    return next(one for one in shown if one.key == key)


def lead(shown: Sequence[Section]) -> str:
    return next(text.text for text in blocks(shown, Text) if text.lead)


def test_answer_names_the_best_setting_with_its_number_and_interval() -> None:
    shown = sections(sweep(ONE, of_dram, seeds=3))
    assert lead(shown) == "tiers.dram.capacity = 3GiB has the least TTFT p95 (510 ms ± 24.8 ms)."


def test_answer_names_the_best_for_each_objective_once() -> None:
    assert lead(sections(sweep(TWO, of_two))) == (
        "tiers.dram.capacity = 3GiB, engine.max_num_seqs = 2 has the least TTFT p95 (500 ms); engine.max_num_seqs = 4 "
        "has the most output tokens/s (40) and the least cost of a million output tokens (1)."
    )


def test_answer_where_nothing_differs_says_so() -> None:
    shown = sections(sweep(ONE, lambda params, seed: {"rate": 5.0, "ttft": 1.0}))
    assert lead(shown) == "Nothing is best: latency, throughput and cost are the same at all 3 settings."
    assert [one.key for one in shown] == ["answer", "table", "obtained"]


def test_what_differs_most_and_which_axis_moves_it_are_said() -> None:
    told = words(sections(sweep(TWO, of_two)))
    assert "TTFT p95 differs most: 500 ms at tiers.dram.capacity = 3GiB, engine.max_num_seqs = 2, 8.00 times" in told
    assert "TTFT p95 is moved most by tiers.dram.capacity: from 750 ms at 3GiB to 3.00 s at 0GiB" in told
    assert "output tokens/s is moved most by engine.max_num_seqs: from 20 at 2 to 40 at 4" in told


def test_settings_that_cannot_be_told_from_the_best_are_counted() -> None:
    def noisy(params: Mapping[str, str], seed: int) -> Mapping[str, float]:
        near = {"0GiB": 2.0, "1GiB": 1.0, "3GiB": 0.9}[params[DRAM]]
        return {"rate": 1.0, "ttft": near + (0.5 * (seed - 1) if params[DRAM] == "1GiB" else 0.0)}

    told = words(sections(sweep(ONE, noisy, seeds=3)))
    assert "In TTFT p95 1 other setting can't be told from the best with 3 seeds" in told
    assert "can't be told" not in words(sections(sweep(ONE, of_dram, seeds=3)))

    def all_noise(params: Mapping[str, str], seed: int) -> Mapping[str, float]:
        spread = {"0GiB": 0.0, "1GiB": 0.4, "3GiB": 0.5}[params[DRAM]]
        return {"rate": 1.0, "ttft": 1.0 + spread * (seed - 0.4)}

    told = words(sections(sweep(ONE, all_noise, seeds=2)))
    assert "In TTFT p95 no other setting can be told from the best with 2 seeds" in told


def test_table_has_every_setting_with_exact_means() -> None:
    folder = sweep(TWO, of_two, seeds=2)
    found = table(sections(folder), "settings")
    at = list(found.heads).index("TTFT p95 (s)")
    expected = [fmean(of_two(dict(zip(TWO, values, strict=True)), seed)["ttft"] for seed in range(2))
                for values in product(*TWO.values())]  # fmt: skip
    assert [row[at].exact for row in found.rows] == expected
    assert [row[1].text for row in found.rows] == [a for a, _ in product(*TWO.values())]
    stars = [row[0].text for row in found.rows]
    assert sum(star == "★" for star in stars) == len(folder.result.front().settings)


def test_table_of_many_settings_shows_the_best_and_folds_all() -> None:
    many = {DRAM: tuple(f"{k}GiB" for k in range(30))}
    shown = sections(sweep(many, of_dram))
    few = next(block for block in section(shown, "table").blocks if not isinstance(block, Details))
    assert [row[1].text for row in few.rows][:2] == ["29GiB", "28GiB"] and len(few.rows) == 20  # type: ignore[union-attr]
    assert len(table(shown, "settings").rows) == 30


def figures_of(shown: Sequence[Section]) -> dict[str, Figure]:
    return {figure.name: figure for figure in blocks(shown, Figure)}


@pytest.mark.parametrize(
    ("axes", "answer"),
    [
        (ONE, of_dram),
        (TWO, of_two),
        ({"engine.preset": ("vllm", "lmcache"), DRAM: ("0GiB", "2GiB")}, of_dram),
        ({DRAM: tuple(f"{k}GiB" for k in range(8)), SEATS: tuple(str(k) for k in range(1, 9))}, of_two),
        ({**TWO, RATE: ("1 req/s", "2 req/s")}, of_two),
        ({HOSTILE: ("a$b", "<b>", HOSTILE), DRAM: ("0GiB", "9GiB")}, of_dram),
    ],
    ids=["one", "two", "words", "map", "slice", "hostile"],
)
def test_figures_have_all_settings_exactly_and_draw(axes: Mapping[str, Sequence[str]], answer: Answer) -> None:
    shown = sections(sweep(axes, answer, seeds=2))
    figures = figures_of(shown)
    assert "sweep-ttft_s.p95" in figures
    settings = list(product(*axes.values()))
    for name, figure in figures.items():
        assert figure.finding and figure.alt and drawn(figure).count("<svg") == 1
        if name != "sweep-pareto":
            assert [tuple(row[: len(axes)]) for row in figure.data.rows] == settings
    waits = figures["sweep-ttft_s.p95"]
    at = list(waits.data.heads).index("TTFT p95 (s)")
    for values, row in zip(settings, waits.data.rows, strict=True):
        params = dict(zip(axes, values, strict=True))
        assert row[at] == pytest.approx(fmean(answer(params, seed)["ttft"] for seed in range(2)))  # type: ignore[index]


def test_figure_of_three_axes_says_which_slice_it_is() -> None:
    figure = figures_of(sections(sweep({**TWO, RATE: ("1 req/s", "2 req/s")}, of_two)))["sweep-ttft_s.p95"]
    assert figure.note == "The slice at workload.arrival.rate = 1 req/s, in which the least TTFT p95 lies."
    assert "500 ms at tiers.dram.capacity = 3GiB, engine.max_num_seqs = 2" in figure.alt


def test_figure_of_a_sample_has_a_dot_a_setting() -> None:
    axes = {DRAM: tuple(f"{k}GiB" for k in range(6)), SEATS: tuple(str(k) for k in range(1, 7))}
    whole = sweep(axes, of_two)
    diagonal = tuple(one for one in whole.result.ended
                     if size(one.point.params[DRAM]) + 1 == size(one.point.params[SEATS]))  # fmt: skip
    folder = SweepFolder(whole.path, SweepResult("s", axes, diagonal))
    shown = sections(folder)
    figure = figures_of(shown)["sweep-output_tokens_per_s"]
    assert figure.note.startswith("A dot is a setting; ") and len(figure.data.rows) == 6
    assert "<svg" in drawn(figure)
    assert not blocks(shown, Code) and "with --sample 6" in words(shown)


def test_front_is_drawn_marked_and_named() -> None:
    figure = figures_of(sections(sweep(TWO, of_two)))["sweep-pareto"]
    on = [row[0:2] for row in figure.data.rows if row[-1]]
    assert on == [["3GiB", "2"], ["3GiB", "4"]]
    assert "1: tiers.dram.capacity = 3GiB, engine.max_num_seqs = 2; 2: tiers.dram.capacity = 3GiB" in figure.note
    assert figure.finding.startswith("2 of 6 settings are beaten by none")


def test_failed_and_pending_points_are_told_with_their_errors() -> None:
    def some(params: Mapping[str, str], seed: int) -> Mapping[str, float] | None:
        return None if params[DRAM] == "0GiB" else of_dram(params, seed)

    shown = sections(sweep(ONE, some, seeds=2, pending=5))
    notes = blocks(shown[:1], Note)
    assert [note.tone for note in notes if note.code in ("pending", "failed")] == ["warning", "bad"]
    assert f"failed: does not fit: {HOSTILE}" in next(note.text for note in notes if note.code == "failed")
    failed = table(shown, "failed")
    assert [row[0].text for row in failed.rows] == ["0GiB", "0GiB"]
    assert [row[1].exact for row in failed.rows] == [0, 1]
    assert "Points: 11: 4 done, 2 failed, 5 not yet" in words(shown)
    states = [row[2] for row in table(shown, "settings").rows]
    assert (states[0].text, states[0].tone) == ("0, 2 failed", "bad")


def test_sweep_in_which_everything_failed_says_that_and_nothing_more() -> None:
    shown = sections(sweep(ONE, lambda params, seed: None))
    assert lead(shown) == "No point has an answer."
    assert [one.key for one in shown] == ["answer", "obtained"]


def test_sweep_without_any_point_yet_is_told() -> None:
    shown = sections(SweepFolder(Path("x"), SweepResult("s", ONE, (), pending=3)))
    assert lead(shown) == "No point has an answer." and "Points: 3: 3 not yet" in words(shown)


def test_warnings_of_runs_are_told_once_with_how_many_runs_have_them() -> None:
    folder = sweep(ONE, of_dram)
    for k, one in enumerate(folder.result.ended):
        assert one.summary is not None
        one.summary["warnings"].extend([{"code": "cold", "message": f"filled {k} times"}] * (2 if k else 0))
    notes = [note for note in blocks(sections(folder), Note) if note.code == "cold"]
    assert [note.text for note in notes] == ["filled 1 times (2 of 3 runs; the figures are of the first)"]


def test_what_cannot_matter_stands_in_the_answer() -> None:
    notes = ("p can't matter at any point: nothing is offloaded.",)
    shown = sections(sweep(ONE, of_dram, notes=notes))
    assert Note("plain", notes[0]) in shown[0].blocks


@pytest.mark.parametrize(
    ("places", "geometric"), [((1, 2, 4, 8, 64), True), ((0, 1, 64), False), ((0.1, 20, 30, 40, 60), False)]
)
def test_axis_is_logarithmic_where_its_values_are_of_several_magnitudes(
    places: Sequence[float], geometric: bool
) -> None:
    assert _geometric(places) is geometric


def test_ticks_without_room_go() -> None:
    assert _kept([0, 1, 2, 100], ["0GiB", "1GiB", "2GiB", "100GiB"], False) == [0, 3]
    assert _kept([0, 50, 100], ["a", "b", "c"], False) == [0, 1, 2]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Sweep a tiny scenario by the command line."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "s.yaml").write_text(
        "name: tiny\nmodel: {kv_bytes_per_token: 1KiB}\nhardware: {step_time: 100ms, kv_tokens: 4096}\n"
        "engine: {max_num_seqs: 4}\nworkload: {kind: batch, size: 8, prompt_tokens: 64, output_tokens: 8}\n"
        "run: {replications: 2}\n"
    )
    done = CliRunner().invoke(app, [
        "sweep", str(folder / "s.yaml"), "--grid", f"{SEATS}=2,4", "--set", "workload.output_tokens=6",
        "--jobs", "1", "--out", str(folder / "out"),
    ])  # fmt: skip
    assert done.exit_code == 0, done.output
    yield folder / "out"


def test_command_of_a_real_sweep_does_it_again_without_a_new_run(real: Path) -> None:
    folder = read_folder(real)
    assert isinstance(folder, SweepFolder)
    shown = sections(folder)
    (code,) = blocks(shown, Code)
    assert "--set workload.output_tokens=6" in code.text and "--replications 2" in code.text
    before = words(shown)
    again = CliRunner().invoke(app, [*shlex.split(code.text)[1:], "--jobs", "1"])
    assert again.exit_code == 0 and "4 of 4 runs kept from before" in again.stderr
    after = read_folder(real)
    assert isinstance(after, SweepFolder) and words(sections(after)) == before


def test_numbers_of_a_real_sweep_are_those_of_its_points(real: Path) -> None:
    folder = read_folder(real)
    assert isinstance(folder, SweepFolder)
    found = table(sections(folder), "settings")
    at = list(found.heads).index("Output tokens/s")
    points = folder.result.points.groupby(f"params.{SEATS}")["output_tokens_per_s"].mean()
    assert [row[at].exact for row in found.rows] == pytest.approx(list(points))
