"""Every notebook runs from top to bottom, uses simkv alone, and finds again what is kept in it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests import notebooks
from tests.notebooks import FOLDER, ROOT, code, executed, imported, of_a_machine, paths, pictures, texts, varies

NAMES = [path.name for path in paths()]
MOST_BYTES, MOST_PICTURE_BYTES, MOST_TEXT = 300_000, 60_000, 12_000
MOST_S = 120.0
"""Far more than any takes on an idle machine."""

each_notebook = pytest.mark.parametrize("name", NAMES)


def stored(name: str) -> Any:
    return nbformat.read(FOLDER / name, as_version=4)


def test_notebooks_are_those_that_the_readme_lists() -> None:
    listed = (FOLDER / "README.md").read_text("utf-8")
    assert len(NAMES) >= 5
    assert [name for name in NAMES if f"({name})" not in listed] == []


@each_notebook
def test_notebook_imports_simkv_and_nothing_else(name: str) -> None:
    assert imported(stored(name)) == {"simkv"}


@each_notebook
def test_notebook_stored_output_is_there_small_and_of_no_machine(name: str) -> None:
    notebook = stored(name)
    nbformat.validate(notebook)
    assert (FOLDER / name).stat().st_size < MOST_BYTES
    cells = code(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "run it: make notebooks"
    assert any(cell.outputs for cell in cells)
    assert [o for cell in cells for o in cell.outputs if o.output_type == "error" or o.get("name") == "stderr"] == []
    for cell in cells:
        assert max(map(len, pictures(cell)), default=0) < MOST_PICTURE_BYTES
        for text in texts(cell):
            assert len(text) < MOST_TEXT
            assert of_a_machine(text) == []


@each_notebook
def test_notebook_findings_are_asserted(name: str) -> None:
    """A finding in prose stands under a cell that would fail if it no longer held."""
    notebook = stored(name)
    findings = [cell for cell in notebook.cells if cell.cell_type == "markdown" and "**Finding" in cell.source]
    asserting = [cell for cell in code(notebook) if "assert " in cell.source]
    assert findings
    assert len(asserting) >= len(findings)


@each_notebook
def test_notebook_metadata_is_minimal(name: str) -> None:
    before = nbformat.writes(stored(name), version=4)
    notebook = stored(name)
    notebooks.tidy(notebook)
    assert nbformat.writes(notebook, version=4) == before


@pytest.mark.slow
@each_notebook
def test_notebook_executed_finds_what_is_stored(name: str, tmp_path: Path) -> None:
    """In a copy beside scenarios and calibration profiles, which cells that write wouldn't leave as they are."""
    for folder in ("scenarios", "calibration", "notebooks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.partial.jsonl"))
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    begun = time.monotonic()
    fresh = executed(tmp_path / "notebooks" / name)
    assert time.monotonic() - begun < MOST_S
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before, "a notebook writes no file"
    for kept, now in zip(code(stored(name)), code(fresh), strict=True):
        assert kept.source == now.source
        assert [o for o in now.outputs if o.get("name") == "stderr"] == []
        assert len(list(pictures(now))) == len(list(pictures(kept)))
        if not varies(kept):
            assert texts(now) == texts(kept)
