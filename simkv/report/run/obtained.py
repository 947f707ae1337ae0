"""How a run was obtained: scenario, seed, versions, the calibration behind it, and the command that repeats it."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterator
from importlib.metadata import version

from simkv import __version__
from simkv.errors import InputError
from simkv.profile.load import read_profile
from simkv.profile.machine import is_profile_name
from simkv.profile.schema import Profile, Residual
from simkv.report.document import Block, Cell, Code, Details, Facts, Table, Text
from simkv.report.folders import RunFolder
from simkv.report.run.settings import Settings, settings
from simkv.report.run.shown import number, part
from simkv.results.words import Summary
from simkv.results.write import RESOLVED
from simkv.scenario.calibrated import CODE, profile_file

_FITS = (
    ("h2d", "copies to the device"), ("d2h", "copies from the device"), ("ssd_read", "SSD reads"),
    ("ssd_write", "SSD writes"), ("compute", "whole steps of a model"), ("host", "CPU time of managing blocks"),
)  # fmt: skip
_SAID = (("date", "Measured on"), ("simkv", "Measured with simkv"), ("torch", "torch"), ("driver", "Driver"))
"""Of a profile's environment."""


def blocks(folder: RunFolder) -> list[Block]:
    """Return what it takes to trust a run, and to repeat it."""
    summary, given = folder.summary, settings(folder)
    found: list[Block] = [Facts(_facts(summary, given))]
    found += _calibration(folder, given)
    found.append(Code(command(folder), "Repeats this run; the same version gives the same figures"))
    found.append(Details("The resolved scenario, every value with where it came from", [Code(folder.resolved)]))
    return found


def command(folder: RunFolder) -> str:
    """Return the command line that repeats a run."""
    return shlex.join(["simkv", "run", str(folder.path / RESOLVED), "--seed", str(folder.summary["seed"])])


def _facts(summary: Summary, given: Settings) -> list[tuple[str, str]]:
    baselines = ", ".join(name.replace("_", " ") for name in summary["baselines"])
    rows = [
        ("Scenario", f"{summary['scenario']}, hash {summary['scenario_hash']}"),
        ("Seed", str(summary["seed"])),
        ("Compared with", f"{baselines} (the same requests and random numbers)" if baselines else "nothing"),
        ("Simulated by", f"simkv {summary['simkv_version']}"),
        ("Report by", f"simkv {__version__}, Python {platform.python_version()}, NumPy {version('numpy')}, "
                      f"SimPy {version('simpy')}"),
    ]  # fmt: skip
    name = given.get("hardware")
    if not isinstance(name, str) or not is_profile_name(name):
        rows.append(("Calibration", "none: figures of the machine are those of its data sheets, or given"))
    return rows


def _calibration(folder: RunFolder, given: Settings) -> Iterator[Block]:
    """Yield which measurements a run's times rest on, and how well they were fitted."""
    name = given.get("hardware")
    if not isinstance(name, str) or not is_profile_name(name):
        return
    try:
        profile = read_profile(profile_file(name, str(folder.path)))
    except InputError:
        yield Text(f"Calibration: {name}, which can't be read from here, so that its residuals aren't shown.")
        return
    yield Facts(_profile_facts(name, profile))
    fits = ((what, getattr(profile.fit, key)) for key, what in _FITS)
    rows = [_residual_row(what, fit.residual) for what, fit in fits if fit is not None]
    if rows:
        heads = ("Fit", "Points", "Residual, median", "Residual, largest")
        yield Table(heads, rows, name="calibration-residuals", right=frozenset({1, 2, 3}))
    outside = sum(warning["code"] == CODE for warning in folder.summary["warnings"])
    if outside:
        yield Text(f"The run asked for more than was measured: {outside} warnings above say where ({CODE}).")


def _profile_facts(name: str, profile: Profile) -> list[tuple[str, str]]:
    rows = [("Calibration", f"{profile.name} ({name})"), ("Measured device", profile.device.name)]
    rows += [(label, str(profile.environment[key])) for key, label in _SAID if profile.environment.get(key)]
    if profile.verification is not None:
        same = "bit-identical" if profile.verification.bit_identical else "not bit-identical"
        runs = len(profile.verification.runs)
        rows.append(("Verified", f"by {runs} real runs; attention with offload and without is {same}"))
    return rows


def _residual_row(what: str, residual: Residual) -> tuple[Cell, ...]:
    return Cell(what), number(float(residual.points)), part(residual.median), part(residual.largest)
