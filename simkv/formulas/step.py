"""Time of one forward step of one replica: a roofline with stated efficiencies.

With ``n`` tensor-parallel ranks, every figure below is one rank's, and the step takes

    T = overhead + layers * per_layer + sequences * per_sequence
      + roofline(linear weights that every token passes)
      + roofline(expected distinct experts)                     MoE only
      + roofline(lm_head)                                        rows of sampled sequences only
      + decode attention + prefill attention + all-reduce

    roofline(F, W) = max(F / A_f,  W / A_w * (1 + kappa * rows / (rows + 64)))

F FLOPs, W weight bytes, A_f = peak * flops_efficiency, A_w = HBM * weight_bandwidth_efficiency. kappa
(figure ``tile_fill_loss``) is how much slower weights stream through a matrix product whose 64-row tiles
are full of tokens than through a matrix-vector product: operands and results share the memory system,
and tiles must be loaded before and drained after their arithmetic.

    experts read     = E * (1 - (1 - k/E) ** tokens)             each token picks k of E, evenly
    decode attention = max(context * bytes a token / A_a,  rows * context * FLOPs a pair / A_p)
    prefill chunk    = max(pairs * FLOPs a pair / A_p,  (before + new) * bytes a token / A_a)
    pairs            = sum(before + i, i = 1..new) = new * before + new * (new + 1) / 2
    FLOPs a pair     = 4 * L * H * d           MLA decode on the latent: 2 * L * H * (2 * rank + rope)
                                               MLA prefill:              2 * L * H * (nope + rope + v)
    all-reduce       = 2 * L * (latency + 2 * (n - 1) / n * tokens * hidden * b / link)

A_a = HBM * attention_bandwidth_efficiency, A_p = 16-bit peak * attention_flops_efficiency. ``rows`` is 1 in
a pure decode. In a step that also prefills, kernels of the FlashAttention-2 kind give each decoding
row and head a whole query tile (64 rows, no packing of the heads that share KV, no split of long
contexts), so that its arithmetic counts 64-fold: figure ``mixed_query_rows``, 1 for engines and kernels
that pack or run the two kinds apart (FlashAttention-3, MLA). Source: Dao-AILab/flash-attention 2,
csrc/flash_attn/flash_api.cpp (``seqlenq_ngroups_swapped`` needs ``max_seqlen_q == 1``) and
flash_fwd_launch_template.h (``kBlockM = 64``).

The step is linear in the context, so a pure decode is an arithmetic series without a bend: each step
reads one token more for each sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simkv.errors import InputError, Problem
from simkv.formulas.kv_size import check_tensor_parallel, kv_bytes_per_token_per_rank
from simkv.formulas.memory import linear_params_per_rank, native_weight_dtype
from simkv.hardware import Gpu
from simkv.model import DTYPE_BITS, AttentionLayers, ModelShape, weight_bytes_per_param

Mode = Literal["graphs", "eager", "kernels"]
TILE_ROWS = 64.0
"""Rows of a matrix product's tile."""
FOREVER = 1 << 62
"""Number of steps for a series that never bends."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """One matrix product: seconds of arithmetic a row, seconds of weights, and the loss of full tiles."""

    flops_s_per_row: float
    weights_s: float
    tile_fill_loss: float

    def seconds(self, rows: float) -> float:
        """Time for ``rows`` tokens; reading the weights costs the same for none."""
        compute = self.flops_s_per_row * rows
        streaming = self.weights_s * (1.0 + self.tile_fill_loss * rows / (rows + TILE_ROWS))
        return compute if compute > streaming else streaming


@dataclass(frozen=True, slots=True)
class Experts:
    """The routed experts of all MoE layers together, as one rank holds them."""

    experts: int
    top_k: int
    flops_s_per_token: float
    all_weights_s: float
    tile_fill_loss: float

    def seconds(self, tokens: int) -> float:
        """Time for ``tokens``: only the expected distinct experts are read, each with its share of rows."""
        touched = 1.0 - (1.0 - self.top_k / self.experts) ** tokens
        if not touched:
            return 0.0
        rows = tokens * self.top_k / (self.experts * touched)
        product = Roofline(self.flops_s_per_token * tokens / rows, self.all_weights_s * touched, self.tile_fill_loss)
        return product.seconds(rows)


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Two all-reduces a layer over the ranks' link."""

    latency_s: float
    """Of all layers together."""
    s_per_token: float


