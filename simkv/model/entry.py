"""Building a shape from an entry of the catalogue.

An entry of one kind of attention gives ``heads``, ``kv_heads``, ``head_dim`` and perhaps ``mla`` beside the
model's other figures; any other gives ``attention`` and ``state``, lists of kinds of layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simkv.model.dtypes import normalise_dtype
from simkv.model.layers import AttentionLayers, Mla, Moe, StateLayers
from simkv.model.shape import ModelShape

_ONE_KIND = ("heads", "kv_heads", "head_dim", "v_head_dim", "window", "index_bytes", "mla")


def shape_of(name: str, entry: Mapping[str, Any]) -> ModelShape:
    """Return the shape that ``entry`` describes; its ``source`` is already spelled out."""
    given = dict(entry)
    kinds = given.pop("attention", None) or [{"layers": given["layers"], **_taken(given)}]
    given["attention"] = tuple(map(_attention, kinds))
    given["state"] = tuple(StateLayers(**kind) for kind in given.get("state", ()))
    given["aliases"] = tuple(given.get("aliases", ()))
    given["dtype"] = normalise_dtype(given["dtype"])
    if "moe" in given:
        given["moe"] = _moe(given["moe"], given["layers"])
    return ModelShape(name=name, **given)


def _taken(given: dict[str, Any]) -> dict[str, Any]:
    return {key: given.pop(key) for key in _ONE_KIND if key in given}


def _attention(kind: Mapping[str, Any]) -> AttentionLayers:
    mla = kind.get("mla")
    return AttentionLayers(**{**kind, "mla": Mla(**mla) if mla else None})


def _moe(given: Mapping[str, Any], layers: int) -> Moe:
    """``layers`` of the experts, or ``first_dense_layers`` of the model that have none."""
    values = dict(given)
    values.setdefault("layers", layers - values.pop("first_dense_layers", 0))
    return Moe(**values)
