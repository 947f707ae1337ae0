"""All figures of a profile from its samples."""

from __future__ import annotations

from collections.abc import Sequence

from simkv.calibrate.fit.compute import fit_compute
from simkv.calibrate.fit.contention import fit_contention
from simkv.calibrate.fit.host import fit_host
from simkv.calibrate.fit.links import by_buffer, duplex_bytes_per_s, fit_links
from simkv.calibrate.fit.memory import fit_memory
from simkv.calibrate.fit.rates import fit_rates
from simkv.formulas.kv_size import layer_bytes_per_token
from simkv.model import ModelShape
from simkv.profile.schema import Fit, Sample


def fit_profile(samples: Sequence[Sample], model: ModelShape | None, dtype: str) -> Fit:
    """Return whatever there are samples for; the rest is None.

    ``model``: whose shapes were computed, None where none were; ``dtype``: what they were computed in.
    """
    memory, notes = fit_memory(samples)
    contention, of_contention = fit_contention(samples)
    host, of_host = fit_host(samples)
    compute, of_compute = fit_compute(samples, model, dtype) if model and model.attention else (None, [])
    return Fit(
        **fit_links(samples, _piece_bytes(samples, model, dtype)),
        duplex_bytes_per_s=duplex_bytes_per_s(samples),
        h2d_by_buffer=by_buffer(samples, "h2d_buffer"),
        d2h_by_buffer=by_buffer(samples, "d2h_buffer"),
        memory=memory, compute=compute, rates=fit_rates(compute, model) if compute and model else None,
        contention=contention, host=host, notes=(*of_compute, *notes, *of_contention, *of_host),
    )  # fmt: skip


def _piece_bytes(samples: Sequence[Sample], model: ModelShape | None, dtype: str) -> float | None:
    """Return the bytes of the (block, layer) pieces that were computed with; None where none were."""
    tokens = next((sample.at["block_tokens"] for sample in samples if "block_tokens" in sample.at), None)
    if tokens is None or model is None or not model.attention:
        return None
    return float(tokens) * layer_bytes_per_token(model.attention[0], dtype, 1)
