"""Time of one forward step of one replica: a roofline with stated efficiencies.

With ``n`` tensor-parallel ranks, every figure below is one rank's, and the step takes

    T = overhead + layers * per_layer + sequences * per_sequence
      + roofline(linear weights that every token passes)
      + roofline(expected distinct experts)                     MoE only
      + roofline(lm_head)                                        rows of sampled sequences only
      + decode attention + prefill attention + all-reduce

    roofline(F, W) = max(F / A_f,  W / A_w * (1 + kappa * rows / (rows + 64)))

F FLOPs, W weight bytes, A_f = peak * flops_efficiency (weights in fp8 on a card that computes in it: the fp8
peak * flops_fp8_efficiency), A_w = HBM * weight_bandwidth_efficiency. kappa
(figure ``tile_fill_loss``) is how much slower weights stream through a matrix product whose 64-row tiles
are full of tokens than through a matrix-vector product: operands and results share the memory system,
and tiles must be loaded before and drained after their arithmetic.

    experts read     = E * (1 - (1 - k/E) ** tokens)             each token picks k of E, evenly
    decode attention = max(context * bytes a token / A_a,  rows * context * FLOPs a pair / A_p)
    prefill chunk    = max(pairs * FLOPs a pair / A_p,  (before + new) * bytes a token / A_a)
    states           = sequences * 2 * state bytes / A_a         read and written once a step
    all-reduce       = sublayers * (latency + 2 * (n - 1) / n * tokens * hidden * b / link)

Attention is summed over windows: context, before and pairs stop at a layer's window (``formulas/attention``
has pairs and FLOPs). Layers that share another one's cache read it too. Sublayers are mixers and MLPs, two a
layer of a usual model.

A_a = HBM * attention_bandwidth_efficiency, A_p = 16-bit peak * attention_flops_efficiency. ``rows`` is 1 in
a pure decode. In a step that also prefills, kernels of the FlashAttention-2 kind give each decoding
row and head a whole query tile (64 rows, no packing of the heads that share KV, no split of long
contexts), so that its arithmetic counts 64-fold: figure ``mixed_query_rows``, 1 for engines and kernels
that pack or run the two kinds apart (FlashAttention-3, MLA). Source: Dao-AILab/flash-attention 2,
csrc/flash_attn/flash_api.cpp (``seqlenq_ngroups_swapped`` needs ``max_seqlen_q == 1``) and
flash_fwd_launch_template.h (``kBlockM = 64``).

The step is linear in the context, so a pure decode is an arithmetic series: each step reads one token more
for each sequence. It bends where the mean context reaches a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from simkv.errors import InputError, Problem
from simkv.formulas.attention import WindowedAttention, decode_flops_per_pair, prefill_flops_per_pair
from simkv.formulas.kv_size import check_tensor_parallel, layer_bytes_per_token, state_bytes_per_sequence
from simkv.formulas.weights import linear_bytes_per_rank, linear_parts_per_rank, part_dtypes, routed_bytes_per_rank
from simkv.hardware import Gpu
from simkv.model import DTYPE_BITS, AttentionLayers, ModelShape

Mode = Literal["graphs", "synchronous", "eager", "kernels"]
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

    def seconds(self, tokens: int) -> float:
        """Time for ``tokens``."""
        return self.latency_s + self.s_per_token * tokens


class RooflineStep:
    """Step times of one model on one replica; satisfies the simulator's ``StepCost``."""

    __slots__ = ("_decode", "_tokens", "comm", "experts", "head", "kv_s", "layers", "linear", "mixed_kv_s",
                 "overhead_s", "pair_s", "read_s", "sequence_s", "windows")  # fmt: skip

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
        windows: tuple[WindowedAttention, ...] = (),
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
        self.windows = windows
        """Layers that don't see all tokens; the four figures before are of those that do."""
        self.comm = comm
        self._decode: dict[int, tuple[float, float]] = {}
        self._tokens: dict[int, float] = {}

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        """Return what decides the times: pickled, costs are equal whatever they were asked before."""
        return None, {name: getattr(self, name) for name in self.__slots__} | {"_decode": {}, "_tokens": {}}

    def decode(self, sequences: int, context_tokens: int) -> tuple[float, float, int]:
        """Pure decode: ``(first_s, growth_s, steps)``, an arithmetic series (see ``StepCost``)."""
        known = self._decode.get(sequences)
        if known is None:
            known = self._decode[sequences] = (
                self._base(sequences, sequences, sequences),
                self.kv_s * sequences,
            )
        if not self.windows:
            return known[0] + self.kv_s * context_tokens, known[1], FOREVER
        return self._bent(sequences, context_tokens, known[0] + self.kv_s * context_tokens, known[1])

    def _bent(self, sequences: int, context_tokens: int, first_s: float, growth_s: float) -> tuple[float, float, int]:
        """Add what layers with a window take; the series holds up to the next knot."""
        steps = FOREVER
        attention = 0.0
        for window in self.windows:
            attention += window.kv_s * window.read_tokens(sequences, context_tokens)
            if sequences and window.grows(sequences, context_tokens):
                growth_s += window.kv_s * sequences
                steps = min(steps, window.steps_to_knot(sequences, context_tokens))
        return first_s + attention, growth_s, steps

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
        for window in self.windows:
            window_s = window.kv_s if longest == 1 else window.mixed_kv_s
            attention += window_s * window.read_tokens(sequences, context_tokens)
            for new, before in chunks:
                attention += window.chunk_s(new, before)
        return self._base(tokens, sequences + len(chunks), sampled) + kv_s * context_tokens + attention

    def linear_s(self, tokens: int) -> float:
        """Seconds of linear layers and experts with the overhead, as profilers sum them: no lm_head, no all-reduce."""
        return self._token_part(tokens) - self.comm.seconds(tokens)

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
            known += self.comm.seconds(tokens)
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
    with), ``synchronous`` (captured graphs, but the host schedules between two steps: engines up to 2024),
    ``eager`` (a launch cost a layer on top) or ``kernels`` (the sum of kernel times, no step overhead: what
    profilers report). fp8 weights compute at the fp8 rate where the card has one; every other
    quantisation is weight-only: fewer bytes, 16-bit arithmetic. The lm_head stays 16-bit.

    Raises :class:`InputError` for a split that the heads don't allow, an unknown mode or dtype.
    """
    check_tensor_parallel(model, tensor_parallel)
    loss = gpu.value("tile_fill_loss")
    full = _attention(model.full_attention, gpu, tensor_parallel, kv_dtype, None, False)
    return RooflineStep(
        layers=model.layers,
        overhead_s=_overhead_s(model, gpu, mode),
        sequence_s=gpu.value("sequence_overhead_s") + _state_s(model, gpu, tensor_parallel),
        linear=_linear(model, gpu, tensor_parallel, weight_dtype, loss),
        experts=_experts(model, gpu, tensor_parallel, weight_dtype, loss),
        head=_head(model, gpu, tensor_parallel, loss),
        kv_s=full.kv_s,
        mixed_kv_s=full.mixed_kv_s,
        read_s=full.read_s,
        pair_s=full.pair_s,
        comm=_all_reduce(model, gpu, tensor_parallel),
        windows=_windows(model, gpu, tensor_parallel, kv_dtype),
    )


def compute_flops_per_s(gpu: Gpu, weight_dtype: str) -> float:
    """Achieved FLOP/s of linear layers with weights of ``weight_dtype``."""
    return peak_flops_per_s(gpu, weight_dtype) * flops_efficiency(gpu, weight_dtype)


def flops_efficiency(gpu: Gpu, weight_dtype: str) -> float:
    """Share of :func:`peak_flops_per_s` that linear layers achieve, 0 to 1."""
    return gpu.value("flops_fp8_efficiency" if in_fp8(gpu, weight_dtype) else "flops_efficiency")


def peak_flops_per_s(gpu: Gpu, weight_dtype: str) -> float:
    """Peak FLOP/s of linear layers: the fp8 rate for fp8 weights on fp8 hardware, else the 16-bit rate."""
    return gpu.dense_flops_per_s("fp8" if in_fp8(gpu, weight_dtype) else "fp16")


def in_fp8(gpu: Gpu, weight_dtype: str) -> bool:
    """Say whether linear layers are computed in fp8: of fp8 weights, where the card can."""
    return weight_dtype == "fp8" and gpu.has_dense_rate("fp8")


def attention_bytes_per_s(gpu: Gpu) -> float:
    """Achieved B/s of the card's memory where attention reads the cache."""
    return gpu.hbm_bytes_per_s * gpu.value("attention_bandwidth_efficiency")


