"""Pieces of work for the tests of jobs: importable where a worker does them."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simkv.errors import InputError, Problem
from simkv.jobs.job import Job


def noted(log: Path, name: str, sleep_s: float = 0.0) -> dict[str, Any]:
    """Append ``name`` to ``log``: what was really done can be counted."""
    with log.open("a") as file:
        file.write(f"{name}\n")
    time.sleep(sleep_s)
    return {"name": name, "third": 1 / 3, "pid": os.getpid()}


def wrong(log: Path, name: str) -> dict[str, Any]:
    noted(log, name)
    raise InputError(Problem("is wrong", "right it", path="a.b", value=name))


def broken(text: str) -> dict[str, Any]:
    raise ValueError(text)


def dying(log: Path, name: str, until: int) -> dict[str, Any]:
    """Kill this process, as one that is out of memory, the first ``until`` times."""
    answer = noted(log, name)
    if Counter(log.read_text().split())[name] <= until:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer


ODD: dict[str, Callable[[], Any]] = {
    "exit": lambda: sys.exit(3),
    "not json": lambda: {"x": object()},
    "nan": lambda: {"x": float("nan")},
}


def odd(kind: str) -> dict[str, Any]:
    answer: dict[str, Any] = ODD[kind]()
    return answer


def surroundings() -> dict[str, Any]:
    return {
        "threads": os.environ.get("OPENBLAS_NUM_THREADS"),
        "ignores": signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
        "gc": list(gc.get_threshold()),
        "frozen": gc.get_freeze_count(),
    }


def job(log: Path, name: str, sleep_s: float = 0.0) -> Job:
    return Job(name, noted, (log, name, sleep_s), f"job {name}")


def names(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []
