"""Jobs done in the command's own process: starting others takes longer than most of what is asked here."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class Here:
    """Takes the place of ``simkv.jobs.local.Local``."""

    lost: tuple[type[BaseException], ...] = ()
    tries = 1
    size = room = 1

    def __init__(self, size: int) -> None:
        pass

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Call ``function`` at once."""
        future: Future[Any] = Future()
        future.set_result(function(*args))
        return future

    def check(self) -> None:
        """Do nothing: nobody is lost."""

    def abandon(self) -> None:
        """Do nothing: nobody is at work."""

    def close(self) -> None:
        """Do nothing: nobody waits."""


def stay_here() -> None:
    """Let this process do its own jobs."""
    from simkv.jobs import workers

    workers.Local = Here  # type: ignore[misc,assignment]
