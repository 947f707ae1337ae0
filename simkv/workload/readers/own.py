"""simkv's own trace format: JSON Lines, a header and then one request a line.

The header is ``{"simkv_trace": 1, "source_format": "mooncake", "block_tokens": 512}``, with ``"clock": true``
where times count from any moment, the first row's say, and so may be negative, ``"window_s"`` where they
may step back by more or less than elsewhere, ``"classes": true`` where rows name their class, and
``"sessions": true`` where they are turns (``own_sessions.py``); a request
``{"arrival_s", "prompt_tokens", "output_tokens", "spans": [[stream, start, length], ...]}`` with
``session``, ``turn``, ``class`` and ``group`` where it has them. ``spans`` describes the content
of prompt and output as ``workload/request.py`` does; what is left of the two is private, and a
private piece between shared ones has stream -1. Without ``spans`` all is private.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from simkv.errors import InputError
from simkv.workload.readers.faults import MAX_TIME, MAX_TOKENS
from simkv.workload.readers.files import head
from simkv.workload.readers.jsonl import Fields, Row, first_objects, kind, rows
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Span, Spans

VERSION = 1
MARK = "simkv_trace"
PRIVATE = -1
"""Stands for a stream that nothing else names."""
KEYS = ("arrival_s", "prompt_tokens", "output_tokens", "spans", "session", "turn", "class", "group")
_HEADER_KEYS = (MARK, "source_format", "block_tokens", "clock", "window_s", "classes", "sessions")


class OwnReader:
    """Reads what ``simkv trace convert`` writes."""

    name = "simkv"
    summary = f'a line {{"{MARK}": {VERSION}, ...}}, then {{"arrival_s", "prompt_tokens", "output_tokens", "spans"}}'

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether the first line is the header of a trace without sessions."""
        return any(MARK in row and not row.get("sessions") for row in first_objects(lines[:1]))

    def has_classes(self, path: Path) -> bool:
        """Return whether the header says that rows name their class."""
        return any(row.get("classes") is True for row in first_objects(head(path).split(b"\n", 1)[:1]))

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Yield the requests in file order; rows without output are dropped and noted."""
        fields, classes = Fields(path, KEYS), self.has_classes(path)
        for line, row in own_rows(path, report):
            if row.get("output_tokens") == 0:
                report.note("no_output", "output_tokens is 0: nothing was generated", line, dropped=True)
                continue
            request = own_request(row, line, fields, report)
            if len(row) > 3 + ("spans" in row):
                _add_extras(request, row, line, fields)
                if request.cls and not classes:
                    mend = f'write "classes": true into the first line, beside "{MARK}"'
                    raise fields.bad(line, "class", request.cls, "is not announced", mend)
            yield request


def own_rows(path: Path, report: ReadReport) -> Iterator[tuple[int, Row]]:
    """Yield the rows behind the header, which fills ``report``."""
    report.time_key = "arrival_s"
    every = rows(path, report)
    for line, header in every:
        _read_header(header, line, Fields(path, _HEADER_KEYS), report)
        break
    yield from every


def own_request(row: Row, line: int, fields: Fields, report: ReadReport) -> Request:
    """Return the request of a row, as the next that is kept: its time, lengths and content."""
    arrival_s = _clock_time(row, line, fields) if report.clock else fields.time(row, "arrival_s", line)
    prompt = fields.tokens(row, "prompt_tokens", line, 1)
    output = fields.tokens(row, "output_tokens", line, 1)
    spans = _spans(row, line, report.kept, prompt + output, fields)
    report.kept += 1
    return Request(report.kept - 1, arrival_s, prompt, output, spans)


def _read_header(header: Row, line: int, fields: Fields, report: ReadReport) -> None:
    if MARK not in header:
        mend = "this is no file that 'simkv trace convert' wrote, or its first line was lost"
        raise fields.bad(line, MARK, None, "is missing", mend)
    if header[MARK] != VERSION:
        mend = f"this simkv reads version {VERSION}; convert the source again"
        raise fields.bad(line, MARK, header[MARK], "is another version", mend)
    if header.get("block_tokens") is not None:
        report.block_tokens = fields.tokens(header, "block_tokens", line, 1)
    report.clock = header.get("clock") is True
    if header.get("window_s") is not None:
        report.window_s = fields.time(header, "window_s", line)


def _clock_time(row: Row, line: int, fields: Fields) -> float:
    """Return the arrival, which may be negative."""
    value = row.get("arrival_s")
    if isinstance(value, int | float) and not isinstance(value, bool) and -MAX_TIME <= value <= MAX_TIME:
        return float(value)
    return fields.time(row, "arrival_s", line)


def _spans(row: Row, line: int, number: int, tokens: int, fields: Fields) -> Spans:
    """Return the spans of a request of ``tokens`` tokens in all; what the row leaves out is private."""
    given = row.get("spans", [])
    if not _well_formed(given):
        raise _bad_spans(given, line, fields)
    private = PRIVATE_STREAM_BASE + number
    spans: list[Span] = [(private if s == PRIVATE else s, start, length) for s, start, length in given]
    left = tokens - sum(length for _, _, length in spans)
    if left < 0:
        what = f"covers {tokens - left:,} tokens where prompt and output have {tokens:,}"
        raise fields.bad(line, "spans", given, what, "let it cover no more than both")
    if left:
        start = max((start + length for stream, start, length in given if stream == PRIVATE), default=0)
        spans.append((private, start, left))
    return tuple(spans)


_INT = {int}


def _well_formed(spans: Any) -> bool:
    """Return whether ``spans`` is a list of ``[stream, start, length]`` in their bounds."""
    if type(spans) is not list or any(type(span) is not list or len(span) != 3 for span in spans):
        return False
    if not set(map(type, chain.from_iterable(spans))) <= _INT:
        return False
    return all(
        PRIVATE <= stream < PRIVATE_STREAM_BASE and 0 <= start < 2**62 and 0 < length <= 2 * MAX_TOKENS
        for stream, start, length in spans
    )


def _bad_spans(spans: Any, line: int, fields: Fields) -> InputError:
    mend = "write [[stream, start, length], ...]: a stream from 0 up (or -1), a start from 0 up, a length from 1 up"
    if type(spans) is not list:
        return fields.bad(line, "spans", spans, f"is {kind(spans)}, not a list", mend)
    for k, span in enumerate(spans):
        if not _well_formed([span]):
            return fields.bad(line, f"spans[{k}]", span, "is no span", mend)
    raise AssertionError(spans)


def _add_extras(request: Request, row: Row, line: int, fields: Fields) -> None:
    """Take over what only some rows have."""
    for key in ("session", "turn", "group"):
        if key in row:
            setattr(request, key, fields.tokens(row, key, line, 0))
    if "class" in row:
        if type(row["class"]) is not str:
            raise fields.bad(line, "class", row["class"], f"is {kind(row['class'])}, not text", "write a name")
        request.cls = row["class"]
