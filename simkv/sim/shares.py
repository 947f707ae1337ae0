"""How much of VRAM a class's requests may hold, and who steps aside because of that."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from simkv.sim.config import ClassConfig, EngineConfig
from simkv.sim.live import Live


class VramShares:
    """The caps of one engine's classes (``classes.NAME.vram_share``).

    A request is admitted while the blocks that requests of its class hold, and those of its own prompt, stay
    within the class's part of the pool; each counts in full, shared prefixes too. One that is alone of its
    class is admitted whatever it needs. Decoding may grow beyond the cap: it is looked at on admission only.
    """

    def __init__(self, config: EngineConfig, classes: Sequence[ClassConfig]) -> None:
        self.config = config
        shares = {number: one.vram_share for number, one in enumerate(classes) if one.vram_share is not None}
        self.caps = {number: int(share * config.num_gpu_blocks) for number, share in shares.items()}
        self._holders: dict[int, dict[Live, None]] = {number: {} for number in self.caps}
        """Requests that hold blocks: running, being loaded, or loaded and waiting."""
        self._aside: dict[int, list[tuple[tuple[int, int], Live]]] = {number: [] for number in self.caps}
        """Requests that wait until their class holds less, in the order of the queue."""

    @property
    def aside(self) -> int:
        """How many requests have stepped aside."""
        return sum(len(queue) for queue in self._aside.values())

    def admits(self, live: Live, step: int) -> bool:
        """Say whether ``live`` fits beside those of its class that hold blocks at the beginning of ``step``.

        It doesn't pass one of its class that stepped aside before it.
        """
        holders = self._holders.get(live.cls)
        if not holders:
            return True
        queue = self._aside[live.cls]
        if queue and queue[0][0] < live.order:
            return False
        held = sum(self._blocks(other, step) for other in holders)
        return held + self._blocks(live, step) <= self.caps[live.cls]

    def _blocks(self, live: Live, step: int) -> int:
        config = self.config
        if live.step0 >= 0:
            return config.blocks(live.context(step)) + live.side_blocks
        return config.blocks(live.target) + config.side_admitted(live.target, live.last_tokens)

    def step_aside(self, live: Live) -> None:
        """Keep ``live`` until its class holds less; others pass it."""
        heappush(self._aside[live.cls], (live.order, live))

    def hold(self, live: Live) -> Live | None:
        """Note that ``live`` holds blocks; return who of its class is to be tried next."""
        if live.cls not in self.caps:
            return None
        self._holders[live.cls][live] = None
        return self._next(live.cls)

    def let_go(self, live: Live) -> Live | None:
        """Note that ``live`` holds nothing any more; return who of its class is to be tried next."""
        if live.cls not in self.caps or self._holders[live.cls].pop(live, self) is self:
            return None
        return self._next(live.cls)

    def _next(self, cls: int) -> Live | None:
        queue = self._aside[cls]
        return heappop(queue)[1] if queue else None