class RooflineStep:
    """Step times of one model on one replica; satisfies the simulator's ``StepCost``."""

    __slots__ = ("_decode", "_tokens", "comm", "experts", "head", "kv_s", "layers", "linear", "mixed_kv_s",
                 "overhead_s", "pair_s", "read_s", "sequence_s")  # fmt: skip

    def __init__(
        self,
        layers: int,
        overhead_s: float,
        sequence_s: float,
        linear: Roofline,
        experts: Experts | None,
        head: Roofline,
        kv_s: float,
        mixed_kv_s: float,
        read_s: float,
        pair_s: float,
        comm: AllReduce,
    ) -> None:
        self.layers = layers
        self.overhead_s = overhead_s
        self.sequence_s = sequence_s
        self.linear = linear
        self.experts = experts
        self.head = head
        self.kv_s = kv_s
        """Attention of one context token in a pure decode."""
        self.mixed_kv_s = mixed_kv_s
        """The same beside a prefill."""
        self.read_s = read_s
        """Reading one token's KV."""
        self.pair_s = pair_s
        self.comm = comm
        self._decode: dict[int, tuple[float, float]] = {}
        self._tokens: dict[int, float] = {}

    def decode(self, sequences: int, context_tokens: int) -> tuple[float, float, int]:
        """Pure decode: ``(first_s, growth_s, steps)``, an arithmetic series (see ``StepCost``)."""
        known = self._decode.get(sequences)
        if known is None:
            known = self._decode[sequences] = (
                self._base(sequences, sequences, sequences),
                self.kv_s * sequences,
            )
        return known[0] + self.kv_s * context_tokens, known[1], FOREVER

    def mixed(self, sequences: int, context_tokens: int, chunks: list[tuple[int, int]], sampled: int) -> float:
        """One step with prefill ``chunks`` of ``(new_tokens, context_before)`` (see ``StepCost``)."""
        tokens = sequences
        longest = 1
        attention = 0.0
        for new, before in chunks:
            tokens += new
            if new > longest:
                longest = new
            compute = self.pair_s * (new * before + new * (new + 1) // 2)
            reading = self.read_s * (before + new)
            attention += compute if compute > reading else reading
        kv_s = self.kv_s if longest == 1 else self.mixed_kv_s
        return self._base(tokens, sequences + len(chunks), sampled) + kv_s * context_tokens + attention

    def _base(self, tokens: int, sequences: int, sampled: int) -> float:
        """Everything but attention."""
        return self._token_part(tokens) + self.sequence_s * sequences + self.head.seconds(sampled)

    def _token_part(self, tokens: int) -> float:
        """Overhead, linear layers and all-reduce: depends on the number of rows only."""
        known = self._tokens.get(tokens)
        if known is None:
            known = self.overhead_s + self.linear.seconds(tokens)
            if self.experts is not None:
                known += self.experts.seconds(tokens)
            known += self.comm.latency_s + self.comm.s_per_token * tokens
            self._tokens[tokens] = known
        return known


class ConstantStep:
    """Every step takes the same time whatever it does (toys and queueing oracles)."""

    __slots__ = ("layers", "step_s")

    def __init__(self, step_s: float, layers: int = 1) -> None:
        self.step_s = float(step_s)
        self.layers = layers

    def decode(self, sequences: int, context_tokens: int) -> tuple[float, float, int]:
        """Return the constant with no growth."""
        return self.step_s, 0.0, FOREVER

    def mixed(self, sequences: int, context_tokens: int, chunks: list[tuple[int, int]], sampled: int) -> float:
        """Return the constant."""
        return self.step_s


def step_cost(
    model: ModelShape,
    gpu: Gpu,
    tensor_parallel: int = 1,
    weight_dtype: str = "auto",
    kv_dtype: str = "auto",
    mode: Mode = "graphs",
) -> RooflineStep:
    """Return the step times of ``model`` on ``tensor_parallel`` x ``gpu``.

    ``mode``: ``graphs`` (captured graphs, scheduling hidden behind the step before: what engines serve
    with), ``eager`` (a launch cost a layer on top) or ``kernels`` (the sum of kernel times, no step
    overhead: what profilers report). fp8 weights compute at the fp8 rate where the card has one; every other
    quantisation is weight-only: fewer bytes, 16-bit arithmetic. The lm_head stays 16-bit.

    Raises :class:`InputError` for a split that the heads don't allow, an unknown mode or dtype.
    """
    check_tensor_parallel(model, tensor_parallel)
    dtype = native_weight_dtype(model, weight_dtype)
    loss = gpu.value("tile_fill_loss")
    return RooflineStep(
        layers=model.layers,
        overhead_s=_overhead_s(model, gpu, mode),
        sequence_s=gpu.value("sequence_overhead_s"),
        linear=_linear(model, gpu, tensor_parallel, dtype, loss),
        experts=_experts(model, gpu, tensor_parallel, dtype, loss),
        head=_head(model, gpu, tensor_parallel, loss),
        kv_s=_decode_s_per_context_token(model, gpu, tensor_parallel, kv_dtype, 1.0),
        mixed_kv_s=_decode_s_per_context_token(model, gpu, tensor_parallel, kv_dtype, _mixed_rows(model, gpu)),
        read_s=_kv_read_s(model, gpu, tensor_parallel, kv_dtype),
        pair_s=prefill_flops_per_pair(model) / tensor_parallel / _attention_flops_per_s(gpu),
        comm=_all_reduce(model, gpu, tensor_parallel),
    )


def decode_flops_per_pair(model: ModelShape) -> int:
    """Attention FLOPs of one query token with one cached token, all layers and heads (MLA: on the latent)."""
    return sum(kind.layers * _decode_pair(kind) for kind in model.full_attention)


def prefill_flops_per_pair(model: ModelShape) -> int:
    """Attention FLOPs of one (query, key) pair of a prefill, all layers and heads."""
    return sum(kind.layers * _prefill_pair(kind) for kind in model.full_attention)


def _decode_pair(kind: AttentionLayers) -> int:
    if kind.mla is None:
        return 2 * kind.heads * (kind.head_dim + kind.value_dim)
    return 2 * kind.heads * (2 * kind.mla.kv_lora_rank + kind.mla.qk_rope_head_dim)


def _prefill_pair(kind: AttentionLayers) -> int:
    if kind.mla is None:
        return 2 * kind.heads * (kind.head_dim + kind.value_dim)
    return 2 * kind.heads * (kind.mla.qk_nope_head_dim + kind.mla.qk_rope_head_dim + kind.mla.v_head_dim)


def compute_flops_per_s(gpu: Gpu, weight_dtype: str) -> float:
    """Achieved FLOP/s of linear layers: the fp8 rate for fp8 weights on fp8 hardware, else the 16-bit rate."""
    native = weight_dtype == "fp8" and gpu.has_dense_rate("fp8")
    return gpu.dense_flops_per_s("fp8" if native else "fp16") * gpu.value("flops_efficiency")


def _overhead_s(model: ModelShape, gpu: Gpu, mode: Mode) -> float:
    per_layer = model.layers * gpu.value("layer_overhead_s")
    if mode == "kernels":
        return per_layer
    if mode == "graphs":
        return per_layer + gpu.value("step_overhead_s")
    if mode == "eager":
        return per_layer + gpu.value("step_overhead_s") + model.layers * gpu.value("eager_layer_overhead_s")
    raise InputError(Problem("is not a mode", "use graphs, eager or kernels", path="mode", value=str(mode)))


def _weights_per_s(gpu: Gpu) -> float:
    return gpu.hbm_bytes_per_s * gpu.value("weight_bandwidth_efficiency")


def _attention_flops_per_s(gpu: Gpu) -> float:
    return gpu.dense_flops_per_s("fp16") * gpu.value("attention_flops_efficiency")


def _linear(model: ModelShape, gpu: Gpu, ranks: int, dtype: str, loss: float) -> Roofline:
    params = linear_params_per_rank(model, ranks)
    return Roofline(
        2 * params / compute_flops_per_s(gpu, dtype),
        params * weight_bytes_per_param(dtype) / _weights_per_s(gpu),
        loss,
    )


def _experts(model: ModelShape, gpu: Gpu, ranks: int, dtype: str, loss: float) -> Experts | None:
    moe = model.moe
    if moe is None:
        return None
    active = model.moe_layers * moe.top_k * model.expert_params / ranks
    held = model.routed_params / ranks
    return Experts(
        moe.experts,
        moe.top_k,
        2 * active / compute_flops_per_s(gpu, dtype),
        held * weight_bytes_per_param(dtype) / _weights_per_s(gpu),
        loss,
    )


def _head(model: ModelShape, gpu: Gpu, ranks: int, loss: float) -> Roofline:
    params = model.embedding_params / ranks
    width = DTYPE_BITS[model.dtype] / 8
    return Roofline(2 * params / compute_flops_per_s(gpu, "fp16"), params * width / _weights_per_s(gpu), loss)


def _kv_read_s(model: ModelShape, gpu: Gpu, ranks: int, kv_dtype: str) -> float:
    rate = gpu.hbm_bytes_per_s * gpu.value("attention_bandwidth_efficiency")
    return kv_bytes_per_token_per_rank(model, kv_dtype, ranks) / rate


def _mixed_rows(model: ModelShape, gpu: Gpu) -> float:
    """Rows of a query tile that a decoding row costs beside a prefill; MLA runs the two kinds apart."""
    return 1.0 if model.mla else gpu.value("mixed_query_rows")


def _decode_s_per_context_token(model: ModelShape, gpu: Gpu, ranks: int, kv_dtype: str, rows: float) -> float:
    compute = rows * decode_flops_per_pair(model) / ranks / _attention_flops_per_s(gpu)
    return max(compute, _kv_read_s(model, gpu, ranks, kv_dtype))


def _all_reduce(model: ModelShape, gpu: Gpu, ranks: int) -> AllReduce:
    if ranks == 1:
        return AllReduce(0.0, 0.0)
    rate = gpu.value("gpu_link_bytes_per_s") * gpu.value("gpu_link_efficiency")
    calls = 2 * model.layers
    per_token = 2 * (ranks - 1) / ranks * model.hidden * model.dtype_bytes / rate
    return AllReduce(calls * gpu.value("allreduce_latency_s"), calls * per_token)
