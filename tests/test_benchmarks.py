"""The benchmarks run, and the page of what simulating costs has all that they measure; nothing here is timed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.page import COLUMNS, page, row
from benchmarks.scale import SIZES, Cost, measure

ROOT = Path(__file__).parents[1]
COST = Cost(
    requests=2000, wall_s=0.5, events=10_000, decisions=5000, steps=80_000, bare_event_s=1e-6, peak_mib=64.0
)  # fmt: skip


def test_page_has_a_row_for_every_size_and_what_the_other_benchmarks_print() -> None:
    lines = (ROOT / "docs" / "performance.md").read_text("utf-8").splitlines()
    tables = {line[len("## By ") :]: number for number, line in enumerate(lines) if line.startswith("## By ")}
    for size in SIZES:
        rows = [line for line in lines[tables[size.series] :] if line.startswith(f"| {size.name} |")]
        assert rows and rows[0].count("|") == len(COLUMNS) + 2, size
    text = "\n".join(lines)
    assert "cores (" in text and "SimPy " in text
    for printed in ("speed-100k ", "speed-1k ", "heavy_hitters ", "topk ", "sweep  "):
        assert printed in text or "`--quick`" in text, printed


def test_page_is_of_what_was_measured() -> None:
    text = page([(size, COST) for size in SIZES], {"Commands": "speed 1.0 s"})
    assert all(f"| {size.name} |" in text for size in SIZES)
    assert "A request at 1,000,000 costs 1.00 times what it costs at 10,000." in text
    assert "```text\nspeed 1.0 s\n```" in text
    assert "--quick" not in text.replace("`make bench` (`python -m benchmarks", "")
    assert row("x", COST)[2:] == ["0.50", "250", "250", "20,000", "50.0", "10,000", "160,000", "64"]


def test_quick_run_measures_and_writes_the_page(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--only", "laws,access", "--write", str(tmp_path / "page.md")],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.md").read_text("utf-8")
    assert "| unchecked |" in text and "| checked (`--audit`) |" in text and "mean nothing" in text
    assert "dense" in text and "## By replicas" not in text


def test_cost_counts_every_request_and_its_decisions() -> None:
    cost = measure(next(size for size in SIZES if size.series == "replicas" and size.name == "4"), quick=True)
    assert cost.requests == 100
    assert cost.requests < cost.decisions < cost.events
    assert cost.steps > cost.requests
    assert 20 < cost.peak_mib < 400


def test_unknown_part_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--only", "speed"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2 and "no such part: speed" in done.stderr
