"""What GPU, CPU and disk must hold at the peak of a batch, by FlexGen's terms.

With w a layer's weights, h1 its width, h2 its MLP's, s and n prompt and output tokens, g the GPU batch, b the whole:

    GPU      home     w l wg + act b hg + kv (s + n) b l cg
             buffers  2 w (1 - wg) + act g (1 - hg)
             working  prefill: g s (18 h1 + 2 h2) + 2 heads s^2 g
                      decoding: g (14 h1 + 2 h2) + (4 h1 + (8 h1 + 2 heads) (s + n)) g cg
    CPU      home as above with the CPU's shares; buffers: w (1 - wg) + act g (1 - hg), or while decoding
             w wd + 2 act g hd + 2 kv (s + n) g cd, and 2 heads (s + n) g + 2 h1 g of attention
    disk     home, with the disk's shares

Each intermediate result counts in full although few are there at once, so that real runs have needed less; a
``slack`` above 1 says so. int4 adds one layer in 16 bits, and one GPU batch's KV of it. KV has its room from the
start, as FlexGen allocates it (its cost model counts n tokens only while decoding, but on the GPU). Embeddings
aren't counted.
Source: experimental/cost_model.py (peak memory constraints, ``alpha_g``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simkv import units
from simkv.errors import InfeasibleError
from simkv.formulas.placement.blocks import Job
from simkv.formulas.placement.layer import LayerShape
from simkv.formulas.placement.policy import BatchPolicy

TIERS = ("GPU", "DRAM", "disk")


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes of one tier at its peak, by what they are for."""

    weights: int
    activations: int
    kv: int
    buffers: int = 0
    working: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.activations + self.kv + self.buffers + self.working


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that each tier has for one replica, and how far beyond the estimate of the GPU's need may go.

    ``slack`` is applied to the GPU's; below 1 it is kept free of the other tiers as well.
    """

    gpu_bytes: float
    dram_bytes: float
    disk_bytes: float
    slack: float

    def limits(self) -> dict[str, float]:
        """Return what the estimate may reach, by tier."""
        rest = min(1.0, self.slack)
        return dict(zip(TIERS, (self.gpu_bytes * self.slack, self.dram_bytes * rest, self.disk_bytes * rest),
                        strict=True))  # fmt: skip


def needs(layer: LayerShape, policy: BatchPolicy, job: Job) -> dict[str, Need]:
    """Return the peak of each tier, by name: the larger one of prefill and decoding."""
    gpu = max(_gpu_prefill(layer, policy, job), _gpu_decode(layer, policy, job), key=lambda need: need.total)
    dram = max(_dram_prefill(layer, policy, job), _dram_decode(layer, policy, job), key=lambda need: need.total)
    return {"GPU": gpu, "DRAM": dram, "disk": _home(layer, policy, job, 2, job.prompt_tokens)}


def check_memory(layer: LayerShape, policy: BatchPolicy, job: Job, room: Room) -> dict[str, Need]:
    """Return the peaks; raises :class:`InfeasibleError` that tells what is short where, by how much and what helps."""
    found = needs(layer, policy, job)
    limits = room.limits()
    short = [tier for tier in TIERS if found[tier].total > limits[tier]]
    if short:
        raise InfeasibleError("; ".join(_told(tier, found[tier], limits[tier], room.slack, job) for tier in short))
    return found


def _told(tier: str, need: Need, limit: float, slack: float, job: Job) -> str:
    size = {name: units.short(getattr(need, name), "size") for name in ("weights", "kv", "activations", "buffers",
                                                                        "working")}  # fmt: skip
    parts = ", ".join(f"{name} {text}" for name, text in size.items() if getattr(need, name))
    having = f"{units.short(limit, 'size')}" + (f" (its size x memory_slack {slack:g})" if tier == "GPU" else "")
    return (
        f"{job.sequences} sequences of {job.prompt_tokens} + {job.output_tokens} tokens need "
        f"{units.short(need.total, 'size')} of {tier} ({parts}), and it has {having}: "
        f"{units.short(need.total - limit, 'size')} too much; {_MENDS[tier]}"
    )


_MENDS: Mapping[str, str] = {
    "GPU": "place less of engine.placement there, or lower engine.gpu_batch_size",
    "DRAM": "raise tiers.dram.capacity, place less there, or lower engine.num_gpu_batches",
    "disk": "raise tiers.ssd.capacity, place less there, or lower engine.num_gpu_batches",
}


def _home(layer: LayerShape, policy: BatchPolicy, job: Job, tier: int, new: int) -> Need:
    """What lies in a tier (0 GPU, 1 CPU, 2 disk) while ``new`` tokens a sequence are computed."""
    place = policy.placement
    return Need(
        place.weights.split(layer.weight_bytes * layer.layers)[tier],
        place.activations.split(layer.activation_bytes * new * job.sequences)[tier],
        place.kv.split(layer.kv_bytes * (job.prompt_tokens + job.output_tokens) * job.sequences * layer.layers)[tier],
    )


def _with(home: Need, buffers: float, working: float) -> Need:
    return Need(home.weights, home.activations, home.kv, round(buffers), round(working))


def _unpacked(layer: LayerShape, batch: int, tokens: int) -> int:
    """Bytes in 16 bits of what is stored in fewer: one layer, and one GPU batch's KV of it."""
    wide = layer.wide_weight_bytes if layer.quantised_weights else 0
    return wide + (layer.kv_wide_bytes * tokens * batch if layer.quantised_kv else 0)


