"""What closed forms say beside what was simulated, and in a phrase why they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from simkv.report.document import Block, Cell, Facts, Table, Text
from simkv.report.folders import RunFolder
from simkv.report.run.settings import Settings, settings
from simkv.report.run.shown import capital
from simkv.results.bottleneck import NAMES
from simkv.results.quantity import MISSING, digits, seconds, share
from simkv.results.words import Summary, closed_label, quantity

_AGREE = 0.01
"""Closed form and simulation agree within this, relative."""
_FELT = 0.05
"""Queueing that is a smaller share of a time isn't named as what makes it long."""
_HEADS = (
    "Figure",
    "Closed form",
    "Simulated",
    "95 % interval of the mean",
    "Simulated / closed form",
    "Why they differ",
)

_UPPER = ("ttft", "tpot", "itl", "e2e")
_NAMES = {
    "kv_token_bytes": "KV of one token",
    "ttft_without_cache_s": "TTFT without any cache",
    "t_step_s": "T_step, a decode step",
    "t_compute_s": "T_c, computing in a step",
    "t_transfer_s": "T_t, needed transfers of a step",
    "t_avg_s": "T_avg, a read of a (block, layer)",
    "t_vram_s": "T_vram, a read of what is in VRAM",
    "t_mem_s": "T_mem, a read of what has to be loaded",
    "bubble_s": "Fill bubble, the first layer's pieces",
    "speedup": "S(β), speedup by prefetch",
    "speedup_most": "S(β), at most",
    "speedup_most_article": "The article's bound 1 + T_t / T_c",
    "beta_feasible": "β feasible, min(1, T_c / T_t)",
}
_ELSEWHERE = ("load_breakeven_bytes_per_s",)
"""Told in a sentence."""


class Beside(NamedTuple):
    """A simulated figure and its interval."""

    value: float
    interval: tuple[float, float] | None = None


def blocks(folder: RunFolder) -> list[Block]:
    """Return the table, and below it the closed forms that nothing was simulated beside."""
    summary = folder.summary
    closed = _closed(summary)
    rows = [_row(key, value, beside, summary) for key, value in closed.items() if (beside := _beside(key, summary))]
    found: list[Block] = []
    if rows:
        found.append(Table(_HEADS, rows, name="closed-form", right=frozenset({1, 2, 3, 4})))
    alone = [
        (_label(key), quantity(key, value))
        for key, value in closed.items()
        if key not in _ELSEWHERE and not _beside(key, summary)
    ]
    if alone:
        found.append(Facts(alone))
    return [*found, *_break_even(closed, settings(folder))]


def _closed(summary: Summary) -> dict[str, float]:
    """Return closed forms that are plain numbers, how many fit at once among them."""
    found = {key: value.get("value") if isinstance(value, Mapping) else value for key, value in _items(summary)}
    kept = {key: float(one) for key, one in found.items() if isinstance(one, int | float) and not isinstance(one, bool)}
    fits = summary["concurrency"]["formula"]
    if fits is not None and kept.get("concurrency_with_staging") == fits:
        del kept["concurrency_with_staging"]
    return kept if fits is None else kept | {"concurrency": float(fits)}


def _items(summary: Summary) -> list[tuple[str, Any]]:
    return list(summary["closed_form"].items())


