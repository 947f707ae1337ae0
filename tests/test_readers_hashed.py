"""Traces with block hashes, on small files of our own and on the public samples."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.scenario.base import literal_values
from simkv.scenario.workload_schema import TraceWorkload
from simkv.workload.ceiling import Ceiling
from simkv.workload.inspect import Inspection, inspect_requests
from simkv.workload.readers import READERS, ReadReport, open_trace
from simkv.workload.readers.blocks import block_spans
from simkv.workload.readers.tokens import TokenBlocks
from simkv.workload.request import PRIVATE_STREAM_BASE as P
from simkv.workload.request import Request

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writer(*rows: dict[str, Any] | str, name: str = "trace.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path

    return writer


def read(path: Path, **options: Any) -> list[Request]:
    return list(open_trace(path, **options).arrivals())


def inspected(path: Path) -> tuple[Inspection, ReadReport]:
    """Read the whole file as ``simkv trace inspect`` does."""
    reader = open_trace(path).reader
    report = ReadReport(reader.name)
    return inspect_requests(reader.read(path, report), report), report


def complaint(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(path, **options)
    return str(caught.value)


def covered(requests: list[Request]) -> bool:
    """Whether the spans of each request cover its prompt and output exactly."""
    return all(sum(length for _, _, length in r.spans) == r.prompt_tokens + r.output_tokens for r in requests)


# ---- long prompts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    [
        {"timestamp": 0, "input_length": 512 * 40_000, "output_length": 1, "hash_ids": list(range(40_000))},
        {"chat_id": 1, "timestamp": 0.0, "input_length": 640_000, "output_length": 1, "hash_ids": list(range(40_000))},
        {"arrival_time_ns": 0, "input_toks": 40_000, "output_toks": 1, "input_tok_ids": list(range(40_000))},
    ],
    ids=["mooncake", "qwen", "lengths"],
)
@pytest.mark.parametrize("last", [False, True])
def test_format_is_known_by_a_first_row_of_any_length(write: Write, row: dict[str, Any], last: bool) -> None:
    """What tells formats apart may stand behind the ids."""
    ids = {key: value for key, value in row.items() if isinstance(value, list)}
    first = {**{key: value for key, value in row.items() if key not in ids}, **ids} if last else {**ids, **row}
    path = write(first, row)
    assert 150_000 < path.stat().st_size < 2 << 20
    assert [r.prompt_tokens for r in read(path)] == [r.prompt_tokens for r in read(write(row, row))]
    assert len(read(path)) == 2


def test_first_row_that_is_too_long_is_said_to_be(write: Write) -> None:
    row = {"timestamp": 0, "input_length": 512 * 2_200_000, "output_length": 1, "hash_ids": list(range(2_200_000))}
    assert 'trace.jsonl:1: {"timestamp": 0, "input_lengt…: is longer than 16,777,216 bytes' in complaint(write(row))


# ---- blocks -------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 12), max_size=12), st.integers(0, 3), st.integers(1, 5))
def test_block_spans_say_what_each_position_holds(ids: list[int], missing: int, block_tokens: int) -> None:
    prompt = max(0, len(ids) * block_tokens - min(missing, block_tokens - 1))
    spans = block_spans(ids, prompt, block_tokens, 7)
    content = [(s, start + k) for s, start, length in spans for k in range(length)]
    assert content == [(7, ids[p // block_tokens] * block_tokens + p % block_tokens) for p in range(prompt)]
    assert all(a[1] + a[2] != b[1] for a, b in pairwise(spans))


# ---- Qwen-Bailian -------------------------------------------------------------------------------


def qwen(ids: list[int], tokens: int | None = None, timestamp: float = 0.0, **more: Any) -> dict[str, Any]:
    return {
        "chat_id": 1,
        "parent_chat_id": -1,
        "timestamp": timestamp,
        "input_length": len(ids) * 16 if tokens is None else tokens,
        "output_length": 5,
        "type": "text",
        "turn": 1,
        "hash_ids": ids,
        **more,
    }


def test_qwen_times_are_seconds_and_the_last_block_partial(write: Write) -> None:
    made = read(write(qwen([3, 4, 9], 40, 1.25), qwen([3, 4], 32, 2.5)))
    assert [(r.arrival_s, r.prompt_tokens, r.output_tokens, r.session) for r in made] == [
        (1.25, 40, 5, -1),
        (2.5, 32, 5, -1),
    ]
    assert made[0].spans == ((0, 48, 32), (0, 144, 8), (P, 0, 5))
    assert covered(made)


def test_qwen_id_that_comes_again_behind_another_predecessor_is_no_reuse(write: Write) -> None:
    """The same block of text elsewhere: its KV is another. Counting known ids would find 8 of 13 blocks."""
    rows = [[1, 2, 3], [1, 9, 3, 2], [9, 3], [3, 1, 2], [1, 9, 3]]
    made = read(write(*map(qwen, rows)))
    ceiling = Ceiling(1)
    assert [ceiling.add_uncapped(r) // 16 for r in made] == [0, 1, 0, 0, 3]


def test_qwen_id_twice_in_a_row_counts_where_it_stands(write: Write) -> None:
    made = read(write(qwen([5, 5, 5]), qwen([5, 5, 6]), qwen([5, 6, 5])))
    assert made[0].spans[:3] == ((0, 80, 16), (0, 80, 16), (0, 80, 16))
    ceiling = Ceiling(1)
    assert [ceiling.add_uncapped(r) // 16 for r in made] == [0, 2, 1]


@pytest.mark.parametrize("kind", ["thinking", "image", "no such type"])
def test_qwen_parents_that_are_not_there_and_types_change_nothing(write: Write, kind: str) -> None:
    assert len(read(write(qwen([1], parent_chat_id=77, type=kind, turn=4)))) == 1


def test_qwen_without_output_is_dropped_and_noted(write: Write) -> None:
    source = open_trace(write(qwen([1], output_length=0), qwen([2])))
    assert [r.id for r in source.arrivals()] == [0]
    assert source.report.sentences() == ["1 row dropped: output_length is 0: nothing was generated (first on line 1)"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (qwen([1, 2], 50), "hash_ids = [1, 2]: has 2 ids where input_length = 50 makes 4 blocks of 16"),
        (qwen([1], 512), "the ids fit blocks of 512 tokens, another format"),
        (qwen([1, -2]), "hash_ids[1] = -2: is not a block number"),
        (qwen([], 5), ""),
        (qwen([1], timestamp="now"), 'timestamp = "now": is text, not a number'),
        ({"chat_id": 1, "turn": 1, "type": "text", "timestamp": 1.0}, "input_length: is missing"),
    ],
)
def test_qwen_bad_row_is_answered_with_file_line_field_value(write: Write, row: dict[str, Any], message: str) -> None:
    path = write(qwen([1]), row)
    if not message:
        assert len(read(path)) == 2
        return
    text = complaint(path)
    assert text.startswith(f"{path}:2: ")
    assert message in text


@pytest.mark.shared
def test_qwen_sample_has_the_statistics_of_the_index(shared: Path) -> None:
    inspection, report = inspected(shared / "traces/qwen_bailian/qwen_traceA_blksz_16_sample40.jsonl")
    answer = inspection.answer()
    assert (answer["format"], answer["requests"], report.notes, round(answer["span_s"])) == ("qwen", 40, {}, 53)
    prompt, output = answer["prompt_tokens"], answer["output_tokens"]
    assert [round(prompt["mean"]), prompt["p50"], prompt["p95"], prompt["max"]] == [1_611, 747, 6_312, 14_257]
    assert [round(output["mean"]), output["p50"], output["p95"], output["max"]] == [361, 291, 919, 1_014]
    cache = answer["infinite_cache"]
    assert round(cache["block_hit_rate"], 4) == 0.1342
    assert round(cache["token_hit_rate"], 4) == 0.1347
    assert cache["block_tokens"] == 16


# ---- Dynamo -------------------------------------------------------------------------------------

HIGH = 2**63 + 11
"""Above what a signed integer holds, and odd: no float holds it either."""


def dynamo(hashes: list[int] | None, tokens: int, received_ms: int = 1_779_163_048_815, **more: Any) -> dict[str, Any]:
    request = {"input_tokens": tokens, "output_tokens": 3, "request_received_ms": received_ms, **more}
    if hashes is not None:
        request["replay"] = {"trace_block_size": 16, "input_length": tokens, "input_sequence_hashes": hashes}
    return {
        "timestamp": 5,
        "event": {"schema": "dynamo.request.trace.v1", "event_type": "request_end", "request": request},
    }


def tool(kind: str) -> dict[str, Any]:
    return {"timestamp": 5, "event": {"schema": "dynamo.request.trace.v1", "event_type": kind, "tool": {}}}


def test_dynamo_hashes_are_whole_64_bit_numbers(write: Write) -> None:
    made = read(write(dynamo([HIGH, HIGH - 1], 32), dynamo([HIGH, HIGH + 1], 32), dynamo([HIGH, 2**64 - 1], 32)))
    assert [r.spans for r in made] == [
        ((0, 0, 32), (P, 0, 3)),
        ((0, 0, 16), (0, 32, 16), (P + 1, 0, 3)),
        ((0, 0, 16), (0, 48, 16), (P + 2, 0, 3)),
    ]


def test_dynamo_hashes_that_are_new_together_make_one_run(write: Write) -> None:
    made = read(write(dynamo([90, 7, 2**64 - 2, 13], 60), dynamo([90, 7, 2**64 - 2, 44, 3], 80)))
    assert made[0].spans == ((0, 0, 60), (P, 0, 3))
    assert made[1].spans == ((0, 0, 48), (0, 64, 32), (P + 1, 0, 3))
    assert covered(made)


def test_dynamo_rows_come_at_their_arrival_and_count_from_the_first(write: Write) -> None:
    at = 1_779_163_000_000
    source = open_trace(write(dynamo([1], 16, at + 9_000), dynamo([2], 16, at), dynamo([3], 16, at + 9_500)))
    assert [(r.id, r.arrival_s) for r in source.arrivals()] == [(1, 0.0), (0, 9.0), (2, 9.5)]
    assert source.report.notes["out_of_order"].count == 1


def test_dynamo_request_that_took_half_an_hour_is_put_where_it_arrived(write: Write) -> None:
    at = 1_779_163_000_000
    assert [r.id for r in read(write(dynamo([1], 16, at + 1_800_000), dynamo([2], 16, at)))] == [1, 0]
    assert "steps of over 3600 s" in complaint(write(*(dynamo([1], 16, at + t) for t in (0, 9_000_000, 99_000_000, 5))))


def test_dynamo_other_events_are_skipped_by_kind(write: Write) -> None:
    path = write(tool("tool_start"), dynamo([1], 16), tool("tool_end"), tool("tool_end"), tool("tool_error"), tool("x"))
    source = open_trace(path)
    assert len(list(source.arrivals())) == 1
    notes = source.report.notes
    assert {code: notes[code].count for code in notes} == {
        "tool_start": 1,
        "tool_end": 2,
        "tool_error": 1,
        "other_event": 1,
    }
    assert all(note.dropped for note in notes.values())


def test_dynamo_request_without_replay_is_private_and_noted(write: Write) -> None:
    source = open_trace(write(dynamo(None, 40), dynamo([1], 16)))
    assert [r.spans for r in source.arrivals()] == [((P, 0, 43),), ((0, 0, 16), (P + 1, 0, 3))]
    assert list(source.report.notes) == ["no_replay"]


def test_dynamo_sessions_are_numbered_with_their_turns(write: Write) -> None:
    rows = [dynamo([1], 16) for _ in range(4)]
    for row, name in zip(rows, ["a", "b", "a", None], strict=True):
        row["event"]["agent_context"] = {"session_id": name} if name else None
    assert [(r.session, r.turn) for r in read(write(*rows))] == [(0, 0), (1, 0), (0, 1), (-1, 0)]


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return a row with one of its fields replaced."""
    row = dynamo([1, 2], 32)
    *outer, last = path.split(".")
    inner: Any = row
    for key in outer:
        inner = inner[key]
    inner[last] = value
    return row


