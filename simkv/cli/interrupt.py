"""Ctrl-C between two events of a run, not in the middle of one: what is finished is then whole."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupt:
    """While entered, the first Ctrl-C waits for :meth:`check`; a second one interrupts at once."""

    def __init__(self) -> None:
        self._asked = False
        self._before: Any = None
        self._alone = threading.current_thread() is threading.main_thread()  # only there signals can be handled

    def __enter__(self) -> Interrupt:
        if self._alone:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._alone:
            signal.signal(signal.SIGINT, self._before)

    def check(self) -> None:
        """Raise KeyboardInterrupt where Ctrl-C was pressed since."""
        if self._asked:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
