"""simkv's own trace format: what goes in comes out, whatever the source, and wrong files are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from simkv.cli import app
from simkv.errors import InputError
from simkv.workload.readers import ReadReport, open_trace
from simkv.workload.readers.base import SessionReader
from simkv.workload.readers.own import OwnReader
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Span
from simkv.workload.writer import header, new_file, plain, row
from simkv.workload.writer import write as write_lines
from tests.spans import merged

ROOT = Path(__file__).parents[1]
HEADER = '{"simkv_trace":1,"source_format":"any"}'
GOOD = '{"arrival_s":0.5,"prompt_tokens":10,"output_tokens":2,"spans":[[3,0,8]]}'


def simkv(*args: str | Path) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def inspected(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(simkv("trace", "inspect", path, "--json").stdout)
    return found


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(*lines: str) -> Path:
        path = tmp_path / "own.jsonl"
        path.write_text("\n".join(lines) + "\n")
        return path

    return written


def told(request: Request) -> tuple[object, ...]:
    return (
        *(request.id, request.arrival_s, request.prompt_tokens, request.output_tokens, request.spans),
        *(request.session, request.turn, request.cls, request.group),
    )


# ---- round trips ------------------------------------------------------------------------------

TRACES = [
    "mooncake/conversation_trace.jsonl",
    "mooncake/arxiv_mooncake_trace_head1000.jsonl",
    "qwen_bailian/qwen_traceA_blksz_16_sample40.jsonl",
    "azure/AzureLLMInferenceTrace_code.csv",
    "azure/AzureLLMInferenceTrace_conv.csv",
    "burstgpt/burstgpt_1_head400.csv",
    "burstgpt/burstgpt_3_head60.csv",
    "vllm_measured/sharegpt-llama-3.1-8b-300.jsonl",
    "other_formats/pi_request_trace.jsonl.gz",
    "other_formats/workload_me2_01_mixed.jsonl",
    "other_formats/inference-perf_trace.csv",
    "other_formats/mooncake_tiny.jsonl",
]
OF_THE_SOURCE = ("format", "dropped", "irregularities")
"""What only the source can tell: its format, and what of it was left out."""


@pytest.mark.shared
@pytest.mark.parametrize("name", TRACES)
def test_convert_keeps_every_figure_and_every_request(shared: Path, tmp_path: Path, name: str) -> None:
    source, out = shared / "traces" / name, tmp_path / "own.jsonl"
    result = simkv("trace", "convert", source, "--out", out)
    assert result.exit_code == 0, result.stderr
    before, after = inspected(source), inspected(out)
    assert after["format"] == "simkv"
    assert {k: v for k, v in after.items() if k not in OF_THE_SOURCE} == {
        k: v for k, v in before.items() if k not in OF_THE_SOURCE
    }
    assert list(map(told, open_trace(out).arrivals())) == list(map(told, open_trace(source).arrivals()))
    assert [p.name for p in tmp_path.iterdir()] == ["own.jsonl"]


SESSIONS = ["claude_code_sessions", "claude_code_sessions/trace_0019.json"]


@pytest.mark.shared
@pytest.mark.parametrize("name", SESSIONS)
def test_convert_keeps_what_every_turn_of_a_session_waits_for(shared: Path, tmp_path: Path, name: str) -> None:
    source, out = shared / "traces" / name, tmp_path / "own.jsonl"
    assert simkv("trace", "convert", source, "--out", out).exit_code == 0
    before, after = inspected(source), inspected(out)
    assert after["format"] == "simkv-sessions"
    for key in before.keys() - OF_THE_SOURCE:
        assert after[key] == before[key], key
    assert sessions_told(out) == sessions_told(source)


def sessions_told(path: Path) -> list[object]:
    reader = open_trace(path).reader
    assert isinstance(reader, SessionReader)
    return [
        (plan.number, plan.start_s, plan.shares, told(turn.request), turn.after, turn.pause_s, turn.not_before_s)
        for plan in reader.sessions(path, ReadReport())
        for turn in plan.turns
    ]


AIPERF = (
    '{"session_id": "a", "input_length": 600, "output_length": 10, "hash_ids": [1, 2], "timestamp": 1000}',
    '{"input_length": 600, "output_length": 10, "hash_ids": [1, 2], "timestamp": 500}',
    '{"session_id": "b", "input_length": 50, "output_length": 10, "timestamp": 900}',
    '{"session_id": "a", "input_length": 100, "output_length": 10, "delay": 2000}',
    '{"session_id": "b", "input_length": 50, "output_length": 10, "timestamp": 7000}',
)


def test_convert_keeps_sessions_that_are_mixed_in_the_file(write: Callable[..., Path], tmp_path: Path) -> None:
    source, out = write(*AIPERF), tmp_path / "out.jsonl"
    assert simkv("trace", "convert", source, "--out", out).exit_code == 0
    assert inspected(out)["reuse"] == inspected(source)["reuse"]
    assert sessions_told(out) == sessions_told(source)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(line["session"], line["turn"], line.get("after")) for line in lines[1:]] == [
        (0, 0, None), (1, 0, None), (2, 0, None), (0, 1, [0]), (2, 1, [0]),
    ]  # fmt: skip
    assert [line.get("alone") for line in lines[1:]] == [None, True, None, None, None]


def test_convert_scales_what_turns_wait(write: Callable[..., Path], tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    simkv("trace", "convert", write(*AIPERF), "--out", out, "--time-scale", "0.5")
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line.get("start_s") for line in lines[1:]] == [0.5, 0.25, 0.45, None, None]
    assert (lines[4]["pause_s"], lines[5]["not_before_s"]) == (1.0, 3.05)


@pytest.mark.shared
def test_convert_simulates_sessions_as_the_original_does(shared: Path, tmp_path: Path) -> None:
    source, out = shared / "traces" / SESSIONS[1], tmp_path / "own.jsonl"
    simkv("trace", "convert", source, "--out", out)

    def simulated(path: Path) -> dict[str, Any]:
        scenario = ROOT / "scenarios" / "chatbot.yaml"
        workload = f"workload={{kind: trace, path: {path}}}"
        result = simkv("run", scenario, "--set", workload, "--out", tmp_path / "r", "--json")
        assert result.exit_code == 0, result.stderr
        summary: dict[str, Any] = json.loads(result.stdout)
        del summary["scenario_hash"]
        return summary

    assert simulated(out) == simulated(source)
    assert simulated(out)["requests"]["arrived"] == 24


SESSION_HEADER = '{"simkv_trace":1,"source_format":"any","sessions":true}'
TURN = '{"arrival_s":0,"prompt_tokens":10,"output_tokens":2,"session":0,"turn":0}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TURN, "turn = 0: is not the next turn of session 0, which is 1"),
        (TURN.replace('"turn":0', '"turn":2'), "turn = 2: is not the next turn"),
        (TURN.replace('"turn":0', '"turn":1,"after":[1]'), "after = [1]: 1 is no turn before 1"),
        (TURN.replace('"turn":0', '"turn":1,"after":0'), "after = 0: is a number, not a list"),
        (TURN.replace('"turn":0', '"turn":1,"pause_s":-1'), "pause_s = -1: is negative"),
        (TURN.replace('"session":0,', ""), "session: is missing"),
        (TURN.replace('"output_tokens":2', '"output_tokens":0'), "output_tokens = 0: is no tokens at all"),
    ],
)
def test_own_sessions_refuse_a_bad_row_with_its_line(write: Callable[..., Path], text: str, said: str) -> None:
    path = write(SESSION_HEADER, TURN, text)
    with pytest.raises(InputError) as caught:
        list(open_trace(path).arrivals())
    assert f"{path}:3: {said}" in str(caught.value)


@pytest.mark.shared
def test_convert_of_a_converted_trace_is_the_same_but_for_its_source(shared: Path, tmp_path: Path) -> None:
    simkv("trace", "convert", shared / "traces" / TRACES[1], "--out", tmp_path / "a.jsonl")
    simkv("trace", "convert", tmp_path / "a.jsonl", "--out", tmp_path / "b.jsonl")
    one, other = ((tmp_path / name).read_text().split("\n", 1) for name in ("a.jsonl", "b.jsonl"))
    assert one[1] == other[1]
    assert json.loads(other[0]) == {**json.loads(one[0]), "source_format": "simkv"}


@pytest.mark.shared
def test_convert_simulates_as_the_original_does(shared: Path, tmp_path: Path) -> None:
    source, out = shared / "traces" / TRACES[1], tmp_path / "own.jsonl"
    simkv("trace", "convert", source, "--out", out)

    def simulated(path: Path) -> dict[str, Any]:
        values = (f"workload.path={path}", "workload.limit=150", "workload.format=auto")
        assignments = [part for value in values for part in ("--set", value)]
        scenario = ROOT / "scenarios" / "mooncake-conversation.yaml"
        result = simkv("run", scenario, *assignments, "--out", tmp_path / "r", "--json")
        assert result.exit_code == 0, result.stderr
        summary: dict[str, Any] = json.loads(result.stdout)
        del summary["scenario_hash"]
        return summary

    assert simulated(out) == simulated(source)


@st.composite
def requests(draw: st.DrawFn) -> list[Request]:
    """Requests of every shape: shared heads, private pieces between, sessions, classes, documents."""
    made = []
    for i in range(draw(st.integers(1, 8))):
        spans: list[Span] = []
        private_start = 0
        for _ in range(draw(st.integers(0, 4))):
            length = draw(st.integers(1, 1000))
            if draw(st.booleans()):
                spans.append((draw(st.integers(0, 3)), draw(st.integers(0, 10**9)), length))
            elif not spans or spans[-1][0] < PRIVATE_STREAM_BASE:
                spans.append((PRIVATE_STREAM_BASE + i, private_start, length))
                private_start += length
        output = draw(st.integers(1, 50))
        spans.append((PRIVATE_STREAM_BASE + i, private_start, output + 1))
        tokens = sum(length for _, _, length in spans)
        made.append(Request(i, draw(st.floats(0, 1e6)), tokens - output, output, merged(spans)))
        if draw(st.booleans()):
            made[-1].session, made[-1].turn = draw(st.integers(0, 9)), draw(st.integers(0, 9))
        made[-1].cls = draw(st.sampled_from(["", "interactive"]))
        made[-1].group = draw(st.integers(-1, 3))
    return made


@given(requests())
def test_own_format_gives_back_any_request(tmp_path_factory: pytest.TempPathFactory, made: list[Request]) -> None:
    path = tmp_path_factory.mktemp("own") / "own.jsonl"
    report = ReadReport("any")
    with new_file(path) as file:
        assert write_lines(file, plain(made), lambda: header(report, classes=True)) == len(made)
    assert list(map(told, OwnReader().read(path, ReadReport()))) == list(map(told, made))


def test_own_row_leaves_out_the_private_end() -> None:
    spans = ((0, 0, 10), (PRIVATE_STREAM_BASE + 7, 0, 20))
    assert row(Request(7, 1.5, 25, 5, spans)) == {
        "arrival_s": 1.5, "prompt_tokens": 25, "output_tokens": 5, "spans": [(0, 0, 10)],
    }  # fmt: skip


# ---- options ----------------------------------------------------------------------------------


def test_convert_scales_times_and_takes_the_front(write: Callable[..., Path], tmp_path: Path) -> None:
    path = write(HEADER, GOOD, GOOD.replace("0.5", "1.25"), GOOD.replace("0.5", "9"))
    out = tmp_path / "out.jsonl"
    result = simkv("trace", "convert", path, "--out", out, "--limit", "2", "--time-scale", "2")
    assert result.stdout == f"wrote {out}: 2 requests from a trace of format simkv\n"
    assert [r.arrival_s for r in open_trace(out).arrivals()] == [1.0, 2.5]


def test_convert_scales_a_wall_clock_from_its_first_arrival(write: Callable[..., Path], tmp_path: Path) -> None:
    path = write(HEADER, GOOD.replace("0.5", "1700000000.5"), GOOD.replace("0.5", "1700000002.5"))
    out = tmp_path / "out.jsonl"
    simkv("trace", "convert", path, "--out", out, "--time-scale", "0.5")
    assert [r.arrival_s for r in OwnReader().read(out, ReadReport())] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("times", "scale"),
    [
        ((1700000001.0, 1700000000.0, 1700000003.0), 2.0),  # the first row is not the earliest
        ((0.0, 50.0, 100.0, 20.0), 3.0),  # 80 s back are 240 s then
        ((0.0, 50.0, 100.0, 20.0), 0.5),
    ],
)
def test_convert_scales_a_trace_that_steps_back_and_it_still_reads(
    write: Callable[..., Path], tmp_path: Path, times: tuple[float, ...], scale: float
) -> None:
    path = write(HEADER, *(GOOD.replace("0.5", str(time)) for time in times))
    out = tmp_path / "out.jsonl"
    simkv("trace", "convert", path, "--out", out, "--time-scale", str(scale))
    expected = [r.arrival_s for r in open_trace(path, time_scale=scale).arrivals()]
    assert len(expected) == len(times)
    assert [r.arrival_s for r in open_trace(out).arrivals()] == expected


def test_convert_into_no_name_writes_beside_the_user(
    write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(HEADER, GOOD)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert simkv("trace", "convert", path).stdout.startswith("wrote own.simkv.jsonl: 1 requests")
    assert (tmp_path / "here" / "own.simkv.jsonl").exists()


def test_convert_never_replaces_unless_forced(write: Callable[..., Path], tmp_path: Path) -> None:
    path, out = write(HEADER, GOOD), tmp_path / "out.jsonl"
    out.write_text("precious")
    result = simkv("trace", "convert", path, "--out", out)
    assert (result.exit_code, out.read_text()) == (2, "precious")
    assert "is there already; give another name, or --force to replace it" in result.stderr
    assert simkv("trace", "convert", path, "--out", out, "--force").exit_code == 0
    assert out.read_text().startswith('{"simkv_trace"')


def test_convert_of_a_file_onto_itself_works(write: Callable[..., Path]) -> None:
    path = write(HEADER, GOOD, GOOD)
    assert simkv("trace", "convert", path, "--out", path, "--force", "--limit", "1").exit_code == 0
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("last", ["{", GOOD.replace("10", "-1")])
def test_convert_that_fails_leaves_nothing_behind(write: Callable[..., Path], tmp_path: Path, last: str) -> None:
    result = simkv("trace", "convert", write(HEADER, GOOD, last), "--out", tmp_path / "out.jsonl")
    assert result.exit_code == 2
    assert "own.jsonl:3" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["own.jsonl"]


def test_convert_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), new_file(tmp_path / "out.jsonl") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_convert_without_requests_is_refused(write: Callable[..., Path], tmp_path: Path) -> None:
    path = write(HEADER, GOOD.replace('"output_tokens":2', '"output_tokens":0'))
    result = simkv("trace", "convert", path, "--out", tmp_path / "out.jsonl")
    assert result.exit_code == 2
    assert "has no request that can be served" in result.stderr
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("out", ["nowhere/out.jsonl", "."])
def test_convert_into_no_place_says_so(write: Callable[..., Path], tmp_path: Path, out: str) -> None:
    result = simkv("trace", "convert", write(HEADER, GOOD), "--out", tmp_path / out)
    assert result.exit_code == 2
    assert "its folder doesn't exist" in result.stderr or "is a folder" in result.stderr


@pytest.mark.parametrize("scale", ["0", "-1", "nan", "inf", "1e300"])
def test_convert_with_a_senseless_scale_is_refused(write: Callable[..., Path], tmp_path: Path, scale: str) -> None:
    result = simkv("trace", "convert", write(HEADER, GOOD), "--out", tmp_path / "o", "--time-scale", scale)
    assert result.exit_code == 2
    assert "--time-scale" in result.stderr


def test_convert_scale_that_makes_times_beyond_any_run_is_refused_whatever_the_time(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    last = '{"arrival_s":0,"prompt_tokens":10,"output_tokens":2,"session":0,"turn":1,"after":[0],"pause_s":30}'
    path = write(HEADER.replace("}", ',"sessions":true}'), last.replace(',"turn":1,"after":[0]', ',"turn":0'), last)
    for scale, makes in (("1e9", "makes pause_s = 3e+10, beyond the 1e+10 s"), ("1e3", "")):
        result = simkv("trace", "convert", path, "--out", tmp_path / "o", "--time-scale", scale)
        assert result.exit_code == (2 if makes else 0)
        assert makes in result.stderr
        assert (tmp_path / "o").exists() is not bool(makes)
    assert simkv("trace", "inspect", tmp_path / "o").exit_code == 0


@pytest.mark.parametrize("verb", ["inspect", "convert", "fit"])
def test_trace_limit_beyond_any_file_is_refused(write: Callable[..., Path], tmp_path: Path, verb: str) -> None:
    more = () if verb == "inspect" else ("--out", tmp_path / "o")
    result = simkv("trace", verb, write(HEADER, GOOD), "--limit", "99999999999999999999", *more)
    assert result.exit_code == 2
    assert "--limit" in result.stderr


# ---- wrong files ------------------------------------------------------------------------------

BAD_ROWS = [
    (GOOD.replace("[[3,0,8]]", "[[3,0,13]]"), "covers 13 tokens where prompt and output have 12"),
    (GOOD.replace("[[3,0,8]]", "7"), "is a number, not a list"),
    (GOOD.replace("[[3,0,8]]", "[[3,0]]"), "spans[0]"),
    (GOOD.replace("[[3,0,8]]", "[[3,0,8],[1,2,0]]"), "spans[1]"),
    (GOOD.replace("[[3,0,8]]", "[[-2,0,8]]"), "is no span"),
    (GOOD.replace("[[3,0,8]]", f"[[{1 << 40},0,8]]"), "is no span"),
    (GOOD.replace("[[3,0,8]]", "[[3,0,8.5]]"), "is no span"),
    (GOOD.replace("[[3,0,8]]", "[[true,0,8]]"), "is no span"),
    (GOOD.replace("0.5", "-0.5"), "is negative"),
    (GOOD.replace("0.5", '"x"'), "not a number"),
    (GOOD.replace('"prompt_tokens":10,', ""), "prompt_tokens: is missing"),
    (GOOD[:-1] + ',"class":"batch"}', "is not announced"),
    (GOOD[:-1] + ',"class":3}', "not text"),
    (GOOD[:-1] + ',"session":-4}', "is negative"),
    ("[]", "is a list, not an object"),
]


@pytest.mark.parametrize(("text", "said"), BAD_ROWS)
def test_own_format_refuses_a_bad_row_with_its_line(write: Callable[..., Path], text: str, said: str) -> None:
    path = write(HEADER, GOOD, text)
    with pytest.raises(InputError) as caught:
        list(open_trace(path).arrivals())
    assert f"{path}:3: " in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (HEADER.replace(":1,", ":2,"), "is another version"),
        (HEADER.replace("}", ',"block_tokens":0}'), "is no tokens at all"),
        (GOOD, "simkv_trace"),
    ],
)
def test_own_format_refuses_a_bad_header(write: Callable[..., Path], first: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        list(open_trace(write(first, GOOD), "simkv").arrivals())
    assert ":1: " in str(caught.value)
    assert said in str(caught.value)


def test_own_format_with_a_clock_may_begin_below_zero(write: Callable[..., Path]) -> None:
    clocked = HEADER.replace("}", ',"clock":true}')
    source = open_trace(write(clocked, GOOD, GOOD.replace("0.5", "-1.5")))
    assert [r.arrival_s for r in source.arrivals()] == [0.0, 2.0]


def test_own_format_classes_are_those_of_the_rows(write: Callable[..., Path]) -> None:
    classed = HEADER.replace("}", ',"classes":true}')
    source = open_trace(write(classed, GOOD[:-1] + ',"class":"a"}', GOOD, GOOD[:-1] + ',"class":"b"}'))
    assert source.class_names == ("a", "", "b")


def test_own_format_without_spans_is_private(write: Callable[..., Path]) -> None:
    (request,) = open_trace(write(HEADER, GOOD.replace(',"spans":[[3,0,8]]', ""))).arrivals()
    assert request.spans == ((PRIVATE_STREAM_BASE, 0, 12),)
