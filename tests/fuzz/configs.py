"""Shapes of models: config.json files changed as JSON, as text and as files, asked for sizes and for runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.asked import Command, Generator
from tests.fuzz.lines import _byte

_DENSE = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip
_EXPERTS = {
    "num_experts": 64, "num_experts_per_tok": 4, "moe_intermediate_size": 768, "n_shared_experts": 1,
    "first_k_dense_replace": 1, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [],
}  # fmt: skip
_LATENT = {
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
}  # fmt: skip
_WINDOWS = {"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 8, "head_dim": 128,
            "layer_types": ["full_attention", "sliding_attention"] * 16}  # fmt: skip
_STATES = {
    "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_num_value_heads": 32, "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "hybrid_override_pattern": "M-M*E-",
    "mamba_num_heads": 64,
    "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4, "mamba_expand": 2,
    "attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1,
}  # fmt: skip
_QUANTISED = {"quantization_config": {
    "quant_method": "compressed-tensors", "ignore": ["lm_head"], "bits": 4, "fmt": "e4m3", "config_groups":
    {"group_0": {"weights": {"num_bits": 8, "type": "float"}, "targets": ["Linear"]}}, "modules_to_not_convert": None,
}}  # fmt: skip
_PARTS = (_EXPERTS, _LATENT, _WINDOWS, _STATES, _QUANTISED)
_FITTING: dict[str, tuple[dict[str, Any], ...]] = {
    "llama": (), "qwen2": (_QUANTISED,), "qwen3_moe": (_EXPERTS,), "mixtral": (_EXPERTS,),
    "gpt_oss": (_EXPERTS, _WINDOWS),
    "deepseek_v3": (_EXPERTS, _LATENT), "deepseek_v2": (_EXPERTS, _LATENT, _QUANTISED), "gemma2": (_WINDOWS,),
    "gemma3": (_WINDOWS,), "qwen3_next": (_EXPERTS, _STATES), "nemotron_h": (_STATES, _EXPERTS), "jamba": (_STATES,),
    "mamba": (_STATES,), "bamba": (_STATES,), "phi3": (), "falcon": (), "gpt2": (), "llama4": (_EXPERTS,),
    "mistral": (),
    "kimi_linear": (_STATES, _LATENT, _EXPERTS), "olmo3": (_WINDOWS,), "minimax": (_STATES, _EXPERTS),
    "zamba2": (_STATES,),
}  # fmt: skip
_TYPES = (
    "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "qwen3_next", "deepseek_v2", "deepseek_v3",
    "deepseek_v32", "gemma2", "gemma3", "gemma3n", "gemma4", "gpt_oss", "llama4", "falcon", "gpt2", "gptj", "phi3",
    "mamba",
    "mamba2", "jamba", "bamba", "nemotron_h", "falcon_h1", "zamba2", "granitemoehybrid", "kimi_linear", "minimax_m2",
    "minimax", "recurrent_gemma", "rwkv", "t5", "bert", "olmo3", "dbrx", "mpt", "bloom", "opt", "step3", "deci", "x",
)  # fmt: skip
_VALUES = (
    None, True, False, 0, -1, 1, 2, 3, 7, 0.5, -0.0, 1e308, -1e308, float("nan"), float("inf"), 10**40, 10**400, 2**31,
    2**63, 10**9, 10**6, 10_000, "", "x", "12", "bfloat16", "float8_e4m3fn", "\ud800", "\u0000", "\u202e",
    "a" * 100_000,
    [], [0], [1], [None], [1, 2], [[1]], ["full_attention"], ["sliding_attention"] * 32, ["mamba"] * 31, ["?"] * 32,
    [-1] * 32, [10**9] * 32, [1e308] * 32, list(range(32)), {}, {"a": 1}, {"factor": 1e308}, [{}], {"": ""},
    ["attention", "linear_attention"] * 16, [True] * 32, [0] * 32, [0, 1] * 16, [{"block": "x"}] * 32,
)  # fmt: skip


def _config(rng: Random) -> tuple[dict[str, Any], list[str]]:
    """Return a configuration and what was done to it."""
    values: dict[str, Any] = dict(_DENSE)
    fitting = rng.choice(list(_FITTING)) if rng.random() < 0.7 else ""
    for part in _FITTING[fitting] if fitting else [part for part in _PARTS if rng.random() < 0.3]:
        values |= part
    values["model_type"] = fitting or rng.choice(_TYPES)
    if rng.random() < 0.7:
        values["architectures"] = None
    notes = [values["model_type"]]
    for _ in range(rng.choice((0, 1, 1, 1, 2, 5))):
        key = rng.choice(list(values))
        value = _mild(rng, values[key]) if rng.random() < 0.5 else rng.choice(_VALUES)
        if rng.random() < 0.15:
            values.pop(key)
            notes.append(f"without {key}")
        else:
            values[key] = value
            notes.append(f"{key} = {value!r}"[:200])
    if rng.random() < 0.1:
        values = {"text_config": values, "model_type": rng.choice(_TYPES), "vision_config": {}}
    return values, notes


def _mild(rng: Random, value: Any) -> Any:
    """Return a value of the same kind."""
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return rng.choice((1, 2, value + 1, value * 2, value * 3, value * 1000, value // 2, value // 7, 10**6, 10**9, 9999))


def _bytes(rng: Random, values: dict[str, Any], notes: list[str]) -> bytes:
    text = json.dumps(values, indent=1)
    data = text.encode()
    kind = rng.randrange(40)
    table = {
        0: ("cut off", lambda: data[: rng.randrange(len(data))]),
        1: ("UTF-16", lambda: text.encode("utf-16")),
        2: ("with a mark", lambda: b"\xef\xbb\xbf" + data),
        3: ("CR", lambda: data.replace(b"\n", b"\r")),
        4: ("a byte changed", lambda: _byte(rng, data)),
        5: ("deep", lambda: b'{"a": ' + b"[" * 100_000),
        6: ("a long number", lambda: data.replace(b"4096", b"9" * rng.choice((40, 4000, 5000, 1_000_000)))),
        7: ("keys twice", lambda: data[:-2] + b"," + data[1:]),
        8: ("a pointer", lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"),
        9: ("empty", lambda: b""),
        10: ("random bytes", lambda: rng.randbytes(1000)),
        11: ("a list", lambda: b"[" + data + b"]"),
        12: ("long", lambda: data[:-1] + b', "x": "' + b"y" * rng.choice((1 << 20, 15 << 20, 17 << 20)) + b'"}'),
        13: ("many keys", lambda: data[:-1] + b"," + b",".join(b'"k%d": {}' % n for n in range(100_000)) + b"}"),
        14: ("brackets", lambda: b'{"a": ' * 900 + b"1" + b"}" * 900),
    }  # fmt: skip
    if kind not in table:
        return data
    notes.append(table[kind][0])
    return table[kind][1]()


def _size(rng: Random, folder: Path) -> Command:
    values, notes = _config(rng)
    path = _written(rng, folder, _bytes(rng, values, notes), notes)
    return Command((*_asked(rng, path), "--json"), json=True, notes=tuple(notes))


def _written(rng: Random, folder: Path, data: bytes, notes: list[str]) -> str:
    """Write the file, or something else in its place, and return what names it."""
    kind = rng.randrange(60)
    file = folder / "config.json"
    if kind == 0:
        os.mkfifo(file)
    elif kind == 1:
        file.symlink_to(file)
    elif kind == 2:
        file.symlink_to("/dev/zero")
    elif kind == 3:
        file.mkdir()
    elif kind == 4:
        (folder / "hf_quant_config.json").write_bytes(data[::-1])
        file.write_bytes(data)
    else:
        file.write_bytes(data)
        return rng.choice(("config.json", "./config.json", "."))
    notes.append(f"file {kind}")
    return "config.json"


def _asked(rng: Random, path: str) -> tuple[str, ...]:
    return rng.choice((
        ("calc", "kv-size", "--model", path, "--tokens", rng.choice(("1", "131072", "128Ki"))),
        ("calc", "kv-size", "--model", path, "--tokens", "4096", "--tp", rng.choice(("1", "3", "8", "64"))),
        ("calc", "step", "--model", path, "--hardware", "h100-sxm5-80gb", "--batch", "4", "--context", "1000"),
        ("calc", "concurrency", "--model", path, "--hardware", "h100-sxm5-80gb", "--tokens", "4096"),
        ("calc", "break-even", "--model", path, "--hardware", "h100-sxm5-80gb", "--span", "1000"),
        ("calc", "t-avg", "--model", path, "--hardware", "a100-sxm4-80gb", "--p-hit", "0.5"),
    ))  # fmt: skip


def _run(rng: Random, folder: Path) -> Command:
    values, notes = _config(rng)
    path = _written(rng, folder, _bytes(rng, values, notes), notes)
    preset = rng.choice(("vllm", "sglang-hicache"))
    more = rng.choice(("", "offload: {residency: 0.5}", "tiers: {dram: {capacity: 10GiB}}"))
    (folder / "s.yaml").write_text(
        f"name: x\nmodel: {path}\nhardware: h100-sxm5-80gb\nengine: {{preset: {preset}}}\n"
        "workload: {kind: plain, requests: 3, arrival: {process: all_at_once}, prompt_tokens: 100, output_tokens: 5}\n"
        f"{more}\n"
    )
    return Command(("run", "s.yaml", "--json", "--out", "out"), out="out", holds="summary.json", json=True,
                   notes=tuple(notes))  # fmt: skip


GENERATORS: dict[str, Generator] = {"config": _size, "config-run": _run}
