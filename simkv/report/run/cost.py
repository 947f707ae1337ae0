"""What a run's machine costs: an hour, and a million output tokens, with and without offload."""

from __future__ import annotations

from simkv.report.document import Block, Facts
from simkv.report.folders import RunFolder
from simkv.results.quantity import change, digits


def blocks(folder: RunFolder) -> list[Block]:
    """Return the cost; nothing where the scenario names no prices."""
    summary = folder.summary
    cost = summary["cost"]
    if cost is None:
        return []
    currency = cost["currency"] or ""
    rows = []
    if cost["per_hour"] is not None:
        rows.append(("An hour", f"{digits(cost['per_hour'])} {currency}"))
    million = summary["cost_per_million_output_tokens"]
    if million is not None:
        rows.append(("A million output tokens", f"{digits(million)} {currency}"))
    other = (summary["baselines"].get("no_offload") or {}).get("cost_per_million_output_tokens")
    if other is not None:
        versus = f" ({change(million / other - 1)} with it)" if million is not None and other > 0 else ""
        rows.append(("A million output tokens without offload", f"{digits(other)} {currency}{versus}"))
    if cost["source"]:
        rows.append(("Prices from", str(cost["source"])))
    return [Facts(rows)] if rows else []
