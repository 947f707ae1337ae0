"""The interface of a trace reader. One file of this package holds one format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from simkv.workload.readers.plan import SessionPlan
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import Request


class TraceReader(Protocol):
    """Reads one format, streaming: memory doesn't grow with the file.

    Yields requests in *file* order with ids 0, 1, ... and times as the file has them, in seconds;
    :func:`open_trace` sorts, shifts, scales and limits. Rows that can't be served but are no fault
    (an output of no tokens) are left out and noted in the report; anything wrong raises InputError
    with file, line, field, value and mend.
    """

    @property
    def name(self) -> str:
        """The format's name, as in ``workload.format``."""

    @property
    def summary(self) -> str:
        """What a row looks like, in half a line, for messages."""

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether a file that begins with ``lines`` is (a possibly faulty file) of this format."""

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Yield the requests of ``path`` and collect in ``report`` what was odd."""


@runtime_checkable
class ClassReader(Protocol):
    """A trace reader of a format in which rows may name their class."""

    def has_classes(self, path: Path) -> bool:
        """Return whether the rows of ``path`` do; looks at its front only."""


@runtime_checkable
class SessionReader(TraceReader, Protocol):
    """A trace reader of a format of sessions, whose later requests wait for earlier ones."""

    def sessions(self, path: Path, report: ReadReport) -> Iterator[SessionPlan]:
        """Yield the sessions of ``path`` in order of ``start_s``, each with a number of its own and a turn at least."""

    def expected_requests(self, path: Path, sessions: int | None) -> int:
        """Return about how many requests the first so many sessions of ``path`` have, at least 1; None: all."""
