"""Sentences that more than one curve needs."""

from __future__ import annotations

from collections.abc import Iterable

from simkv.curves.estimate import Summary
from simkv.curves.house import House
from simkv.curves.setting import Setting
from simkv.results.quantity import data, digits, seconds

_TWICE = 2.0
_MOST_OF_IT = 0.95


def longer(ratio: float, than: str = "") -> str:
    """Return how ``ratio`` times as long as something is said: a percentage, from twice on a factor."""
    percent = 100 * (ratio - 1)
    if ratio >= _TWICE:
        text, word = f"{digits(ratio)} times as long", "as"
    elif abs(percent) < 0.1:
        text, word = "as long", "as"
    else:
        text, word = f"{digits(abs(percent))} % {'longer' if percent > 0 else 'shorter'}", "than"
    return f"{text} {word} {than}" if than else text


def times(speed: float) -> str:
    """Return a speedup for people: to a thousandth below twice, where gains are small."""
    return f"{speed:.3f}" if speed < _TWICE else digits(speed)


def of_house(house: House, sequences: str) -> list[str]:
    """Say what a full house is of, and what in it is assumed."""
    setting, lengths = house.setting, house.setting.lengths
    if setting.kind == "replay":
        return ["The scenario's own sequences: what attention reads is a log of theirs."]
    mean = f"{lengths.prompt_tokens:,} prompt and {lengths.output_tokens:,} output tokens"
    text = (
        f"Simulated: {sequences} of {house.end_tokens:,} tokens, the workload's mean request ({mean}), over the last "
        f"{house.outputs} of them; prompts are there already, so that only decoding counts, on one replica."
    )
    return [text]


def assumed(house: House) -> Iterable[str]:
    """Say what a full house assumes that the scenario doesn't say."""
    setting = house.setting
    if not house.what_if:
        return
    yield (
        "Curves over p_hit, β and p are a what-if: the scenario keeps all KV of running sequences in VRAM. There they "
        "keep a share p, attention reads every block in every step, and the rest streams from DRAM. Engines such as "
        "vLLM can't do that."
    )
    have = int(setting.scenario.tiers.dram.capacity)
    if house.dram_bytes > have:
        yield f"The what-if has {data(house.dram_bytes)} of DRAM, which it needs; the scenario has {data(have)}."


def quality(setting: Setting) -> Iterable[str]:
    """Say what isn't modelled where attention reads only some blocks."""
    if setting.kind in ("sparse", "replay"):
        pattern = setting.scenario.offload.access.pattern
        yield (
            f"Quality not modelled: reading only some blocks (access pattern {pattern}) approximates "
            "attention that was trained dense. Moving KV changes no result."
        )


def of_seeds(seeds: tuple[int, ...], drawn: bool) -> str:
    """Say what the intervals are of; ``drawn``: whether anything is drawn at random."""
    if drawn and len(seeds) == 1:
        return f"One seed ({seeds[0]}): points have no interval, and small differences between them may be chance."
    if not drawn:
        return "Nothing in it is drawn at random: each point is one run, exact, and has no interval."
    return f"Points are means over {len(seeds)} seeds ({seeds[0]} to {seeds[-1]}), bars their 95 % intervals (t)."


def step_note(summary: Summary) -> str | None:
    """Return what a run says of a decode step that takes longer than its closed form."""
    return next((note for note in summary["notes"] if note.startswith("A decode step takes")), None)


def dram_full(summary: Summary) -> bool:
    """Say whether DRAM was full at some time."""
    usage = (summary.get("kv_usage") or {}).get("dram")
    return bool(usage and usage["max"] is not None and usage["max"] >= _MOST_OF_IT)


def sequences(count: int) -> str:
    """Return a number of sequences."""
    return f"{count:,} sequence{'s' if count != 1 else ''}"


def listed(values: Iterable[float]) -> str:
    """Return numbers with blanks between."""
    return ", ".join(f"{value:g}" for value in values)


def time(value: float | None) -> str:
    """Return a time for people."""
    return seconds(value)


def percent(value: float) -> str:
    """Return a share for people: one digit after the point, two where it is close to all."""
    return f"{100 * value:.2f} %" if 0.99 <= value < 1 else f"{100 * value:.1f} %"
