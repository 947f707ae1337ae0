"""CSV traces and logs of one's own: what is read, what is put up with, what is refused."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.workload.ceiling import Ceiling
from simkv.workload.readers import TraceSource, open_trace
from simkv.workload.readers.civil import CivilClock
from simkv.workload.readers.log import MOST_CLASSES
from simkv.workload.request import PRIVATE_STREAM_BASE as P
from simkv.workload.request import Request

Write = Callable[..., Path]
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"
BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
BURST_3 = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"
LOG = "arrival,prompt_tokens,output_tokens"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writer(*lines: str | bytes, name: str = "trace.csv", end: str = "\n", last: str | None = None) -> Path:
        raw = [x.encode() if isinstance(x, str) else x for x in lines]
        path = tmp_path / name
        path.write_bytes(end.encode().join(raw) + (end if last is None else last).encode())
        return path

    return writer


def read(path: Path, **options: Any) -> list[Request]:
    return list(open_trace(path, **options).arrivals())


def finished(path: Path, **options: Any) -> TraceSource:
    source = open_trace(path, **options)
    list(source.arrivals())
    return source


def complaint(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(path, **options)
    return str(caught.value)


def lengths(made: list[Request]) -> list[tuple[float, int, int]]:
    return [(r.arrival_s, r.prompt_tokens, r.output_tokens) for r in made]


# ---- Azure --------------------------------------------------------------------------------------


def test_azure_2023_shape_is_read_to_the_last_digit(write: Write) -> None:
    """CRLF, no newline at the end, seven digits, no zone."""
    path = write(
        AZURE, "2023-11-16 18:17:03.9799600,4808,10", "2023-11-16 18:17:04.0319601,3180,8",
        "2023-11-17 00:00:00.0000000,1,1", end="\r\n", last="",
    )  # fmt: skip
    made = read(path)
    assert lengths(made) == [(0.0, 4808, 10), (0.0520001, 3180, 8), (20_576.02004, 1, 1)]
    assert [r.spans for r in made] == [((P, 0, 4818),), ((P + 1, 0, 3188),), ((P + 2, 0, 2),)]
    assert [r.id for r in made] == [0, 1, 2]


def test_azure_2024_shape_with_zone_and_backward_steps_is_put_in_order(write: Write) -> None:
    """A step back before the first row and before midnight; a whole second without fraction."""
    path = write(
        AZURE, "2024-05-10 00:00:00.009930+00:00,2162,5", "2024-05-09 23:59:30+00:00,100,6",
        "2024-05-10 00:01:00.5+00:00,200,7", "2024-05-10 00:00:01.000001+00:00,300,8",
    )  # fmt: skip
    source = open_trace(path)
    assert lengths(list(source.arrivals())) == [
        (0.0, 100, 6), (pytest.approx(30.00993, abs=1e-9), 2162, 5),
        (pytest.approx(31.000001, abs=1e-9), 300, 8), (pytest.approx(90.5, abs=1e-9), 200, 7),
    ]  # fmt: skip
    assert source.report.sentences() == [
        "2 rows kept: arrives before a row above it: moved to its place (first on line 3)"
    ]


def test_azure_step_back_beyond_the_window_is_refused_with_line_and_field(write: Write) -> None:
    path = write(AZURE, "2024-05-10 00:00:00,1,1", "2024-05-10 00:10:00,1,1", "2024-05-09 23:59:00,1,1")
    text = complaint(path)
    assert text.startswith(f"{path}:4: TIMESTAMP = -60 s from the first row: steps back by 660 s; sort the file by it")


def test_azure_extra_columns_in_another_order_are_read_by_name(write: Write) -> None:
    path = write("NumImages,GeneratedTokens, ContextTokens ,TIMESTAMP", "3,10,4808,2024-10-15 00:00:01Z")
    source = open_trace(path)
    assert source.reader.name == "azure"
    assert lengths(list(source.arrivals())) == [(0.0, 4808, 10)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2023-11-16 18:17:03.97,-5,10", "ContextTokens = -5: is negative; write 0 or more, or remove the row"),
        ("2023-11-16 18:17:03.97,many,10", 'ContextTokens = "many": is not a number; write a number'),
        ("2023-11-16 18:17:03.97,,10", "ContextTokens: is empty; write a number, or remove the row"),
        ("2023-11-16 18:17:03.97,5, ", "GeneratedTokens: is empty"),
        ("2023-11-16 18:17:03.97,5.5,1", "ContextTokens = 5.5: is not a whole number of tokens; write an integer"),
        ("2023-11-16 18:17:03.97,1_000,1", 'ContextTokens = "1_000": is not a number'),
        ("2023-11-16 18:17:03.97,NaN,1", 'ContextTokens = "NaN": is not a number'),
        ("2023-11-16 18:17:03.97,1e999,1", "ContextTokens = 1e999: is not a finite number"),
        ("2023-11-16 18:17:03.97,99999999999,1", "ContextTokens = 99999999999: is more tokens than any model takes"),
        ("2023-11-16 18:17:03.97,5", "has 2 cells where the header has 3 columns; it may be cut off"),
        ("2023-11-16 18:17:03.97", "has 1 cell where the header has 3 columns; it may be cut off"),
        ("2023-11-16 18:17:03.97,5,6,7", "has 4 cells where the header has 3 columns; put a cell with a comma into"),
        ("2023-11-16,5,6", 'TIMESTAMP = "2023-11-16": is not a date and a time of day; write it like 2023-11-16 18:17'),
        ("1700158623.97,5,6", "TIMESTAMP = 1700158623.97: is not a date and a time of day"),
        (",5,6", "TIMESTAMP: is empty; write it like"),
        ("2023-13-16 18:17:03.97,5,6", "is not a date and a time of day"),
        ("2023-11-16 25:17:03.97,5,6", "is not a date and a time of day"),
        ("2023-11-16 18:17:63.97,5,6", "is not a date and a time of day"),
        ("2023-11-16 18:17:03.97+00:00,5,6", "has a zone, unlike the first"),
    ],
)
@pytest.mark.parametrize("quoted", [False, True])
def test_azure_bad_row_is_answered_with_file_line_field_value(
    write: Write, row: str, message: str, quoted: bool
) -> None:
    """The same where an earlier quote has handed the file to the csv module."""
    good = "2023-11-16 18:17:03.97,5,10"
    path = write(AZURE, f'"{good[:22]}"{good[22:]}' if quoted else good, good, row, good)
    text = complaint(path, format="azure")
    assert text.startswith(f"{path}:4: ")
    assert message in text


@pytest.mark.parametrize("column", AZURE.split(","))
def test_azure_missing_column_is_named_with_what_it_may_have_been(write: Write, column: str) -> None:
    path = write(AZURE.replace(column, column + "s"), "2023-11-16 18:17:03.97,5,10")
    assert complaint(path) == f"{path}:1: {column}: is missing from the header; rename '{column}s'"


# ---- BurstGPT -----------------------------------------------------------------------------------


def test_burstgpt_failures_are_dropped_and_noted(write: Write) -> None:
    path = write(
        BURST, "5,ChatGPT,472,18,490,Conversation log", "5,GPT-4,0,0,0,Conversation log",
        "5,ChatGPT,1087,230,1317,API log", "9,GPT-4,12,0,12,API log", "6700,ChatGPT,0,7,7,API log",
        "6800,GPT-4,0,0,0,API log", "6900,GPT-4,1,1,2,API log",
    )  # fmt: skip
    source = open_trace(path)
    made = list(source.arrivals())
    assert lengths(made) == [(5.0, 472, 18), (5.0, 1087, 230), (6900.0, 1, 1)]
    assert [r.id for r in made] == [0, 1, 2]
    assert (source.report.kept, source.report.dropped) == (3, 4)
    assert source.report.sentences() == [
        "2 rows dropped: Request tokens and Response tokens are 0: the request failed (first on line 3)",
        "1 row dropped: Response tokens is 0: nothing was generated (first on line 5)",
        "1 row dropped: Request tokens is 0: there is nothing to answer (first on line 6)",
    ]


@pytest.mark.parametrize("time", ["Timestamp", "Timestamp(s)"])
def test_burstgpt_versions_are_read_by_name(write: Write, time: str) -> None:
    first = write(BURST.replace("Timestamp", time), "5,GPT-4,472,18,490,API log", name="1.csv")
    third = write(BURST_3.replace("Timestamp", time), "5.0,,3,GPT-4,472,18,490,API log", name="3.csv")
    for path in (first, third):
        source = open_trace(path)
        assert source.reader.name == "burstgpt"
        assert [(*lengths([r]), r.session, r.spans) for r in source.arrivals()] == [
            ((5.0, 472, 18), -1, ((P, 0, 490),))
        ]


def test_burstgpt_sessions_grow_and_begin_anew_where_they_shrink(write: Write) -> None:
    path = write(
        BURST_3, "10.0,aa,1,GPT-4,100,50,150,Conversation log", "11.0,bb,1,GPT-4,10,5,15,Conversation log",
        "12.5,aa,1,GPT-4,150,20,170,Conversation log", "13.0,aa,1,GPT-4,0,0,0,Conversation log",
        "13.0,,1,GPT-4,30,20,50,API log", "14.0,aa,1,GPT-4,169,20,189,Conversation log",
        "15.0,aa,1,GPT-4,400,1,401,Conversation log",
    )  # fmt: skip
    source = open_trace(path)
    made = list(source.arrivals())
    assert [(r.session, r.turn, r.spans) for r in made] == [
        (0, 0, ((0, 0, 150),)), (1, 0, ((1, 0, 15),)), (0, 1, ((0, 0, 170),)), (-1, 0, ((P + 3, 0, 50),)),
        (0, 2, ((2, 0, 189),)), (0, 3, ((2, 0, 401),)),
    ]  # fmt: skip
    assert {n.code: n.count for n in source.report.notes.values()} == {"failed": 1, "session_anew": 1}
    assert not any(source.session_over(r) for r in made)
    assert all(source.after(r, 99.0, True) == () for r in made)


# ---- a log of one's own -------------------------------------------------------------------------


def as_json(header: str, *rows: str) -> list[str]:
    """The same rows as JSON Lines: numbers as numbers, empty cells as null."""
    names = next(csv.reader([header]))
    return [json.dumps(dict(zip(names, map(json_value, cells), strict=True))) for cells in csv.reader(rows)]


def json_value(cell: str) -> object:
    try:
        return json.loads(cell)
    except ValueError:
        return cell or None


@pytest.fixture(params=["csv", "jsonl"])
def write_log(write: Write, request: pytest.FixtureRequest) -> Write:
    """Writes a header and rows in either syntax."""

    def writer(header: str, *rows: str) -> Path:
        lines = (header, *rows) if request.param == "csv" else as_json(header, *rows)
        return write(*lines, name=f"log.{request.param}")

    return writer


def test_log_of_default_names_is_detected(write_log: Write) -> None:
    source = open_trace(write_log("id," + LOG, "x,0.5,100,10", "y,2,50,5"))
    assert source.reader.name == "log"
    assert [(r.arrival_s, r.prompt_tokens, r.output_tokens, r.spans) for r in source.arrivals()] == [
        (0.5, 100, 10, ((P, 0, 110),)),
        (2.0, 50, 5, ((P + 1, 0, 55),)),
    ]
    assert source.class_names == ("",)
    assert source.report.block_tokens is None


def test_log_is_told_by_its_content_and_not_by_its_name(write: Write) -> None:
    row = '{"arrival": 1, "prompt_tokens": 5, "output_tokens": 6}'
    assert lengths(read(write(row, name="log.csv"))) == [(1.0, 5, 6)]
    assert lengths(read(write(LOG, "1,5,6", name="log.jsonl"))) == [(1.0, 5, 6)]


@pytest.mark.parametrize(
    ("unit", "first", "second", "gap"),
    [
        ("s", "0.5", "2", 1.5),
        ("ms", "500", "2000.25", 1.50025),
        ("us", "500000", "2000000", 1.5),
        ("ns", "500000000", "2000000000", 1.5),
        (None, "1700000000.5", "1700000002.0", 1.5),
        ("ms", "1700000000500", "1700000002000", 1.5),
        (None, "2025-03-01T10:00:00.25Z", "2025-03-01T12:00:01.75+02:00", 1.5),
        ("datetime", "2025-03-01 10:00:00", "2025-03-01 10:00:01.5", 1.5),
    ],
)
def test_log_arrivals_of_any_unit_come_out_in_seconds(
    write_log: Write, unit: str | None, first: str, second: str, gap: float
) -> None:
    path = write_log("ts,in,out", f"{first},5,6", f"{second},5,6")
    columns = {"arrival": "ts", "prompt_tokens": "in", "output_tokens": "out"}
    one, two = read(path, columns=columns, arrival_unit=unit)
    assert two.arrival_s - one.arrival_s == pytest.approx(gap, abs=1e-6)
    assert one.arrival_s == (0.5 if first.startswith(("0.5", "500")) else 0.0)


def test_log_arrival_beyond_any_second_asks_for_the_unit(write_log: Write) -> None:
    path = write_log(LOG, "1700000000500,5,6")
    assert "arrival = 1700000000500: is later than the year 2286 if it is in seconds; give workload.arrival_unit" in (
        complaint(path)
    )
    assert len(read(path, arrival_unit="s")) == 1


def test_log_date_under_a_unit_is_refused(write_log: Write) -> None:
    path = write_log(LOG, "2025-03-01T10:00:00Z,5,6")
    assert "is a date, not a number of ms; leave workload.arrival_unit out" in complaint(path, arrival_unit="ms")


def test_log_equal_prefix_hashes_share_their_tokens(write_log: Write) -> None:
    path = write_log(
        LOG + ",prefix_hash,prefix_tokens", "0,100,10,aa,60", "1,200,10,aa,80", "2,100,10,bb,100", "3,100,10,,",
        "4,100,10,aa,0",
    )  # fmt: skip
    made = read(path)
    assert [r.spans for r in made] == [
        ((0, 0, 60), (P, 0, 50)),
        ((0, 0, 80), (P + 1, 0, 130)),
        ((1, 0, 100), (P + 2, 0, 10)),
        ((P + 3, 0, 110),),
        ((P + 4, 0, 110),),
    ]
    ceiling = Ceiling(1)
    assert [ceiling.add(r) for r in made] == [0, 60, 0, 0, 0]


def test_log_hash_without_tokens_is_taken_for_the_whole_prompt_and_noted(write_log: Write) -> None:
    source = open_trace(write_log(LOG + ",prefix_hash", "0,100,10,7f", "1,200,10,7f", "2,50,10,7f"))
    made = list(source.arrivals())
    ceiling = Ceiling(1)
    assert [ceiling.add(r) for r in made] == [0, 100, 49]
    assert source.report.notes["hash_of_prompt"].count == 3
    assert "hits may be fewer" in source.report.sentences()[0]


def test_log_hash_of_the_prompt_may_take_its_tokens_from_the_same_column(write_log: Write) -> None:
    path = write_log(LOG + ",h", "0,100,10,aa", "1,100,10,aa")
    columns = {"prefix_hash": "h", "prefix_tokens": "prompt_tokens"}
    source = finished(path, columns=columns)
    assert source.report.notes == {}
    assert [r.spans[0] for r in source.arrivals()] == [(0, 0, 100), (0, 0, 100)]


def test_log_sessions_grow_behind_their_head(write_log: Write) -> None:
    path = write_log(
        LOG + ",session,prefix_hash,prefix_tokens", "0,100,10,s1,sys,40", "1,90,10,s2,sys,40", "2,110,10,s1,sys,40",
        "3,500,10,s1,other,9", "4,300,10,s1,other,50", "5,310,10,s1,,",
    )  # fmt: skip
    source = open_trace(path)
    made = list(source.arrivals())
    assert [(r.session, r.turn, r.spans) for r in made] == [
        (0, 0, ((0, 0, 40), (1, 40, 70))),
        (1, 0, ((0, 0, 40), (2, 40, 60))),
        (0, 1, ((0, 0, 40), (1, 40, 80))),
        (0, 2, ((0, 0, 40), (1, 40, 470))),
        (0, 3, ((3, 0, 50), (4, 50, 260))),
        (0, 4, ((3, 0, 50), (4, 50, 270))),
    ]
    ceiling = Ceiling(1)
    assert [ceiling.add(r) for r in made] == [0, 40, 109, 120, 0, 309]
    assert {n.code: n.first_line for n in source.report.notes.values()} == {
        "hash_within_session": made_line(path, 3),
        "session_anew": made_line(path, 4),
    }


def made_line(path: Path, row: int) -> int:
    """The line of the ``row``-th row, from 0."""
    return row + (2 if path.suffix == ".csv" else 1)


def test_log_numeric_sessions_and_hashes_are_names(write: Write) -> None:
    """Hashes of 64 bits are beyond a float; as text and as number they are the same name."""
    big = 2**64 - 1
    base = {"arrival": 0, "prompt_tokens": 5, "output_tokens": 1, "prefix_tokens": 4}
    path = write(*(json.dumps({**base, "prefix_hash": h, "session": h}) for h in (big, str(big), 0)))
    made = read(path)
    assert [r.session for r in made] == [0, 0, 1]
    assert made[0].spans[0] == made[1].spans[0] != made[2].spans[0]


def test_log_classes_are_known_before_the_first_request(write_log: Write) -> None:
    source = open_trace(write_log(LOG + ",class", "0,5,6,chat", "1,5,6,", "2,5,0,lost", "3,5,6,batch", "4,5,6,chat"))
    assert source.class_names == ("chat", "", "batch")
    assert [r.cls for r in source.arrivals()] == ["chat", "", "batch", "chat"]
    limited = open_trace(source.path, limit=1)
    assert limited.class_names == ("chat",)


def test_log_of_too_many_classes_is_refused(write: Write) -> None:
    path = write(LOG + ",class", *(f"{k},5,6,{k}" for k in range(MOST_CLASSES + 1)))
    text = complaint(path)
    assert text.startswith(
        f"{path}:{MOST_CLASSES + 2}: class = {MOST_CLASSES}: is another class, after 1,000 different"
    )


def test_log_failed_rows_are_dropped_and_noted(write_log: Write) -> None:
    source = finished(write_log(LOG, "0,5,0", "1,0,0", "2,0,5", "3,5,5"))
    assert source.report.kept == 1
    assert [n.code for n in source.report.notes.values()] == ["no_output", "failed", "no_prompt"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("now,5,6,,1,s", 'arrival = "now": is '),
        ("-1,5,6,,1,s", "arrival = -1: is negative"),
        ("1e30,5,6,,1,s", "is no sensible time"),
        ("1,-5,6,,1,s", "prompt_tokens = -5: is negative"),
        ("1,x,6,,1,s", 'prompt_tokens = "x": is '),
        ("1,5,6,h,6,s", "prefix_tokens = 6: is more than the prompt's 5 tokens; count the tokens that the hash"),
        ("1,5,6,h,-1,s", "prefix_tokens = -1: is negative"),
        ("1,5,6,h,,s", "prefix_tokens"),
    ],
)
def test_log_bad_row_is_answered_with_file_line_field_value(write_log: Write, row: str, message: str) -> None:
    good = "0,5,6,h,1,s"
    path = write_log(LOG + ",prefix_hash,prefix_tokens,session", good, row)
    text = complaint(path)
    assert text.startswith(f"{path}:{made_line(path, 1)}: ")
    assert message in text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], "is a list, not text"),
        ({}, "is an object, not text"),
        (True, "is a boolean, not text"),
        (0.5, "is a number"),
    ],
)
def test_log_session_that_is_no_name_is_refused(write: Write, value: object, message: str) -> None:
    path = write(json.dumps({"arrival": 0, "prompt_tokens": 5, "output_tokens": 1, "session": value}))
    assert message in complaint(path)


def test_log_missing_column_says_how_to_name_it(write_log: Write) -> None:
    path = write_log("t,prompt,output_tokens", "0,5,6")
    text = complaint(path, format="log")
    assert text.startswith(f"{path}:1: arrival: is missing from the ")
    assert text.endswith("; the columns are t, prompt, output_tokens: say which it is with workload.columns.arrival")
    text = complaint(path, columns={"arrival": "t"})
    assert text.endswith("rename 'prompt', or write workload.columns.prompt_tokens: prompt")
    text = complaint(path, columns={"arrival": "t", "prompt_tokens": "prompt", "session": "user"})
    assert ": user: is missing from the " in text


def test_log_jsonl_row_without_a_key_is_named(write: Write) -> None:
    path = write('{"arrival":0,"prompt_tokens":5,"output_tokens":1}', '{"arrival":0,"output_tokens":1,"x":2}')
    assert complaint(path).startswith(f"{path}:2: prompt_tokens: is missing; the row has 'arrival'")


def test_log_settings_with_another_format_are_refused(write: Write) -> None:
    path = write(AZURE, "2023-11-16 18:17:03.97,5,10")
    assert complaint(path, format="azure", columns={"arrival": "TIMESTAMP"}) == (
        "workload.columns: does nothing with format azure; write format: log, or leave it out"
    )
    assert "workload.arrival_unit: does nothing with format azure" in complaint(
        path, format="azure", arrival_unit="datetime"
    )
    named = {"arrival": "TIMESTAMP", "prompt_tokens": "ContextTokens", "output_tokens": "GeneratedTokens"}
    assert lengths(read(path, columns=named)) == lengths(read(path))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": {"arival": "t"}}, "workload.columns = 'arival': is not known; did you mean 'arrival'?"),
        ({"arrival_unit": "min"}, "workload.arrival_unit = 'min': is not known; valid: s, ms, us, ns, datetime"),
        ({"columns": {"prefix_tokens": "n"}}, "workload.columns.prefix_tokens: does nothing without a prefix_hash"),
    ],
)
def test_log_settings_that_are_none_are_refused(write: Write, options: dict[str, Any], message: str) -> None:
    assert complaint(write(LOG, "0,5,6"), **options).startswith(message)


# ---- the file itself ----------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", None])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("quotes", [False, True])
def test_csv_of_any_ending_mark_and_quotes_reads_the_same(
    write: Write, end: str, last: str | None, mark: str, quotes: bool
) -> None:
    rows = ["0,5,6,a", "1,7,8,b"]
    if quotes:
        rows = ['"0","5","6","a, with ""comma"" and' + end + 'line"', '1,"7",8,"b"']
    path = write(mark + LOG + ',"the, note"', *rows, end=end, last=last)
    assert lengths(read(path)) == [(0.0, 5, 6), (1.0, 7, 8)]


def test_csv_rows_after_a_cell_of_many_lines_keep_their_line_numbers(write: Write) -> None:
    path = write(LOG + ",note", '0,5,6,"one', "two", 'three"', "1,5,6,x", "2,no,6,y")
    assert complaint(path).startswith(f'{path}:6: prompt_tokens = "no": is not a number')


def test_csv_blank_lines_are_skipped_and_noted(write: Write) -> None:
    plain = finished(write("", LOG, "", "0,5,6", "  ", "1,5,6", ""))
    quoted = finished(write(LOG, '"0",5,6', "", "1,5,6", "", name="q.csv"))
    assert plain.report.sentences() == ["4 rows dropped: the line is blank (first on line 1)"]
    assert quoted.report.sentences() == ["2 rows dropped: the line is blank (first on line 3)"]


def test_csv_packed_with_gzip_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(gzip.compress(f"{LOG}\n0,5,6\n".encode()))
    assert lengths(read(path)) == [(0.0, 5, 6)]


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ([LOG, '0,"5,6'], 2, "is not CSV: unexpected end of data"),
        ([LOG, '0,"5"x,6'], 2, "is not CSV: ',' expected after '\"'"),
        ([LOG, '0,"5', *["x" * 1000] * 200], 2, "is not CSV: field larger than field limit"),
        ([LOG, "0,5,\xff".encode("latin-1")], 2, "is not UTF-8 text"),
        ([LOG, b'0,"5",\xff'], 2, "is not UTF-8 text"),
        (["0,5,6", "1,5,6"], 1, "the first line is data: write the names of the columns above it"),
        ([LOG.replace(",", ";"), "0;5;6"], 1, "its columns are separated by semicolons: write commas"),
        ([LOG.replace(",", "\t"), "0\t5\t6"], 1, "its columns are separated by tabs: write commas"),
        (["hello world"], 1, "the first line has no comma: is this CSV? It begins 'hello world'"),
        ([LOG + ",arrival", "0,5,6,7"], 1, "arrival: is in the header twice; rename one of the two"),
        ([f"{LOG}\r0,5,6\r"], 1, "has lines that end in a carriage return alone"),
        (['"arrival,prompt_tokens', '0,5"'], 1, "is no header: unexpected end of data"),
        ([b"\xff,arrival"], 1, "is not UTF-8 text"),
        ([LOG, "0,5," + "6" * (16 << 20)], 2, "is longer than 16,777,216 bytes"),
    ],
)
def test_csv_that_is_none_is_answered_with_file_and_line(
    write: Write, lines: list[str | bytes], line: int, message: str
) -> None:
    path = write(*lines)
    text = complaint(path, format="log")
    assert text.startswith(f"{path}:{line}: ")
    assert message in text
    assert len(text) < 400 + len(str(path))


@pytest.mark.parametrize("format", ["azure", "burstgpt", "log"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "is a Git LFS pointer, not the data"),
        (b"PK\x03\x04", "is a zip archive"),
    ],
)
def test_csv_files_that_are_no_text_are_named(tmp_path: Path, format: str, content: bytes, message: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    assert message in complaint(path, format=format)


@pytest.mark.parametrize("format", ["azure", "burstgpt"])
def test_csv_format_on_json_lines_is_refused(write: Write, format: str) -> None:
    path = write('{"arrival": 0, "prompt_tokens": 5, "output_tokens": 6}')
    assert complaint(path, format=format).startswith(f"{path}:1: ")


def test_csv_header_alone_is_refused_as_a_trace_of_no_rows(write: Write) -> None:
    with pytest.raises(InputError, match="has no request that can be served; give a trace with at least one row"):
        finished(write(AZURE))


# ---- properties ---------------------------------------------------------------------------------

MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1))
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))])


@given(st.lists(st.tuples(MOMENTS, ZONES), min_size=2, max_size=8), st.sampled_from(["T", " "]))
def test_clock_agrees_with_datetime_whatever_the_zones(moments: list[tuple[datetime, timezone]], mark: str) -> None:
    clock = CivilClock()
    aware = [moment.replace(tzinfo=zone) for moment, zone in moments]
    for moment in aware:
        expected_us = (moment - aware[0]) // timedelta(microseconds=1)
        assert clock.seconds(moment.isoformat(mark)) == expected_us / 1e6


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@given(st.lists(st.tuples(st.integers(1, 9999), st.integers(1, 999), CELLS), min_size=1, max_size=20), st.booleans())
def test_csv_rows_that_the_csv_module_wrote_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, str]], quote_all: bool
) -> None:
    path = tmp_path_factory.mktemp("csv") / "log.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL)
        writer.writerow(["note", *LOG.split(",")])
        writer.writerows([note, k, prompt, output] for k, (prompt, output, note) in enumerate(rows))
    assert lengths(read(path)) == [(float(k), prompt, output) for k, (prompt, output, _) in enumerate(rows)]


@given(
    st.lists(
        st.tuples(
            st.integers(1, 60),
            st.integers(1, 20),
            st.sampled_from(["", "a", "b"]),
            st.sampled_from(["", "x", "y"]),
            st.floats(0, 1),
        ),
        min_size=1,
        max_size=25,
    )
)
def test_log_spans_cover_each_request_and_continue_their_session(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, str, str, float]]
) -> None:
    """Whatever is mixed: all tokens are described, and a prompt that grew holds what its session held."""
    path = tmp_path_factory.mktemp("log") / "log.csv"
    lines = [f"{k},{p},{o},{s},{h},{int(p * share)}" for k, (p, o, s, h, share) in enumerate(rows)]
    path.write_text("\n".join([LOG + ",session,prefix_hash,prefix_tokens", *lines]))
    made = read(path)
    assert len(made) == len(rows)
    for request in made:
        assert sum(length for _, _, length in request.spans) == request.prompt_tokens + request.output_tokens
        assert all(length > 0 for _, _, length in request.spans)
    for name in "ab":
        turns = [r for r, row in zip(made, rows, strict=True) if row[2] == name]
        assert [r.turn for r in turns] == list(range(len(turns)))
        for one, two in pairwise(turns):
            held = one.prompt_tokens + one.output_tokens
            if two.prompt_tokens >= held:
                assert tokens_of(two)[:held] == tokens_of(one)
            else:
                assert two.spans[-1][0] != one.spans[-1][0]


def tokens_of(request: Request) -> list[tuple[int, int]]:
    return [(stream, start + k) for stream, start, length in request.spans for k in range(length)]
