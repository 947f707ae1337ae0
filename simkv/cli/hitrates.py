"""How ``simkv hitrate`` says what caches hit: the answer first, then a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simkv import units
from simkv.cli.table import table

_BOUND = "belady"
_ORDERS = {"forward": "a prompt's head is touched first", "reverse": "a prompt's tail is touched first"}


def render(answer: dict[str, Any]) -> str:
    """Return ``answer`` (of ``hitrate.study``) as text."""
    return "\n\n".join(["\n".join(_findings(answer)), _facts(answer), _table(answer)])


def finding(answer: dict[str, Any]) -> str:
    """Return the answer in one sentence."""
    knee = answer["knee"]
    if not answer["infinite_hits"]:
        return "No cache hits anything: no block comes twice"
    size = f" ({units.short(knee['capacity_bytes'], 'size')})" if knee["capacity_bytes"] else ""
    return f"LRU reaches {knee['share_of_ceiling']:.0%} of the ceiling at {_blocks(knee['capacity_blocks'])}{size}"


def _blocks(number: int) -> str:
    return f"{number:,} block{'s' if number != 1 else ''}"


def _findings(answer: dict[str, Any]) -> Iterator[str]:
    yield finding(answer) + "."
    hits, references, rate = answer["infinite_hits"], answer["references"], answer["infinite_hit_rate"]
    yield f"The ceiling: {hits:,} of {references:,} references hit in a cache that never evicts, {rate:.2%}."
    gains = [gain for capacity in _capacities(answer) if (gain := _gain(answer, capacity)) is not None]
    if gains:
        policy, capacity, better, lru = max(gains, key=lambda gain: gain[2] - gain[3])
        if better > lru:
            text = f"{policy} gains most on LRU, at {_blocks(capacity)}: {better:.2%} against {lru:.2%}"
            yield f"{text}{_loses(answer, policy)}."


def _loses(answer: dict[str, Any], policy: str) -> str:
    """Say where ``policy`` falls furthest behind LRU; nothing where it never does."""
    rates = {(row["policy"], row["capacity_blocks"]): row["hit_rate"] for row in answer["rows"]}
    behind = {at: rates["lru", at] - rates[policy, at] for at in _capacities(answer)}
    worst = max(behind, key=lambda at: behind[at])
    if behind[worst] <= 0:
        return ""
    return f"; at {worst:,} it has {rates[policy, worst]:.2%} against {rates['lru', worst]:.2%}"


def _facts(answer: dict[str, Any]) -> str:
    block = f"{answer['block_tokens']:,} tokens"
    if answer["block_bytes"]:
        block += f", {units.short(answer['block_bytes'], 'size')} of {answer['model']}"
    lines = {
        "trace": f"{answer['trace']}, {answer['format']}, {answer['requests']:,} requests",
        "blocks": f"{answer['distinct_blocks']:,} different ones of {block}",
        "order": f"{answer['order']}: {_ORDERS[answer['order']]}",
    }
    if answer["lambda"] is not None:
        lines["score"] = f"λ = {answer['lambda']:g}, uses counted {answer['count'].replace('_', ' ')}"
    shown = [f"{key:<7} {text}" for key, text in lines.items()]
    shown += [f"{'' if k else 'odd':<7} {sentence}" for k, sentence in enumerate(answer["irregularities"])]
    return "\n".join(shown)


def _table(answer: dict[str, Any]) -> str:
    names = _policies(answer)
    rates = {(row["policy"], row["capacity_blocks"]): row["hit_rate"] for row in answer["rows"]}
    sized = bool(answer["block_bytes"])
    rows = []
    for capacity in _capacities(answer):
        size = [units.short(capacity * answer["block_bytes"], "size")] if sized else []
        rows.append([f"{capacity:,}", *size, *(f"{rates[name, capacity]:.2%}" for name in names)])
    rows.append(["no limit", *([""] if sized else []), *(f"{answer['infinite_hit_rate']:.2%}" for _ in names)])
    head = ["blocks", *(["size"] if sized else []), *names]
    return table(head, rows, range(len(head)))


def _gain(answer: dict[str, Any], capacity: int) -> tuple[str, int, float, float] | None:
    """Return the best policy at ``capacity`` with its hit rate and that of lru, where both were asked for."""
    rates = {row["policy"]: row["hit_rate"] for row in answer["rows"] if row["capacity_blocks"] == capacity}
    rates.pop(_BOUND, None)
    if "lru" not in rates:
        return None
    best = max(rates, key=lambda name: rates[name])
    return best, capacity, rates[best], rates["lru"]


def _policies(answer: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(row["policy"] for row in answer["rows"]))


def _capacities(answer: dict[str, Any]) -> list[int]:
    return list(dict.fromkeys(row["capacity_blocks"] for row in answer["rows"]))
