"""Who does the work: processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Protocol

from simkv.errors import InputError, Problem
from simkv.jobs.cluster import Cluster
from simkv.jobs.local import Local, usable_cores


class Place(Protocol):
    """Where jobs are done."""

    @property
    def size(self) -> int:
        """How many jobs are done at once."""

    @property
    def room(self) -> int:
        """How many jobs may be submitted and not ended."""

    @property
    def lost(self) -> tuple[type[BaseException], ...]:
        """What a future raises where its worker died."""

    @property
    def tries(self) -> int:
        """How often a job is submitted whose worker dies each time."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Let a worker call ``function``, a module's own."""

    def check(self) -> None:
        """Raise InputError where nothing that was submitted will end any more."""

    def abandon(self) -> None:
        """Stop every job that was submitted and has not ended, at once."""

    def close(self) -> None:
        """Let the workers go."""


class Workers:
    """Workers as a context: ``jobs`` processes (None: one a usable core), or the Dask cluster at an address.

    A single process is a worker, too, so that Ctrl-C and a death mean the same for one as for many. Left by an
    exception, the workers are killed. Raises InputError for a cluster that can't be reached or used.
    """

    def __init__(self, jobs: int | None = None, cluster: str | None = None) -> None:
        if jobs is not None and jobs < 1:
            what = "it takes at least one process"
            raise InputError(Problem(what, "write 1 or more", path="--jobs", value=str(jobs)))
        if jobs is not None and cluster is not None:
            mend = "leave out --jobs, or --cluster"
            raise InputError(Problem("a cluster has as many workers as it has", mend, path="--jobs", value=str(jobs)))
        self._place: Place = Local(jobs or usable_cores()) if cluster is None else Cluster(cluster)

    @property
    def size(self) -> int:
        """How many jobs are done at once."""
        return self._place.size

    @property
    def place(self) -> Place:
        """Where the jobs are done."""
        return self._place

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._place.abandon()
        self._place.close()
