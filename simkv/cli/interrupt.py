"""What Ctrl-C, and what means the same, does to a command: it ends in order, with exit code 130."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import typer

from simkv.interrupt import STOPS, Interrupt

__all__ = ["INTERRUPTED", "Interrupt", "kept_in", "stoppable"]

INTERRUPTED = 130


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Let whatever asks the process to stop do what Ctrl-C does; what is ignored (nohup) stays so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOPS}
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
