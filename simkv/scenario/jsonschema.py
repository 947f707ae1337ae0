"""The JSON Schema of scenario files."""

from __future__ import annotations

from typing import Any

from simkv.scenario import batch_schema, offload_schema, plan_schema, schema, sweep_schema, varying, workload_schema
from simkv.scenario.base import Section

_FILLED_IN = (
    schema.Engine, schema.Dram, schema.Tiers, schema.Link, offload_schema.Eviction, offload_schema.Prefetch,
    offload_schema.Offload, batch_schema.Placement, batch_schema.HostIo,
)  # fmt: skip
"""Sections whose keys all have values from a preset or the hardware."""
_ABOUT = ("description", "default", "title")
_MUST = ("name", "model", "hardware", "workload")


def json_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12); quantities are texts with a pattern and an example."""
    result: dict[str, Any] = schema.Scenario.model_json_schema(by_alias=True)
    for section in _FILLED_IN:
        result["$defs"][section.__name__].pop("required", None)
    result["required"] = list(_MUST)
    result["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    result["title"] = "simkv scenario"
    _null_is_absent(result)
    return result


def _null_is_absent(result: dict[str, Any]) -> None:
    """Let every key that need not be there be null."""
    for definition in (result, *result["$defs"].values()):
        needed = definition.get("required", ())
        for key, value in definition.get("properties", {}).items():
            if key not in needed:
                definition["properties"][key] = _or_null(value)


def _or_null(value: dict[str, Any]) -> dict[str, Any]:
    arms = value.get("anyOf", [])
    if {"type": "null"} in arms:
        return value
    inner = {key: item for key, item in value.items() if key not in _ABOUT}
    outer = {key: item for key, item in value.items() if key in _ABOUT}
    return {"anyOf": [inner, {"type": "null"}], **outer}


def sections() -> list[type[Section]]:
    """Return every section class that a scenario can hold."""
    found = [
        item
        for module in (schema, batch_schema, offload_schema, workload_schema, varying, sweep_schema, plan_schema)
        for item in vars(module).values()
    ]
    return [c for c in found if isinstance(c, type) and issubclass(c, Section) and c is not Section]
