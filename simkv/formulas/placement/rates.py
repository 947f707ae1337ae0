"""How fast bytes move and numbers are multiplied: by the hardware's own figures, or as FlexGen fitted them to a T4."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log2

from simkv.formulas.placement.layer import LayerShape
from simkv.formulas.step import (
    attention_bytes_per_s,
    attention_flops_per_s,
    compute_flops_per_s,
    weight_bytes_per_s,
)
from simkv.formulas.transfer import transfer_s
from simkv.hardware import Gpu

GIB = float(1 << 30)
READ_AHEAD_PAUSE_S = 50e-6
"""Between one window of a mapped file that is read ahead and the next: nothing is on its way. Fitted on FlexGen's run
of OPT-175B on an A6000, weights on a drive of 5.6 GB/s (docs/batch-mode.md)."""
DEQUANTISE_PASSES = 14.0
"""Passes over device memory that unpacking int4 to 16 bits takes, in bytes of the 16-bit form: shifts, masks, casts,
scale and offset are kernels of their own. Fitted on FlexGen's compressed runs on a T4 (docs/batch-mode.md)."""
DISK_WEIGHTS = 0.95
"""Share of the disk's rate that weights are read at while decoding (FlexGen, cost_model.py)."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes and FLOPs a second of everything that a block uses, each when alone."""

    h2d: float
    d2h: float
    ssd_read: float
    ssd_write: float
    mm_prefill: float
    """FLOP/s of matrix products."""
    mm_decode: float
    bmm_prefill: float
    """FLOP/s of attention on the GPU."""
    bmm_decode: float
    cpu_attention: float
    """Bytes of KV that attention on the CPU reads a second."""
    d2h_cache: float = inf
    """KV on its way down, where it is slower than ``d2h``: it is scattered into the cache."""
    ssd_write_prompt: float = inf
    """KV of prompts on its way to disk, where it is slower than ``ssd_write``."""
    weight_read: float = inf
    """Bytes a second at which the GPU reads its own weights."""
    kv_read: float = inf
    """Bytes a second at which the GPU reads KV in its own memory."""
    dequantise: float = inf
    """Bytes of 16-bit numbers made from int4 a second."""
    link_latency_s: float = 0.0
    ssd_latency_s: float = 0.0
    copy: float = inf
    """Bytes a second that the CPU copies within DRAM."""
    weight_load: float = inf
    """Weights on their way from DRAM to the GPU, where the engine or the driver is slower than ``h2d``."""
    kv_load: float = inf
    """The same of KV."""
    mapped_read: float = inf
    """What mapped files give, where that is less than ``ssd_read``."""
    mapped_load: float = inf
    """What came from mapped files, on its way on to the GPU."""

    def lane(self, name: str) -> tuple[float, float]:
        """Return bytes a second and seconds of latency of h2d, d2h, ssd_read, ssd_write, cpu or copy."""
        return {
            "h2d": (self.h2d, self.link_latency_s),
            "d2h": (self.d2h, self.link_latency_s),
            "ssd_read": (self.ssd_read, self.ssd_latency_s),
            "ssd_write": (self.ssd_write, self.ssd_latency_s),
            "cpu": (self.cpu_attention, 0.0),
            "copy": (self.copy, 0.0),
        }[name]

    def gpu_s(self, layer: LayerShape, sequences: int, new: int, context: int, attends: float) -> float:
        """Return the GPU's time for one layer of one GPU batch.

        ``new`` tokens a sequence after ``context`` cached ones, of whose attention it does the part ``attends``.
        """
        prompt = new > 1 or not context
        mm, bmm = (self.mm_prefill, self.bmm_prefill) if prompt else (self.mm_decode, self.bmm_decode)
        linear = max(2.0 * layer.params * sequences * new / mm, layer.wide_weight_bytes / self.weight_read)
        return linear + self._attention_s(layer, sequences, new, context, attends, bmm) + self._unpack_s(
            layer, sequences, new, context, attends
        )  # fmt: skip

    def _attention_s(
        self, layer: LayerShape, sequences: int, new: int, context: int, attends: float, bmm: float
    ) -> float:
        """Prompts attend to all pairs, masked or not, as FlexGen and the transformers library compute them."""
        if not context:
            return layer.prefill_pair_flops * sequences * new * new / bmm
        pairs = attends * sequences * new * context
        return max(layer.decode_pair_flops * pairs / bmm, layer.kv_wide_bytes * pairs / self.kv_read)

    def _unpack_s(self, layer: LayerShape, sequences: int, new: int, context: int, attends: float) -> float:
        wide = layer.wide_weight_bytes if layer.quantised_weights else 0
        kv = layer.kv_wide_bytes * sequences * (attends * context + new) if layer.quantised_kv else 0.0
        return (wide + kv) / self.dequantise


