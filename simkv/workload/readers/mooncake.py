"""Mooncake traces (FAST'25): JSON Lines with chained hashes of 512-token blocks.

``{"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}``, one id a block of
the prompt, the last block partial: ``len(hash_ids) = ceil(input_length / 512)``. An id stands for
a block's content; two prompts share as many leading blocks as their ids agree. Block ``id`` is
tokens ``id * 512 ...`` of stream 0, so that a partial block and a full one of the same id agree as
far as the shorter goes. Where the id of the partial block is left out (floor instead of ceil)
that tail counts as private.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from simkv.errors import InputError
from simkv.workload.readers.jsonl import Fields, Row, first_objects, kind, rows
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Span

BLOCK_TOKENS = 512
MAX_ID = 2**53
_KEYS = ("timestamp", "input_length", "output_length", "hash_ids")


class MooncakeReader:
    """Reads Mooncake JSONL."""

    name = "mooncake"
    summary = '{"timestamp": ms, "input_length", "output_length", "hash_ids": [...]}, 512-token blocks'

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether some row has most of the keys, and no key of the formats that look alike."""
        return any(
            sum(key in row for key in _KEYS) >= 3 and "chat_id" not in row and "session_id" not in row
            for row in first_objects(lines)
        )

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Yield the requests in file order; rows without output are dropped and noted."""
        fields = Fields(path, _KEYS)
        report.time_key = "timestamp"
        report.block_tokens = BLOCK_TOKENS
        for line, row in rows(path, report):
            arrival_s = fields.time(row, "timestamp", line) / 1000
            prompt = fields.tokens(row, "input_length", line, 1)
            output = fields.tokens(row, "output_length", line, 0)
            ids = _ids(row, line, prompt, fields)
            if output == 0:
                report.note("no_output", "output_length is 0: nothing was generated", line, dropped=True)
                continue
            i = report.kept
            spans = block_spans(ids, prompt)
            covered = min(prompt, len(ids) * BLOCK_TOKENS)
            if covered < prompt:
                report.note("no_tail_id", "hash_ids leaves out the partial last block: taken as private", line)
            spans.append((PRIVATE_STREAM_BASE + i, 0, prompt - covered + output))
            report.kept += 1
            yield Request(i, arrival_s, prompt, output, tuple(spans))


def block_spans(ids: list[int], prompt_tokens: int) -> list[Span]:
    """Return the spans of a prompt's blocks: each maximal run of consecutive ids is one span of stream 0."""
    spans: list[Span] = []
    if not ids:
        return spans
    first = following = ids[0]
    for block in ids:
        if block != following:
            spans.append((0, first * BLOCK_TOKENS, (following - first) * BLOCK_TOKENS))
            first = block
        following = block + 1
    tail = max(0, len(ids) * BLOCK_TOKENS - prompt_tokens)
    spans.append((0, first * BLOCK_TOKENS, (following - first) * BLOCK_TOKENS - tail))
    return spans


def _ids(row: Row, line: int, prompt_tokens: int, fields: Fields) -> list[int]:
    ids = row.get("hash_ids")
    if ids is None and "hash_ids" not in row:
        raise fields.missing(row, "hash_ids", line)
    if type(ids) is not list:
        raise fields.bad(line, "hash_ids", ids, f"is {kind(ids)}, not a list", "write one number a block of the prompt")
    if ids and (set(map(type, ids)) != _INT or min(ids) < 0 or max(ids) >= MAX_ID):
        raise _bad_id(ids, line, fields)
    if len(ids) not in (-(-prompt_tokens // BLOCK_TOKENS), prompt_tokens // BLOCK_TOKENS):
        raise _wrong_count(ids, line, prompt_tokens, fields)
    return ids


_INT = {int}


def _bad_id(ids: list[Any], line: int, fields: Fields) -> InputError:
    for k, value in enumerate(ids):
        if type(value) is not int or value < 0:
            return fields.bad(line, f"hash_ids[{k}]", value, "is not a block number", "write integers from 0 up")
        if value >= MAX_ID:
            what, mend = "is a hash rather than a block number", "number the distinct hashes from 0 up"
            return fields.bad(line, f"hash_ids[{k}]", value, what, mend)
    raise AssertionError(ids)


def _wrong_count(ids: list[int], line: int, prompt_tokens: int, fields: Fields) -> InputError:
    expected = -(-prompt_tokens // BLOCK_TOKENS)
    what = f"has {len(ids):,} ids where input_length = {prompt_tokens:,} makes {expected:,} blocks of {BLOCK_TOKENS}"
    fits = [b for b in (16, 32, 64, 128, 256, 1024) if len(ids) == -(-prompt_tokens // b)]
    mend = f"the ids fit blocks of {fits[0]} tokens, another format" if fits else "give one id a block"
    return fields.bad(line, "hash_ids", ids, what, mend)
