"""What computing one model takes: tables of medians as measured, and the overhead that whole steps have beyond them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from simkv.calibrate.fit.points import Point, Table, interpolate, points_of, residual_of, table
from simkv.calibrate.fit.robust import Array, nonnegative_fit, separable
from simkv.model import ModelShape
from simkv.profile.schema import AttentionRow, Compute, Residual, Sample

_FALLS = 0.02
"""Share by which more work must be faster to be remarked on."""
_NAMED = 3
"""Most such places that a remark lists."""


def model_shape(model: ModelShape) -> dict[str, int]:
    """Return what a profile says of the model's shape."""
    kind = model.attention[0]
    return {
        "layers": model.layers, "hidden": model.hidden, "heads": kind.heads, "kv_heads": kind.kv_heads,
        "head_dim": kind.head_dim, "intermediate": model.intermediate, "vocab": model.vocab,
    }  # fmt: skip


def fit_compute(samples: Sequence[Sample], model: ModelShape, dtype: str) -> tuple[Compute | None, list[str]]:
    """Return the tables and overheads of ``model``, None where a part wasn't measured at all, and remarks."""
    parts = {
        "linear": _per_layer(samples, "linear", "tokens"),
        "head": table((p.number("tokens"), p.seconds) for p in points_of(samples, "head")),
        "prefill": _per_layer(samples, "prefill_attention", "tokens"),
    }
    decode, paged = (_rows(points) for points in (points_of(samples, "decode_attention"), paged_points(samples)))
    missing = [name for name, found in [*parts.items(), ("decode", decode)] if not found]
    if missing:
        nothing = len(missing) == len(parts) + 1
        return None, [] if nothing else [f"no times of the model: {' and '.join(missing)} not measured"]
    notes = [note for name, found in parts.items() for note in _falls(name, found)]
    for name, rows in (("decode attention", decode), ("paged attention", paged)):
        notes += [note for row in rows for note in _falls(f"{name} of batch {row.batch}", row.context)]
    nothing_yet = Residual(points=0, median=0.0, largest=0.0)
    bare = Compute.model_validate({
        "model": model.name, "shape": model_shape(model), "dtype": dtype, **parts, "decode": decode,
        "paged": paged or None, "layer_overhead_s": 0.0, "step_overhead_s": 0.0, "residual": nothing_yet,
    })  # fmt: skip
    fitted, more = _with_overheads(bare, points_of(samples, "step"))
    return fitted, notes + more


def step_s(compute: Compute, batch: float, context: float, layers: float | None = None) -> float:
    """Seconds of a whole decode step of ``batch`` sequences of ``context`` tokens each; ``layers``: None, the model's.

    Attention is that through a block table, where it was measured.
    """
    rows = compute.paged or compute.decode
    layer = interpolate(compute.linear, batch) + attention_s(rows, batch, context) + compute.layer_overhead_s
    count = compute.shape["layers"] if layers is None else layers
    return compute.step_overhead_s + count * layer + interpolate(compute.head, batch)


def attention_s(rows: Sequence[AttentionRow], batch: float, context: float) -> float:
    """Seconds of one layer's attention; between batches on a straight line at the same length of a sequence."""
    times = [(float(row.batch), interpolate(row.context, row.batch * context)) for row in rows]
    return interpolate(times, batch)


def paged_points(samples: Iterable[Sample]) -> list[Point]:
    """Return the points of attention through a block table whose blocks are as large as those of whole steps.

    Without whole steps, as large as in most of them.
    """
    kept = [s for s in samples if s.kind in ("paged_attention", "step")]
    points = points_of(kept, "paged_attention")
    sizes = Counter(p.number("block_tokens") for p in points_of(kept, "step") or points)
    if not sizes:
        return points
    most = max(sizes, key=lambda size: (sizes[size], -size))
    return [p for p in points if p.number("block_tokens") == most]


def _per_layer(samples: Sequence[Sample], kind: str, key: str) -> Table:
    return table((p.number(key), p.seconds / p.number("layers")) for p in points_of(samples, kind))


def _rows(points: Sequence[Point]) -> tuple[AttentionRow, ...]:
    """Return a table over all sequences' context for every batch size."""
    batches = sorted({int(point.number("batch")) for point in points})
    return tuple(AttentionRow(batch=batch, context=table(
        (batch * p.number("context"), p.seconds / p.number("layers")) for p in points if p.number("batch") == batch
    )) for batch in batches)  # fmt: skip


def _falls(name: str, found: Sequence[tuple[float, float]]) -> list[str]:
    """Say where more work took less time; the table keeps it as measured."""
    falls = [
        f"{x1:g} tokens {1 - y1 / y0:.0%} faster than {x0:g}"
        for (x0, y0), (x1, y1) in pairwise(found)
        if y1 < (1 - _FALLS) * y0
    ]
    more = f" and {len(falls) - _NAMED} more" if len(falls) > _NAMED else ""
    return [f"{name}: {', '.join(falls[:_NAMED])}{more}"] if falls else []


def _with_overheads(bare: Compute, steps: Sequence[Point]) -> tuple[Compute, list[str]]:
    """Return ``bare`` with what whole ``steps`` take beyond the sum of their parts, and how well all that fits."""
    known = [step for step in steps if _in_range(bare, step)]
    if not known:
        return bare, ["no whole step was measured: overheads are taken to be 0"]
    layers = np.array([step.number("layers", bare.shape["layers"]) for step in known])
    parts, seconds = _put_together(bare, known), np.array([step.seconds for step in known])
    terms = np.column_stack([np.ones_like(layers), layers])
    if separable(terms):
        step_overhead_s, layer_overhead_s = nonnegative_fit(terms, seconds, given=parts)
    else:
        step_overhead_s, layer_overhead_s = nonnegative_fit(terms[:, :1], seconds, given=parts)[0], 0.0
    whole = bare.model_copy(update={
        "step_overhead_s": float(step_overhead_s), "layer_overhead_s": float(layer_overhead_s),
    })  # fmt: skip
    residual = residual_of(_put_together(whole, known), seconds)
    share = float(np.median(parts / seconds))
    notes = [f"parts take {share - 1:.0%} longer than whole steps, by themselves"] if share > 1.0 + _FALLS else []
    if len(known) < len(steps):
        notes.append(f"{len(steps) - len(known)} whole steps are outside the range of their parts, and left out")
    return whole.model_copy(update={"residual": residual}), notes


def _put_together(compute: Compute, steps: Sequence[Point]) -> Array:
    return np.array([
        step_s(compute, s.number("batch"), s.number("context"), s.number("layers", compute.shape["layers"]))
        for s in steps
    ])  # fmt: skip


def _in_range(compute: Compute, step: Point) -> bool:
    """Say whether every part of a step is within what was measured of it."""
    batch, context = step.number("batch"), step.number("context")
    rows = compute.paged or compute.decode
    around = [row for row in rows if row.batch <= batch][-1:] + [row for row in rows if row.batch >= batch][:1]
    lengths = [(row.context[0][0] / row.batch, row.context[-1][0] / row.batch) for row in around]
    return (
        all(points[0][0] <= batch <= points[-1][0] for points in (compute.linear, compute.head))
        and rows[0].batch <= batch <= rows[-1].batch
        and all(low <= context <= high for low, high in lengths)
    )
