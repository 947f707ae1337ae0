"""How ``simkv calibrate`` says what it found: a line a figure, how well it fits, over which range it was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from simkv.cli.table import table
from simkv.profile.schema import AttentionRow, Compute, Fit, LinkFit, Points, Profile, Residual
from simkv.units import short

SCENARIO = "scenarios/calibrated-small.yaml"
_LINKS = {
    "h2d": "host to device", "d2h": "device to host", "h2d_pageable": "host to device, pageable",
    "d2h_pageable": "device to host, pageable", "ssd_read": "SSD read", "ssd_write": "SSD write",
}  # fmt: skip
_LANES = {"h2d": "copies up", "d2h": "copies down", "ssd_read": "SSD reads", "ssd_write": "SSD writes"}
_SHOWN = 5
_FAR = 0.1
"""Share from which on a sample is told to be off the fit."""

Row = tuple[str, str, str, str]
"""Figure, what it is, how far the fit is off, range."""


def render(profile: Profile, written: list[Path]) -> str:
    """Return ``profile`` as text: what was measured, figures, what went wrong, where the files are and their use."""
    parts = [_measured(profile), table(("figure", "is", "off by", "measured over"), list(rows(profile.fit)))]
    others = (_furthest(profile), "\n".join(_notes(profile)), _failed(profile), _files(written))
    return "\n\n".join([*parts, *(text for text in others if text)])


def rows(fit: Fit) -> Iterator[Row]:
    """Yield a row for every figure that ``fit`` has."""
    for name, said in _LINKS.items():
        if (link := getattr(fit, name)) is not None:
            yield said, _transfer(link), _off(link.residual), _range(link)
    if fit.duplex_bytes_per_s is not None:
        yield "both directions at once", short(fit.duplex_bytes_per_s, "rate"), "", ""
    for way, points in (("host to device", fit.h2d_by_buffer), ("device to host", fit.d2h_by_buffer)):
        if points is not None:
            yield f"{way}, large buffers", *_ends(points, "size", "rate")
    yield from _memory(fit)
    if fit.compute is not None:
        yield from _compute(fit.compute)
    yield from _rates(fit)
    yield from _contention(fit)
    if (host := fit.host) is not None:
        is_ = f"{short(host.step_s, 'time')} a step + {short(host.block_s, 'time')} a block"
        yield "host, managing blocks", is_, _off(host.residual), ""


def _transfer(link: LinkFit) -> str:
    rate, setup, piece = short(link.bytes_per_s, "rate"), short(link.setup_s, "time"), short(link.latency_s, "time")
    return f"{rate} + {setup} a transfer + {piece} a piece"


def _range(link: LinkFit) -> str:
    return f"{short(link.smallest_bytes, 'size')} to {short(link.largest_bytes, 'size')} a piece"


def _off(residual: Residual) -> str:
    return f"{residual.median:.1%}, at most {residual.largest:.0%} of {residual.points}" if residual.points else ""


def _memory(fit: Fit) -> Iterator[Row]:
    memory = fit.memory
    if memory.read_bytes_per_s is not None:
        yield "device memory, read", short(memory.read_bytes_per_s, "rate"), "", ""
    if memory.copy_bytes_per_s is not None:
        yield "device memory, copy", f"{short(memory.copy_bytes_per_s, 'rate')} read and written", "", ""
    if memory.dram_copy_bytes_per_s is not None:
        threads = f" by {memory.dram_threads} threads" if memory.dram_threads is not None else ""
        yield "host memory, copy", f"{short(memory.dram_copy_bytes_per_s, 'rate')} read and written{threads}", "", ""
    if memory.far_node_factor is not None:
        yield "to another NUMA node", f"{memory.far_node_factor:.2f} times as long", "", ""


def _compute(compute: Compute) -> Iterator[Row]:
    name = f"{compute.model}, {compute.dtype}"
    yield f"{name}: layer, linear", *_ends(compute.linear, "tokens", "time", " tokens")
    yield "  layer, prefill attention", *_ends(compute.prefill, "tokens", "time", " tokens")
    yield "  layer, decode attention", *_attention(compute.decode)
    if compute.paged is not None:
        yield "  layer, paged attention", *_attention(compute.paged)
    yield "  head", *_ends(compute.head, "tokens", "time", " sequences")
    overheads = f"{short(compute.layer_overhead_s, 'time')} a layer + {short(compute.step_overhead_s, 'time')} a step"
    yield "  overhead", overheads, "", ""
    yield "  whole steps", "put together from these", _off(compute.residual), ""


def _ends(points: Points, x: str, y: str, noun: str = "") -> tuple[str, str, str]:
    """Return what a table of points is at its ends, no residual (it goes through them), and from where to where."""
    (first, least), (last, most) = points[0], points[-1]
    values = [short(value, y) for value in (least, most)]  # type: ignore[arg-type]
    over = [short(value, x) for value in (first, last)]  # type: ignore[arg-type]
    return " to ".join(dict.fromkeys(values)), "", " to ".join(dict.fromkeys(over)) + noun


def _attention(batches: tuple[AttentionRow, ...]) -> tuple[str, str, str]:
    points = sorted(point for row in batches for point in row.context)
    is_, _, over = _ends(tuple(points), "tokens", "time", " tokens of context")
    return is_, "", f"{over}, batch {batches[0].batch} to {batches[-1].batch}"


def _rates(fit: Fit) -> Iterator[Row]:
    if fit.rates is None:
        return
    rates = fit.rates
    for said, rate in (("matrix products", rates.flops_per_s), ("prefill attention", rates.attention_flops_per_s)):
        yield f"best rate of {said}", _flops(rate), "", ""
    yield "weights are read at", short(rates.weight_bytes_per_s, "rate"), "", ""
    yield "KV is read at", short(rates.attention_bytes_per_s, "rate"), "", ""


def _flops(rate: float) -> str:
    scale, unit = next(((s, u) for s, u in ((1e12, "TFLOP/s"), (1e9, "GFLOP/s")) if rate >= s), (1e6, "MFLOP/s"))
    return f"{rate / scale:.3g} {unit}"


def _contention(fit: Fit) -> Iterator[Row]:
    during, slowed = fit.contention.compute_during, fit.contention.during_compute
    for lane, said in _LANES.items():
        parts = [f"computation takes {during[lane]:.2f} times as long" if lane in during else "",
                 f"they {slowed[lane]:.2f} times" if lane in slowed else ""]  # fmt: skip
        if any(parts):
            yield f"{said} beside computation", ", ".join(part for part in parts if part), "", ""
    if fit.contention.after_wait > 1.0:
        yield "computation after a wait", f"takes {fit.contention.after_wait:.2f} times as long", "", ""


def _measured(profile: Profile) -> str:
    outliers = sum(len(sample.outliers) for sample in profile.samples)
    repeats = sum(len(sample.seconds) for sample in profile.samples)
    device, count = profile.device, len(profile.samples)
    what = f"{profile.name}: {device.name} ({device.kind}), {count:,} samples"
    return f"{what} of {repeats:,} repeats; {outliers:,} repeats are outliers (kept; medians are little moved by them)."


def _furthest(profile: Profile) -> str:
    """Return the samples that the fit is furthest from; nothing where it is near all of them."""
    from simkv.calibrate.fit import residual_rows

    found = [(row, row["residual"]) for row in residual_rows(profile.samples, profile.fit)]
    off = sorted(((row, share) for row, share in found if share is not None), key=lambda one: -abs(one[1]))
    cells = [
        (row["kind"], _at(row["at"]), short(row["measured_s"], "time"), f"{share:+.0%}", f"{row['spread']:.0%}")
        for row, share in off[:_SHOWN]
        if abs(share) >= _FAR
    ]
    return table(("furthest from the fit", "at", "measured", "fit", "spread"), cells, right=(2, 3, 4)) if cells else ""


def _at(settings: Mapping[str, float | int | str | bool]) -> str:
    return " ".join(f"{key}={value}" for key, value in settings.items())


def _notes(profile: Profile) -> Iterator[str]:
    """Yield what is odd about the figures."""
    from simkv.calibrate.fit import inversions

    for name, said in _LINKS.items():
        if (link := getattr(profile.fit, name)) is not None and link.note:
            yield f"note: {said}: {link.note}"
    yield from (f"note: {note}" for note in profile.fit.notes)
    if inverted := inversions(profile.samples):
        fewer, more = inverted[0]
        example = (
            f"{fewer.kind}, {short(float(fewer.at['bytes']), 'size')} and {short(float(more.at['bytes']), 'size')}"
        )
        yield f"note: {len(inverted)} times more bytes were faster than fewer, beyond noise ({example})"


def _failed(profile: Profile) -> str:
    failed = profile.environment.get("failed", [])
    if not failed:
        return ""
    lines = [f"Not measured, {len(failed)} that failed:"]
    lines += [f"  {one['key']}: {one['reason']}" for one in failed[:_SHOWN]]
    return "\n".join(lines + ([f"  and {len(failed) - _SHOWN} more"] if len(failed) > _SHOWN else []))


def _files(written: list[Path]) -> str:
    use = f"Use        simkv run {SCENARIO} --set hardware={written[0]}"
    return f"Files      {', '.join(str(path) for path in written)}\n{use}"
