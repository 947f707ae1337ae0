"""Workloads of clients: rates, burstiness and lengths as their files say, and wrong files refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from simkv.cli import app
from simkv.errors import InputError
from simkv.workload.clients import build_clients
from simkv.workload.clients.folder import client_files
from simkv.workload.clients.source import window_times
from simkv.workload.clients.windows import LEAST_SHAPE, Gaps, Window, read_windows
from simkv.workload.request import PRIVATE_STREAM_BASE, Request

ROOT = Path(__file__).parents[1]
LENGTHS = {"0": {"input_tokens": "{100: 0.25, 200: 0.75}", "output_tokens": "{10: 1.0}"}}


@pytest.fixture
def pool(tmp_path: Path) -> Callable[..., Path]:
    """Write the files of clients into a folder: each a list of rows and a dataset."""

    def written(*clients: tuple[list[str], dict[str, Any]]) -> Path:
        folder = tmp_path / "pool"
        folder.mkdir(exist_ok=True)
        for number, (rows, dataset) in enumerate(clients):
            (folder / f"chunk-{number}-trace.csv").write_text("\n".join(rows) + "\n")
            (folder / f"chunk-{number}-dataset.json").write_text(json.dumps(dataset))
        return folder

    return written


def made(path: Path, seed: int = 0, duration_s: float | None = None, **spec: Any) -> list[Request]:
    return list(build_clients({"path": str(path), **spec}, seed, duration_s).arrivals())


def told(requests: list[Request]) -> list[tuple[object, ...]]:
    return [(r.id, r.arrival_s, r.prompt_tokens, r.output_tokens, r.spans) for r in requests]


TWO = (
    (["0,0.5,2,Gamma,0.25,8", "600,0.1,1,,0,0", "1200,0,0,,0,0"], LENGTHS),
    (["0,0.2,1.5,Weibull,0.7,4", "600,1,1.5,Weibull,0.7,1", "1200,0.3,1,Gamma,1,3"], LENGTHS),
)


# ---- laws -------------------------------------------------------------------------------------


def test_clients_arrive_in_order_with_ids_that_rise(pool: Callable[..., Path]) -> None:
    requests = made(pool(*TWO))
    assert [r.id for r in requests] == list(range(len(requests)))
    assert all(a.arrival_s <= b.arrival_s for a, b in pairwise(requests))
    assert all(r.spans == ((PRIVATE_STREAM_BASE + r.id, 0, r.prompt_tokens + r.output_tokens),) for r in requests)


def test_clients_keep_the_rate_of_every_window(pool: Callable[..., Path]) -> None:
    times = np.array([r.arrival_s for r in made(pool(*TWO))])
    counts = np.histogram(times, bins=(0, 600, 1200, 1800))[0]
    assert counts.tolist() == [round(600 * rate) for rate in (0.5 + 0.2, 0.1 + 1.0, 0.3)]


def test_clients_are_the_same_for_the_same_seed_only(pool: Callable[..., Path]) -> None:
    path = pool(*TWO)
    assert told(made(path, 3)) == told(made(path, 3))
    assert told(made(path, 3)) != told(made(path, 4))


def test_clients_source_starts_over_at_each_call(pool: Callable[..., Path]) -> None:
    source = build_clients({"path": str(pool(*TWO))}, 1)
    assert told(list(source.arrivals())) == told(list(source.arrivals()))


def test_clients_are_merged_lazily(pool: Callable[..., Path]) -> None:
    """A window of a thousand hours is no reason to wait for the second request."""
    long = ["0,1,1,Gamma,1,1", *(f"{k * 600},1,1,Gamma,1,1" for k in range(1, 6000))]
    assert len(list(islice(build_clients({"path": str(pool((long, LENGTHS)))}, 0).arrivals(), 2))) == 2


def test_clients_one_more_leaves_the_others_as_they_were(pool: Callable[..., Path]) -> None:
    alone = [(r.arrival_s, r.prompt_tokens) for r in made(pool(TWO[0]))]
    both = [(r.arrival_s, r.prompt_tokens) for r in made(pool(*TWO))]
    rest = iter(both)
    assert all(request in rest for request in alone), "in the same order"
    assert len(both) > len(alone)


def test_clients_a_later_start_is_the_same_recording_cut_off(pool: Callable[..., Path]) -> None:
    path = pool(*TWO)
    whole = [(r.arrival_s, r.prompt_tokens) for r in made(path)]
    cut = [(r.arrival_s, r.prompt_tokens) for r in made(path, start=300.0, duration=700.0)]
    assert cut == [(pytest.approx(t - 300), p) for t, p in whole if 300 <= t < 1000]


def test_clients_end_at_requests_or_duration(pool: Callable[..., Path]) -> None:
    path = pool(*TWO)
    assert len(made(path, requests=17)) == 17
    assert made(path, duration_s=250.0)[-1].arrival_s < 250
    assert told(made(path, duration_s=250.0)) == told(made(path))[: len(made(path, duration_s=250.0))]


@pytest.mark.parametrize(
    ("spec", "duration_s"),
    [({}, None), ({"requests": 20}, None), ({"start": 450.0, "duration": 300.0, "rate_scale": 2.0}, None), ({}, 700.0)],
)
def test_clients_tell_about_how_many_requests_to_expect(
    pool: Callable[..., Path], spec: dict[str, Any], duration_s: float | None
) -> None:
    source = build_clients({"path": str(pool(*TWO)), **spec}, 0, duration_s)
    assert source.expected_requests() == pytest.approx(len(list(source.arrivals())), rel=0.15)


def test_clients_rate_scale_multiplies_counts(pool: Callable[..., Path]) -> None:
    path = pool(*TWO)
    assert len(made(path, rate_scale=3.0)) == pytest.approx(3 * len(made(path)), abs=2)


def test_clients_a_fraction_of_a_request_comes_as_often_as_it_says(pool: Callable[..., Path]) -> None:
    path = pool((["0,0.0005,1,Gamma,1,1"], LENGTHS))
    counts = [len(made(path, seed)) for seed in range(400)]
    assert set(counts) == {0, 1}
    assert np.mean(counts) == pytest.approx(0.3, abs=3 * (0.21 / 400) ** 0.5)


@pytest.mark.parametrize(
    ("gaps", "shape", "cv"),
    [("Gamma", 0.25, 2.0), ("Gamma", 4.0, 0.5), ("Weibull", 0.5, 5**0.5), ("Weibull", 2.0, 0.5227), ("", 0.0, 1.0)],
)
def test_window_times_have_the_burstiness_of_their_shape(gaps: Any, shape: float, cv: float) -> None:
    times = window_times(Window(1000.0, 1600.0, 200.0, gaps, shape), 1.0, np.random.default_rng(1))
    assert len(times) == 120_000
    assert times[0] >= 1000 and times[-1] <= 1600
    steps = np.diff(times)
    assert steps.std() / steps.mean() == pytest.approx(cv, rel=0.03)


def test_clients_lengths_follow_their_distributions(pool: Callable[..., Path]) -> None:
    dataset = {
        "0": LENGTHS["0"],
        "600": {"input_tokens": "{}", "output_tokens": "{}"},
        "1200": {"input_tokens": "{0: 0.5, 7: 0.5}", "output_tokens": "{3: 0.5, 5: 0.5}"},
    }
    requests = made(pool(([f"{k * 600},10,1,Gamma,1,0.1" for k in range(3)], dataset)))
    prompts = [[r.prompt_tokens for r in requests if k * 600 <= r.arrival_s < (k + 1) * 600] for k in range(3)]
    for stretch in prompts[:2]:
        assert set(stretch) == {100, 200}, "a stretch without distributions keeps those before it"
        assert np.mean(stretch) == pytest.approx(175, abs=3 * (1875 / 6000) ** 0.5)
    assert set(prompts[2]) == {7}, "a prompt has a token at least"
    assert {r.output_tokens for r in requests if r.arrival_s >= 1200} == {3, 5}


def test_clients_media_count_as_prompt_tokens(pool: Callable[..., Path]) -> None:
    dataset = {
        "0": {
            "text_tokens": "{10: 1.0}",
            "image_count": "{0: 0.5, 2: 0.5}",
            "image_tokens": "{100: 1.0}",
            "audio_count": "{0: 1.0}",
            "audio_tokens": "{0: 1.0}",
            "output_tokens": "{5: 1.0}",
        }
    }
    requests = made(pool((["0,1,1,Gamma,1,1"], dataset)))
    assert {r.prompt_tokens for r in requests} == {10, 210}


# ---- files ------------------------------------------------------------------------------------


def test_clients_of_a_file_is_that_client_alone(pool: Callable[..., Path]) -> None:
    path = pool(*TWO)
    by_trace, by_dataset = (made(path / f"chunk-1-{name}") for name in ("trace.csv", "dataset.json"))
    assert told(by_trace) == told(by_dataset)
    assert len(by_trace) == 120 + 600 + 180


def test_clients_are_taken_in_order_of_their_number(pool: Callable[..., Path]) -> None:
    path = pool(*TWO, *TWO, *TWO, *TWO, *TWO, *TWO)
    (path / "README.md").write_text("not a client")
    assert [files.number for files in client_files(path)] == list(range(12))


GOOD_ROW = "0,1,1,Gamma,1,1"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("600,1,1,Gamma,1", "has 5 fields, not 6"),
        ("600,x,1,Gamma,1,1", "rate = x: is not a number"),
        ("600,-1,1,Gamma,1,1", "rate = -1: must be a finite number"),
        ("600,nan,1,Gamma,1,1", "rate = nan: must be a finite number"),
        ("600,1,1,Pareto,1,1", "kind = Pareto: is not known; valid: Gamma, Weibull"),
        ("600,1,1,Gamma,0,1", "shape = 0: must be at least 0.01"),
        ("600,1,1,Weibull,1e-5,1", "shape = 1e-5: must be at least 0.01"),
        ("1e18,1,1,Gamma,1,1", "start_s = 1e18: is after 1e+10 s"),
        ("0,1,1,Gamma,1,1", "start_s = 0: is not after the row above"),
    ],
)
def test_clients_windows_refuse_a_bad_row_with_its_line(tmp_path: Path, row: str, said: str) -> None:
    path = tmp_path / "chunk-0-trace.csv"
    path.write_text(f"{GOOD_ROW}\n{row}\n")
    with pytest.raises(InputError) as caught:
        read_windows(path)
    assert f"{path}:2: " in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("gaps", ["Gamma", "Weibull", ""])
@pytest.mark.parametrize("shape", [LEAST_SHAPE, 1e10])
def test_clients_window_times_of_any_shape_stay_in_their_window_in_order(gaps: Gaps, shape: float) -> None:
    for seed in range(20):
        times = window_times(Window(600.0, 1200.0, 1.0, gaps, shape), 1.0, np.random.default_rng(seed))
        assert len(times) == 600
        assert 600 <= times[0] <= times[-1] <= 1200
        assert (np.diff(times) >= 0).all()


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"input_tokens": "{1: 1}"}, "0.output_tokens: is missing"),
        ({"output_tokens": "{1: 1}"}, "the length of prompts isn't known"),
        ({"input_tokens": "{1: 1}", "output_tokens": "{1, 2}"}, "has no colon"),
        ({"input_tokens": "{1: 1}", "output_tokens": "{x: 1}"}, "is no distribution"),
        ({"input_tokens": "{1: 1}", "output_tokens": "{1.5: 1}"}, "1.5 is no number of tokens"),
        ({"input_tokens": "{1: 1}", "output_tokens": "{1e400: 1}"}, "1e400 is no number of tokens"),
        ({"input_tokens": "{1: 1}", "output_tokens": "{nan: 1}"}, "nan is no number of tokens"),
        ({"input_tokens": "{1: 1}", "output_tokens": "{1: -1}"}, "-1 is no probability"),
        ({"input_tokens": "{1: 1}", "output_tokens": "{1: nan}"}, "nan is no probability"),
        ({"input_tokens": "{1: 1}", "output_tokens": "{0: 1}"}, "has no probability of 1 token or more"),
        ({"input_tokens": "{1: 1}", "output_tokens": "__import__('os').getcwd()"}, "is no distribution"),
        ({"input_tokens": {"1": 1}, "output_tokens": "{1: 1}"}, "is no text of a distribution"),
        ({"text_tokens": "{1: 1}", "image_count": "{1: 1}", "output_tokens": "{1: 1}"}, "the tokens of one"),
    ],
)
def test_clients_dataset_refuses_what_is_no_distribution(
    pool: Callable[..., Path], columns: dict[str, Any], said: str
) -> None:
    path = pool(([GOOD_ROW], {"0": columns}))
    with pytest.raises(InputError) as caught:
        made(path)
    assert str(path / "chunk-0-dataset.json") in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "is no dataset of a client"),
        ('{"0": 5}', "is no dataset of a client"),
        ('{"later": {}}', "is no time in seconds"),
        ('{"0": {"input_tokens": "{}", "output_tokens": "{}"}}', "has no distribution of lengths"),
        ("", "is empty"),
        ("version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer"),
    ],
)
def test_clients_dataset_refuses_another_file(pool: Callable[..., Path], text: str, said: str) -> None:
    path = pool(([GOOD_ROW], LENGTHS))
    (path / "chunk-0-dataset.json").write_text(text)
    with pytest.raises(InputError, match=said):
        made(path)


def test_clients_without_their_counterpart_are_refused(pool: Callable[..., Path]) -> None:
    path = pool(*TWO)
    (path / "chunk-1-dataset.json").unlink()
    with pytest.raises(InputError, match=r"chunk-1-dataset.json: does not exist; chunk-1-trace.csv needs it"):
        made(path)


def test_clients_of_a_folder_without_clients_says_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "m-small").mkdir()
    with pytest.raises(InputError, match=r"has no files of clients; .* there is m-small/"):
        made(tmp_path)


def test_clients_that_send_nothing_then_says_when_they_do(pool: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match="they send from 0 s to 1200 s"):
        made(pool(TWO[0]), start=5000.0)


def test_clients_too_many_for_a_window_are_refused(pool: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=r"lower workload\.rate_scale"):
        made(pool(*TWO), rate_scale=1e9)


# ---- public clients and scenarios -------------------------------------------------------------


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "start_s", "rate"),
    [("language/m-small", 0.0, 19.05333), ("reason/deepseek-r1", 7200.0, None), ("multimodal/mm-image", 0.0, 0.805)],
)
def test_clients_of_servegen_keep_their_recorded_rates(
    shared: Path, name: str, start_s: float, rate: float | None
) -> None:
    folder = shared / "traces" / "servegen" / name
    (files,) = client_files(folder)
    windows = [w for w in read_windows(files.trace) if start_s <= w.start_s < start_s + 3600]
    assert rate is None or windows[0].rate_per_s == pytest.approx(rate)
    requests = made(folder, start=start_s, duration=3600.0)
    assert len(requests) == round(sum(w.rate_per_s * 600 for w in windows))
    assert all(r.prompt_tokens > 0 and r.output_tokens > 0 for r in requests)


@pytest.mark.shared
def test_clients_of_servegen_have_the_mean_lengths_of_their_distributions(shared: Path) -> None:
    folder = shared / "traces" / "servegen" / "language" / "m-small"
    columns = json.loads((folder / "chunk-14-dataset.json").read_text())["0"]
    requests = made(folder, duration=600.0, rate_scale=3.0)
    for key, values in (("input_tokens", "prompt_tokens"), ("output_tokens", "output_tokens")):
        pairs = [item.split(":") for item in columns[key].strip("{}").split(",")]
        tokens, shares = np.array(pairs, dtype=float).T
        mean = (tokens * shares).sum() / shares.sum()
        spread = ((tokens - mean) ** 2 * shares).sum() / shares.sum()
        drawn = np.mean([getattr(r, values) for r in requests])
        assert drawn == pytest.approx(mean, abs=4 * (spread / len(requests)) ** 0.5)


@pytest.mark.shared
def test_clients_missing_half_of_a_client_is_named(shared: Path) -> None:
    with pytest.raises(InputError, match=r"chunk-112-dataset.json: does not exist"):
        made(shared / "traces" / "servegen" / "language" / "m-large")


def run(tmp_path: Path, workload: str, *more: str) -> Any:
    scenario = ROOT / "scenarios" / "chatbot.yaml"
    args = ["run", str(scenario), "--set", f"workload={workload}", "--out", str(tmp_path / "out"), "--json", *more]
    return CliRunner().invoke(app, args)


def test_clients_scenario_runs_and_hashes_by_content(pool: Callable[..., Path], tmp_path: Path) -> None:
    path = pool(*TWO)
    moved = tmp_path / "elsewhere"
    shutil.copytree(path, moved)
    first, second = (
        json.loads(run(tmp_path, f"{{kind: clients, path: {where}, requests: 40}}").stdout) for where in (path, moved)
    )
    assert first["requests"]["finished"] == 40
    assert first["scenario_hash"] == second["scenario_hash"]
    (moved / "chunk-1-trace.csv").write_text(TWO[1][0][0].replace("0.2", "0.3") + "\n")
    third = json.loads(run(tmp_path, f"{{kind: clients, path: {moved}, requests: 40}}").stdout)
    assert third["scenario_hash"] != first["scenario_hash"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("path: nowhere", 'workload.path = "nowhere": no such file'),
        ("path: ., rate_scale: 0", "workload.rate_scale"),
        ("path: ., start: 5", "workload.start"),
        ("path: ., mix: {a: 1}", "workload.mix"),
        ("requests: 3", "workload.path"),
    ],
)
def test_clients_scenario_refuses_bad_keys(tmp_path: Path, keys: str, said: str) -> None:
    result = run(tmp_path, f"{{kind: clients, {keys}}}")
    assert result.exit_code == 2
    assert said in result.stderr
