"""Number formats: of the activations, and of each part of the weights where a file says how they are quantised.

The KV cache stays 16-bit whatever the weights are; ``kv_cache_scheme`` and its like don't change that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from simkv.model.config.fields import Fields
from simkv.model.dtypes import DTYPE_ALIASES, DTYPE_BITS
from simkv.model.shape import ModelShape

PARTS: dict[str, tuple[str, ...]] = {
    "mixer": ("self_attn.q_proj", "self_attn.v_proj", "self_attn.o_proj"),
    "latents": ("self_attn.q_b_proj", "self_attn.kv_b_proj", "self_attn.o_proj"),
    "dense": ("mlp.gate_proj", "mlp.up_proj", "mlp.shared_experts.gate_proj"),
    "experts": ("mlp.experts.7.gate_proj", "mlp.experts.7.down_proj", "mlp.experts"),
}
"""What modules of each part are called; a part is quantised when a file's patterns take most of them."""

_PART_OF = {".experts.": "experts", ".mlp.": "dense", "_attn.": "mixer", ".attention.": "mixer"}
"""What a module's name tells of its part; the first that it holds decides."""

_ALGORITHMS = {
    "fp8": "fp8", "nvfp4": "nvfp4", "w4a16_nvfp4": "nvfp4", "mxfp4": "mxfp4", "w4a8_mxfp4_fp8": "mxfp4",
    "fp8_pb_wo": "fp8", "fp8_per_channel_per_token": "fp8", "w4a16_awq": "int4", "w4a8_awq": "int4", "int4_awq": "int4",
    "w8a8_sq_per_channel": "int8", "w8a16": "int8",
}  # fmt: skip
"""``quant_algo`` of NVIDIA's Model Optimizer."""

_LEFT_OUT = (
    "ignore",
    "modules_to_not_convert",
    "ignored_layers",
    "exclude_modules",
    "exclude",
    "llm_int8_skip_modules",
)

Rule = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Quantised:
    """Which modules of a checkpoint are in which format; the first rule that takes a module decides."""

    rules: tuple[tuple[Rule, str], ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)
    """Of a file that lists its modules one by one: the format of most modules of a part."""
    group: int = 0
    """Weights to a scale of int4; 0: as usual."""

    def dtype_of(self, part: str, layers: int) -> str:
        """Return the format of a part by its modules in a layer of the middle; "" where it isn't quantised."""
        if self.parts:
            return self.parts["mixer" if part == "latents" else part]
        found = [self._of(f"model.layers.{layers // 2}.{module}") for module in PARTS[part]]
        return max(found, key=found.count)

    def _of(self, module: str) -> str:
        return next((dtype for takes, dtype in self.rules if takes(module)), "")


def dtype_of(text: Fields, top: Fields) -> str:
    """Return the dtype of the activations: the inner configuration's, else the file's, else bf16."""
    for fields in (text, top):
        name = fields.word("dtype").removeprefix("torch.").lower()
        if name in ("", "auto"):
            continue
        dtype = DTYPE_ALIASES.get(name, name)
        if dtype not in DTYPE_BITS:
            raise fields.fail("dtype", "is not a dtype", f"use one of {', '.join(DTYPE_BITS)}")
        return dtype if DTYPE_BITS[dtype] >= 16 else "bf16"
    text.note("no dtype given: bf16")
    return "bf16"


