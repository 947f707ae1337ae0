"""What decides who goes, read from a run's resolved scenario: the λ that heat is shown by at first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

RECOMMENDED = 0.7
"""Of the article's 0.5 to 0.8."""
_AS_SCORE = {"lru": 1.0, "lfu": 0.0}
"""Policies that order as ``score`` does with this λ."""


def policy(resolved: str) -> dict[str, Any]:
    """Return the eviction policy's name, λ and how uses are counted, of a ``scenario.resolved.yaml`` as text."""
    tree = yaml.safe_load(resolved)
    offload = _section(tree, "offload")
    eviction = _section(offload, "eviction")
    name = str(eviction.get("policy", "lru"))
    given = eviction.get("lambda")
    lam = float(given) if name == "score" and given is not None else _AS_SCORE.get(name, RECOMMENDED)
    return {
        "eviction": name,
        "lambda": lam,
        "orders": name == "score" or name in _AS_SCORE,
        "write": str(offload.get("write", "")),
        "prefetch": str(_section(offload, "prefetch").get("policy", "none")),
    }


def _section(tree: Any, name: str) -> Mapping[str, Any]:
    found = tree.get(name) if isinstance(tree, Mapping) else None
    return found if isinstance(found, Mapping) else {}
