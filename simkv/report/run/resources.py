"""What each resource of a run did: busy, moved, its mean rate beside what it can; and how many ran at once."""

from __future__ import annotations

from collections.abc import Iterator

from simkv import units
from simkv.report.document import Block, Cell, Facts, Table
from simkv.report.folders import RunFolder
from simkv.report.run.settings import Settings, settings
from simkv.report.run.shown import cell, part, size
from simkv.results.bottleneck import NAMES
from simkv.results.quantity import MISSING, count, data, digits, seconds, share
from simkv.results.words import RESOURCES, TIERS, Summary, preemption_text

_RATES = {
    "h2d": ("link.h2d", "replicas.count"), "d2h": ("link.d2h", "replicas.count"),
    "dram": ("tiers.dram.bandwidth", "replicas.hosts"), "ssd_read": ("tiers.ssd.read", "replicas.hosts"),
    "ssd_write": ("tiers.ssd.write", "replicas.hosts"),
}  # fmt: skip
"""What one of each carries a second, and how many there are."""
_LINKS = ("h2d", "d2h")
"""A replica's is as wide as it has GPUs."""


def blocks(folder: RunFolder) -> list[Block]:
    """Return a table of resources, one of room in tiers, and how many ran."""
    summary, given = folder.summary, settings(folder)
    found: list[Block] = []
    rows = list(_rows(summary, given))
    if rows:
        heads = ("Resource", "Busy", "Moved", "Mean rate", "Can carry", "")
        found.append(Table(heads, rows, name="resources", right=frozenset({1, 2, 3, 4})))
    room = list(_room(summary))
    if room:
        table = Table(("Room for KV", "Taken, mean", "Taken, most", ""), room, name="room", right=frozenset({1, 2}))
        found.append(table)
    facts = [*_running(summary), *_throughput(summary), *_swapped(summary)]
    return [*found, Facts(facts)] if facts else found


def _rows(summary: Summary, given: Settings) -> Iterator[tuple[Cell, ...]]:
    makespan_s = summary["makespan_s"]
    for label, name in RESOURCES:
        busy, moved = summary["utilization"][name], summary["bytes"].get(name)
        if busy is None and moved is None:
            continue
        rate = moved / makespan_s if moved is not None and makespan_s > 0 else None
        can = capacity_bytes_per_s(name, given)
        binds = Cell("bottleneck", tone="warning") if summary["bottleneck"] == name else Cell("")
        yield (
            Cell(label), part(busy), size(moved), cell(rate, _rate), cell(can, _rate), binds,
        )  # fmt: skip


def capacity_bytes_per_s(name: str, given: Settings) -> float | None:
    """Return what all instances of a resource carry together; None where that isn't known."""
    if name not in _RATES:
        return None
    path, count_path = _RATES[name]
    rate, many = given.amount(path, "rate"), given.amount(count_path, "count")
    wide = given.amount("replicas.tensor_parallel", "count") or 1 if name in _LINKS else 1
    return rate * many * wide if rate is not None and many else None


def _rate(value: float) -> str:
    return "no limit" if value == float("inf") else units.short(value, "rate")


def _room(summary: Summary) -> Iterator[tuple[Cell, ...]]:
    for label, key in TIERS:
        usage = summary["kv_usage"][key]
        if usage is not None and usage["mean"] is not None:
            binds = Cell("bottleneck", tone="warning") if summary["bottleneck"] == key else Cell("")
            yield Cell(label), part(usage["mean"]), part(usage["max"]), binds


def _running(summary: Summary) -> Iterator[tuple[str, str]]:
    running = summary["concurrency"]
    if running["mean"] is None:
        return
    text = f"{digits(running['mean'])} on average, {running['max']} at most"
    if running["formula"] is not None:
        text += f"; by closed form {count(running['formula'])} fit"
    staged = summary["closed_form"].get("concurrency_with_staging")
    if staged is not None and staged != running["formula"]:
        text += f", {count(staged)} with staging buffers and whole blocks"
    if summary["bottleneck"] == "max_num_seqs":
        text += f" ({NAMES['max_num_seqs']} binds)"
    yield "Requests at once", text
    if summary["preemptions"]:
        yield "Preempted", preemption_text(summary)


def _throughput(summary: Summary) -> Iterator[tuple[str, str]]:
    requests = summary["requests"]
    text = f"{requests['finished']:,} of {requests['arrived']:,} requests in {seconds(summary['makespan_s'])}"
    if requests["rejected"]:
        text += f", {requests['rejected']:,} turned away"
    if requests["live"]:
        text += f", {requests['live']:,} under way at the end"
    if summary["requests_per_s"] is not None:
        text += f": {digits(summary['requests_per_s'])} requests/s, {count(summary['output_tokens_per_s'])} output"
        text += " tokens/s"
    yield "Throughput", text
    if summary["load_wait_s"] is not None:
        hidden = summary["load_hidden"]
        also = f"; in {share(hidden)} of the time with someone held, the GPU worked for others" if hidden else ""
        yield "Loads", f"a request that loads is held {seconds(summary['load_wait_s'])} for it{also}"


def _swapped(summary: Summary) -> Iterator[tuple[str, str]]:
    swap = summary["swap"]
    if swap and swap["requests"]:
        moved = f"{data(swap['out_bytes'])} out and {data(swap['in_bytes'])} back in"
        yield "Swapped out", f"{swap['requests']:,} preempted requests; {moved}; DRAM refused {swap['refused']:,}"
    warmed = summary.get("warm_tiers")
    if warmed:
        written = [
            f"{label} written {digits(times)} times over"
            for label, key in TIERS
            if (times := warmed["written"].get(key)) is not None
        ]
        passed = f"{count(warmed['requests'])} requests ({seconds(warmed['time_s'])}) passed untimed before the run"
        settled = {True: "; longer would have changed nothing", False: "; longer would have changed more", None: ""}
        yield "Warm tiers", f"{passed}; {', '.join(written) or MISSING}{settled[warmed['settled']]}"