def with_weights(shape: ModelShape, text: Fields, top: Fields) -> ModelShape:
    """Return the shape with the formats of its weights, the biggest part's first."""
    section = text.section("quantization_config") or top.section("quantization_config")
    if section is None:
        section = text.section("compression_config") or top.section("compression_config")
    quantised = _quantised(section) if section is not None else _narrow(text, top)
    if quantised is None:
        return shape
    sizes = {"mixer": shape.mixer_params, "dense": shape.dense_params, "experts": shape.routed_params}
    modules = {"mixer": "latents" if shape.mla else "mixer", "dense": "dense", "experts": "experts"}
    dtypes = {part: quantised.dtype_of(of, shape.layers) or shape.dtype for part, of in modules.items()}
    main = dtypes[max(sizes, key=lambda part: sizes[part])]
    other = {part: "" if dtype == main or not sizes[part] else dtype for part, dtype in dtypes.items()}
    return replace(
        shape, weight_dtype="" if main == shape.dtype else main, mixer_dtype=other["mixer"],
        dense_dtype=other["dense"], expert_dtype=other["experts"], weight_group=quantised.group,
    )  # fmt: skip


def _narrow(text: Fields, top: Fields) -> Quantised | None:
    """A file whose dtype itself is narrow has all of its weights in it."""
    for fields in (text, top):
        dtype = DTYPE_ALIASES.get(name := fields.word("dtype").lower(), name)
        if dtype in DTYPE_BITS and DTYPE_BITS[dtype] < 16:
            return Quantised(((_all, dtype),))
    return None


def _all(module: str) -> bool:
    return True


def _quantised(section: Fields) -> Quantised | None:
    """Return what a quantisation section says, by its method; unknown ones are noted and leave 16 bits."""
    method = section.word("quant_method").lower().replace("-", "_")
    method = method or ("modelopt" if section.get("quant_algo") or section.get("quantization") else "")
    known = next((read for name, read in _METHODS.items() if method.startswith(name)), None)
    found = known(section) if known is not None else None
    if found is None:
        section.note(
            f"weights are quantised in a way that isn't known ({method or 'no quant_method'}): taken as 16-bit"
        )
        return None
    return replace(found, rules=(*_left_out(section), *found.rules))


def _left_out(section: Fields) -> Iterator[tuple[Rule, str]]:
    """Yield a rule a module that stays as it was."""
    for name in _LEFT_OUT:
        for pattern in section.items(name) or ():
            if isinstance(pattern, str):
                yield _matches(pattern), ""


def _matches(pattern: str) -> Rule:
    """Return a rule for a module's name, a part of one, a wildcard, or a regular expression after ``re:``.

    An expression that could take long (a repeated group, many repetitions) matches nothing.
    """
    if pattern.startswith("re:"):
        return _expression(pattern[3:])
    if "*" in pattern:
        shapes = (pattern, f"*{pattern}", f"{pattern}.*", f"*{pattern}.*")
        return lambda module: any(fnmatchcase(module, shape) for shape in shapes) if len(pattern) < 200 else False
    tail = pattern.split("layers.", 1)[-1]
    return lambda module: f".{pattern}." in f".{module}." or f".layers.{tail}." in f".{module}."


def _expression(pattern: str) -> Rule:
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return lambda module: False
    if re.search(r"\)[*+{?]", pattern) or len(re.findall("[*+{]", pattern)) > 4:
        return lambda module: False
    return lambda module: compiled.match(module) is not None


def _fp8(section: Fields) -> Quantised:
    return Quantised(((_all, "fp8"),))


def _mxfp4(section: Fields) -> Quantised:
    return Quantised(((_all, "mxfp4"),))


def _bits(section: Fields) -> Quantised | None:
    """AWQ, GPTQ and their like: a number of bits and a group."""
    bits = section.maybe("bits", 1, 32) or section.maybe("w_bit", 1, 32) or 4
    group = section.maybe("group_size", -1) or section.maybe("q_group_size", -1) or 0
    dtype = {4: "int4", 8: "int8"}.get(bits)
    if dtype is None:
        section.note(f"{bits}-bit weights are counted as the next wider format")
        dtype = "int4" if bits < 4 else "int8" if bits < 8 else "bf16"
    return Quantised(((_all, dtype),), group=max(0, group))


def _bitsandbytes(section: Fields) -> Quantised:
    four = section.flag("load_in_4bit") or section.flag("_load_in_4bit")
    return Quantised(((_all, "int4" if four else "int8"),), group=64 if four else 0)


