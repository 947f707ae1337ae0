"""Does offloading help here? A plain answer with its numbers, from the same requests with and without it."""

from __future__ import annotations

from collections.abc import Mapping

from simkv.results.context import SummaryContext
from simkv.results.paired import Difference
from simkv.results.quantity import change, count, digits, seconds, share

MATTERS = 0.01
"""A change below one percent is no reason to buy anything."""

_JUDGED = (("ttft_s", "TTFT"), ("e2e_s", "E2E"))


def verdict(
    figures: Mapping[str, object], ctx: SummaryContext, against: Mapping[str, Difference] | None
) -> dict[str, object]:
    """Return ``{offload_helps, because}``; ``against``: differences to the run without offload."""
    if not ctx.offloads:
        return _answer(None, f"{figures_text(figures)}There is no tier below VRAM here: nothing is offloaded.")
    if against is None and _interrupted(figures):
        text = "The run was stopped: no finished run without offload to compare with."
        return _answer(None, figures_text(figures) + text)
    if against is None:
        text = "There is no run without offload to compare with (run.baselines)."
        return _answer(None, figures_text(figures) + text)
    judged = {label: against[name] for name, label in _JUDGED if name in against}
    if not judged:
        return _answer(None, "No request finished both with and without offload.")
    helps = _decide(judged)
    reuse = _hits(figures) if figures.get("t_step_s") is None else _throughput(figures)
    text = f"{_opening(helps, judged)}: {_changes(judged)}.{_queue(figures)}{reuse}"
    return _answer(helps, text)


def _interrupted(figures: Mapping[str, object]) -> bool:
    warnings = figures.get("warnings")
    return isinstance(warnings, list) and any(one["code"] == "interrupted" for one in warnings)


def _answer(helps: bool | None, because: str) -> dict[str, object]:
    return {"offload_helps": helps, "because": because}


def figures_text(figures: Mapping[str, object]) -> str:
    """Say what came out, where there is nothing to hold it against."""
    latencies = [(label, figures.get(name)) for name, label in _JUDGED]
    parts = [f"mean {label} {seconds(one['mean'])}" for label, one in latencies if isinstance(one, dict)]
    rate = figures.get("output_tokens_per_s")
    parts += [f"{count(rate)} output tokens/s"] if isinstance(rate, float) else []
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}. " if text else ""


def _decide(judged: Mapping[str, Difference]) -> bool | None:
    """True where something gets better and nothing worse; False the other way round, or where nothing moves."""
    signs = {_sign(one) for one in judged.values()}
    if signs == {0}:
        return False if all(_negligible(one) for one in judged.values()) else None
    if 1 not in signs:
        return True
    return False if -1 not in signs else None


def _sign(one: Difference) -> int:
    """-1: better beyond the interval and by enough to matter; 1: worse; 0: neither."""
    return one.certain if abs(one.relative or 0.0) >= MATTERS else 0


def _negligible(one: Difference) -> bool:
    widest = abs(one.relative or 0.0) + (one.relative_half or 0.0)
    return one.mean_s == 0 or (one.half_s is not None and widest < 2 * MATTERS)


def _opening(helps: bool | None, judged: Mapping[str, Difference]) -> str:
    if helps:
        return "Offloading helps"
    if helps is None:
        if all(one.half_s is None for one in judged.values()):
            return "Too few requests for an interval, so that there is no judgement"
        mixed = {_sign(one) for one in judged.values()} >= {-1, 1}
        return "Offloading trades one for the other" if mixed else "The run is too short or too noisy to tell"
    worse = any(_sign(one) > 0 for one in judged.values())
    return "Offloading makes it worse" if worse else "Offloading makes no difference that matters"


def _changes(judged: Mapping[str, Difference]) -> str:
    return ", ".join(_change(label, one) for label, one in judged.items())


def _change(label: str, one: Difference) -> str:
    if one.mean_s == 0:
        return f"mean {label} stays at {seconds(one.run_s)}"
    text = f"mean {label} {seconds(one.baseline_s)} without, {seconds(one.run_s)} with"
    if one.relative is None:
        return text
    if one.run_s > 0 and not 0.5 < one.baseline_s / one.run_s < 2:
        times = max(one.baseline_s / one.run_s, one.run_s / one.baseline_s)
        return f"{text} ({digits(times)} times {'less' if one.mean_s < 0 else 'more'})"
    spread = f" ± {share(one.relative_half)}" if one.relative_half is not None else ""
    return f"{text} ({change(one.relative)}{spread})"


def _queue(figures: Mapping[str, object]) -> str:
    warnings, baselines = figures.get("warnings"), figures.get("baselines")
    if not isinstance(warnings, list) or not isinstance(baselines, dict):
        return ""
    mine, theirs = figures.get("e2e_s"), baselines["no_offload"].get("e2e_s")
    grows = any(one["code"] == "not_stationary" for one in warnings)
    plain_grows = "not_stationary" in baselines["no_offload"]["warnings"]
    if grows:
        return (
            " The queue grows without bound either way." if plain_grows else " With it the queue grows without bound."
        )
    hides = isinstance(mine, dict) and isinstance(theirs, dict) and mine["mean"] > theirs["mean"]
    return " Without it the queue grows without bound." if plain_grows and not hides else ""


def _throughput(figures: Mapping[str, object]) -> str:
    """Say what active offload is for: how many run at once, and what they yield together."""
    baselines, mine = figures.get("baselines"), figures.get("concurrency")
    if not isinstance(baselines, dict) or not isinstance(mine, dict):
        return ""
    plain = baselines["no_offload"]
    theirs, rate, other = plain["concurrency"], figures.get("output_tokens_per_s"), plain["output_tokens_per_s"]
    if not isinstance(rate, float) or not other or mine["mean"] is None or theirs["mean"] is None:
        return ""
    text = f" {digits(mine['mean'])} sequences run at once instead of {digits(theirs['mean'])}"
    return f"{text}, and {count(rate)} output tokens/s come out instead of {count(other)} ({change(rate / other - 1)})."


def _hits(figures: Mapping[str, object]) -> str:
    rates, baselines = figures.get("hit_rate"), figures.get("baselines")
    if not isinstance(rates, dict) or not isinstance(baselines, dict):
        return ""
    before = baselines["no_offload"]["hit_rate"]
    if not before:
        return ""
    if rates["ceiling"] == 0:
        return " No prompt begins like an earlier one, as far as the workload says: there is nothing to cache."
    hit, plain = 1 - rates["miss"], 1 - before["miss"]
    text = f" {share(hit)} of prompt tokens come from cache instead of {share(plain)}"
    return f"{text} (at most {share(rates['ceiling'])} could)."
