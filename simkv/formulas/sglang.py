"""How SGLang sizes its pools: a share of the memory for weights and caches together, the rest for the work.

    caches = (usable - context) * mem_fraction_static - weights
    states = caches * ratio / (1 + ratio)                     models that keep states; ratio 0.9 by default
    tokens = floor((caches - states) / bytes a token), in whole pages

Bytes are of one rank. The log prints K and V apart, in GB, and means GiB. Source: SGLang
srt/model_executor/model_runner_kv_cache_mixin.py and server_args.py (``mamba_full_memory_ratio``).
"""

from __future__ import annotations

from simkv.errors import InputError, Problem
from simkv.formulas.kv_size import kv_bytes_per_token_per_rank
from simkv.formulas.memory import context_bytes
from simkv.formulas.weights import weight_bytes_per_rank
from simkv.hardware import Gpu
from simkv.model import ModelShape

STATE_RATIO = 0.9


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
