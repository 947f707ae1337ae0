"""The LLM inference traces of Azure (2023 and 2024): CSV of civil times and lengths, nothing shared.

``TIMESTAMP,ContextTokens,GeneratedTokens``: ``2023-11-16 18:17:03.9799600,4808,10``, or with a zone
as ``2024-05-10 00:00:00.009930+00:00``. Other columns don't matter. Times in the files of 2024 step back by up
to a minute. Source: github.com/Azure/AzurePublicDataset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from simkv.workload.readers.civil import MEND, CivilClock
from simkv.workload.readers.content import Contents, is_served
from simkv.workload.readers.csvrows import Table, header
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import Request

TIME, PROMPT, OUTPUT = "TIMESTAMP", "ContextTokens", "GeneratedTokens"


class AzureReader:
    """Reads the CSV of Azure's LLM inference traces."""

    name = "azure"
    summary = f"CSV with {TIME} (date and time),{PROMPT},{OUTPUT}"

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether the header has two of the three columns."""
        return len(header(lines) & {TIME, PROMPT, OUTPUT}) >= 2

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Yield the requests in file order, each private, their times counted from the first row."""
        table, contents, clock = Table(path, report, (TIME, PROMPT, OUTPUT)), Contents(report), CivilClock()
        report.time_key, report.clock = TIME, True
        when, context, generated = (table.column(name) for name in (TIME, PROMPT, OUTPUT))
        for line, row in table.rows():
            text = row[when].strip()
            try:
                arrival_s = clock.seconds(text)
            except ValueError as error:
                raise table.bad(line, when, text, str(error), MEND) from None
            prompt = table.tokens(row, context, line, 0)
            output = table.tokens(row, generated, line, 0)
            if is_served(prompt, output, (PROMPT, OUTPUT), report):
                yield contents.request(arrival_s, prompt, output)
