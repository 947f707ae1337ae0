"""Plain JSON Lines of lengths and arrivals, and of tokens where a row has them.

Two spellings: simkv's own ``{"arrival_s", "prompt_tokens", "output_tokens"}`` and that of
LLMServingSim workloads, ``{"arrival_time_ns", "input_toks", "output_toks"}``. The first row
decides which. Rows may hold their tokens as ``input_tok_ids`` and ``output_tok_ids``: such
requests share what they begin with, in full blocks of 16 tokens of prompt and answer. Of others
nothing is known, and nothing is shared. Further keys are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from simkv.workload.readers.blocks import block_spans
from simkv.workload.readers.content import is_served
from simkv.workload.readers.jsonl import Fields, Row, first_objects, rows
from simkv.workload.readers.report import ReadReport
from simkv.workload.readers.tokens import BLOCK_TOKENS, MOST, TokenBlocks
from simkv.workload.request import PRIVATE_STREAM_BASE, Request


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a kind of file names its columns, and how many of its time units make a second."""

    arrival: str
    prompt: str
    output: str
    per_s: float

    def matches(self, row: Row) -> int:
        """Return how many of the columns ``row`` has."""
        return sum(key in row for key in (self.arrival, self.prompt, self.output))


SPELLINGS = (
    Spelling("arrival_s", "prompt_tokens", "output_tokens", 1.0),
    Spelling("arrival_time_ns", "input_toks", "output_toks", 1e9),
)


_INPUT_IDS, _OUTPUT_IDS = "input_tok_ids", "output_tok_ids"


class LengthsReader:
    """Reads JSONL of lengths and arrivals."""

    name = "lengths"
    summary = (
        '{"arrival_s", "prompt_tokens", "output_tokens"} or '
        '{"arrival_time_ns", "input_toks", "output_toks"[, "input_tok_ids", "output_tok_ids"]}'
    )

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether some row has two of the three columns of a spelling."""
        return any(_spelling(row).matches(row) >= 2 for row in first_objects(lines))

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Yield the requests in file order; rows without output are dropped and noted."""
        fields = Fields(path, [key for s in SPELLINGS for key in (s.arrival, s.prompt, s.output)])
        spelling, blocks = None, TokenBlocks()
        for line, row in rows(path, report):
            if spelling is None:
                spelling = _spelling(row)
                report.time_key = spelling.arrival
            arrival_s = fields.time(row, spelling.arrival, line) / spelling.per_s
            prompt = fields.tokens(row, spelling.prompt, line, 1)
            output = fields.tokens(row, spelling.output, line, 0)
            if not is_served(prompt, output, (spelling.prompt, spelling.output), report):
                continue
            tokens = _tokens(row, line, ((_INPUT_IDS, prompt), (_OUTPUT_IDS, output)), fields)
            if tokens:
                report.block_tokens = BLOCK_TOKENS
            i = report.kept
            report.kept += 1
            spans = block_spans(blocks.number(tokens), len(tokens), BLOCK_TOKENS)
            rest = prompt + output - sum(length for _, _, length in spans)
            private = ((PRIVATE_STREAM_BASE + i, 0, rest),) if rest else ()
            yield Request(i, arrival_s, prompt, output, (*spans, *private))


def _tokens(row: Row, line: int, lists: tuple[tuple[str, int], ...], fields: Fields) -> list[int]:
    """Return the tokens of prompt and output, as many as the row holds; ``lists`` are keys and lengths."""
    tokens: list[int] = []
    for key, length in lists:
        given = row.get(key)
        if given is None:
            break
        if type(given) is not list or (given and (set(map(type, given)) != {int} or min(given) < 0)):
            raise fields.bad(line, key, given, "is no list of token ids", "write integers from 0 up")
        if len(given) != length:
            what = f"has {len(given):,} ids where there are {length:,} tokens"
            raise fields.bad(line, key, given, what, "give one id a token, or leave the ids out")
        if given and max(given) > MOST:
            raise fields.bad(line, key, max(given), "is no token of any vocabulary", "check the ids")
        tokens += given
    return tokens


def _spelling(row: Row) -> Spelling:
    return max(SPELLINGS, key=lambda s: s.matches(row))
