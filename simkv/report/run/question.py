"""What was asked, and what it is assumed of: model, machine, engine, load, tiers and policies, each with its origin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simkv.errors import SimkvError
from simkv.report.document import Block, Cell, Details, Table, Text
from simkv.report.folders import RunFolder
from simkv.report.run.settings import Settings, Tree, settings, words
from simkv.results.write import RESOLVED
from simkv.scenario.explain import budget_rows
from simkv.scenario.resolve import resolve_text

_MAIN = ("Model", "Hardware", "Replicas", "Engine", "KV pool in VRAM", "DRAM", "SSD", "Host link", "Kept in VRAM",
         "Attention reads", "Prefetch", "Request classes", "SLO", "Prices")  # fmt: skip
"""What is in plain sight; the rest is folded."""
_ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Model", ("model",)),
    ("Hardware", ("hardware",)),
    ("Replicas", ("replicas",)),
    ("Engine", ("engine.preset", "engine.version")),
    ("Batch", ("engine.max_num_seqs", "engine.max_num_batched_tokens", "engine.max_model_len")),
    ("KV pool in VRAM", ("engine.num_gpu_blocks", "engine.block_tokens", "engine.gpu_memory_utilization")),
    ("Number formats", ("engine.weight_dtype", "engine.kv_dtype")),
    ("Scheduling", ("engine.scheduling", "engine.preemption", "engine.load", "engine.prefill")),
    ("Prefix caching", ("engine.prefix_caching", "engine.store_outputs")),
    ("Placement", ("engine.placement", "engine.gpu_batch_size", "engine.num_gpu_batches", "engine.schedule",
                   "engine.cpu_attention", "engine.constants")),
    ("DRAM", ("tiers.dram",)),
    ("SSD", ("tiers.ssd",)),
    ("Tiers hold", ("tiers.relation",)),
    ("Host link", ("link",)),
    ("Kept in VRAM", ("offload.residency", "offload.vram_budget")),
    ("Attention reads", ("offload.access",)),
    ("Eviction", ("offload.eviction",)),
    ("Writing to lower tiers", ("offload.write", "offload.when_full")),
    ("Prefetch", ("offload.prefetch",)),
    ("Contention", ("contention",)),
    ("Request classes", ("classes",)),
    ("SLO", ("slo",)),
    ("Prices", ("cost",)),
    ("Run", ("run.duration", "run.warm_up", "run.warm_tiers", "run.baselines")),
)  # fmt: skip
"""Label, and what of the resolved scenario belongs to it."""

_BARE = ("engine.preset", "engine.version", "model", "hardware", "tiers.relation", "offload.write")
"""Values that say by themselves what they are."""
_SIZED = ("tiers.dram", "tiers.ssd")


def blocks(folder: RunFolder) -> list[Block]:
    """Return the question, the workload in words, a table of assumptions, and the memory budget if it is known."""
    given, asked = settings(folder), folder.summary["question"]
    found: list[Block] = [Text(str(asked), lead=True)] if asked else []
    found.append(Text(_in_words(folder, given)))
    rows = list(_rows(given))
    found += _table([*_load_rows(given), *(row for row in rows if row[0] in _MAIN)], "assumptions")
    rest = _table([row for row in rows if row[0] not in _MAIN], "more-assumptions")
    found += [Details("More assumptions: batches, scheduling, caching, policies", rest)] if rest else []
    return [*found, *_budget(folder)]


def _table(rows: Sequence[tuple[str, str, str]], name: str) -> list[Block]:
    cells = [(Cell(label), Cell(value), Cell(origin)) for label, value, origin in rows]
    return [Table(("Assumption", "Value", "Where it comes from"), cells, name=name)] if cells else []


def _in_words(folder: RunFolder, given: Settings) -> str:
    """Say in two sentences what is served by what."""
    summary = folder.summary
    arrived = summary["requests"]["arrived"]
    load = f"{arrived:,} request{'s' if arrived != 1 else ''} ({given.text('workload.kind') or 'unknown kind'})"
    tokens = ""
    if summary["requests"]["finished"]:
        mean = [summary[key] / summary["requests"]["finished"] for key in ("prompt_tokens", "output_tokens")]
        tokens = f", on average {mean[0]:,.0f} prompt and {mean[1]:,.0f} output tokens,"
    verb = "is" if arrived == 1 else "are"
    return f"{load}{tokens} {verb} served by {_machine(given)}."


def _machine(given: Settings) -> str:
    replicas = given.text("replicas.count") or "1"
    many = f"{replicas} replica{'s' if replicas != '1' else ''}"
    model, hardware = (
        f"an abstract {what}" if isinstance(given.get(path), dict) else given.text(path) or f"an unknown {what}"
        for path, what in (("model", "model"), ("hardware", "machine"))
    )
    engine = " ".join(filter(None, (given.text("engine.preset"), given.text("engine.version"))))
    return f"{many} of {model} on {hardware}" + (f", with the defaults of {engine}" if engine else "")


def _load_rows(given: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each key of the workload."""
    workload = given.get("workload")
    for key, value in workload.items() if isinstance(workload, dict) else ():
        label = "Workload" if key == "kind" else f"Workload: {key.replace('_', ' ')}"
        yield label, words(value), given.origin(f"workload.{key}")


def _rows(given: Settings) -> Iterator[tuple[str, str, str]]:
    for label, paths in _ROWS:
        there = [path for path in paths if given.get(path) is not None]
        if any(path in _SIZED and not given.amount(f"{path}.capacity", "size") for path in there):
            yield label, "none", given.origin(f"{there[0]}.capacity")
        elif there:
            yield label, ", ".join(_said(given, path) for path in there), given.origin(*there)


def _said(given: Settings, path: str) -> str:
    value: Tree | None = given.get(path)
    assert value is not None
    name = path.rsplit(".", 1)[-1].replace("_", " ")
    if path in _BARE or isinstance(value, dict):
        return words(value)
    return f"{name} {_flag(words(value))}"


def _flag(text: str) -> str:
    return {"true": "yes", "false": "no"}.get(text, text)


def _budget(folder: RunFolder) -> Iterator[Block]:
    """Yield the memory budget of one GPU, where the scenario still resolves: its files may have gone since."""
    try:
        rows = budget_rows(resolve_text(folder.resolved, str(folder.path / RESOLVED)))
    except (SimkvError, OSError):
        return
    if rows:
        table = Table(("Of one GPU", "Size", "What it is"), _cells(rows), name="memory-budget", right=frozenset({1}))
        yield Details("Memory budget: what VRAM is left for KV", [table])


def _cells(rows: Sequence[tuple[str, str, str]]) -> list[tuple[Cell, Cell, Cell]]:
    return [(Cell(label.replace("_", " ")), Cell(size), Cell(note)) for label, size, note in rows]
