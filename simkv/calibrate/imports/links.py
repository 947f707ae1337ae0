"""From copies that tools measured to the figures of the link between host and device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import Any

from simkv.calibrate.imports.curve import COPIES, link_of
from simkv.calibrate.imports.imported import ENGINES, Copy
from simkv.profile.schema import LinkFit, Sample
from simkv.units import short

LARGE_BUFFER = 1 << 30
"""Copies of more show how bandwidth falls with the buffer, not what the link carries."""
SMALLEST_BUFFER = 64 << 20
FAR = 1.1
"""How many times slower a NUMA node must be to be told."""
LINKS: dict[str, tuple[str, str]] = {
    "h2d": ("h2d", "pinned"),
    "d2h": ("d2h", "pinned"),
    "h2d_pageable": ("h2d", "pageable"),
    "d2h_pageable": ("d2h", "pageable"),
}
"""Figure to kind and memory of its copies."""


def link_figures(copies: Sequence[Copy], tool: str) -> dict[str, Any]:
    """Return the figures of a :class:`~simkv.profile.schema.Fit` that ``copies`` tell."""
    found: dict[str, Any] = {}
    for name, (kind, memory) in LINKS.items():
        chosen = preferred(c for c in copies if _plain(c) and c.kind == kind and c.memory == memory)
        if chosen:
            found[name] = _link(chosen, tool)
    for name, kind in (("h2d_by_buffer", "h2d"), ("d2h_by_buffer", "d2h")):
        points = _by_buffer([c for c in copies if _plain(c) and c.kind == kind and c.memory == "pinned"])
        if points:
            found[name] = points
    if (both := duplex(copies)) is not None:
        found["duplex_bytes_per_s"] = both
    local = preferred(c for c in copies if c.kind == "device_copy")
    if local:
        found["memory"] = {"copy_bytes_per_s": 2 * _rate(_largest(local))}
    return found


def preferred(copies: Iterable[Copy]) -> list[Copy]:
    """Return those by copy engines, else those by kernels."""
    given = list(copies)
    engine = next((e for e in ENGINES if any(c.engine == e for c in given)), None)
    return [c for c in given if c.engine == engine]


def duplex(copies: Sequence[Copy]) -> float | None:
    """Return both directions together (B/s).

    Printed as such, or the sum of the two directions measured while the other was busy; half of it tells nothing.
    """
    for engine in ENGINES:
        mine = [c for c in copies if c.engine == engine and c.memory == "pinned" and not c.all_gpus]
        up, down = ([c for c in mine if c.kind == kind and c.during] for kind in ("h2d", "d2h"))
        if up and down:
            return _rate(_smallest(up)) + _rate(_smallest(down))
        if together := [c for c in mine if c.kind == "duplex"]:
            return _rate(_smallest(together))
    return None


def alternatives(copies: Sequence[Copy]) -> dict[str, float]:
    """Return every bandwidth (B/s, middle of the GPUs) by what it is of, those that became a figure too."""
    groups = _grouped(copies, lambda c: (c.kind, c.during, c.all_gpus, c.memory, c.engine, c.buffer_bytes))
    return {_called(mine[0]): _rate(mine) for mine in groups.values()}


def copy_samples(copies: Sequence[Copy], tool: str) -> Iterator[Sample]:
    """Yield a sample a copy: seconds of one of the tool's buffer size.

    Those of all GPUs at once are left out: no kind of sample means that.
    """
    for c in copies:
        if _plain(c) or c.kind in ("duplex", "device_copy"):
            both = 2 if c.kind == "duplex" else 1
            yield _sample(c.kind, c, tool, both * c.buffer_bytes / c.bytes_per_s)
    waiting = {_place(c): c for c in copies if c.during and c.kind == "d2h" and not c.all_gpus}
    for c in copies:
        other = waiting.get(_place(c)) if c.during and c.kind == "h2d" and not c.all_gpus else None
        if other is not None:
            yield _sample("duplex", c, tool, 2 * c.buffer_bytes / (c.bytes_per_s + other.bytes_per_s))


def remarks(copies: Sequence[Copy]) -> Iterator[str]:
    """Yield what no figure says: the uplink that GPUs share, a far NUMA node, half of a duplex measurement."""
    groups = _grouped([c for c in copies if c.all_gpus], lambda c: (c.test, c.buffer_bytes))
    for mine in groups.values():
        total = sum(c.bytes_per_s for c in mine)
        each = f"{short(total, 'rate')} together, {short(_rate(mine), 'rate')} each"
        if len(mine) > 1:
            yield f"{mine[0].test}: all {len(mine)} GPUs at once share {each}"
    for kind in ("h2d", "d2h"):
        yield from _far(kind, preferred(c for c in copies if c.kind == kind and _plain(c) and c.node is not None))
        during = [c for c in copies if c.kind == kind and c.during and not c.all_gpus]
        if during and duplex(copies) is None:
            yield f"{during[0].test} is one direction of two: without the other's row there is no duplex figure"


def _plain(c: Copy) -> bool:
    return not c.during and not c.all_gpus


def _place(c: Copy) -> tuple[str, str, int, int, int | None]:
    return c.engine, c.memory, c.buffer_bytes, c.gpu, c.node


def _sample(kind: str, c: Copy, tool: str, seconds: float) -> Sample:
    at: dict[str, float | int | str | bool] = {
        "bytes": c.buffer_bytes, "pieces": 1, "memory": c.memory, "tool": tool, "engine": c.engine, "gpu": c.gpu,
    }  # fmt: skip
    if c.kind == "device_copy":
        del at["pieces"], at["memory"]
    if c.node is not None:
        at["node"] = c.node
    return Sample(kind=kind, at=at, seconds=(seconds,))


def _grouped(copies: Iterable[Copy], key: Callable[[Copy], Any]) -> dict[Any, list[Copy]]:
    groups: dict[Any, list[Copy]] = {}
    for c in copies:
        groups.setdefault(key(c), []).append(c)
    return groups


def _smallest(copies: Sequence[Copy]) -> list[Copy]:
    size = min(c.buffer_bytes for c in copies)
    return [c for c in copies if c.buffer_bytes == size]


def _largest(copies: Sequence[Copy]) -> list[Copy]:
    size = max(c.buffer_bytes for c in copies)
    return [c for c in copies if c.buffer_bytes == size]


def _rates(copies: Sequence[Copy]) -> list[float]:
    """Return one bandwidth a GPU from its nearest NUMA node, where nodes are told; else all of them."""
    if any(c.node is None for c in copies):
        return [c.bytes_per_s for c in copies]
    return [max(c.bytes_per_s for c in mine) for mine in _grouped(copies, lambda c: c.gpu).values()]


def _rate(copies: Sequence[Copy]) -> float:
    return median(_rates(copies))


def _points(copies: Sequence[Copy]) -> list[tuple[float, float]]:
    groups = _grouped(copies, lambda c: c.buffer_bytes)
    return [(float(size), _rate(groups[size])) for size in sorted(groups)]


def _link(copies: Sequence[Copy], tool: str) -> LinkFit:
    points = _points(copies)
    near = [point for point in points if point[0] <= LARGE_BUFFER] or points[:1]
    sizes = short(near[0][0], "size") + (f" to {short(near[-1][0], 'size')}" if len(near) > 1 else "")
    note = f"{tool}, {ENGINES[copies[0].engine]}, buffers of {sizes}{_spread(copies, near[-1][0])}"
    return link_of(near, COPIES, note)


def _spread(copies: Sequence[Copy], size: float) -> str:
    mine = [c for c in copies if c.buffer_bytes == size]
    rates = _rates(mine)
    if len(rates) < 2:
        return ""
    of = "GPUs" if len(rates) == len({c.gpu for c in mine}) else "values"
    return f", median of {len(rates)} {of} ({short(min(rates), 'rate')} to {short(max(rates), 'rate')})"


def _by_buffer(copies: Sequence[Copy]) -> tuple[tuple[float, float], ...] | None:
    """Return bandwidth over the buffer, of the engine that was measured with several; None where none was."""
    for engine in ENGINES:
        points = _points([c for c in copies if c.engine == engine and c.buffer_bytes >= SMALLEST_BUFFER])
        if len(points) > 1 and points[-1][0] > LARGE_BUFFER:
            return tuple(points)
    return None


def _far(kind: str, copies: Sequence[Copy]) -> Iterator[str]:
    if not copies:
        return
    ratios = [max(rates) / min(rates) for rates in ([c.bytes_per_s for c in mine] for mine in
              _grouped(copies, lambda c: (c.gpu, c.buffer_bytes)).values())]  # fmt: skip
    if median(ratios) >= FAR:
        yield f"{kind}: memory of the far NUMA node is {median(ratios):.2f} times slower; the near one's figure is used"


def _called(c: Copy) -> str:
    how = ["all GPUs at once"] if c.all_gpus else []
    how += ["while the other direction is busy"] if c.during else []
    how += [c.memory] if c.memory == "pageable" else []
    return ", ".join([f"{c.kind} by {ENGINES[c.engine]}", short(c.buffer_bytes, "size"), *how])
