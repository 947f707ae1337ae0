"""Small files of cases, and rows to judge that no run has given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from simkv.validation.groups import BY_NAME
from simkv.validation.read import Read, read_cases
from simkv.validation.schema import Case
from simkv.validation.study import Judged, Status, study
from tests.planner_factory import here

SCENARIO = {
    "name": "two", "model": {"kv_bytes_per_token": "1KiB"}, "hardware": {"step_time": "100ms", "kv_tokens": 4096},
    "workload": {"kind": "batch", "size": 2, "prompt_tokens": 8, "output_tokens": 4},
}  # fmt: skip
"""Two requests of four steps of 100 ms each: done after 0.4 s."""


def case(**changes: Any) -> dict[str, Any]:
    """Return a case as a file has it."""
    return {"id": "two", "group": "compute", "scenario": SCENARIO, "observations": [seen()]} | changes


def seen(**changes: Any) -> dict[str, Any]:
    """Return an observation as a file has it."""
    return {"metric": "makespan_s", "expected": "400 ms"} | changes


def case_file(folder: Path, *cases: dict[str, Any], name: str = "cases.yaml") -> Path:
    """Write a file of cases."""
    path = folder / name
    path.write_text(json.dumps({"simkv_cases": 1, "cases": cases}, indent=1), "utf-8")
    return path


def studied(path: Path, data: Path | None = None) -> list[Judged]:
    """Return the rows of a file, answered by this process."""
    return study(read_cases(str(path)), str(data) if data is not None else None, here())


def row(
    group: str = "compute", error: float | None = 0.0, *, fitted: bool = False, kind: str | None = None,
    status: Status = "judged", warnings: tuple[str, ...] = (), **observation: Any,
) -> Judged:  # fmt: skip
    """Return a judged row with an error."""
    given = seen(expected=0.5, fitted=fitted, **observation)
    found = Case.model_validate(case(group=group, kind=kind, observations=[given]))
    difference = BY_NAME[found.group].difference
    predicted = None if error is None else 0.5 + error if difference else 0.5 * (1 + error)
    return Judged(found, found.observations[0], "two: makespan_s", 0.5, predicted, error, status,
                  tolerance=found.observations[0].tolerance, warnings=warnings)  # fmt: skip


def read_one(path: Path) -> Read:
    """Return the only case of a file."""
    [found] = read_cases(str(path))
    return found
