"""From a recording to the widget: what is played, and what stands there where nothing plays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simkv.report.document import Widget
from simkv.report.player import cells, ground
from simkv.report.player.instead import instead
from simkv.report.player.payload import payload
from simkv.report.player.policy import policy
from simkv.report.player.traffic import between, traffic
from simkv.results.quantity import data, seconds
from simkv.sim.record.recording import Recording


def player(recording: Recording, summary: Mapping[str, Any], resolved: str) -> Widget | None:
    """Return the block player of a run's ``recording``, None where no block and no transfer is in it.

    ``summary`` is the run's ``summary.json``, ``resolved`` its ``scenario.resolved.yaml`` as text.
    """
    shelves = ground.pools(recording)
    rows = list(ground.rows(recording, shelves))
    if not shelves or not (rows or len(recording.transfers["id"])):
        return None
    cut = cells.cut(rows)
    return Widget(
        kind="player",
        finding=_finding(recording, bool(rows)),
        data={"scenario": str(summary["scenario"]), **payload(recording, shelves, rows, cut, policy(resolved))},
        instead=instead(recording, shelves, rows, cut),
    )


def _finding(recording: Recording, blocks: bool) -> str:
    """Say how much went up and down, and in what part of the run; ``blocks``: it is known which ones."""
    carried = traffic(recording)
    up, down, read = (between(carried, *way) for way in (("dram", "vram"), ("vram", "dram"), ("ssd", "dram")))
    ways = ((up, "up into VRAM"), (down, "down out of it"), (read, "up from SSD"))
    said = ", ".join(f"{data(one.nbytes)} {way}" for one, way in ways if one.transfers) or "nothing moves"
    span = seconds(recording.end_s - recording.begin_s)
    what = "Blocks between the tiers" if blocks else "Weights, activations and KV between the tiers"
    return f"{what}: {said}, in {'the whole run' if recording.whole else 'a window'} of {span}"
