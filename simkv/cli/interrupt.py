"""Ctrl-C, and what means the same; between two events of a run, not in the middle of one, so that it is whole."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import typer

INTERRUPTED = 130
_STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Asked to stop: by its user, by the system or a batch queue, by a terminal that closes."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Let whatever asks the process to stop do what Ctrl-C does; what is ignored (nohup) stays so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _STOPS}
    theirs = [number for number, handler in before.items() if handler is signal.SIG_DFL]
    try:
        for number in theirs:
            signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number in theirs:
            signal.signal(number, before[number])


@contextlib.contextmanager
def kept_in(folder: Path, file: str) -> Iterator[None]:
    """Where Ctrl-C comes, say that what was finished is kept in ``file`` of ``folder``, and exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        if not (folder / file).is_file():
            raise
        text = f"interrupted: what was finished is kept in {folder / file}; the same command goes on"
        print(text, file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


class Interrupt:
    """While entered, the first Ctrl-C waits for :meth:`check`; a second one interrupts at once."""

    def __init__(self) -> None:
        self._asked = False
        self._before: dict[signal.Signals, Any] = {}
        self._alone = threading.current_thread() is threading.main_thread()  # only there signals can be handled

    def __enter__(self) -> Interrupt:
        if self._alone:
            taken = [number for number in _STOPS if signal.getsignal(number) is not signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._note) for number in taken}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt where Ctrl-C was pressed since."""
        if self._asked:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
