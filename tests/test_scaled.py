"""Scenarios with more or less of a resource: each factor changes its own figure, and nothing else."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.baselines import without_offload
from simkv.errors import InfeasibleError, InputError
from simkv.formulas.step import ConstantStep
from simkv.scenario.build import cost, system_config, workload_source
from simkv.scenario.explain import explain
from simkv.scenario.resolve import Resolved, resolve_text
from simkv.scenario.scaled import RESOURCES, scaled
from simkv.simulation import simulate
from tests.profile_factory import make_profile

RENTED = """\
name: rented
model: llama-3.1-8b
hardware: {hardware}
replicas: {{count: 2}}
engine: {{max_model_len: 8192}}
workload: {{kind: batch, size: 4, prompt_tokens: 3000, output_tokens: 20}}
tiers: {{dram: {{capacity: 100GiB}}, ssd: {{capacity: 1TB}}}}
"""
CHAT = """\
name: chat
model: llama-3.1-8b
hardware: a100-sxm4-80gb
engine: {{max_model_len: 8192, num_gpu_blocks: 2000}}
workload: {{kind: sessions, arrival: {{process: poisson, rate: 2 req/s}}, requests: 120, turns: 4,
  first_prompt_tokens: 2000, prompt_tokens: 100, output_tokens: 8, think_time: 1s}}
