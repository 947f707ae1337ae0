"""``simkv calibrate``: what it refuses, keeps, says and writes; and one whole quick run of this machine's CPU."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.calibrate import environment, plan
from simkv.calibrate import verify as verification
from simkv.calibrate.task import Bench, Task
from simkv.cli import app
from simkv.errors import InputError, Problem
from simkv.profile.load import read_profile, write_profile
from simkv.profile.schema import Prediction, Profile, Sample, Verification, VerifiedRun
from tests.profile_factory import make_profile
from tests.torch_here import torch_or_skip

torch_or_skip()

ROOT = Path(__file__).parents[1]
FIO = {"fio version": "fio-3.36", "jobs": []}


def simkv(*args: str | Path) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def calibrate(*args: str | Path) -> Any:
    return simkv("calibrate", "--device", "cpu", "--quick", "--no-plot", *args)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIMKV_DEBUG", raising=False)
    monkeypatch.setattr(environment, "load_per_core", lambda: 0.1)
    return tmp_path


class Plan:
    """Copies that take as long as the line says, in place of real measurements."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.faults: dict[int, Callable[[], None]] = {}
        monkeypatch.setattr(plan, "plan", lambda bench: tuple(self._task(k) for k in range(6)))

    def _task(self, number: int) -> Task:
        nbytes, pieces = 4096 << 2 * number, 1 + number % 3

        def run() -> Iterator[Sample]:
            self.calls += 1
            self.faults.get(number, lambda: None)()
            seconds = 20e-6 + pieces * (2e-6 + nbytes / 5e9)
            at: dict[str, float | int | str | bool] = {"bytes": nbytes, "pieces": pieces, "memory": "pageable"}
            yield Sample(kind="h2d", at=at, seconds=(seconds,) * 5)

        return Task(f"h2d/{nbytes}x{pieces}", 0.5, run)


@pytest.fixture
def planned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    return Plan(monkeypatch)


def interrupted() -> None:
    raise KeyboardInterrupt


def out_of_memory() -> None:
    raise RuntimeError("not enough memory: you tried to allocate 99 bytes")


# ---- what is written and said


def test_measured_profile_is_written_and_told(planned: Plan, folder: Path) -> None:
    done = calibrate("--out", "mine/local.json", "--name", "mine")
    assert done.exit_code == 0, done.output
    profile = read_profile("mine/local.json")
    assert (profile.name, profile.device.kind, profile.device.memory_bytes) == ("mine", "cpu", 2 << 30)
    assert profile.fit.h2d is not None
    assert profile.fit.h2d.bytes_per_s == pytest.approx(5e9, rel=0.01)
    assert profile.environment["settings"]["quick"] is True
    assert {"simkv", "torch", "kernel", "cpu", "cores", "threads", "date"} <= set(profile.environment)
    assert "host to device" in done.stdout and "5.00 GB/s + 20.0 µs a transfer + 2.00 µs a piece" in done.stdout
    assert "--set hardware=mine/local.json" in done.stdout
    assert os.listdir("mine") == ["local.json"]


def test_profile_tells_no_path_and_no_host(planned: Plan, folder: Path) -> None:
    calibrate("--out", "local.json", "--ssd-path", folder)
    text = Path("local.json").read_text()
    assert str(folder) not in text and os.uname().nodename not in json.loads(text)["environment"].values()
    assert read_profile("local.json").environment["ssd"]["file_system"]


def test_profile_is_named_and_put_as_the_device(planned: Plan, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "cpu_name", lambda: "Acme(R) Fast(TM) CPU E5-2690 v4 @ 2.60GHz")
    assert calibrate().exit_code == 0
    assert read_profile("calibration/acme-fast-e5-2690-v4.json").name == "acme-fast-e5-2690-v4"


def test_json_prints_the_profile_and_nothing_else(planned: Plan, folder: Path) -> None:
    done = calibrate("--out", "local.json", "--json")
    assert done.stdout == Path("local.json").read_text()
    assert Profile.model_validate_json(done.stdout).name


def test_plot_is_drawn_beside_the_profile(planned: Plan, folder: Path) -> None:
    done = simkv("calibrate", "--device", "cpu", "--quick", "--out", "local.json")
    assert done.exit_code == 0, done.output
    assert Path("local.png").read_bytes().startswith(b"\x89PNG")
    assert "local.png" in done.stdout


