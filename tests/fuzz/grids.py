"""What varies: ``--grid`` and ``--sample``, and the sections ``sweep`` and ``plan`` of scenarios."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.asked import Command, Generator, Outcome
from tests.fuzz.base import NASTY, write_traces
from tests.fuzz.drawn import drawn, fields
from tests.fuzz.here import stay_here
from tests.fuzz.scenarios import Raw, flow, likely, put, run_of, trees, write_tree

_OURS = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Warning))\b")
_KINDS = ("InputError", "InfeasibleError")
_SHORT = (
    "p",
    "beta",
    "lambda",
    "tp",
    "count",
    "dram",
    "ssd",
    "preset",
    "kv_dtype",
    "rate",
    "users",
    "seed",
    "instance",
)
_VALUES = (
    "0.1:1.0:0.1", "0:1:1e-9", "1:0:0.1", "0.1:1.0:0", "0.1:1.0:-0.1", "16:256:x2", "16:256:x1", "1:1e300:x1.0000001",
    "0:0:0", "1:2:log", "0:1:log", "0.1:1.0", "100GiB:400GiB:100GiB", "100:400GiB:100GB", "1GiB:1s:1", "nan:1:1",
    "1:inf:1",
    "1e999:1e9999:1", "1e-999:1:0.1", "1:2:3:4", ":", "::", "1:", ":1", "1::1", "x2", ",", "1,", ",1", "1,1",
    "1,1.0,1e0",
    "0,0.5", "[1,2]", "[1,2", "{a: 1}", "'a,b',c", '"', "'", "\\", "null", "true", "0:1000000:1", "0:1e15:1",
    "1:1e9:x1.001",
    "9" * 1000, "1:" + "9" * 500 + ":1", "0:1:0." + "0" * 300 + "1", "a:b:c", "0x1:0x2:0x1", "1_0:2_0:1_0", "-1:1:0.5",
    "\u0661:\u0662:\u0661", "1 : 2 : 1", "0.1 : 0.3GiB : 0.1", "lru,lfu,score", "1" + ",1" * 50_000,
    "vllm,sglang-hicache",
    ",".join(map(str, range(20_000))), "0GiB,1GiB", "1,2,4", "", " ", "=", "==", "a=b",
)  # fmt: skip


_FINE = (
    "p=0.1:1.0:0.3", "p=0.5", "p=0.3,1", "dram=0GiB,100GiB", "dram=1GiB:100GiB:x10", "tp=1,2,4", "rate=1 req/s,9 req/s",
    "seed=0:3:1", "engine.max_num_seqs=1,1000000", "engine.block_tokens=1,4096", "beta=0,0.5,1", "lambda=0,1",
    "preset=vllm,sglang-hicache,lmcache", "kv_dtype=fp8,bf16", "count=1,8", "workload.requests=1,5",
    "link.h2d=1 B/s,1 TB/s",
    "engine.gpu_memory_utilization=0.01,1", "tiers.ssd.latency=0s,1e9s", "offload.write=never,write_back",
    "link.latency=0s,1s", "workload.prompt_tokens=1,100000", "workload.output_tokens=1", "run.warm_up=0s,1h",
    "offload.eviction.policy=lru,arc,s3fifo,slru,fifo", "engine.max_num_batched_tokens=256,16777216",
    "run.duration=1ns,1s", "replicas.router=round_robin,prefix_aware",
)  # fmt: skip


def _axis(rng: Random) -> str:
    name = rng.choice(
        (*_SHORT, *_SHORT, rng.choice(fields())[0], "", "x", "p.q", "p" * 5000, "\u202e", "tiers", "a\nb")
    )
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(_FINE)
    if kind < 0.7:
        values = rng.choice(_VALUES)
    elif kind < 0.85:
        values = ",".join(rng.choice(NASTY).replace("\x00", "0") for _ in range(rng.randint(1, 3)))
    else:
        path, field = rng.choice(fields())
        name, values = path, ",".join(flow(drawn(rng, field)) for _ in range(2))
    return f"{name}={values}" if rng.random() < 0.97 else name


def _scenario(rng: Random, folder: Path) -> dict[str, Any]:
    """Write a scenario that runs quickly, and return it."""
    write_traces(folder)
    name = rng.choice(("speed-100k", "chatbot", "qos-two-classes", "mooncake-conversation", "long-context-active"))
    return put(trees()[name], "run.baselines", [])


def _grid(rng: Random, folder: Path) -> Command:
    tree = _scenario(rng, folder)
    write_tree(folder, tree)
    args: list[str] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3, 40) if rng.random() < 0.9 else (0,))):
        args += ["--grid", _axis(rng)]
    if rng.random() < 0.5:
        args += ["--sample", rng.choice(("1", "2", "3", "3", "4", "0", "-1", "1000000", "9" * 40, "nan", "1e3", ""))]
    if rng.random() < 0.2:
        args += ["--replications", rng.choice(("1", "2", "0", "1001", "-5", "x"))]
    if rng.random() < 0.1:
        args += [rng.choice(("--metric", "--seed", "--jobs")), rng.choice(("nope", "-1", "0", "1e99", "ttft_s", ""))]
    return _sweep(args)


def _sweep(args: list[str]) -> Command:
    return Command(
        ("sweep", "s.yaml", *args, "--json", "--out", "out"), out="out", holds="points.csv", keeps=True, json=True,
        in_child=stay_here, judge=_no_fault_of_ours,
    )  # fmt: skip


def _no_fault_of_ours(outcome: Outcome, folder: Path) -> str:
    """Hold that points fail for what was asked, never by accident."""
    found = next((kind for kind in _OURS.findall(outcome.stderr) if kind not in _KINDS), "")
    return f"a point failed by {found}" if found else ""


def _section(rng: Random, folder: Path) -> Command:
    """Change the sections sweep and plan, and ask for what they are of."""
    kind = rng.choice(("sweep", "plan", "curves"))
    tree = trees()["plan-chat-70b"] if kind == "plan" else _scenario(rng, folder)
    tree = put(tree, "run.baselines", [])
    if kind == "sweep":
        axes = {rng.choice(_SHORT): _listed(rng) for _ in range(rng.choice((0, 1, 1, 2)))}
        tree = put(tree, "sweep", {"grid": axes, "sample": rng.choice((1, 2, 3))})
    if kind == "plan":
        tree = put(tree, "plan.vary", {"instance": ["p5.48xlarge"], "tp": [rng.choice((2, 4, 8))]})
    notes = []
    for _ in range(rng.choice((1, 1, 2))):
        near = [found for found in fields() if found[0].partition(".")[0] == kind] if rng.random() < 0.7 else []
        path, field = rng.choice(near) if near else likely(rng, tree)
        value = drawn(rng, field) if rng.random() < 0.4 else Raw(rng.choice(NASTY))
        if path == "plan.vary" or path == "sweep.grid":
            value = {rng.choice((*_SHORT, "x", "workload")): _listed(rng)}
        tree = put(tree, path, value)
        notes.append(f"{path}: {flow(value)[:200]!r}")
    write_tree(folder, tree)
    if kind == "sweep":
        return _sweep([])
    if kind == "curves":
        more = (
            "--points",
            rng.choice(("2", "3", "1", "101", "x")),
            "--only",
            rng.choice(("t_avg", "speedup", "x", "")),
        )
        return Command(("curves", "s.yaml", *more, "--json", "--out", "out"), out="out", holds="curves.json", json=True,
                       keeps=True, in_child=stay_here, notes=tuple(notes))  # fmt: skip
    if rng.random() < 0.8:  # a search takes long: hold what is asked for against the scenario, that is most of it
        return run_of(notes)
    return Command(("plan", "s.yaml", "--json", "--out", "out"), out="out", holds="plan.json", json=True, keeps=True,
                   in_child=stay_here, notes=tuple(notes))  # fmt: skip


def _listed(rng: Random) -> Any:
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(_VALUES[:30])
    return [rng.choice((0.5, 1, 2, "vllm", "1GiB", True, -1, 1e308, 2**40, "p5.48xlarge", Raw(rng.choice(NASTY))))
            for _ in range(rng.choice((0, 1, 2)))]  # fmt: skip


GENERATORS: dict[str, Generator] = {"grid": _grid, "section": _section}
