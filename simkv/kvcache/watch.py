"""Who wants to see what a tier holds change. Blocks count in the tier's own unit, from the beginning of ``spans``."""

from __future__ import annotations

from typing import Protocol

from simkv.workload.request import Spans


class Watch(Protocol):
    """Told of each change of one pool, when it has happened; nothing of the pool depends on it.

    Nodes of the index that are split, merged or grown change nothing that is told: blocks are told of, not nodes.
    """

    def entered(self, spans: Spans, start: int, end: int, transfer: int) -> None:
        """Blocks ``start .. end-1`` of ``spans`` have room now; ``transfer`` brings them, 0: they are here."""

    def arrived(self, spans: Spans, start: int, end: int, transfer: int) -> None:
        """What ``transfer`` brought is here."""

    def used(self, spans: Spans, start: int, end: int) -> None:
        """Blocks that are resident were used, as the eviction policy counts it."""

    def left(self, spans: Spans, start: int, end: int) -> None:
        """Blocks are resident no more: evicted, or moved away."""

    def held(self) -> None:
        """The number of private blocks is another."""
