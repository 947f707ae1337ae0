"""What ``simkv trace inspect`` says: figures worked out by hand, of public traces, and of wrong files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from simkv.cli import app
from simkv.workload.burstiness import arrival_figures
from simkv.workload.inspect import LengthCounts, inspect_requests, shareable_tokens
from simkv.workload.readers import ReadReport, open_trace
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Spans

ROOT = Path(__file__).parents[1]


def simkv(*args: str | Path) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def inspected(*args: str | Path) -> dict[str, Any]:
    result = simkv("trace", "inspect", *args, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def row(timestamp: int, length: int, ids: list[int], output: int = 10) -> str:
    return json.dumps({"timestamp": timestamp, "input_length": length, "output_length": output, "hash_ids": ids})


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(*lines: str, name: str = "trace.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return written


# ---- figures ----------------------------------------------------------------------------------


def test_inspect_of_three_rows_gives_the_figures_worked_out_by_hand(write: Callable[..., Path]) -> None:
    answer = inspected(write(row(0, 1000, [7, 8]), row(2000, 1536, [7, 8, 9], 30), row(6000, 100, [7], 20)))
    assert answer["format"] == "mooncake"
    assert answer["requests"] == 3
    assert answer["span_s"] == 6.0
    assert answer["prompt_tokens"] == {
        "total": 2636,
        "mean": 2636 / 3,
        "p50": 1000,
        "p95": 1536,
        "p99": 1536,
        "max": 1536,
    }
    assert answer["output_tokens"]["total"] == 60
    cache = answer["infinite_cache"]
    assert (cache["seen_tokens"], cache["hashed_tokens"]) == (1000 + 100, 2636)
    assert (cache["block_hits"], cache["block_references"], cache["unique_blocks"]) == (2 + 1, 2 + 3 + 1, 3)
    assert cache["token_hit_rate"] == 1100 / 2636
    assert cache["block_hit_rate"] == 0.5
    assert answer["reuse"]["requests"] == 2
    assert answer["arrivals"]["rate_per_s"] == pytest.approx(1 / 3)
    assert answer["arrivals"]["gap_cv"] == pytest.approx(1 / 3)
    assert answer["irregularities"] == []


def test_inspect_counts_a_hit_only_as_a_leading_run(write: Callable[..., Path]) -> None:
    answer = inspected(write(row(0, 1024, [1, 2]), row(1, 1024, [3, 2])))
    assert answer["infinite_cache"]["seen_tokens"] == 0


def test_inspect_counts_a_whole_repeat_whole(write: Callable[..., Path]) -> None:
    """The engine would compute one token of it again; the trace's own hit has no such rule."""
    answer = inspected(write(row(0, 600, [1, 2]), row(1, 600, [1, 2])))
    assert answer["infinite_cache"]["seen_tokens"] == 600
    assert answer["infinite_cache"]["block_hit_rate"] == 0.5


def test_inspect_of_dropped_rows_says_how_many_and_why(write: Callable[..., Path]) -> None:
    path = write(row(0, 100, [1], 0), row(1, 100, [1]), row(2, 100, [1], 0))
    answer = inspected(path)
    assert (answer["requests"], answer["dropped"]) == (1, {"no_output": 2})
    (odd,) = answer["irregularities"]
    assert (odd["code"], odd["count"], odd["dropped"], odd["first_line"]) == ("no_output", 2, True, 1)
    shown = simkv("trace", "inspect", path).stdout
    assert "1 (2 rows left out, see below)" in shown
    assert "output_length is 0" in shown


def test_inspect_without_content_gives_no_hit_rate(write: Callable[..., Path]) -> None:
    path = write(*(json.dumps({"arrival_s": t, "prompt_tokens": 5, "output_tokens": 5}) for t in range(3)))
    assert set(inspected(path)["infinite_cache"].values()) == {None}
    assert "unknown: the format says nothing" in simkv("trace", "inspect", path).stdout


def test_inspect_limit_takes_the_first_rows(write: Callable[..., Path]) -> None:
    path = write(row(0, 1000, [7, 8]), row(2000, 1536, [7, 8, 9]), row(6000, 100, [7]))
    assert inspected(path, "--limit", "2")["requests"] == 2


