"""Hostile scenarios, assignments, grids, model shapes and cases: answered, or refused with what is wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from simkv.cli import app
from simkv.cli.guard import tell
from simkv.errors import InputError, Problem, SimkvError
from simkv.formulas.pages import page_layout
from simkv.model.config import read_config
from simkv.reading import NotRegular, read_bounded
from simkv.scenario import text
from simkv.scenario.overrides import apply
from simkv.scenario.resolve import resolve, resolve_text
from simkv.sweeps.axes import parse_axes, section_axes
from simkv.sweeps.grid import sample, size
from simkv.sweeps.read import read as read_sweep
from simkv.validation.read import read_cases
from tests.fuzz import cases, configs, grids, scenarios
from tests.fuzz.base import bases, write_traces

SEEDS = st.integers(0, 2**32)
CHATBOT = bases()["chatbot"]


def held(call: Callable[[], object]) -> None:
    """Hold that ``call`` returns, or raises an error of simkv's that says what is wrong, and where or the mend."""
    try:
        call()
    except InputError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.what
            assert problem.mend or (problem.file and problem.path)
            str(problem).encode()
    except SimkvError as error:
        assert str(error)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the small traces that scenarios name."""
    place = tmp_path_factory.mktemp("hostile")
    write_traces(place)
    return place


@pytest.mark.parametrize("name", ["scenario", "value", "extreme", "set"])
@settings(max_examples=60)
@given(seed=SEEDS)
def test_hostile_scenario_resolves_or_is_refused(name: str, folder: Path, seed: int) -> None:
    asked = scenarios.GENERATORS[name](Random(seed), folder)
    given_on_line = [asked.args[i + 1] for i, word in enumerate(asked.args[:-1]) if word == "--set"]
    held(lambda: resolve(str(folder / "s.yaml"), given_on_line))


@settings(max_examples=80)
@given(seed=SEEDS)
def test_hostile_grid_is_read_or_refused(seed: int) -> None:
    rng = Random(seed)
    axes = [grids._axis(rng) for _ in range(rng.choice((1, 2, 3)))]
    held(lambda: size(parse_axes(axes)))
    held(lambda: sample(parse_axes(axes), rng.choice((1, 7, 100_001))))


@settings(max_examples=200)
@given(seed=SEEDS)
def test_hostile_sweep_section_is_read_or_refused(seed: int) -> None:
    rng = Random(seed)
    section = {rng.choice(grids._SHORT): grids._listed(rng) for _ in range(rng.choice((1, 2)))}
    held(lambda: section_axes(section, "s.yaml", "sweep.grid"))


@settings(max_examples=80)
@given(seed=SEEDS)
def test_hostile_config_is_sized_or_refused(folder: Path, seed: int) -> None:
    rng = Random(seed)
    values, notes = configs._config(rng)
    (folder / "config.json").write_bytes(configs._bytes(rng, values, notes))
    held(lambda: read_config(str(folder / "config.json")))


@pytest.mark.parametrize("name", ["case", "case-value"])
@settings(max_examples=60)
@given(seed=SEEDS)
def test_hostile_case_file_is_read_or_refused(name: str, folder: Path, seed: int) -> None:
    cases.GENERATORS[name](Random(seed), folder)
    held(lambda: read_cases(str(folder / "cases.yaml")))


# What the fuzzing found


@pytest.mark.parametrize(
    ("content", "mend"),
    [
        ("a: [1, 2", "close the bracket, and put commas between values"),
        ("a: b: c", "see the indentation of this line, and put a text with ': ' in it into quotes"),
        ("a: @x", "put the value into quotes"),
        ("a: 'x", "close the quote"),
        ("a:\n\tb: 1", "a line begins with blanks, not with tabs"),
        ('a: "\\q"', "write \\\\ for a backslash, or use single quotes"),
        ("a: 1\n b: 2", "see the indentation"),
        ("a" * 300 + ": 1", "the most is 200 characters"),
    ],
)
def test_parse_bad_yaml_says_the_mend(content: str, mend: str) -> None:
    with pytest.raises(InputError) as caught:
        text.parse(content, "s.yaml")
    assert mend in caught.value.problems[0].mend


@pytest.mark.parametrize(
    ("assignment", "what"),
    [
        ("a" * 300 + "=1", "is not PATH=VALUE"),
        (".".join("a" * 40) + "=1", "is not PATH=VALUE"),
        ("\udcff=1", "is not UTF-8 text"),
        ("name=\udcff", "is not UTF-8 text"),
        ("name=" + "x" * (2 << 20), "is longer than 1 MiB"),
    ],
)
def test_set_what_no_path_is_refused_briefly(assignment: str, what: str) -> None:
    values: dict[str, object] = {}
    paths, problems = apply(values, [assignment])
    assert not paths
    assert not values
    (problem,) = problems
    assert what in problem.what
    assert problem.mend
    assert len(str(problem).encode()) < 300


def test_set_more_than_anybody_means_is_one_problem() -> None:
    paths, problems = apply({}, [f"a{n}=1" for n in range(40_000)])
    assert not paths
    assert [problem.what for problem in problems] == ["40,000 values are set"]


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ("slo: {" + ", ".join(f"k{n}: 1s" for n in range(5000)) + "}", "slo"),
        ("classes: {" + ", ".join(f"k{n}: {{}}" for n in range(5000)) + "}", "classes"),
    ],
)
def test_section_of_many_keys_is_one_problem(more: str, path: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve_text(CHATBOT.replace("slo:", "# slo:") + more)
    assert [(problem.path, problem.what) for problem in caught.value.problems] == [(path, "too long")]


def test_file_of_many_unknown_keys_tells_the_first_of_them() -> None:
    with pytest.raises(InputError) as caught:
        resolve_text(CHATBOT + "\n".join(f"k{n}: 1" for n in range(5000)))
    assert len(caught.value.problems) == 500


def test_tell_many_long_problems_is_brief(capsys: pytest.CaptureFixture[str]) -> None:
    tell(InputError([Problem("x" * 10_000, "mend it")] * 60))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "60 problems:"
    assert lines[-1] == "  and 10 more; mend these first"
    assert len(lines) == 52
    assert max(map(len, lines)) < 2100
    assert lines[1].endswith("; mend it")


def test_rate_below_any_arrival_is_told_at_its_line() -> None:
    written = CHATBOT.replace("rate: 20 req/min", "rate: 1e-10 req/s")
    with pytest.raises(InputError, match=r"s.yaml:\d+: workload.arrival.rate = .* too small; the least is 1e-09 req/s"):
        resolve_text(written, "s.yaml")


def test_workload_that_cannot_be_built_names_the_file(folder: Path) -> None:
    from simkv.scenario.build import workload_source

    written = CHATBOT.replace("max_context: 30000", "max_context: 1000")
    with pytest.raises(InputError) as caught:
        workload_source(resolve_text(written, "s.yaml"), 0)
    (problem,) = caught.value.problems
    assert (problem.file, problem.path) == ("s.yaml", "workload.max_context")
    assert problem.mend


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes that have names are of POSIX")
def test_read_pipe_without_a_writer_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "config.json"
    os.mkfifo(pipe)
    with pytest.raises(NotRegular):
        read_bounded(pipe, 10)
    for call in (resolve, read_config, read_cases):
        with pytest.raises(InputError, match="it is a pipe, no regular file"):
            call(str(pipe))  # type: ignore[operator]


def test_read_bounded_file_has_one_byte_too_many(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert read_bounded(tmp_path / "x", 3) == b"1234"
    assert read_bounded(tmp_path / "x", 5) == b"12345"
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert len(read_bounded(tmp_path / "sparse", 1000)) == 1001


def test_long_text_in_config_takes_little_memory(tmp_path: Path) -> None:
    config = {"model_type": "llama", "x": "y" * (15 << 20), "hidden_size": -1}
    (tmp_path / "config.json").write_text(json.dumps(config))
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (700 << 20,) * 2)\n"
        "from simkv.errors import InputError\nfrom simkv.model.config import read_config\n"
        f"try: read_config({str(tmp_path)!r})\nexcept InputError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(str(tmp_path)), done.stderr


def test_sweep_of_a_name_too_long_is_refused() -> None:
    with pytest.raises(InputError, match="can't be read: File name too long"):
        read_sweep(Path("x" * 300))


def test_name_that_goes_in_a_circle_ends_with_two(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for verb in (["run"], ["hitrate"], ["validate", "--cases"], ["trace", "inspect"], ["sweep", "show"]):
        done = CliRunner().invoke(app, [*verb, str(loop)])
        assert done.exit_code == 2, (verb, done.output)
        assert "; " in done.output


def test_model_of_states_alone_has_no_pages(tmp_path: Path) -> None:
    config = {
        "model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24, "state_size": 16,
        "conv_kernel": 4, "expand": 2, "vocab_size": 50280, "max_position_embeddings": 2048,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = read_config(str(tmp_path))
    with pytest.raises(InputError, match="keeps states only, and no KV cache; choose a model with attention"):
        page_layout(model)


@pytest.mark.parametrize("out", ["", ".", ".."])
def test_out_working_directory_is_not_replaced(out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    done = CliRunner().invoke(app, ["run", str(write_scenario(tmp_path)), "--out", out])
    assert done.exit_code == 2
    assert "the working directory is there, and a result takes a folder's place; pick another folder" in done.output
    assert inside.is_dir()
    assert not list(inside.iterdir())


def write_scenario(folder: Path) -> Path:
    """Write a scenario that runs at once."""
    file = folder / "s.yaml"
    file.write_text(bases()["speed-100k"])
    return file


@pytest.mark.parametrize(
    "workload",
    ["", "workload: {kind: batch, size: 1, interval: 1us, requests: 9, prompt_tokens: 1, output_tokens: 1}"],
)
def test_warm_tiers_of_ages_are_refused_before_anything_passes(workload: str) -> None:
    written = bases()["speed-100k"].replace("run: {", "tiers: {dram: {capacity: 9GiB}}\nrun: {warm_tiers: 1e7s, ")
    if workload:
        written = re.sub(r"(?ms)^workload:.*?(?=^\w)", f"{workload}\n", written)
    with pytest.raises(InputError, match=r"run.warm_tiers = .*more than 2,000,000 requests would pass untimed"):
        resolve_text(written, "s.yaml")


def test_plan_whose_first_run_takes_long_says_so_and_how_long_when_it_has_ended(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from simkv.cli.planning import _Teller
    from simkv.cli.progress import Progress

    teller = _Teller(Progress())
    teller._start_s -= 60
    for done in (0, 0, 1, 0, 1):
        teller("confirming", done, 2)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "this plan takes long: confirming, 0 of 2 runs after 60 s; Ctrl-C keeps what is finished"
    assert second.endswith("1 of 2 runs after 60 s, 60 s more for these; Ctrl-C keeps what is finished")


def test_plan_that_takes_long_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    from simkv.cli.planning import _Teller
    from simkv.cli.progress import Progress

    teller = _Teller(Progress())
    teller("weighing", 1, 40)
    assert capsys.readouterr().err == ""
    teller._start_s -= 60
    teller("weighing", 2, 40)
    teller("weighing", 3, 40)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "this plan takes long: weighing, 2 of 40 runs after 60 s, 19 min more for these; Ctrl-C keeps what is finished"
    ]
