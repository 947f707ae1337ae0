"""What ``simkv calibrate`` does between its options and its answer: open the device, measure with progress, verify."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, get_args

import typer

from simkv.errors import InputError, Problem
from simkv.units import short

if TYPE_CHECKING:
    from simkv.calibrate.backend import Kind
    from simkv.calibrate.partial import Partial
    from simkv.calibrate.session import Measured, Stage
    from simkv.calibrate.task import Bench, Task
    from simkv.profile.schema import Profile

_HOT_POOL_BYTES = 2 << 30
_LEAST_POOL_BYTES = 64 << 20
_MOST_OF_MEMORY = 0.5
_LONGEST_NAME, _MOST_THREADS = 100, 4096


def kind_of(device: str | None) -> Kind:
    """Return the device that is asked for, or the best that there is. Raises :class:`InputError` without torch."""
    from simkv.calibrate.backend import Kind, load_torch

    torch = load_torch()
    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    for kind in get_args(Kind):
        if device == kind:
            return kind  # type: ignore[no-any-return]
    raise InputError(Problem("is no kind of device", "write cuda or cpu", path="--device", value=device))


def open_bench(
    kind: Kind, *, quick: bool, ssd_path: Path | None, model: str | None, dtype: str | None, threads: int | None,
    hot_pool: float | None,
) -> Bench:  # fmt: skip
    """Return what is measured. Raises :class:`InputError` where it can't be."""
    from simkv.calibrate.backend import open_backend
    from simkv.calibrate.model import check_fits
    from simkv.calibrate.plan import MODELS
    from simkv.calibrate.task import Bench
    from simkv.catalog import load_model

    for option, value, needs in (("--threads", threads, "cpu"), ("--hot-pool", hot_pool, "cpu")):
        if value is not None and kind != needs:
            raise InputError(Problem(f"does nothing with --device {kind}", "leave it out", path=option))
    pool_bytes = int(_HOT_POOL_BYTES if hot_pool is None else hot_pool) if kind == "cpu" else 0
    if kind == "cpu":
        _check_room(pool_bytes)
    backend, shape = open_backend(kind, dtype, threads), load_model(model or MODELS[kind])
    check_fits(backend, shape)
    return Bench(backend, shape, quick, ssd_path, pool_bytes)


def _check_room(pool_bytes: int) -> None:
    from simkv.calibrate.environment import memory_bytes

    memory = memory_bytes()
    if memory is not None and pool_bytes > _MOST_OF_MEMORY * memory:
        what, mend = f"more than half of this machine's {short(memory, 'size')}", "give less"
    elif pool_bytes < _LEAST_POOL_BYTES:
        what, mend = "too small", f"the least is {short(_LEAST_POOL_BYTES, 'size')}"
    else:
        return
    raise InputError(Problem(what, mend, path="--hot-pool", value=short(pool_bytes, "size")))


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


def check_verifiable(bench: Bench, option: str = "--verify") -> None:
    """Raise InputError, before anything is measured, where a verification has nowhere to put KV."""
    from simkv.catalog import list_models

    if bench.backend.kind == "cpu" and bench.ssd_path is None:
        what = "on a CPU, KV below the pool lies on a drive"
        raise InputError(Problem(what, "name a folder on it: --ssd-path DIR", path=option))
    name = bench.model.name
    if name not in list_models():
        what, mend = "is not in the catalogue, and scenarios of a verification name their model", f"leave out {option}"
        raise InputError(Problem(what, mend, path="--model", value=name))


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
