"""Batch mode from a scenario: presets, what contradicts, the shipped run through the command line, measured runs."""

from __future__ import annotations

import json
import re
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.cli import app
from simkv.errors import InfeasibleError, InputError
from simkv.formulas.placement import Rates
from simkv.formulas.placement.rates import FLEXGEN_T4
from simkv.jobs.workers import Workers
from simkv.scenario import presets
from simkv.scenario.batch_checks import batch_idle_paths
from simkv.scenario.build import system_config
from simkv.scenario.explain import to_yaml
from simkv.scenario.resolve import Resolved, resolve, resolve_text
from simkv.simulation import run_scenario
from simkv.validation.read import own_cases
from simkv.validation.study import study

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "scenarios" / "flexgen-opt-30b-t4.yaml"
SMALL = """
name: small
model: opt-6.7b
hardware: t4
engine:
  preset: flexgen
  placement: {weights: [0, 100], kv: [0, 100]}
  gpu_batch_size: 4
workload: {kind: batch, size: 8, prompt_tokens: 64, output_tokens: 4}
tiers: {dram: {capacity: 64GB}, ssd: {capacity: 100GB}}
run: {warm_up: 0s}
"""


def small(*assignments: str) -> Resolved:
    """Return the small scenario with something set."""
    return resolve_text(SMALL, "s.yaml", assignments)


def answer(*assignments: str) -> dict[str, Any]:
    """Return the small scenario's summary."""
    return run_scenario(small(*assignments), audit=True).summary


# ---- the shipped run


