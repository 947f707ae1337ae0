"""What the answers in result folders must look like before anything is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simkv.errors import InputError, Problem
from simkv.report.files import AGAIN, damaged
from simkv.results.metrics import METRICS, SCHEMA_VERSION, Metric

_MAPPINGS = ("closed_form", "classes", "baselines", "kv_usage")
"""Metrics with keys below them that aren't the same in every run."""
_NEVER_NULL = (
    "simkv_version", "scenario", "scenario_hash", "seed", "requests", "concurrency", "kv_usage", "bytes",
    "utilization", "speedup", "closed_form", "baselines", "verdict", "warnings", "notes",
)  # fmt: skip
_TEXTS = ("simkv_version", "scenario", "question", "scenario_hash", "bottleneck", "bottleneck_because")
_WHOLE = ("requests", "concurrency", "speedup", "verdict", "hit_rate", "time_breakdown_s", "bytes", "utilization")
_OF_PLAN: Mapping[str, type] = {
    "scenario": str, "objective": str, "slo": dict, "load": dict, "candidates": list, "pruned": list,
    "left_out": list, "pareto": list, "why": list, "sensitivity": dict, "engine_flags": dict,
}  # fmt: skip
_OF_CURVES: Mapping[str, type] = {
    "scenario": str, "scenario_hash": str, "seeds": list, "about": list, "curves": dict, "left_out": dict,
}  # fmt: skip


def check_summary(path: Path, found: Mapping[str, Any]) -> None:
    """Raise InputError unless ``found``, from ``path``, has the metrics of a run in the shapes that they have."""
    _check_version(path, found, SCHEMA_VERSION)
    for name, metric in METRICS.items():
        if name not in found:
            raise _lacks(path, found, name)
        value = found[name]
        if value is None:
            if name in _NEVER_NULL:
                raise damaged(path, "null, where every run has a value", name)
        elif not _fits(metric, value):
            raise damaged(path, f"not what a run leaves there: {metric.shape or 'a plain value'}", name)
    _check_lists(path, found)


def check_plan(path: Path, found: Mapping[str, Any]) -> None:
    """Raise InputError unless ``found``, from ``path``, is a plan."""
    _check_version(path, found, 1)
    _check_kinds(path, found, _OF_PLAN)
    if "winner" not in found:
        raise _lacks(path, found, "winner")


def check_curves(path: Path, found: Mapping[str, Any]) -> None:
    """Raise InputError unless ``found``, from ``path``, are curves."""
    _check_version(path, found, 1)
    _check_kinds(path, found, _OF_CURVES)


def _check_version(path: Path, found: Mapping[str, Any], known: int) -> None:
    version = found.get("schema_version")
    if version is None:
        raise damaged(path, "it says no schema_version: nothing that simkv wrote")
    if version != known:
        what = f"its layout is another one; this simkv reads {known}"
        raise InputError(Problem(what, AGAIN, str(path), path="schema_version", value=str(version)))


def _check_kinds(path: Path, found: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
    for name, kind in kinds.items():
        if name not in found:
            raise _lacks(path, found, name)
        if not isinstance(found[name], kind):
            raise damaged(path, "not what simkv leaves there", name)


def _fits(metric: Metric, value: object) -> bool:
    if metric.shape.startswith("a list"):
        return isinstance(value, list)
    if metric.name in _TEXTS:
        return isinstance(value, str)
    if not metric.shape and metric.name not in _MAPPINGS:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if not isinstance(value, dict):
        return False
    keys = metric.shape.split(", ") if metric.name in _WHOLE or "p50" in metric.shape else []
    return all(key in value for key in keys)


def _check_lists(path: Path, found: Mapping[str, Any]) -> None:
    for number, warning in enumerate(found["warnings"]):
        if not isinstance(warning, dict) or not {"code", "message"} <= warning.keys():
            raise damaged(path, "a warning has a code and a message", f"warnings[{number}]")
    for number, note in enumerate(found["notes"]):
        if not isinstance(note, str):
            raise damaged(path, "a note is a sentence", f"notes[{number}]")


def _lacks(path: Path, found: Mapping[str, Any], name: str) -> InputError:
    by = found.get("simkv_version")
    return damaged(path, f"it isn't there; simkv {by if isinstance(by, str) else 'of some version'} wrote this", name)
