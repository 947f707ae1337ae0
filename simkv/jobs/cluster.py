"""The workers of a Dask cluster, behind the interface of those of this machine."""

from __future__ import annotations

import contextlib
import logging
import re
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from simkv import __version__
from simkv.errors import InputError, Problem

PATIENCE_S = 5.0
"""How long the scheduler may keep us waiting for an answer."""
WORKER_PATIENCE_S = 20.0
"""How long its first worker may: it may just be starting."""
_RECOUNT_S = 5.0
"""How often the workers are counted: a cluster grows and shrinks."""
_ADDRESS = re.compile(r"((?:tcp|tls|wss?)://)?[^\s/]+:(\d{1,5})")
_LOGGERS = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")


class Cluster:
    """What the scheduler at ``address`` has; raises InputError where it can't be reached or used.

    While it is open, Dask and what it stands on log nothing: what goes wrong is raised.
    """

    tries = 1
    """The scheduler itself hands the jobs of a lost worker to others, and says when it gives up."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.size = 0
        """Threads of all workers."""
        connect = self._dask()
        with contextlib.ExitStack() as opened:
            opened.enter_context(_silent())
            self._client = self._connected(connect)
            opened.callback(self._disconnect)
            with self._answering():
                self._client.wait_for_workers(1, timeout=WORKER_PATIENCE_S)
                self._check_versions()
                self._executor = self._client.get_executor(pure=False)
                self._count()
            self._opened = opened.pop_all()

    @property
    def room(self) -> int:
        """How many jobs may be submitted and not ended: one a thread.

        A job that waited behind one that kills its worker would count as lost with it, as often as the two meet.
        """
        if time.monotonic() - self._counted_s > _RECOUNT_S:
            with self._answering():
                self._count()
        return max(1, self.size)

    @property
    def lost(self) -> tuple[type[BaseException], ...]:
        """What a future raises where worker after worker died at its job."""
        from distributed import KilledWorker

        return (KilledWorker,)

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Let the cluster call ``function``."""
        future: Future[Any] = self._executor.submit(function, *args)
        return future

    def check(self) -> None:
        """Raise InputError where the scheduler is gone."""
        if self._client.status != "running":
            raise self._refusal("the scheduler went away", "start it and run this again: what was finished is kept")

    def abandon(self) -> None:
        """Cancel every job that was submitted and has not ended."""
        if self._client.status == "running":
            with contextlib.suppress(OSError, TimeoutError):
                self._executor.shutdown(wait=False)
                self._executor = self._client.get_executor(pure=False)

    def close(self) -> None:
        """Let the cluster go; its workers stay."""
        self._opened.close()

    def _dask(self) -> Callable[..., Any]:
        try:
            from distributed import Client
        except ImportError:
            raise self._refusal("Dask is not installed here", "pip install 'simkv[cluster]'") from None
        client: Callable[..., Any] = Client
        return client

    def _connected(self, connect: Callable[..., Any]) -> Any:
        written = _ADDRESS.fullmatch(self.address)
        if written is None or int(written[2]) > 65535:
            raise self._refusal("it is no address of a scheduler", "write it as tcp://HOST:8786")
        try:
            with warnings.catch_warnings(action="ignore"):  # of other versions; ours are compared below
                return connect(self.address, timeout=PATIENCE_S, set_as_default=False)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            what = f"no scheduler answers there: {' '.join(str(error).split())[:200]}"
            raise self._refusal(what, "start one with `dask scheduler`, or mend the address") from None

    @contextlib.contextmanager
    def _answering(self) -> Iterator[None]:
        """Say what it means when the cluster doesn't answer."""
        try:
            yield
        except TimeoutError:
            what = f"no worker came within {WORKER_PATIENCE_S:.0f} s"
            raise self._refusal(what, f"start some with `dask worker {self.address}`") from None
        except OSError:
            raise self._refusal("the scheduler went away", "start it and run this again") from None

    def _count(self) -> None:
        self.size, self._counted_s = sum(self._client.nthreads().values()), time.monotonic()

    def _check_versions(self) -> None:
        """Refuse workers whose simkv is another, or none."""

        def version() -> str:  # sent whole, as it must run where there is no simkv
            try:
                from simkv import __version__
            except ImportError:
                return "none"
            return __version__

        found = self._client.run(version, on_error="return")
        others = {worker: str(other) for worker, other in sorted(found.items()) if other != __version__}
        if others:
            worker, other = next(iter(others.items()))
            example = f"worker {worker}: {other}, here: {__version__}"
            what = f"{len(others)} of {len(found)} workers have another simkv ({example})"
            raise self._refusal(what, f"pip install simkv=={__version__} there, and restart them")

    def _disconnect(self) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            self._client.close(timeout=PATIENCE_S)

    def _refusal(self, what: str, mend: str) -> InputError:
        return InputError(Problem(what, mend, path="--cluster", value=self.address))


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    before = {name: logging.getLogger(name).level for name in _LOGGERS}
    try:
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