tiers: {{dram: {{capacity: {dram}}}, ssd: {{capacity: {ssd}}}}}
"""
ABSTRACT = """\
name: abstract
model: {kv_bytes_per_token: 1000B}
hardware: {step_time: 10ms, kv_tokens: 16Ki}
workload: {kind: batch, size: 4, prompt_tokens: 300, output_tokens: 2}
"""
SPEEDS = {
    "link": {"link.h2d_bytes_per_s", "link.d2h_bytes_per_s", "link.duplex_bytes_per_s", "link.uplink_bytes_per_s"},
    "dram": {"dram.capacity_bytes"},
    "dram_bandwidth": {"dram.bandwidth_bytes_per_s"},
    "ssd": {"ssd.capacity_bytes"},
    "ssd_bandwidth": {"ssd.read_bytes_per_s", "ssd.write_bytes_per_s"},
    "vram": {"engine.num_gpu_blocks"},
    "compute": set(),
    "memory_bandwidth": set(),
}
"""What of the simulated system each resource is; of the last two, nothing but the cost of steps."""


def rented(*assignments: str, hardware: str = "p5.48xlarge") -> Resolved:
    return resolve_text(RENTED.format(hardware=hardware), "s.yaml", assignments)


def abstract(*assignments: str) -> Resolved:
    return resolve_text(ABSTRACT, "s.yaml", assignments)


def flat(section: Any, path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in fields(section):
        value = getattr(section, one.name)
        name = f"{path}{one.name}"
        found |= flat(value, f"{name}.") if is_dataclass(value) else {name: value}
    return found


def changes(before: Resolved, after: Resolved) -> dict[str, tuple[Any, Any]]:
    old, new = flat(system_config(before)), flat(system_config(after))
    return {name: (old[name], new[name]) for name in old if old[name] != new[name] and name != "cost"}


def test_scaled_by_one_is_the_very_same_scenario() -> None:
    found = rented()
    same = scaled(found, dict.fromkeys(RESOURCES, 1.0))
    assert same is found and same.scenario_hash == found.scenario_hash
    assert scaled(abstract(), {"memory_bandwidth": 1}).scenario_hash == abstract().scenario_hash, "nothing is asked"


@pytest.mark.parametrize("name", RESOURCES)
def test_scaled_resource_changes_its_own_figures_and_the_hash(name: str) -> None:
    before = rented()
    after = scaled(before, {name: 1.1})
    changed = changes(before, after)
    assert set(changed) == SPEEDS[name]
    assert all(new > old for old, new in changed.values())
    if name != "vram":
        assert all(new == pytest.approx(1.1 * old, rel=1e-6) for old, new in changed.values())
    assert after.scenario_hash != before.scenario_hash
    assert scaled(rented(), {name: 1.1}).scenario_hash == after.scenario_hash


@given(st.sampled_from(RESOURCES), st.floats(0.95, 3.0))
def test_scaled_step_times_follow_compute_and_memory_alone(name: str, factor: float) -> None:
    before = rented()
    old, new = cost(before), cost(scaled(before, {name: factor}))
    chunk, batch = [(8000, 0)], (4, 20_000)
    prefill = old.mixed(0, 0, chunk, 1) / new.mixed(0, 0, chunk, 1)
    decode = old.decode(*batch)[0] / new.decode(*batch)[0]
    if name == "compute":
        assert min(1, factor) * 0.999 <= prefill <= max(1, factor) * 1.001 and abs(prefill - factor) < 0.1 * factor
        assert decode == pytest.approx(1), "decoding four sequences reads weights and KV"
    elif name == "memory_bandwidth":
        assert abs(prefill - 1) < 0.02 and min(1, factor) * 0.99 <= decode <= max(1, factor) * 1.01
        assert factor == pytest.approx(1, abs=0.01) or (decode > 1) == (factor > 1)
    else:
        assert prefill == decode == 1


def test_scaled_vram_gives_all_of_its_more_to_kv() -> None:
    before = rented()
    after = scaled(before, {"vram": 1.1})
    assert before.budget is not None and after.budget is not None and before.gpu is not None
    old, new = ({name: size for name, size, _ in found.budget.lines} for found in (before, after))
    kept = ("weights", "activations", "context")
    assert [old[name] for name in kept] == [new[name] for name in kept]
    more_bytes = (after.budget.num_gpu_blocks - before.budget.num_gpu_blocks) * before.budget.block_bytes
    assert more_bytes == pytest.approx(0.1 * 0.9 * before.gpu.usable_bytes, abs=2 * before.budget.block_bytes)
    assert after.scenario.engine.max_model_len == before.scenario.engine.max_model_len


def test_scaled_vram_adds_to_the_pool_that_the_engine_logged() -> None:
    before = rented("engine.num_gpu_blocks=2000")
    more = scaled(before, {"vram": 1.1}).scenario.engine.num_gpu_blocks
    own = rented()
    estimated = scaled(own, {"vram": 1.1}).scenario.engine.num_gpu_blocks
    assert more is not None and estimated is not None and own.scenario.engine.num_gpu_blocks is not None
    assert more - 2000 == pytest.approx(estimated - own.scenario.engine.num_gpu_blocks, abs=1)


def test_scaled_vram_below_the_longest_sequence_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="misses"):
        scaled(rented(), {"vram": 0.2})
    with pytest.raises(InfeasibleError, match=r"scale.vram: x 0.9 leaves 0 of 600 KV blocks"):
        scaled(rented("engine.num_gpu_blocks=600"), {"vram": 0.9})


def test_scaled_tiers_go_beyond_the_host_and_those_that_are_not_there_stay_away() -> None:
    full = rented("tiers.dram.capacity=2TiB")
    assert full.instance is not None
    assert scaled(full, {"dram": 1.5}).scenario.tiers.dram.capacity == 3 << 40 > full.instance.dram_bytes
    none = rented("tiers.dram.capacity=0GiB", "tiers.ssd.capacity=0TB")
    tiers = scaled(none, {"dram": 2, "ssd": 2}).scenario.tiers
    assert tiers.dram.capacity == 0 and tiers.ssd.capacity == 0
    endless = rented("engine.preset=vllm-tiering", "tiers.ssd.capacity=inf GiB", hardware="h100-sxm5-80gb")
    assert scaled(endless, {"ssd": 2}).scenario.tiers.ssd.capacity == float("inf")


def test_scaled_dram_by_ratio_does_not_grow_with_vram() -> None:
    text = RENTED.format(hardware="h100-sxm5-80gb").replace("capacity: 100GiB", "ratio: 1.5")
    found = resolve_text(text, "s.yaml", ("engine.preset=sglang-hicache",))
    assert found.scenario.tiers.dram.capacity > 0
    assert set(changes(found, scaled(found, {"vram": 1.2}))) == {"engine.num_gpu_blocks"}


def test_scaled_abstract_machine_has_a_step_time_and_a_pool() -> None:
    found = scaled(abstract(), {"compute": 1.25, "vram": 1.5})
    step = cost(found)
    assert isinstance(step, ConstantStep) and step.step_s == pytest.approx(8e-3)
    assert set(changes(abstract(), found)) == {"engine.num_gpu_blocks"}
    assert system_config(found).engine.num_gpu_blocks == 24 * 1024 // 16
    with pytest.raises(InputError, match=r"scale.memory_bandwidth: can't be scaled: an abstract machine has none"):
        scaled(abstract(), {"memory_bandwidth": 1.1})


def test_scaled_measured_step_times_are_refused_and_those_of_other_models_are_not(tmp_path: Path) -> None:
    profile = make_profile()
    path = tmp_path / "small.json"
    path.write_text(json.dumps(profile.model_dump(mode="json", by_alias=True)))
    given = ("replicas.count=1", "engine.max_model_len=1024", "tiers.ssd.capacity=0TB", "tiers.dram.capacity=1GiB")
    measured = rented(*given, "model=smollm2-135m", hardware=str(path))
    for name in ("compute", "memory_bandwidth"):
        with pytest.raises(InputError, match=rf"scale.{name}: .*measured in {profile.name}"):
            scaled(measured, {name: 1.1})
    assert set(changes(measured, scaled(measured, {"vram": 1.1}))) == {"engine.num_gpu_blocks"}
    assert set(changes(measured, scaled(measured, {"link": 2.0}))) == SPEEDS["link"] - {"link.uplink_bytes_per_s"}


def test_scaled_batch_mode_has_more_room_and_fitted_constants_are_refused() -> None:
    text = (Path(__file__).parents[1] / "scenarios" / "flexgen-opt-30b-t4.yaml").read_text("utf-8")
    fitted = resolve_text(text, "f.yaml")
    assert (
        system_config(scaled(fitted, {"vram": 1.2})).engine.num_gpu_blocks > system_config(fitted).engine.num_gpu_blocks
    )
    with pytest.raises(InputError, match=r"scale\.compute: .*flexgen-t4"):
        scaled(fitted, {"compute": 1.1})
    plain = resolve_text(text, "f.yaml", ("engine.constants=hardware", "link.h2d=10 GB/s", "link.d2h=10 GB/s"))
    assert scaled(plain, {"compute": 1.1}).scenario_hash != plain.scenario_hash


@pytest.mark.parametrize("factor", [-1.0, float("inf"), float("nan")])
def test_scaled_by_no_factor_is_refused(factor: float) -> None:
    with pytest.raises(InputError, match=r"scale\.dram = .*: is no factor"):
        scaled(rented(), {"dram": factor})


def test_scaled_tiers_to_nothing_run_as_without_offload() -> None:
    text = CHAT.format(dram="200GiB", ssd="2TB")
    nothing = scaled(resolve_text(text, "s.yaml"), {"dram": 0, "ssd": 0})
    assert system_config(nothing).dram.capacity_bytes == system_config(nothing).ssd.capacity_bytes == 0
    bare = without_offload(system_config(resolve_text(text, "s.yaml")))
    columns = simulate(system_config(nothing), workload_source(nothing, 0)).requests
    expected = simulate(bare, workload_source(nothing, 0)).requests
    assert all((columns[name] == expected[name]).all() for name in expected)
    for name in ("vram", "compute", "link"):
        with pytest.raises(InputError, match=rf"scale\.{name} = 0: is no factor"):
            scaled(nothing, {name: 0})


def test_scaled_unknown_resource_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="scale = drum: no such resource; did you mean dram"):
        scaled(rented(), {"drum": 1.1})


def test_scaled_values_say_where_they_are_from() -> None:
    rows = {row.path: row.origin for row in explain(scaled(rented(), {"link": 1.1, "vram": 1.1}))}
    assert rows["link.h2d"] == "instance p5.48xlarge, assumed, x 1.1"
    assert rows["engine.num_gpu_blocks"] == "computed from the memory budget, VRAM x 1.1"


def test_scaled_twice_is_scaled_by_the_product() -> None:
    once, twice = scaled(rented(), {"link": 2.0}), scaled(scaled(rented(), {"link": 4.0}), {"link": 0.5})
    assert system_config(once).link == system_config(twice).link
    assert replace(once).scenario_hash == twice.scenario_hash
