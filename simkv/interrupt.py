"""Ctrl-C, and what means the same, between two events of a run, not in the middle of one, so that it is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any

STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Asked to stop: by its user, by the system or a batch queue, by a terminal that closes."""


class Interrupt:
    """While entered, the first Ctrl-C waits for the next :meth:`check`; a second one interrupts at once.

    So does one before the first check: nothing has begun that should stay whole.
    """

    def __init__(self, stops: Sequence[signal.Signals] = STOPS) -> None:
        self._stops = stops
        self._asked = False
        self._begun = False
        self._before: dict[signal.Signals, Any] = {}
        self._alone = threading.current_thread() is threading.main_thread()  # only there signals can be handled

    def __enter__(self) -> Interrupt:
        if self._alone:
            taken = [number for number in self._stops if signal.getsignal(number) is not signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._note) for number in taken}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt where Ctrl-C was pressed since."""
        self._begun = True
        if self._asked:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._asked or not self._begun:
            raise KeyboardInterrupt
        self._asked = True


class Undisturbed(Interrupt):
    """While entered, Ctrl-C waits, however often it is pressed, until the block has ended: for a moment's work."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if kind is None:
            self.check()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
