"""Judged observations as ``simkv validate --json`` has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from simkv import __version__
from simkv.validation.groups import ANY_KIND, GROUPS, Group
from simkv.validation.judge import Kind, Target, by_kind, group_target, tally, targets, tolerance_of, within
from simkv.validation.schema import Relative, Source
from simkv.validation.study import Judged

_LARGE = 2**63


def answer_of(rows: Sequence[Judged], left_out: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return groups with their cases, and the summary; ``left_out``: errors with each GPU family left out of the fit.

    Times, sizes and rates are SI whatever ``unit`` the expected figure was written in.
    """
    groups = [(group, [row for row in rows if row.case.group == group.name]) for group in GROUPS]
    return {
        "groups": [_group(group, ones) for group, ones in groups if ones],
        "summary": {**_summary(rows), "leave_one_family_out": list(left_out), "simkv_version": __version__},
    }


def text_of(answer: dict[str, Any]) -> str:
    """Return the answer as JSON."""
    import orjson

    return orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode()


def _group(group: Group, rows: Sequence[Judged]) -> dict[str, Any]:
    target = group_target(group.name, rows)
    summary = {**asdict(tally(rows)), "target": group.target, "pass": target.holds if target is not None else None}
    return {
        "name": group.name,
        "title": group.title,
        "measured": group.measured,
        "difference": group.difference,
        "summary": summary,
        "cases": [_row(row) for row in rows],
    }


def _row(row: Judged) -> dict[str, Any]:
    seen, case = row.observation, row.case
    return {
        "id": row.id, "case": case.id, "label": seen.name, "kind": case.kind, "family": case.family,
        "source": _source(case.source), "notes": case.notes,
        "set": _plain(seen.set), "relative_to": _relative(seen.relative_to), "seeds": case.seeds,
        "metric": seen.metric, "unit": (seen.figure.unit if seen.figure is not None else "") or None,
        "expected": row.expected, "predicted": row.predicted, "error": row.error,
        "tolerance": tolerance_of(row), "fitted": seen.fitted, "pass": within(row), "because": seen.because,
        "status": row.status, "skipped": _why(row, "skipped"), "failed": _why(row, "failed"),
        "warnings": list(row.warnings),
    }  # fmt: skip


def _source(source: Source | None) -> str | None:
    if source is None:
        return None
    return ", ".join(part for part in (source.title, source.where, source.locator) if part)


def _relative(to: Relative | None) -> dict[str, Any] | None:
    return None if to is None else {"set": _plain(to.set), "metric": to.metric, "change": to.change}


def _plain(given: Any) -> Any:
    """Return a value of a case file as JSON can say it: whole numbers beyond 64 bits as floats."""
    if isinstance(given, dict):
        return {str(key): _plain(value) for key, value in given.items()}
    if isinstance(given, list):
        return [_plain(value) for value in given]
    return float(given) if isinstance(given, int) and abs(given) >= _LARGE else given


def _why(row: Judged, status: str) -> str | None:
    return row.why if row.status == status else None


def _summary(rows: Sequence[Judged]) -> dict[str, Any]:
    found, held = tally(rows), targets(rows)
    return {
        "pass": all(target.holds for target in held),
        "targets": [_target(target) for target in held],
        "kinds": [_kind(kind) for kind in by_kind(rows)],
        "misses": [_miss(row) for row in rows if _misses(row)],
        "cases": len({row.case.id for row in rows}),
        **{name: getattr(found, name) for name in ("observations", "judged", "fitted", "skipped", "failed", "outside")},
    }


def _target(target: Target) -> dict[str, Any]:
    return {
        "name": target.name, "group": target.group, "of": target.of, "worst": target.worst,
        "value": target.value, "limit": target.limit, "pass": target.holds,
    }  # fmt: skip


def _kind(kind: Kind) -> dict[str, Any]:
    found = tally(kind.rows)
    holds = None if found.median is None else found.median <= ANY_KIND
    return {
        "kind": kind.name, "groups": kind.groups, "difference": kind.difference, **asdict(found),
        "limit": ANY_KIND, "pass": holds,
    }  # fmt: skip


def _misses(row: Judged) -> bool:
    return row.status == "failed" or (within(row) is False and not row.observation.fitted)


def _miss(row: Judged) -> dict[str, Any]:
    because = row.observation.because or (row.why or None)
    return {"id": row.id, "group": row.case.group, "error": row.error, "limit": tolerance_of(row), "because": because}
