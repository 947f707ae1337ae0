"""What must hold of a replica's active offload between any two events; INVARIANTS.md lists the laws by id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from simkv.sim.active.earned import EarnedShare
from simkv.sim.active.homes import DRAM, NOWHERE, SSD
from simkv.sim.active.measured import Measured
from simkv.sim.active.promises import Promises
from simkv.sim.active.reuse import SharedHomes
from simkv.sim.active.sequence import Sequence
from simkv.sim.active.share import SharedBudget
from simkv.sim.active.store import ActiveStore

if TYPE_CHECKING:
    from simkv.sim.active.engine import ActiveEngine

Breach = tuple[str, str]
"""A law's id, and what was found."""
ROUNDING = 1e-9
SUM_ROUNDING = 1e-7
"""Of sums of differences of rounded times."""


def breaches(engine: ActiveEngine) -> Iterator[Breach]:
    """Yield what one replica breaks now."""
    store = engine.store
    yield from _shares(store)
    if isinstance(store.residency, EarnedShare):
        yield from _earned(store, store.residency)
        yield from _read(store.residency, sum(engine.work.resident))
    else:
        yield from _pinned(store)
    for seq in store.sequences.values():
        yield from _homes(seq)
    total = Measured()
    for kind in (engine.parts.steps, engine.parts.prefills):
        yield from _booked(kind)
        total.add(kind)
    if not 0 <= total.timely <= total.used <= total.prefetched - total.wasted or engine.parts.prefills.prefetched:
        what = f"{total.prefetched} pieces, {total.used} used, {total.timely} in time, {total.wasted} wasted"
        yield "L35", f"prefetched {what}"


def promised(stores: list[ActiveStore], promises: Promises) -> Iterator[Breach]:
    """Yield what the replicas of one host break of what they were promised together."""
    given, on_ssd = [0] * len(promises.given), [0] * len(promises.given)
    for store in stores:
        given[store.dram_number] += store.parting + sum(seq.promised for seq in store.sequences.values())
        on_ssd[store.dram_number] += sum(seq.homes.ssd for seq in store.sequences.values())
    if given != promises.given:
        yield "L32", f"{promises.given} blocks promised, sequences have {given}"
    if on_ssd != promises.on_ssd:
        yield "L32", f"{promises.on_ssd} blocks on SSD, sequences have {on_ssd}"
    if any(promises.spare_ssd(number) < 0 for number in range(len(given))):
        yield "L32", "more promised than there is"


def at_end(engine: ActiveEngine) -> Iterator[Breach]:
    """Yield what is wrong where nobody is there any more."""
    if engine.parts.steps.carried_s > engine.parts.steps.step_s * (1 + ROUNDING):
        yield "L33", f"carried for {engine.parts.steps.carried_s} s in steps of {engine.parts.steps.step_s} s"
    for kind in (engine.parts.steps, engine.parts.prefills):
        yield from _adds_up(kind)
    total = Measured()
    total.add(engine.parts.steps)
    total.add(engine.parts.prefills)
    if total.used + total.wasted != total.prefetched:
        yield "L35", f"{total.prefetched} pieces prefetched, {total.used} used and {total.wasted} wasted"
    if engine.store.sequences or any(engine.store.promises.given):
        yield "L32", "promises outlive those who had them"


def _shares(store: ActiveStore) -> Iterator[Breach]:
    here = [seq for seq in store.sequences.values() if seq.here]
    for seq in here:
        if seq.taken < store.share.taken(seq.blocks):
            yield "L30", f"request {seq.live.request.id} takes {seq.taken} blocks of VRAM, less than its share"
    if isinstance(store.share, SharedBudget) and len(here) > store.share.budget_blocks:
        yield "L30", f"{len(here)} sequences in a budget of {store.share.budget_blocks} blocks"


