"""About how long computing takes, for estimates of a session's time alone."""

from __future__ import annotations

from dataclasses import dataclass

from simkv.calibrate.backend import Backend, repeats_take
from simkv.calibrate.measure.kvpool import BLOCK_TOKENS
from simkv.calibrate.plain import Sizes, plain_sizes
from simkv.calibrate.task import Bench


@dataclass(frozen=True)
class _Pace:
    bytes_per_s: float
    flops_per_s: float
    """Of one thread on a CPU."""
    layer_s: float
    """Of starting what one layer consists of."""


_PACES = {"cpu": _Pace(8e9, 3e10, 2e-4), "cuda": _Pace(1e12, 1e14, 3e-4)}


def layers_s(backend: Backend, sizes: Sizes, tokens: int, layers: int = 1) -> float:
    """Return about what the linear part of ``layers`` layers takes."""
    return layers * (_PACES[backend.kind].layer_s + _product_s(backend, sizes.layer_params, tokens))


def head_s(backend: Backend, sizes: Sizes, tokens: int) -> float:
    """Return about what the head takes."""
    return _product_s(backend, sizes.vocab * sizes.hidden, tokens)


def attention_s(backend: Backend, sizes: Sizes, context_tokens: int, layers: int = 1) -> float:
    """Return about what decode attention over ``context_tokens``, gathered first, takes in ``layers`` layers."""
    nbytes = 3 * kv_bytes(backend, sizes, context_tokens)
    return layers * (_PACES[backend.kind].layer_s + nbytes / _PACES[backend.kind].bytes_per_s)


def prefill_s(backend: Backend, sizes: Sizes, tokens: int, layers: int = 1) -> float:
    """Return about what causal attention of a prompt takes in ``layers`` layers."""
    flops = 2.0 * sizes.heads * sizes.head_dim * tokens**2
    return layers * (_PACES[backend.kind].layer_s + flops / _flops_per_s(backend))


def kv_bytes(backend: Backend, sizes: Sizes, tokens: int) -> int:
    """Return the KV of ``tokens`` in one layer."""
    return 2 * sizes.kv_heads * sizes.head_dim * int(backend.torch_dtype.itemsize) * tokens


def piece_bytes(bench: Bench) -> int:
    """Return the bytes of one (block, layer) piece as large as verification moves."""
    return kv_bytes(bench.backend, plain_sizes(bench.model), BLOCK_TOKENS)


def repeats_s(bench: Bench, once_s: float) -> float:
    """Return about what the repeats of one sample take."""
    return repeats_take(once_s, bench.budget_s)


def _product_s(backend: Backend, params: int, tokens: int) -> float:
    pace, item = _PACES[backend.kind], int(backend.torch_dtype.itemsize)
    return max(params * item / pace.bytes_per_s, 2.0 * params * tokens / _flops_per_s(backend))


def _flops_per_s(backend: Backend) -> float:
    return _PACES[backend.kind].flops_per_s * (backend.threads if backend.kind == "cpu" else 1)
