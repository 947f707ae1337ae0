"""What attention kernels achieve that aren't the card's fastest."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from simkv.errors import InputError, Problem
from simkv.hardware import Gpu

Backend = Literal["flash", "triton"]
TRITON_FLOPS_EFFICIENCY = 0.27
"""Share of the 16-bit peak that SGLang's Triton kernels reach in the attention of prompts, head_dim 128: fitted on
rounds 4 and 8 of case mooncake-ssd-per-turn, GPU only (A100); other cards aren't measured."""


def with_backend(gpu: Gpu, backend: str) -> Gpu:
    """Return ``gpu`` as attention kernels of ``backend`` see it; raises InputError for one that isn't known.

    ``flash``: FlashAttention or FlashInfer, which the figures of cards are of.
    """
    if backend not in get_args(Backend):
        raise InputError(Problem("no such attention kernels", f"one of {', '.join(get_args(Backend))}", value=backend))
    if backend == "flash":
        return gpu
    own = gpu.figure("attention_flops_efficiency")
    why = "SGLang's Triton kernels, simkv/formulas/backends.py"
    slower = replace(own, value=min(own.value, TRITON_FLOPS_EFFICIENCY), source=why, standing="fitted")
    return gpu.with_figures(attention_flops_efficiency=slower)
