"""The other verbs, and the command line as a whole."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv import __version__
from simkv.__main__ import main as started
from simkv.cli import app

ROOT = Path(__file__).parents[1]


def simkv(*args: str) -> Any:
    return CliRunner().invoke(app, [*args])


@pytest.mark.speed
def test_help_is_quick() -> None:
    def once() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "simkv", "--help"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start

    assert min(once() for _ in range(5)) < 0.4


def test_help_names_every_verb() -> None:
    shown = simkv("--help").stdout
    assert all(f"  {verb} " in shown for verb in ("run", "schema", "init", "catalog", "trace", "calibrate"))


def test_no_arguments_show_the_help() -> None:
    assert "Usage: " in CliRunner().invoke(app, []).output


def test_loading_the_command_line_loads_no_library_of_a_verb() -> None:
    code = "import sys, simkv.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {name.split(".")[0] for name in loaded.split()} & {"pydantic", "numpy", "yaml", "rich", "simpy"} == set()


def test_version_is_the_packages() -> None:
    assert simkv("--version").stdout == f"simkv {__version__}\n"


def test_schema_prints_json() -> None:
    assert json.loads(simkv("schema").stdout)["title"] == "simkv scenario"


def test_init_writes_a_starter_that_explains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert simkv("init").stdout == "wrote scenario.yaml; now: simkv run scenario.yaml\n"
    assert simkv("run", "scenario.yaml", "--explain").exit_code == 0
    again = simkv("init")
    assert again.exit_code == 2
    assert again.stderr == "scenario.yaml: is there already; give another name\n"


def test_init_starter_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    simkv("init", "mine.yaml")
    result = simkv("run", "mine.yaml", "--set", "workload.requests=100", "--json")
    assert json.loads(result.stdout)["requests"]["finished"] == 100


def test_init_dash_prints(tmp_path: Path) -> None:
    assert simkv("init", "-").stdout.startswith("# A scenario")


def test_init_into_no_folder_says_so(tmp_path: Path) -> None:
    result = simkv("init", str(tmp_path / "no" / "s.yaml"))
    assert result.exit_code == 2
    assert "can't be written: No such file or directory" in result.stderr


@pytest.mark.parametrize(
    ("kind", "name"),
    [("models", "llama-3.1-8b"), ("hardware", "h100-sxm5-80gb"), ("engines", "vllm"), ("scenarios", "chatbot")],
)
def test_catalog_lists_as_table_and_json(kind: str, name: str) -> None:
    rows = json.loads(simkv("catalog", kind, "--json").stdout)
    assert name in [row["name"] for row in rows]
    assert any(line.startswith(name + " ") for line in simkv("catalog", kind).stdout.splitlines())


def test_catalog_models_state_the_bytes_of_a_token() -> None:
    rows = {row["name"]: row for row in json.loads(simkv("catalog", "models", "--json").stdout)}
    assert rows["llama-2-7b"]["kv_bytes_per_token"] == 512 * 1024
    assert rows["mistral-7b-v0.1"]["kv_bytes_per_token"] == 0
    [line] = [line for line in simkv("catalog", "models").stdout.splitlines() if line.startswith("mistral-7b-v0.1 ")]
    assert "windows only" in line and "0 B" not in line


@pytest.mark.parametrize("name", ["llama-3.1-8b", "h100-sxm5-80gb", "vllm"])
def test_catalog_show_gives_rows(name: str) -> None:
    assert json.loads(simkv("catalog", "show", name, "--json").stdout)
    assert len(simkv("catalog", "show", name).stdout.splitlines()) > 5


def test_catalog_show_of_a_scenario_says_where_it_is() -> None:
    result = simkv("catalog", "show", "chatbot")
    assert result.exit_code == 2
    assert '"chatbot" is a scenario; read ' in result.stderr and "chatbot.yaml --explain" in result.stderr


def test_catalog_show_of_something_else_names_the_lists() -> None:
    result = simkv("catalog", "show", "zzzzzz")
    assert result.stderr.startswith('"zzzzzz" is in no catalogue; `simkv catalog models|')


def test_catalog_show_unknown_names_the_nearest() -> None:
    result = simkv("catalog", "show", "lama-3.1-8b")
    assert result.exit_code == 2
    assert result.stderr == '"lama-3.1-8b" is in no catalogue; did you mean "llama-3.1-8b"?\n'


def test_catalog_show_engine_lists_the_versions_that_can_be_named() -> None:
    rows = json.loads(simkv("catalog", "show", "vllm", "--json").stdout)
    (version,) = [row for row in rows if row["path"] == "engine.version"]
    assert version["default"] in version["can_be"] and len(version["can_be"]) > 1


def test_ctrl_c_while_the_command_line_is_loaded_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loading:
        def __getattr__(self, name: str) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "simkv.cli", Loading())
    with pytest.raises(SystemExit) as ended:
        started()
    assert ended.value.code == 130
