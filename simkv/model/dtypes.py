"""Number formats of weights and caches: their names and how many bits they take."""

from __future__ import annotations

from simkv.errors import InputError, Problem

DTYPE_BITS: dict[str, int] = {
    "fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4, "mxfp4": 4, "nvfp4": 4,
}  # fmt: skip
"""Bits of one number; scales come on top (see :func:`weight_bytes_per_param`)."""

DTYPE_ALIASES: dict[str, str] = {
    "float32": "fp32",
    "float": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8",
    "w4a16": "int4",
    "awq": "int4",
    "gptq": "int4",
}

_SCALE_BITS: dict[str, float] = {"int4": 16 + 4, "mxfp4": 8, "nvfp4": 8}
"""Bits of one scale (and zero point): AWQ's and GPTQ's 16 + 4; 8 of OCP Microscaling and of NVFP4."""

_GROUP: dict[str, int] = {"int4": 128, "mxfp4": 32, "nvfp4": 16}
"""Weights that share a scale."""


def normalise_dtype(dtype: str) -> str:
    """Return the short name of ``dtype`` (``bfloat16`` -> ``bf16``).

    Raises :class:`InputError` for an unknown name, listing the known ones.
    """
    name = dtype.strip().lower()
    name = DTYPE_ALIASES.get(name, name)
    if name not in DTYPE_BITS:
        raise InputError(Problem("is not a dtype", f"use one of {', '.join(DTYPE_BITS)}", path="dtype", value=dtype))
    return name


def weight_bytes_per_param(dtype: str, group: int = 0) -> float:
    """Bytes of one weight of a linear layer, scales included; ``group``: weights to a scale of int4 (0: 128).

    fp8 block scales (4 bytes per 128x128) are below 0.03 % and left out.
    """
    name = normalise_dtype(dtype)
    if name not in _SCALE_BITS:
        return DTYPE_BITS[name] / 8
    shared_by = group if group and name == "int4" else _GROUP[name]
    return (DTYPE_BITS[name] + _SCALE_BITS[name] / shared_by) / 8
