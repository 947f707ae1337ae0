"""What a resident set asks of whoever chooses its victims."""

from __future__ import annotations

from typing import Protocol

from simkv.kvcache.residency.units import AnyIds, Ids


class Order(Protocol):
    """Chooses victims. Deterministic: equal calls, equal victims.

    Ties go by recency, then tail first (the higher position in its sequence), then the lower unit id.
    """

    def opened(self, base: int, units: int) -> None:
        """Note a new region, whose units were never here."""

    def closed(self, base: int, units: int) -> None:
        """Forget a region, whatever of it is in."""

    def touched(self, ids: Ids) -> None:
        """Note a read of ``ids``, whose columns are up to date."""

    def arrived(self, ids: Ids) -> None:
        """Note units that were pending and are resident now."""

    def offer(self, protect: AnyIds, capacity_units: int) -> int:
        """Settle who may be evicted now, all that is resident but ``protect``; returns how many."""

    def victims(self, most: int, incoming: Ids) -> Ids:
        """Return the ``most`` (at most as many as were offered) to evict for ``incoming``, first to go first.

        They are out of the order from here on; the caller changes their columns.
        """

    def known(self) -> Ids | None:
        """Return the units that it keeps as resident, ascending; None where it goes by the columns alone."""
