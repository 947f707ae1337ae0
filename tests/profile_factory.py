"""Calibration profiles for tests: a small CPU machine on which SmolLM2-135M was measured, in round numbers."""

from __future__ import annotations

from typing import Any

from simkv.profile.schema import (
    AttentionRow,
    Compute,
    Contention,
    Device,
    Fit,
    Host,
    LinkFit,
    Memory,
    Profile,
    Rates,
    Residual,
    Sample,
)

GIB = 1 << 30
EXACT = Residual(points=8, median=0.01, largest=0.03)
SMOLLM = {
    "layers": 30, "hidden": 576, "heads": 9, "kv_heads": 3, "head_dim": 64, "intermediate": 1536, "vocab": 49152,
}  # fmt: skip


def make_link(bytes_per_s: float, setup_s: float = 20e-6, latency_s: float = 2e-6, **changes: Any) -> LinkFit:
    """Return what was fitted to one direction of a link, or of a drive."""
    given: dict[str, Any] = {
        "setup_s": setup_s, "latency_s": latency_s, "bytes_per_s": bytes_per_s, "smallest_bytes": 4096,
        "largest_bytes": 256 << 20, "residual": EXACT,
    }  # fmt: skip
    return LinkFit.model_validate(given | changes)


def make_row(batch: int, base_s: float, s_per_token: float) -> AttentionRow:
    """Return decode attention of one batch size: a straight line, read off at a few contexts."""
    contexts = [batch * tokens for tokens in (128, 512, 2048)]
    return AttentionRow(batch=batch, context=tuple((float(n), base_s + s_per_token * n) for n in contexts))


def make_compute(**changes: Any) -> Compute:
    """Return what a step of SmolLM2-135M takes in fp32."""
    given: dict[str, Any] = {
        "model": "smollm2-135m", "shape": SMOLLM, "dtype": "fp32",
        "linear": ((1, 1.0e-3), (8, 1.6e-3), (64, 6e-3), (256, 22e-3)),
        "head": ((1, 10e-3), (8, 14e-3), (64, 60e-3)),
        "decode": tuple(make_row(n, 20e-6 + 5e-6 * n, 120e-9) for n in (1, 4, 16)),
        "paged": tuple(make_row(n, 40e-6 + 8e-6 * n, 260e-9) for n in (1, 4, 16)),
        "prefill": ((64, 0.15e-3), (256, 0.9e-3), (1024, 9e-3)),
        "layer_overhead_s": 30e-6, "step_overhead_s": 0.4e-3, "residual": EXACT,
    }  # fmt: skip
    return Compute.model_validate(given | changes)


def make_fit(**changes: Any) -> Fit:
    """Return everything that a run takes from a profile."""
    given: dict[str, Any] = {
        "h2d": make_link(6e9), "d2h": make_link(5.5e9),
        "ssd_read": make_link(1.2e9, 60e-6, 90e-6), "ssd_write": make_link(0.8e9, 60e-6, 70e-6),
        "duplex_bytes_per_s": 8e9,
        "memory": Memory(read_bytes_per_s=12e9, copy_bytes_per_s=15e9, dram_copy_bytes_per_s=16e9, dram_threads=2),
        "compute": make_compute(),
        "rates": Rates(
            flops_per_s=90e9, weight_bytes_per_s=14e9, attention_bytes_per_s=6e9, attention_flops_per_s=25e9
        ),
        "contention": Contention(
            compute_during={"h2d": 1.1, "d2h": 1.1, "ssd_read": 1.05, "ssd_write": 1.05},
            during_compute={"h2d": 1.3, "d2h": 1.3, "ssd_read": 1.1, "ssd_write": 1.1},
            after_wait=1.05,
        ),
        "host": Host(step_s=50e-6, block_s=1e-6, residual=EXACT),
    }  # fmt: skip
    return Fit.model_validate(given | changes)


def make_profile(**changes: Any) -> Profile:
    """Return a profile; ``changes`` are fields of it, of its device (``kind``, ``base``, ...) or of its fit."""
    device: dict[str, Any] = {"kind": "cpu", "name": "Test CPU, 2 cores", "memory_bytes": 2 * GIB}
    of_device = {key: changes.pop(key) for key in list(changes) if key in Device.model_fields and key != "name"}
    of_fit = {key: changes.pop(key) for key in list(changes) if key in Fit.model_fields}
    given: dict[str, Any] = {
        "name": "test-cpu", "device": Device.model_validate(device | of_device),
        "environment": {"torch": "2.13.0", "date": "2026-05-01"},
        "samples": (
            Sample(kind="h2d", at={"bytes": 65536, "pieces": 1, "memory": "pageable"}, seconds=(33e-6, 32e-6)),
            Sample(kind="linear", at={"tokens": 1, "layers": 8}, seconds=(8.0e-3, 8.1e-3, 7.9e-3)),
        ),
        "fit": make_fit(**of_fit),
    }  # fmt: skip
    return Profile.model_validate(given | changes)
