"""Sizes that a class takes where a configuration leaves them out, by ``model_type``.

Source: transformers 5.24.0, ``models/*/configuration_*.py``. None: the class has none; without KV heads there is one
a head, without a width of heads it is hidden / heads.
"""

from __future__ import annotations

NAMES = (
    "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size",
    "vocab_size", "max_position_embeddings",
)  # fmt: skip
"""What the numbers of a class are, in order."""

CLASS_SIZES: dict[str, tuple[int | None, ...]] = {
    "llama": (32, 4096, 32, None, None, 11008, 32000, 2048),
    "granite": (32, 4096, 32, None, None, 11008, 32000, 2048),
    "granitemoe": (32, 4096, 32, None, None, 11008, 32000, 2048),
    "granitemoeshared": (32, 4096, 32, None, None, 11008, 32000, 2048),
    "olmo": (32, 4096, 32, None, None, 11008, 50304, 2048),
    "olmo2": (32, 4096, 32, None, None, 11008, 50304, 2048),
    "olmo3": (32, 4096, 32, None, None, 11008, 50304, 2048),
    "olmoe": (16, 2048, 16, None, None, 2048, 50304, 4096),
    "exaone": (32, 4096, 32, 8, None, 14336, 102400, 4096),
    "exaone4": (32, 4096, 32, 32, None, 16384, 102400, 2048),
    "exaone_moe": (32, 4096, 32, 32, None, 16384, 102400, 2048),
    "helium": (24, 2560, 20, 20, 128, 7040, 48000, 4096),
    "dots1": (62, 4608, 32, 32, None, 10944, 152064, 2048),
    "solar_open": (48, 4096, 64, 8, 128, None, 196608, 131072),
    "nanochat": (12, 768, 6, None, None, 8192, 50304, 2048),
    "hunyuan_v1_dense": (32, 4096, 32, None, None, 11008, 290943, 2048),
    "hunyuan_v1_moe": (32, 4096, 32, None, None, 11008, 290943, 2048),
    "flex_olmo": (32, 4096, 32, None, None, 11008, 100352, 4096),
    "diffllama": (16, 2048, 32, None, None, 8192, 32000, 2048),
    "stablelm": (32, 2560, 32, 32, None, 6912, 50304, 4096),
    "glm": (40, 4096, 32, 2, 128, 13696, 151552, 131072),
    "glm4": (40, 4096, 32, 2, 128, 13696, 151552, 131072),
    "glm4v_text": (40, 4096, 32, 2, None, 13696, 151552, 32768),
    "glm4_moe": (46, 4096, 96, 8, None, 10944, 151552, 131072),
    "glm4v_moe_text": (46, 4096, 96, 8, None, 10944, 151424, 65536),
    "ernie4_5": (18, 1024, 16, 2, 128, 3072, 103424, 131072),
    "ernie4_5_moe": (28, 2560, 20, 4, None, 12288, 103424, 131072),
    "minimax_m2": (62, 3072, 48, 8, 128, 1536, 200064, 196608),
    "internlm3": (48, 4096, 32, 2, 128, 10240, 128512, 32768),
    "seed_oss": (64, 4096, 80, 8, 128, 27648, 155136, 524288),
    "smollm3": (36, 2048, 16, 4, None, 11008, 128256, 32768),
    "cohere": (40, 8192, 64, None, None, 22528, 256000, 8192),
    "cohere2": (40, 8192, 64, None, None, 22528, 256000, 8192),
    "cohere2_moe": (40, 8192, 64, None, 128, 22528, 256000, 8192),
    "gemma": (28, 3072, 16, 16, 256, 24576, 256000, 8192),
    "gemma2": (26, 2304, 8, 4, 256, 9216, 256000, 8192),
    "vaultgemma": (26, 2304, 8, 4, 256, 9216, 256000, 8192),
    "gemma3_text": (26, 2304, 8, 4, 256, 9216, 262208, 131072),
    "gemma3n_text": (35, 2048, 8, 2, 256, 16384, 262400, 32768),
    "gemma4_text": (30, 2304, 8, 4, 256, 9216, 262144, 131072),
    "gpt_oss": (36, 2880, 64, 8, 64, 2880, 201088, 131072),
    "mistral": (32, 4096, 32, 8, None, 14336, 32000, 131072),
    "ministral": (32, 4096, 32, 8, None, 14336, 32000, 131072),
    "ministral3": (34, 4096, 32, 8, 128, 14336, 131072, 262144),
    "mixtral": (32, 4096, 32, 8, None, 14336, 32000, 131072),
    "phi": (24, 2048, 32, None, None, 8192, 51200, 2048),
    "phi3": (32, 3072, 32, None, None, 8192, 32064, 4096),
    "phi4_multimodal": (32, 3072, 32, 8, None, 8192, 200064, 131072),
    "phimoe": (32, 4096, 32, 8, None, 6400, 32064, 131072),
    "qwen2": (32, 4096, 32, 32, None, 22016, 151936, 32768),
    "qwen2_vl_text": (80, 8192, 64, 8, None, 29568, 152064, 32768),
    "qwen2_5_vl_text": (80, 8192, 64, 8, None, 29568, 152064, 32768),
    "qwen2_moe": (24, 2048, 16, 16, None, 5632, 151936, 32768),
    "qwen3": (32, 4096, 32, 32, 128, 22016, 151936, 32768),
    "qwen3_vl_text": (32, 4096, 32, 32, 128, 22016, 151936, 128000),
    "qwen3_moe": (24, 2048, 32, 4, None, 6144, 151936, 32768),
    "qwen3_vl_moe_text": (24, 2048, 16, 16, None, 5632, 151936, 128000),
    "qwen3_next": (48, 2048, 16, 2, 256, 5632, 151936, 32768),
    "qwen3_5_text": (32, 4096, 16, 4, 256, 12288, 248320, 32768),
    "qwen3_5_moe_text": (40, 2048, 16, 2, 256, None, 248320, 32768),
    "afmoe": (32, 2048, 16, None, 128, 6144, 200192, 16384),
    "mimo_v2_flash": (48, 4096, 64, 4, 192, 16384, 152576, 131072),
    "laguna": (40, 2048, 48, 8, 128, 8192, 100352, 131072),
    "step3p5": (45, 4096, 64, 8, 128, 11264, 128815, 128000),
    "llama4_text": (48, 5120, 40, 8, 128, 8192, 202048, 131072),
    "mllama_text_model": (40, 4096, 32, 8, None, 14336, 128256, 131072),
    "deepseek_v2": (32, 4096, 32, None, None, 11008, 102400, 2048),
    "deepseek_v3": (61, 7168, 128, None, None, 18432, 129280, 4096),
    "deepseek_v32": (61, 7168, 128, None, None, 18432, 129280, 163840),
    "glm_moe_dsa": (78, 6144, 64, None, None, 12288, 154880, 202752),
    "glm4_moe_lite": (47, 2048, 20, None, None, 10240, 154880, 202752),
    "mistral4": (36, 4096, 32, None, None, 12288, 131072, 1048576),
    "youtu": (32, 2048, 16, None, None, 6144, 128256, 131072),
    "minicpm3": (62, 2560, 40, None, None, 6400, 73448, 32768),
    "kimi_linear": (27, 2304, 32, None, None, 9216, 163840, 1048576),
    "minimax": (32, 4096, 32, 8, None, 14336, 32000, 131072),
    "nemotron_h": (None, 4096, 32, 8, 128, 21504, 131072, 4096),
    "jamba": (32, 4096, 32, 8, None, 14336, 65536, 262144),
    "bamba": (32, 4096, 32, 8, None, 14336, 128000, 262144),
    "granitemoehybrid": (32, 4096, 32, None, None, 11008, 32000, 2048),
    "falcon_h1": (32, 4096, 32, 8, None, 14336, 128000, 8192),
    "lfm2": (32, 2560, 32, 8, None, 12288, 65536, 128000),
    "lfm2_moe": (32, 2048, 32, 8, None, 7168, 65536, 128000),
    "recurrent_gemma": (26, 2560, 10, None, None, 7680, 256000, None),
    "olmo_hybrid": (32, 3840, 30, None, None, 11008, 100352, 65536),
    "starcoder2": (30, 3072, 24, 2, None, 12288, 49152, 4096),
    "persimmon": (36, 4096, 64, None, None, 16384, 262144, 16384),
    "nemotron": (32, 6144, 48, None, None, 24576, 256000, 4096),
    "arcee": (32, 2560, 32, None, None, 18432, 32000, 4096),
    "apertus": (32, 4096, 32, None, None, 14336, 131072, 65536),
    "gpt2": (12, 768, 12, None, None, None, 50257, 1024),
    "gptj": (28, 4096, 16, None, None, None, 50400, 2048),
    "gpt_neox": (44, 6144, 64, None, None, 24576, 50432, 2048),
    "opt": (12, 768, 12, None, None, 3072, 50272, 2048),
}  # fmt: skip