REQUEST, REPLAY = "event.request", "event.request.replay"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("event", 5, "event = 5: is a number, not an object"),
        ("event", None, "event: is missing"),
        ("event.schema", "dynamo.request.trace.v2", 'event.schema = "dynamo.request.trace.v2": is another schema'),
        ("event.schema", None, "event.schema = null: is missing; dynamo.request.trace.v1 is read"),
        (REQUEST, None, "event.request: is missing"),
        (f"{REQUEST}.request_received_ms", None, f"{REQUEST}.request_received_ms = null: is null, not a number"),
        (f"{REQUEST}.input_tokens", 0, f"{REQUEST}.input_tokens = 0: is no tokens at all"),
        (f"{REQUEST}.output_tokens", -1, f"{REQUEST}.output_tokens = -1: is negative"),
        (REPLAY, [], f"{REPLAY} = []: is a list, not an object"),
        (f"{REPLAY}.trace_block_size", 0, f"{REPLAY}.trace_block_size = 0: is no tokens at all"),
        (f"{REPLAY}.trace_block_size", 32, f"{REPLAY}.trace_block_size = 32: differs from the rows above"),
        (f"{REPLAY}.input_sequence_hashes", [1], f"{REPLAY}.input_sequence_hashes = [1]: has 1 hashes where"),
        (f"{REPLAY}.input_sequence_hashes", [1, 2.0], "is no list of unsigned 64-bit integers"),
        (f"{REPLAY}.input_sequence_hashes", [1, -2], "is no list of unsigned 64-bit integers"),
        (f"{REPLAY}.input_sequence_hashes", [1, 2**64], "is no list of unsigned 64-bit integers"),
    ],
)
def test_dynamo_bad_row_is_answered_with_file_line_field_value(
    write: Write, path: str, value: Any, message: str
) -> None:
    file = write(dynamo([1], 16), changed(path, value))
    text = complaint(file)
    assert text.startswith(f"{file}:2: ")
    assert message in text


