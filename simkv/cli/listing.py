"""What ``simkv catalog`` lists: rows of plain values, and how each column reads."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from simkv import catalog, units
from simkv.catalog.storage import KINDS
from simkv.cli.engines import engine_facts
from simkv.cli.facts import FINDERS
from simkv.cli.machines import DECIMAL, Rows, terabytes
from simkv.errors import InputError, Problem
from simkv.formulas.kv_size import kv_bytes_per_token
from simkv.model import ModelShape
from simkv.scenario import presets
from simkv.scenario.shipped import shipped

_LISTS = ("models", "hardware", "instances", "storage", "engines")


def model_rows() -> Rows:
    """Return one row a model."""
    return [_model_row(catalog.load_model(name)) for name in catalog.list_models()]


def scenario_rows() -> Rows:
    """Return one row a scenario file: of the working directory's ``scenarios``, then of a checkout's."""
    return [{"name": name, "file": str(path), "question": _question(path)} for name, path in shipped().items()]


def describe(name: str) -> Rows:
    """Return what is known of one entry of whatever kind, or of the model of a config.json.

    Raises InputError for an unknown name and for a file that can't be sized.
    """
    for find, facts in FINDERS:
        try:
            return facts(find(name))
        except InputError as error:
            if any(problem.file for problem in error.problems):
                raise
    if name in presets.NAMES:
        return engine_facts(presets.load(name))
    for row in scenario_rows():
        if row["name"] == name:
            mend = f"read {row['file']}, or see all of it: simkv run {row['file']} --explain"
            raise InputError(Problem(f"{units.shown(name)} is a scenario", mend))
    near = get_close_matches(name.lower(), _all_names(), n=1)
    mend = f'did you mean "{near[0]}"?' if near else f"`simkv catalog {'|'.join(_LISTS)}` list what there is"
    raise InputError(Problem(f"{units.shown(name)} is in no catalogue", mend))


def _all_names() -> list[str]:
    components = [name for kind in KINDS for name in catalog.list_components(kind)]
    machines = [*catalog.list_hardware(), *catalog.list_instances(), *catalog.list_drives(), *components]
    return [*catalog.list_models(), *machines, *presets.NAMES]


def _model_row(model: ModelShape) -> dict[str, Any]:
    return {
        "name": model.name,
        "parameters": model.params,
        "layers": model.layers,
        "attention": model.attention_kind,
        "kv_bytes_per_token": kv_bytes_per_token(model),
        "max_tokens": model.max_position_embeddings,
        "dtype": model.checkpoint_dtype,
    }


def _question(path: Path) -> str:
    from simkv.scenario import text

    try:
        return str(text.read_file(str(path)).values.get("question") or "")
    except InputError:
        return "(not a scenario)"


def cell(key: str, value: Any) -> str:
    """Return a value as a table shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return " | ".join(f"{name} {cell('', item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return " | ".join(str([*item]) if isinstance(item, list | tuple) else cell("", item) for item in value)
    shower = next((show for end, show in _SHOWN.items() if key.endswith(end)), None)
    return shower(value) if shower is not None else f"{value:g}" if isinstance(value, float) else str(value)


_SHOWN: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(DECIMAL, terabytes),
    "_bytes": lambda v: units.short(v, "size"),
    "kv_bytes_per_token": lambda v: units.short(v, "size") if v else "windows only",
    "bytes_per_s": lambda v: units.short(v, "rate"),
    "_per_s": lambda v: f"{v / 1e12:,.0f} TFLOP/s",
    "parameters": lambda v: f"{v / 1e9:,.1f} B",
    "iops": lambda v: f"{v / 1e3:,.0f} k",
    "_hour": lambda v: f"{v:.2f}",
    "max_tokens": lambda v: f"{v:,}",
}
