"""Shares of one piece of work, each by a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Share = TypeVar("Share")


def on_all(pool: ThreadPoolExecutor, shares: Iterable[Share], do: Callable[[Share], object]) -> None:
    """Do every share at the same time, and return when all are done; raises what went wrong first."""
    for one in [pool.submit(do, share) for share in shares]:
        one.result()