def test_shipped_run_gives_what_flexgen_measured_within_a_twentieth(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["run", str(SHIPPED), "--json", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["output_tokens_per_s"] == pytest.approx(7.32, rel=0.05)  # FlexGen's README
    forms = found["closed_form"]
    assert found["output_tokens_per_s"] == pytest.approx(forms["output_tokens_per_s"])
    assert found["e2e_s"]["mean"] == pytest.approx(forms["e2e_s"])
    assert forms["published_output_tokens_per_s"] == pytest.approx(forms["output_tokens_per_s"], rel=0.01)
    assert found["concurrency"]["max"] == 144
    assert found["hit_rate"]["miss"] == 1.0
    assert found["bytes"]["ssd_read"] == 0
    weights = 11 / 12 * 32 * 48 * (8 * 7168**2 + 4 * 7168 * 28672)  # by whole matrices: of attention's, the last
    assert found["bytes"]["h2d"] == pytest.approx(weights, rel=0.1)  # and activations, queries' answers
    assert found["kv_usage"]["dram"]["max"] > 0.6 and found["kv_usage"]["vram"]["max"] == 0


def test_shipped_run_on_too_little_dram_ends_with_code_3_and_the_shortage() -> None:
    result = CliRunner().invoke(app, ["run", str(SHIPPED), "--json", "--set", "tiers.dram.capacity=100GB"])
    assert result.exit_code == 3
    assert "144 sequences of 512 + 32 tokens need 153 GiB of DRAM" in result.output
    assert "93.1 GiB" in result.output and "too much; raise tiers.dram.capacity" in result.output


def test_weights_that_do_not_fit_are_told_before_anything_runs() -> None:
    with pytest.raises(InfeasibleError, match=r"GPU has 19\.2 GiB a replica, and the weights .*: .* too much; place"):
        resolve(str(SHIPPED), ["engine.placement.weights=[100, 0]"])
    with pytest.raises(InfeasibleError, match=r"disk has 0 B a replica"):
        resolve(str(SHIPPED), ["engine.placement.weights=[0, 0]", "tiers.ssd.capacity=0GiB"])


# ---- keys


def test_constants_are_a_choice_with_a_source() -> None:
    by_hardware, fitted = small(), small("engine.constants=flexgen-t4")
    assert fitted.scenario.link.h2d == FLEXGEN_T4.h2d
    assert fitted.scenario.tiers.ssd.read == FLEXGEN_T4.ssd_read
    assert "FlexGen's cost_model.py" in fitted.origin(("link", "h2d"))
    assert by_hardware.origin(("link", "h2d")).startswith("catalogue")
    assert by_hardware.origin(("engine", "cpu_attention_rate")).startswith("preset flexgen")
    own = small("engine.constants=flexgen-t4", "link.h2d=1GB/s")
    assert (own.scenario.link.h2d, own.origin(("link", "h2d"))) == (1e9, "--set")
    rates = system_config(own).batch
    assert rates is not None and rates.rates.h2d == 1e9 and rates.rates.mm_prefill == FLEXGEN_T4.mm_prefill


@pytest.mark.parametrize(
    "assignments",
    [(), ("engine.constants=flexgen-t4",), ("engine.overlap=false",), ("engine.cpu_attention=true",),
     ("engine.preset=zero-inference", "engine.placement.kv=[100, 0]"), ("engine.preset=zero-inference",),
     ("engine.preset=zero-inference", 'engine.version="0.6.6"')],
)  # fmt: skip
def test_resolved_scenario_loads_to_the_same(assignments: tuple[str, ...]) -> None:
    found = small(*assignments)
    again = resolve_text(to_yaml(found), "s.yaml")
    assert again.scenario == found.scenario
    one, other = system_config(again), system_config(found)
    assert (one.batch, one.dram, one.ssd, one.link, one.engine) == (other.batch, other.dram, other.ssd, other.link,
                                                                    other.engine)  # fmt: skip


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("engine.placement.kv=[60, 60]", "engine.placement.kv: 60 % on GPU and 60 % on CPU are more than all; lower"),
        ("engine.placement.kv=[101, 0]", "too large; the most is 100"),
        ("engine.max_num_seqs=8", "does nothing with preset flexgen, which serves static batches; leave it out"),
        ("offload.write=write_back", "offload: does nothing with preset flexgen"),
        ("replicas.tensor_parallel=2", "batch mode serves each replica on one GPU"),
        ("engine.cpu_attention_rate=5GB/s", "does nothing without cpu_attention"),
        ("engine.schedule=at_once", "does nothing without overlap"),
        ("engine.memory_slack=0", "it must be above zero"),
        ("engine.io.pageable_rate=1GB/s", "does nothing with staging: engine; write staging: driver"),
        ("engine.io.copy_rate=0GB/s", "zero, and the CPU copies at it; give a rate"),
        ("engine.io.kv_store_rate=0GB/s", "zero, and KV is stored below the GPU; give a rate"),
        ("engine.io.load_efficiency=1.1", "too large; the most that makes sense here is 1"),
        ("engine.io.expand_kv=sometimes", "engine.io.expand_kv"),
        ("engine.placement.kv=[20]", "engine.placement.kv: too short; write it like [20, 80]"),
        ("engine.placement.kv=[]", "engine.placement.kv: too short; write it like [20, 80]"),
        ("link.h2d=0GB/s", 'link.h2d = "0GB/s": zero, and the GPU reads what is placed below it; give a rate, or pla'),
        ("link.d2h=0GB/s", "link.d2h = \"0GB/s\": zero, and KV or activations are placed below the GPU"),
        ("link.duplex=0GB/s", "zero, and something is placed below the GPU"),
        ("link.uplink={bandwidth: 0GB/s, gpus: 1}", "link.uplink.bandwidth = \"0GB/s\": zero, and something is pla"),
        ("tiers.dram.bandwidth=0GB/s", "tiers.dram.bandwidth = \"0GB/s\": zero, and it is between GPU and disk"),
        ("tiers.ssd.read=0GB/s", "tiers.ssd.read = \"0GB/s\": zero, and something is placed on disk"),
        ("tiers.ssd.write=0GB/s", "tiers.ssd.write = \"0GB/s\": zero, and KV or activations are placed on disk"),
        ("engine.cpu_attention_rate=0GB/s", "zero, and KV is attended to on the CPU; give a rate"),
        ("model=mixtral-8x7b", "streams whole equal layers, and this model has experts"),
    ],
)  # fmt: skip
def test_wrong_key_is_told_with_its_mend(assignment: str, message: str) -> None:
    more = ("engine.overlap=false",) if "schedule" in assignment else ()
    more += ("engine.placement.kv=[0, 50]",) if "ssd" in assignment else ()
    more += ("engine.cpu_attention=true",) if "attention_rate=0" in assignment else ()
    with pytest.raises(InputError) as caught:
        small(assignment, *more)
    assert [message in str(problem) for problem in caught.value.problems] == [True]


