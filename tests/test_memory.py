"""The memory budget: lines that add up, refusals that help, and log lines read back."""

from __future__ import annotations

import pytest

from simkv.catalog import list_models, load_hardware, load_model
from simkv.errors import InfeasibleError, InputError
from simkv.formulas.memory import (
    GIB,
    activation_bytes,
    blocks_from_engine_log,
    kv_budget,
    override_blocks,
)
from simkv.formulas.weights import weight_bytes_per_rank
from simkv.hardware import Figure, Gpu

LLAMA = load_model("llama-3.1-8b")
CARD = load_hardware("rtx-4090")


def test_lines_add_up_to_the_pool() -> None:
    budget = kv_budget(LLAMA, CARD, max_num_batched_tokens=2048)
    sizes = {name: size for name, size, _ in budget.lines}
    assert sizes["engine_share"] == int(CARD.usable_bytes * 0.9)
    assert sizes["kv_cache"] == sizes["engine_share"] + sizes["weights"] + sizes["activations"] + sizes["context"]
    assert 0 <= sizes["kv_cache"] - budget.kv_bytes < budget.block_bytes
    assert budget.kv_bytes == budget.num_gpu_blocks * budget.block_bytes
    assert budget.kv_tokens == budget.num_gpu_blocks * 16


def test_tensor_parallel_pool_counts_all_ranks() -> None:
    one, two = (kv_budget(load_model("qwen3-14b"), load_hardware("l40s"), ranks) for ranks in (1, 2))
    assert two.kv_bytes == 2 * two.kv_bytes_per_rank
    assert two.block_bytes == one.block_bytes
    assert two.num_gpu_blocks > 2 * one.num_gpu_blocks


@pytest.mark.parametrize("name", list_models())
def test_weights_shard_and_narrow(name: str) -> None:
    model = load_model(name)
    assert weight_bytes_per_rank(model, 1, "bf16") == pytest.approx(2 * model.params, rel=1e-6)
    ranks = 3 if name == "smollm2-135m" else 2  # it has 9 heads
    assert 2 * model.params / ranks <= weight_bytes_per_rank(model, ranks, "bf16") < 1.1 * 2 * model.params / ranks
    assert weight_bytes_per_rank(model, 1, "int4") < weight_bytes_per_rank(model, 1, "fp8") < 2 * model.params


def test_activations_take_the_larger_of_forward_and_sampler() -> None:
    assert activation_bytes(LLAMA, 1, 256, 2048) == 256 * LLAMA.vocab * 38
    assert activation_bytes(LLAMA, 1, 1, 65536) == 65536 * (4 * 4096 + 3 * 14336) * 2


def test_refusal_says_by_how_much_and_what_fits() -> None:
    with pytest.raises(InfeasibleError, match=r"misses [\d.]+ GiB a GPU.*tensor_parallel 2.*weight_dtype fp8"):
        kv_budget(load_model("llama-3.1-70b"), load_hardware("a100-sxm4-80gb"))


def test_refusal_of_a_long_sequence_names_the_length_that_fits() -> None:
    with pytest.raises(InfeasibleError, match=r"max_model_len (\d+)") as caught:
        kv_budget(LLAMA, CARD, max_model_len=131072)
    length = int(str(caught.value).split("max_model_len ")[1].split(",")[0])
    kv_budget(LLAMA, CARD, max_model_len=length)
    with pytest.raises(InfeasibleError):
        kv_budget(LLAMA, CARD, max_model_len=length + 16)


@pytest.mark.parametrize("share", [0.0, 1.1, -0.5])
def test_utilisation_outside_the_unit_interval_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="gpu_memory_utilization"):
        kv_budget(LLAMA, CARD, gpu_memory_utilization=share)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [("INFO 08-20 GPU KV cache size: 41,408 tokens", 2588), ("num_gpu_blocks: 2588", 2588),
     ('"num_gpu_blocks": 2588,', 2588), ("# GPU blocks: 2588, # CPU blocks: 0", 2588), ("num_gpu_blocks=2_588", 2588)],
)  # fmt: skip
def test_engine_log_gives_blocks(text: str, blocks: int) -> None:
    assert blocks_from_engine_log(text, 16) == blocks


def test_engine_log_without_a_size_is_refused() -> None:
    with pytest.raises(InputError, match="GPU KV cache size"):
        blocks_from_engine_log("Model loading took 14.99 GiB", 16)


def test_override_keeps_the_estimate_visible() -> None:
    budget = override_blocks(kv_budget(LLAMA, CARD), 2588, "engine log")
    assert budget.num_gpu_blocks == 2588 and budget.kv_bytes == 2588 * 2 * 2**20
    assert [line[0] for line in budget.lines][-2:] == ["kv_cache", "kv_cache_override"]
    with pytest.raises(InputError):
        override_blocks(budget, 1)


def test_bigger_card_is_named_where_one_fits() -> None:
    small: Gpu = CARD.with_figures(usable_bytes=Figure(12 * GIB, "B", "made up", "assumed"))
    with pytest.raises(InfeasibleError, match=r"or (t4|l4|rtx-4090|a10|rtx-3090)$"):
        kv_budget(LLAMA, small)
