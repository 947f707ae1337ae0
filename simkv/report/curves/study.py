"""A short study of a run's own scenario, so that its report has curves: few points, one seed, kept beside the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simkv.curves.folder import check_folder, keep, opened
from simkv.curves.setting import read_setting
from simkv.curves.study import NAMES, Report, check_any, study
from simkv.errors import InputError, Problem
from simkv.jobs.workers import Workers
from simkv.report.folders import CURVES_OF_RUN, RESOLVED, RunFolder
from simkv.sweeps.simulate import Written

POINTS = 5
"""Steps that each axis is divided into."""
_SEEDS = 1


def curves_for(
    folder: RunFolder, points: int | None = None, jobs: int | None = None, report: Report | None = None
) -> Mapping[str, Any]:
    """Return the curves of the scenario that ``folder`` is of, as ``curves.json`` has them.

    Those that lie there for the same scenario are taken as they are, unless ``points`` are asked for. Others are
    simulated into a folder of its own in ``folder``, each run kept as it ends, so that the next call goes on after
    Ctrl-C. ``points``: steps that each axis is divided into (None: ``POINTS``); ``jobs``: processes; ``report``: told
    how far it is. Raises InputError where the scenario doesn't run any more (a file that it names is gone, or is
    another), where no curve has a meaning in it, and where nothing can be written; InfeasibleError where it
    doesn't fit.
    """
    if folder.curves is not None and points is None:
        return folder.curves
    points = POINTS if points is None else points
    file, place = folder.path / RESOLVED, folder.path / CURVES_OF_RUN
    setting = read_setting(Written(folder.resolved, str(file)), points, _SEEDS)
    if setting.resolved.scenario_hash != folder.summary["scenario_hash"]:
        what = "it isn't the scenario that this run is of: it, a file that it names, or simkv has changed since"
        raise InputError(Problem(what, "run the scenario again", str(file)))
    check_any(setting, NAMES)
    check_folder(place, setting.scenario.name)
    with Workers(jobs) as workers, opened(place, setting.scenario.name) as store:
        answer = study(setting, NAMES, workers, store, report)
        answer["about"].insert(0, _said(points))
        keep(answer, place)
    return answer


def _said(points: int) -> str:
    return (
        f"A short study: {points} steps along each axis, one seed. `simkv curves` draws them in full, with intervals "
        "where anything is drawn at random."
    )
