"""Worker processes of this machine: one job at a time each, gone when we are, unaware of Ctrl-C."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing as mp
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

_FORKSERVER = sys.platform == "linux"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""One thread a worker, unless the user says otherwise: the processes share the cores already."""

_STARTS, _PAUSE_S = 3, 0.1
"""How often a process is tried to start, and how long after a try that failed."""


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Local:
    """``size`` processes; each is a pool of one, so that a lost process tells which job it was at.

    On Linux a server that has imported what we have forks them, and starts with us; elsewhere each starts anew.
    """

    lost = (BrokenProcessPool,)
    """What a future raises where its process died."""
    tries = 3
    """How often a job is submitted whose process dies each time."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._context = mp.get_context("forkserver" if _FORKSERVER else "spawn")
        self._pools: list[ProcessPoolExecutor] = []
        self._idle: list[ProcessPoolExecutor] = []
        self._lifeline: tuple[Connection, Connection] | None = None
        if _FORKSERVER:
            self._start_server()

    @property
    def room(self) -> int:
        """How many jobs may be submitted and not ended: one a process."""
        return self.size

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Let an idle process call ``function``: there is one where no more than ``room`` are submitted."""
        while True:
            pool = self._idle.pop() if self._idle else self._start()
            try:
                future = pool.submit(function, *args)
            except BrokenProcessPool:  # lost at its job before, or while it had none
                self._pools.remove(pool)
            else:
                future.add_done_callback(partial(self._ended, pool))
                return future

    def check(self) -> None:
        """Do nothing: a process that is lost is replaced."""

    def abandon(self) -> None:
        """Kill every process, whatever it is at; more work starts new ones."""
        if self._lifeline is not None:
            self._lifeline[1].close()
        self.close()

    def close(self) -> None:
        """End every process after its job."""
        for pool in self._pools:
            pool.shutdown(wait=True, cancel_futures=True)
        for end in self._lifeline or ():
            end.close()
        self._pools, self._idle, self._lifeline = [], [], None

    def _ended(self, pool: ProcessPoolExecutor, future: Future[Any]) -> None:
        self._idle.append(pool)

    def _start_server(self) -> None:
        from multiprocessing import forkserver

        with _for_children():
            self._context.set_forkserver_preload([name for name in sys.modules if name.startswith("simkv.")])
            forkserver.ensure_running()

    def _start(self) -> ProcessPoolExecutor:
        if self._lifeline is None:
            self._lifeline = self._context.Pipe(duplex=False)
        for left in reversed(range(_STARTS)):
            pool = ProcessPoolExecutor(1, self._context, _prepare, (self._lifeline[0],))
            try:
                with _for_children():
                    pool.submit(os.getpid)  # the process starts with the first call
            except (EOFError, ConnectionError):  # the server was killed: asked again, another one starts
                pool.shutdown(wait=False)
                if not left:
                    raise
                time.sleep(_PAUSE_S)
            else:
                break
        self._pools.append(pool)
        return pool


@contextlib.contextmanager
def _for_children() -> Iterator[None]:
    """What processes that start inside inherit: Ctrl-C is kept from them, and numpy has one thread.

    They don't import the user's script (jobs are simkv's own functions), which would run it once more in each of
    them where it has no ``if __name__ == "__main__"``.
    """
    before, main = dict(os.environ), sys.modules["__main__"]
    blocks = hasattr(signal, "pthread_sigmask")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if blocks else set()
    try:
        for name in _THREADS:
            os.environ.setdefault(name, "1")
        sys.modules["__main__"] = types.ModuleType("__main__")
        yield
    finally:
        sys.modules["__main__"] = main
        for name in _THREADS:
            if name not in before:
                del os.environ[name]
        if blocks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _prepare(lifeline: Connection) -> None:
    """Make this process a worker that dies with the one that holds the other end of ``lifeline``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(lifeline,), daemon=True).start()
    gc.freeze()  # what is loaded by now stays, and what a run makes is mostly gone when it has been looked at once
    gc.set_threshold(100_000, 20, 20)


def _watch(lifeline: Connection) -> None:
    lifeline.poll(None)
    os._exit(1)