def test_rates_of_zero_are_no_fault_where_nothing_would_move() -> None:
    lanes = ("link.h2d", "link.d2h", "link.duplex", "tiers.ssd.read", "tiers.ssd.write", "tiers.dram.bandwidth")
    placed = (
        "engine.placement.weights=[100, 0]",
        "engine.placement.kv=[100, 0]",
        "engine.placement.activations=[100, 0]",
        "engine.gpu_batch_size=8",
    )
    found = answer(*placed, *(f"{lane}=0GB/s" for lane in lanes))
    forms = found["closed_form"]
    assert found["e2e_s"]["mean"] == pytest.approx(forms["e2e_s"])
    assert forms["published_e2e_s"] == pytest.approx(forms["e2e_s"], rel=0.01)
    # weights alone go up, and nothing comes down
    assert (
        answer("engine.placement.kv=[100, 0]", "link.d2h=0GB/s", "tiers.ssd.write=0GB/s")["requests"]["finished"] == 8
    )


def test_cpu_attention_and_its_rate_do_nothing_with_all_kv_on_the_gpu() -> None:
    with pytest.raises(InputError) as caught:
        small("engine.placement.kv=[100, 0]", "engine.cpu_attention=true", "engine.cpu_attention_rate=0GB/s")
    assert [problem.path for problem in caught.value.problems] == ["engine.cpu_attention", "engine.cpu_attention_rate"]
    assert {problem.what for problem in caught.value.problems} == {"does nothing with all KV on the GPU"}


def test_replicas_of_a_host_each_keep_their_weights_in_its_dram() -> None:
    one, two = small(), small("replicas.count=2")
    weights = 32 * (4 * 4096**2 + 2 * 4096 * 16384) * 2
    assert system_config(one).dram.capacity_bytes == pytest.approx(64e9 - weights, rel=1e-3)
    assert system_config(two).dram.capacity_bytes == pytest.approx(64e9 - 2 * weights, rel=1e-3)


def test_blocks_of_the_gpu_are_what_the_weights_there_leave() -> None:
    token = 2 * 32 * 4096 * 2
    empty, half = (small(f"engine.placement.weights=[{gpu}, 50]", "engine.placement.kv=[0, 100]") for gpu in (0, 50))
    assert empty.scenario.engine.num_gpu_blocks == int(1.2 * empty.gpu.vram_bytes) // token  # type: ignore[union-attr]
    left = empty.scenario.engine.num_gpu_blocks - half.scenario.engine.num_gpu_blocks  # type: ignore[operator]
    assert left * token == pytest.approx(16 * (4 * 4096**2 + 2 * 4096 * 16384) * 2, rel=1e-3)


def test_dram_may_be_so_much_a_gpu_and_no_multiple_of_the_pool() -> None:
    each = resolve_text(SMALL.replace("capacity: 64GB", "per_gpu: 32GB"), "s.yaml", ["replicas.count=2"])
    assert each.scenario.tiers.dram.capacity == 64e9
    with pytest.raises(InputError, match=r"tiers.dram.ratio = 2: does nothing with preset flexgen"):
        resolve_text(SMALL.replace("capacity: 64GB", "ratio: 2"), "s.yaml")


def test_placement_that_lacks_a_part_shows_what_one_looks_like() -> None:
    with pytest.raises(InputError, match=r'engine.placement.kv: is missing; add "kv: \[20, 80\]"'):
        part = SMALL.replace("kv: [0, 100]}", "activations: [0, 100]}")
        resolve_text(part.replace("preset: flexgen", "preset: vllm"), "s.yaml")


def test_batch_keys_with_another_preset_are_told() -> None:
    with pytest.raises(InputError) as caught:
        whole = SMALL.replace("kv: [0, 100]}", "kv: [0, 100], activations: [100, 0]}")
        resolve_text(whole.replace("preset: flexgen", "preset: vllm"), "s.yaml")
    told = str(caught.value)
    assert "engine.placement: does nothing with preset vllm; write preset: accelerate, flexgen, zero-inference" in told
    assert "engine.gpu_batch_size = 4: does nothing with preset vllm" in told


def test_abstract_machines_have_no_weights_to_move() -> None:
    with pytest.raises(InputError, match="preset flexgen moves weights and needs a real one"):
        small("hardware={step_time: 20ms, kv_tokens: 1000}")


def test_presets_tell_what_they_cannot_be_told() -> None:
    assert {"flexgen", "zero-inference"} <= set(presets.NAMES)
    zero = small("engine.preset=zero-inference", "engine.num_gpu_batches=2", "engine.placement.kv=[50, 50]")
    notes = " ".join(text for _, text in zero.notes)
    assert "engine.num_gpu_batches = 2: not realisable in ZeRO-Inference 0.10.2 (it can be 1)" in notes
    assert "engine.placement.kv = [50.0, 50.0]: not realisable" in notes
    older = small("engine.preset=zero-inference", 'engine.version="0.6.6"')
    assert older.scenario.engine.cpu_attention is False
    assert "engine.placement.kv" in " ".join(text for _, text in older.notes)  # it is set below the GPU here