def _beside(key: str, summary: Summary) -> Beside | None:
    """Return what was simulated of the figure that a closed form is about."""
    if key.startswith("concurrency"):
        most = summary["concurrency"]["max"]
        return Beside(float(most)) if most else None
    picked = _PICKED.get(key)
    value = picked(summary) if picked else summary.get(key.removeprefix("published_"))
    if isinstance(value, Mapping):
        ends = value["ci95"]
        return Beside(value["mean"], (ends[0], ends[1]) if ends else None)
    return Beside(float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else None


_PICKED: Mapping[str, Callable[[Summary], Any]] = {
    "t_avg_s": lambda summary: (summary["t_avg_s"] or {}).get("service"),
    "speedup": lambda summary: summary["speedup"]["measured"],
}
"""Where the simulated figure is, if not under the same key."""


def _row(key: str, value: float, beside: Beside, summary: Summary) -> tuple[Cell, ...]:
    ratio = beside.value / value if value else None
    ends = beside.interval
    interval = f"{quantity(key, ends[0])} to {quantity(key, ends[1])}" if ends else MISSING
    return (
        Cell(_label(key)),
        Cell(quantity(key, value), value),
        Cell(quantity(key, beside.value), beside.value),
        Cell(interval),
        Cell(MISSING) if ratio is None else Cell(digits(ratio), ratio),
        Cell(_why(key, ratio, value, beside.value, summary)),
    )


def _label(key: str) -> str:
    if key.startswith("concurrency"):
        text = "with staging buffers and whole blocks" if key.endswith("staging") else "of the mean request"
        return f"Requests at once: what fits {text}, and the most that ran"
    if key in _NAMES:
        return _NAMES[key]
    words = [word.upper() if word in _UPPER else word for word in closed_label(key).split(" ")]
    return capital(" ".join(words))


def _why(key: str, ratio: float | None, closed: float, simulated: float, summary: Summary) -> str:
    """Say in a phrase what the closed form leaves out here."""
    if key.startswith("concurrency"):
        return _why_so_many(closed, simulated, summary)
    if ratio is None:
        return ""
    if abs(ratio - 1) <= _AGREE:
        return "they agree"
    why = _WHY.get(key.removeprefix("published_"))
    return why(summary) if why else ""


def _why_so_many(closed: float, simulated: float, summary: Summary) -> str:
    if simulated < closed and _waited(summary):
        return f"more waited: not this room, but {NAMES.get(summary['bottleneck'], 'something else')} bound"
    if simulated < closed:
        return "there was room for more: no more were there at once"
    return "they agree" if simulated == closed else "requests shorter than the mean, or that share a prefix, take less"


def _waited(summary: Summary) -> bool:
    """Say whether requests waited to be let in, by a share of their time that is felt."""
    queue, whole = summary["queue_s"], summary["e2e_s"]
    return bool(queue and whole and queue["mean"] >= _FELT * whole["mean"])


def _first_token(summary: Summary) -> str:
    queue, mean = summary["queue_s"]["mean"], summary["ttft_s"]["mean"]
    alone = "the closed form has the mean request alone on an idle replica"
    if queue >= _FELT * mean:
        return f"queueing: {seconds(queue)}, {share(queue / mean)} of TTFT; {alone}"
    return f"its steps are shared with others, and lengths vary; {alone}"


def _between_tokens(summary: Summary) -> str:
    running = summary["concurrency"]["mean"]
    many = f" of {digits(running)}" if running else ""
    return f"the closed form takes the mean batch{many}; batches vary, and prefills of others come between tokens"


def _step(summary: Summary) -> str:
    waits = sum(summary["t_wait_s"].values()) if summary["t_wait_s"] else 0.0
    return f"a step waits {seconds(waits)}: steps differ, and transfers queue"


def _average(summary: Summary) -> str:
    hit, resident = summary["p_hit"], summary["p_resident"]
    if hit is not None and resident is not None and hit - resident > 0.001:
        return (
            f"the closed form takes p_hit {digits(hit)}, prefetches that came in time being hits; simulated is each "
            f"piece that was moved, and {digits(resident)} were there as the step began"
        )
    return "pieces come from more than one tier, or in other sizes"


_WHY: Mapping[str, Callable[[Summary], str]] = {
    "ttft_s": _first_token,
    "tpot_s": _between_tokens,
    "t_step_s": _step,
    "t_transfer_s": lambda summary: (
        "descriptors and set-up times of transfers; the closed form has bytes over bandwidth"
    ),
    "t_avg_s": _average,
    "speedup": lambda summary: "the overlap β differs from step to step",
    "e2e_s": lambda summary: "the closed form has one full batch of the longest requests",
    "output_tokens_per_s": lambda summary: "the closed form has one full batch of the longest requests",
}


def _break_even(closed: Mapping[str, float], given: Settings) -> Iterator[Block]:
    """Yield whether loading a prefix beats computing it on this link."""
    rate, link = closed.get("load_breakeven_bytes_per_s"), given.amount("link.h2d", "rate")
    if rate:
        yield Text(_link_or_compute(rate, link))


def _link_or_compute(rate: float, link: float | None) -> str:
    text = f"Loading KV beats computing it from {digits(rate / 1e9)} GB/s on"
    if link is None:
        return f"{text}."
    which = "loading is faster" if link > rate else "computing is faster"
    return f"{text}; a host link here carries {digits(link / 1e9)} GB/s: {which}."
