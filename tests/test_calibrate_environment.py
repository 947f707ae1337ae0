"""Where figures come from: what the machine says of itself, and what is left out where it doesn't."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from simkv.calibrate import environment
from simkv.calibrate.assemble import slug

ROOT = Path(__file__).parents[1]
CUDA = SimpleNamespace(
    __version__="2.13.0+cu130",
    version=SimpleNamespace(cuda="13.0"),
    cuda=SimpleNamespace(
        get_device_name=lambda _: "NVIDIA H200",
        get_device_properties=lambda _: SimpleNamespace(total_memory=150_000_000_000),
    ),
)

SMI = 'case "$*" in *driver_version*) echo 570.86.15 ;; *) echo "{link}" ;; esac'


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def of_gpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(environment, "load_torch", lambda: CUDA)
    backend: Any = SimpleNamespace(kind="cuda", threads=15)
    return environment.environment(backend) | environment.link_in_use(backend)


def test_gpu_tells_driver_and_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "nvidia-smi", f'echo "$@" >> asked\n{SMI.format(link="1, 5, 16, 16")}')
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,4")
    monkeypatch.chdir(tmp_path)
    told = of_gpu(monkeypatch)
    assert {
        "gpu": "NVIDIA H200",
        "cuda": "13.0",
        "driver": "570.86.15",
        "torch": "2.13.0+cu130",
    }.items() <= told.items()
    assert {"pcie_gen": 1, "pcie_gen_max": 5, "pcie_width": 16, "pcie_width_max": 16}.items() <= told.items()
    assert "--id=3" in Path("asked").read_text()


@pytest.mark.parametrize("text", ["exit 9", "echo", "echo 'no devices were found'"])
def test_gpu_that_cant_be_asked_tells_what_torch_knows(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "nvidia-smi", text)
    monkeypatch.setenv("PATH", str(tmp_path))
    told = of_gpu(monkeypatch)
    assert told["gpu_memory_bytes"] == 150_000_000_000
    assert {"driver", "pcie_gen", "pcie_width"} & set(told) == set()


def test_link_of_a_gpu_without_pcie_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "nvidia-smi", SMI.format(link="[N/A], [N/A], [N/A], [N/A]"))
    monkeypatch.setenv("PATH", str(tmp_path))
    told = of_gpu(monkeypatch)
    assert told["driver"] == "570.86.15" and "pcie_gen" not in told


def test_machine_without_nvidia_smi_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert of_gpu(monkeypatch)["gpu"] == "NVIDIA H200"


def test_drive_is_that_of_the_nearest_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "fast disk" / "kv"
    deep.mkdir(parents=True)
    mounts = (
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"2 1 259:3 / {tmp_path}/fast\\040disk rw,noatime shared:1 - xfs /dev/nvme0n1p3 rw\n"
        f"3 1 0:40 / {tmp_path}/fast rw - tmpfs tmpfs rw\n"
    )
    monkeypatch.setattr(environment, "_read", lambda path: mounts if path.name == "mountinfo" else "")
    assert environment._mount(deep) == ("xfs", "/dev/nvme0n1p3")
    assert environment._mount(tmp_path) == ("ext4", "/dev/sda1")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", "intel-xeon-e5-2690-v4"),
        ("AMD EPYC 9654 96-Core Processor", "amd-epyc-9654-96-core"),
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-hbm3"),
        ("../../etc", "etc"),
        ("(R)", "machine"),
    ],
)
def test_device_is_named_so_that_a_file_can_be(name: str, short: str) -> None:
    assert slug(name) == short


# ---- the script for a GPU box


def measure(venv: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    words = ["bash", str(ROOT / "calibration" / "measure.sh"), *args]
    given = os.environ | {"VENV": str(venv)} | env
    return subprocess.run(words, env=given, capture_output=True, text=True, check=False)


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "simkv", 'for arg in "$@"; do echo "$arg"; done')
    return tmp_path


def test_script_measures_and_verifies_the_gpu_by_default(venv: Path) -> None:
    done = measure(venv)
    assert done.stdout.split() == ["calibrate", "--verify", "--device", "cuda", "--ssd-path", str(ROOT)]


def test_script_passes_options_on_as_they_are(venv: Path) -> None:
    done = measure(venv, "--device", "cpu", "--ssd-path=a drive", "--name", "my box")
    expected = ["calibrate", "--verify", "--device", "cpu", "--ssd-path=a drive", "--name", "my box"]
    assert done.stdout.splitlines() == expected


def test_script_ends_as_the_calibration_ends(venv: Path) -> None:
    program(venv / "bin", "simkv", "exit 130")
    assert measure(venv).returncode == 130


def test_script_without_torch_says_what_to_do(tmp_path: Path) -> None:
    program(tmp_path, "python", '[ "$2" = "import sys; sys.exit(sys.version_info < (3, 11))" ]')
    done = measure(tmp_path / "absent", PYTHON=str(tmp_path / "python"))
    assert done.returncode == 2
    assert "has no torch: install a build for this machine" in done.stderr
    assert not (tmp_path / "absent").exists()


def test_script_on_an_old_python_says_what_to_do(tmp_path: Path) -> None:
    program(tmp_path, "python", "exit 1")
    done = measure(tmp_path / "absent", PYTHON=str(tmp_path / "python"))
    assert done.returncode == 2
    assert "needs Python 3.11 or newer" in done.stderr


def test_script_shows_its_help(venv: Path) -> None:
    assert "--device cpu --quick" in measure(venv, "--help").stdout
