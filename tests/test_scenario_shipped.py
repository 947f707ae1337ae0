"""The scenarios that come with simkv, the starter, and the JSON Schema that describes them."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from simkv.scenario import text
from simkv.scenario.build import system_config
from simkv.scenario.explain import to_yaml
from simkv.scenario.jsonschema import json_schema, sections
from simkv.scenario.presets import NAMES, load
from simkv.scenario.resolve import resolve, resolve_text
from simkv.scenario.schema import Scenario

ROOT = Path(__file__).parents[1]
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"))
STARTER = files("simkv.scenario").joinpath("starter.yaml").read_text("utf-8")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_scenario_loads_and_asks_a_question(path: Path) -> None:
    resolved = resolve(str(path))
    assert resolved.scenario.name == path.stem
    assert resolved.scenario.question.endswith("?")
    assert system_config(resolved).engine.num_gpu_blocks > 0
    assert path.read_text("utf-8").startswith("# ")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_scenario_resolved_loads_to_the_same(path: Path) -> None:
    resolved = resolve(str(path))
    of_a_run = resolved.scenario.model_copy(update={"sweep": None, "plan": None})
    assert resolve_text(to_yaml(resolved), str(path)).scenario == of_a_run


def test_starter_loads() -> None:
    assert resolve_text(STARTER).scenario.workload.kind == "sessions"


def test_starter_comments_show_keys_that_exist() -> None:
    lines = [line for line in STARTER.splitlines() if not line.startswith(("# link", "# cost"))]
    opened = "\n".join(line.replace("  # ", "  ", 1) if line.startswith("  # ") else line for line in lines)
    opened = opened.replace("kv_cache_tokens: ", "kv_cache_tokens: ")
    extra = "\n".join(line[2:] for line in STARTER.splitlines() if line.startswith(("# link", "# cost")))
    assert resolve_text(f"{opened}\n{extra}\n").scenario.cost is not None


def every_scenario() -> list[Any]:
    shipped = [pytest.param(path.read_text("utf-8"), id=path.stem) for path in SHIPPED]
    return [*shipped, pytest.param(STARTER, id="starter")]


@pytest.mark.parametrize("content", every_scenario())
def test_json_schema_accepts_what_loads(content: str) -> None:
    values = text.parse(content, "s.yaml").values
    jsonschema.Draft202012Validator(json_schema()).validate(values)


@pytest.mark.parametrize(
    "wrong",
    [{"foo": 1}, {"tiers": {"dram": {"capacity": 200}}}, {"link": {"h2d": "25 GB"}}, {"workload": {"kind": "x"}}],
)
def test_json_schema_refuses_what_does_not_load(wrong: dict[str, Any]) -> None:
    values = text.parse(STARTER, "s.yaml").values | wrong
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json_schema()).validate(values)


def test_json_schema_is_a_schema_and_needs_only_four_keys() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["name", "model", "hardware", "workload"]


def test_no_section_lets_an_unknown_key_through() -> None:
    assert all(section.model_config.get("extra") == "forbid" for section in sections())


@pytest.mark.parametrize("key", NAMES)
def test_preset_values_and_knobs_are_paths_of_a_scenario(key: str) -> None:
    for version in load(key).versions:
        preset = load(key, version)
        for dotted in preset.has:
            section: Any = Scenario
            for name in dotted.split("."):
                annotation = section.model_fields[name].annotation
                section = next((arm for arm in get_args(annotation) if hasattr(arm, "model_fields")), annotation)
        assert preset.values["engine"]["version"] == version
