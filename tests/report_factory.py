"""Result folders of one small run, once a process, and copies of them to damage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from simkv.results.write import write_result
from simkv.scenario.resolve import resolve
from simkv.simulation import run_scenario

ROOT = Path(__file__).parents[1]
SMALL = ("workload.requests=60", "run.warm_up=0s")
HOSTILE = {
    "script": "<script>alert(1)</script>",
    "breakout": '</script></title></style></svg>--><img src=x onerror="alert(2)">',
    "quotes": "it's \"quoted\" `code` & 'more' &amp; \\",
    "emoji": "🚀👩‍🔬 größer 模型",
    "long": "n" * 300,
    "right_to_left": "\u202egnol\u202c \u2067abc\u2069 שלום",
    "link": "[click](javascript:alert(3)) ![x](http://example.org/x.png) http://example.org",
    "lines": "# one\n\n- two\r\n| three | four |\n***\n<!-- five",
    "control": "bell\x07 escape\x1b[31m null-ish\x01 \u2028 end",
    "math": "$\\frac{$ 100 % _under_ *star* {{ 7 * 7 }} {% raw %}",
}
"""Names that a scenario may have, and what each of them tries."""

_PLACE = TemporaryDirectory(prefix="simkv-report-")
"""Gone when the tests have ended."""


@cache
def small_run() -> Path:
    """Return the folder of a run of few requests with its baseline; nobody may change it."""
    folder = Path(mkdtemp(dir=_PLACE.name)) / "chatbot"
    write_result(run_scenario(resolve(str(ROOT / "scenarios" / "chatbot.yaml"), list(SMALL))), folder)
    return folder


def copied(target: Path) -> Path:
    """Return ``target`` as a copy of the small run."""
    shutil.copytree(small_run(), target)
    return target


def changed(target: Path, change: Callable[[dict[str, Any]], object], file: str = "summary.json") -> Path:
    """Return ``target`` as a copy of the small run whose ``file`` (JSON) went through ``change``."""
    copied(target)
    found = json.loads((target / file).read_text("utf-8"))
    change(found)
    (target / file).write_text(json.dumps(found), "utf-8")
    return target


def renamed(target: Path, name: str) -> Path:
    """Return ``target`` as a copy of the small run with ``name`` wherever a name or a sentence stands."""

    def change(summary: dict[str, Any]) -> None:
        summary["scenario"] = summary["question"] = summary["bottleneck_because"] = name
        summary["verdict"] = summary["verdict"] | {"because": name}
        summary["warnings"] = [{"code": name, "message": name}]
        summary["notes"] = [name]
        latencies: Mapping[str, Any] = {key: summary[key] for key in ("ttft_s", "tpot_s", "e2e_s", "queue_s")}
        summary["classes"] = {name: {"requests": 3, **latencies}, "other": {"requests": 4, **latencies}}

    changed(target, change)
    resolved = target / "scenario.resolved.yaml"
    lines = resolved.read_text("utf-8").splitlines()
    lines[1] = f"name: {json.dumps(name)}"
    resolved.write_text("\n".join(lines) + "\n", "utf-8")
    return target
