"""Names of models of the catalogue on the Hugging Face hub, as engines take them.

A fine-tune of the same shape (an -Instruct of a base model) is served with the same flags.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from simkv.model import ModelShape

UNKNOWN = "MODEL"
"""Stands where the user's own name goes."""
HUB: Mapping[str, str] = {
    "llama-2-7b": "meta-llama/Llama-2-7b-hf",
    "llama-2-13b": "meta-llama/Llama-2-13b-hf",
    "llama-2-70b": "meta-llama/Llama-2-70b-hf",
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B",
    "llama-3.1-70b": "meta-llama/Llama-3.1-70B",
    "llama-3.1-405b": "meta-llama/Llama-3.1-405B",
    "llama-3.3-70b-instruct": "meta-llama/Llama-3.3-70B-Instruct",
    "llama-4-scout-17b-16e": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "qwen2.5-7b": "Qwen/Qwen2.5-7B-Instruct",
    "qwen2.5-14b": "Qwen/Qwen2.5-14B",
    "qwen2.5-32b": "Qwen/Qwen2.5-32B",
    "qwen2.5-72b": "Qwen/Qwen2.5-72B",
    "qwen3-8b": "Qwen/Qwen3-8B",
    "qwen3-14b": "Qwen/Qwen3-14B",
    "qwen3-32b": "Qwen/Qwen3-32B",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
    "qwen3-235b-a22b": "Qwen/Qwen3-235B-A22B",
    "qwen3.5-35b-a3b": "Qwen/Qwen3.5-35B-A3B",
    "mistral-7b-v0.1": "mistralai/Mistral-7B-v0.1",
    "mistral-7b-instruct-v0.3": "mistralai/Mistral-7B-Instruct-v0.3",
    "mistral-nemo-12b": "mistralai/Mistral-Nemo-Instruct-2407",
    "mixtral-8x7b-v0.1": "mistralai/Mixtral-8x7B-v0.1",
    "mixtral-8x22b": "mistralai/Mixtral-8x22B-v0.1",
    "gemma-2-9b": "google/gemma-2-9b",
    "gemma-2-27b": "google/gemma-2-27b",
    "gemma-3-4b": "google/gemma-3-4b-it",
    "gemma-3-12b": "google/gemma-3-12b-it",
    "gemma-3-27b": "google/gemma-3-27b-it",
    "gemma-4-26b-a4b": "google/gemma-4-26B-A4B",
    "phi-3-mini-4k": "microsoft/Phi-3-mini-4k-instruct",
    "phi-3-medium-4k": "microsoft/Phi-3-medium-4k-instruct",
    "phi-4": "microsoft/phi-4",
    "deepseek-v2-lite": "deepseek-ai/DeepSeek-V2-Lite",
    "deepseek-v3": "deepseek-ai/DeepSeek-V3",
    "deepseek-r1": "deepseek-ai/DeepSeek-R1",
    "gpt-oss-20b": "openai/gpt-oss-20b",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "opt-6.7b": "facebook/opt-6.7b",
    "opt-13b": "facebook/opt-13b",
    "opt-30b": "facebook/opt-30b",
    "opt-66b": "facebook/opt-66b",
    "yi-34b": "01-ai/Yi-34B",
    "glm-4-9b-0414": "zai-org/GLM-4-9B-0414",
    "codellama-34b": "codellama/CodeLlama-34b-Instruct-hf",
    "kimi-k2": "moonshotai/Kimi-K2-Instruct",
    "minimax-m2.5": "MiniMaxAI/MiniMax-M2.5",
    "nemotron-h-56b": "nvidia/Nemotron-H-56B-Base-8K",
    "smollm2-135m": "HuggingFaceTB/SmolLM2-135M",
    "llama-7b": "huggyllama/llama-7b",
    "llama-65b": "huggyllama/llama-65b",
    "gpt-j-6b": "EleutherAI/gpt-j-6b",
    "bloom-176b": "bigscience/bloom",
    "llama-3.2-1b": "meta-llama/Llama-3.2-1B",
}


def model_name(model: ModelShape) -> tuple[str, str]:
    """Return what an engine is told to load, and where that is from."""
    if os.path.exists(model.source):
        folder = model.source if os.path.isdir(model.source) else os.path.dirname(model.source) or "."
        return folder, "folder of the model's config.json; the weights have to lie there too"
    if model.name in HUB:
        return HUB[model.name], f"{model.name} on the Hugging Face hub, or a fine-tune of the same shape"
    return UNKNOWN, f"write the name or folder of {model.name} here"
