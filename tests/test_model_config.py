"""Models by config.json: published files sized as worked out by hand, each trap as a small file, hostile files."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simkv.catalog import load_model
from simkv.errors import InputError
from simkv.formulas.kv_size import (
    all_layers_bytes_per_token,
    kv_bytes,
    kv_bytes_per_token,
    state_bytes_per_sequence,
)
from simkv.model import ModelShape
from simkv.model.config import read_config, shape_of_config
from simkv.scenario.resolve import resolve, resolve_text

Config = dict[str, Any]

LLAMA: Config = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip
LAYER = 2 * 8 * 128 * 2
"""Bytes of one token in one layer of ``LLAMA``: K and V of 8 heads of 128 numbers."""
MLA: Config = LLAMA | {
    "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "kv_lora_rank": 512, "q_lora_rank": 1536,
    "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "num_key_value_heads": 32,
}  # fmt: skip
LATENT = (512 + 64) * 2
DELTA: Config = LLAMA | {
    "model_type": "qwen3_next", "architectures": ["Qwen3NextForCausalLM"], "head_dim": 128,
    "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_num_value_heads": 32,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
}  # fmt: skip
NEMOTRON: Config = LLAMA | {
    "model_type": "nemotron_h", "architectures": ["NemotronHForCausalLM"], "num_hidden_layers": 6,
    "hybrid_override_pattern": "M-M*E-", "head_dim": 128, "mamba_num_heads": 64, "mamba_head_dim": 64, "n_groups": 8,
    "ssm_state_size": 128, "conv_kernel": 4, "n_routed_experts": 16, "num_experts_per_tok": 2,
    "moe_intermediate_size": 512, "n_shared_experts": 1, "moe_shared_expert_intermediate_size": 1024,
}  # fmt: skip


def size(config: Config) -> ModelShape:
    """Return the shape of a configuration."""
    return shape_of_config(config, "small")


def without(config: Config, *keys: str) -> Config:
    """Return a configuration with some keys left out."""
    return {key: value for key, value in config.items() if key not in keys}


# What was published


def expected(shared: Path) -> dict[str, dict[str, str]]:
    """Return the rows worked out by hand, by file."""
    with (shared / "catalog" / "kv_expected.csv").open(encoding="utf-8") as file:
        return {row["file"]: row for row in csv.DictReader(file)}


@pytest.mark.shared
def test_published_configs_are_sized_as_worked_out(shared: Path) -> None:
    for file, row in expected(shared).items():
        path = str(shared / "catalog" / "hf_configs" / file)
        if not row["growth_bytes_per_token"].isdigit():
            with pytest.raises(InputError, match="compressed caches"):
                read_config(path)
            continue
        model = read_config(path)
        assert kv_bytes_per_token(model) == int(row["growth_bytes_per_token"]), file
        assert all_layers_bytes_per_token(model) == int(row["all_layers_bytes_per_token"]), file
        assert model.name == Path(file).stem and model.source == path


@pytest.mark.shared
def test_published_windows_and_states_are_as_worked_out(shared: Path) -> None:
    for file, row in expected(shared).items():
        if not row["growth_bytes_per_token"].isdigit():
            continue
        model, text = read_config(str(shared / "catalog" / "hf_configs" / file)), row["window_or_state"]
        windows = re.match(r"(\d+) layers.*?(?:<=|within) (\d+)(?: tokens)?$|(\d+) layers x \d+ B within (\d+)", text)
        if windows:
            layers, window = [int(group) for group in windows.groups() if group]
            assert [(k.layers, k.window) for k in model.windowed_attention] == [(layers, window)], file
        states = re.match(r"(\d+) (?:GDN layers|.*states)", text)
        assert [kind.layers for kind in model.state] == ([int(states[1])] if states else []), file
        figures = re.search(r"conv (\d+) \+ ssm (\d+) B", text)
        if figures:
            kind = model.state[0]
            assert (kind.conv_bytes, kind.recurrent_bytes) == (int(figures[1]), int(figures[2])), file
            assert state_bytes_per_sequence(model) == kind.layers * (int(figures[1]) + int(figures[2]))


@pytest.mark.shared
def test_every_published_file_is_sized_or_refused_with_the_reason(shared: Path) -> None:
    refused = {}
    for path in sorted((shared / "catalog" / "hf_configs").glob("*.json")):
        try:
            assert read_config(str(path)).params > 0
        except InputError as error:
            (problem,) = error.problems
            assert problem.file == str(path) and problem.line and problem.mend
            refused[path.stem] = problem.what
    assert list(refused) == [
        "MiniMaxAI--MiniMax-M3", "deepseek-ai--DeepSeek-V4-Flash", "deepseek-ai--DeepSeek-V4-Pro",
    ]  # fmt: skip
    assert "index whose cache the file doesn't fix" in refused["MiniMaxAI--MiniMax-M3"]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("file", "billions", "active"),
    [
        ("deepseek-v3", 671, 37), ("zai-org--GLM-5-FP8", 744, 40), ("moonshotai--Kimi-K2-Instruct", 1026, 32),
        ("moonshotai--Kimi-Linear-48B-A3B-Instruct", 49, 3.4), ("openai--gpt-oss-120b", 117, 5.1),
        ("meta-llama--Llama-4-Maverick-17B-128E-Instruct", 400, 17), ("MiniMaxAI--MiniMax-M1", 456, 45.9),
        ("Qwen--Qwen3-Next-80B-A3B-Thinking", 80, 3.6), ("google--gemma-4-26B-A4B", 25.2, 3.8),
        ("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31.6, 3.6), ("stepfun-ai--Step-3.7-Flash", 196, 11),
        ("google-t5--t5-small", 0.0605, 0.0416), ("EleutherAI--gpt-j-6b", 6.05, 6.05),
    ],
)  # fmt: skip
def test_parameters_are_what_the_makers_say(shared: Path, file: str, billions: float, active: float) -> None:
    model = read_config(str(shared / "catalog" / "hf_configs" / f"{file}.json"))
    assert model.params / 1e9 == pytest.approx(billions, rel=0.01)
    assert model.params_active / 1e9 == pytest.approx(active, rel=0.15)  # makers may leave out embeddings


# Heads


@pytest.mark.parametrize(
    ("config", "bytes_per_layer"),
    [
        (LLAMA, LAYER),
        (LLAMA | {"head_dim": 64}, LAYER // 2),
        (LLAMA | {"head_dim": None}, LAYER),
        (LLAMA | {"partial_rotary_factor": 0.5, "rotary_dim": 64}, LAYER),
        (LLAMA | {"num_key_value_heads": None}, 4 * LAYER),
        (without(LLAMA, "num_key_value_heads"), 4 * LAYER),
        (LLAMA | {"num_key_value_heads": [8] * 32}, LAYER),
        (without(LLAMA, "num_key_value_heads") | {"model_type": "mistral", "sliding_window": None}, LAYER),
        (without(LLAMA, "num_key_value_heads") | {"model_type": "gemma2", "sliding_window": None}, 2 * 4 * 256 * 2),
        (LLAMA | {"model_type": "qwen3", "hidden_size": 5120}, LAYER),
        (LLAMA | {"model_type": "gpt_oss", "hidden_size": 2880, "num_local_experts": 8, "num_experts_per_tok": 2,
                  "sliding_window": None}, LAYER // 2),
    ],
)  # fmt: skip
def test_heads_are_read_where_given_else_taken_from_the_class(config: Config, bytes_per_layer: int) -> None:
    assert kv_bytes_per_token(size(config)) == 32 * bytes_per_layer


def test_gpt2_names_are_understood() -> None:
    config = {"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024, "n_inner": None,
              "vocab_size": 50257}  # fmt: skip
    model = size(config)
    assert kv_bytes_per_token(model) == 12 * 2 * 768 * 2 and model.intermediate == 3072 and model.tie_embeddings
    assert model.params / 1e6 == pytest.approx(124.4, rel=0.01)


@pytest.mark.parametrize(
    ("more", "kv_heads"),
    [
        ({"model_type": "falcon", "multi_query": True}, 1),
        ({"model_type": "falcon", "multi_query": False}, 32),
        ({"model_type": "falcon", "new_decoder_architecture": True, "num_kv_heads": 8, "multi_query": True}, 8),
        ({"model_type": "gpt_bigcode", "multi_query": True}, 1),
        ({"model_type": "gpt_bigcode", "multi_query": False}, 32),
        ({"model_type": "mpt", "attn_config": {"kv_n_heads": 4}}, 4),
        ({"model_type": "mpt", "attn_config": {"attn_type": "multihead_attention"}}, 32),
        ({"model_type": "mpt", "attn_config": {"attn_type": "multiquery_attention"}}, 1),
        ({"model_type": "chatglm", "multi_query_attention": True, "multi_query_group_num": 2}, 2),
        ({"model_type": "chatglm", "multi_query_attention": False, "multi_query_group_num": 2}, 32),
    ],
)
def test_older_ways_to_share_heads_are_read(more: Config, kv_heads: int) -> None:
    model = size(without(LLAMA, "num_key_value_heads") | more)
    assert kv_bytes_per_token(model) == 32 * 2 * kv_heads * 128 * 2


def test_latents_count_once_whatever_the_heads() -> None:
    model = size(MLA | {"head_dim": 192})
    assert kv_bytes_per_token(model) == 32 * LATENT == kv_bytes_per_token(model, tensor_parallel=1)
    assert kv_bytes_per_token(model, tensor_parallel=8) == 8 * 32 * LATENT


def test_indexer_keeps_a_byte_a_number_and_a_scale() -> None:
    dsa = MLA | {"model_type": "deepseek_v32", "index_head_dim": 128, "index_n_heads": 64, "index_topk": 2048}
    assert kv_bytes_per_token(size(dsa)) == 32 * (LATENT + 132)
    assert kv_bytes_per_token(size(dsa), "fp8") == 32 * (656 + 132)  # as logged for DeepSeek-V3.2
    shared_index = dsa | {"indexer_types": ["full"] * 2 + ["shared"] * 30}
    assert kv_bytes_per_token(size(shared_index)) == 32 * LATENT + 2 * 132
    every_fourth = dsa | {"index_topk_freq": 4, "index_skip_topk_offset": 2}
    assert kv_bytes_per_token(size(every_fourth)) == 32 * LATENT + 132 * sum(
        max(number - 1, 0) % 4 == 0 for number in range(32)
    )


# Windows


@pytest.mark.parametrize(
    ("more", "full"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, 0),
        ({"model_type": "mistral", "sliding_window": None}, 32),
        ({"model_type": "mistral"}, 0),
        ({"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}, 32),
        ({"model_type": "phi3", "sliding_window": 2047}, 0),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False, "max_window_layers": 16}, 32),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 28}, 28),
        ({"model_type": "qwen3", "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 0}, 0),
        ({"model_type": "gemma2"}, 16),
        ({"model_type": "gemma3_text", "sliding_window": 1024}, 5),
        ({"model_type": "gemma3_text", "sliding_window": 1024, "sliding_window_pattern": 4}, 8),
        ({"model_type": "gemma3_text", "sliding_window": 1024, "_sliding_window_pattern": 2}, 16),
        ({"model_type": "gemma2", "sliding_window_size": 4096}, 16),
        (
            {
                "model_type": "gemma3_text",
                "sliding_window_pattern": 6,
                "layer_types": ["full_attention", "sliding_attention"] * 16,
            },
            16,
        ),
        ({"model_type": "cohere2"}, 8),
        ({"model_type": "exaone4", "sliding_window": 4096, "sliding_window_pattern": "LLLG"}, 8),
        ({"model_type": "mistral", "sliding_window": False}, 32),
        ({"model_type": "exaone4", "sliding_window": None, "sliding_window_pattern": None}, 32),
        ({"model_type": "olmo3", "layer_types": ["full_attention"] * 10 + ["sliding_attention"] * 22}, 10),
        ({"model_type": "llama", "sliding_window": 4096}, 32),
    ],
)
def test_windows_are_on_where_class_and_file_say_so(more: Config, full: int) -> None:
    model = size(LLAMA | {"head_dim": 128} | more)
    assert kv_bytes_per_token(model) == full * LAYER
    assert all_layers_bytes_per_token(model) == 32 * LAYER


def test_window_stops_growing_at_its_length() -> None:
    model = size(LLAMA | {"model_type": "mistral", "sliding_window": 100})
    assert kv_bytes(model, 100) == kv_bytes(model, 100_000) == 100 * 32 * LAYER


@pytest.mark.parametrize(
    ("more", "full"),
    [
        ({}, 8),
        ({"no_rope_layers": []}, 8),
        ({"no_rope_layers": [1, 0] * 16}, 16),
        ({"no_rope_layer_interval": 8}, 4),
        ({"attention_chunk_size": None}, 32),
    ],
)
def test_chunked_layers_are_those_with_rope(more: Config, full: int) -> None:
    llama4 = LLAMA | {"model_type": "llama4_text", "num_local_experts": 16, "num_experts_per_tok": 1}
    model = size(llama4 | {"attention_chunk_size": 8192} | more)
    assert kv_bytes_per_token(model) == full * LAYER
    assert all(kind.chunked and kind.window == 8192 for kind in model.windowed_attention)


def test_global_layers_with_other_heads_are_sized_apart() -> None:
    gemma4 = LLAMA | {
        "model_type": "gemma4_text", "head_dim": 256, "global_head_dim": 512, "num_global_key_value_heads": 2,
        "sliding_window": 1024, "layer_types": (["sliding_attention"] * 7 + ["full_attention"]) * 4,
    }  # fmt: skip
    assert kv_bytes_per_token(size(gemma4 | {"attention_k_eq_v": True})) == 4 * 2 * 2 * 512 * 2
    assert kv_bytes_per_token(size(gemma4 | {"attention_k_eq_v": False})) == 4 * 2 * 8 * 512 * 2
    shared = size(gemma4 | {"num_kv_shared_layers": 8})
    assert all_layers_bytes_per_token(shared) == 3 * 2 * 8 * 512 * 2 + 21 * 2 * 8 * 256 * 2


def test_layers_that_read_another_ones_cache_keep_none() -> None:
    gemma3n = LLAMA | {"model_type": "gemma3n_text", "head_dim": 128, "sliding_window": 512, "num_hidden_layers": 35,
                       "num_kv_shared_layers": 15}  # fmt: skip
    assert kv_bytes_per_token(size(gemma3n)) == 4 * LAYER  # of layers 5, 10, ..., 35 the last three share
    assert all_layers_bytes_per_token(size(gemma3n)) == 20 * LAYER
    pairs = size(LLAMA | {"model_type": "hunyuan", "use_cla": True, "cla_share_factor": 2})
    assert kv_bytes_per_token(pairs) == 16 * LAYER


def test_sliding_layers_with_heads_of_their_own_are_sized_apart() -> None:
    mimo = LLAMA | {
        "model_type": "mimo_v2_flash", "num_hidden_layers": 4, "head_dim": 192, "v_head_dim": 128,
        "num_key_value_heads": 4, "hybrid_layer_pattern": [0, 1, 1, 0], "sliding_window_size": 128,
        "swa_num_key_value_heads": 8, "swa_head_dim": 192, "swa_v_head_dim": 128,
    }  # fmt: skip
    model = size(mimo)
    assert kv_bytes_per_token(model) == 2 * 4 * (192 + 128) * 2
    assert all_layers_bytes_per_token(model) == 2 * (4 + 8) * (192 + 128) * 2
    assert [kind.window for kind in model.windowed_attention] == [129]


# States


@pytest.mark.parametrize(
    ("more", "full"),
    [
        ({}, 8),
        ({"full_attention_interval": 8}, 4),
        ({"layer_types": ["linear_attention"] * 30 + ["full_attention"] * 2}, 2),
    ],
)
def test_gated_delta_net_keeps_a_state_a_sequence(more: Config, full: int) -> None:
    model = size(DELTA | more)
    assert kv_bytes_per_token(model) == full * LAYER
    assert state_bytes_per_sequence(model) == (32 - full) * (49152 + 2097152)
    narrow = size(DELTA | more | {"mamba_ssm_dtype": "bfloat16"})
    assert state_bytes_per_sequence(narrow) == (32 - full) * (49152 + 1048576)


def test_kda_layers_are_numbered_from_one() -> None:
    linear = {"full_attn_layers": [4], "kda_layers": [1, 2, 3], "num_heads": 32, "head_dim": 128,
              "short_conv_kernel_size": 4}  # fmt: skip
    config = MLA | {"model_type": "kimi_linear", "num_hidden_layers": 4, "linear_attn_config": linear}
    model = size(config)
    assert kv_bytes_per_token(model) == LATENT
    assert state_bytes_per_sequence(model) == 3 * (3 * 4096 * 3 * 2 + 32 * 128 * 128 * 4)
    with pytest.raises(InputError, match="0 is no layer: they go from 1 to 4"):
        size(config | {"linear_attn_config": linear | {"full_attn_layers": [0]}})
    with pytest.raises(InputError, match="not 4 in all"):
        size(config | {"linear_attn_config": linear | {"kda_layers": [1, 2]}})


def test_lightning_layers_are_the_zeros() -> None:
    model = size(LLAMA | {"model_type": "minimax_m1", "head_dim": 128, "attn_type_list": [0, 0, 0, 1] * 8})
    assert kv_bytes_per_token(model) == 8 * LAYER
    assert state_bytes_per_sequence(model) == 24 * 32 * 128 * 128 * 2


def test_pattern_letters_are_mamba_attention_mlp_and_experts() -> None:
    model = size(NEMOTRON)
    assert kv_bytes_per_token(model) == LAYER
    assert [kind.layers for kind in model.state] == [2] and model.mlp_layers == 2 and model.moe_layers == 1
    conv, state = (64 * 64 + 2 * 8 * 128) * 3, 64 * 64 * 128
    assert state_bytes_per_sequence(model) == 2 * (2 * conv + 4 * state)
    assert model.mlp_matrices == 2 and model.moe is not None and model.moe.shared_width == 1024


def test_pure_mamba_has_no_growing_cache() -> None:
    model = size({"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24, "vocab_size": 50280,
                  "state_size": 16, "conv_kernel": 4, "expand": 2, "time_step_rank": 48})  # fmt: skip
    assert kv_bytes_per_token(model) == all_layers_bytes_per_token(model) == 0
    assert state_bytes_per_sequence(model) == 24 * 2 * (1536 * 3 + 1536 * 16)
    assert model.attention_kind == "none+mamba" and model.params / 1e6 == pytest.approx(129, rel=0.01)


@pytest.mark.parametrize(
    ("more", "attention", "states"),
    [
        ({"model_type": "jamba", "attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16}, 4, 28),
        ({"model_type": "bamba", "attn_layer_indices": [9, 18, 27]}, 3, 29),
        ({"model_type": "granitemoehybrid", "layer_types": ["mamba"] * 28 + ["attention"] * 4, "num_local_experts": 0,
          "shared_intermediate_size": 8192, "mamba_n_heads": 128, "mamba_d_head": 64}, 4, 28),
        ({"model_type": "falcon_h1", "mamba_d_ssm": 8192}, 32, 32),
        ({"model_type": "lfm2", "full_attn_idxs": [2, 5], "conv_L_cache": 3}, 2, 30),
        ({"model_type": "lfm2", "layer_types": ["conv"] * 31 + ["full_attention"], "conv_L_cache": 3}, 1, 31),
    ],
)  # fmt: skip
def test_hybrids_have_attention_where_the_file_says(more: Config, attention: int, states: int) -> None:
    model = size(LLAMA | more)
    assert kv_bytes_per_token(model) == attention * LAYER
    assert [kind.layers for kind in model.state] == [states] and state_bytes_per_sequence(model) > 0


# Experts


@pytest.mark.parametrize(
    ("more", "layers"),
    [
        ({}, 32),
        ({"first_k_dense_replace": 3}, 29),
        ({"first_k_dense_replace": 2, "moe_layer_freq": 2}, 15),
        ({"moe_layer_freq": [0, 1] * 16}, 16),
        ({"decoder_sparse_step": 2}, 16),
        ({"decoder_sparse_step": 1, "mlp_only_layers": [0, 5]}, 30),
        ({"interleave_moe_layer_step": 2}, 16),
        ({"mlp_layer_types": ["dense"] * 4 + ["sparse"] * 28}, 28),
        ({"moe_layers_enum": "3,4,5"}, 3),
        ({"num_dense_layers": 1}, 31),
    ],
)
def test_layers_with_experts_are_counted(more: Config, layers: int) -> None:
    model = size(LLAMA | {"model_type": "deepseek", "n_routed_experts": 8, "num_experts_per_tok": 2,
                          "moe_intermediate_size": 1024} | more)  # fmt: skip
    assert model.moe_layers == layers and model.mlp_layers == 32 - layers
    assert model.params - model.params_active == layers * 6 * 3 * 4096 * 1024


def test_shared_experts_have_their_own_width_or_the_routed_ones() -> None:
    moe = LLAMA | {"model_type": "deepseek", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 1024}
    widths = [
        size(moe | more).moe.shared_width  # type: ignore[union-attr]
        for more in ({}, {"n_shared_experts": 2}, {"n_shared_experts": None}, {"shared_expert_intermediate_size": 512})
    ]
    assert widths == [0, 2048, 0, 512]


def test_one_expert_is_a_dense_model() -> None:
    assert size(LLAMA | {"model_type": "jamba", "num_experts": 1, "mamba_d_state": 16}).moe is None


def test_experts_of_less_than_one_are_refused() -> None:
    with pytest.raises(InputError, match="more than the 2 experts"):
        size(LLAMA | {"model_type": "mixtral", "num_local_experts": 2, "num_experts_per_tok": 3})


# Nesting, number formats, encoders


@pytest.mark.parametrize("key", ["text_config", "llm_config", "language_config"])
def test_inner_configuration_is_the_language_models(key: str) -> None:
    model = size({"model_type": "somevl", key: without(LLAMA, "torch_dtype"), "dtype": "float16",
                  "tie_word_embeddings": True, "vision_config": {"hidden_size": 1024}})  # fmt: skip
    assert kv_bytes_per_token(model) == 32 * LAYER and model.dtype == "fp16"
    assert not model.tie_embeddings and "towers" in model.note


def test_keys_that_only_sound_like_it_are_harmless() -> None:
    harmless = {"for_llm_compressor": True, "chunk_size_feed_forward": 1, "pruned_heads": {}, "compression_config": {},
                "rope_local_base_freq": 10000.0, "image_token_index": 5, "attention_dropout": 0.5}  # fmt: skip
    assert kv_bytes_per_token(size(LLAMA | harmless)) == 32 * LAYER


def test_length_missing_is_the_class_own_or_a_fault() -> None:
    falcon = size(without(LLAMA, "max_position_embeddings") | {"model_type": "falcon"})
    assert falcon.max_position_embeddings == 2048 and "no longest sequence given" in falcon.note
    with pytest.raises(InputError, match="max_position_embeddings: is missing"):
        size(without(LLAMA, "max_position_embeddings"))


def test_sparse_inner_configuration_takes_the_defaults_of_its_class() -> None:
    inner = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "intermediate_size": 10240}
    model = size({"model_type": "gemma3", "text_config": inner})
    assert (model.attention[0].heads, model.attention[0].kv_heads, model.attention[0].head_dim) == (8, 4, 256)
    assert re.search("left to the class: .*num_attention_heads 8, num_key_value_heads 4, head_dim 256", model.note)
    with pytest.raises(InputError, match="num_attention_heads: is missing"):
        size(inner | {"max_position_embeddings": 1024})


@pytest.mark.parametrize(
    ("more", "dtypes"),
    [
        ({}, ("bf16", "bf16", "", "")),
        ({"torch_dtype": "float16"}, ("fp16", "fp16", "", "")),
        ({"dtype": "torch.bfloat16", "torch_dtype": None}, ("bf16", "bf16", "", "")),
        ({"torch_dtype": "float8_e4m3fn"}, ("bf16", "fp8", "", "")),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, ("bf16", "fp8", "", "")),
        ({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}, ("bf16", "int4", "", "")),
        ({"quantization_config": {"quant_method": "gptq", "bits": 8}}, ("bf16", "int8", "", "")),
        ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}, ("bf16", "int4", "", "")),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}, ("bf16", "nvfp4", "", "")),
        ({"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}},
         ("bf16", "mxfp4", "bf16", "")),
        ({"quantization_config": {"quant_method": "fp8", "ignored_layers": ["mlp"]}}, ("bf16", "bf16", "fp8", "")),
        ({"quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {
            "g": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}}},
            "kv_cache_scheme": {"num_bits": 8}}}, ("bf16", "fp8", "", "")),
        ({"quantization_config": {"quant_method": "sqrt2"}}, ("bf16", "bf16", "", "")),
    ],
)  # fmt: skip
def test_weights_are_in_the_files_format_and_the_cache_is_not(more: Config, dtypes: tuple[str, ...]) -> None:
    model = size(LLAMA | more)
    found = (model.dtype, model.checkpoint_dtype, model.mixer_dtype, model.dense_dtype)
    assert found == (dtypes[0], dtypes[1], dtypes[2], dtypes[3]) or found[:2] == dtypes[:2]
    assert kv_bytes_per_token(model) == 32 * LAYER


def test_dtype_missing_is_noted() -> None:
    assert "no dtype given: bf16" in size(without(LLAMA, "torch_dtype")).note


def test_quantised_experts_leave_the_rest_wide() -> None:
    groups = {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "group_size": 32}}}
    ignore = ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"]
    quantisation = {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ignore}
    model = size(MLA | {"n_routed_experts": 64, "num_experts_per_tok": 4, "quantization_config": quantisation})
    assert (model.checkpoint_dtype, model.mixer_dtype, model.dense_dtype) == ("int4", "bf16", "bf16")
    assert model.expert_dtype == "" and model.weight_group == 32


def test_t5_decoder_grows_and_its_encoder_does_not() -> None:
    model = size({"model_type": "t5", "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8,
                  "num_decoder_layers": 4, "n_positions": 512, "vocab_size": 32128})  # fmt: skip
    assert kv_bytes_per_token(model) == model.encoder_bytes_per_token == 4 * 2 * 8 * 64 * 2
    assert model.layers == 4 and model.held_params > 0


def test_whisper_decoder_is_sized() -> None:
    model = size({"model_type": "whisper", "d_model": 384, "decoder_layers": 4, "decoder_attention_heads": 6,
                  "decoder_ffn_dim": 1536, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536,
                  "max_target_positions": 448, "vocab_size": 51865})  # fmt: skip
    assert kv_bytes_per_token(model) == 4 * 2 * 384 * 2 and model.params / 1e6 == pytest.approx(38, rel=0.05)


def test_layers_that_attend_to_an_image_keep_no_text() -> None:
    model = size(LLAMA | {"model_type": "mllama_text_model", "cross_attention_layers": [3, 8]})
    assert kv_bytes_per_token(model) == 30 * LAYER and model.encoder_bytes_per_token == 2 * LAYER


def test_searched_blocks_have_the_heads_that_are_left() -> None:
    blocks = [
        {"attention": {"n_heads_in_group": 4, "no_op": False}, "ffn": {"ffn_mult": 2.625}},
        {"attention": {"n_heads_in_group": 16}, "ffn": {"ffn_mult": 1.3125}},
        {"attention": {"n_heads_in_group": None, "no_op": True}, "ffn": {"ffn_mult": None, "no_op": True}},
    ]
    config = without(LLAMA, "num_key_value_heads") | {"model_type": "nemotron-nas", "num_hidden_layers": 3}
    model = size(config | {"block_configs": blocks})
    assert kv_bytes_per_token(model) == (8 + 2) * 2 * 128 * 2


# What is refused


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "bert", "hidden_size": 768}, "bert is an encoder"),
        ({"architectures": ["DeepseekV4ForCausalLM"], "hidden_size": 4096}, "compressed caches"),
        (LLAMA | {"model_type": "zamba2", "architectures": ["Zamba2ForCausalLM"]}, "shared attention blocks"),
        (LLAMA | {"model_type": "gemma3_text", "use_bidirectional_attention": True}, "is an encoder"),
        (LLAMA | {"compress_ratios": [0, 4]}, "compress_ratios = .*compressed caches"),
        (LLAMA | {"sparse_attention_config": {"topk": 4}}, "sparse_attention_config = .*sparse attention"),
        (LLAMA | {"model_type": "new_thing", "architectures": ["NewThingForCausalLM"], "kv_lora_rank": 512},
         "kv_lora_rank = 512: speaks of latents"),
        (LLAMA | {"model_type": "new_thing", "architectures": [], "hybrid_pattern": "MM*"}, "kinds of layers"),
        (LLAMA | {"model_type": "new_thing", "architectures": [], "mamba_d_state": 16}, "keep a state"),
        (LLAMA | {"model_type": "new_thing", "architectures": [], "num_memory_heads": 4}, "heads of other layers"),
        (LLAMA | {"model_type": "new_thing", "architectures": [], "sliding_window": 4096}, "not for which layers"),
        (without(LLAMA, "num_key_value_heads") | {"model_type": "new_thing", "architectures": []},
         r"num_key_value_heads: is missing, and what the class \(new_thing\) takes"),
        (LLAMA | {"model_type": "new_thing", "architectures": [], "is_encoder_decoder": True}, "is_encoder_decoder"),
        (LLAMA | {"model_type": "ring_linear", "architectures": []}, "ring_linear sounds like more than plain"),
        (LLAMA | {"model_type": "new_thing", "architectures": [], "total_ut_steps": 4}, "run several times"),
        (LLAMA | {"layer_types": ["full_attention"] * 31}, "lists 31 layers, not 32"),
        (LLAMA | {"layer_types": ["full_attention"] * 31 + ["heavily_compressed_attention"]}, "no kind of layer"),
        (LLAMA | {"layer_types": ["linear_attention"] * 32}, "isn't known to have"),
        (LLAMA | {"num_key_value_heads": 5}, "5 KV heads don't divide 32 heads"),
        (without(LLAMA, "head_dim") | {"hidden_size": 4100}, "head_dim: is missing, and 32 heads don't divide 4100"),
        (LLAMA | {"num_hidden_layers": -1}, "num_hidden_layers = -1: is outside 1 to"),
        (LLAMA | {"num_hidden_layers": 10**9}, "is outside 1 to"),
        (LLAMA | {"hidden_size": "4096"}, "hidden_size = 4096: is not a whole number"),
        (LLAMA | {"hidden_size": True}, "is not a whole number"),
        (LLAMA | {"num_key_value_heads": [8, 4]}, "differs from layer to layer"),
        (LLAMA | {"torch_dtype": "float12"}, "is not a dtype"),
        (LLAMA | {"text_config": [1]} | {"model_type": 7}, "model_type = 7: is not a text"),
        (NEMOTRON | {"hybrid_override_pattern": "M-M*EX"}, "'X' is no kind of layer"),
        (NEMOTRON | {"hybrid_override_pattern": "M-M*"}, "has 4 letters, not 6"),
        ({"tokenizer_class": "LlamaTokenizer"}, "is a tokenizer's configuration"),
        ({"peft_type": "LORA", "r": 16}, "is an adapter's configuration"),
        ({"max_new_tokens": 2048}, "is a generation configuration"),
        ({"dim": 4096, "n_layers": 32, "n_heads": 32}, "not in Hugging Face's format"),
        ({}, "neither model_type nor architectures"),
    ],
)  # fmt: skip
def test_what_cannot_be_sized_is_refused_with_the_reason(config: Config, message: str) -> None:
    with pytest.raises(InputError, match=message):
        size(config)


def test_unfamiliar_class_that_says_everything_is_read_as_a_plain_decoder() -> None:
    config = LLAMA | {"model_type": "new_thing", "architectures": ["NewThingForCausalLM"]}
    model = size(config | {"sliding_window": 512, "layer_types": ["sliding_attention", "full_attention"] * 16})
    assert kv_bytes_per_token(model) == 16 * LAYER
    assert "class not known (new_thing)" in model.note


# Files


def test_folder_and_file_give_the_same_shape_but_for_the_name(tmp_path: Path) -> None:
    folder = tmp_path / "My-Llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "other.json").write_text(json.dumps(LLAMA))
    by_folder, by_file = read_config(str(folder)), read_config(str(tmp_path / "other.json"))
    assert by_folder.name == "My-Llama" and by_file.name == "other"
    assert by_folder.attention == by_file.attention and by_folder.params == by_file.params


def test_infinity_and_nan_are_read(tmp_path: Path) -> None:
    text = json.dumps(NEMOTRON | {"time_step_limit": [0.0, float("inf")], "nothing": float("nan")})
    assert "Infinity" in text and "NaN" in text
    (tmp_path / "config.json").write_text(text)
    assert kv_bytes_per_token(read_config(str(tmp_path))) == LAYER


def test_quantisation_beside_the_file_counts(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "NVFP4"}}))
    assert read_config(str(tmp_path)).checkpoint_dtype == "nvfp4"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", r"config\.json:1: is a Git LFS pointer"),
        (b"[1, 2]", r"config\.json:1: holds no JSON object"),
        (b'{"model_type": "llama",\n "hidden_size": }', r"config\.json:2: is not JSON"),
        (b"", r"is not JSON"),
        (b"\xff\xfe\x00", r"is not UTF-8"),
        (b"[" * 100_000, r"nested too deeply"),
        (b'{"model_type": "llama", "hidden_size": ' + b"1" * 5000 + b"}", r"is not JSON|is outside"),
    ],
)
def test_broken_files_are_refused_with_their_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_config(str(tmp_path))


def test_missing_file_and_empty_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(InputError, match="can't be read: No such file"):
            read_config(str(path))


def test_fault_names_file_line_key_value_and_mend(tmp_path: Path) -> None:
    inner = json.dumps({"model_type": "llama", "hidden_size": 1, "num_hidden_layers": "many"}, indent=2)
    path = tmp_path / "config.json"
    path.write_text(
        '{\n"num_hidden_layers": 1,\n"vision_config": {"num_hidden_layers": 2},\n"text_config": ' + inner + "}"
    )
    with pytest.raises(InputError) as caught:
        read_config(str(path))
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (str(path), 7)
    assert (problem.path, problem.value) == ("text_config.num_hidden_layers", "many") and problem.mend


# Where a model is named


SCENARIO = """
name: small
hardware: h100-sxm5-80gb
workload: {kind: plain, requests: 3, arrival: {process: poisson, rate: 1 req/s}, prompt_tokens: 100, output_tokens: 10}
model: %s
"""


def test_load_model_takes_paths_and_prefers_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(json.dumps(LLAMA | {"num_hidden_layers": 2}))
    (tmp_path / "llama-3.1-8b").mkdir()
    monkeypatch.chdir(tmp_path)
    for path in ("mine", "./mine", "mine/config.json", str(tmp_path / "mine")):
        assert load_model(path).layers == 2
    assert load_model("llama-3.1-8b").layers == 32
    with pytest.raises(InputError, match=r"\./llama-3\.1-8b.*can't be read"):
        load_model("./llama-3.1-8b")
    with pytest.raises(InputError, match="is not a model of the catalogue"):
        load_model("nowhere/at-all")


def test_scenario_takes_a_path_from_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "s.yaml").write_text(SCENARIO % "models/config.json")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "two.json").write_text(json.dumps(LLAMA | {"num_hidden_layers": 2}))
    monkeypatch.chdir(elsewhere)
    assert resolve(str(tmp_path / "s.yaml")).model.layers == 32  # type: ignore[union-attr]
    assert resolve(str(tmp_path / "s.yaml"), ["model=two.json"]).model.layers == 2  # type: ignore[union-attr]


def test_hash_is_the_shapes_not_the_names(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(LLAMA))
    (tmp_path / "b.json").write_text(json.dumps(LLAMA | {"num_hidden_layers": 31}))
    hashes = [
        resolve_text(SCENARIO % model, str(tmp_path / "s.yaml")).scenario_hash
        for model in ("a.json", "b.json", "llama-3.1-8b", "meta-llama/Llama-3.1-8B")
    ]
    assert hashes[0] == hashes[2] == hashes[3] != hashes[1]


def test_scenario_tells_what_is_wrong_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(LLAMA | {"hidden_size": None}, indent=1))
    with pytest.raises(InputError, match=r"a\.json:\d+: hidden_size: is null"):
        resolve_text(SCENARIO % "a.json", str(tmp_path / "s.yaml"))


# Hostile input


def sized_or_refused(config: Config) -> None:
    """Hold a configuration to the law: a shape with sizes that make sense, or an error that says why not."""
    try:
        model = size(config)
    except InputError as error:
        assert all(problem.what and problem.mend for problem in error.problems)
        return
    assert model.layers > 0 and model.hidden > 0 and model.vocab > 0
    assert model.params >= model.params_active > 0
    assert kv_bytes(model, 1000) >= kv_bytes_per_token(model) >= 0
    assert kv_bytes(model, 1000) > 0 or state_bytes_per_sequence(model) > 0
    assert all(kind.layers > 0 and kind.cached_layers >= 0 for kind in model.attention)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
REAL = (
    LLAMA, MLA, DELTA, NEMOTRON,
    {"model_type": "gemma3", "text_config": LLAMA | {"model_type": "gemma3_text", "sliding_window": 64}},
    LLAMA | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2},
    LLAMA | {"model_type": "llama4_text", "num_local_experts": 8, "no_rope_layers": [1, 0] * 16},
    LLAMA | {"quantization_config": {"quant_method": "compressed-tensors", "ignore": ["re:.*x.*", "lm_head"],
                                     "config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 4}}}}},
)  # fmt: skip
WILD = st.sampled_from(
    ["x", "", -1, 0, 1, 3, 10**30, 1.5, float("inf"), float("nan"), None, True, [], [1], {}, {"a": 1}]
)


@given(st.dictionaries(st.sampled_from([*LLAMA, *MLA, "text_config", "layer_types"]) | st.text(max_size=12), JSON))
def test_random_objects_are_sized_or_refused(config: Config) -> None:
    sized_or_refused(config)


@settings(max_examples=300)
@given(st.sampled_from(REAL), st.data())
def test_real_configurations_gone_wrong_are_sized_or_refused(config: Config, data: st.DataObject) -> None:
    changed = json.loads(json.dumps(config))
    for _ in range(data.draw(st.integers(1, 3))):
        inner = changed.get("text_config") or changed.get("quantization_config") or changed
        target = data.draw(st.sampled_from([changed, inner if isinstance(inner, dict) and inner else changed]))
        key = data.draw(st.sampled_from(sorted(target) or ["model_type"]))
        change: Callable[[], object] = data.draw(
            st.sampled_from([lambda k=key, t=target: t.pop(k, None), lambda: None])
        )
        change()
        if key in target:
            target[key] = data.draw(WILD | JSON)
    sized_or_refused(changed)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@example(b'{"model_type": "llama"')
@example(b'{"a": "\\ud800", "model_type": "\\ud800"}')
def test_random_files_are_refused_or_sized(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "config.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_config(str(path))
    assert str(caught.value).encode(errors="strict")