def attention_flops_per_s(gpu: Gpu) -> float:
    """Achieved FLOP/s of attention."""
    return gpu.dense_flops_per_s("fp16") * gpu.value("attention_flops_efficiency")


def weight_bytes_per_s(gpu: Gpu) -> float:
    """Achieved B/s of the card's memory where linear layers read their weights."""
    return gpu.hbm_bytes_per_s * gpu.value("weight_bandwidth_efficiency")


def _sublayers(model: ModelShape) -> int:
    """Mixers and MLPs: each ends in an all-reduce."""
    mixers = sum(kind.layers for kind in model.attention) + sum(kind.layers for kind in model.state)
    return mixers + model.mlp_layers + model.moe_layers


def _overhead_s(model: ModelShape, gpu: Gpu, mode: Mode) -> float:
    layers = _sublayers(model) / 2
    per_layer = layers * gpu.value("layer_overhead_s")
    if mode == "kernels":
        return per_layer
    if mode == "graphs":
        return per_layer + gpu.value("step_overhead_s")
    if mode == "synchronous":
        return per_layer + gpu.value("step_overhead_s") + gpu.value("host_step_overhead_s")
    if mode == "eager":
        return per_layer + gpu.value("step_overhead_s") + layers * gpu.value("eager_layer_overhead_s")
    raise InputError(Problem("is not a mode", f"use {', '.join(get_args(Mode))}", path="mode", value=str(mode)))


