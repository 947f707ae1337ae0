"""Progress of a long run, on stderr, on a terminal only."""

from __future__ import annotations

import sys
import time
from shutil import get_terminal_size
from types import TracebackType

_SILENT_S = 2.0
_EVERY_S = 0.2
_BAR = 24


class Progress:
    """Called with the fraction done; from two seconds on shows it with the time that is left."""

    def __init__(self) -> None:
        self._start_s = time.monotonic()
        self._next_s = self._start_s + _SILENT_S
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def __call__(self, fraction: float, doing: str = "") -> None:
        """Note that ``fraction`` (0 to 1) of the work is done, and what is done next."""
        now_s = time.monotonic()
        if not self._terminal or now_s < self._next_s:
            return
        self._next_s = now_s + _EVERY_S
        self._shown = True
        line = self.line(fraction, now_s - self._start_s) + (f"  {doing}" if doing else "")
        print(f"\r\x1b[K{line[: get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line of text; the bar comes again below it."""
        print(("\r\x1b[K" if self._shown else "") + text, file=sys.stderr, flush=True)

    @staticmethod
    def line(fraction: float, elapsed_s: float) -> str:
        """Return the line to show after ``elapsed_s`` with ``fraction`` done."""
        done = min(1.0, max(0.0, fraction))
        bar = "#" * round(done * _BAR)
        left = f"{long(elapsed_s * (1 - done) / done)} left" if done > 0 else "just begun"
        return f"[{bar:<{_BAR}}] {done:4.0%}  {left}"


def long(time_s: float) -> str:
    """Return a time in the unit that one would say it in."""
    if time_s < 120:
        return f"{time_s:.0f} s"
    return f"{time_s / 60:.0f} min" if time_s < 7200 else f"{time_s / 3600:.1f} h"