def mapped_bytes_per_s(drive_bytes_per_s: float, read_ahead_bytes: float) -> float:
    """Return what a mapped file gives that is read ``read_ahead_bytes`` ahead; 0: it isn't mapped, and has no limit."""
    if not read_ahead_bytes:
        return inf
    return read_ahead_bytes / (transfer_s(read_ahead_bytes, drive_bytes_per_s) + READ_AHEAD_PAUSE_S)


def hardware_rates(
    gpu: Gpu,
    h2d: float,
    d2h: float,
    ssd_read: float,
    ssd_write: float,
    cpu_attention: float,
    link_latency_s: float = 0.0,
    ssd_latency_s: float = 0.0,
    unpack_passes: float = DEQUANTISE_PASSES,
) -> Rates:
    """Return the rates of a machine: links and SSD as given, the GPU's by its catalogue figures."""
    return Rates(
        h2d=h2d,
        d2h=d2h,
        ssd_read=ssd_read,
        ssd_write=ssd_write,
        mm_prefill=compute_flops_per_s(gpu, "fp16"),
        mm_decode=compute_flops_per_s(gpu, "fp16"),
        bmm_prefill=attention_flops_per_s(gpu),
        bmm_decode=inf,
        cpu_attention=cpu_attention,
        weight_read=weight_bytes_per_s(gpu),
        kv_read=attention_bytes_per_s(gpu),
        dequantise=gpu.hbm_bytes_per_s / unpack_passes,
        link_latency_s=link_latency_s,
        ssd_latency_s=ssd_latency_s,
    )


FLEXGEN_T4 = Rates(
    h2d=12.89 * GIB,
    d2h=4.82 * GIB,
    ssd_read=0.473 * GIB,
    ssd_write=2.015 * GIB,
    mm_prefill=21.24e12,
    mm_decode=4.3e12,
    bmm_prefill=9.97e12,
    bmm_decode=0.079e12,
    cpu_attention=0.0123e12,
    d2h_cache=0.97 * GIB,
    ssd_write_prompt=0.746 * GIB,
    dequantise=320e9 / DEQUANTISE_PASSES,
)
"""FlexGen's experimental/cost_model.py, fitted to runs on a Google Cloud T4.

``cpu_attention``: its 0.0123 TFLOP/s, where fp16 keys and values of as many heads as queries are a byte a FLOP.
"""

_SMALL_BATCH, _SMALL_HIDDEN, _BOTH_SMALL = 0.0328, 0.0621, 0.0168


def flexgen_t4(layer: LayerShape, gpu_batch_size: int) -> Rates:
    """Return FlexGen's fit, the CPU's part slower for small batches and narrow layers."""
    few, narrow = max(0.0, log2(64 / gpu_batch_size)), max(0.0, log2(4096 / layer.hidden))
    part = max(0.1, 1 + _BOTH_SMALL * few * narrow - _SMALL_BATCH * few - _SMALL_HIDDEN * narrow)
    return replace(FLEXGEN_T4, cpu_attention=FLEXGEN_T4.cpu_attention * part)
