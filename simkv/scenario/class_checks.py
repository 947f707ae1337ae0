"""What classes and preemption ask of tiers and policies, held against what the scenario has of them."""

from __future__ import annotations

from collections.abc import Iterator

from simkv.scenario.faults import Fault, Given
from simkv.scenario.schema import Scenario
from simkv.scenario.text import Path

_ROUNDING = 1e-9


def class_faults(s: Scenario, given: Given) -> Iterator[Fault]:
    """Yield everything about the classes' parts of the tiers, and about swapping, that doesn't go together."""
    yield from _dram_shares(s)
    in_queue = not s.active and s.engine.placement is None
    yield from _swap(s)
    yield from _retention(s)
    if in_queue:
        return
    for name, cls in s.classes.items():
        for key in ("vram_share", "dram_share"):
            if getattr(cls, key) is not None:
                what = "does nothing under active offload and in static batches, which know no parts of tiers"
                yield Fault(("classes", name, key), what, "leave it out")


def _retention(s: Scenario) -> Iterator[Fault]:
    for name, cls in s.classes.items():
        if cls.retention is not None and s.offload.eviction.policy != "priority":
            what = f"does nothing with offload.eviction.policy {s.offload.eviction.policy}"
            yield Fault(("classes", name, "retention"), what, "write policy: priority, or leave it out")


def _swap(s: Scenario) -> Iterator[Fault]:
    if s.engine.preemption != "swap":
        return
    path: Path = ("engine", "preemption")
    if s.engine.placement is not None:
        yield Fault(path, "does nothing in static batches: nobody is preempted", "leave it out")
    elif not s.tiers.dram.exists:
        yield Fault(path, "there is no DRAM to swap to", "give tiers.dram.capacity, or write recompute")
    elif still := [key for key, rate in _rates(s).items() if not rate]:
        what = f"nothing gets to DRAM and back: {still[0]} is 0"
        yield Fault(path, what, "give it a rate, or write recompute")
    elif not s.engine.prefix_caching and not s.active:
        what = "blocks are kept by what they hold, which engine.prefix_caching false doesn't look at"
        yield Fault(path, what, "write prefix_caching: true, or recompute")


def _rates(s: Scenario) -> dict[str, float]:
    """Return the rates that everything between VRAM and DRAM needs."""
    link = s.link
    return {"link.h2d": link.h2d, "link.d2h": link.d2h, "link.duplex": link.duplex,
            "tiers.dram.bandwidth": s.tiers.dram.bandwidth}  # fmt: skip


def _dram_shares(s: Scenario) -> Iterator[Fault]:
    """Hold that parts of DRAM are parts of something, leave something, and are filled by those that own them."""
    shares = {name: cls.dram_share for name, cls in s.classes.items() if cls.dram_share is not None}
    if not shares:
        return
    path: Path = ("classes", next(iter(shares)), "dram_share")
    if not s.tiers.dram.exists:
        yield Fault(path, "is a part of nothing: there is no DRAM tier", "give tiers.dram.capacity, or leave it out")
    whole = sum(shares.values())
    if whole > 1 + _ROUNDING:
        yield Fault(path, f"the classes' parts of DRAM sum to {whole:g}", "they must sum to 1 or less")
    others = [name for name in s.classes if name not in shares]
    if others and abs(whole - 1) <= _ROUNDING:
        mend = "leave some, or give every class a dram_share"
        yield Fault(("classes", others[0]), "no DRAM is left for it: the parts of the others sum to 1", mend)
    if s.offload.write == "write_back":
        mend = "write a write_through policy, or leave dram_share out"
        yield Fault(path, "an evicted block is no class's own, and offload.write is write_back", mend)
