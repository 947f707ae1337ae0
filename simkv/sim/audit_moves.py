"""Laws of what moves between tiers: transfers under way, blocks in use, bytes by lane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simkv.sim.record.errand import LOAD, SWAP_IN

if TYPE_CHECKING:
    from simkv.kvcache.node import Node
    from simkv.sim.engine import Engine
    from simkv.sim.fabric import Lane
    from simkv.sim.ledger import Ledger
    from simkv.sim.system import System
    from simkv.sim.tiers import Host

Finding = tuple[str, str, str]
"""A law's id, of what, and what was found."""
LANES = ("h2d", "d2h", "ssd_read", "ssd_write")


class Moves:
    """Holds what lanes carry against what hits, write-downs and those who wait say."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._received_before = self._received()
        """Untimed, before the run."""

    def ledger_of(self, host: Host) -> Ledger:
        """Return where the transfers of ``host`` are booked."""
        return self.system.ledgers[self.system.hosts.index(host)]

    def under_way(self) -> Iterator[Finding]:
        """Yield transfers that somebody was told of too early, or never will be."""
        for number, host in enumerate(self.system.hosts):
            ledger = self.ledger_of(host)
            flying: dict[int, None] = {}
            for lane in (*(lane for link in host.links for lane in link), host.ssd_read, host.ssd_write):
                for transfer in lane.in_flight():
                    of = transfer.errand.number
                    flying[of] = None
                    if of > 0 and of not in ledger.waiters:
                        what = f"transfer {of} of {transfer.bytes} bytes is said to be over, and is under way"
                        yield "L51", f"host {number} {lane.name}{_for(transfer.errand.request)}", what
            for of, (lane, _) in ledger.carriers.items():
                if of not in flying:
                    yield "L51", f"host {number} {lane.name}", f"transfer {of} is waited for, and isn't under way"

    def at_end(self) -> Iterator[Finding]:
        """Yield where the bytes of a lane aren't those of what was hit, or written, through it."""
        system = self.system
        moved = system.moved_bytes()
        own = [carried for engine in system.engines if (carried := engine.carried_bytes()) is not None]
        if own:
            yield from _as_asked(moved, own)
            return
        block_bytes, block_tokens = system.config.engine.block_bytes, system.config.engine.block_tokens
        written = system.tier_written_blocks()
        total = system.recorder.requests.total
        ssd, dram = total("hit_ssd_tokens"), total("hit_dram_tokens")
        received = self._received() - self._received_before
        if received * block_tokens < dram + ssd:
            yield "L21", "h2d", f"{received} blocks loaded for {dram + ssd} tokens hit below VRAM"
        if moved["h2d"] != received * block_bytes:
            yield "L21", "h2d", f"{moved['h2d']} bytes carried, {received} blocks of {block_bytes} bytes loaded"
        if moved["ssd_read"] * block_tokens < ssd * block_bytes:
            yield "L21", "ssd_read", f"{moved['ssd_read']} bytes read for {ssd} tokens hit on SSD"
        if moved["d2h"] + moved["ssd_read"] != written["dram"] * block_bytes:
            yield "L21", "DRAM", f"{written['dram']} blocks written, {moved['d2h'] + moved['ssd_read']} bytes"
        if moved["ssd_write"] != written["ssd"] * block_bytes:
            yield "L21", "SSD", f"{written['ssd']} blocks written, {moved['ssd_write']} bytes"

    def _received(self) -> int:
        return sum(engine.mover.received_blocks for engine in self.system.engines)


def held_blocks_are_here(engine: Engine) -> Iterator[Finding]:
    """Yield requests part of whose prefix in VRAM is not pinned, or not there."""
    for live in engine.running:
        node: Node | None = live.handle
        while node is not None and node.parent is not None:
            here = node.resident and node.parent.children.get(node.key) is node
            if not here or node.refs < 1:
                state = "not pinned" if here else "evicted"
                yield "L5", f"request {live.request.id}", f"up to block {node.end} of what it uses in VRAM is {state}"
            node = node.parent


def loads_under_way(lane: Lane, request: int) -> int:
    """Return the bytes that ``lane`` is still carrying for ``request``."""
    errands = [(transfer.errand, transfer.bytes) for transfer in lane.in_flight()]
    return sum(size for errand, size in errands if errand.request == request and errand.purpose in (LOAD, SWAP_IN))


def _as_asked(moved: dict[str, int], own: list[dict[str, int]]) -> Iterator[Finding]:
    """Engines that move KV themselves: the lanes carried what they asked for, and nothing else did."""
    for lane in LANES:
        asked = sum(carried[lane] for carried in own)
        if moved[lane] != asked:
            yield "L21", lane, f"{moved[lane]} bytes carried, {asked} asked for"


def _for(request: int) -> str:
    return f", request {request}" if request >= 0 else ""