LATENT_NAMES = ("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")

LATENT_SIZES: dict[str, tuple[int | None, ...]] = {
    "deepseek_v2": (512, 1536, 64, 128, 128),
    "deepseek_v3": (512, 1536, 64, 128, 128),
    "deepseek_v32": (512, 1536, 64, 128, 128),
    "glm_moe_dsa": (512, 2048, 64, 192, 256),
    "glm4_moe_lite": (512, 768, 64, 192, 256),
    "kimi_linear": (512, None, 64, 128, 128),
    "minicpm3": (256, 768, 32, 64, None),
    "mistral4": (256, 1024, 64, 64, 128),
    "youtu": (512, 1536, 64, 128, 128),
}
"""The same, of classes with latents."""

SAME_AS = {
    "deepseek_v3_2": "deepseek_v32", "gemma3": "gemma3_text", "gemma3n": "gemma3n_text", "gemma4": "gemma4_text",
    "glm4v": "glm4v_text", "glm4v_moe": "glm4v_moe_text", "kimi_k2": "deepseek_v3", "kimi_k25": "deepseek_v3",
    "llama4": "llama4_text", "llava": "llama", "llava_llama": "llama", "minimax_m1": "minimax",
    "minimax_text_01": "minimax", "mllama": "mllama_text_model", "phi4mm": "phi4_multimodal",
    "qwen2_vl": "qwen2_vl_text", "qwen2_5_vl": "qwen2_5_vl_text", "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text", "qwen3_5": "qwen3_5_text", "qwen3_5_moe": "qwen3_5_moe_text",
    "step3p7": "step3p5",
}  # fmt: skip
"""Names of a class, or of what it wraps."""


def class_defaults(name: str) -> dict[str, int]:
    """Return the sizes that the class of ``model_type`` takes; of some classes nothing is known."""
    key = SAME_AS.get(name, name)
    tables = (NAMES, CLASS_SIZES), (LATENT_NAMES, LATENT_SIZES)
    pairs = (pair for names, sizes in tables if key in sizes for pair in zip(names, sizes[key], strict=True))
    return {what: size for what, size in pairs if size is not None}
