"""Trace readers on small files of our own: what is read, what is put up with, what is refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from simkv.errors import InputError
from simkv.workload.readers import READERS, TraceSource, open_trace
from simkv.workload.readers.order import WINDOW_ROWS
from simkv.workload.request import PRIVATE_STREAM_BASE as P
from simkv.workload.request import Request

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writer(*lines: str | bytes | dict[str, Any], name: str = "trace.jsonl", end: bytes = b"\n") -> Path:
        texts = [json.dumps(x) if isinstance(x, dict) else x for x in lines]
        path = tmp_path / name
        path.write_bytes(b"".join((x.encode() if isinstance(x, str) else x) + end for x in texts))
        return path

    return writer


def mooncake(
    timestamp: object = 0, inputs: object = 1000, outputs: object = 10, ids: object = (0, 1), **more: object
) -> dict[str, Any]:
    return {"timestamp": timestamp, "input_length": inputs, "output_length": outputs, "hash_ids": ids, **more}


def own(arrival: object = 0.0, prompt: object = 100, output: object = 10) -> dict[str, Any]:
    return {"arrival_s": arrival, "prompt_tokens": prompt, "output_tokens": output}


def read(path: Path, **options: Any) -> list[Request]:
    return list(open_trace(path, **options).arrivals())


def complaint(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(path, **options)
    return str(caught.value)


# ---- Mooncake -----------------------------------------------------------------------------------


def test_mooncake_ids_become_maximal_runs_of_one_stream(write: Write) -> None:
    path = write(
        mooncake(0, 1300, 20, [0, 1, 2]),
        mooncake(1500, 1536, 30, [0, 1, 2]),
        mooncake(1500, 2500, 40, [0, 7, 8, 3, 9]),
        mooncake(2000, 600, 1, [5, 5]),
        mooncake(2000, 5, 1, [2]),
    )
    made = read(path)
    assert [r.spans for r in made] == [
        ((0, 0, 1300), (P, 0, 20)),
        ((0, 0, 1536), (P + 1, 0, 30)),
        ((0, 0, 512), (0, 7 * 512, 1024), (0, 3 * 512, 512), (0, 9 * 512, 2500 - 2048), (P + 2, 0, 40)),
        ((0, 5 * 512, 512), (0, 5 * 512, 88), (P + 3, 0, 1)),
        ((0, 2 * 512, 5), (P + 4, 0, 1)),
    ]
    assert [(r.id, r.arrival_s, r.prompt_tokens, r.output_tokens) for r in made] == [
        (0, 0.0, 1300, 20),
        (1, 1.5, 1536, 30),
        (2, 1.5, 2500, 40),
        (3, 2.0, 600, 1),
        (4, 2.0, 5, 1),
    ]
    assert all(sum(s[2] for s in r.spans) == r.prompt_tokens + r.output_tokens for r in made)


def test_mooncake_duplicate_rows_are_two_requests(write: Write) -> None:
    assert len(read(write(mooncake(), mooncake()))) == 2


def test_mooncake_left_out_partial_block_is_private_and_noted(write: Write) -> None:
    source = open_trace(write(mooncake(0, 1000, 10, [4]), mooncake(0, 100, 10, [])))
    assert [r.spans for r in source.arrivals()] == [((0, 2048, 512), (P, 0, 498)), ((P + 1, 0, 110),)]
    assert source.report.sentences() == [
        "2 rows kept: hash_ids leaves out the partial last block: taken as private (first on line 1)"
    ]


def test_mooncake_without_output_is_dropped_and_noted(write: Write) -> None:
    source = open_trace(write(mooncake(outputs=0), mooncake(), mooncake(outputs=0)))
    assert [r.id for r in source.arrivals()] == [0]
    assert (source.report.kept, source.report.dropped) == (1, 2)
    assert source.report.sentences() == ["2 rows dropped: output_length is 0: nothing was generated (first on line 1)"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (mooncake(inputs=-1000), "input_length = -1000: is negative; write 1 or more, or remove the row"),
        (mooncake(inputs=0, ids=[]), "input_length = 0: is no tokens at all"),
        (mooncake(inputs="1000"), 'input_length = "1000": is text, not a number; write a number'),
        (mooncake(inputs=None), "input_length = null: is null, not a number"),
        (mooncake(inputs=True), "input_length = true: is a boolean, not a number"),
        (mooncake(inputs=[1000]), "input_length = [1000]: is a list, not a number"),
        (mooncake(inputs=1000.5), "input_length = 1000.5: is not a whole number of tokens"),
        (mooncake(inputs=10**11), "input_length = 100000000000: is more tokens than any model takes"),
        (mooncake(inputs=10**40), "input_length = 1e+40: is more tokens than any model takes"),
        (mooncake(outputs=-1), "output_length = -1: is negative; write 0 or more"),
        (mooncake(timestamp="x"), 'timestamp = "x": is text, not a number'),
        (mooncake(timestamp=-5), "timestamp = -5: is negative; count times from the start"),
        (mooncake(timestamp=1e300), "timestamp = 1e+300: is no sensible time"),
        (mooncake(ids=None), "hash_ids = null: is null, not a list"),
        (mooncake(ids="0,1"), 'hash_ids = "0,1": is text, not a list'),
        (mooncake(ids=[0]), ""),
        (mooncake(ids=[0, 1, 2]), "hash_ids = [0, 1, 2]: has 3 ids where input_length = 1,000 makes 2 blocks of 512"),
        (mooncake(inputs=3000, ids=[0]), "hash_ids = [0]: has 1 ids where input_length = 3,000 makes 6 blocks of 512"),
        (mooncake(inputs=40, ids=[1, 2, 3]), "the ids fit blocks of 16 tokens, another format"),
        (mooncake(ids=[None, 1]), "hash_ids[0] = null: is not a block number"),
        (mooncake(ids=[0, "a"]), 'hash_ids[1] = "a": is not a block number'),
        (mooncake(ids=[0, 1.5]), "hash_ids[1] = 1.5: is not a block number"),
        (mooncake(ids=[0, -1]), "hash_ids[1] = -1: is not a block number"),
        (mooncake(ids=[0, 2**63 + 5]), "hash_ids[1] = 9223372036854775813: is a hash rather than a block number"),
    ],
)
def test_mooncake_bad_row_is_answered_with_file_line_field_value(
    write: Write, row: dict[str, Any], message: str
) -> None:
    path = write(mooncake(), mooncake(), row, mooncake())
    if message:
        text = complaint(path)
        assert text.startswith(f"{path}:3: ")
        assert message in text
    else:
        assert len(read(path)) == 4


@pytest.mark.parametrize("key", ["timestamp", "input_length", "output_length", "hash_ids"])
@pytest.mark.parametrize("line", [1, 3])
def test_mooncake_missing_key_is_named_with_what_it_may_have_been(write: Write, key: str, line: int) -> None:
    rows = [mooncake(), mooncake(), mooncake()]
    rows[line - 1][key + "s"] = rows[line - 1].pop(key)
    path = write(*rows)
    assert complaint(path) == f"{path}:{line}: {key}: is missing; rename '{key}s'"


# ---- lengths ------------------------------------------------------------------------------------


def test_lengths_both_spellings_are_read_as_private_prompts(write: Write) -> None:
    ours = read(write(own(0.5, 100, 10), own(2, 50.0, 5), name="a.jsonl"))
    theirs = read(
        write(
            {"input_toks": 100, "output_toks": 10, "arrival_time_ns": 500_000_000, "model": "m"},
            {"input_toks": 50, "output_toks": 5, "arrival_time_ns": 2_000_000_000},
            name="b.jsonl",
        )
    )
    for made in (ours, theirs):
        assert [(r.id, r.arrival_s, r.prompt_tokens, r.output_tokens, r.spans) for r in made] == [
            (0, 0.5, 100, 10, ((P, 0, 110),)),
            (1, 2.0, 50, 5, ((P + 1, 0, 55),)),
        ]
        assert {type(r.prompt_tokens) for r in made} == {int}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (own(prompt=0), "prompt_tokens = 0: is no tokens at all"),
        (own(prompt=-3), "prompt_tokens = -3: is negative"),
        (own(arrival="now"), 'arrival_s = "now": is text, not a number'),
        ({"arrival_s": 1, "prompt_tokens": 5}, "output_tokens: is missing; the row has 'arrival_s', 'prompt_tokens'"),
        ({}, "arrival_s: is missing; the row has no keys"),
    ],
)
def test_lengths_bad_row_is_answered_with_file_line_field_value(
    write: Write, row: dict[str, Any], message: str
) -> None:
    path = write(own(), row)
    assert complaint(path).startswith(f"{path}:2: {message}")


def test_lengths_without_output_are_dropped_and_noted(write: Write) -> None:
    source = open_trace(write(own(output=0), own()))
    assert len(list(source.arrivals())) == 1
    assert source.report.dropped == 1


def test_lengths_of_clock_times_count_from_the_first(write: Write) -> None:
    source = open_trace(write(own(1_700_000_000.5), own(1_700_000_002.0)))
    assert [r.arrival_s for r in source.arrivals()] == [0.0, 1.5]
    assert [n.code for n in source.report.notes.values()] == ["wall_clock"]


# ---- lines --------------------------------------------------------------------------------------

GOOD = json.dumps(mooncake())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (GOOD[:40], "is not JSON: "),
        (GOOD + GOOD, "is not JSON: "),
        ("NaN", "NaN: is not JSON: "),
        (GOOD.replace("1000", "NaN"), "is not JSON: "),
        (GOOD.replace("1000", "1e999"), "is not "),
        ("null", "null: is null, not an object"),
        ("[]", "[]: is a list, not an object"),
        ("17", "17: is a number, not an object"),
        (b"\xff\xfe{}", "is not UTF-8 text; save it as UTF-8"),
        ("[" * 5000, "is not JSON: "),
        ('{"a": "' + "x" * (16 << 20) + '"}', "is longer than 16,777,216 bytes"),
    ],
)
def test_lines_that_are_no_row_are_answered_with_file_and_line(write: Write, line: str | bytes, message: str) -> None:
    path = write(GOOD, line, GOOD)
    text = complaint(path)
    assert text.startswith(f"{path}:2: ")
    assert message in text
    assert len(text) < 400 + len(str(path))


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines_of_either_ending_with_or_without_a_mark_are_read(write: Write, end: bytes) -> None:
    assert len(read(write("\ufeff" + GOOD, GOOD, "\ufeff" + GOOD, end=end))) == 3


def test_lines_without_a_last_newline_are_read(write: Write) -> None:
    assert len(read(write(f"{GOOD}\n{GOOD}", end=b""))) == 2


def test_lines_that_are_blank_are_skipped_and_noted(write: Write) -> None:
    source = open_trace(write("", GOOD, "  ", GOOD, ""))
    assert len(list(source.arrivals())) == 2
    assert source.report.sentences() == ["3 rows dropped: the line is blank (first on line 1)"]


def test_lines_packed_with_gzip_are_read_whatever_the_name(tmp_path: Path) -> None:
    for name in ("trace.jsonl.gz", "trace.jsonl"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(f"{GOOD}\n{GOOD}\n".encode()))
        assert len(read(path)) == 2


def test_lines_packed_and_cut_off_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"
    rows = "".join(json.dumps(mooncake(k * 7919 % 10_007 + 20_000 * k)) + "\n" for k in range(20_000))
    path.write_bytes(gzip.compress(rows.encode())[:-2000])
    assert "can't be read" in complaint(path)


# ---- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \r\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "is a Git LFS pointer, not the data"),
        (b"PAR1\x00\x00", "is a Parquet file"),
        (b"\x00\x01\x02", "is not text: it holds zero bytes"),
        (b"\x1f\x8bnonsense", "can't be read"),
        ("{}\n".encode("utf-16"), "is UTF-16 text"),
        (b"hello world\n", "hello world: is of no known format; formats that are read (CSV): azure: "),
        (b'{\n "a": 1,\n "b": 2}\n', '{ "a": 1, "b": 2}: is of no known format; formats that are read (JSON): simkv: '),
        (b'{"a": 1}\n', "is of no known format"),
        (
            b'{"0": {"input_tokens": "{' + b"45: 0.01, " * 9000 + b'46: 0.1}"}}',
            "looks like ServeGen's lengths of a client",
        ),
    ],
)
def test_files_that_are_no_trace_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(content)
    text = complaint(path)
    assert text.startswith(str(path))
    assert message in text


def test_files_that_are_missing_name_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "conversation_trace.jsonl").write_text(GOOD)
    text = complaint(tmp_path / "conversation.jsonl")
    assert text == f"{tmp_path / 'conversation.jsonl'}: does not exist; there is conversation_trace.jsonl"
    assert f"its folder is missing; there is {tmp_path}" in complaint(tmp_path / "no" / "where" / "a.jsonl")
    assert "is a folder, not a trace file; there is conversation_trace.jsonl" in complaint(tmp_path)
    assert "is not a regular file" in complaint(Path("/dev/null"))
    (tmp_path / "link").symlink_to(tmp_path / "link")
    assert "is a link that leads nowhere" in complaint(tmp_path / "link")


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_files_of_impossible_names_are_refused(tmp_path: Path, name: str) -> None:
    complaint(tmp_path / name)


def test_format_unknown_lists_the_valid_ones(write: Write) -> None:
    text = complaint(write(GOOD), format="moonkake")
    valid = ", ".join(READERS)
    assert text == f"workload.format = 'moonkake': is not known; did you mean 'mooncake'? valid: {valid}"


def test_format_given_is_taken_without_looking(write: Write) -> None:
    path = write({"hash_ids": [], "chat_id": 4, **mooncake()})
    assert len(read(path, format="mooncake")) == 1
    assert f"{path}:1: arrival_s: is missing" in complaint(path, format="lengths")


def test_format_is_found_behind_bad_first_lines(write: Write) -> None:
    path = write("# a comment", GOOD)
    assert complaint(path).startswith(f"{path}:1: # a comment: is not JSON")


@pytest.mark.parametrize("row", [mooncake(), own()])
def test_format_is_told_apart(write: Write, row: dict[str, Any]) -> None:
    source = open_trace(write(row), format="auto")
    assert source.reader is READERS["mooncake" if "hash_ids" in row else "lengths"]
    assert source.class_names == ("",)


# ---- order, scale, limit ------------------------------------------------------------------------


def test_order_rows_that_step_back_are_moved_stably_and_noted(write: Write) -> None:
    source = open_trace(write(*[own(t) for t in (10.0, 30.0, 20.0, 30.0, 10.0, 100.0, 20.0)]))
    made = list(source.arrivals())
    assert [(r.arrival_s, r.id) for r in made] == [(10, 0), (10, 4), (20, 2), (20, 6), (30, 1), (30, 3), (100, 5)]
    note = source.report.notes["out_of_order"]
    assert (note.count, note.first_line) == (3, 3)


def test_order_step_back_beyond_the_window_is_refused_with_its_line(write: Write) -> None:
    path = write(*[own(t) for t in (0.0, 1.0, 500.0, 700.0, 2.0)])
    text = complaint(path)
    assert text.startswith(f"{path}:5: arrival_s = 2 s: steps back by 698 s; sort the file by it")


def test_order_holds_no_more_than_its_rows(write: Write) -> None:
    path = write(*[own(1.0)] * (WINDOW_ROWS + 1), own(0.0))
    assert f":{WINDOW_ROWS + 2}: arrival_s = 0 s: steps back by 1 s" in complaint(path)


def test_order_of_a_reversed_file_within_the_window_is_mended(write: Write) -> None:
    made = read(write(*[own(t / 100) for t in range(10_000, 0, -1)]))
    assert [r.id for r in made] == list(range(9_999, -1, -1))


def test_time_scale_multiplies_the_times(write: Write) -> None:
    path = write(own(1.0), own(3.0))
    assert [r.arrival_s for r in read(path, time_scale=2)] == [2.0, 6.0]
    assert [r.arrival_s for r in read(path, time_scale=0.5)] == [0.5, 1.5]


def test_time_after_any_run_is_refused(write: Write) -> None:
    path = write(own(0.0), own(2e5))
    assert read(path, time_scale=5e4)[1].arrival_s == 1e10
    assert complaint(path, time_scale=1e5).startswith(f"{path}: request 2 would arrive after 2e+10 s; ")
    assert len(read(path, time_scale=1e5, duration_s=1e9)) == 1


@pytest.mark.parametrize("scale", [0, -1, float("inf"), float("nan")])
def test_time_scale_that_is_none_is_refused(write: Write, scale: float) -> None:
    assert "workload.time_scale" in complaint(write(own()), time_scale=scale)


def test_limit_takes_the_first_rows_and_reads_no_further(write: Write) -> None:
    path = write(own(0.0), own(1.0), "not read")
    assert [r.id for r in read(path, limit=2)] == [0, 1]
    assert "workload.limit = 0" in complaint(path, limit=0)


def test_duration_ends_the_replay_after_scaling(write: Write) -> None:
    path = write(own(0.0), own(5.0), own(10.0))
    assert [r.id for r in read(path, duration_s=10.0)] == [0, 1]
    assert [r.id for r in read(path, duration_s=10.0, time_scale=2)] == [0]


def test_source_starts_over_with_a_new_report(write: Write) -> None:
    source: TraceSource = open_trace(write(own(5.0), own(4.0)), time_scale=3)
    runs = [[(r.id, r.arrival_s) for r in source.arrivals()] for _ in range(2)]
    assert runs[0] == runs[1] == [(1, 12.0), (0, 15.0)]
    assert source.report.notes["out_of_order"].count == 1
    assert source.after(next(source.arrivals()), 9.0, True) == ()


def test_source_streams_a_file_of_any_length(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("w") as file:
        for k in range(200_000):
            file.write(f'{{"arrival_s": {k}, "prompt_tokens": 10, "output_tokens": 1}}\n')
    ten = list(islice(open_trace(path).arrivals(), 10))
    source = open_trace(path)
    next(source.arrivals())
    assert [r.id for r in ten] == list(range(10))
    assert source.report.line < 200


@pytest.mark.parametrize(("limit", "expected"), [(None, 40), (7, 7), (90, 40)])
def test_expected_requests_are_the_lines_of_the_file(tmp_path: Path, limit: int | None, expected: int) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"arrival_s": 1, "prompt_tokens": 9, "output_tokens": 2}\n' * 40)
    source = open_trace(path, limit=limit)
    assert isinstance(source, TraceSource)
    assert source.expected_requests() == expected
