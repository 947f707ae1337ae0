"""What the prediction of a verification rests on, measured again in turns with its runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simkv.calibrate.fit import fit_profile
from simkv.calibrate.plan import turn
from simkv.calibrate.session import what
from simkv.calibrate.task import Bench, Task
from simkv.calibrate.verify.workload import Workload
from simkv.profile.load import write_profile
from simkv.profile.schema import WAIT, Fit, Profile, Sample

_WAITS = f"contention/{WAIT}"
_NEAR = 4
"""Copies are measured again whose pieces are at most so many times larger or smaller than those of the runs; attention
and steps, whose context is at most so many times what the runs read."""


_PARTS = (("linear", "head", "paged_attention"), ("ssd_read", "h2d", "host_step"), ("contention",))
"""Kinds that are measured together, taking turns."""


class Beside:
    """One turn of the measurements that decide what a workload takes, to be taken between its runs.

    Whole steps, and what waits do to them, follow every run, so that they see the machine as it does; the rest takes
    turns.
    """

    def __init__(self, bench: Bench, workload: Workload) -> None:
        every = [task for task in turn(bench) if _matters(task.key, workload)]
        self._steps = [task for task in every if _kind(task) == "step" or task.key.startswith(_WAITS)]
        rest = [task for task in every if task not in self._steps]
        self._parts = [[task for task in rest if _kind(task) in kinds] for kinds in _PARTS]
        self._after = 0

    def measure(self) -> Iterator[Sample]:
        """Yield what is measured after the next run."""
        for task in (*self._steps, *self._parts[self._after % len(self._parts)]):
            yield from task.run()
        self._after += 1


def _kind(task: Task) -> str:
    return task.key.partition("/")[0]


def _matters(key: str, workload: Workload) -> bool:
    kind, _, at = key.partition("/")
    batch = str(workload.batch)
    if kind in ("linear", "head"):
        return at == batch
    if kind in ("paged_attention", "step"):
        among, context = at.split("x")
        return among == batch and int(context) <= _NEAR * workload.budget_tokens
    if kind == "h2d":
        return _near(at.split("/")[1], workload)
    if kind == "ssd_read":
        return workload.on_drive and at.endswith("/1") and _near(at, workload)
    if kind == "contention":
        return at in ("h2d", WAIT) or (at == "ssd_read" and workload.on_drive)
    return kind == "host_step"


def _near(at: str, workload: Workload) -> bool:
    piece_bytes = int(at.split("x")[0])
    return workload.piece_bytes / _NEAR <= piece_bytes <= workload.piece_bytes * _NEAR


def refitted(profile: Profile, samples: tuple[Sample, ...], bench: Bench) -> Profile:
    """Return ``profile`` with ``samples`` in the place of those that they measured again, and fitted to that.

    Figures that there are no samples of stay as they are; the overhead of a step is that of the steps measured again.
    """
    again = {what(one): one for one in samples}
    taken = tuple(again.pop(what(one), one) for one in profile.samples) + tuple(again.values())
    steps = [one for one in samples if one.kind == "step"]
    fitted = [one for one in taken if one.kind != "step"] + steps if steps else taken
    fit, nothing = fit_profile(fitted, bench.model, bench.backend.dtype), Fit()
    untold = [name for name in Fit.model_fields if getattr(fit, name) == getattr(nothing, name)]
    fit = fit.model_copy(update={name: getattr(profile.fit, name) for name in untold})
    return profile.model_copy(update={"samples": taken, "fit": fit})


@contextmanager
def written(profile: Profile) -> Iterator[Path]:
    """Yield a file that holds ``profile`` for as long as it is asked for."""
    with tempfile.TemporaryDirectory(prefix="simkv-") as folder:
        path = Path(folder) / "profile.json"
        write_profile(profile, path)
        yield path
