"""Decoders with attention in every layer, by ``model_type``.

Defaults are those of the classes in transformers 5.24.0 (``models/*/configuration_*.py``); classes without a
default of their own for KV heads have one a head, and for the width of a head hidden / heads.
"""

from __future__ import annotations

from simkv.model.config.attention import (
    by_kind,
    falcon,
    global_and_local,
    in_attn_config,
    latent,
    multi_query,
    multi_query_groups,
    other_when_sliding,
    own_when_sliding,
)
from simkv.model.config.extras import cross_attention, per_layer_embeddings
from simkv.model.config.family import Family, plain_mlp
from simkv.model.config.layout import (
    FULL,
    SLIDING,
    STATE,
    by_numbers,
    full,
    full_but_cross,
    full_every,
    full_where_no_rope,
    full_without_windows,
    or_else,
    sliding,
    sliding_from_max_window_layers,
)
from simkv.model.config.mixed import (
    heads_by_layer,
    indexed,
    indexer_weights,
    searched,
    searched_layout,
    searched_width,
)
from simkv.model.config.mlp import expansion, four_times_hidden, half, in_ffn_config

_LLAMA = {
    "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 11008,
    "vocab_size": 32000, "max_position_embeddings": 2048,
}  # fmt: skip
_MISTRAL = _LLAMA | {"num_key_value_heads": 8, "intermediate_size": 14336, "max_position_embeddings": 131072}
_QWEN2 = {
    "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 32,
    "intermediate_size": 22016, "vocab_size": 151936, "max_position_embeddings": 32768, "use_sliding_window": False,
    "sliding_window": 4096, "max_window_layers": 28,
}  # fmt: skip
_GEMMA2 = {
    "num_hidden_layers": 26, "hidden_size": 2304, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "intermediate_size": 9216, "vocab_size": 256000, "max_position_embeddings": 8192, "sliding_window": 4096,
    "tie_word_embeddings": True,
}  # fmt: skip
_GEMMA3 = _GEMMA2 | {"vocab_size": 262208, "max_position_embeddings": 131072}
_GEMMA3N = _GEMMA3 | {
    "num_hidden_layers": 35, "hidden_size": 2048, "num_key_value_heads": 2, "intermediate_size": 16384,
    "vocab_size": 262400, "max_position_embeddings": 32768, "sliding_window": 512, "num_kv_shared_layers": 15,
    "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144, "laurel_rank": 64,
    "altup_num_inputs": 4,
}  # fmt: skip
_GEMMA4 = _GEMMA2 | {
    "num_hidden_layers": 30, "vocab_size": 262144, "max_position_embeddings": 131072, "sliding_window": 512,
    "global_head_dim": 512, "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144,
}  # fmt: skip
_LLAMA4 = {
    "num_hidden_layers": 48, "hidden_size": 5120, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 8192, "dense_intermediate_size": 16384, "vocab_size": 202048,
    "max_position_embeddings": 131072, "attention_chunk_size": 8192, "num_experts": 16, "num_experts_per_tok": 1,
    "interleave_moe_layer_step": 1, "n_shared_experts": 1,
}  # fmt: skip
_GPT_OSS = {
    "num_hidden_layers": 36, "hidden_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
    "intermediate_size": 2880, "vocab_size": 201088, "max_position_embeddings": 131072, "sliding_window": 128,
    "num_experts": 128, "num_experts_per_tok": 4,
}  # fmt: skip
_DEEPSEEK = {
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
}  # fmt: skip
_TIED = {"tie_word_embeddings": True}

_GPT2 = Family(_TIED, width=four_times_hidden, matrices=plain_mlp, learned=0)
_GPTJ = Family(width=four_times_hidden, matrices=plain_mlp)
_PLAIN_MLP = Family(matrices=plain_mlp)
_LATENT = Family(_DEEPSEEK, attention=by_kind(latent))
_INDEXED = Family(_DEEPSEEK, attention=indexed, extras=indexer_weights)
_QWEN2_LIKE = Family(_QWEN2, layout=sliding_from_max_window_layers)
_GEMMA2_LIKE = Family(_GEMMA2, layout=full_every(2, key=""))
_GEMMA3_LIKE = Family(_GEMMA3, layout=full_every(6))
_GEMMA3N_LIKE = Family(_GEMMA3N, layout=full_every(5, key=""), extras=per_layer_embeddings)
_GEMMA4_LIKE = Family(
    _GEMMA4, layout=full_every(6, key="", last=True), attention=by_kind(global_and_local), extras=per_layer_embeddings,
    dense_beside_experts=True,
)  # fmt: skip
_LLAMA4_LIKE = Family(_LLAMA4, layout=full_where_no_rope)
_MLLAMA = _MISTRAL | {"num_hidden_layers": 40, "vocab_size": 128256}
_STEP = Family(attention=by_kind(other_when_sliding))