def _linear(model: ModelShape, gpu: Gpu, ranks: int, weight_dtype: str, loss: float) -> Roofline:
    parts = linear_parts_per_rank(model, ranks, weight_dtype)
    return Roofline(
        sum(2 * params / compute_flops_per_s(gpu, dtype) for dtype, params in parts),
        linear_bytes_per_rank(model, ranks, weight_dtype) / weight_bytes_per_s(gpu),
        loss,
    )


def _experts(model: ModelShape, gpu: Gpu, ranks: int, weight_dtype: str, loss: float) -> Experts | None:
    moe = model.moe
    if moe is None:
        return None
    _, _, dtype = part_dtypes(model, weight_dtype)
    active = model.moe_layers * moe.top_k * model.expert_params / ranks
    return Experts(
        moe.experts,
        moe.top_k,
        2 * active / compute_flops_per_s(gpu, dtype),
        routed_bytes_per_rank(model, ranks, weight_dtype) / weight_bytes_per_s(gpu),
        loss,
    )


def _head(model: ModelShape, gpu: Gpu, ranks: int, loss: float) -> Roofline:
    params = model.embedding_params / ranks
    width = DTYPE_BITS[model.dtype] / 8
    return Roofline(2 * params / compute_flops_per_s(gpu, "fp16"), params * width / weight_bytes_per_s(gpu), loss)


def _attention(
    kinds: tuple[AttentionLayers, ...], gpu: Gpu, ranks: int, kv_dtype: str, window: int | None, chunked: bool
) -> WindowedAttention:
    """Return the seconds of the layers of one window."""
    read_bytes = sum(kind.layers * layer_bytes_per_token(kind, kv_dtype, ranks) for kind in kinds)
    read_s = read_bytes / attention_bytes_per_s(gpu)
    flops = sum(kind.layers * decode_flops_per_pair(kind) for kind in kinds)
    pair_flops = sum(kind.layers * prefill_flops_per_pair(kind) for kind in kinds)
    # MLA kernels run decoding rows apart from a prefill.
    rows = 1.0 if any(kind.mla is not None for kind in kinds) else gpu.value("mixed_query_rows")
    return WindowedAttention(
        window=window or 0,
        chunked=chunked,
        kv_s=max(flops / ranks / attention_flops_per_s(gpu), read_s),
        mixed_kv_s=max(rows * flops / ranks / attention_flops_per_s(gpu), read_s),
        read_s=read_s,
        pair_s=pair_flops / ranks / attention_flops_per_s(gpu),
    )


def _windows(model: ModelShape, gpu: Gpu, ranks: int, kv_dtype: str) -> tuple[WindowedAttention, ...]:
    by_window: dict[tuple[int, bool], list[AttentionLayers]] = {}
    for kind in model.attention:
        if kind.window is not None:
            by_window.setdefault((kind.window, kind.chunked), []).append(kind)
    return tuple(
        _attention(tuple(kinds), gpu, ranks, kv_dtype, window, chunked)
        for (window, chunked), kinds in by_window.items()
    )


def _state_s(model: ModelShape, gpu: Gpu, ranks: int) -> float:
    """Reading and writing the states of one sequence."""
    return 2 * state_bytes_per_sequence(model) / ranks / attention_bytes_per_s(gpu)


def _all_reduce(model: ModelShape, gpu: Gpu, ranks: int) -> AllReduce:
    if ranks == 1:
        return AllReduce(0.0, 0.0)
    rate = gpu.value("gpu_link_bytes_per_s") * gpu.value("gpu_link_efficiency")
    calls = _sublayers(model)
    per_token = 2 * (ranks - 1) / ranks * model.hidden * model.dtype_bytes / rate
    return AllReduce(calls * gpu.value("allreduce_latency_s"), calls * per_token)
