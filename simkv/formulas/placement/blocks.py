"""The block schedule: what is moved and computed between one barrier and the next.

For each output token i, layer j and GPU batch k: the weights of layer j + 1 are loaded (with the first GPU batch),
so are the KV and the activations of the next GPU batch, those of the one before are stored, and this one is
computed. A barrier ends the block. A first block loads the first layer and computes nothing.

Chains of a block run side by side, the legs of a chain one after the other:

    prefill           SSD read, h2d  |  d2h, SSD write  |  attention on the CPU, GPU
    decoding, after   h2d            :  SSD read  |  d2h  |  SSD write  |  attention on the CPU, GPU
      or              SSD read, h2d  :  d2h  |  SSD write  |  attention on the CPU, GPU
    no overlap        SSD read, h2d, attention on the CPU, GPU, d2h, SSD write

Decoding, the loads go first because FlexGen's measured runs say so (``T_gen = c2g + max(...)``); what SSD reads then
is for the block after. With ``loads_first`` off decoding is as prefill: everything that the code asks for at once.
Source: FlexGen, flex_opt.py (``generation_loop_overlap_multi_batch``) and cost_model.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from simkv.formulas.placement.layer import WIDE_BYTES, LayerShape
from simkv.formulas.placement.policy import BatchPolicy
from simkv.formulas.placement.rates import Rates
from simkv.formulas.transfer import transfer_s

PROLOGUE = -1
EXPANDED_BYTES = 4
"""Bytes of a number of KV that is written out for attention on the CPU, which computes in 32 bits."""


@dataclass(frozen=True, slots=True)
class Job:
    """A batch: sequences padded to one length, decoded for the same number of tokens."""

    sequences: int
    prompt_tokens: int
    output_tokens: int


@dataclass(slots=True)
class Block:
    """Bytes by path, and the computation, between two barriers."""

    token: int
    """Which output token, from 0; PROLOGUE before the first."""
    layer: int
    batch: int
    h2d: int = 0
    """From DRAM to the GPU."""
    up: int = 0
    """From SSD over DRAM to the GPU."""
    read: int = 0
    """From SSD to DRAM, where attention runs."""
    d2h_cache: int = 0
    """KV from the GPU to DRAM."""
    d2h: int = 0
    """Activations and queries on the same way."""
    down_cache: int = 0
    """KV from the GPU over DRAM to SSD."""
    down: int = 0
    """Activations on that way."""
    cpu: int = 0
    """KV that attention on the CPU reads."""
    copied: int = 0
    """KV that is written out for it, head by head of the queries."""
    weights: int = 0
    """Of ``h2d``: weights."""
    cache: int = 0
    """Of ``h2d``: KV."""
    gpu_s: float = 0.0
    of_prompt: bool = False
    """What it stores is KV of prompts."""


class Leg(NamedTuple):
    """One transfer or computation: ``lane`` is h2d, d2h, ssd_read, ssd_write, cpu or gpu."""

    lane: str
    amount: float
    """Bytes; of the GPU: seconds."""
    most: float = inf
    """A rate that it doesn't exceed, bytes a second."""


Chain = tuple[Leg, ...]
Stage = tuple[Chain, ...]


def stages(block: Block, layer: LayerShape, policy: BatchPolicy, rates: Rates) -> list[Stage]:
    """Return what a block does: stages one after the other, chains of a stage side by side; nothing that is empty."""
    read = Leg("ssd_read", block.up + block.read, rates.mapped_read)
    ahead, sent = _staged(block, layer, policy)
    load = tuple(_loads(block, policy, rates, sent))
    down = (Leg("d2h", block.d2h_cache + block.down_cache, rates.d2h_cache), Leg("d2h", block.d2h + block.down))
    slow = rates.ssd_write_prompt if block.of_prompt else inf
    write = (Leg("ssd_write", block.down_cache, slow), Leg("ssd_write", block.down))
    compute = (Leg("copy", block.copied), Leg("cpu", block.cpu), Leg("gpu", block.gpu_s))
    plan: list[list[Chain]]
    if not policy.overlap:
        plan = [[(read, *(leg for stage in ahead for chain in stage for leg in chain), *load, *compute, *down, *write)]]
    elif policy.loads_first and policy.reads_first and block.token > 0:
        plan = [*ahead, [(read, *load)], [down, write, compute]]
    elif policy.loads_first and block.token > 0:
        plan = [*ahead, [load], [(read,), down, write, compute]]
    else:
        plan = [*ahead, [(read, *load), (*down, *write), compute]]
    kept = [tuple(chain for chain in map(_used, stage) if chain) for stage in plan]
    return [stage for stage in kept if stage]


def _loads(block: Block, policy: BatchPolicy, rates: Rates, staged: int) -> Iterator[Leg]:
    """Yield the transfers onto the GPU that are left: of what is staged the last tensor, all of the rest."""
    capped = 0
    for nbytes, is_staged, most in (
        (block.weights, policy.stages_weights, rates.weight_load),
        (block.cache, policy.stages_kv, rates.kv_load),
        (block.up, False, rates.mapped_load),
    ):
        if not is_staged and most < inf:
            yield Leg("h2d", nbytes, most)
            capped += nbytes
    yield Leg("h2d", block.h2d + block.up - staged - capped)


def _staged(block: Block, layer: LayerShape, policy: BatchPolicy) -> tuple[list[list[Chain]], int]:
    """Return the stages before anything else is launched, and the bytes that cross the link in them.

    Tensor by tensor, what isn't pinned is copied, and crosses the link while the next one is copied: the first by
    itself, the last behind all copies.
    """
    weights = block.weights if policy.stages_weights else 0
    cache = block.cache if policy.stages_kv else 0
    if not weights + cache:
        return [], 0
    head = round(weights * layer.first_part) if weights else cache // 2
    tail = cache - cache // 2 if cache else round(weights * layer.last_part)
    sent = weights + cache - tail
    return [[(Leg("copy", head),)], [(Leg("copy", weights + cache - head),), (Leg("h2d", sent),)]], sent


