"""Case files of ``simkv validate --cases``: lines and values of good ones changed."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

from simkv.scenario import text
from tests.fuzz.asked import Command, Generator, Outcome
from tests.fuzz.base import NASTY, write_traces
from tests.fuzz.here import stay_here
from tests.fuzz.lines import mutated
from tests.fuzz.scenarios import Raw, flow

_FILE = "cases.yaml"
_OURS = re.compile(r"\b((?!Input|Infeasible)[A-Z]\w*(?:Error|Exception))\b")

GOOD = """\
simkv_cases: 1
cases:
- id: a-step
  group: compute
  kind: decode
  family: ampere
  title: A step
  source: {title: "Somebody", where: "somewhere", locator: "table 1", confirmation: primary_text}
  step:
    model: llama-3.1-8b
    hardware: a100-sxm4-80gb
    work: {decode: {sequences: 8, context_tokens: 2000, steps: 3}, prefill: {tokens: 500}}
  observations:
  - {metric: decode_s, expected: 30 ms, tolerance: 0.5, because: "No reason"}
  - {metric: prefill_s, expected: 0.05, set: {work.prefill.tokens: 1000}, relative_to: {set: {work.prefill.tokens: 50}}}
- id: a-form
  group: formulas
  calc: {form: kv-size, model: llama-3.1-8b, tokens: 131072}
  observations:
  - {metric: bytes_per_token, expected: 131072, fitted: true}
- id: some-hits
  group: hit_counts
  data: {trace: mooncake.jsonl}
  hits: {policy: lru, capacity_blocks: 5}
  observations:
  - {metric: hits, expected: 11, set: {order: reverse}, label: back to front}
- id: a-queue
  group: queueing
  queue: {system: mm1, load: 0.5, requests: 1000, seed: 1}
  observations:
  - {metric: wait_s, expected: oracle}
- id: a-run
  group: tiered_serving
  seeds: 2
  scenario:
    name: x
    model: llama-3.1-8b
    hardware: a100-sxm4-80gb
    workload: {kind: plain, requests: 4, arrival: {process: all_at_once}, prompt_tokens: 900, output_tokens: 9}
    run: {baselines: []}
  observations:
  - {metric: ttft_s.mean, expected: 266 ms, set: {engine.max_num_seqs: 4, workload.prompt_tokens: 500}}
"""


def _case(rng: Random, folder: Path) -> Command:
    data, notes = mutated(rng, _some(rng), 2)
    return _ask(rng, folder, data, notes)


def _some(rng: Random) -> str:
    """Return a file of one or two of the cases."""
    head, *cases = re.split(r"(?m)^(?=- id: )", GOOD)
    return head + "".join(rng.sample(cases, rng.choice((1, 1, 2))))


def _value(rng: Random, folder: Path) -> Command:
    """Put a nasty value somewhere."""
    tree = text.parse(_some(rng), _FILE).values
    notes = [_put(rng, tree) for _ in range(rng.choice((1, 1, 2)))]
    content = "".join(f"{key}: {flow(value)}\n" for key, value in tree.items())
    return _ask(rng, folder, content.encode("utf-8", "surrogatepass"), notes)


def _put(rng: Random, tree: Any) -> str:
    """Change something in ``tree``; return what was done."""
    place, path = tree, ""
    while True:
        keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return "nothing"
        key = rng.choice(keys)
        if key == "simkv_cases" and rng.random() < 0.95:
            continue
        path += f".{key}"
        if isinstance(place[key], dict | list) and rng.random() < 0.9:
            place = place[key]
            continue
        break
    kind = rng.random()
    value: Any = Raw(rng.choice(NASTY))
    if kind < 0.1:
        del place[key]
        return f"{path} deleted"
    old = place[key]
    if kind > 0.6 and isinstance(old, int | float) and not isinstance(old, bool):
        value = rng.choice((0, 1, -1, old * 2, old * 10, old * 1000, old / 2, 1e-9, 2**40, 0.999999, 1.000001))
    elif kind < 0.25:
        value = rng.choice((10**9, 10**12, 1e15, 5e-324, 2**40, 1.5, -3, 0, float("nan"), float("inf"), [1], {"a": 1}))
    if kind < 0.35 and isinstance(place, dict):
        key = rng.choice(("x", "set", "seeds", "scenario", "step", "work", "", "limit", "requests", "load", "servers"))
    place[key] = value
    return f"{path} ({key!r}) = {value!r}"[:200]


def _ask(rng: Random, folder: Path, data: bytes, notes: list[str]) -> Command:
    write_traces(folder)
    (folder / _FILE).write_bytes(data)
    more = ("--data", rng.choice((*["."] * 18, "nowhere", _FILE))) if rng.random() < 0.97 else ()
    only = ("--only", rng.choice(("queueing", "x", "", "compute,formulas", ","))) if rng.random() < 0.1 else ()
    return Command(
        ("validate", "--cases", _FILE, *more, *only, "--json"), allowed=(0, 2, 3, 4), json=True, in_child=stay_here,
        judge=_no_fault_of_ours, notes=tuple(notes),
    )  # fmt: skip


def _no_fault_of_ours(outcome: Outcome, folder: Path) -> str:
    """Hold that cases fail for what they ask, never by accident."""
    found = _OURS.search(outcome.stdout + outcome.stderr)
    return f"a case failed by {found[1]}" if found else ""


GENERATORS: dict[str, Generator] = {"case": _case, "case-value": _value}
