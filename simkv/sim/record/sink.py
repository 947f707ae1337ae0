"""Who is told of events while they are recorded.

A hook is an attribute (``lane.log``, ``engine.log``, ``pool.index.watch``, ...) that is None while nobody records:
:class:`simkv.sim.record.windows.Windows` sets them all. Telling may end a window, and so clear every hook.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from simkv.sim.fabric import Lane, Transfer


class Sink(Protocol):
    """What is told of events: one log, or several whose windows are open at once."""

    def step(
        self, replica: int, begin_s: float, end_s: float, steps: int, decodes: int, prefill_tokens: int, wait_s: float
    ) -> None:
        """``steps`` forward steps ended now."""

    def served(self, lane: Lane, transfer: Transfer, over: bool) -> None:
        """``lane`` served ``transfer`` since ``lane.served_since_s``, and stops now; ``over``: it is through."""

    def blocks(
        self, t_s: float, tier: int, pool: int, what: int, label: int, first: int, end: int, transfer: int = 0
    ) -> None:
        """Blocks ``first .. end-1`` of ``label`` change; ``transfer``: the ledger's id of what brings them."""

    def private(self, t_s: float, tier: int, pool: int, blocks: int) -> None:
        """Running requests hold ``blocks`` blocks for themselves from now on."""


class Together:
    """Several windows that are open at once."""

    def __init__(self, logs: Sequence[Sink]) -> None:
        self.logs = logs

    def step(
        self, replica: int, begin_s: float, end_s: float, steps: int, decodes: int, prefill_tokens: int, wait_s: float
    ) -> None:
        """Tell all of steps that ended."""
        for log in self.logs:
            log.step(replica, begin_s, end_s, steps, decodes, prefill_tokens, wait_s)

    def served(self, lane: Lane, transfer: Transfer, over: bool) -> None:
        """Tell all what a lane served."""
        for log in self.logs:
            log.served(lane, transfer, over)

    def blocks(
        self, t_s: float, tier: int, pool: int, what: int, label: int, first: int, end: int, transfer: int = 0
    ) -> None:
        """Tell all that blocks change."""
        for log in self.logs:
            log.blocks(t_s, tier, pool, what, label, first, end, transfer)

    def private(self, t_s: float, tier: int, pool: int, blocks: int) -> None:
        """Tell all what is held privately."""
        for log in self.logs:
            log.private(t_s, tier, pool, blocks)


def together(logs: Sequence[Sink]) -> Sink | None:
    """Return whom to tell; None where nobody records."""
    if not logs:
        return None
    return logs[0] if len(logs) == 1 else Together(logs)
