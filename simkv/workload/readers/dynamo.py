"""Dynamo request traces: JSON Lines of events, with hashes of the sequence up to each block.

A line is ``{"timestamp": ms, "event": {"schema": "dynamo.request.trace.v1", "event_type": ...}}``.
``request_end`` events are requests: ``event.request`` has ``request_received_ms`` (the arrival, Unix
time), ``input_tokens``, ``output_tokens`` and, where it was recorded, ``replay`` with
``trace_block_size`` and ``input_sequence_hashes``, one a block, the last one partial. A hash is an
unsigned 64-bit number that stands for all tokens up to and with its block; a request without
``replay`` is private. Other events (``tool_start``, ...) are no requests.

Lines are written when a request ends, so arrivals are out of order by as much as requests last.
Hashes are numbered in order of first appearance, which turns what was new together into runs:
memory grows with the number of different blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from simkv.workload.readers.blocks import hashed_request
from simkv.workload.readers.content import is_served
from simkv.workload.readers.jsonl import Fields, Row, first_objects, kind, rows
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import Request

SCHEMA = "dynamo.request.trace.v1"
LONGEST_S = 3600.0
"""How far arrivals may step back: no request lasts longer."""
_FAMILY = "dynamo.request.trace"
_TOOL_EVENTS = ("tool_start", "tool_end", "tool_error")
_HASHES, _SIZE = "event.request.replay.input_sequence_hashes", "event.request.replay.trace_block_size"


class DynamoReader:
    """Reads Dynamo request traces."""

    name = "dynamo"
    summary = f'{{"timestamp", "event": {{"schema": "{SCHEMA}", "event_type", "request": {{...}}}}}}'

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether some row is an event of the schema, whatever its version."""
        return any(str(_event(row).get("schema", "")).startswith(_FAMILY) for row in first_objects(lines))

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Yield the requests in file order, which is that of their ends; noted are events that are none."""
        report.time_key = "event.request.request_received_ms"
        report.clock = True
        report.window_s = LONGEST_S
        sessions = _Numbers()
        turns: dict[int, int] = {}
        for request, name in self._requests(path, report):
            if name:
                request.session = sessions[name]
                request.turn = turns.get(request.session, 0)
                turns[request.session] = request.turn + 1
            yield request

    def _requests(self, path: Path, report: ReadReport) -> Iterator[tuple[Request, str]]:
        """Yield each request and the name of its session."""
        fields, blocks = Fields(path), _Numbers()
        for line, row in rows(path, report):
            event = _checked(row, line, fields)
            if event.get("event_type") != "request_end":
                _note_event(event.get("event_type"), line, report)
                continue
            body = _object(event, "request", line, fields, "event.request")
            if body is None:
                raise fields.under("event.").missing(event, "request", line)
            inner = fields.under("event.request.")
            arrival_s = inner.time(body, "request_received_ms", line) / 1000
            prompt = inner.tokens(body, "input_tokens", line, 1)
            output = inner.tokens(body, "output_tokens", line, 0)
            ids, block_tokens = _blocks(body, line, prompt, blocks, fields, report)
            if not is_served(prompt, output, ("input_tokens", "output_tokens"), report):
                continue
            context = event.get("agent_context")
            name = context.get("session_id") if isinstance(context, dict) else None
            made = hashed_request(arrival_s, prompt, output, ids, block_tokens, report)
            yield made, name if isinstance(name, str) else ""


def _note_event(kind_: object, line: int, report: ReadReport) -> None:
    if kind_ in _TOOL_EVENTS:
        report.note(str(kind_), f"the event is a {kind_}, no request", line, dropped=True)
    else:
        report.note("other_event", "the event is of a kind that is no request", line, dropped=True)


class _Numbers(dict[Any, int]):
    """Numbers things in order of first appearance."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


def _event(row: Row) -> Row:
    event = row.get("event")
    return event if isinstance(event, dict) else {}


def _checked(row: Row, line: int, fields: Fields) -> Row:
    """Return the event of ``row``, which must be of the schema's version."""
    event = _object(row, "event", line, fields, "event")
    if event is None:
        raise fields.missing(row, "event", line)
    schema = event.get("schema")
    if schema != SCHEMA:
        what = "is missing" if schema is None else "is another schema"
        raise fields.bad(line, "event.schema", schema, what, f"{SCHEMA} is read")
    return event


def _object(row: Row, key: str, line: int, fields: Fields, path: str) -> Row | None:
    """Return the object ``row[key]``; None where it is absent or null."""
    value = row.get(key)
    if value is not None and not isinstance(value, dict):
        raise fields.bad(line, path, value, f"is {kind(value)}, not an object", "write {...}")
    return value


def _blocks(
    body: Row, line: int, prompt: int, blocks: _Numbers, fields: Fields, report: ReadReport
) -> tuple[list[int], int]:
    """Return the blocks of a request as numbers, and their size in tokens; ([], 0) where none were recorded."""
    replay = _object(body, "replay", line, fields, "event.request.replay")
    if replay is None or replay.get("input_sequence_hashes") is None:
        report.note("no_replay", "the request has no replay hashes: taken as private", line)
        return [], 0
    size = fields.under("event.request.replay.").tokens(replay, "trace_block_size", line, 1)
    if report.block_tokens is None:
        report.block_tokens = size
    if size != report.block_tokens:
        mend = f"keep traces of {report.block_tokens} and of {size} tokens a block in files of their own"
        raise fields.bad(line, _SIZE, size, "differs from the rows above", mend)
    hashes = replay["input_sequence_hashes"]
    if type(hashes) is not list or any(type(h) is not int or not 0 <= h < 1 << 64 for h in hashes):
        raise fields.bad(line, _HASHES, hashes, "is no list of unsigned 64-bit integers", "write one hash a block")
    if len(hashes) not in (-(-prompt // size), prompt // size):
        what = f"has {len(hashes):,} hashes where input_tokens = {prompt:,} makes {-(-prompt // size):,} blocks"
        raise fields.bad(line, _HASHES, hashes, what, f"give one a block of {size} tokens")
    return [blocks[h] for h in hashes], size
