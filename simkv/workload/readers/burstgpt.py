"""BurstGPT, use of GPT-3.5 and GPT-4 over months: CSV of seconds and lengths; from version 3 on, of sessions.

``Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type``; version 3 adds ``Session ID``
(empty for API calls) and ``Elapsed time``, and its seconds have a fraction. Every row is an arrival at its
own time, sessions or not; a session's request repeats what was said in it before, as
:mod:`simkv.workload.readers.content` has it. Model and log type are not looked at. Failures are
rows of 0 tokens. Source: github.com/HPMLL/BurstGPT.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from simkv.workload.readers.content import Contents, is_served
from simkv.workload.readers.csvrows import Table, header
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import Request

TIMES = ("Timestamp", "Timestamp(s)")
SESSION, PROMPT, OUTPUT = "Session ID", "Request tokens", "Response tokens"


class BurstGptReader:
    """Reads the CSV of BurstGPT."""

    name = "burstgpt"
    summary = f"CSV with {TIMES[0]} (s),{PROMPT},{OUTPUT}[,{SESSION}]"

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether the header has one of the columns of lengths, and another of the format."""
        names = header(lines)
        return bool(names & {PROMPT, OUTPUT}) and len(names & {*TIMES, PROMPT, OUTPUT}) >= 2

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Yield the requests in file order; those of 0 tokens are dropped and noted."""
        table, contents = Table(path, report, (*TIMES, SESSION, PROMPT, OUTPUT)), Contents(report)
        when, asked, answered = table.column(*TIMES), table.column(PROMPT), table.column(OUTPUT)
        session_of = table.column(SESSION) if SESSION in table.names else None
        report.time_key = table.names[when]
        for line, row in table.rows():
            arrival_s = table.time(row, when, line)
            prompt = table.tokens(row, asked, line, 0)
            output = table.tokens(row, answered, line, 0)
            if not is_served(prompt, output, (PROMPT, OUTPUT), report):
                continue
            session = row[session_of].strip() if session_of is not None else ""
            yield contents.request(arrival_s, prompt, output, session)
