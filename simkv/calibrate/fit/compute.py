"""What computing one model takes: tables of medians as measured, and the overhead of whole steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from simkv.calibrate.fit.points import Pairs, Point, interpolate, points_of, residual_of, table
from simkv.calibrate.fit.robust import nonnegative_fit
from simkv.formulas.interpolated import InterpolatedStep, Table
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
    fitted, more = _with_overhead(bare, points_of(samples, "step"))
    return fitted, notes + more


def whole_step(compute: Compute) -> InterpolatedStep:
    """Return step times as the simulator puts them together, with attention through a block table where measured.

    What is beyond the range goes on in proportion: there it isn't compared with anything.
    """
    return InterpolatedStep(
        layers=compute.shape["layers"], linear=Table(compute.linear, float), head=Table(compute.head, float),
        decode=compute.paged or compute.decode, prefill=compute.prefill,
        layer_overhead_s=compute.layer_overhead_s, step_overhead_s=compute.step_overhead_s,
    )  # fmt: skip


def step_s(compute: Compute, step: Point) -> float | None:
    """Seconds of the whole decode step ``step``; None where one of its parts wasn't measured that far."""
    whole, batch = whole_step(compute), int(step.number("batch"))
    seconds, _, _ = whole.decode(batch, batch * int(step.number("context")))
    return None if whole.outside() else seconds


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


def _per_layer(samples: Sequence[Sample], kind: str, key: str) -> Pairs:
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


def _with_overhead(bare: Compute, steps: Sequence[Point]) -> tuple[Compute, list[str]]:
    """Return ``bare`` with what whole ``steps`` take beyond the sum of their parts, and how well all that fits.

    All of it counts as the step's, nothing as a layer's: steps of one model can't tell these apart.
    """
    known = [(step, parts_s) for step in steps if (parts_s := step_s(bare, step)) is not None]
    if not known:
        return bare, ["overheads are taken to be 0: no whole step was measured in the range of its parts"]
    seconds, parts = np.array([step.seconds for step, _ in known]), np.array([parts_s for _, parts_s in known])
    overhead_s = float(nonnegative_fit(np.ones((len(known), 1)), seconds, given=parts)[0])
    notes = []
    share = float(np.median(parts / seconds))
    if share > 1.0 + _FALLS:
        notes.append(f"parts timed by themselves take {share - 1:.0%} longer than whole steps")
    if len(known) < len(steps):
        notes.append(f"{len(steps) - len(known)} whole steps are outside the range of their parts, and left out")
    residual = residual_of(parts + overhead_s, seconds)
    return bare.model_copy(update={"step_overhead_s": overhead_s, "residual": residual}), notes
