"""Models by name, from ``data/models.yaml``, or by the path of a config.json."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

from simkv.catalog.data import data, find, names, normalise
from simkv.model import ModelShape
from simkv.model.entry import shape_of

_FILE = "models.yaml"


def load_model(name: str, at: str | None = None) -> ModelShape:
    """Return a model of the catalogue by name, alias or Hugging Face id, or that of a config.json or its folder.

    ``at``: where the file is, if ``name`` is a path that doesn't start in the working directory.

    Raises :class:`InputError` with the nearest names for an unknown one, and for a file that can't be sized.
    """
    path = os.path.expanduser(name) if at is None else at
    if not _is_path(name, path):
        return _model(find(name, "model", _names()))
    from simkv.model.config import read_config

    return read_config(path)


def _is_path(name: str, path: str) -> bool:
    """Say whether a name is a path: written like one, or of something there that the catalogue hasn't by that name."""
    if name.lower().endswith(".json") or name.startswith((".", "/", "~")) or name.count("/") > 1:
        return True
    return os.path.exists(path) and ("/" in name or normalise(name) not in _names())


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
