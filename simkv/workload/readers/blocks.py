"""Hashed blocks of prompts: block ids of a row, checked, as spans of token content, and rows that have them.

An id stands for the content of one block: id ``k`` is tokens ``k * block_tokens ...`` of one
stream, so that a partial block and a full one of the same id agree as far as the shorter goes,
and two prompts share as many leading blocks as their ids agree, whatever comes behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from simkv.errors import InputError
from simkv.workload.readers.content import is_served
from simkv.workload.readers.jsonl import Fields, Row, kind, rows
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Span

MAX_ID = 2**53
_MAX_START = 2**62
"""Of a span, as simkv's own format has it: large blocks have fewer ids."""
_INT = {int}


def block_spans(ids: Sequence[int], prompt_tokens: int, block_tokens: int, stream: int = 0) -> list[Span]:
    """Return the spans of a prompt's blocks: each maximal run of consecutive ids is one span of ``stream``."""
    spans: list[Span] = []
    if not ids:
        return spans
    first = following = ids[0]
    for block in ids:
        if block != following:
            spans.append((stream, first * block_tokens, (following - first) * block_tokens))
            first = block
        following = block + 1
    tail = max(0, len(ids) * block_tokens - prompt_tokens)
    spans.append((stream, first * block_tokens, (following - first) * block_tokens - tail))
    return spans


def block_ids(
    row: Row, line: int, prompt_tokens: int, block_tokens: int, fields: Fields, keys: tuple[str, str]
) -> list[int]:
    """Return the ids of ``row``, one a block of the prompt, the partial last block's there or left out.

    ``keys`` are the names of the ids and of the prompt's length.
    """
    key = keys[0]
    ids = row.get(key)
    if ids is None and key not in row:
        raise fields.missing(row, key, line)
    if type(ids) is not list:
        raise fields.bad(line, key, ids, f"is {kind(ids)}, not a list", "write one number a block of the prompt")
    most = min(MAX_ID, _MAX_START // block_tokens)
    if ids and (set(map(type, ids)) != _INT or min(ids) < 0 or max(ids) >= most):
        raise _bad_id(ids, most, line, key, fields)
    if len(ids) not in (-(-prompt_tokens // block_tokens), prompt_tokens // block_tokens):
        raise _wrong_count(ids, line, keys, prompt_tokens, block_tokens, fields)
    return ids


def hashed_requests(
    path: Path, report: ReadReport, keys: Sequence[str], block_tokens: int, times_per_s: float
) -> Iterator[Request]:
    """Yield the requests of JSON Lines with ``timestamp``, ``input_length``, ``output_length`` and ``hash_ids``.

    ``keys`` are all those of the format, ``times_per_s`` how many of its time units make a second. Rows
    without output are dropped and noted.
    """
    fields = Fields(path, keys)
    report.time_key = "timestamp"
    report.block_tokens = block_tokens
    for line, row in rows(path, report):
        arrival_s = fields.time(row, "timestamp", line) / times_per_s
        prompt = fields.tokens(row, "input_length", line, 1)
        output = fields.tokens(row, "output_length", line, 0)
        ids = block_ids(row, line, prompt, block_tokens, fields, ("hash_ids", "input_length"))
        if is_served(prompt, output, ("input_length", "output_length"), report):
            yield hashed_request(arrival_s, prompt, output, ids, block_tokens, report)


def hashed_request(
    arrival_s: float, prompt: int, output: int, ids: Sequence[int], block_tokens: int, report: ReadReport
) -> Request:
    """Return the next request of ``report``: its blocks, and a private rest of prompt and output.

    ``block_tokens`` 0: it has no hashes at all.
    """
    i = report.kept
    report.kept += 1
    spans = block_spans(ids, prompt, block_tokens)
    covered = min(prompt, len(ids) * block_tokens)
    if covered < prompt and block_tokens:
        report.note("no_tail_id", "hash_ids leaves out the partial last block: taken as private", report.line)
    spans.append((PRIVATE_STREAM_BASE + i, 0, prompt - covered + output))
    return Request(i, arrival_s, prompt, output, tuple(spans))


def _bad_id(ids: list[Any], most: int, line: int, key: str, fields: Fields) -> InputError:
    for k, value in enumerate(ids):
        if type(value) is not int or value < 0:
            return fields.bad(line, f"{key}[{k}]", value, "is not a block number", "write integers from 0 up")
        if value >= most:
            what, mend = "is a hash rather than a block number", "number the distinct hashes from 0 up"
            return fields.bad(line, f"{key}[{k}]", value, what, mend)
    raise AssertionError(ids)


def _wrong_count(
    ids: list[int], line: int, keys: tuple[str, str], prompt_tokens: int, block_tokens: int, fields: Fields
) -> InputError:
    expected = -(-prompt_tokens // block_tokens)
    what = f"has {len(ids):,} ids where {keys[1]} = {prompt_tokens:,} makes {expected:,} blocks of {block_tokens}"
    fits = [b for b in (16, 32, 64, 128, 256, 512, 1024) if len(ids) == -(-prompt_tokens // b)]
    mend = "give one id a block"
    if fits:
        mend = f"the ids fit blocks of {fits[0]} tokens, another format; aiperf is read with workload.block_tokens"
    return fields.bad(line, keys[0], ids, what, mend)
