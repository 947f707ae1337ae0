"""Mooncake-style rows with sessions, as AIPerf and vLLM's trace replay write and take them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.workload.ceiling import Ceiling
from simkv.workload.readers import READERS, ReadReport, SessionsSource, open_trace
from simkv.workload.readers.aiperf import AiperfReader
from simkv.workload.request import PRIVATE_STREAM_BASE as P
from simkv.workload.request import Request
from simkv.workload.starts import session_starts
from simkv.workload.streams import Streams
from tests.serving import serve, tens
from tests.sim_factory import run, system_config

Write = Callable[..., Path]
Row = dict[str, Any]


def turn(session: str | None, new: int, out: int = 20, **more: Any) -> Row:
    row = {"input_length": new, "output_length": out, **more}
    return row if session is None else {"session_id": session, **row}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writer(*rows: Row) -> Path:
        path = tmp_path / "trace.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return writer


def read(path: Path, **options: Any) -> list[Request]:
    """Read as an inspection does."""
    source = open_trace(path, **options)
    assert isinstance(source, SessionsSource)
    return list(source.reader.read(path, ReadReport()))


def complaint(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        list(open_trace(path, **options).arrivals())
    return str(caught.value)


# ---- content ------------------------------------------------------------------------------------


def test_turns_carry_all_that_was_said_before(write: Write) -> None:
    made = read(write(turn("a", 300, 40), turn("a", 150, 20, delay=2), turn("a", 10, 5, delay=2)))
    assert [(r.prompt_tokens, r.output_tokens, r.session, r.turn) for r in made] == [
        (300, 40, 0, 0),
        (490, 20, 0, 1),
        (520, 5, 0, 2),
    ]
    assert [r.spans for r in made] == [((1, 0, 340),), ((1, 0, 510),), ((1, 0, 525),)]


def test_hash_ids_are_of_a_turns_new_tokens(write: Write) -> None:
    rows = [
        turn("a", 1536, 320, hash_ids=[0, 1, 2], timestamp=0.0),
        turn("b", 1024, 100, hash_ids=[0, 7], timestamp=5.0),
        turn("a", 768, 180, hash_ids=[1000, 1001], delay=2450.3),
    ]
    made = read(write(*rows))
    assert made[0].spans == ((0, 0, 1536), (1, 1536, 320))
    assert made[1].spans == ((0, 0, 512), (0, 7 * 512, 512), (2, 1024, 100))
    assert made[2].spans == ((0, 0, 1536), (1, 1536, 320), (0, 1000 * 512, 768), (1, 1536 + 320 + 768, 180))
    ceiling = Ceiling(1)
    assert [ceiling.add_uncapped(r) for r in made] == [0, 512, 1856]


def test_left_out_partial_block_is_the_sessions_own(write: Write) -> None:
    made = read(write(turn("a", 600, 10, hash_ids=[4]), turn("a", 100, 10, hash_ids=[])))
    assert made[0].spans == ((0, 4 * 512, 512), (1, 512, 98))
    assert made[1].spans == ((0, 4 * 512, 512), (1, 512, 88 + 10 + 100 + 10))


def test_rows_that_repeat_their_sessions_beginning_are_whole_prompts(write: Write) -> None:
    made = read(write(turn("a", 1024, 9, hash_ids=[5, 6]), turn("a", 1500, 9, hash_ids=[5, 6, 7]), turn("a", 400, 9)))
    assert [r.prompt_tokens for r in made] == [1024, 1500, 400]
    assert [r.spans for r in made] == [
        ((0, 5 * 512, 1024), (1, 1024, 9)),
        ((0, 5 * 512, 1500), (P + 1, 0, 9)),
        ((P + 2, 0, 409),),
    ]


def test_rows_without_a_session_stand_alone(write: Write) -> None:
    made = read(write(turn(None, 600, 10, hash_ids=[4, 5]), turn(None, 50, 10)))
    assert [(r.session, r.spans) for r in made] == [(-1, ((0, 2048, 600), (P, 0, 10))), (-1, ((P + 1, 0, 60),))]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 90), st.booleans()), min_size=1, max_size=25))
def test_a_turn_begins_with_the_whole_of_the_turn_before(tmp_path_factory: Any, drawn: Any) -> None:
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    rows = [
        turn(name, n, 7, hash_ids=list(range(100 * k, 100 * k + -(-n // 16)))) if hashed else turn(name, n, 7)
        for k, (name, n, hashed) in enumerate(drawn)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    past: dict[int, list[tuple[int, int]]] = {}
    for request in AiperfReader(16).read(path, ReadReport()):
        content = [(s, start + k) for s, start, length in request.spans for k in range(length)]
        before = past.get(request.session, [])
        assert len(content) == request.prompt_tokens + request.output_tokens
        assert content[: len(before)] == before
        past[request.session] = content


# ---- times --------------------------------------------------------------------------------------


def test_turns_with_delays_wait_for_the_answer_before(write: Write) -> None:
    rows = [turn("a", 10, timestamp=1000), turn("b", 10, timestamp=500), turn("a", 10, delay=2500), turn("a", 10)]
    served = serve(open_trace(write(*rows)), tens)
    assert served.starts() == [(0, 1.0), (1, 0.5), (2, 13.5), (3, 23.5)]


def test_turns_with_timestamps_come_at_them_but_never_before_the_answer(write: Write) -> None:
    rows = [turn("a", 10, timestamp=1000), turn("a", 10, timestamp=4000), turn("a", 10, timestamp=60_000)]
    assert serve(open_trace(write(*rows)), tens).starts() == [(0, 1.0), (1, 11.0), (2, 60.0)]
    assert serve(open_trace(write(*rows), time_scale=2), tens).starts() == [(0, 2.0), (1, 12.0), (2, 120.0)]


def test_sessions_may_start_as_told_instead(write: Write) -> None:
    rows = [turn("a", 10, timestamp=9000), turn("a", 10, timestamp=39_000), turn("b", 10, timestamp=1000)]
    starts = session_starts({"process": "constant", "rate": 0.05}, Streams(0), "workload.arrival")
    served = serve(open_trace(write(*rows), starts=starts), tens)
    assert served.starts() == [(0, 20.0), (1, 50.0), (2, 0.0)]


def test_clock_times_count_from_the_first(write: Write) -> None:
    at = 1_779_163_000_000
    source = open_trace(write(turn("a", 10, timestamp=at + 500), turn("b", 10, timestamp=at)))
    assert serve(source, tens).starts() == [(0, 0.5), (1, 0.0)]
    assert list(source.report.notes) == ["wall_clock"]
    assert source.report.notes["wall_clock"].place == "at 1779163000 s"


def test_rows_without_times_come_at_once(write: Write) -> None:
    assert serve(open_trace(write(turn("a", 10), turn("b", 10), turn(None, 10))), tens).starts() == [
        (0, 0.0),
        (1, 0.0),
        (2, 0.0),
    ]


def test_inspection_sees_a_turn_at_its_delay_after_the_one_before(write: Write) -> None:
    rows = [turn("a", 10, timestamp=1000), turn("a", 10, delay=2000), turn("a", 10, timestamp=9000)]
    assert [r.arrival_s for r in read(write(*rows))] == [1.0, 3.0, 9.0]


def test_limit_counts_sessions_by_their_start(write: Write) -> None:
    rows = [turn("a", 10, timestamp=9000), turn("b", 10, timestamp=1000), turn("b", 10, delay=1), turn("a", 10)]
    assert [i for i, _ in serve(open_trace(write(*rows), limit=1), tens).starts()] == [1, 2]


def test_system_runs_the_turns_under_all_laws(write: Write) -> None:
    rows = [turn(f"s{k % 5}", 64, 8, hash_ids=[k % 3], delay=100) for k in range(40)]
    data = run(system_config(dram_blocks=300), open_trace(write(*rows), block_tokens=64))
    assert (data.arrived, data.finished) == (40, 40)


# ---- what is refused, and what is put up with ---------------------------------------------------


@pytest.mark.parametrize("key", ["text_input", "messages", "payload"])
def test_texts_are_refused(write: Write, key: str) -> None:
    path = write(turn("a", 10), {"session_id": "a", key: "hello", "output_length": 5})
    assert complaint(path) == (
        f'{path}:2: {key} = "hello": is given in place of lengths, and no tokenizer is at hand to count it; '
        "give input_length, in tokens, and leave the text out"
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (turn("a", 0), "input_length = 0: is no tokens at all"),
        ({"session_id": "a", "input_length": 5}, "output_length: is missing"),
        (turn("a", 10, delay=-5), "delay = -5: is negative"),
        (turn("a", 10, timestamp="soon"), 'timestamp = "soon": is text, not a number'),
        (turn("a", 2000, hash_ids=[1]), "hash_ids = [1]: has 1 ids where input_length = 2,000 makes 4 blocks of 512"),
        ({**turn("a", 10), "session_id": 1.5}, "session_id = 1.5: is a number, not a name"),
    ],
)
def test_bad_row_is_answered_with_file_line_field_value(write: Write, row: Row, message: str) -> None:
    path = write(turn("b", 10), row)
    assert complaint(path).startswith(f"{path}:2: {message}")


def test_output_of_no_tokens_is_one_since_later_turns_build_on_it(write: Write) -> None:
    source = open_trace(write(turn("a", 10, 0), turn("a", 10)))
    assert [r.prompt_tokens for r in serve(source, tens).requests] == [10, 21]
    assert source.report.notes["no_output"].count == 1


def test_block_tokens_are_512_unless_told(write: Write) -> None:
    path = write(turn("a", 40, hash_ids=[1, 2, 3]))
    assert "the ids fit blocks of 16 tokens, another format; aiperf is read with workload.block_tokens" in complaint(
        path
    )
    assert read(path, block_tokens=16)[0].spans == ((0, 16, 40), (1, 40, 20))


def test_block_tokens_do_nothing_with_formats_that_know_theirs(write: Write) -> None:
    path = write({"timestamp": 0, "input_length": 10, "output_length": 5, "hash_ids": [1]})
    text = complaint(path, block_tokens=64)
    assert text.startswith("workload.block_tokens: does nothing with format mooncake: the format says how large")


def test_starts_do_nothing_with_formats_of_fixed_times(write: Write) -> None:
    path = write({"timestamp": 0, "input_length": 10, "output_length": 5, "hash_ids": [1]})
    starts = session_starts({"process": "all_at_once"}, Streams(0), "workload.arrival")
    assert complaint(path, starts=starts).startswith("workload.arrival: does nothing with format mooncake: ")


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (turn("a", 10, timestamp=5), "aiperf"),
        (turn(None, 10, delay=5), "aiperf"),
        (turn(None, 10, hash_ids=[1]), "aiperf"),
        ({"text_input": "hello", "output_length": 5}, "aiperf"),
        (turn(None, 10, timestamp=5, hash_ids=[1]), "mooncake"),
    ],
)
def test_format_is_told_by_its_keys(write: Write, row: Row, name: str) -> None:
    assert open_trace(write(row)).reader is READERS[name]
