"""Calibration profiles as hardware of scenarios: what they bring, what they decide, and what is said beyond them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.calc.machine import load_gpu
from simkv.catalog import load_hardware
from simkv.cli import app
from simkv.errors import InputError
from simkv.formulas.interpolated import InterpolatedStep
from simkv.formulas.step import RooflineStep
from simkv.profile.load import write_profile
from simkv.profile.machine import gpu_of
from simkv.scenario.build import system_config
from simkv.scenario.explain import explain, to_yaml
from simkv.scenario.resolve import Resolved, resolve, resolve_text
from simkv.simulation import run_scenario
from tests.profile_factory import GIB, make_compute, make_link, make_profile

ROOT = Path(__file__).parents[1]
SCENARIO = """\
name: calibrated
model: {model}
hardware: {hardware}
engine: {{max_num_seqs: 8, max_num_batched_tokens: 256, max_model_len: 2048}}
workload: {{kind: sessions, arrival: {{process: poisson, rate: 0.2 req/s}}, requests: 20, turns: 4,
  first_prompt_tokens: 200, prompt_tokens: 100, output_tokens: 16, think_time: 5s}}
tiers: {{dram: {{capacity: 512MiB}}, ssd: {{capacity: 2GiB}}}}
run: {{baselines: []}}
"""
ACTIVE = ("offload.residency=0.5", "offload.access={pattern: topk, budget: 128}", "engine.prefill=vram",
          "engine.prefix_caching=false", "tiers.ssd.capacity=0GiB")  # fmt: skip


def resolved(path: Path, *assignments: str, model: str = "smollm2-135m") -> Resolved:
    return resolve_text(SCENARIO.format(hardware=path.name, model=model), str(path.parent / "s.yaml"), assignments)


def saved(folder: Path, **changes: Any) -> Path:
    write_profile(make_profile(**changes), folder / "cal.json")
    return folder / "cal.json"


def origins(found: Resolved) -> dict[str, tuple[str, str]]:
    return {row.path: (row.value, row.origin) for row in explain(found)}


def said(found: Resolved) -> str:
    return "\n".join(text for code, text in found.notes if code == "outside_calibration")


def refused(path: Path, *assignments: str, model: str = "smollm2-135m") -> str:
    with pytest.raises(InputError) as caught:
        resolved(path, *assignments, model=model)
    return str(caught.value)


def summary(found: Resolved) -> dict[str, Any]:
    return dict(run_scenario(found).summary)


@pytest.fixture
def cal(tmp_path: Path) -> Path:
    return saved(tmp_path)


def test_profile_brings_what_was_measured_each_with_its_origin(cal: Path) -> None:
    found = origins(resolved(cal))
    fitted, measured = "calibration test-cpu, fitted", "calibration test-cpu, measured"
    assert {key: found[key] for key in (
        "link.h2d", "link.d2h", "link.duplex", "link.latency", "link.setup", "tiers.ssd.read", "tiers.ssd.write",
        "tiers.ssd.latency", "tiers.ssd.request_latency", "tiers.dram.bandwidth", "engine.weight_dtype",
        "engine.kv_dtype", "contention.compute_during.h2d", "contention.during_compute.ssd_read",
        "contention.after_wait", "offload.host_cost_per_step", "offload.host_cost_per_block",
        "engine.attention_kernels",
    )} == {
        "link.h2d": ("6 GB/s", fitted), "link.d2h": ("5.5 GB/s", fitted), "link.duplex": ("8 GB/s", measured),
        "link.latency": ("2us", fitted), "link.setup": ("20us", fitted), "tiers.ssd.read": ("1.2 GB/s", fitted),
        "tiers.ssd.write": ("0.8 GB/s", fitted), "tiers.ssd.latency": ("60us", fitted),
        "tiers.ssd.request_latency": ("90us", fitted), "tiers.dram.bandwidth": ("16 GB/s", measured),
        "engine.weight_dtype": ("fp32", measured), "engine.kv_dtype": ("fp32", measured),
        "contention.compute_during.h2d": ("1.1", measured), "contention.during_compute.ssd_read": ("1.1", measured),
        "contention.after_wait": ("1.05", measured),
        "offload.host_cost_per_step": ("50us", fitted), "offload.host_cost_per_block": ("1us", fitted),
        "engine.attention_kernels": ("contiguous", "default"),
    }  # fmt: skip


def test_calc_without_a_measured_link_says_what_to_do(tmp_path: Path) -> None:
    path = saved(tmp_path, h2d=None)
    asked = ["calc", "break-even", "--model", "smollm2-135m", "--hardware", str(path), "--span", "1Ki"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 2
    assert "hardware = test-cpu: has no bandwidth from host to device; measure it" in done.stderr


def test_profile_gives_way_to_what_is_written(cal: Path) -> None:
    found = origins(resolved(cal, "link.h2d=1 GB/s", "tiers.ssd.read=2 GB/s", "engine.kv_dtype=bf16"))
    assert found["link.h2d"] == ("1 GB/s", "--set")
    assert found["tiers.ssd.read"] == ("2 GB/s", "--set")
    assert found["engine.kv_dtype"] == ("bf16", "--set")


def test_profile_of_this_model_gives_its_step_times(cal: Path) -> None:
    config = system_config(resolved(cal))
    compute = make_compute()
    assert isinstance(config.cost, InterpolatedStep)
    seconds = compute.step_overhead_s + 30 * (1e-3 + compute.layer_overhead_s + compute.decode[0].context[1][1]) + 10e-3
    assert config.cost.decode(1, 512)[0] == pytest.approx(seconds)
    assert said(resolved(cal)) == ""


def test_profile_memory_is_the_pool_that_the_budget_is_of(tmp_path: Path) -> None:
    small = resolved(saved(tmp_path, memory_bytes=1.0 * GIB)).scenario.engine.num_gpu_blocks
    large = resolved(saved(tmp_path, memory_bytes=2.0 * GIB)).scenario.engine.num_gpu_blocks
    assert small is not None and large is not None
    assert large - small == pytest.approx(0.9 * GIB / (16 * 46080), abs=2)


@pytest.mark.parametrize(
    ("changes", "assignments", "model", "note"),
    [
        ({}, (), "phi-3-mini-4k", "step times of phi-3-mini-4k were not measured in test-cpu, those of smollm2-135m"),
        ({"compute": None}, (), "smollm2-135m", "test-cpu has no step times"),
        ({}, ("engine.weight_dtype=bf16", "engine.kv_dtype=bf16"), "smollm2-135m", "with bf16 weights"),
        ({}, ("engine.kv_dtype=fp8",), "smollm2-135m", "with fp8 KV were not measured in test-cpu, fp32 was"),
        ({"base": "rtx-4090"}, ("replicas.tensor_parallel=3",), "smollm2-135m", "3 ranks were not measured"),
        ({"base": "rtx-4090", "rates": None, "compute": None}, (), "smollm2-135m", "with the rates of rtx-4090"),
    ],
)  # fmt: skip
def test_profile_of_something_else_gives_a_roofline_and_says_why(
    changes: dict[str, Any], assignments: tuple[str, ...], model: str, note: str, tmp_path: Path
) -> None:
    found = resolved(saved(tmp_path, memory_bytes=16.0 * GIB, **changes), *assignments, model=model)
    assert note.lower() in said(found).lower()
    assert isinstance(system_config(found).cost, RooflineStep)


def test_profile_in_bf16_serves_fp16_alike(tmp_path: Path) -> None:
    cal = saved(tmp_path, compute=make_compute(dtype="bf16"))
    found = resolved(cal, "engine.weight_dtype=fp16")
    assert (found.scenario.engine.weight_dtype, found.scenario.engine.kv_dtype) == ("fp16", "bf16")
    assert isinstance(system_config(found).cost, InterpolatedStep)


def test_kernels_choose_the_table_and_are_refused_where_there_is_none(tmp_path: Path) -> None:
    cal = saved(tmp_path)
    plain, paged = (
        system_config(resolved(cal, *given)).cost.decode(4, 4096)[0]
        for given in ((), ("engine.attention_kernels=paged",))
    )
    assert paged > plain
    assert "attention_kernels" in refused(cal, "engine.attention_kernels=paged", "engine.kv_dtype=fp8")
    assert "does nothing" in refused(cal, "engine.attention_kernels=contiguous", "hardware=rtx-4090")
    without = saved(tmp_path, compute=make_compute(paged=None))
    assert "wasn't measured in test-cpu" in refused(without, "engine.attention_kernels=paged")


def test_hardware_path_starts_in_the_scenarios_folder_then_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "calibration").mkdir()
    write_profile(make_profile(name="beside"), tmp_path / "calibration" / "cal.json")
    write_profile(make_profile(name="here"), tmp_path / "cal.json")
    monkeypatch.chdir(tmp_path)
    file = Path("scenarios/s.yaml")
    for written, name in (("../calibration/cal.json", "beside"), ("cal.json", "here")):
        file.write_text(SCENARIO.format(hardware=written, model="smollm2-135m"))
        found = resolve(str(file))
        assert found.profile is not None and found.profile.name == name
    set_ = resolve(str(file), ("hardware=calibration/cal.json",))
    assert set_.profile is not None and set_.profile.name == "beside"
    with pytest.raises(InputError, match=r"\.\./calibration/cal\.json: no such file"):
        resolve(str(file), ("hardware=../calibration/cal.json",))


def test_hardware_file_without_json_in_its_name_is_read_and_a_card_wins_over_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path).rename(tmp_path / "mine")
    (tmp_path / "rtx-4090").write_text("{}")
    assert resolved(tmp_path / "mine").profile is not None
    assert resolved(tmp_path / "rtx-4090").profile is None


def test_resolved_yaml_of_a_calibrated_scenario_loads_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "out").mkdir()
    saved(tmp_path)
    monkeypatch.chdir(tmp_path)
    file = Path("scenarios/s.yaml")
    file.write_text(SCENARIO.format(hardware="../cal.json", model="smollm2-135m"))
    for assignments in ((), ACTIVE, ("engine.attention_kernels=paged",), ("engine.weight_dtype=bf16",)):
        first = resolve(str(file), assignments)
        (tmp_path / "out" / "scenario.resolved.yaml").write_text(to_yaml(first))
        again = resolve("out/scenario.resolved.yaml")
        assert (again.scenario, again.scenario_hash) == (first.scenario, first.scenario_hash)


def test_hash_covers_the_fit_and_not_samples_name_or_residuals(tmp_path: Path) -> None:
    hashes = [resolved(saved(tmp_path, **changes)).scenario_hash for changes in (
        {}, {"name": "other", "samples": (), "environment": {}}, {"host": None},
        {"compute": make_compute(layer_overhead_s=31e-6)}, {"h2d": make_link(6.1e9)}, {"memory_bytes": 3.0 * GIB},
        {"compute": make_compute(prefill=((64, 0.15e-3), (256, 0.91e-3)))},
    )]  # fmt: skip
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == len(hashes) - 1


def test_hash_of_a_scenario_on_a_card_does_not_hold_a_calibration(tmp_path: Path) -> None:
    on_card = resolved(saved(tmp_path), "hardware=rtx-4090")
    assert on_card.profile is None
    assert on_card.scenario_hash == resolved(saved(tmp_path, host=None), "hardware=rtx-4090").scenario_hash


def test_changed_file_changes_predictions_in_the_same_process(tmp_path: Path) -> None:
    before = summary(resolved(saved(tmp_path)))
    slow = make_compute(linear=((1, 4e-3), (256, 60e-3)))
    after = summary(resolved(saved(tmp_path, compute=slow)))
    again = summary(resolved(saved(tmp_path)))
    assert after["ttft_s"]["mean"] > 2 * before["ttft_s"]["mean"]
    assert after["scenario_hash"] != before["scenario_hash"]
    assert again == before


def test_run_beyond_the_measured_range_warns_once_a_figure(tmp_path: Path) -> None:
    cal = saved(tmp_path, compute=make_compute(linear=((1, 1e-3), (64, 6e-3))))
    warnings = [one for one in summary(resolved(cal))["warnings"] if one["code"] == "outside_calibration"]
    linear = [one["message"] for one in warnings if "linear layers" in one["message"]]
    assert linear == [
        "Asked for linear layers of 201 tokens in one step; test-cpu measured 1 to 64: the largest is taken, times a "
        "roofline's ratio."
    ]


def test_run_within_the_measured_range_warns_of_nothing(tmp_path: Path) -> None:
    cal = saved(tmp_path, compute=make_compute(prefill=((1, 0.01e-3), (4000, 90e-3))))
    codes = {one["code"] for one in summary(resolved(cal, "workload.prompt_tokens=150"))["warnings"]}
    assert "outside_calibration" not in codes


def test_run_with_pieces_beyond_the_measured_range_names_figure_and_range(tmp_path: Path) -> None:
    cal = saved(tmp_path, h2d=make_link(6e9, smallest_bytes=4096, largest_bytes=65536))
    messages = "\n".join(one["message"] for one in summary(resolved(cal))["warnings"])
    assert "link.h2d was asked for pieces of 720 KiB; test-cpu measured 4.00 KiB to 64.0 KiB." in messages
    assert "link.d2h was asked" not in messages
    own = "\n".join(one["message"] for one in summary(resolved(cal, "link.h2d=6 GB/s"))["warnings"])
    assert "link.h2d was asked" not in own


def test_h2d_is_that_of_a_buffer_as_large_as_dram(tmp_path: Path) -> None:
    cal = saved(tmp_path, h2d_by_buffer=((256 << 20, 6e9), (1 << 30, 4e9)))
    found = resolved(cal)
    assert found.scenario.link.h2d == pytest.approx(6e9 - 2e9 / 3)
    assert origins(found)["link.h2d"][1] == "calibration test-cpu, measured at 512 MiB"
    beyond = resolved(cal, "tiers.dram.capacity=8GiB")
    assert beyond.scenario.link.h2d == 4e9
    assert "link.h2d was asked for a buffer (tiers.dram.capacity) of 8.00 GiB" in said(beyond)
    assert "256 MiB to 1.00 GiB" in said(beyond)
    assert resolved(cal, "link.h2d=5 GB/s").scenario.link.h2d == 5e9


def test_base_card_stands_in_for_what_was_not_measured(tmp_path: Path) -> None:
    base = load_hardware("rtx-4090")
    cal = saved(tmp_path, base="rtx-4090", d2h=None, duplex_bytes_per_s=None)
    found = origins(resolved(cal))
    assert found["link.h2d"] == ("6 GB/s", "calibration test-cpu, fitted")
    assert found["link.d2h"][1].startswith("catalogue, ")
    gpu = gpu_of(make_profile(base="rtx-4090"))
    assert gpu.value("gpu_link_bytes_per_s") == base.value("gpu_link_bytes_per_s")
    assert gpu.value("tile_fill_loss") == base.value("tile_fill_loss")
    assert gpu.figure("flops_fp16_per_s").value == 90e9
    assert gpu.value("hbm_bytes_per_s") * gpu.value("weight_bandwidth_efficiency") == pytest.approx(14e9)
    assert gpu.dense_flops_per_s("fp16") * gpu.value("attention_flops_efficiency") == pytest.approx(25e9)
    ratio = 90e9 / base.dense_flops_per_s("fp16")
    assert gpu.dense_flops_per_s("fp8") == pytest.approx(ratio * base.dense_flops_per_s("fp8"))


def test_missing_figures_without_a_base_say_what_to_measure(tmp_path: Path) -> None:
    rates = refused(saved(tmp_path, rates=None))
    assert "fit.rates" in rates and "simkv calibrate" in rates and "cal.json" in rates
    links = refused(saved(tmp_path, d2h=None, duplex_bytes_per_s=None))
    assert "link.d2h: isn't in calibration profile test-cpu; measure it" in links
    assert "link.duplex: isn't in calibration profile test-cpu" in links
    given = ("link.d2h=5 GB/s", "link.duplex=8 GB/s")
    assert resolved(saved(tmp_path, d2h=None, duplex_bytes_per_s=None), *given).scenario.link.d2h == 5e9
    assert "no link between GPUs" in refused(saved(tmp_path), "replicas.tensor_parallel=3")
    base = refused(saved(tmp_path, base="rtx-9999"))
    assert "device.base = rtx-9999: is not a hardware" in base and "cal.json" in base


def test_broken_profile_is_refused_with_its_file_and_path(tmp_path: Path) -> None:
    cal = saved(tmp_path)
    tree = json.loads(cal.read_text())
    tree["fit"]["h2d"]["bytes_per_s"] = -1
    cal.write_text(json.dumps(tree))
    assert f"{cal}: fit.h2d.bytes_per_s = -1: too small" in refused(cal)


def test_active_offload_takes_contention_and_host_costs(cal: Path) -> None:
    active = system_config(resolved(cal, *ACTIVE)).active
    assert active is not None
    assert (active.host_s_per_step, active.host_s_per_block) == (50e-6, 1e-6)
    assert active.contention.compute_during.h2d == 1.1
    assert active.contention.during_compute.ssd_read == 1.1
    assert active.contention.after_wait == 1.05
    assert summary(resolved(cal, *ACTIVE))["requests"]["finished"] == 20


def test_figures_of_a_profile_are_used_by_the_closed_forms(cal: Path) -> None:
    gpu = load_gpu(str(cal))
    assert gpu.value("ssd_read_bytes_per_s") == 1.2e9
    result = CliRunner().invoke(app, ["calc", "kv-size", "--model", "smollm2-135m", "--tokens", "1024"])
    assert result.exit_code == 0
    step = CliRunner().invoke(
        app, ["calc", "step", "--model", "smollm2-135m", "--hardware", str(cal), "--batch", "1", "--context", "512"]
    )
    assert step.exit_code == 0, step.output


def test_shipped_small_scenario_runs_on_a_calibrated_cpu(cal: Path) -> None:
    for kernels in ("contiguous", "paged"):
        found = resolve(
            str(ROOT / "scenarios" / "calibrated-small.yaml"),
            (f"hardware={cal}", "workload.requests=40", f"engine.attention_kernels={kernels}"),
        )
        assert summary(found)["requests"]["finished"] == 40


def test_eager_mode_beside_measured_step_times_is_said_to_do_nothing(cal: Path) -> None:
    assert "engine.enforce_eager does nothing" in said(resolved(cal, "engine.enforce_eager=true"))
    eager, graphs = (
        system_config(resolved(cal, f"engine.enforce_eager={value}")).cost.decode(1, 512) for value in ("true", "false")
    )
    assert eager == graphs


def test_run_on_a_broken_or_missing_profile_ends_with_code_two(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO.format(hardware="cal.json", model="smollm2-135m"))
    missing = CliRunner().invoke(app, ["run", str(file)])
    assert (missing.exit_code, "cal.json: no such file; make one with simkv calibrate" in missing.stderr) == (2, True)
    (tmp_path / "cal.json").write_text('{"schema": "simkv-calibration-0"}')
    broken = CliRunner().invoke(app, ["run", str(file)])
    assert broken.exit_code == 2
    assert "cal.json: schema = " in broken.stderr
    assert len(broken.stderr.splitlines()) == 1
