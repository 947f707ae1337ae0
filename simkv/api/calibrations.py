"""A calibrated machine as a value: what was measured, what was fitted, how far a real run is from its prediction."""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkv import units
from simkv.api.given import Quantity, StrPath, arguments_named, listed, si
from simkv.api.progress import Progress, silent
from simkv.api.shown import Picture, clean, page
from simkv.errors import InputError, Problem, unknown
from simkv.interrupt import Interrupt
from simkv.profile.load import read_profile, write_profile
from simkv.profile.schema import Profile

if TYPE_CHECKING:
    import pandas as pd

    from simkv.calibrate.session import Stage
    from simkv.calibrate.task import Bench, Task

_FIGURES = (
    ("h2d", "host to device"), ("d2h", "device to host"), ("h2d_pageable", "host to device, pageable"),
    ("d2h_pageable", "device to host, pageable"), ("ssd_read", "SSD read"), ("ssd_write", "SSD write"),
)  # fmt: skip
_COMPARED = ("t_step_s", "t_compute_s", "t_transfer_s", "p_hit", "beta", "speedup")


@dataclass(frozen=True, eq=False)
class Calibration:
    """A profile of a machine; made by :func:`calibration`."""

    profile: Profile = field(repr=False)
    """Everything in its file."""

    @property
    def name(self) -> str:
        """What the profile is called."""
        return self.profile.name

    @property
    def fit(self) -> pd.DataFrame:
        """What was fitted, a row a link or drive: bandwidth, latency of a piece, residuals as shares."""
        import pandas as pd

        rows = []
        for key, label in _FIGURES:
            if (link := getattr(self.profile.fit, key)) is not None:
                rows.append({
                    "figure": label, "bytes_per_s": link.bytes_per_s, "latency_s": link.latency_s,
                    "setup_s": link.setup_s, "residual_median": link.residual.median,
                    "residual_largest": link.residual.largest,
                })  # fmt: skip
        if (compute := self.profile.fit.compute) is not None:
            rows.append({"figure": "decode step, from its parts", "residual_median": compute.residual.median,
                         "residual_largest": compute.residual.largest})  # fmt: skip
        return pd.DataFrame(rows).set_index("figure") if rows else pd.DataFrame()

    @cached_property
    def residuals(self) -> pd.DataFrame:
        """One row a sample: measured and fitted time (s), fitted over measured less 1, spread of the repeats."""
        import pandas as pd

        from simkv.calibrate.fit import residual_rows

        return pd.DataFrame(residual_rows(self.profile.samples, self.profile.fit))

    @property
    def verification(self) -> pd.DataFrame | None:
        """A real decode beside its prediction, one row a run and figure; None where there was none."""
        import pandas as pd

        found = self.profile.verification
        if found is None:
            return None
        rows = [
            {"run": run.name, "figure": name, "measured": one.measured, "predicted": one.predicted, "error": one.error}
            for run in found.runs
            for name in _COMPARED
            if (one := getattr(run, name)) is not None
        ]
        return pd.DataFrame(rows).set_index(["run", "figure"])

    @property
    def bit_identical(self) -> bool | None:
        """Whether attention gave the same with KV offloaded as without, bit by bit; None: it wasn't verified."""
        found = self.profile.verification
        return None if found is None else found.bit_identical

    @property
    def notes(self) -> list[str]:
        """What a reader of these figures should know."""
        return list(self.profile.fit.notes)

    def plot(self) -> Picture:
        """Return samples beside the fit, a panel for whatever was measured; InputError where that is nothing."""
        from simkv.calibrate.fit import residual_rows
        from simkv.plots.calibration import calibration

        rows = residual_rows(self.profile.samples, self.profile.fit)
        title = f"{self.profile.name}: {self.profile.device.name}"
        return Picture(title, lambda file, form: calibration(self.profile, rows, file, form))

    def save(self, path: StrPath) -> Path:
        """Write the profile (.json), which scenarios name as their hardware; return where."""
        place = Path(path)
        write_profile(self.profile, place)
        return place

    def __repr__(self) -> str:
        return f"<simkv.Calibration {clean(self.name)!r} of {clean(self.profile.device.name)}>"

    def _repr_html_(self) -> str:
        facts = [("device", self.profile.device.name), ("samples", f"{len(self.profile.samples):,}")]
        facts += [(str(label), _told(row)) for label, row in self.fit.iterrows()]
        return page(f"Calibration {self.name}", facts, self.notes)


