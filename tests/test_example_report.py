"""The report that comes with simkv is of the scenario that comes with it, as it is now."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

from simkv import __version__
from simkv.scenario.resolve import resolve
from simkv.simulation import run_scenario

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "reports" / "example"
AGAIN = "`make example-report` writes it anew"


def test_example_report_has_the_figures_of_its_scenario() -> None:
    resolved = resolve(str(ROOT / "scenarios" / "chatbot.yaml"))
    page = html.unescape((EXAMPLE / "report.html").read_text("utf-8"))
    assert resolved.scenario_hash in page and __version__ in page, AGAIN
    summary = run_scenario(resolved).summary
    for value in (summary["ttft_s"]["mean"], summary["e2e_s"]["p95"], summary["utilization"]["h2d"]):
        assert json.dumps(value) in page, AGAIN


def test_example_report_names_no_place_of_whoever_made_it() -> None:
    page = (EXAMPLE / "report.html").read_text("utf-8")
    assert re.findall(r"/(?:home|root|tmp|work|Users)/[\w./-]+", page) == []
    assert len(page) < 2_000_000


def test_example_report_has_its_pictures() -> None:
    for name in ("report.png", "player.png"):
        assert (EXAMPLE / name).read_bytes().startswith(b"\x89PNG"), AGAIN
        assert f"reports/example/{name}" in (ROOT / "README.md").read_text("utf-8")