def test_busy_machine_is_warned_of(planned: Plan, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "other programs run" not in calibrate("--out", "a.json").stderr
    monkeypatch.setattr(environment, "load_per_core", lambda: 1.7)
    assert (
        "warning: other programs run (load 1.7 per core): figures will be noisy" in calibrate("--out", "b.json").stderr
    )
    assert read_profile("b.json").environment["load_per_core"] == 1.7


def test_failed_measurement_is_told_and_recorded(planned: Plan, folder: Path) -> None:
    planned.faults[2] = out_of_memory
    done = calibrate("--out", "local.json")
    assert done.exit_code == 0
    failed = read_profile("local.json").environment["failed"]
    assert failed == [
        {"key": "h2d/65536x3", "reason": "RuntimeError: not enough memory: you tried to allocate 99 bytes"}
    ]
    assert "Not measured, 1 that failed:\n  h2d/65536x3: RuntimeError: not enough memory" in done.stdout


def test_machine_on_which_nothing_works_gets_no_profile(planned: Plan, folder: Path) -> None:
    planned.faults = dict.fromkeys(range(6), out_of_memory)
    done = calibrate("--out", "local.json")
    assert done.exit_code == 2
    assert "not one measurement worked: RuntimeError: not enough memory" in done.stderr
    assert not Path("local.json").exists()


# ---- interrupted


def test_interrupted_calibration_goes_on_where_it_ended(planned: Plan, folder: Path) -> None:
    planned.faults[2] = interrupted
    done = calibrate("--out", "local.json")
    assert done.exit_code == 130
    assert "kept: 2 of 6 measurements; run the same command to go on" in done.stderr
    assert not Path("local.json").exists()
    planned.faults, planned.calls = {}, 0
    done = calibrate("--out", "local.json")
    assert done.exit_code == 0
    assert "resuming: 2 of 6 measurements are there" in done.stderr
    assert planned.calls == 4
    assert len(read_profile("local.json").samples) == 6
    assert sorted(os.listdir()) == ["local.json"]


def test_interrupted_calibration_of_other_settings_is_begun_anew(planned: Plan, folder: Path) -> None:
    planned.faults[2] = interrupted
    calibrate("--out", "local.json")
    planned.faults, planned.calls = {}, 0
    done = calibrate("--out", "local.json", "--hot-pool", "1GiB")
    assert "local.partial.jsonl is of another machine or other settings (hot_pool_bytes): begun anew" in done.stderr
    assert planned.calls == 6


def test_fresh_calibration_takes_nothing_over(planned: Plan, folder: Path) -> None:
    planned.faults[2] = interrupted
    calibrate("--out", "local.json")
    planned.faults, planned.calls = {}, 0
    assert "resuming" not in calibrate("--out", "local.json", "--fresh").stderr
    assert planned.calls == 6


def test_older_profile_stays_until_the_new_one_is_whole(planned: Plan, folder: Path) -> None:
    write_profile(make_profile(name="older"), "local.json")
    planned.faults[2] = interrupted
    calibrate("--out", "local.json")
    assert read_profile("local.json").name == "older"
    planned.faults = {}
    calibrate("--out", "local.json", "--name", "newer")
    assert read_profile("local.json").name == "newer"


# ---- refused


def test_without_torch_says_how_to_get_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    done = simkv("calibrate", "--out", "local.json")
    assert done.exit_code == 2
    assert "torch, which isn't installed; pip install 'simkv[torch]'" in done.stderr
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name: a scenario\n", "not JSON"),
        ('{"schema_version": 1}', "schema: is missing"),
        ('{"schema": "simkv-calibration-9"}', "schema"),
        ("", "is empty"),
    ],
)
def test_file_that_is_no_profile_is_refused_and_stays(planned: Plan, folder: Path, text: str, why: str) -> None:
    Path("local.json").write_text(text)
    done = calibrate("--out", "local.json")
    assert done.exit_code == 2
    assert "local.json" in done.stderr and "isn't a profile that could be replaced" in done.stderr
    assert Path("local.json").read_text() == text
    assert planned.calls == 0