def _told(row: Any) -> str:
    rate = f"{units.short(row['bytes_per_s'], 'rate')}, " if row["bytes_per_s"] == row["bytes_per_s"] else ""
    return f"{rate}off by {row['residual_median']:.1%}, at most {row['residual_largest']:.1%}"


def calibration(
    path: StrPath | None = None,
    *,
    device: str | None = None,
    quick: bool = True,
    verify: bool = False,
    ssd_path: StrPath | None = None,
    model: str | None = None,
    dtype: str | None = None,
    threads: int | None = None,
    hot_pool: Quantity | None = None,
    name: str | None = None,
    only: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Return the profile in ``path``; without one, measure this machine (needs torch) and fit what was measured.

    ``device``: cuda or cpu (None: cuda where torch finds one). ``quick``: fewer sizes and repeats. ``verify``: then
    decode with KV in several tiers beside its prediction (on a CPU with ``ssd_path``, a folder on the drive to
    measure). ``model``: whose shapes are computed. ``only``: some kinds of measurements (h2d, d2h, linear, ...), what
    rests on others is left out of the fit. ``hot_pool``: on a CPU, the pool that stands for VRAM. Writes
    nothing: see ``Calibration.save``. Ctrl-C raises KeyboardInterrupt between two measurements. Raises InputError for
    a file that is no profile, without torch, and for what can't be measured here.
    """
    if path is not None:
        return Calibration(read_profile(path))
    from simkv.calibrate.opening import check_verifiable, kind_of, open_bench

    pool = None if hot_pool is None else si(hot_pool, "size", "hot_pool")
    with arguments_named():
        bench = open_bench(
            kind_of(device), quick=quick, ssd_path=Path(ssd_path) if ssd_path is not None else None, model=model,
            dtype=dtype, threads=threads, hot_pool=pool,
        )  # fmt: skip
        if verify:
            check_verifiable(bench)
        if verify and only is not None:
            what = "does nothing with only: a verification rests on all measurements"
            raise InputError(Problem(what, "leave one of them out", path="verify"))
        return Calibration(_measured(bench, _tasks(bench, only), name, verify, progress or silent))


def _tasks(bench: Bench, only: Sequence[str] | None) -> tuple[Task, ...]:
    """Return what is measured; raises InputError for a kind that isn't."""
    from simkv.calibrate.plan import plan

    tasks = plan(bench)
    if only is None:
        return tasks
    kinds = {task.key: re.split("[/@]", task.key)[0] for task in tasks}
    asked = listed(only)
    for kind in asked:
        if kind not in kinds.values():
            raise unknown("kind of measurement", kind, list(dict.fromkeys(kinds.values())), "only")
    return tuple(task for task in tasks if kinds[task.key] in asked)


def _measured(bench: Bench, tasks: tuple[Task, ...], name: str | None, verify: bool, tell: Progress) -> Profile:
    from simkv.calibrate.assemble import assemble, measured_as, slug
    from simkv.calibrate.environment import device_name, environment, link_in_use
    from simkv.calibrate.partial import Partial
    from simkv.calibrate.session import measure
    from simkv.calibrate.verify import verify as decode

    called = name or slug(device_name(bench.backend))
    machine = environment(bench.backend, bench.ssd_path)
    with tempfile.TemporaryDirectory(prefix="simkv-") as folder, Interrupt((signal.SIGINT,)) as interrupt:

        def progressed(share: float, doing: str) -> None:
            interrupt.check()
            tell(share, doing)

        def staged(stage: Stage) -> None:
            share = stage.passed_s / (stage.passed_s + stage.left_s or 1.0)
            progressed(share, f"{stage.done + 1} of {stage.tasks}: {stage.key}")

        partial = Partial(Path(folder) / "samples.partial.jsonl", measured_as(bench, machine), fresh=True)
        taken = measure(tasks, partial, staged)
        profile = assemble(called, bench, taken, machine | link_in_use(bench.backend))
        if not verify:
            return profile
        place = Path(folder) / "profile.json"
        write_profile(profile, place)
        return decode(place, bench, progressed)