def test_dynamo_without_output_is_dropped_and_noted(write: Write) -> None:
    source = open_trace(write(dynamo([1], 16, output_tokens=0), dynamo([1], 16)))
    assert [r.id for r in source.arrivals()] == [0]
    assert source.report.notes["no_output"].dropped


@pytest.mark.shared
def test_dynamo_sample_has_the_reuse_that_its_hashes_tell(shared: Path) -> None:
    """A sequence hash stands for all before it, so counting known hashes is counting leading blocks."""
    path = shared / "traces/other_formats/pi_request_trace.jsonl.gz"
    events = [json.loads(line)["event"] for line in gzip.decompress(path.read_bytes()).splitlines()]
    rows = [event["request"] for event in events if event["event_type"] == "request_end"]
    known: set[int] = set()
    hits = []
    for row in rows:
        hashes = row["replay"]["input_sequence_hashes"]
        hits.append(len(known.intersection(hashes)))
        known.update(hashes)
    assert max(known) >= 2**63
    inspection, report = inspected(path)
    cache = inspection.answer()["infinite_cache"]
    assert (inspection.requests, report.kept, report.block_tokens) == (17, 17, 16)
    assert {note.code: note.count for note in report.notes.values() if note.dropped} == {
        "tool_start": 22,
        "tool_end": 20,
        "tool_error": 2,
    }
    assert (cache["block_hits"], cache["unique_blocks"]) == (sum(hits), len(known)) == (2_980, 1_183)
    made = read(path)
    assert covered(made)
    assert sum(r.prompt_tokens for r in made) == sum(row["input_tokens"] for row in rows) == 66_520
    assert [r.arrival_s for r in made] == sorted(r.arrival_s for r in made)
    assert {r.session for r in made} == set(range(5))


