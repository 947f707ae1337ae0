"""Models by name, from ``data/models.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from simkv.catalog.data import data, find, names
from simkv.model import ModelShape
from simkv.model.entry import shape_of

_FILE = "models.yaml"


def load_model(name: str) -> ModelShape:
    """Return a model of the catalogue.

    Raises :class:`InputError` with the nearest names for an unknown one.
    """
    return _model(find(name, "model", _names()))


def list_models() -> list[str]:
    """Names of all models, in the order of the file."""
    return list(data(_FILE)["models"])


@cache
def _names() -> Mapping[str, str]:
    return names(data(_FILE)["models"])


@cache
def _model(key: str) -> ModelShape:
    file = data(_FILE)
    entry = dict(file["models"][key])
    entry["source"] = file["sources"][entry["source"]]
    return shape_of(key, entry)
