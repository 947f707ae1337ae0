"""Jobs done in the command's own process: starting others takes longer than most of what is asked here."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Here:
    """Takes the place of ``simkv.jobs.local.Local``."""

    lost: tuple[type[BaseException], ...] = ()
    tries = 1
    size = room = 1

    def __init__(self, size: int) -> None:
        self._thread = ThreadPoolExecutor(1)

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Have ``function`` called at once, beside whoever waits for it and says that he does."""
        return self._thread.submit(function, *args)

    def check(self) -> None:
        """Do nothing: nobody is lost."""

    def abandon(self) -> None:
        """Do nothing: the process ends with what is at work."""

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False)


def stay_here() -> None:
    """Let this process do its own jobs."""
    from simkv.jobs import workers

    workers.Local = Here  # type: ignore[misc,assignment]