# ---- tokens of LLMServingSim --------------------------------------------------------------------


def served(inputs: list[int] | None, outputs: list[int] | None, **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"input_toks": 40, "output_toks": 8, "arrival_time_ns": 5_000_000_000}
    if inputs is not None:
        row |= {"input_tok_ids": inputs, "input_toks": len(inputs)}
    if outputs is not None:
        row |= {"output_tok_ids": outputs, "output_toks": len(outputs)}
    return {**row, **more}


def test_tokens_share_full_blocks_of_equal_beginnings(write: Write) -> None:
    text = list(range(1000, 1050))
    path = write(
        served(text, [7] * 20), served([*text[:33], 1, 2], [8]), served([9, *text], [7] * 20), served(text, [6])
    )
    made = read(path)
    assert made[0].spans == ((0, 0, 64), (P, 0, 6))
    assert made[1].spans == ((0, 0, 32), (P + 1, 0, 4))
    assert made[2].spans == ((0, 64, 64), (P + 2, 0, 7))
    assert made[3].spans == ((0, 0, 48), (P + 3, 0, 3))
    assert covered(made)


def test_tokens_of_an_answer_are_shared_by_the_prompt_that_goes_on(write: Write) -> None:
    """The third block of the first request is half prompt, half answer."""
    prompt, answer = list(range(40)), list(range(100, 130))
    made = read(write(served(prompt, answer), served([*prompt, *answer, *range(200, 210)], [1])))
    ceiling = Ceiling(1)
    assert [ceiling.add_uncapped(r) for r in made] == [0, 64]


