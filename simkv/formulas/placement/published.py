"""FlexGen's closed form: every layer of a pass takes the same time, and what overlaps takes its maximum.

    T     = l * T_pre + l * (n - 1) * T_gen
    T_pre = max(c2g + d2c, g2c + c2d, comp)
    T_gen = c2g + max(g2c, d2c, c2d, comp)

for all GPU batches of a layer together, decoding at the mean context ``s + n / 2``. Two things are ours: where
attention runs on the GPU, KV that lies below is part of ``c2g`` (theirs always attends on the CPU); and weights
or KV in int4 count what they take stored. Source: experimental/cost_model.py (``solve_lp``).
"""

from __future__ import annotations

from dataclasses import dataclass

from simkv.formulas.placement.blocks import Job
from simkv.formulas.placement.layer import LayerShape
from simkv.formulas.placement.policy import BatchPolicy
from simkv.formulas.placement.rates import DISK_WEIGHTS, Rates
from simkv.formulas.transfer import transfer_s


@dataclass(frozen=True, slots=True)
class Published:
    """Times of one layer, all GPU batches together, and of the whole batch."""

    prefill_layer_s: float
    decode_layer_s: float
    layers: int
    job: Job

    @property
    def prefill_s(self) -> float:
        """Until the first output token."""
        return self.layers * self.prefill_layer_s

    @property
    def decode_s(self) -> float:
        """From the first output token to the last."""
        return self.layers * (self.job.output_tokens - 1) * self.decode_layer_s

    @property
    def total_s(self) -> float:
        """Of the batch."""
        return self.prefill_s + self.decode_s

    @property
    def tokens_per_s(self) -> float:
        """Output tokens a second."""
        return self.job.sequences * self.job.output_tokens / self.total_s


def published(layer: LayerShape, policy: BatchPolicy, rates: Rates, job: Job) -> Published:
    """Return FlexGen's answer for one batch."""
    return Published(_prefill_s(layer, policy, rates, job), _decode_s(layer, policy, rates, job), layer.layers, job)


def _prefill_s(layer: LayerShape, policy: BatchPolicy, rates: Rates, job: Job) -> float:
    place, prompt = policy.placement, job.prompt_tokens
    hidden = layer.activation_bytes * prompt * job.sequences
    cache = layer.kv_bytes * (prompt + 1) * job.sequences
    c2g = transfer_s(layer.weight_bytes * place.weights.below + hidden * place.activations.below, rates.h2d)
    g2c = transfer_s(cache * place.kv.below, min(rates.d2h, rates.d2h_cache))
    g2c += transfer_s(hidden * place.activations.below, rates.d2h)
    d2c = transfer_s(layer.weight_bytes * place.weights.disk + hidden * place.activations.disk, rates.ssd_read)
    c2d = transfer_s(cache * place.kv.disk, min(rates.ssd_write, rates.ssd_write_prompt))
    c2d += transfer_s(hidden * place.activations.disk, rates.ssd_write)
    comp = sum(rates.gpu_s(layer, one, prompt, 0, 1.0) for one in policy.gpu_batches(job.sequences))
    return max(c2g + d2c, g2c + c2d, comp)


def _decode_s(layer: LayerShape, policy: BatchPolicy, rates: Rates, job: Job) -> float:
    place, context = policy.placement, job.prompt_tokens + job.output_tokens / 2
    hidden = layer.activation_bytes * job.sequences
    cache = layer.kv_bytes * context * job.sequences
    on_gpu = place.kv.gpu if policy.cpu_attention else 1.0
    up = cache * place.kv.below if not policy.cpu_attention else 0.0
    c2g = transfer_s(layer.weight_bytes * place.weights.below + hidden * place.activations.below + up, rates.h2d)
    g2c = transfer_s(hidden * place.activations.below, rates.d2h)
    d2c = transfer_s(cache * place.kv.disk + hidden * place.activations.disk, rates.ssd_read)
    d2c += transfer_s(layer.weight_bytes * place.weights.disk, DISK_WEIGHTS * rates.ssd_read)
    c2d = transfer_s(layer.kv_bytes * job.sequences * place.kv.disk + hidden * place.activations.disk, rates.ssd_write)
    comp = sum(rates.gpu_s(layer, one, 1, round(context), on_gpu) for one in policy.gpu_batches(job.sequences))
    comp += transfer_s(cache * (place.kv.below if policy.cpu_attention else 0.0), rates.cpu_attention)
    return c2g + max(g2c, d2c, c2d, comp)
