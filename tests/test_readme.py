"""What the README prints is what its commands print, and what it names exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.readme import BLOCK, COPIED, README, ROOT, fence, run

TEXT = README.read_text("utf-8")


@pytest.mark.parametrize("block", list(BLOCK.finditer(TEXT)), ids=lambda block: block["command"])
def test_readme_output_equals_that_of_a_run(block: re.Match[str]) -> None:
    assert block["output"] == run(block["command"]), "run: make readme"


@pytest.mark.parametrize("block", list(COPIED.finditer(TEXT)), ids=lambda block: block["page"])
def test_readme_says_what_a_page_says(block: re.Match[str]) -> None:
    assert block["text"] == fence(block["page"]), "run: make readme"


def test_readme_has_a_block_to_check() -> None:
    assert BLOCK.search(TEXT)


def test_readme_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)\b", TEXT)) <= targets


def test_readme_links_and_scenarios_exist() -> None:
    names = set(re.findall(r"\]\(([\w./-]+)\)", TEXT)) | set(re.findall(r"\bscenarios/[\w.-]+\.yaml", TEXT))
    assert sorted(name for name in names if not (ROOT / name).exists()) == []


def test_readme_scenario_is_valid(tmp_path: Path) -> None:
    """The scenario shown as an example is accepted as it stands."""
    example = re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert example
    scenario = tmp_path / "example.yaml"
    scenario.write_text(example[1], "utf-8")
    words = [str(Path(sys.executable).with_name("simkv")), "run", str(scenario), "--explain"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
