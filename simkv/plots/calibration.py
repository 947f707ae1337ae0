"""What was measured of a machine beside what was fitted: markers are samples, bars their quartiles, lines the fit."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from simkv.errors import InputError, Problem
from simkv.files import replace_bytes
from simkv.formulas.transfer import transfer_s
from simkv.plots.style import FAINT, FORMATS, INK, MARKERS, PALETTE, panels
from simkv.profile.schema import AttentionRow, Compute, LinkFit, Profile
from simkv.units import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row: TypeAlias = Mapping[str, Any]
"""A sample beside the fit: ``kind at measured_s fitted_s residual low_s high_s``, as ``--json`` has it."""
Panel: TypeAlias = Callable[["Axes"], None]
Height: TypeAlias = Callable[[float, float, float], float]
"""What is drawn of a transfer, from bytes of a piece, pieces and seconds."""

_COPIES = {"h2d": ("H2D", PALETTE[0]), "d2h": ("D2H", PALETTE[1])}
_DRIVE = {"ssd_read": ("reads", PALETTE[2]), "ssd_write": ("writes", PALETTE[3])}
_LINES = ("-", "--")
_STEPS_A_LINE = 120
_TITLE_SIZE = 10.0
_TELLS_S = 1e-9
"""Less than this of a latency isn't told."""


def draw(profile: Profile, rows: Sequence[Row], path: Path) -> None:
    """Write the figure of ``profile`` to ``path`` (.png or .svg); ``rows``: its samples beside its fit.

    Raises :class:`InputError` where nothing of it can be drawn, or for another ending.
    """
    form = path.suffix.lower()[1:]
    if form not in FORMATS:
        mend = f"end it in {' or '.join('.' + known for known in FORMATS)}"
        raise InputError(Problem("is no kind of picture that is drawn", mend, path="--plot", value=str(path)))
    page = io.BytesIO()
    calibration(profile, rows, page, form)
    replace_bytes(path, page.getvalue())


def calibration(profile: Profile, rows: Sequence[Row], file: BinaryIO, form: str) -> None:
    """Draw ``profile`` into ``file`` as ``form`` (png or svg): a panel for whatever was measured and fitted.

    Raises :class:`InputError` where that is nothing.
    """
    found = [panel for panel in _panels(profile, rows) if panel is not None]
    if not found:
        what = f"{profile.name} has no copies, requests or times of a model that could be drawn"
        raise InputError(Problem(what, "measure them with simkv calibrate"))
    with panels(f"{profile.name}: {profile.device.name}", file, form, len(found)) as all_axes:
        for axes, panel in zip(all_axes, found, strict=True):
            panel(axes)


def _panels(profile: Profile, rows: Sequence[Row]) -> Iterable[Panel | None]:
    fit = profile.fit
    copies = {kind: link for kind, link in (("h2d", fit.h2d), ("d2h", fit.d2h)) if link}
    drive = {kind: link for kind, link in (("ssd_read", fit.ssd_read), ("ssd_write", fit.ssd_write)) if link}
    yield (lambda axes: _copy_times(axes, copies, rows)) if copies else None
    yield (lambda axes: _copy_rates(axes, copies, rows)) if copies else None
    yield (lambda axes: _drive(axes, drive, rows)) if drive else None
    if (compute := fit.compute) is not None:
        yield lambda axes: _tokens(axes, profile, compute, rows)
        yield lambda axes: _attention(axes, profile, compute, rows)
        yield (lambda axes: _steps(axes, compute, rows)) if compute.residual.points else None


def _copy_times(axes: Axes, links: Mapping[str, LinkFit], rows: Sequence[Row]) -> None:
    _copy_lines(axes, links, rows, lambda size, pieces, seconds: 1e6 * seconds / pieces)
    axes.set_yscale("log")
    axes.set_ylabel("Time of one piece (µs)")
    _title(axes, *(_link_title(_COPIES[kind][0], link) for kind, link in links.items()))
    _legend(axes)


def _copy_rates(axes: Axes, links: Mapping[str, LinkFit], rows: Sequence[Row]) -> None:
    _copy_lines(axes, links, rows, _gb_per_s)
    axes.set_ylabel("Bandwidth (GB/s)")
    axes.set_ylim(bottom=0)
    _title(axes, *(_half_title(_COPIES[kind][0], link) for kind, link in links.items()))
    _legend(axes)


def _copy_lines(axes: Axes, links: Mapping[str, LinkFit], rows: Sequence[Row], y: Height) -> None:
    """Draw transfers of the fewest and of the most pieces in each direction."""
    for kind, link in links.items():
        name, colour = _COPIES[kind]
        told = _of_link(rows, kind)
        counts = sorted({_pieces(row) for row in told}) or [1.0]
        for k, pieces in enumerate(dict.fromkeys((counts[0], counts[-1]))):
            label = f"{name}, {pieces:g} {'piece' if pieces == 1 else 'pieces'}"
            some = [row for row in told if _pieces(row) == pieces]
            _transfers(axes, link, some, pieces, y, colour, k, label)
    _over_sizes(axes, "Size of one piece")