# ---- answers


def test_answer_of_a_small_batch_adds_up() -> None:
    found = answer()
    assert found["requests"]["finished"] == 8
    assert found["concurrency"]["max"] == 4  # two batches of four, one after the other
    assert found["queue_s"]["max"] == pytest.approx(found["closed_form"]["e2e_s"], rel=3e-3)
    assert found["e2e_s"]["max"] == pytest.approx(2 * found["closed_form"]["e2e_s"], rel=3e-3)
    assert found["baselines"] == {}


def test_answer_cpu_attention_moves_no_kv_to_the_gpu() -> None:
    there, here = answer("engine.cpu_attention=true"), answer()
    kv_of_token = here["closed_form"]["kv_token_bytes"]
    contexts = 8 * sum(64 + token - 1 for token in range(1, 4))
    queries = 8 * 3 * 32 * 2 * 4096
    assert here["bytes"]["h2d"] - there["bytes"]["h2d"] == contexts * kv_of_token - queries
    assert there["bytes"]["d2h"] - here["bytes"]["d2h"] == queries


def test_answer_int4_weights_move_a_quarter_and_their_scales() -> None:
    wide, narrow = answer(), answer("engine.weight_dtype=int4")
    weights = 2 * 4 * 32 * (8 * 4096**2 + 4 * 4096 * 16384)
    assert wide["bytes"]["h2d"] - narrow["bytes"]["h2d"] == pytest.approx(weights * (1 - 4.5 / 16))


def test_answer_faster_link_is_never_slower() -> None:
    makespans = [answer(f"link.h2d={rate}GB/s", "link.duplex=infGB/s")["makespan_s"] for rate in (2, 8, 32)]
    assert makespans == sorted(makespans, reverse=True) and makespans[0] > 2 * makespans[-1]


# ---- how what the host holds is moved


def rates_of(*assignments: str) -> Rates:
    """Return what the small scenario's engine works with."""
    batch = system_config(small(*assignments)).batch
    assert batch is not None
    return batch.rates


def test_memory_that_is_not_pinned_slows_each_engine_in_its_own_way() -> None:
    flexgen, zero = rates_of("engine.io.pin_weights=false"), rates_of("engine.preset=zero-inference")
    assert (flexgen.copy, flexgen.weight_load) == (15e9, inf)
    assert zero.weight_load == zero.kv_load == 3.75e9
    older = rates_of("engine.preset=zero-inference", 'engine.version="0.6.6"', "engine.placement.kv=[100, 0]")
    assert older.weight_load == pytest.approx(0.7 * older.h2d)
    assert rates_of("engine.preset=accelerate", "engine.placement.kv=[100, 0]").weight_load == 4.7e9


def test_driver_copies_faster_behind_a_newer_link_and_says_where_that_is_from() -> None:
    newer = small("engine.preset=zero-inference", "link.h2d=25GB/s")
    assert newer.scenario.engine.io is not None and newer.scenario.engine.io.pageable_rate == 17.5e9
    assert newer.origin(("engine", "io", "pageable_rate")).startswith("fitted: OPT-66B in ZeRO-Inference")
    assert small("engine.preset=zero-inference").origin(("engine", "io", "pageable_rate")).startswith("measured: ")
    own = small("engine.preset=zero-inference", "engine.io.pageable_rate=9GB/s")
    assert own.scenario.engine.io is not None and own.scenario.engine.io.pageable_rate == 9e9


def test_files_are_mapped_or_read_directly() -> None:
    on_disk = "engine.placement.weights=[0, 0]"
    assert rates_of(on_disk, "tiers.ssd.read=5.6GB/s").mapped_read == pytest.approx(1.79e9, rel=0.01)
    assert rates_of(on_disk, "engine.preset=zero-inference").mapped_read == inf
    assert rates_of(on_disk, "engine.io.read_ahead=0B").mapped_read == inf
    kept = (on_disk, "engine.placement.kv=[100, 0]")
    assert rates_of(*kept, "engine.preset=accelerate").mapped_load == 4.7e9  # copied like any memory of its own
    assert rates_of(*kept, "engine.preset=zero-inference").mapped_load == rates_of(*kept).mapped_load == inf


