"""Models of every kind of cache, written out by hand from their owners' config.json files."""

from __future__ import annotations

from simkv.model import AttentionLayers, Mla, ModelShape, Moe, StateLayers


def uniform(
    layers: int,
    kv_heads: int = 8,
    head_dim: int = 128,
    heads: int = 32,
    hidden: int = 4096,
    intermediate: int = 14336,
    vocab: int = 128256,
    **more: object,
) -> ModelShape:
    """Return a dense model in which every layer sees all tokens."""
    attention = (AttentionLayers(layers, heads, kv_heads, head_dim),)
    return ModelShape("uniform", layers, hidden, attention, intermediate, vocab, "bf16", 131072, **more)  # type: ignore[arg-type]


def gpt_oss(layers: int, experts: int) -> ModelShape:
    """Return gpt-oss: every other layer sees 128 tokens; experts in mxfp4, everything else 16-bit."""
    full = AttentionLayers(layers // 2, 64, 8, 64)
    near = AttentionLayers(layers // 2, 64, 8, 64, window=128)
    moe = Moe(experts, 4, 2880, layers)
    return ModelShape(
        "gpt-oss", layers, 2880, (full, near), 2880, 201088, "bf16", 131072, moe=moe, expert_dtype="mxfp4"
    )


def gemma_4_26b() -> ModelShape:
    """Return Gemma-4-26B-A4B: 5 layers of 2 heads of 512, 25 of 8 heads of 256 that see 1024 tokens."""
    full = AttentionLayers(5, 16, 2, 512)
    near = AttentionLayers(25, 16, 8, 256, window=1024)
    return ModelShape(
        "gemma-4-26b-a4b", 30, 2816, (full, near), 2112, 262144, "bf16", 262144, dense_mlp_layers=30,
        moe=Moe(128, 8, 704, 30), tie_embeddings=True, held_params=vision(3) + 2 * 10240 * 1152,
    )  # fmt: skip


def vision(matrices: int) -> int:
    """Return the weights of a tower of 27 layers, 1152 wide, MLPs of 4304 with two or three matrices."""
    return 27 * (4 * 1152**2 + matrices * 1152 * 4304)


def gemma_3_27b() -> ModelShape:
    """Return Gemma-3-27B: 10 layers that see all, 52 that see 1024 tokens."""
    full = AttentionLayers(10, 32, 16, 128)
    near = AttentionLayers(52, 32, 16, 128, window=1024)
    return ModelShape("gemma-3-27b", 62, 5376, (full, near), 21504, 262144, "bf16", 131072, tie_embeddings=True)


def gated_delta_net(layers: int, value_heads: int, hidden: int, key_heads: int = 16) -> StateLayers:
    """Return layers with heads of 128 x 128 in fp32 and a convolution over 4 tokens."""
    keys, values = key_heads * 128, value_heads * 128
    mixed = 2 * keys + values
    params = hidden * (mixed + values + 2 * value_heads) + values * hidden + 4 * mixed
    return StateLayers("gated_delta_net", layers, 3 * mixed, value_heads * 128 * 128, params)


def qwen_hybrid(
    name: str,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    value_heads: int,
    intermediate: int = 0,
    moe: Moe | None = None,
    **more: object,
) -> ModelShape:
    """Return a Qwen3.5: every fourth layer sees all tokens (head width 256, gated), the others keep a state."""
    full = AttentionLayers(layers // 4, heads, kv_heads, 256, output_gate=True)
    state = gated_delta_net(layers - layers // 4, value_heads, hidden)
    merger = 4 * 1152 * (4 * 1152 + hidden)
    return ModelShape(
        name, layers, hidden, (full,), intermediate, 248320, "bf16", 262144, state=(state,), moe=moe,
        held_params=vision(2) + merger, **more  # type: ignore[arg-type]
    )  # fmt: skip


def qwen_35b(**more: object) -> ModelShape:
    """Return Qwen3.5-35B-A3B (and 3.6)."""
    return qwen_hybrid("qwen3.5-35b-a3b", 40, 2048, 16, 2, 32, moe=Moe(256, 8, 512, 40, 1), **more)


def qwen_122b(**more: object) -> ModelShape:
    """Return Qwen3.5-122B-A10B."""
    return qwen_hybrid("qwen3.5-122b-a10b", 48, 3072, 32, 2, 64, moe=Moe(256, 8, 1024, 48, 1), **more)


def qwen_27b(**more: object) -> ModelShape:
    """Return Qwen3.5-27B (and 3.6, 3.8)."""
    return qwen_hybrid("qwen3.5-27b", 64, 5120, 24, 4, 48, 17408, **more)


def qwen_9b() -> ModelShape:
    """Return Qwen3.5-9B."""
    return qwen_hybrid("qwen3.5-9b", 32, 4096, 16, 4, 32, 12288)


def deepseek_v32() -> ModelShape:
    """Return DeepSeek-V3.2: latents with an fp8 index of 128 numbers and a scale."""
    mla = Mla(512, 64, 128, 128, 1536)
    attention = (AttentionLayers(61, 128, 128, 0, mla=mla, index_bytes=132),)
    moe = Moe(256, 8, 2048, 58, 1)
    return ModelShape("deepseek-v3.2", 61, 7168, attention, 18432, 129280, "bf16", 163840, moe=moe, weight_dtype="fp8")


def kimi_linear() -> ModelShape:
    """Return Kimi-Linear-48B-A3B: 7 layers of latents, 20 that keep a state."""
    mla = Mla(512, 64, 128, 128)
    state = StateLayers("kda", 20, 3 * 3 * 32 * 128, 32 * 128 * 128, 2304 * 4096 * 5)
    moe = Moe(256, 8, 1024, 26, 1)
    return ModelShape(
        "kimi-linear", 27, 2304, (AttentionLayers(7, 32, 32, 0, mla=mla),), 9216, 163840, "bf16", 1048576,
        state=(state,), moe=moe,
    )  # fmt: skip


def llama_4_scout() -> ModelShape:
    """Return Llama-4-Scout: three of four layers attend within chunks of 8192."""
    full = AttentionLayers(12, 40, 8, 128)
    near = AttentionLayers(36, 40, 8, 128, window=8192, chunked=True)
    moe = Moe(16, 1, 8192, 48, 1)
    return ModelShape("llama-4-scout", 48, 5120, (full, near), 16384, 202048, "bf16", 10485760, moe=moe)


def mistral_7b_v01() -> ModelShape:
    """Return Mistral-7B-v0.1: no layer sees more than 4096 tokens."""
    near = AttentionLayers(32, 32, 8, 128, window=4096)
    return ModelShape("mistral-7b-v0.1", 32, 4096, (near,), 14336, 32000, "bf16", 32768)