def _drive(axes: Axes, links: Mapping[str, LinkFit], rows: Sequence[Row]) -> None:
    for kind, link in links.items():
        name, colour = _DRIVE[kind]
        told = _of_link(rows, kind)
        pieces = max((_pieces(row) for row in told), default=1.0)
        some = _of_most_pieces(told)
        _transfers(axes, link, some, pieces, _gb_per_s, colour, 0, _depth_label(name, some))
        others = [row for row in rows if row["kind"] == kind and row["fitted_s"] is None]
        deepest = max((row["at"].get("depth", 1) for row in others), default=1)
        deep = _of_most_pieces([row for row in others if row["at"].get("depth", 1) == deepest])
        _markers(axes, deep, "bytes", _over(_gb_per_s), colour, 1, f"{_depth_label(name, deep)} (not fitted)", False)
    _over_sizes(axes, "Size of one request")
    axes.set_ylabel("Bandwidth (GB/s)")
    axes.set_ylim(bottom=0)
    _title(axes, *(_link_title(f"SSD {_DRIVE[kind][0]}", link) for kind, link in links.items()))
    _legend(axes)


def _transfers(
    axes: Axes, link: LinkFit, some: Sequence[Row], pieces: float, y: Height, colour: str, number: int, label: str
) -> None:
    """Draw ``some`` samples of transfers of ``pieces``, and what the fit says of those."""
    _markers(axes, some, "bytes", _over(y), colour, number, label)
    ratio = link.largest_bytes / link.smallest_bytes
    sizes = [float(link.smallest_bytes * ratio ** (k / _STEPS_A_LINE)) for k in range(_STEPS_A_LINE + 1)]
    heights = [y(size, pieces, _link_s(link, size, pieces)) for size in sizes]
    axes.plot(sizes, heights, color=colour, linestyle=_LINES[number], label="" if some else label)


def _tokens(axes: Axes, profile: Profile, compute: Compute, rows: Sequence[Row]) -> None:
    tables = (("linear", "linear, a layer", compute.linear), ("prefill_attention", "prefill attention, a layer",
              compute.prefill), ("head", "head, a step", compute.head))  # fmt: skip
    for k, (kind, label, points) in enumerate(tables):
        some = [row for row in rows if row["kind"] == kind]
        _markers(axes, some, "tokens", _layer_ms, PALETTE[k], k, label)
        axes.plot([x for x, _ in points], [1e3 * y for _, y in points], color=PALETTE[k])
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("Tokens")
    axes.set_ylabel("Time (ms)")
    rates = profile.fit.rates
    best = () if rates is None else (f"and reach {rates.flops_per_s / 1e12:.3g} TFLOP/s ({compute.dtype})",)
    fewest, least_s = compute.linear[0]
    _title(
        axes,
        f"A layer's matrix products take {_time(least_s)} for {fewest:g} {'token' if fewest == 1 else 'tokens'}",
        *best,
    )
    _legend(axes)