def test_mapped_files_that_cost_much_of_a_drive_are_told() -> None:
    on_disk = ("engine.placement.weights=[0, 0]", "tiers.ssd.read=5.6GB/s")

    def told(*assignments: str) -> str:
        return dict(small(*on_disk, *assignments).notes).get("mapped_files", "")

    assert "read 128 KiB ahead, which gives 1.79 GB/s of the drive's 5.60 GB/s; a striped volume" in told()
    assert not told("engine.io.read_ahead=8MiB") and not told("engine.io.read_ahead=0B")
    assert not told("engine.placement.weights=[0, 100]")


def test_what_is_given_of_host_io_and_decides_nothing_is_told() -> None:
    def told(*assignments: str) -> str:
        return dict(small(*assignments).notes).get("io_idle", "")

    given = ("engine.io.unpack_passes=3", "engine.io.read_ahead=1MiB")
    assert told(*given).startswith("engine.io.read_ahead, engine.io.unpack_passes do nothing, as weights,")
    assert told(*given, "engine.weight_dtype=int4").startswith("engine.io.read_ahead does nothing")
    assert not told(*given, "engine.weight_dtype=int4", "engine.placement.weights=[0, 0]") and not told()
    assert not resolve_text(to_yaml(small(*given)), "x.yaml").notes, "they aren't written"


def test_answer_pinned_is_never_slower_than_copied() -> None:
    copied, pinned = answer("engine.io.pin_weights=false"), answer("engine.io.pin_kv=true")
    assert copied["makespan_s"] > answer()["makespan_s"] > pinned["makespan_s"]
    assert copied["bytes"]["h2d"] == pinned["bytes"]["h2d"]
    assert copied["makespan_s"] == pytest.approx(2 * copied["closed_form"]["e2e_s"], rel=3e-3)


def test_answer_repeated_heads_are_copied_before_attention_on_the_cpu() -> None:
    grouped = ("model=llama-2-70b", "hardware=rtx-a6000", "engine.preset=zero-inference", "tiers.dram.capacity=256GB")
    plain, expanded = answer(*grouped, "engine.io.expand_kv=never"), answer(*grouped)
    contexts = 8 * sum(64 + token - 1 for token in range(1, 4))
    kv = contexts * plain["closed_form"]["kv_token_bytes"]
    assert (
        expanded["bytes"]["dram"] - plain["bytes"]["dram"] == (8 - 1 + 2 * 8) * kv
    )  # read as often, written twice as wide


def test_sweeps_tell_which_ways_with_memory_decide_nothing() -> None:
    def idle(*assignments: str) -> set[str]:
        paths = batch_idle_paths(small(*assignments).scenario)
        return {path[2] for path in paths if path[:2] == ("engine", "io")}

    assert idle() == {"pageable_rate", "read_ahead", "expand_kv", "unpack_passes"}
    assert idle("engine.preset=zero-inference") == {"load_efficiency", "read_ahead", "unpack_passes"}
    assert "copy_rate" in idle("engine.preset=zero-inference", "engine.io.expand_kv=never")


# ---- measured runs


TOLD = (ROOT / "docs" / "batch-mode.md").read_text("utf-8").partition("## Measured runs")[2]


def test_measured_runs_are_met_as_the_documentation_says() -> None:
    chosen = ("fg-t4-opt30b-p512", "zero-t4-flexgen", "zero-a6000-kv-offload")
    rows = study([read for read in own_cases() if read.case.id in chosen], None, Workers(1))
    for name in chosen:
        found = [round(100 * (row.error or inf)) for row in rows if row.case.id == name]
        line = re.search(rf"^\| `{name}` \|.*\| (.*) \|$", TOLD, re.M)
        assert line is not None
        told = [int(text.replace("−", "-").rstrip("\\*")) for text in line[1].split(", ")]
        assert all(abs(a - b) <= 1 for a, b in zip(found, told, strict=True)), (name, found, told)
    errors = [abs(row.error or 0.0) for row in rows if not row.observation.fitted]
    assert median(errors) < 0.05 and max(errors) < 0.12


def test_measured_runs_are_told_by_the_documentation_case_by_case() -> None:
    told = re.findall(r"^\| `([a-z0-9.-]+)`", TOLD, re.M)
    assert told == [read.case.id for read in own_cases() if read.case.group == "batch_offload"]