DECODERS: dict[str, Family] = {
    **dict.fromkeys(("llama", "llava", "llava_llama", "vicuna"), Family(_LLAMA)),
    **dict.fromkeys(
        ("yi", "aquila", "baichuan", "internlm", "internlm2", "orion", "xverse", "minicpm", "deepseek", "granite",
         "granitemoe", "granitemoeshared", "olmo", "olmo2", "olmoe", "exaone", "helium", "dots1", "skywork",
         "telechat", "telechat2", "solar", "solar_open", "bailing_moe", "bailing_moe_v2", "nanochat", "hunyuan",
         "hunyuan_v1_dense", "hunyuan_v1_moe", "flex_olmo", "diffllama", "stablelm"),
        Family(),
    ),
    **dict.fromkeys(("glm", "glm4", "glm4v_text", "glm4v"), Family({"num_key_value_heads": 2, "head_dim": 128})),
    **dict.fromkeys(("glm4_moe", "glm4v_moe", "glm4v_moe_text"), Family({"num_key_value_heads": 8})),
    **dict.fromkeys(("ernie4_5",), Family({"num_key_value_heads": 2, "head_dim": 128} | _TIED)),
    **dict.fromkeys(("ernie4_5_moe",), Family({"num_key_value_heads": 4, "n_shared_experts": 2,
                                                "moe_layer_start_index": 1} | _TIED)),
    "minimax_m2": Family({"num_key_value_heads": 8, "head_dim": 128},
                         layout=or_else("attn_type_list", by_numbers("attn_type_list", STATE, FULL), full)),
    "internlm3": Family({"num_key_value_heads": 2, "head_dim": 128}),
    "seed_oss": Family({"num_key_value_heads": 8, "head_dim": 128}),
    "smollm3": Family({"num_key_value_heads": 4} | _TIED),
    "cohere": Family(_TIED),
    "gemma": Family({"num_key_value_heads": 16, "head_dim": 256} | _TIED),
    "mistral": Family(_MISTRAL | {"sliding_window": 4096}, layout=sliding),
    "ministral": Family(_MISTRAL | {"sliding_window": 4096}, layout=sliding),
    "ministral3": Family(_MISTRAL | {"head_dim": 128}, layout=sliding),
    "mixtral": Family(_MISTRAL | {"num_experts": 8, "num_experts_per_tok": 2}, layout=sliding),
    "phimoe": Family({"num_key_value_heads": 8, "num_experts": 16, "num_experts_per_tok": 2}, layout=sliding),
    **dict.fromkeys(("phi3", "phi4_multimodal", "phi4mm", "phi3_v"), Family(layout=sliding)),
    **dict.fromkeys(("qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"), _QWEN2_LIKE),
    "qwen2_moe": Family({"num_key_value_heads": 16, "use_sliding_window": False, "sliding_window": 4096,
                         "decoder_sparse_step": 1, "shared_expert_intermediate_size": 5632}),
    **dict.fromkeys(
        ("qwen3", "qwen3_vl", "qwen3_vl_text"),
        Family(_QWEN2 | {"head_dim": 128}, layout=sliding_from_max_window_layers),
    ),
    **dict.fromkeys(
        ("qwen3_moe", "qwen3_vl_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text"),
        Family({"num_key_value_heads": 4, "use_sliding_window": False, "sliding_window": 4096,
                "decoder_sparse_step": 1}, layout=sliding),
    ),
    "qwen": Family(width=half),
    **dict.fromkeys(("gemma2", "vaultgemma"), _GEMMA2_LIKE),
    **dict.fromkeys(("gemma3", "gemma3_text"), _GEMMA3_LIKE),
    **dict.fromkeys(("gemma3n", "gemma3n_text"), _GEMMA3N_LIKE),
    **dict.fromkeys(("gemma4", "gemma4_text"), _GEMMA4_LIKE),
    "gpt_oss": Family(_GPT_OSS, layout=full_every(2, key="")),
    "olmo3": Family({"sliding_window": 4096}, layout=full_every(4, key="")),
    "cohere2": Family({"sliding_window": 4096} | _TIED, layout=full_every(4)),
    "cohere2_moe": Family({"sliding_window": 4096, "head_dim": 128} | _TIED, layout=full_every(4)),
    "exaone4": Family({"sliding_window": 4096, "num_key_value_heads": 32}, layout=full_every(4)),
    "exaone_moe": Family({"sliding_window": 4096, "num_key_value_heads": 32, "n_shared_experts": 1},
                         layout=full_every(4)),
    "afmoe": Family({"sliding_window": 1024, "head_dim": 128, "n_shared_experts": 2, "num_dense_layers": 1},
                    layout=full_every(4, key="global_attn_every_n_layers")),
    "mimo_v2_flash": Family({"sliding_window": 129, "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128},
                            layout=or_else("hybrid_layer_pattern", by_numbers("hybrid_layer_pattern", FULL, SLIDING),
                                           full_every(6, key="", first=True)),
                            attention=by_kind(own_when_sliding)),
    "laguna": Family({"sliding_window": 512}, layout=sliding, attention=heads_by_layer),
    "nemotron-nas": Family(layout=searched_layout, attention=searched, width=searched_width),
    "mimo": _QWEN2_LIKE,
    **dict.fromkeys(("step3p5", "step3p7", "step3p7_flash"), _STEP),
    **dict.fromkeys(("llama4", "llama4_text"), _LLAMA4_LIKE),
    **dict.fromkeys(("mllama", "mllama_text_model"), Family(_MLLAMA, layout=full_but_cross, extras=cross_attention)),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "kimi_k2", "kimi_k25", "deepseek_vl_v2", "glm4_moe_lite", "mistral4",
                     "mistral_large3", "youtu"), _LATENT),
    "minicpm3": Family({"kv_lora_rank": 256, "q_lora_rank": 768, "qk_rope_head_dim": 32, "qk_nope_head_dim": 64},
                       attention=by_kind(latent)),
    **dict.fromkeys(("deepseek_v32", "deepseek_v3_2", "glm_moe_dsa"), _INDEXED),
    "gpt2": _GPT2,
    "biogpt": Family(_TIED, width=four_times_hidden, matrices=plain_mlp, learned=2),
    "xglm": Family(_TIED, width=four_times_hidden, matrices=plain_mlp),
    "gpt_bigcode": Family(_TIED, attention=by_kind(multi_query), width=four_times_hidden, matrices=plain_mlp,
                          learned=0),
    **dict.fromkeys(("gptj", "codegen"), _GPTJ),
    "gpt_neox": Family(width=four_times_hidden, matrices=plain_mlp),
    "opt": Family(_TIED, matrices=plain_mlp, learned=2),
    "bloom": Family(_TIED | {"max_position_embeddings": 2048}, width=four_times_hidden, matrices=plain_mlp),
    **dict.fromkeys(("falcon", "RefinedWeb", "RefinedWebModel"),
                    Family(_TIED | {"max_position_embeddings": 2048}, attention=by_kind(falcon),
                           width=four_times_hidden, matrices=plain_mlp)),
    "mpt": Family(_TIED, attention=by_kind(in_attn_config), width=expansion, matrices=plain_mlp),
    "dbrx": Family(attention=by_kind(in_attn_config), width=in_ffn_config),
    **dict.fromkeys(("phi", "phi-msft", "persimmon", "nemotron", "arcee", "apertus"), _PLAIN_MLP),
    "starcoder2": Family({"num_key_value_heads": 2} | _TIED, layout=sliding, matrices=plain_mlp),
    "chatglm": Family(attention=by_kind(multi_query_groups)),
}  # fmt: skip

UNFAMILIAR = Family(layout=full_without_windows, familiar=False)
"""A class that isn't known: its file must say everything, and nothing that isn't understood."""
