"""Hit rate over capacity, for every policy, between what no cache can pass and what none must undercut.

*The ceiling* is what a cache that never evicts hits: all references but the first to each block.
*Belady* evicts what is needed last and is the most that any policy with forced insertion can hit.
LRU's whole curve comes from stack distances; the others are replayed capacity by capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from simkv.errors import unknown
from simkv.hitrate.capacities import Capacities
from simkv.hitrate.counting import BELADY, Job, Rules, counted
from simkv.hitrate.references import References
from simkv.kvcache.eviction import COUNTING, POLICIES, make_policy
from simkv.kvcache.stack import FIRST_USE, LruCurve, stack_distances

CHOICES = (*POLICIES, BELADY)
KNEE_SHARE = 0.9
_CURVE_POINTS = 65
AS_LRU = ("lru", "priority")
"""Read off the curve: blocks of a trace all have the same priority, and then priority orders as lru."""


def study(
    references: References,
    policies: Sequence[str] = CHOICES,
    capacities: Capacities | None = None,
    rules: Rules | None = None,
    done: Callable[[float], None] = lambda share: None,
    processes: int | None = None,
) -> dict[str, Any]:
    """Return hits of each policy at each capacity, and the curve, ceiling and knee of LRU, as plain values.

    ``done`` hears the share of the work that is through. Belady's bound is always among the rows.
    """
    capacities, rules = capacities or Capacities(), rules or Rules()
    names = checked(policies, rules)
    wanted = capacities.blocks(references.block_tokens, references.distinct_blocks)
    block_bytes = capacities.block_bytes(references.block_tokens)
    distances = stack_distances(references.blocks)
    curve = LruCurve(distances)
    jobs = [Job(name, capacity) for capacity in wanted for name in names if name not in AS_LRU]
    hits = counted(references.blocks, jobs, rules, done, processes)
    hits |= {Job(name, capacity): curve.hits(capacity) for name in AS_LRU for capacity in wanted}

    def row(policy: str, capacity: int) -> dict[str, Any]:
        number = hits[Job(policy, capacity)]
        return {
            "policy": policy,
            "order": references.order,
            "capacity_blocks": capacity,
            "capacity_bytes": _times(capacity, block_bytes),
            "hits": number,
            "hit_rate": number / curve.references,
            "share_of_ceiling": number / curve.infinite_hits if curve.infinite_hits else None,
        }

    again = distances != FIRST_USE
    return {
        "references": curve.references,
        "infinite_hits": curve.infinite_hits,
        "infinite_hit_rate": curve.infinite_hits / curve.references,
        "infinite_token_hit_rate": int(references.tokens[again].sum()) / references.prompt_tokens,
        "distinct_blocks": references.distinct_blocks,
        "requests": references.requests,
        "prompt_tokens": references.prompt_tokens,
        "order": references.order,
        "block_tokens": references.block_tokens,
        "block_bytes": block_bytes,
        "model": capacities.model.name if capacities.model is not None else None,
        "lambda": rules.lam if "score" in names else None,
        "count": rules.count if set(COUNTING) & set(names) else None,
        "half_life_uses": rules.half_life_uses,
        "knee": _knee(curve, block_bytes),
        "rows": [row(name, capacity) for name in names for capacity in wanted],
        "lru_curve": _points(curve, block_bytes),
    }


def checked(policies: Sequence[str], rules: Rules) -> list[str]:
    """Return the names of ``policies``, each once, Belady's with them; InputError for one that can't be replayed."""
    for name in policies:
        if name not in CHOICES:
            raise unknown("eviction policy", name, CHOICES, "--policy")
        if name != BELADY:
            make_policy(name, rules.lam, count=rules.count, half_life_uses=rules.half_life_uses)
    return [name for name in CHOICES if name in policies or name == BELADY]


def _knee(curve: LruCurve, block_bytes: int | None) -> dict[str, Any]:
    """Return where LRU reaches most of the ceiling."""
    capacity = curve.capacity_for(int(np.ceil(KNEE_SHARE * curve.infinite_hits)))
    return {
        "share_of_ceiling": KNEE_SHARE,
        "capacity_blocks": capacity,
        "capacity_bytes": _times(capacity, block_bytes),
        "hits": curve.hits(capacity),
    }


def _points(curve: LruCurve, block_bytes: int | None) -> list[dict[str, Any]]:
    """Return LRU's curve up to where it is flat, at capacities in a geometric row."""
    if not curve.enough_blocks:
        return []
    row = np.geomspace(1, curve.enough_blocks, _CURVE_POINTS).round().astype(int)
    return [
        {"capacity_blocks": capacity, "capacity_bytes": _times(capacity, block_bytes), "hits": curve.hits(capacity)}
        for capacity in np.unique(row).tolist()
    ]


def _times(blocks: int, block_bytes: int | None) -> int | None:
    return None if block_bytes is None else blocks * block_bytes
