"""Plain JSON Lines of lengths and arrivals: nothing is known of content, so nothing is shared.

Two spellings: simkv's own ``{"arrival_s", "prompt_tokens", "output_tokens"}`` and that of
LLMServingSim workloads, ``{"arrival_time_ns", "input_toks", "output_toks"}``. The first row
decides which; other keys are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from simkv.workload.readers.jsonl import Fields, Row, first_objects, rows
from simkv.workload.readers.report import ReadReport
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


class LengthsReader:
    """Reads JSONL of lengths and arrivals."""

    name = "lengths"
    summary = '{"arrival_s", "prompt_tokens", "output_tokens"} or {"arrival_time_ns", "input_toks", "output_toks"}'

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether some row has two of the three columns of a spelling."""
        return any(_spelling(row).matches(row) >= 2 for row in first_objects(lines))

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Yield the requests in file order, each private; rows without output are dropped and noted."""
        fields = Fields(path, [key for s in SPELLINGS for key in (s.arrival, s.prompt, s.output)])
        spelling = None
        for line, row in rows(path, report):
            if spelling is None:
                spelling = _spelling(row)
                report.time_key = spelling.arrival
            arrival_s = fields.time(row, spelling.arrival, line) / spelling.per_s
            prompt = fields.tokens(row, spelling.prompt, line, 1)
            output = fields.tokens(row, spelling.output, line, 0)
            if output == 0:
                report.note("no_output", f"{spelling.output} is 0: nothing was generated", line, dropped=True)
                continue
            i = report.kept
            report.kept += 1
            yield Request(i, arrival_s, prompt, output, ((PRIVATE_STREAM_BASE + i, 0, prompt + output),))


def _spelling(row: Row) -> Spelling:
    return max(SPELLINGS, key=lambda s: s.matches(row))