def _gpu_prefill(layer: LayerShape, policy: BatchPolicy, job: Job) -> Need:
    place, batch, prompt = policy.placement, min(policy.gpu_batch_size, job.sequences), job.prompt_tokens
    buffers = 2 * layer.weight_bytes * (1 - place.weights.gpu)
    buffers += layer.activation_bytes * prompt * batch * (1 - place.activations.gpu)
    working = batch * prompt * (18 * layer.hidden + 2 * layer.intermediate)
    working += 2 * layer.heads * prompt * prompt * batch
    return _with(_home(layer, policy, job, 0, prompt), buffers, working + _unpacked(layer, batch, prompt))


def _gpu_decode(layer: LayerShape, policy: BatchPolicy, job: Job) -> Need:
    place, batch = policy.placement, min(policy.gpu_batch_size, job.sequences)
    tokens = job.prompt_tokens + job.output_tokens
    here = place.kv.gpu if policy.cpu_attention else 1.0
    buffers = 2 * layer.weight_bytes * (1 - place.weights.gpu)
    buffers += layer.activation_bytes * batch * (1 - place.activations.gpu)
    working = batch * (14 * layer.hidden + 2 * layer.intermediate)
    working += round((4 * layer.hidden + (8 * layer.hidden + 2 * layer.heads) * tokens) * batch * here)
    return _with(_home(layer, policy, job, 0, 1), buffers, working + _unpacked(layer, batch, tokens))


def _dram_prefill(layer: LayerShape, policy: BatchPolicy, job: Job) -> Need:
    place, batch, prompt = policy.placement, min(policy.gpu_batch_size, job.sequences), job.prompt_tokens
    buffers = layer.weight_bytes * (1 - place.weights.gpu)
    buffers += layer.activation_bytes * prompt * batch * (1 - place.activations.gpu)
    return _with(_home(layer, policy, job, 1, prompt), buffers, 0)


def _dram_decode(layer: LayerShape, policy: BatchPolicy, job: Job) -> Need:
    place, batch = policy.placement, min(policy.gpu_batch_size, job.sequences)
    tokens = job.prompt_tokens + job.output_tokens
    buffers = layer.weight_bytes * place.weights.disk + 2 * layer.activation_bytes * batch * place.activations.disk
    buffers += 2 * layer.kv_bytes * tokens * batch * place.kv.disk
    working = (2 * layer.heads * tokens + 2 * layer.hidden) * batch if policy.cpu_attention else 0
    return _with(_home(layer, policy, job, 1, 1), buffers, working)
