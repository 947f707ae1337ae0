"""Steps that wait: for what is loaded under them, and for the room that write-downs make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simkv.sim.live import LOAD_DRAM

if TYPE_CHECKING:
    from simkv.sim.engine import Engine


def begin_waiting(engine: Engine, now: float, compute_s: float) -> bool:
    """Start the loads of the step that begins now and have it wait; False where nothing is to be waited for.

    ``compute_s`` is what the step takes without. Layer by layer (``load: overlap``) it ends one layer after the last
    layer's KV is there; else it computes when all is there. In either case it computes nothing before the evicted
    blocks are down that it waits for (``write_back_blocks``).
    """
    loads = [chunk for chunk in engine.chunks if chunk.load]
    downs = list(engine.mover.waited)
    if not loads and not downs:
        return False
    layers = engine.cost.layers
    layerwise = engine.config.load == "overlap"
    left = len(loads) + len(downs)
    alone_s, loaded_s, down_s = 0.0, now, now

    def loaded() -> None:
        nonlocal loaded_s
        loaded_s = engine.clock.now
        ended()

    def down() -> None:
        nonlocal down_s
        down_s = engine.clock.now
        ended()

    def ended() -> None:
        nonlocal left
        left -= 1
        if left:
            return
        if layerwise:
            end_s = max(now + compute_s + alone_s / layers, loaded_s + compute_s / layers, down_s + compute_s)
        else:
            end_s = max(loaded_s, down_s) + compute_s
        for chunk in loads:
            chunk.live.parts[LOAD_DRAM] += end_s - now - compute_s
            chunk.live.since_s += end_s - now - compute_s
        engine.step_ends(now, end_s)

    for transfer in downs:
        engine.mover.ledger.follow(transfer, down)
    for chunk in loads:
        assert chunk.load is not None
        alone_s += engine.tiers.h2d.service_s(*chunk.load(loaded))
    return True