def test_inspect_of_one_row_has_no_arrival_figures(write: Callable[..., Path]) -> None:
    path = write(row(0, 1000, [7, 8]))
    answer = inspected(path)
    assert answer["arrivals"]["rate_per_s"] is None
    assert simkv("trace", "inspect", path).exit_code == 0


def test_inspect_of_rows_that_are_all_dropped_answers(write: Callable[..., Path]) -> None:
    path = write(row(0, 100, [1], 0))
    answer = inspected(path)
    assert (answer["requests"], answer["span_s"], answer["prompt_tokens"]["mean"]) == (0, 0.0, None)
    assert simkv("trace", "inspect", path).exit_code == 0


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200))
def test_length_counts_percentiles_are_those_by_nearest_rank(values: list[int]) -> None:
    counts = LengthCounts()
    for value in values:
        counts.add(value)
    figures = counts.figures()
    sample = np.array(values)
    assert figures["mean"] == pytest.approx(sample.mean())
    for q in (50, 95, 99):
        assert figures[f"p{q}"] == np.percentile(sample, q, method="inverted_cdf")


@given(st.lists(st.integers(1, 20), min_size=3, max_size=60), st.lists(st.integers(1, 20), min_size=3, max_size=60))
def test_length_counts_distance_is_that_of_kolmogorov_and_smirnov(one: list[int], other: list[int]) -> None:
    from scipy.stats import ks_2samp

    a, b = LengthCounts(), LengthCounts()
    for counts, values in ((a, one), (b, other)):
        for value in values:
            counts.add(value)
    assert a.distance(b) == pytest.approx(ks_2samp(one, other, method="asymp").statistic)
    assert a.distance(a) == 0


def test_arrival_figures_of_a_poisson_process_are_near_one() -> None:
    times = np.cumsum(np.random.default_rng(5).exponential(0.1, 40_000))
    figures = arrival_figures(times)
    assert figures["rate_per_s"] == pytest.approx(10, rel=0.03)
    assert figures["gap_cv"] == pytest.approx(1, abs=0.03)
    assert [c["index_of_dispersion"] for c in figures["counts"]] == pytest.approx([1, 1, 1], abs=0.35)


def test_arrival_figures_of_a_clock_have_no_dispersion() -> None:
    figures = arrival_figures(np.arange(1000) / 4 + 0.125)
    assert figures["gap_cv"] == pytest.approx(0, abs=1e-9)
    assert figures["counts"][0]["index_of_dispersion"] == pytest.approx(0, abs=1e-9)
    assert figures["counts"][0]["peak_to_mean"] == 1


def test_arrival_figures_count_empty_windows_too() -> None:
    figures = arrival_figures([0.0, 0.0, 0.0, 0.0, 20.0])
    second = figures["counts"][0]
    assert (second["windows"], second["mean"], second["peak"]) == (20, 4 / 20, 4)
    assert second["index_of_dispersion"] == pytest.approx((16 / 20 - 0.04) / 0.2)


def test_arrival_figures_of_any_order_are_the_same() -> None:
    times = [5.0, 1.0, 3.0, 90.0]
    assert arrival_figures(times) == arrival_figures(sorted(times))


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        (((0, 0, 100), (PRIVATE_STREAM_BASE, 0, 50)), 100),
        (((0, 0, 150),), 120),
        (((PRIVATE_STREAM_BASE, 0, 150),), 0),
        (((0, 0, 10), (PRIVATE_STREAM_BASE, 0, 40), (1, 0, 100)), 10),
    ],
)
def test_shareable_tokens_are_the_leading_ones_of_the_prompt(spans: Spans, expected: int) -> None:
    assert shareable_tokens(Request(0, 0.0, 120, 30, spans)) == expected


def test_inspect_interrupted_keeps_what_was_read() -> None:
    def some() -> Any:
        for i in range(5):
            yield Request(i, float(i), 10, 10, ((PRIVATE_STREAM_BASE + i, 0, 20),))
        raise KeyboardInterrupt

    inspection = inspect_requests(some(), ReadReport("any"))
    assert inspection.interrupted
    assert inspection.answer()["requests"] == 5