def _modelopt(section: Fields) -> Quantised | None:
    """NVIDIA's Model Optimizer: one algorithm for all, or one a module."""
    each = section.section("quantized_layers")
    if each is not None:
        return Quantised(parts=_parts(_listed(each)))
    inner = section.section("quantization") or section
    dtype = _ALGORITHMS.get(inner.word("quant_algo").lower())
    if dtype is None:
        return _compressed(section)
    return Quantised((*_left_out(inner), (_all, dtype)))


def _listed(each: Fields) -> Iterator[tuple[str, str]]:
    for name in each.values:
        module = each.section(name)
        dtype = _ALGORITHMS.get(module.word("quant_algo").lower()) if module is not None else None
        if dtype is not None:
            yield name, dtype


def _parts(modules: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the commonest format of each part; "" for a part of which no module is listed."""
    found: dict[str, Counter[str]] = {part: Counter() for part in ("mixer", "dense", "experts")}
    for name, dtype in modules:
        part = next((part for mark, part in _PART_OF.items() if mark in f".{name}."), None)
        if part is not None:
            found[part][dtype] += 1
    return {part: counts.most_common(1)[0][0] if counts else "" for part, counts in found.items()}


def _compressed(section: Fields) -> Quantised | None:
    """compressed-tensors: groups of targets, each with bits, type and group size."""
    groups = section.section("config_groups")
    if groups is None:
        return None
    rules: list[tuple[Rule, str]] = []
    named: list[tuple[str, str]] = []
    size = 0
    for name in groups.values:
        group = groups.section(name)
        weights = group.section("weights") if group is not None else None
        if group is None or weights is None:
            continue
        dtype = _compressed_dtype(section, weights)
        size = max(0, weights.maybe("group_size", -1) or 0) if dtype == "int4" else size
        for target in group.items("targets") or ["Linear"]:
            if isinstance(target, str) and "." in target and not target.startswith("re:"):
                named.append((target, dtype))
            elif isinstance(target, str):
                rules.append((_matches(target) if target.startswith("re:") else _all, dtype))
    parts = _parts(named) if named and not rules else {}
    return Quantised(tuple(rules), parts, size) if rules or named else None


def _compressed_dtype(section: Fields, weights: Fields) -> str:
    bits = weights.maybe("num_bits", 1, 32) or 16
    if weights.word("type") == "float":
        layout = section.word("format") or ("nvfp4" if (weights.maybe("group_size", -1) or 0) == 16 else "mxfp4")
        return {8: "fp8", 4: "mxfp4" if "mxfp4" in layout else "nvfp4"}.get(bits, "bf16")
    return {8: "int8", 4: "int4"}.get(bits, "int8" if bits < 8 else "bf16")


def _quark(section: Fields) -> Quantised | None:
    """AMD's Quark: one dtype for all."""
    inner = section.section("global_quant_config")
    weight = inner.section("weight") if inner is not None and isinstance(inner.get("weight"), dict) else None
    dtype = {"fp8_e4m3": "fp8", "fp8": "fp8", "fp4": "mxfp4", "int4": "int4", "uint4": "int4", "int8": "int8"}.get(
        weight.word("dtype") if weight is not None else ""
    )
    return Quantised(((_all, dtype),)) if dtype else None


_METHODS: dict[str, Callable[[Fields], Quantised | None]] = {
    "fp8": _fp8, "fbgemm_fp8": _fp8, "deepspeedfp": _fp8, "mxfp4": _mxfp4, "awq": _bits, "gptq": _bits,
    "auto_round": _bits, "auto_awq": _bits, "autoawq": _bits, "intel/auto_round": _bits, "hqq": _bits,
    "bitsandbytes": _bitsandbytes, "modelopt": _modelopt, "compressed": _compressed, "quark": _quark,
}  # fmt: skip