def test_folder_at_out_is_refused(planned: Plan, folder: Path) -> None:
    done = calibrate("--out", folder)
    assert (done.exit_code, planned.calls) == (2, 0)
    assert "is a folder" in done.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--device", "tpu"], "--device = tpu: is no kind of device; write cuda or cpu"),
        (["--dtype", "int3"], "--dtype = int3: is not a dtype that is measured"),
        (["--model", "llama-9-8b"], "llama-9-8b: is not a model of the catalogue"),
        (["--model", "deepseek-v3"], "--model = deepseek-v3: calibration computes plain dense decoders"),
        (["--model", "llama-3.1-405b"], "--model = llama-3.1-405b: its weights take"),
        (["--base", "h900"], "--base = h900: is not a hardware of the catalogue"),
        (["--out", "t4"], "--out = t4: isn't the name of a profile"),
        (["--out", "p.png"], "--out = p.png: isn't the name of a profile"),
        (["--name", " "], "--name: is empty"),
        (["--name", "n" * 101], "--name: is too long; the most is 100 characters"),
        (["--name", "a\nb"], "--name: has characters that can't be printed"),
        (["--out", "n" * 300 + ".json"], "can't be written: File name too long"),
        (["--hot-pool", "1MiB"], "--hot-pool = 1.00 MiB: too small; the least is 64.0 MiB"),
        (["--hot-pool", "900TiB"], "--hot-pool = 900 TiB: more than half of this machine's"),
        (["--ssd-path", "absent"], "--ssd-path = absent: no folder is there"),
        (
            ["--import", "x.txt", "--base", "h100-sxm5-80gb", "--quick"],
            "--quick: does nothing with --import, --base; leave it out",
        ),
        (["--import", "x.txt"], "--base: is missing"),
        (["--verify"], "--verify: on a CPU, KV below the pool lies on a drive; name a folder on it: --ssd-path DIR"),
        (["--verify-only", "x.json", "--quick"], "--quick: does nothing with --verify-only; leave it out"),
        (["--verify-only", "x.json"], "x.json: no such file"),
        (["--import", "absent.txt", "--base", "h100-sxm5-80gb"], "absent.txt"),
    ],
)
def test_options_that_cant_be_are_refused(planned: Plan, folder: Path, args: list[str], message: str) -> None:
    device = [] if {"--device", "--import", "--verify-only"} & set(args) else ["--device", "cpu"]
    done = simkv("calibrate", *device, *args)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert planned.calls == 0
    assert os.listdir() == []


def test_gpu_that_isnt_there_is_refused(folder: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    done = simkv("calibrate", "--device", "cuda")
    assert done.exit_code == 2
    assert "--device = cuda: torch finds no CUDA device; use --device cpu" in done.stderr


def test_profile_of_another_machine_isnt_verified_here(planned: Plan, folder: Path) -> None:
    calibrate("--out", "local.json")
    profile = read_profile("local.json")
    write_profile(profile.model_copy(update={"environment": profile.environment | {"cpu": "another"}}), "other.json")
    done = simkv("calibrate", "--verify-only", "other.json")
    assert done.exit_code == 2
    assert "other.json: is of another machine or other versions (cpu)" in done.stderr


def test_profile_is_verified_on_a_cpu_with_a_drive_alone(planned: Plan, folder: Path) -> None:
    calibrate("--out", "local.json")
    done = simkv("calibrate", "--verify-only", "local.json")
    assert done.exit_code == 2
    assert done.stderr.startswith("--verify-only: on a CPU, KV below the pool lies on a drive; name a folder on it")


def test_model_of_a_file_isnt_verified(planned: Plan, folder: Path) -> None:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
             "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 2048}  # fmt: skip
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "torch_dtype": "float32"} | sizes
    Path("config.json").write_text(json.dumps(config))
    done = calibrate("--model", "config.json", "--verify", "--ssd-path", folder)
    assert (done.exit_code, planned.calls) == (2, 0), done.output
    assert (
        "is not in the catalogue, and scenarios of a verification name their model; leave out --verify" in done.stderr
    )


@pytest.mark.parametrize(
    "changes", [{"threads": 10**9}, {"threads": "x"}, {"settings": {"model": "smollm2-135m", "dtype": [1]}}]
)
def test_profile_of_odd_settings_isnt_verified(planned: Plan, folder: Path, changes: dict[str, Any]) -> None:
    calibrate("--out", "local.json")
    profile = read_profile("local.json")
    write_profile(profile.model_copy(update={"environment": profile.environment | changes}), "odd.json")
    done = simkv("calibrate", "--verify-only", "odd.json", "--ssd-path", folder)
    assert (done.exit_code, "odd.json: wasn't measured by simkv calibrate" in done.stderr) == (2, True), done.stderr


def test_profile_of_imported_figures_isnt_verified(folder: Path) -> None:
    write_profile(make_profile(kind="imported"), "imported.json")
    done = simkv("calibrate", "--verify-only", "imported.json")
    assert done.exit_code == 2
    assert "wasn't measured by simkv calibrate" in done.stderr


# ---- figures of others


NVBANDWIDTH = """\
nvbandwidth Version: v0.4
Built from Git version:

NOTE: This tool reports current measured bandwidth on your system.

CUDA Runtime Version: 12040
CUDA Driver Version: 12040
Driver Version: 550.54.15

Device 0: NVIDIA H100 80GB HBM3

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0
 0     55.25

SUM host_to_device_memcpy_ce 55.25

Running device_to_host_memcpy_ce.
memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)
           0
 0     54.10

SUM device_to_host_memcpy_ce 54.10
"""


