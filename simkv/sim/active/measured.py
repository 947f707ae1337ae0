"""What active offload did, measured on the event timeline."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True)
class Measured:
    """Sums over the decode steps of a run; times in seconds, reads in (block, layer) pieces."""

    steps: int = 0
    """Steps that decoded and computed no prompt: the step times below are theirs alone."""
    step_s: float = 0.0
    compute_s: float = 0.0
    host_s: float = 0.0
    exposed_s: float = 0.0
    """Time the GPU waited for a needed transfer while one was being carried."""
    carried_s: float = 0.0
    """Time needed transfers were being carried; a used prefetch counts with its share of the service time.

    That may overlap with others, so no more than ``step_s`` in all.
    """
    needed_s: float = 0.0
    """Service time of everything that was needed, on idle lanes: the closed forms' T_t."""
    write_wait_s: float = 0.0
    """Time steps waited for write-backs of the steps before."""
    contended_s: float = 0.0
    """Time that copies beside it, or waits before it, cost computation: not in ``compute_s``."""
    empty: int = 0
    """Steps in which attention read nothing: a log doesn't name them."""
    short_below: int = 0
    """Steps at whose beginning the head of the queue waited for room below VRAM."""
    reads: int = 0
    hits: int = 0
    """Reads whose piece was resident when attention needed it."""
    resident: int = 0
    """Of them, those that no prefetch of this or the step before brought."""
    loads_dram: int = 0
    loads_ssd: int = 0
    """Pieces brought back, on demand or ahead of it."""
    service_s: float = 0.0
    queued_s: float = 0.0
    duplex_s: float = 0.0
    """Of it, on transfers that ran while the other direction was busy and the cap on both was the limit."""
    descriptors_s: float = 0.0
    """Of the service time, what setting transfers up and the latencies of pieces take."""
    prefetched: int = 0
    used: int = 0
    timely: int = 0
    wasted: int = 0
    missed: int = 0
    """Pieces that had to be loaded on demand."""
    prefetch_bytes: int = 0
    prefetch_s: float = 0.0
    wasted_bytes: int = 0
    wasted_s: float = 0.0
    """Service time of prefetches that nobody read: bandwidth taken from demand traffic."""
    demand_waited_s: float = 0.0
    """Time demand transfers waited behind others."""
    hindered_s: float = 0.0
    """Time that computation beside them cost demand transfers."""
    written_bytes: int = 0
    ssd_written_bytes: int = 0
    ssd_read_bytes: int = 0
    loaded_bytes: int = 0
    guesses: int = 0
    """Steps for which the next reads were guessed."""
    clamped: int = 0
    """Steps whose β was cut to what is feasible."""
    swapped: int = 0

    def add(self, other: Measured) -> None:
        """Add the sums of another replica."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