def test_inspect_ctrl_c_prints_what_was_read_and_exits_130(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    lines = "".join(row(t, 600, [1, 2]) + "\n" for t in range(200_000))
    path.write_text(lines)
    code = (
        "import os, signal, simkv.workload.tick as t\n"
        "t._EVERY = 1000\n"
        "from simkv.workload.readers.mooncake import MooncakeReader as M\n"
        "old = M.read\n"
        "def read(self, path, report):\n"
        "    for k, request in enumerate(old(self, path, report)):\n"
        "        if k == 5000: os.kill(os.getpid(), signal.SIGINT)\n"
        "        yield request\n"
        "M.read = read\n"
        "from simkv.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "trace", "inspect", str(path), "--json"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 130
    answer = json.loads(done.stdout)
    assert answer["interrupted"] is True
    assert answer["requests"] == 6000, "the next moment at which it looks"
    assert done.stderr == "interrupted: these are the first 6,000 requests\n"


LOG = ("ts,in,out,chat", "0,10,5,a", "50,7,7,b", "20,40,5,a")


def test_inspect_columns_name_those_of_a_log(write: Callable[..., Path]) -> None:
    path = write(*LOG, name="log.csv")
    names = "arrival=ts, prompt_tokens=in,output_tokens=out,session=chat"
    answer = inspected(path, "--columns", names, "--arrival-unit", "ms")
    assert (answer["format"], answer["requests"], answer["span_s"]) == ("log", 3, 0.05)
    assert answer["infinite_cache"]["seen_tokens"] == 15, "the former prompt and its answer"
    assert [(o["code"], o["first"], o["first_line"]) for o in answer["irregularities"]] == [
        ("out_of_order", "on line 4", 4)
    ]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("arrival", "--columns = arrival: is not NAME=COLUMN; write --columns arrival=ts"),
        ("arrival=ts,", "is not NAME=COLUMN"),
        ("arrival=ts,arrival=in", "names arrival twice"),
        ("when=ts", "--columns = 'when': is not known; valid: arrival"),
        ("arrival=when", "say which it is with --columns arrival=NAME"),
    ],
)
def test_inspect_columns_that_make_no_sense_are_refused(write: Callable[..., Path], columns: str, said: str) -> None:
    result = simkv("trace", "inspect", write(*LOG, name="log.csv"), "--columns", columns)
    assert result.exit_code == 2
    assert said in result.stderr


# ---- public traces ----------------------------------------------------------------------------