def _attention(axes: Axes, profile: Profile, compute: Compute, rows: Sequence[Row]) -> None:
    kinds = (("decode_attention", "in one piece", compute.decode), ("paged_attention", "in blocks", compute.paged))
    for k, (kind, label, table) in enumerate(kinds):
        some = [row for row in rows if row["kind"] == kind and row["fitted_s"] is not None]
        _markers(axes, some, lambda at: at["batch"] * at["context"], _layer_ms, PALETTE[k], k, f"KV {label}")
        for row in table or ():
            axes.plot([x for x, _ in row.context], [1e3 * y for _, y in row.context], color=PALETTE[k], linewidth=1.0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("Tokens of context, all sequences (a line a batch size)")
    axes.set_ylabel("Decode attention of a layer (ms)")
    rates, slower = profile.fit.rates, _paged_over_decode(compute.decode, compute.paged or ())
    read = "" if rates is None else f" reads KV at {short(rates.attention_bytes_per_s, 'rate')}"
    _title(axes, f"Attention{read}", *(() if slower is None else (f"and takes {slower:.2f} times as long in blocks",)))
    _legend(axes)


def _steps(axes: Axes, compute: Compute, rows: Sequence[Row]) -> None:
    some = [row for row in rows if row["kind"] == "step" and row["fitted_s"] is not None]
    for k, batch in enumerate(sorted({row["at"]["batch"] for row in some})):
        of_batch = [row for row in some if row["at"]["batch"] == batch]
        measured = [1e3 * row["measured_s"] for row in of_batch]
        below = [1e3 * (row["measured_s"] - row["low_s"]) for row in of_batch]
        above = [1e3 * (row["high_s"] - row["measured_s"]) for row in of_batch]
        axes.errorbar(
            measured, [1e3 * row["fitted_s"] for row in of_batch], xerr=[below, above], linestyle="",
            marker=MARKERS[k % len(MARKERS)], color=PALETTE[k % len(PALETTE)], ecolor=FAINT, elinewidth=1.2, capsize=2,
            label=f"batch {batch:g}",
        )  # fmt: skip
    ends = [1e3 * pick(row[key] for row in some for key in ("measured_s", "fitted_s")) for pick in (min, max)]
    axes.plot(ends, ends, color=INK, linewidth=1.0, linestyle="--", label="equal")
    axes.set_xlabel("Whole decode step, measured (ms)")
    axes.set_ylabel("Put together from its parts (ms)")
    residual = compute.residual
    _title(
        axes,
        f"Steps: {_time(compute.step_overhead_s)} beyond their parts,",
        f"residual {residual.median:.1%} (largest {residual.largest:.1%})",
    )
    _legend(axes)


def _of_link(rows: Sequence[Row], kind: str) -> list[Row]:
    """Return the rows that a link's line was made of: of pinned memory, where there are any."""
    told = [row for row in rows if row["kind"] == kind and row["fitted_s"] is not None]
    return [row for row in told if row["at"].get("memory") != "pageable"] or told


def _of_most_pieces(rows: Sequence[Row]) -> list[Row]:
    """Return, for each size, the transfer of most pieces."""
    return list({row["at"]["bytes"]: row for row in sorted(rows, key=_pieces)}.values())


def _depth_label(name: str, rows: Sequence[Row]) -> str:
    return f"{name}, {rows[0]['at'].get('depth', 1):g} at a time" if rows else name


def _markers(
    axes: Axes, rows: Sequence[Row], x: str | Callable[[Mapping[str, Any]], float],
    y: Callable[[Row, float], float], colour: str, number: int, label: str, filled: bool = True,
) -> None:  # fmt: skip
    """Draw samples at their medians, with bars from one quartile to the other."""
    if not rows:
        return
    where = [float(x(row["at"]) if callable(x) else row["at"][x]) for row in rows]
    middle = [y(row, row["measured_s"]) for row in rows]
    ends = [sorted((y(row, row["low_s"]), y(row, row["high_s"]))) for row in rows]
    below = [max(0.0, m - low) for m, (low, _) in zip(middle, ends, strict=True)]
    above = [max(0.0, high - m) for m, (_, high) in zip(middle, ends, strict=True)]
    axes.errorbar(
        where, middle, yerr=[below, above], linestyle="", marker=MARKERS[number % len(MARKERS)], color=colour,
        label=label, fillstyle="full" if filled else "none", ecolor=FAINT, elinewidth=1.2, capsize=2,
    )  # fmt: skip


def _over(y: Height) -> Callable[[Row, float], float]:
    """Return ``y`` of the transfer that a row is."""
    return lambda row, seconds: y(float(row["at"]["bytes"]), _pieces(row), seconds)


def _gb_per_s(size: float, pieces: float, seconds: float) -> float:
    return size * pieces / seconds / 1e9


def _layer_ms(row: Row, seconds: float) -> float:
    return 1e3 * seconds / float(row["at"].get("layers", 1))


def _pieces(row: Row) -> float:
    return float(row["at"].get("pieces", 1))


def _link_s(link: LinkFit, size: float, pieces: float) -> float:
    return link.setup_s + transfer_s(pieces * size, link.bytes_per_s, pieces, link.latency_s)


def _over_sizes(axes: Axes, label: str) -> None:
    axes.set_xscale("log", base=4)
    axes.xaxis.set_major_formatter(lambda value, _: _size(value))
    axes.set_xlabel(label)


def _size(value: float) -> str:
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value >= 2**power:
            return f"{value / 2**power:.3g} {unit}"
    return f"{value:.3g} B"


def _time(seconds: float) -> str:
    return short(seconds, "time")


def _legend(axes: Axes) -> None:
    """Add one where something has a label."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend()


def _title(axes: Axes, *lines: str) -> None:
    axes.set_title("\n".join(lines), fontsize=_TITLE_SIZE)


def _link_title(name: str, link: LinkFit) -> str:
    parts = [short(link.bytes_per_s, "rate")]
    parts += [f"{_time(link.latency_s)} a piece"] if link.latency_s >= _TELLS_S else []
    parts += [f"{_time(link.setup_s)} once"] if link.setup_s >= _TELLS_S else []
    return f"{name}: {' + '.join(parts)}, residual {link.residual.median:.1%}"


def _half_title(name: str, link: LinkFit) -> str:
    """Say from which size on many pieces see half of the bandwidth: there latency and bytes take the same."""
    half = link.latency_s * link.bytes_per_s
    if half < link.smallest_bytes:
        return f"{name}: pieces of all sizes see most of the bandwidth"
    return f"{name}: half the bandwidth from {_size(half)} a piece on"


def _paged_over_decode(decode: Sequence[AttentionRow], paged: Sequence[AttentionRow]) -> float | None:
    """Return how many times longer attention through blocks takes, the middle of the points that both have."""
    straight = {(row.batch, tokens): seconds for row in decode for tokens, seconds in row.context}
    both = [
        seconds / straight[row.batch, tokens]
        for row in paged
        for tokens, seconds in row.context
        if (row.batch, tokens) in straight
    ]
    return median(both) if both else None
