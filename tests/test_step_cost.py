"""Step times: exact series, monotone, and close to the kernel times they were fitted on."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from simkv.catalog import list_hardware, list_models, load_hardware, load_model
from simkv.errors import InputError
from simkv.formulas.step import ConstantStep, RooflineStep, step_cost
from simkv.sim.config import StepCost

DENSE = step_cost(load_model("llama-3.1-8b"), load_hardware("rtx-4090"))
EXPERTS = step_cost(load_model("qwen3-30b-a3b"), load_hardware("h100-sxm5-80gb"))
LATENT = step_cost(load_model("deepseek-v3"), load_hardware("h200-sxm5-141gb"), 8)
costs = st.sampled_from([DENSE, EXPERTS, LATENT])
batches = st.integers(1, 512)
lengths = st.integers(1, 20_000)


def as_protocol(cost: StepCost) -> StepCost:
    """Type check: both classes are step costs."""
    return cost


@given(costs, batches, lengths)
def test_decode_first_step_equals_mixed_without_chunks(cost: RooflineStep, batch: int, length: int) -> None:
    first, growth, steps = as_protocol(cost).decode(batch, batch * length)
    assert first == cost.mixed(batch, batch * length, [], batch)
    assert type(first) is float and type(growth) is float and steps > 2**60


@given(costs, batches, lengths, st.integers(1, 5000))
def test_decode_series_equals_later_steps(cost: RooflineStep, batch: int, length: int, later: int) -> None:
    first, growth, _ = cost.decode(batch, batch * length)
    then = cost.mixed(batch, batch * (length + later), [], batch)
    assert first + later * growth == pytest.approx(then, rel=1e-12)


@given(costs, st.integers(1, 511), lengths)
def test_decode_is_monotone_in_batch_and_context(cost: RooflineStep, batch: int, length: int) -> None:
    context = batch * length
    assert cost.decode(batch, context)[0] < cost.decode(batch + 1, context)[0]
    assert cost.decode(batch, context)[0] < cost.decode(batch, context + 1)[0]


@given(costs, st.integers(0, 256), lengths, st.integers(1, 8191), st.integers(0, 100_000))
def test_mixed_is_monotone_in_new_tokens_and_context_before(
    cost: RooflineStep, batch: int, length: int, new: int, before: int
) -> None:
    def step(new: int, before: int) -> float:
        return cost.mixed(batch, batch * length, [(new, before)], batch + 1)

    assert step(new, before) <= step(new + 1, before)
    assert step(new, before) <= step(new, before + 1)


@given(st.integers(0, 50_000), st.integers(2, 4000), st.data())
def test_causal_pairs_of_a_split_chunk_add_up(before: int, new: int, data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, new - 1))

    def pairs(new: int, before: int) -> int:
        return new * before + new * (new + 1) // 2

    assert pairs(new, before) == pairs(cut, before) + pairs(new - cut, before + cut)
    assert pairs(new, before) == sum(before + i for i in range(1, new + 1))


def test_one_token_chunk_costs_what_a_decode_costs() -> None:
    decode = DENSE.mixed(9, 9000, [], 9)
    assert DENSE.mixed(8, 8000, [(1, 999)], 9) == pytest.approx(decode, rel=1e-12)


def test_decoding_beside_a_prefill_costs_more_where_kernels_do_not_pack() -> None:
    packed = step_cost(load_model("llama-3.1-8b"), load_hardware("h100-sxm5-80gb"))
    assert DENSE.mixed_kv_s > DENSE.kv_s
    assert packed.mixed_kv_s == packed.kv_s
    assert LATENT.mixed_kv_s == LATENT.kv_s


def test_experts_read_grow_with_tokens_to_all() -> None:
    assert EXPERTS.experts is not None
    one, many = EXPERTS.experts.seconds(1), EXPERTS.experts.seconds(256)
    # One token reads 8 of 128 experts.
    assert one == pytest.approx(EXPERTS.experts.all_weights_s * 8 / 128, rel=0.01)
    assert many > 0.99 * EXPERTS.experts.all_weights_s
    assert EXPERTS.experts.seconds(0) == 0.0


def test_fp8_weights_compute_at_fp8_only_on_fp8_hardware() -> None:
    model = load_model("llama-3.1-8b")
    ada, ampere = load_hardware("rtx-4090"), load_hardware("a100-sxm4-80gb")

    def linear(card: str, dtype: str) -> float:
        return step_cost(model, load_hardware(card), weight_dtype=dtype).linear.flops_s_per_row

    assert linear(ada.name, "fp8") == pytest.approx(linear(ada.name, "bf16") / 2, rel=1e-3)
    assert linear(ampere.name, "fp8") == linear(ampere.name, "bf16")
    assert linear(ada.name, "int4") == linear(ada.name, "bf16")
    head = step_cost(model, ada, weight_dtype="fp8").head
    assert head == step_cost(model, ada).head


def test_tensor_parallel_shares_work_and_pays_all_reduce() -> None:
    model, gpu = load_model("llama-3.1-70b"), load_hardware("h100-sxm5-80gb")
    four, eight = step_cost(model, gpu, 4), step_cost(model, gpu, 8)
    assert eight.linear.weights_s == pytest.approx(four.linear.weights_s / 2)
    assert eight.comm.s_per_token > four.comm.s_per_token > 0
    assert eight.comm.latency_s == four.comm.latency_s == pytest.approx(2 * 80 * gpu.value("allreduce_latency_s"))
    assert eight.decode(8, 8000)[0] < four.decode(8, 8000)[0]


def test_modes_add_overhead_and_unknown_is_refused() -> None:
    model, gpu = load_model("llama-3.1-8b"), load_hardware("rtx-4090")
    kernels, graphs, eager = (
        step_cost(model, gpu, mode=mode).decode(1, 1)[0] for mode in ("kernels", "graphs", "eager")
    )
    assert kernels <= graphs < eager  # on this card nothing is known to lie between two captured steps
    with pytest.raises(InputError, match="mode"):
        step_cost(model, gpu, mode="lazy")  # type: ignore[arg-type]


@pytest.mark.parametrize("card", list_hardware())
@pytest.mark.parametrize("name", list_models())
def test_every_model_on_every_card_has_a_finite_step(name: str, card: str) -> None:
    cost = step_cost(load_model(name), load_hardware(card))
    first, growth, _ = cost.decode(4, 4000)
    assert 0 < growth < first < math.inf
    assert first < cost.mixed(4, 4000, [(512, 0)], 5) < math.inf


def test_constant_step_is_constant() -> None:
    cost = as_protocol(ConstantStep(2))
    assert cost.decode(3, 100)[:2] == (2.0, 0.0)
    assert cost.mixed(3, 100, [(5, 0)], 4) == 2.0
    assert cost.layers == 1


@pytest.mark.shared
def test_rtx_4090_is_within_a_percent_of_the_kernel_times_it_was_fitted_on(shared: Path) -> None:
    text = (shared / "published" / "measurements.yaml").read_text(encoding="utf-8")
    observed = next(case for case in yaml.safe_load(text) if case["id"] == "lss-rtx4090-l8b-steps")["observed"]
    cost = step_cost(load_model("llama-3.1-8b"), load_hardware("rtx-4090"), mode="kernels")
    for context in (1024, 4096):
        for batch, ms in observed[f"decode_step_kv{context}"]["points"]:
            assert cost.decode(batch, batch * context)[0] * 1e3 == pytest.approx(ms, rel=0.01), (context, batch)
    for tokens, ms in observed["prefill"]["points"]:
        assert cost.mixed(0, 0, [(tokens, 0)], 1) * 1e3 == pytest.approx(ms, rel=0.01), tokens


@pytest.mark.parametrize("cost", [DENSE, EXPERTS], ids=["dense", "experts"])
def test_costs_pickle_alike_whatever_they_were_asked_before(cost: RooflineStep) -> None:
    before = pickle.dumps(cost)
    cost.decode(77, 12_345)
    cost.mixed(3, 500, [(111, 0)], 4)
    assert pickle.dumps(cost) == before
    assert pickle.loads(before).decode(77, 12_345) == cost.decode(77, 12_345)
