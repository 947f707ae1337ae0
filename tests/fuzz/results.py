"""Result folders, damaged, read back by ``report`` and ``sweep show``; calibration profiles named as hardware."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from tests.fuzz.asked import Command, Generator
from tests.fuzz.base import REPOSITORY
from tests.fuzz.damage import NUMBERS, broken, bytes_damaged, dumps

_PLACE = TemporaryDirectory(prefix="fuzz-results-")
"""Gone when the process ends that made the folders."""
_FEW = {"workload.requests": 8, "workload.output_tokens": 20, "run.baselines": []}
_PLAN = """\
name: s
model: llama-3.1-8b
hardware: h100-sxm5-80gb
workload: {kind: plain, requests: 40, prompt_tokens: 300, output_tokens: 20, arrival: {process: poisson, rate: 5 req/s}}
slo: {ttft_p95: 2s}
cost: {gpu_hour: 2.0}
plan: {vary: {engine.max_num_seqs: [64, 128]}}
"""


@cache
def made(kind: str) -> Path:
    """Return a good folder of a kind, made once a worker by a process of its own; nobody may change it."""
    folder = Path(_PLACE.name) / str(os.getpid()) / kind
    folder.parent.mkdir(exist_ok=True)
    code = "import sys, pathlib; from tests.fuzz.results import make; make(sys.argv[1], pathlib.Path(sys.argv[2]))"
    subprocess.run([sys.executable, "-c", code, kind, str(folder)], check=True, cwd=REPOSITORY)
    return folder


def make(kind: str, folder: Path) -> None:
    """Make a good folder of a kind."""
    import simkv

    scenario = str(REPOSITORY / "scenarios" / "article-maas.yaml")
    if kind == "run":
        simkv.run(scenario, _FEW).save(folder)
        simkv.curves_of(scenario, _FEW, points=2, only=["speedup", "concurrency"], jobs=1, out=folder / "curves")
    elif kind == "curves":
        simkv.curves_of(scenario, _FEW, points=2, only=["speedup", "concurrency"], jobs=1, out=folder)
    elif kind == "sweep":
        simkv.sweep(scenario, {"p": "0.3,0.6", "engine.max_num_seqs": "8,16"}, _FEW, jobs=1, out=folder)
    else:
        file = folder.with_name("plan.yaml")
        file.write_text(_PLAN)
        simkv.plan(str(file), jobs=1, out=folder)


FILES = {
    "run": ("summary.json", "summary.json", "summary.json", "recording.json", "requests.parquet", "timeseries.parquet",
            "scenario.resolved.yaml", "curves/curves.json"),
    "curves": ("curves.json",),
    "plan": ("plan.json",),
    "sweep": ("sweep.sqlite",),
}  # fmt: skip


def _damaged(rng: Random, target: Path, kind: str) -> list[str]:
    """Write a damaged copy of a good folder and return what was done to it."""
    shutil.copytree(made(kind), target)
    notes: list[str] = [kind]
    for _ in range(rng.choice((1, 1, 1, 2))):
        file = target / rng.choice(FILES[kind])
        notes.append(file.name)
        _damage(rng, file, notes)
    return notes


def _damage(rng: Random, file: Path, notes: list[str]) -> None:
    if not file.is_file():
        return
    how = rng.random()
    if how < 0.04:
        file.unlink()
        notes.append("gone")
    elif how < 0.07:
        file.unlink()
        rng.choice((file.mkdir, lambda: file.symlink_to(file), lambda: file.symlink_to("/dev/zero")))()
        notes.append("something else")
    elif file.suffix == ".json" and how < 0.8:
        _damage_json(rng, file, notes)
    elif file.suffix == ".sqlite" and how < 0.7:
        _damage_store(rng, file, notes)
    elif file.suffix == ".parquet" and how < 0.7:
        _damage_table(rng, file, notes)
    else:
        file.write_bytes(bytes_damaged(rng, file.read_bytes(), notes))


def _damage_json(rng: Random, file: Path, notes: list[str]) -> None:
    try:
        tree = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError):  # damaged before
        return
    file.write_bytes(dumps(broken(rng, tree, notes)).encode("utf-8", "surrogatepass"))


def _damage_table(rng: Random, file: Path, notes: list[str]) -> None:
    import pandas as pd

    try:
        table = pd.read_parquet(file)
    except Exception:  # damaged before
        return
    name = rng.choice(list(table.columns))
    kind = rng.randrange(6)
    if kind == 0:
        table = table.drop(columns=[name])
    elif kind == 1:
        table[name] = rng.choice(("x", None, -1, 1e308, float("nan"), float("inf"), 2**62, True))
    elif kind == 2:
        table = table.iloc[: rng.choice((0, 1))]
    elif kind == 3:
        table = table.rename(columns={name: "x"})
    elif kind == 4:
        table = table.sample(frac=1.0, random_state=rng.randrange(100))
    else:
        table[name] = -table[name] if table[name].dtype.kind in "if" else None
    notes.append(f"{name}: {kind}")
    with contextlib.suppress(ValueError):  # renamed twice
        table.to_parquet(file, index=False)


_STATEMENTS = (
    "UPDATE results SET answer = ?", "UPDATE results SET status = 'done', answer = ?", "UPDATE results SET wall_s = ?",
    "UPDATE results SET attempts = ?", "UPDATE results SET key = ? WHERE rowid = 1", "UPDATE points SET params = ?",
    "UPDATE points SET seed = ?", "UPDATE points SET position = position + 1 WHERE ?1 = ?1",
    "UPDATE meta SET value = ?", "UPDATE meta SET name = ?", "DELETE FROM points WHERE ?1 = ?1",
    "DELETE FROM meta WHERE ?1 = ?1", "DELETE FROM results WHERE ?1 = ?1", "INSERT INTO meta VALUES (?, 'x')",
    "UPDATE results SET status = 'failed', failure_message = ?",
    "UPDATE results SET status = 'begun' WHERE ?1 = ?1",
)  # fmt: skip


def _damage_store(rng: Random, file: Path, notes: list[str]) -> None:
    value: Any = rng.choice((None, "", "x", "{}", "[]", "null", 5, b"\xff\x00", -1, 2**62, *NUMBERS))
    statement = rng.choice(_STATEMENTS)
    notes.append(f"{statement}: {value!r}"[:160])
    try:
        with sqlite3.connect(file) as store:
            kind = rng.randrange(8)
            if kind == 0:
                store.execute(rng.choice(("DROP TABLE points", "DROP TABLE results", "DROP TABLE meta")))
            elif kind == 1:
                store.execute(rng.choice(("PRAGMA user_version = 99", "PRAGMA application_id = 5")))
            elif kind == 2:
                _damage_answer(rng, store, notes)
            else:
                store.execute(statement, (value,))
        store.close()
    except (sqlite3.Error, ValueError, RecursionError):  # damaged before
        return


def _damage_answer(rng: Random, store: sqlite3.Connection, notes: list[str]) -> None:
    table, column = rng.choice((("results", "answer"), ("meta", "value"), ("points", "params")))
    for number, text in store.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
        if rng.random() < 0.6 and text:
            changed = dumps(broken(rng, json.loads(text), notes))
            store.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, number))


def _report(rng: Random, folder: Path) -> Command:
    kind = rng.choice(("run", "run", "curves", "plan", "sweep"))
    notes = _damaged(rng, folder / "d", kind)
    forms = rng.choice(("html", "html", "html", "md"))
    more: list[str] = []
    if rng.random() < 0.15:
        other = rng.choice(("run", "plan", "sweep", "curves"))
        notes += _damaged(rng, folder / "e", other)
        more = ["e"]
    args = ("report", "d", *more, "--out", "out", "--format", forms, "--no-curves", "--json")
    return Command(args, out="out", holds=f"report.{forms}", json=True, notes=tuple(notes))


def _show(rng: Random, folder: Path) -> Command:
    notes = _damaged(rng, folder / "d", "sweep")
    more = rng.choice((
        (), (), ("--metric", "ttft_s.p95"), ("--metric", "x"), ("--sort", "p"), ("--sort", "-ttft_s.mean"),
        ("--objective", "ttft_s.p95:min"), ("--objective", "x:max"), ("--objective", ":"),
    ))  # fmt: skip
    return Command(("sweep", "show", "d", "--json", *more), json=True, notes=tuple(notes))


def _again(rng: Random, folder: Path) -> Command:
    """Go on with a sweep, or run into a folder, whose files are damaged."""
    kind = rng.choice(("sweep", "run"))
    notes = _damaged(rng, folder / "d", kind)
    shutil.copy(REPOSITORY / "scenarios" / "article-maas.yaml", folder / "s.yaml")
    sets = [word for key, value in _FEW.items() for word in ("--set", f"{key}={value}")]
    if kind == "run":
        return Command(("run", "s.yaml", *sets, "--out", "d", "--json"), json=True, notes=tuple(notes))
    grid = ("--grid", "p=0.3,0.6", "--grid", "engine.max_num_seqs=8,16")
    args = ("sweep", "s.yaml", *grid, *sets, "--out", "d", "--jobs", "1", "--json")
    return Command(args, json=True, notes=tuple(notes))


def _profile(rng: Random, folder: Path) -> Command:
    notes: list[str] = []
    tree = json.loads((REPOSITORY / "calibration" / "amd-epyc-2-cores.json").read_text("utf-8"))
    data = dumps(broken(rng, tree, notes)).encode("utf-8", "surrogatepass")
    if rng.random() < 0.2:
        data = bytes_damaged(rng, data, notes)
    (folder / "p.json").write_bytes(data)
    if rng.random() < 0.5:
        args = ("calc", "step", "--model", "llama-3.1-8b", "--hardware", "p.json", "--batch", "2", "--context", "500")
        return Command((*args, "--json"), json=True, notes=tuple(notes))
    text = (REPOSITORY / "scenarios" / "calibrated-small.yaml").read_text("utf-8")
    (folder / "s.yaml").write_text(text.replace("../calibration/amd-epyc-2-cores.json", "p.json"))
    args = ("run", "s.yaml", "--set", "workload.requests=10", "--json", "--out", "out")
    return Command(args, out="out", holds="summary.json", json=True, notes=tuple(notes))


GENERATORS: dict[str, Generator] = {
    "report": _report, "sweep-show": _show, "again": _again, "profile": _profile,
}  # fmt: skip