def _pinned(store: ActiveStore) -> Iterator[Breach]:
    resident = 0
    for seq in store.sequences.values():
        resident += seq.resident
        budget = isinstance(store.share, SharedBudget)
        if not budget and seq.resident > max(
            store.share.resident(seq.blocks), store.share.resident(_prompt(store, seq))
        ):
            yield "L30", f"request {seq.live.request.id} keeps {seq.resident} blocks, more than its share"
        if (seq.homes.at[: seq.cold] == NOWHERE).any() and seq.here and store.config.write != "never":
            yield "L31", f"a cold block of request {seq.live.request.id} lies nowhere"
        if seq.here and seq.resident and seq.cold_dram + seq.cold_ssd != seq.cold:
            yield "L31", f"request {seq.live.request.id} streams {seq.cold_dram} + {seq.cold_ssd} of {seq.cold} blocks"
    if isinstance(store.share, SharedBudget) and resident > store.share.budget_blocks:
        yield "L30", f"{resident} blocks resident, the budget is {store.share.budget_blocks}"


def _prompt(store: ActiveStore, seq: Sequence) -> int:
    return 0 if seq.decoding else store.share.total(seq.live.target)


def _earned(store: ActiveStore, share: EarnedShare) -> Iterator[Breach]:
    units = share.set
    try:
        units.check_integrity()
    except AssertionError as error:
        yield "L30", f"resident set: {error}"
    coming = 0
    for seq in store.sequences.values():
        if seq.base < 0:
            continue
        ids = seq.base + np.arange(seq.blocks * share.groups)
        pending = units.pending(ids)
        coming += int(np.count_nonzero(pending))
        lost = ~(units.resident(ids) | pending)
        if (lost & (np.repeat(seq.homes.at[: seq.blocks], share.groups) == NOWHERE)).any():
            yield "L31", f"a block of request {seq.live.request.id} lies nowhere"
    allowed = _allowed(store) * share.groups
    if units.used_units > max(allowed, coming):
        yield "L30", f"{units.used_units} units resident, {allowed} allowed"


def _allowed(store: ActiveStore) -> int:
    """Return the blocks that decoding sequences may have in VRAM together."""
    if isinstance(store.share, SharedBudget):
        prompts = sum(seq.resident for seq in store.sequences.values() if seq.here and not seq.decoding)
        return store.share.budget_blocks - prompts
    return sum(store.share.resident(seq.blocks) for seq in store.sequences.values() if seq.base >= 0)


def _read(share: EarnedShare, said_resident: int) -> Iterator[Breach]:
    """Look at what the step under way reads, of which ``said_resident`` units were there as it began."""
    if not len(share.reading):
        return
    here = share.set.resident(share.reading)
    if not (here | share.set.pending(share.reading)).all():
        yield "L36", "a unit was evicted while a step reads it"
    if np.count_nonzero(here) < said_resident:
        yield "L34", f"{said_resident} units were said to be resident, {np.count_nonzero(here)} are"


def _homes(seq: Sequence) -> Iterator[Breach]:
    homes = seq.homes
    shared = homes.shared if isinstance(homes, SharedHomes) else 0
    own = homes.at[shared:]
    counted = int(np.count_nonzero(own == DRAM)), int(np.count_nonzero(own == SSD))
    if counted != (homes.dram, homes.ssd):
        yield "L32", f"request {seq.live.request.id} has {homes.dram} + {homes.ssd} homes, {counted} in the columns"
    if homes.dram + homes.ssd + shared > seq.promised:
        yield "L32", f"request {seq.live.request.id} has more homes than the {seq.promised} that it was promised"


def _adds_up(measured: Measured) -> Iterator[Breach]:
    """Hold that steps are what they compute and what they wait for."""
    waits_s = measured.exposed_s + measured.write_wait_s + measured.host_s + measured.contended_s
    if abs(measured.step_s - measured.compute_s - waits_s) > SUM_ROUNDING * measured.step_s:
        yield "L38", f"steps took {measured.step_s} s: computing {measured.compute_s} s and waiting {waits_s} s"


def _booked(measured: Measured) -> Iterator[Breach]:
    if measured.compute_s > measured.step_s * (1 + ROUNDING):
        yield "L33", f"steps took {measured.step_s} s and computed for {measured.compute_s} s"
    if not 0 <= measured.exposed_s <= measured.carried_s * (1 + ROUNDING):
        yield "L33", f"{measured.exposed_s} s exposed of {measured.carried_s} s carried"
    if not 0 <= measured.resident <= measured.hits <= measured.reads and measured.steps:
        yield "L34", f"{measured.reads} reads, {measured.hits} hits, {measured.resident} of them resident"