def _used(chain: Chain) -> Chain:
    return tuple(leg for leg in chain if leg.amount)


def alone_s(block: Block, layer: LayerShape, policy: BatchPolicy, rates: Rates) -> float:
    """Return how long a block takes when nothing else is going on and no two lanes share anything."""
    return sum(max(sum(_leg_s(leg, rates) for leg in chain) for chain in stage)
               for stage in stages(block, layer, policy, rates))  # fmt: skip


def _leg_s(leg: Leg, rates: Rates) -> float:
    if leg.lane == "gpu":
        return leg.amount
    rate, latency_s = rates.lane(leg.lane)
    return max(transfer_s(leg.amount, rate, 1, latency_s), leg.amount / leg.most)


def schedule_s(layer: LayerShape, policy: BatchPolicy, rates: Rates, job: Job) -> tuple[float, float]:
    """Return the time of the schedule, alone: ``(until the first output token, of the whole batch)``."""
    first_s = total_s = 0.0
    for block in blocks(layer, policy, rates, job):
        total_s += alone_s(block, layer, policy, rates)
        if block.token <= 0:
            first_s = total_s
    return first_s, total_s


def blocks(layer: LayerShape, policy: BatchPolicy, rates: Rates, job: Job) -> Iterator[Block]:
    """Yield the blocks of a batch, in order."""
    return _Schedule(layer, policy, rates, job).blocks()


class _Schedule:
    """Walks tokens, layers and GPU batches, looking one block ahead and one back."""

    def __init__(self, layer: LayerShape, policy: BatchPolicy, rates: Rates, job: Job) -> None:
        self.layer = layer
        self.policy = policy
        self.rates = rates
        self.job = job
        self.sizes = policy.gpu_batches(job.sequences)
        self.attends = policy.placement.kv.gpu if policy.cpu_attention else 1.0
        self.weights = policy.placement.weights.split(layer.weight_bytes)
        self.expands = policy.expands_kv == "always" or (policy.expands_kv == "repeated" and layer.kv_groups > 1)

    def blocks(self) -> Iterator[Block]:
        yield Block(PROLOGUE, 0, 0, h2d=self.weights[1], up=self.weights[2], weights=self.weights[1])
        last = (self.job.output_tokens - 1, self.layer.layers - 1, len(self.sizes) - 1)
        before: tuple[int, int] | None = None
        for token in range(self.job.output_tokens):
            seconds = [self._gpu_s(token, size) for size in self.sizes]
            for number in range(self.layer.layers):
                for batch, size in enumerate(self.sizes):
                    here = (token, number, batch)
                    block = Block(*here, gpu_s=seconds[batch])
                    if batch == 0 and here[:2] != last[:2]:
                        block.h2d, block.up = self.weights[1], self.weights[2]
                        block.weights = block.h2d
                    if here != last:
                        self._load(block, *self._after(token, number, batch))
                    if before is not None:
                        self._store(block, *before)
                    if token and self.policy.cpu_attention:
                        self._attend_below(block, token, size)
                    before = (token, size)
                    yield block

    def _new(self, token: int) -> int:
        """Tokens of a sequence that are computed for output token ``token``."""
        return 1 if token else self.job.prompt_tokens

    def _context(self, token: int) -> int:
        """Tokens of a sequence that are cached before it."""
        return self.job.prompt_tokens + token - 1 if token else 0

    def _gpu_s(self, token: int, size: int) -> float:
        return self.rates.gpu_s(self.layer, size, self._new(token), self._context(token), self.attends)

    def _after(self, token: int, number: int, batch: int) -> tuple[int, int]:
        """Return token and size of the GPU batch that comes next."""
        if batch + 1 < len(self.sizes):
            return token, self.sizes[batch + 1]
        return (token if number + 1 < self.layer.layers else token + 1), self.sizes[0]

    def _load(self, block: Block, token: int, size: int) -> None:
        place = self.policy.placement
        _, dram, ssd = place.activations.split(self.layer.activation_bytes * self._new(token) * size)
        block.h2d += dram
        block.up += ssd
        if token:
            _, dram, ssd = place.kv.split(self.layer.kv_bytes * self._context(token) * size)
            if self.policy.cpu_attention:
                block.read += ssd
            else:
                block.h2d += dram
                block.cache = dram
                block.up += ssd

    def _store(self, block: Block, token: int, size: int) -> None:
        place = self.policy.placement
        _, block.d2h, block.down = place.activations.split(self.layer.activation_bytes * self._new(token) * size)
        if token < self.job.output_tokens - 1:  # what the last token adds, nobody reads
            new = self.layer.kv_bytes * self._new(token) * size
            _, block.d2h_cache, block.down_cache = place.kv.split(new)
            block.of_prompt = token == 0

    def _attend_below(self, block: Block, token: int, size: int) -> None:
        gpu, dram, ssd = self.policy.placement.kv.split(self.layer.kv_bytes * self._context(token) * size)
        block.cpu = dram + ssd
        if block.cpu:
            travels = round(self.layer.query_bytes * size * block.cpu / (gpu + block.cpu))
            if self.expands:
                block.cpu *= self.layer.kv_groups
                block.copied = EXPANDED_BYTES // WIDE_BYTES * block.cpu
            block.d2h += travels
            block.h2d += travels
