"""Decoders with attention in every layer, by ``model_type``.

Defaults here are those that aren't sizes (``classes.py``), with the same source.
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

_OFF = {"use_sliding_window": False, "sliding_window": 4096}
_GEMMA3N = {
    "sliding_window": 512, "num_kv_shared_layers": 15, "hidden_size_per_layer_input": 256,
    "vocab_size_per_layer_input": 262144, "laurel_rank": 64, "altup_num_inputs": 4, "tie_word_embeddings": True,
}  # fmt: skip
_GEMMA4 = {
    "sliding_window": 512, "global_head_dim": 512, "hidden_size_per_layer_input": 256,
    "vocab_size_per_layer_input": 262144, "tie_word_embeddings": True,
}  # fmt: skip
_LLAMA4 = {
    "dense_intermediate_size": 16384, "attention_chunk_size": 8192, "num_experts": 16, "num_experts_per_tok": 1,
    "interleave_moe_layer_step": 1, "n_shared_experts": 1,
}  # fmt: skip
_TIED = {"tie_word_embeddings": True}

_GPT2 = Family(_TIED, width=four_times_hidden, matrices=plain_mlp, learned=0)
_GPTJ = Family(width=four_times_hidden, matrices=plain_mlp)
_LATENT = Family(attention=by_kind(latent))
_INDEXED = Family(attention=indexed, extras=indexer_weights)
_QWEN2_LIKE = Family(_OFF | {"max_window_layers": 28}, layout=sliding_from_max_window_layers)
_GEMMA2_LIKE = Family({"sliding_window": 4096} | _TIED, layout=full_every(2, key=""))
_GEMMA3_LIKE = Family({"sliding_window": 4096} | _TIED, layout=full_every(6))
_GEMMA3N_LIKE = Family(_GEMMA3N, layout=full_every(5, key=""), extras=per_layer_embeddings)
_GEMMA4_LIKE = Family(
    _GEMMA4, layout=full_every(6, key="", last=True), attention=by_kind(global_and_local), extras=per_layer_embeddings,
    dense_beside_experts=True,
)  # fmt: skip
_LLAMA4_LIKE = Family(_LLAMA4, layout=full_where_no_rope)

DECODERS: dict[str, Family] = {
    **dict.fromkeys(
        ("llama", "llava", "llava_llama", "yi", "aquila", "baichuan", "internlm", "internlm2", "internlm3", "orion",
         "xverse", "minicpm", "deepseek", "granite", "granitemoe", "granitemoeshared", "olmo", "olmo2", "olmoe",
         "exaone", "helium", "dots1", "skywork", "telechat", "telechat2", "solar", "solar_open", "bailing_moe",
         "bailing_moe_v2", "nanochat", "hunyuan", "hunyuan_v1_dense", "hunyuan_v1_moe", "flex_olmo", "diffllama",
         "stablelm", "glm", "glm4", "glm4v", "glm4v_text", "glm4_moe", "glm4v_moe", "glm4v_moe_text", "seed_oss"),
        Family(),
    ),
    **dict.fromkeys(("ernie4_5", "smollm3", "cohere", "gemma"), Family(_TIED)),
    "ernie4_5_moe": Family(_TIED | {"n_shared_experts": 2, "moe_layer_start_index": 1}),
    "minimax_m2": Family(layout=or_else("attn_type_list", by_numbers("attn_type_list", STATE, FULL), full)),
    **dict.fromkeys(("mistral", "ministral"), Family({"sliding_window": 4096}, layout=sliding)),
    "mixtral": Family({"num_experts": 8, "num_experts_per_tok": 2}, layout=sliding),
    "phimoe": Family({"num_experts": 16, "num_experts_per_tok": 2}, layout=sliding),
    **dict.fromkeys(("ministral3", "phi3", "phi4_multimodal", "phi4mm", "phi3_v"), Family(layout=sliding)),
    **dict.fromkeys(
        ("qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen3", "qwen3_vl", "qwen3_vl_text",
         "mimo"),
        _QWEN2_LIKE,
    ),
    "qwen2_moe": Family(_OFF | {"decoder_sparse_step": 1, "shared_expert_intermediate_size": 5632}),
    **dict.fromkeys(
        ("qwen3_moe", "qwen3_vl_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text"),
        Family(_OFF | {"decoder_sparse_step": 1}, layout=sliding),
    ),
    "qwen": Family(width=half),
    **dict.fromkeys(("gemma2", "vaultgemma"), _GEMMA2_LIKE),
    **dict.fromkeys(("gemma3", "gemma3_text"), _GEMMA3_LIKE),
    **dict.fromkeys(("gemma3n", "gemma3n_text"), _GEMMA3N_LIKE),
    **dict.fromkeys(("gemma4", "gemma4_text"), _GEMMA4_LIKE),
    "gpt_oss": Family({"sliding_window": 128, "num_experts": 128, "num_experts_per_tok": 4},
                      layout=full_every(2, key="")),
    "olmo3": Family({"sliding_window": 4096}, layout=full_every(4, key="")),
    **dict.fromkeys(("cohere2", "cohere2_moe"), Family({"sliding_window": 4096} | _TIED, layout=full_every(4))),
    "exaone4": Family({"sliding_window": 4096}, layout=full_every(4)),
    "exaone_moe": Family({"sliding_window": 4096, "n_shared_experts": 1}, layout=full_every(4)),
    "afmoe": Family({"sliding_window": 1024, "n_shared_experts": 2, "num_dense_layers": 1},
                    layout=full_every(4, key="global_attn_every_n_layers")),
    "mimo_v2_flash": Family({"sliding_window": 129, "v_head_dim": 128},
                            layout=or_else("hybrid_layer_pattern", by_numbers("hybrid_layer_pattern", FULL, SLIDING),
                                           full_every(6, key="", first=True)),
                            attention=by_kind(own_when_sliding)),
    "laguna": Family({"sliding_window": 512}, layout=sliding, attention=heads_by_layer),
    "nemotron-nas": Family(layout=searched_layout, attention=searched, width=searched_width),
    **dict.fromkeys(("step3p5", "step3p7"), Family(attention=by_kind(other_when_sliding))),
    **dict.fromkeys(("llama4", "llama4_text"), _LLAMA4_LIKE),
    **dict.fromkeys(("mllama", "mllama_text_model"), Family(layout=full_but_cross, extras=cross_attention)),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "kimi_k2", "kimi_k25", "deepseek_vl_v2", "mistral4",
                     "mistral_large3", "youtu", "minicpm3"), _LATENT),
    "glm4_moe_lite": Family({"first_k_dense_replace": 1}, attention=by_kind(latent)),
    **dict.fromkeys(("deepseek_v32", "deepseek_v3_2", "glm_moe_dsa"), _INDEXED),
    "gpt2": _GPT2,
    "biogpt": Family(_TIED, width=four_times_hidden, matrices=plain_mlp, learned=2),
    "xglm": Family(_TIED, width=four_times_hidden, matrices=plain_mlp),
    "gpt_bigcode": Family(_TIED, attention=by_kind(multi_query), width=four_times_hidden, matrices=plain_mlp,
                          learned=0),
    **dict.fromkeys(("gptj", "codegen"), _GPTJ),
    "gpt_neox": Family(width=four_times_hidden, matrices=plain_mlp),
    "opt": Family(_TIED, matrices=plain_mlp, learned=2),
    "bloom": Family(_TIED, width=four_times_hidden, matrices=plain_mlp, longest=2048),
    **dict.fromkeys(("falcon", "RefinedWeb", "RefinedWebModel"),
                    Family(_TIED, attention=by_kind(falcon), width=four_times_hidden, matrices=plain_mlp,
                           longest=2048)),
    "mpt": Family(_TIED, attention=by_kind(in_attn_config), width=expansion, matrices=plain_mlp),
    "dbrx": Family(attention=by_kind(in_attn_config), width=in_ffn_config),
    **dict.fromkeys(("phi", "phi-msft", "persimmon", "nemotron", "arcee", "apertus"), Family(matrices=plain_mlp)),
    "starcoder2": Family(_TIED, layout=sliding, matrices=plain_mlp),
    "chatglm": Family(attention=by_kind(multi_query_groups)),
}  # fmt: skip

UNFAMILIAR = Family(layout=full_without_windows, familiar=False)
"""A class that isn't known: its file must say everything, and nothing that isn't understood."""
