"""How SGLang sizes its pools: a share of the memory for weights and caches together, the rest for the work.

    caches = (usable - context) * mem_fraction_static - weights
    states = caches * ratio / (1 + ratio)                     models that keep states; ratio 0.9 by default
    tokens = floor((caches - states) / bytes a token), in whole pages

Bytes are of one rank. The log prints K and V apart, in GB, and means GiB. Source: SGLang
srt/model_executor/model_runner_kv_cache_mixin.py and server_args.py (``mamba_full_memory_ratio``).

``mem_fraction_static`` that nobody gives leaves aside, in MiB,

    512 + 1.5 * max(prefill chunk, 2048) + 2 * largest graph + 1024 * ranks / 8     10240 at least on cards above 60 GiB

where graphs are captured up to a batch size that goes by the card's memory (server_args.py,
``_handle_gpu_memory_settings``, 0.5.4 and later).
"""

from __future__ import annotations

from simkv.errors import InputError, Problem
from simkv.formulas.kv_size import kv_bytes_per_token_per_rank
from simkv.formulas.memory import context_bytes
from simkv.formulas.weights import weight_bytes_per_rank
from simkv.hardware import Gpu
from simkv.model import ModelShape

STATE_RATIO = 0.9
MIB, GIB = 1 << 20, 1 << 30
LARGEST_GRAPHS: tuple[tuple[float, int, int], ...] = (
    (20, 8, 8), (35, 24, 80), (60, 32, 160), (160, 256, 512), (float("inf"), 512, 512)
)  # fmt: skip
"""Cards below so many GiB: sequences of the largest captured batch with fewer than 4 ranks, and with more."""


def sglang_pools(
    model: ModelShape,
    gpu: Gpu,
    tensor_parallel: int = 1,
    mem_fraction_static: float = 0.9,
    weight_dtype: str = "auto",
    state_ratio: float = STATE_RATIO,
) -> tuple[int, int]:
    """Return the bytes of one rank's K and V pools together, and of its pool of states.

    Below zero where the weights alone don't fit. Raises :class:`InputError` for a share that makes no sense.
    """
    if not 0 < mem_fraction_static <= 1:
        raise InputError(
            Problem("is not a share of the memory", "use 0.88", path="mem_fraction_static",
                    value=str(mem_fraction_static))
        )  # fmt: skip
    free = gpu.usable_bytes - context_bytes(tensor_parallel)
    caches = int(free * mem_fraction_static) - weight_bytes_per_rank(model, tensor_parallel, weight_dtype)
    states = int(caches * state_ratio / (1 + state_ratio)) if model.state else 0
    return caches - states, states


def sglang_tokens(
    model: ModelShape, kv_bytes_per_rank: int, kv_dtype: str = "auto", tensor_parallel: int = 1, page_tokens: int = 1
) -> int:
    """Return SGLang's ``max_total_num_tokens`` for K and V pools of ``kv_bytes_per_rank`` together."""
    tokens = kv_bytes_per_rank // kv_bytes_per_token_per_rank(model, kv_dtype, tensor_parallel)
    return tokens // page_tokens * page_tokens


def set_aside_bytes(vram_bytes: int, prefill_tokens: int, tensor_parallel: int = 1) -> int:
    """Return what SGLang leaves for activations and graphs on a card, where no ``mem_fraction_static`` is given."""
    graph = next(
        few if tensor_parallel < 4 else many for below, few, many in LARGEST_GRAPHS if vram_bytes < below * GIB
    )
    aside = (512 + 2 * graph + 128 * tensor_parallel) * MIB + int(1.5 * MIB) * max(prefill_tokens, 2048)
    return max(aside, 10 * GIB) if vram_bytes > 60 * GIB else aside