def test_tokens_that_fill_their_blocks_leave_nothing_private(write: Write) -> None:
    assert read(write(served(list(range(20)), list(range(12)))))[0].spans == ((0, 0, 32),)


def test_tokens_may_be_known_of_prompts_alone_or_of_some_rows(write: Write) -> None:
    made = read(write(served(list(range(32)), None), served(None, None), served(list(range(32)), None)))
    assert [r.spans[0] for r in made] == [(0, 0, 32), (P + 1, 0, 48), (0, 0, 32)]


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=70), min_size=2, max_size=6))
def test_token_blocks_agree_as_far_as_the_tokens_do(texts: list[list[int]]) -> None:
    blocks = TokenBlocks()
    numbered = [blocks.number(text) for text in texts]
    for text, numbers in zip(texts, numbered, strict=True):
        for other, others in zip(texts, numbered, strict=True):
            common = next((k for k, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), 10**6)
            common = min(common, len(text), len(other))
            shared = [a == b for a, b in zip(numbers, others, strict=False)]
            assert shared == [k < common // 16 for k in range(len(shared))]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (served([1, 2], [3], input_toks=5), "input_tok_ids = [1, 2]: has 2 ids where there are 5 tokens"),
        (served([1, 2], [3], output_toks=2), "output_tok_ids = [3]: has 1 ids where there are 2 tokens"),
        (served([1, -2], [3]), "input_tok_ids = [1, -2]: is no list of token ids"),
        (served([1, 2.0], [3]), "is no list of token ids"),  # type: ignore[list-item]
        (served([1, 2**32], [3]), "input_tok_ids = 4294967296: is no token of any vocabulary"),
        (served(None, None, input_tok_ids="x"), 'input_tok_ids = "x": is no list of token ids'),
    ],
)
def test_tokens_that_do_not_fit_are_answered(write: Write, row: dict[str, Any], message: str) -> None:
    path = write(served([1], [2]), row)
    text = complaint(path)
    assert text.startswith(f"{path}:2: ")
    assert message in text


@pytest.mark.shared
def test_tokens_of_the_public_sample_share_their_prefixes(shared: Path) -> None:
    path = shared / "traces/other_formats/example_trace.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    made = read(path)
    assert len(made) == len(rows) == 10
    assert covered(made)
    ceiling = Ceiling(1)
    hits = [ceiling.add_uncapped(r) for r in made]
    texts = [row["input_tok_ids"] + row["output_tok_ids"] for row in rows]
    for k, row in enumerate(rows):
        common = [_common(texts[k], other) // 16 * 16 for other in texts[:k]]
        assert hits[k] == min(max(common, default=0), row["input_toks"])


def _common(one: list[int], other: list[int]) -> int:
    differing = (k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))


# ---- telling apart, block counts ----------------------------------------------------------------


@pytest.mark.parametrize(("row", "name"), [(qwen([1]), "qwen"), (dynamo([1], 16), "dynamo")])
def test_format_is_told_by_its_keys(write: Write, row: dict[str, Any], name: str) -> None:
    assert open_trace(write(row)).reader is READERS[name]


@pytest.mark.parametrize(("tokens", "ids", "blocks"), [(48, 3, 3), (47, 3, 3), (47, 2, 2), (33, 2, 2), (15, 0, 0)])
def test_blocks_of_a_row_are_those_of_its_hashed_tokens(write: Write, tokens: int, ids: int, blocks: int) -> None:
    """Whether the partial last block has an id (ceil) or not (floor)."""
    inspection, report = inspected(write(qwen(list(range(ids)), tokens)))
    assert report.block_tokens == 16
    assert (inspection.answer()["infinite_cache"]["block_references"] or 0) == blocks


def test_formats_of_a_scenario_are_those_that_can_be_read() -> None:
    assert literal_values(TraceWorkload.model_fields["format"].annotation) == ("auto", *READERS)
