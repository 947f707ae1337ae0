"""What ``simkv calibrate`` does between its options and its answer: check them, measure with progress, verify."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import typer

from simkv.errors import InputError, Problem

if TYPE_CHECKING:
    from simkv.calibrate.partial import Partial
    from simkv.calibrate.session import Measured, Stage
    from simkv.calibrate.task import Bench, Task
    from simkv.profile.schema import Profile

_LONGEST_NAME, _MOST_THREADS = 100, 4096


def check_name(name: str | None) -> None:
    """Raise InputError for a name that can't be told or written."""
    if name is None:
        return
    if not name.strip():
        what, mend = "is empty", "give a name, or leave it out"
    elif len(name) > _LONGEST_NAME:
        what, mend = "is too long", f"the most is {_LONGEST_NAME} characters"
    elif not name.isprintable():
        what, mend = "has characters that can't be printed", "give another name"
    else:
        return
    raise InputError(Problem(what, mend, path="--name"))


def check_base(base: str | None) -> None:
    """Raise InputError, naming the option, for a card that the catalogue doesn't have."""
    from simkv.catalog import load_hardware

    try:
        if base is not None:
            load_hardware(base)
    except InputError as error:
        raise InputError([replace(one, path="--base") for one in error.problems]) from None


def check_out(out: Path) -> None:
    """Raise InputError where something else than a profile is at ``out``, or its name isn't that of one."""
    from simkv.profile.load import read_profile
    from simkv.profile.machine import is_profile_name

    if not os.path.isdir(out) and not is_profile_name(out.name):
        mend = "scenarios tell a profile from a card of the catalogue by .json at its end"
        raise InputError(Problem("isn't the name of a profile", mend, path="--out", value=str(out)))
    if os.path.exists(out):
        try:
            read_profile(out)
        except InputError as error:
            problem = error.problems[0]
            what = f"isn't a profile that could be replaced: {problem.what}"
            raise InputError(Problem(what, "move it away, or name another file by --out", file=str(out))) from None


def measure(bench: Bench, out: Path, environment: dict[str, Any], fresh: bool) -> tuple[Measured, Partial]:
    """Return everything measured, what an earlier call kept included; tells how it goes on stderr."""
    from simkv.calibrate.assemble import measured_as
    from simkv.calibrate.partial import Partial
    from simkv.calibrate.plan import plan
    from simkv.calibrate.session import measure

    tasks = plan(bench)
    partial = Partial(_partial_path(out), measured_as(bench, environment), fresh)
    for sentence in _beginning(tasks, partial, environment):
        typer.echo(sentence, err=True)
    with _progress() as shown, _kept(partial, tasks):

        def progress(stage: Stage) -> None:
            doing = f"{stage.done + 1} of {stage.tasks}: {stage.key}"
            shown(stage.passed_s / (stage.passed_s + stage.left_s or 1.0), doing)

        return measure(tasks, partial, progress), partial


def _partial_path(out: Path) -> Path:
    return out.with_name(f"{out.name.removesuffix('.json')}.partial.jsonl")


def _beginning(tasks: tuple[Task, ...], partial: Partial, environment: dict[str, Any]) -> Iterator[str]:
    from simkv.calibrate.environment import BUSY
    from simkv.calibrate.session import left_s

    if partial.differs:
        yield f"{partial.path} is of another machine or other settings ({', '.join(partial.differs)}): begun anew"
    there = sum(task.key in partial.kept for task in tasks)
    if there:
        yield f"resuming: {there} of {len(tasks)} measurements are there (--fresh takes them again)"
    load = environment.get("load_per_core", 0.0)
    if load > BUSY:
        yield f"warning: other programs run (load {load:.1f} per core): figures will be noisy"
    yield f"{len(tasks) - there} measurements, about {left_s(tasks, tasks, partial.kept):.0f} s"


@contextmanager
def _progress() -> Iterator[Any]:
    """Yield what shows progress, and ends at Ctrl-C between two measurements."""
    from simkv.cli.interrupt import Interrupt
    from simkv.cli.progress import Progress

    with Interrupt() as interrupt, Progress() as shown:

        def progress(fraction: float, doing: str = "") -> None:
            interrupt.check()
            shown(fraction, doing)

        yield progress


@contextmanager
def _kept(partial: Partial, tasks: tuple[Task, ...]) -> Iterator[None]:
    from simkv.cli.interrupt import INTERRUPTED

    try:
        yield
    except KeyboardInterrupt:
        there = sum(task.key in partial.kept for task in tasks)
        typer.echo(f"kept: {there} of {len(tasks)} measurements; run the same command to go on", err=True)
        raise typer.Exit(INTERRUPTED) from None


def verified(path: Path, bench: Bench) -> Profile:
    """Return the profile in ``path``, verified on this machine; the file then holds that too."""
    from simkv.calibrate.verify import verify
    from simkv.cli.interrupt import INTERRUPTED
    from simkv.profile.load import write_profile

    try:
        with _progress() as shown:
            profile = verify(path, bench, shown)
    except KeyboardInterrupt:
        typer.echo(f"kept: {path}, not verified; --verify-only {path} does that", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except InputError:
        typer.echo(f"measured, but not verified: {path}", err=True)
        raise
    write_profile(profile, path)
    return profile


def bench_of(path: Path, ssd_path: Path | None) -> Bench:
    """Return what the profile in ``path`` was measured with. Raises :class:`InputError` on another machine."""
    from simkv.calibrate.assemble import other_machine
    from simkv.calibrate.environment import environment
    from simkv.calibrate.opening import open_bench
    from simkv.profile.load import read_profile

    profile = read_profile(path)
    settings = profile.environment.get("settings")
    threads = profile.environment.get("threads") if profile.device.kind == "cpu" else None
    if profile.device.kind == "imported" or not _are_settings(settings) or not _may_be_threads(threads):
        raise InputError(Problem("wasn't measured by simkv calibrate", "measure, with --verify", file=str(path)))
    bench = open_bench(
        profile.device.kind, quick=bool(settings.get("quick")), ssd_path=ssd_path, model=settings["model"],
        dtype=settings.get("dtype"), threads=threads, hot_pool=settings.get("hot_pool_bytes"),
    )  # fmt: skip
    if differs := other_machine(profile, environment(bench.backend, ssd_path)):
        what = f"is of another machine or other versions ({', '.join(differs)})"
        raise InputError(Problem(what, "measure this one, with --verify", file=str(path)))
    return bench


def _are_settings(found: object) -> TypeGuard[dict[str, Any]]:
    """Say whether these are the settings that a measured profile tells."""
    if not isinstance(found, dict) or not isinstance(found.get("model"), str):
        return False
    pool_bytes = found.get("hot_pool_bytes")
    return isinstance(found.get("dtype"), str | None) and type(pool_bytes) in (int, float, type(None))


def _may_be_threads(found: object) -> bool:
    return found is None or (type(found) is int and 1 <= found <= _MOST_THREADS)
