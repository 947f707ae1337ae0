"""One input after the other, each in a forked process with everything imported, under limits of memory and time."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fuzz.asked import Command, Generator, Outcome

MEMORY_BYTES = 3 << 30
"""Address space of a command."""
PEAK_BYTES = 1 << 30
"""Resident memory above which an answer is a fault even so."""
LIMIT_S = 20.0
LONG = re.compile(r"this \w+ takes|these \w+ take|about .+ for [\d,]+ more runs?")
"""What stderr says of work that takes long."""
_HEAVY = (".calibrate", ".pdf", ".cluster", ".__main__")
_LOOK_S = 0.5
_LONGEST_MESSAGE = 64 << 10
_LONGEST_LINE = 4000


@dataclass(frozen=True, slots=True)
class Judged:
    """One input with its outcome and what is wrong with it."""

    generator: str
    seed: int
    code: int
    ended: str
    seconds: float
    peak_bytes: int
    fault: str


def preload() -> None:
    """Import what commands import when they are asked, so that a fork has it."""
    import importlib
    import pkgutil

    import simkv

    for name in ("pyarrow.parquet", "pandas", "scipy.stats.qmc", "yaml"):
        importlib.import_module(name)
    for found in pkgutil.walk_packages(simkv.__path__, "simkv."):
        if not any(part in found.name for part in _HEAVY):
            importlib.import_module(found.name)
    gc.collect()
    gc.freeze()


def ask(name: str, generator: Generator, seed: int, show: bool = False, limit_s: float = LIMIT_S) -> Judged:
    """Return how the command line answers input ``seed`` of a generator."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        inside = folder / "in"
        inside.mkdir()
        command = generator(Random(f"{name}/{seed}"), inside)
        outcome = run(command, inside, folder, limit_s)
        fault = judge(command, outcome, inside)
        if show:
            _show(command, outcome, fault)
        return Judged(name, seed, outcome.code, outcome.ended, outcome.seconds, outcome.peak_bytes, fault)
    finally:
        _remove(folder)


def run(command: Command, inside: Path, folder: Path, limit_s: float) -> Outcome:
    """Run ``command`` in a process of its own; its streams go to files of ``folder``."""
    paths = [folder / name for name in ("stdin", "stdout", "stderr")]
    paths[0].write_bytes(command.stdin)
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _child(command, inside, paths)
    ended = _wait(pid, began + limit_s, paths[2])
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.monotonic() - began
    out, err = (path.read_bytes().decode("utf-8", "backslashreplace") if path.exists() else "" for path in paths[1:])
    return Outcome(os.waitstatus_to_exitcode(status), out, err, seconds, usage.ru_maxrss << 10, ended)


def _wait(pid: int, until: float, stderr: Path) -> str:
    """Wait for the process's end, not for it to be reaped; return why it was stopped before, if it was."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while not poll.poll(_LOOK_S * 1000):
            if LONG.search(stderr.read_text("utf-8", "replace")):
                return "long"
            if time.monotonic() > until:
                return "hang"
        return ""
    finally:
        os.close(descriptor)


def _child(command: Command, inside: Path, paths: list[Path]) -> None:
    """Be the command; ends the process."""
    code = 1
    try:
        os.setsid()
        for number, path in enumerate(paths):
            flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT
            opened = os.open(path, flags, 0o600)
            os.dup2(opened, number)
            os.close(opened)
        os.chdir(inside)
        sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", errors="strict")  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
        os.environ.pop("PYTEST_CURRENT_TEST", None)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        if command.in_child is not None:
            command.in_child()
        code = _main(command)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def _main(command: Command) -> int:
    """Call the entry point and return the exit code that the interpreter would end with."""
    from simkv.cli import main

    sys.argv = ["simkv", *command.args]
    try:
        main()
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    else:
        code = 0
    sys.stdout.flush()
    return code


# ---- what is right ----------------------------------------------------------------------------


def judge(command: Command, outcome: Outcome, inside: Path) -> str:
    """Return what is wrong with the outcome, or nothing."""
    if outcome.ended == "long":
        return _leftovers(inside) if not command.keeps else ""
    if outcome.ended:
        return "hang"
    if outcome.code not in command.allowed:
        last = outcome.stderr.strip().splitlines() or [""]
        return f"exit {outcome.code}: {next((x for x in last if x.startswith('simkv failed')), last[-1])[:300]}"
    faults = (
        _message(command, outcome), _answer(command, outcome, inside), _leftovers(inside),
        command.judge(outcome, inside) if command.judge is not None else "",
        f"{outcome.peak_bytes >> 20} MiB of memory" if outcome.peak_bytes > PEAK_BYTES else "",
    )  # fmt: skip
    return next(filter(None, faults), "")


def _message(command: Command, outcome: Outcome) -> str:
    """Hold what was said to what a message must have."""
    text = outcome.stderr
    if "Traceback" in text:
        return "a traceback"
    if len(text) > _LONGEST_MESSAGE or any(len(line) > _LONGEST_LINE for line in text.splitlines()):
        return f"a message of {len(text)} characters"
    odd = next((c for c in text if not (c.isprintable() or c in "\n")), "")
    if odd:
        return f"a message with {odd!r}"
    if outcome.code not in (2, 3):
        return ""
    if not text.strip():
        return "no message"
    if outcome.stdout.strip() and not (outcome.code == 3 and command.keeps):  # a plan tells what misses least
        return "an answer beside a failure"
    lines = [line for line in text.splitlines() if line.strip()]
    usage = lines[0].startswith("Usage: ") and any(line.startswith("Error: ") for line in lines)
    return "" if usage or outcome.code == 3 or any("; " in line for line in lines) else f"no mend: {lines[-1][:300]}"


def _answer(command: Command, outcome: Outcome, inside: Path) -> str:
    """Hold what was written to what the command promises."""
    if outcome.code == 0 and command.json and (wrong := _no_json(outcome.stdout)):
        return f"stdout is not JSON: {wrong}"
    if not command.out:
        return ""
    place = inside / command.out
    if outcome.code != 0:
        return f"{command.out} is there after a failure" if os.path.lexists(place) and not command.keeps else ""
    whole = place / command.holds if command.holds else place
    if not whole.exists():
        return f"{whole.relative_to(inside)} is missing"
    if whole.suffix == ".json" and (wrong := _no_json(whole.read_text("utf-8"))):
        return f"{whole.relative_to(inside)} is not JSON: {wrong}"
    return ""


def _no_json(text: str) -> str:
    """Return why ``text`` is no strict JSON, or nothing."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} in it")

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as error:
        return str(error)
    return ""


def _leftovers(inside: Path) -> str:
    """Return what was left of something that was being written, or nothing."""
    for _, folders, files in os.walk(inside):
        for name in (*folders, *files):
            if name.endswith((".part", ".old", ".tmp")):
                return f"{name} is left over"
    return ""


def _show(command: Command, outcome: Outcome, fault: str) -> None:
    args = " ".join(repr(one) if len(one) < 2000 else repr(one[:200]) + "..." for one in command.args)
    print(f"simkv {args}", *(f"  {note}" for note in command.notes), sep="\n")
    print(f"exit {outcome.code} {outcome.ended} in {outcome.seconds:.2f} s, {outcome.peak_bytes >> 20} MiB")
    print(outcome.stdout[:2000], outcome.stderr[:6000], f"fault: {fault or 'none'}", sep="\n")


def _remove(folder: Path) -> None:
    """Remove ``folder``, whatever was done to its permissions."""
    for place, folders, _ in os.walk(folder):
        for name in folders:
            if not os.path.islink(inside := os.path.join(place, name)):
                os.chmod(inside, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