HITS = {
    "mooncake/conversation_trace.jsonl": (0.3736, 0.3664),
    "mooncake/arxiv_mooncake_trace_head1000.jsonl": (0.3907, 0.3799),
    "qwen_bailian/qwen_traceA_blksz_16_sample40.jsonl": (0.1347, 0.1342),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", HITS)
def test_inspect_infinite_cache_is_that_of_the_index(shared: Path, name: str) -> None:
    cache = inspected(shared / "traces" / name)["infinite_cache"]
    assert (cache["token_hit_rate"], cache["block_hit_rate"]) == pytest.approx(HITS[name], abs=5e-5)


@pytest.mark.shared
def test_inspect_mooncake_conversation_has_every_figure_of_the_index(shared: Path) -> None:
    answer = inspected(shared / "traces/mooncake/conversation_trace.jsonl")
    assert answer["requests"] == 12_031
    assert round(answer["span_s"]) == 3537
    lengths = ("p50", "p95", "max")
    assert [answer["prompt_tokens"][k] for k in lengths] == [6_909, 39_552, 126_195]
    assert [answer["output_tokens"][k] for k in lengths] == [350, 698, 2_000]
    assert [round(answer[k]["mean"]) for k in ("prompt_tokens", "output_tokens")] == [12_035, 343]
    cache = answer["infinite_cache"]
    assert (cache["unique_blocks"], cache["block_references"], cache["block_tokens"]) == (182_790, 288_500, 512)
    assert answer["arrivals"]["distinct_times"] == 1_180


@pytest.mark.shared
def test_inspect_of_sessions_has_no_arrivals_of_its_own(shared: Path) -> None:
    folder = shared / "traces/claude_code_sessions"
    answer = inspected(folder)
    assert (answer["requests"], answer["closed_loop"], answer["arrivals"]) == (1_006, True, None)
    assert answer["reuse"]["sessions"] == 43
    assert round(answer["prompt_tokens"]["mean"]) == 98_133
    assert answer["infinite_cache"]["token_hit_rate"] == pytest.approx(0.918, abs=5e-4)
    assert "in a closed loop" in simkv("trace", "inspect", folder).stdout


@pytest.mark.shared
def test_inspect_text_names_the_figures_people_look_for(shared: Path) -> None:
    shown = simkv("trace", "inspect", shared / "traces/mooncake/conversation_trace.jsonl").stdout
    for part in ("mooncake, hashed in blocks of 512 tokens", "12,031", "37.36%", "36.64%", "182,790 of 288,500"):
        assert part in shown


@pytest.mark.shared
def test_inspect_every_sample_is_read_or_refused_by_name(shared: Path) -> None:
    """An unknown format would be a shrug; each of these has a name."""
    answers = {
        path.name: simkv("trace", "inspect", path) for path in sorted((shared / "traces/other_formats").iterdir())
    }
    assert len(answers) >= 13
    read = {name for name, result in answers.items() if result.exit_code == 0}
    assert read >= {"mooncake_tiny.jsonl", "mooncake_trace_tiny.jsonl", "inference-perf_trace.csv"}
    for name in answers.keys() - read:
        assert answers[name].exit_code == 2, name
        assert "is not read" in answers[name].stderr, name


# ---- wrong files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("   \n\n", "is empty"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "is a Git LFS pointer"),
        ("hello\n", "is of no known format"),
        ('{"simkv_workload":1}\n', "workload.kind: fitted"),
        ("0,19.05,5.3,Weibull,0.405,0.028\n", "workload.kind: clients"),
        ('{"0": {"input_tokens": "{1: 1.0}", "output_tokens": "{1: 1.0}"}}\n', "workload.kind: clients"),
        ('{"timestamp": 0, "input_length": -5, "output_length": 1, "hash_ids": []}\n', "is negative"),
    ],
)
def test_inspect_of_a_wrong_file_says_what_it_is(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text(text)
    result = simkv("trace", "inspect", path)
    assert result.exit_code == 2
    assert str(path) in result.stderr
    assert said in result.stderr
    assert result.stdout == ""


def test_inspect_of_no_file_names_the_nearest(write: Callable[..., Path]) -> None:
    path = write(row(0, 100, [1]))
    result = simkv("trace", "inspect", path.with_name("trace.json"))
    assert result.exit_code == 2
    assert "does not exist; there is trace.jsonl" in result.stderr


def test_inspect_with_an_unknown_format_lists_the_formats(write: Callable[..., Path]) -> None:
    result = simkv("trace", "inspect", write(row(0, 100, [1])), "--format", "mooncacke")
    assert result.exit_code == 2
    assert "--format = 'mooncacke': is not known; did you mean 'mooncake'?" in result.stderr


def test_inspect_uses_the_report_of_the_reader(write: Callable[..., Path]) -> None:
    source = open_trace(write(row(0, 100, [1])))
    report = ReadReport(source.reader.name)
    assert list(source.reader.read(source.path, report))
    assert report.block_tokens == 512


@pytest.mark.shared
@pytest.mark.parametrize("verb", ["inspect", "fit"])
def test_docs_show_what_the_command_prints(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    shutil.copy(shared / "traces/mooncake/conversation_trace.jsonl", tmp_path / "mooncake-conversation.jsonl")
    monkeypatch.chdir(tmp_path)
    command = f"<!-- simkv trace {verb} mooncake-conversation.jsonl -->\n```text\n"
    shown = (ROOT / "docs" / "traces.md").read_text("utf-8").split(command)[1].split("```")[0]
    assert simkv("trace", verb, "mooncake-conversation.jsonl").stdout == shown
