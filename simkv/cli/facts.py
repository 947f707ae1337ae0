"""What ``simkv catalog show`` tells of one entry: a row a figure, with unit, standing and source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from simkv import catalog, units
from simkv.cli.machines import DECIMAL, Rows, terabytes
from simkv.formulas.kv_size import kv_bytes_per_token
from simkv.hardware import Figure, Gpu
from simkv.instances import Component, Drive, Instance
from simkv.model import ModelShape


def fact(name: str, value: Any, unit: str = "", standing: str = "", source: str = "") -> dict[str, Any]:
    """Return one row."""
    return {"figure": name, "value": value, "unit": unit, "standing": standing, "source": source}


def gpu_facts(gpu: Gpu) -> Rows:
    """Return what is known of an accelerator."""
    return [*_figures(gpu.figures), *_texts(note=gpu.note)]


def drive_facts(drive: Drive) -> Rows:
    """Return what is known of a drive; its endurance in bytes also where only writes a day are stated."""
    rows = [*_texts(interface=drive.interface), *_figures(drive.figures)]
    if "endurance_bytes" not in drive.figures and drive.endurance is not None:
        rows += _figures({"endurance_bytes": drive.endurance})
    return [*rows, *_texts(note=drive.note)]


def component_facts(component: Component) -> Rows:
    """Return what is known of memory or a link."""
    return [*_figures(component.figures), *_texts(note=component.note)]


def instance_facts(instance: Instance) -> Rows:
    """Return what is known of an instance: its parts, what shares what, every figure, its price."""
    topology, price = instance.topology, instance.price
    where = {"standing": topology.standing, "source": topology.source}
    rows = [
        *_texts(provider=instance.provider, gpu=instance.gpu, gpu_link=instance.gpu_link),
        fact("numa", topology.numa, **where),
        fact("uplinks", topology.uplinks, **where),
        *_texts(memory=instance.memory, drive=instance.drive),
        *_figures(instance.figures),
    ]
    if price is not None:
        rows += _texts(price_date=price.date, price_terms=price.terms)
    return [*rows, *_texts(note=instance.note)]


def model_facts(model: ModelShape) -> Rows:
    """Return what is known of a model: its published shape, and what follows from it."""
    published = [
        fact(name, value, standing="datasheet", source=model.source)
        for name, value in _flat(asdict(model))
        if name not in ("name", "source", "note", "aliases")
    ]
    computed = {"parameters": model.params, "parameters_active": model.params_active}
    rows = [fact(name, value, standing="computed", source="from the shape") for name, value in computed.items()]
    token = fact("kv_bytes_per_token", kv_bytes_per_token(model), "B", "computed", "from the shape, at 16 bits")
    return [*published, *rows, token, *_texts(aliases=", ".join(model.aliases), note=model.note)]


FINDERS: tuple[tuple[Callable[[str], Any], Callable[[Any], Rows]], ...] = (
    (catalog.load_model, model_facts),
    (catalog.load_hardware, gpu_facts),
    (catalog.load_instance, instance_facts),
    (catalog.load_drive, drive_facts),
    (catalog.load_component, component_facts),
)
"""How an entry of each kind is found by name, and what tells of it."""


def readable(rows: Rows) -> Rows:
    """Return rows of figures for people: value and unit as one text, long texts where there is room for them."""
    if not rows or "unit" not in rows[0]:
        return rows
    found: Rows = []
    above = ""
    for row in rows:
        text = _shown(row["figure"], row["value"], row["unit"])
        long = len(text) > _WIDEST and not row["source"]
        source = "as above" if row["source"] and row["source"] == above else row["source"]
        above = row["source"]
        beside = {"standing": row["standing"], "source": text if long else source}
        found.append({"figure": row["figure"], "value": "" if long else text, **beside})
    return found


def _figures(figures: Mapping[str, Figure]) -> Rows:
    return [fact(name, f.value, f.unit, f.standing, f.source) for name, f in figures.items()]


def _texts(**texts: str) -> Rows:
    return [fact(name, value) for name, value in texts.items() if value]


def _flat(value: Any, name: str = "") -> Iterable[tuple[str, Any]]:
    """Yield what says something, inner mappings by dotted name."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        for number, inner in enumerate(value):
            yield from _flat(inner, f"{name}.{number}" if len(value) > 1 else name)
    elif value and not is_dataclass(value):
        yield name, value


_WIDEST = 40
_UNITS: Mapping[str, Callable[[float], str]] = {
    "B": lambda v: units.short(v, "size"),
    "B/s": lambda v: units.short(v, "rate"),
    "s": lambda v: units.short(v, "time"),
    "FLOP/s": lambda v: f"{v / 1e12:,.5g} TFLOP/s",
    "1": lambda v: f"{v:g}",
    "1/d": lambda v: f"{v:g} a day",
    "y": lambda v: f"{v:g} years",
}


def _shown(name: str, value: Any, unit: str) -> str:
    if isinstance(value, tuple):
        return " | ".join(" ".join(str(gpu) for gpu in group) for group in value)
    if isinstance(value, bool | str):
        return str(value).lower() if isinstance(value, bool) else value
    if name.endswith(DECIMAL):
        return terabytes(value)
    if unit in _UNITS:
        return _UNITS[unit](value)
    number = f"{value:,}" if isinstance(value, int) or float(value).is_integer() else f"{value:g}"
    return f"{number.removesuffix('.0')} {unit}".rstrip()
