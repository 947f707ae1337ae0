"""Judged observations as ``simkv validate --json`` has them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from simkv.validation.groups import GROUPS, Group
from simkv.validation.study import Judged


def answer_of(rows: Sequence[Judged]) -> dict[str, Any]:
    """Return groups with their cases, and the summary."""
    groups = []
    for group in GROUPS:
        mine = [row for row in rows if row.case.group == group.name]
        if mine:
            groups.append({"name": group.name, "title": group.title, "cases": [_row(row, group) for row in mine],
                           "summary": _summary(mine, group)})  # fmt: skip
    return {"groups": groups, "summary": {}}


def text_of(answer: dict[str, Any]) -> str:
    """Return the answer as JSON."""
    import orjson

    return orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode()


def _row(row: Judged, group: Group) -> dict[str, Any]:
    tolerance = row.observation.tolerance if row.observation.tolerance is not None else group.every
    return {
        "id": row.id, "kind": row.case.kind, "metric": row.observation.metric, "expected": row.expected,
        "predicted": row.predicted, "error": row.error, "tolerance": tolerance, "fitted": row.observation.fitted,
        "pass": None if row.error is None else tolerance is None or abs(row.error) <= tolerance,
        "because": row.observation.because, "skipped": row.why or None,
    }  # fmt: skip


def _summary(rows: Sequence[Judged], group: Group) -> dict[str, Any]:
    errors = [abs(row.error) for row in rows if row.error is not None and not row.observation.fitted]
    middle = median(errors) if errors else None
    return {"judged": len(errors), "median": middle, "largest": max(errors, default=None), "target": group.target}
