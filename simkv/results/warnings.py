"""What to know before using the figures: a code and a sentence with its numbers each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from simkv.formulas.interpolated import Outside
from simkv.results.bottleneck import NAMES, RESOURCES, SATURATED, UPLINKS, utilization, utilization_while_arriving
from simkv.results.context import SummaryContext
from simkv.results.paired import Difference
from simkv.results.quantity import count, digits, seconds, share
from simkv.results.stationarity import growth
from simkv.results.window import Window
from simkv.sim.rundata import RunData

Warning_ = dict[str, str]

_ENDLESS_BLOCKS = 2**48
_HURTS_AT_LEAST = 0.005
_FEW = 100
_REFUSED = 0.05
_ASKED = {
    "linear": "linear layers of {asked} tokens in one step",
    "head": "an lm_head of {asked} sequences in one step",
    "batch": "decode attention of {asked} sequences at once",
    "context": "decode attention over {asked} tokens of context a sequence",
    "prompt": "prefill attention as of a prompt of {asked} tokens",
}
"""What step times were asked for, by figure."""
_WHILE_ARRIVING = (("while requests arrive", 0.0), ("in the second half of the arrivals", 0.5))


def find_warnings(
    data: RunData,
    figures: Mapping[str, object],
    ctx: SummaryContext,
    window: Window,
    against: Mapping[str, Difference] | None,
) -> list[Warning_]:
    """Return warnings, the gravest first. ``against``: differences to the run without offload."""
    found = [
        *_interrupted(data),
        *_rejected(data),
        *_not_stationary(data),
        *_offload_hurts(against or {}),
        *_saturated(data),
        *_cold_cache(data, ctx, figures),
        *_refused_stores(data),
        *_refused_swaps(data),
        *_warm_up(data, ctx, window),
        *_few_requests(window),
        *ctx.warnings,
    ]
    return [{"code": code, "message": message} for code, message in found]


def outside_calibration(outside: Sequence[Outside], profile: str) -> list[tuple[str, str]]:
    """Return a warning for each figure that a run asked step times of beyond what ``profile`` measured."""
    found = []
    for figure, asked, low, high in outside:
        what = _ASKED[figure].format(asked=count(round(asked)))
        measured = f"{count(round(low))} to {count(round(high))}"
        which = "the nearest is taken" if asked < low else "the largest is taken, times a roofline's ratio"
        found.append(("outside_calibration", f"Asked for {what}; {profile} measured {measured}: {which}."))
    return found


def _interrupted(data: RunData) -> Iterator[tuple[str, str]]:
    if data.interrupted:
        text = (
            f"The run was stopped at {seconds(data.end_s)} of simulated time: {data.finished:,} of "
            f"{data.arrived:,} requests had finished, and only those are in the figures."
        )
        yield "interrupted", text


def _rejected(data: RunData) -> Iterator[tuple[str, str]]:
    if data.rejected:
        text = (
            f"{data.rejected:,} of {data.arrived:,} requests ({share(data.rejected / data.arrived)}) "
            "can never fit (longer than the model's limit or than the whole KV pool) and were turned away; "
            "latencies are of the others."
        )
        yield "rejected", text


def _not_stationary(data: RunData) -> Iterator[tuple[str, str]]:
    grown = growth(data)
    if grown is None:
        return
    gpu = f", GPU busy {share(grown.gpu)}" if grown.gpu is not None else ""
    text = (
        f"The queue grows without bound: {digits(grown.first_half_waiting)} waiting on average in the first half of "
        f"the arrivals, {digits(grown.second_half_waiting)} in the second; {digits(grown.arrivals_per_s)} requests/s "
        f"arrive and {digits(grown.served_per_s)} are served{gpu}. Latencies grow with the length of the run."
    )
    yield "not_stationary", text


def _offload_hurts(against: Mapping[str, Difference]) -> Iterator[tuple[str, str]]:
    worse = []
    for name, label in (("ttft_s", "TTFT"), ("e2e_s", "E2E")):
        one = against.get(name)
        if one and one.certain > 0 and (one.relative or 0) > _HURTS_AT_LEAST:
            worse.append(f"mean {label} is {seconds(one.run_s)} with it and {seconds(one.baseline_s)} without")
    if worse:
        yield "offload_hurts", f"Offloading makes this worse: {', '.join(worse)} (same requests, beyond the interval)."


def _saturated(data: RunData) -> Iterator[tuple[str, str]]:
    for name in (*RESOURCES, *UPLINKS.values()):
        whole = utilization(data, name)
        if name == "gpu" or whole is None:
            continue
        shares = {"of the time": whole}
        shares |= {when: utilization_while_arriving(data, name, since) or 0.0 for when, since in _WHILE_ARRIVING}
        when = max(shares, key=lambda key: shares[key])
        if shares[when] > SATURATED:
            label = NAMES[name][0].upper() + NAMES[name][1:]
            plural = "are" if label.endswith("s") else "is"
            text = f"{label} {plural} saturated: busy {share(min(shares[when], 1.0))} {when}; what needs it waits."
            yield "saturated", text


def _cold_cache(data: RunData, ctx: SummaryContext, figures: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    rates = figures.get("hit_rate")
    if not isinstance(rates, dict) or rates["ceiling"] <= 0:
        return
    if data.active is not None and rates["ceiling"] <= 1 - rates["miss"]:  # all that could be found was
        return
    if data.warmed is not None and data.warmed.settled:
        return
    cold = []
    for tier in ctx.tiers:
        capacity, written = data.tier_capacity_blocks.get(tier, 0), data.tier_written_blocks.get(tier, 0)
        written += data.warmed.written_blocks[tier] if data.warmed is not None else 0
        if tier != "vram" and 0 < written < capacity < _ENDLESS_BLOCKS:
            cold.append(f"{tier.upper()} filled {digits(written / capacity, 2)} times")
    if cold:
        yield "cold_cache", f"{', '.join(cold)}: hit rates are not those of a warm cache."


def _refused_stores(data: RunData) -> Iterator[tuple[str, str]]:
    if data.refused_stores > _REFUSED * data.finished:
        each = digits(data.refused_stores / max(1, data.finished))
        text = (
            f"DRAM refused {count(data.refused_stores)} batches of blocks ({each} a request): what it holds was in "
            "use or still on its way to SSD, so less is cached than would fit."
        )
        yield "stores_refused", text


def _refused_swaps(data: RunData) -> Iterator[tuple[str, str]]:
    refused = data.swap.get("refused", 0)
    if refused:
        text = (
            f"DRAM had no room for {count(refused)} of {count(refused + data.swap['requests'])} requests that were to "
            "be swapped out: they computed again."
        )
        yield "swaps_refused", text


def _few_requests(window: Window) -> Iterator[tuple[str, str]]:
    requests = len(window.rows)
    if 0 < requests < _FEW:
        beyond = digits(0.05 * requests, 2)
        plural = "s" if requests > 1 else ""
        text = f"Latencies are of {requests} request{plural}: p95 rests on {beyond} of them, p99 on fewer still."
        yield "few_requests", text


def _warm_up(data: RunData, ctx: SummaryContext, window: Window) -> Iterator[tuple[str, str]]:
    if ctx.warm_up != "auto" and ctx.warm_up > 0 and not window.warm_up_s and len(window.rows):
        text = f"The warm-up of {seconds(float(ctx.warm_up))} outlasts the arrivals: nothing was left out."
        yield "warm_up_too_long", text