def test_imported_figures_need_neither_torch_nor_a_measurement(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    Path("nv.txt").write_text(NVBANDWIDTH)
    done = simkv("calibrate", "--import", "nv.txt", "--base", "h100-sxm5-80gb", "--name", "their-h100", "--no-plot")
    assert done.exit_code == 0, done.output
    profile = read_profile("calibration/their-h100.json")
    assert (profile.device.kind, profile.device.base) == ("imported", "h100-sxm5-80gb")
    assert profile.fit.h2d is not None
    assert profile.fit.h2d.bytes_per_s == pytest.approx(55.25e9, rel=0.01)


def test_imported_figures_fill_what_wasnt_measured_and_nothing_else(planned: Plan, folder: Path) -> None:
    Path("nv.txt").write_text(NVBANDWIDTH)
    done = calibrate("--import", "nv.txt", "--out", "local.json")
    assert done.exit_code == 0, done.output
    profile = read_profile("local.json")
    assert profile.fit.h2d is not None and profile.fit.d2h is not None
    assert profile.fit.h2d.bytes_per_s == pytest.approx(5e9, rel=0.01)
    assert profile.fit.d2h.bytes_per_s == pytest.approx(54.1e9, rel=0.01)
    assert profile.environment["imported"][0]["tool"] == "nvbandwidth"


# ---- verified


def verified(note: str = "of a test") -> Verification:
    one = Prediction(measured=0.1, predicted=0.11, error=0.1, repeats=(0.1, 0.12))
    hits = Prediction(measured=1.0, predicted=1.0)
    run = VerifiedRun(
        name="resident", scenario="name: x\n", t_step_s=one, t_compute_s=one, t_transfer_s=one, p_hit=hits, outputs="00"
    )
    return Verification(runs=(run,), bit_identical=True, transfer_over_compute=0.5, note=note)


@pytest.fixture
def verifying(planned: Plan, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    paths: list[Path] = []

    def verify(path: Path, bench: Bench, progress: Callable[[float, str], None]) -> Profile:
        profile = read_profile(path)
        assert profile.verification is None, "what was measured is there before it is verified"
        paths.append(path)
        progress(0.5, "a run")
        note = f"{bench.model.name}, quick {bench.quick}, {bench.hot_pool_bytes} bytes"
        return profile.model_copy(update={"verification": verified(note)})

    monkeypatch.setattr(verification, "verify", verify)
    return paths


def test_verification_is_kept_in_the_profile_and_printed(verifying: list[Path], folder: Path) -> None:
    done = calibrate("--verify", "--ssd-path", folder, "--out", "local.json")
    assert done.exit_code == 0, done.output
    kept = read_profile("local.json").verification
    assert kept is not None and kept.runs[0].t_step_s.predicted == 0.11
    assert "Verification: a real decode" in done.stdout and "+10.0%" in done.stdout
    assert verifying == [Path("local.json")]


def test_profile_that_is_there_is_verified_as_it_was_measured(verifying: list[Path], folder: Path) -> None:
    calibrate("--out", "local.json", "--hot-pool", "1GiB", "--name", "mine")
    done = simkv("calibrate", "--verify-only", "local.json", "--ssd-path", folder)
    assert done.exit_code == 0, done.output
    profile = read_profile("local.json")
    assert profile.verification is not None
    assert profile.verification.note == f"smollm2-135m, quick True, {1 << 30} bytes"
    assert (profile.name, len(profile.samples)) == ("mine", 6)


def test_interrupted_verification_keeps_what_was_measured(
    verifying: list[Path], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "verify", lambda *_: interrupted())
    done = calibrate("--verify", "--ssd-path", folder, "--out", "local.json")
    assert done.exit_code == 130
    assert "kept: local.json, not verified; --verify-only local.json does that" in done.stderr
    assert read_profile("local.json").verification is None
    assert os.listdir() == ["local.json"]


def test_verification_that_cant_be_keeps_what_was_measured(
    verifying: list[Path], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InputError(Problem("has no times of a model", "measure them"))

    monkeypatch.setattr(verification, "verify", refuse)
    done = calibrate("--verify", "--ssd-path", folder, "--out", "local.json")
    assert done.exit_code == 2
    assert done.stderr.endswith("measured, but not verified: local.json\nhas no times of a model; measure them\n")
    assert read_profile("local.json").name
