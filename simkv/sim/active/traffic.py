"""The bytes that active offload moves: demand loads, prefetches and write-backs over the fabric's lanes."""

from __future__ import annotations

from simkv.sim.active.measured import Measured
from simkv.sim.clock import Clock
from simkv.sim.fabric import DEMAND, WRITE_BACK, Lane, Transfer
from simkv.sim.ledger import Done
from simkv.sim.record.errand import OPEN, PREFETCH, STORE, STREAM, Errand
from simkv.sim.tiers import ReplicaTiers


class Pieces:
    """(block, layer) pieces that go up together: how many from each tier, and in how many descriptors."""

    __slots__ = ("dram", "dram_descriptors", "ssd", "ssd_descriptors")

    def __init__(self, dram: int = 0, ssd: int = 0, dram_descriptors: int = -1, ssd_descriptors: int = -1) -> None:
        self.dram = dram
        self.ssd = ssd
        self.dram_descriptors = dram if dram_descriptors < 0 else dram_descriptors
        self.ssd_descriptors = ssd if ssd_descriptors < 0 else ssd_descriptors

    def __len__(self) -> int:
        return self.dram + self.ssd

    def without(self, other: Pieces) -> Pieces:
        """Return what these have more than ``other``."""
        mine = (self.dram, self.ssd, self.dram_descriptors, self.ssd_descriptors)
        theirs = (other.dram, other.ssd, other.dram_descriptors, other.ssd_descriptors)
        dram, ssd, *descriptors = (max(0, one - two) for one, two in zip(mine, theirs, strict=True))
        return Pieces(dram, ssd, max(descriptors[0], min(dram, 1)), max(descriptors[1], min(ssd, 1)))

    def divided(self, share: float) -> tuple[Pieces, Pieces]:
        """Return about ``share`` of these, and the rest."""
        parts = [round(n * share) for n in (self.dram, self.ssd, self.dram_descriptors, self.ssd_descriptors)]
        first = Pieces(*parts)
        return first, self.without(first)

    def times(self, number: int) -> Pieces:
        """Return ``number`` times these."""
        return Pieces(
            self.dram * number, self.ssd * number, self.dram_descriptors * number, self.ssd_descriptors * number
        )

    def __add__(self, other: Pieces) -> Pieces:
        return Pieces(
            self.dram + other.dram, self.ssd + other.ssd, self.dram_descriptors + other.dram_descriptors,
            self.ssd_descriptors + other.ssd_descriptors,
        )  # fmt: skip


class Load:
    """Pieces on their way up, from DRAM in one hop and from SSD in two."""

    __slots__ = ("_done", "_errands", "_hops", "_parts", "_since_s", "_traffic", "errand", "pieces", "priority")

    def __init__(self, traffic: Traffic, pieces: Pieces, priority: int, done: Done, errand: Errand) -> None:
        self._traffic = traffic
        self.errand = errand
        """What its hops are for, each of which has one like it."""
        self._errands: list[Errand] = []
        self._done = done
        self._hops: list[tuple[Lane, Transfer, float]] = []
        self._parts = (pieces.dram > 0) + (pieces.ssd > 0)
        self._since_s = traffic.clock._now
        self.priority = priority
        self.pieces = len(pieces)
        tiers = traffic.tiers
        if pieces.dram:
            self._hop(tiers.h2d, pieces.dram, pieces.dram_descriptors, self._through)
        if pieces.ssd:
            up = lambda: self._hop(tiers.h2d, pieces.ssd, pieces.ssd_descriptors, self._through)  # noqa: E731
            self._hop(tiers.host.ssd_read, pieces.ssd, pieces.ssd_descriptors, up)

    def urge(self, needed: int) -> None:
        """Somebody waits for ``needed`` of its pieces from now on; what of them was carried before was hidden."""
        if self.priority == DEMAND:
            return
        self.priority = DEMAND
        self._since_s = self._traffic.clock._now
        for lane, transfer, alone_s in self._hops:
            carried_s = alone_s * lane.carried_share(transfer)
            self._traffic.measured.carried_s += carried_s * needed / self.pieces
            lane.urge(transfer, DEMAND, self._traffic.rank)

    def judge(self, fate: int) -> None:
        """Settle what became of a prefetch."""
        self.errand.judge(fate)
        for errand in self._errands:
            errand.judge(fate)

    def _through(self) -> None:
        self._parts -= 1
        if not self._parts:
            self._done()

    def _hop(self, lane: Lane, count: int, descriptors: int, done: Done) -> None:
        traffic = self._traffic
        measured, clock = traffic.measured, traffic.clock
        if self.priority == DEMAND:
            self._since_s = clock._now
        nbytes, begun_s = count * traffic.piece_bytes, clock._now
        alone_s = lane.service_s(nbytes, descriptors)

        def through() -> None:
            waited_s = max(0.0, clock._now - begun_s - alone_s)
            measured.service_s += alone_s
            measured.descriptors_s += lane.overhead_s(descriptors)
            measured.queued_s += count * waited_s + (count - 1) / 2 * alone_s
            if self.priority == DEMAND:
                waited_s = min(waited_s, clock._now - self._since_s)
                hindered_s = min(transfer.hindered_s, waited_s)
                measured.hindered_s += hindered_s
                waited_s -= hindered_s
                measured.demand_waited_s += waited_s
                if traffic.duplex_binds and lane is traffic.tiers.h2d and traffic.tiers.d2h.active is not None:
                    measured.duplex_s += waited_s
            done()

        errand = Errand(self.errand.purpose, self.errand.request, fate=self.errand.fate)
        self._errands.append(errand)
        transfer = lane.submit(nbytes, descriptors, self.priority, through, traffic.rank, errand=errand)
        self._hops.append((lane, transfer, alone_s))


class Traffic:
    """One replica's lanes, and what is measured of what they carry."""

    def __init__(self, clock: Clock, tiers: ReplicaTiers, piece_bytes: int, measured: Measured) -> None:
        self.clock = clock
        self.tiers = tiers
        self.piece_bytes = piece_bytes
        self.measured = measured
        self.foreseen = measured
        """Where what becomes of prefetches is booked, whichever steps it falls into."""
        self.rank = 0
        """Of the most urgent class in the step under way: the whole step waits for what it loads."""
        self.waiting = False
        """The GPU waits for something needed."""
        self._needed = 0
        self._since_s = 0.0
        self.begun_writes = self.ended_writes = 0
        self._write_call: tuple[int, Done] | None = None
        duplex = tiers.host.fabric.links[0][2]
        self.duplex_binds = tiers.h2d.bytes_per_s + tiers.d2h.bytes_per_s > duplex

    # ---- what is needed now

    def need(self, change: int) -> None:
        """Count ``change`` more needed transfers in flight."""
        self._book()
        self._needed += change

    def wait(self, waiting: bool) -> None:
        """Say whether the GPU waits for a needed transfer."""
        self._book()
        self.waiting = waiting

    def _book(self) -> None:
        now = self.clock._now
        if self._needed:
            passed = now - self._since_s
            self.measured.carried_s += passed
            if self.waiting:
                self.measured.exposed_s += passed
        self._since_s = now

    # ---- up

    def service_s(self, pieces: Pieces) -> float:
        """Time to bring ``pieces`` up on idle lanes, one hop after the other."""
        up, read = self.tiers.h2d, self.tiers.host.ssd_read
        total = 0.0
        if pieces.dram:
            total += up.service_s(pieces.dram * self.piece_bytes, pieces.dram_descriptors)
        if pieces.ssd:
            nbytes = pieces.ssd * self.piece_bytes
            total += read.service_s(nbytes, pieces.ssd_descriptors) + up.service_s(nbytes, pieces.ssd_descriptors)
        return total

    def up(self, pieces: Pieces, priority: int, done: Done, errand: Errand | None = None) -> Load:
        """Bring ``pieces`` up; ``done`` is called when all are here.

        ``errand``: what for, where it isn't what a step reads now, or what is foreseen that one will read.
        What comes from SSD is read into a buffer in DRAM first.
        """
        assert len(pieces), "nothing to bring up"
        self.measured.loads_dram += pieces.dram
        self.measured.loads_ssd += pieces.ssd
        self.measured.loaded_bytes += len(pieces) * self.piece_bytes
        self.measured.ssd_read_bytes += pieces.ssd * self.piece_bytes
        if errand is None:
            errand = Errand(STREAM) if priority == DEMAND else Errand(PREFETCH, fate=OPEN)
        return Load(self, pieces, priority, done, errand)

    # ---- down

    def down(
        self, pieces: Pieces, done: Done | None = None, purpose: int = STORE, request: int = -1, number: int = 0
    ) -> None:
        """Write pieces down behind everything else, to DRAM and (from a buffer there) to SSD; then call ``done``.

        ``number``: the ledger's for the way to DRAM; 0: it has none.
        """
        if not len(pieces):
            return
        nbytes, ssd_bytes = len(pieces) * self.piece_bytes, pieces.ssd * self.piece_bytes
        self.begun_writes += 1
        self.measured.written_bytes += nbytes
        self.measured.ssd_written_bytes += ssd_bytes

        def written() -> None:
            if done is not None:
                done()
            self._written()

        def through() -> None:
            if pieces.ssd:
                errand = Errand(purpose, request)
                write = self.tiers.host.ssd_write
                write.submit(ssd_bytes, pieces.ssd_descriptors, WRITE_BACK, written, errand=errand)
            else:
                written()

        descriptors = pieces.dram_descriptors + pieces.ssd_descriptors
        self.tiers.d2h.submit(nbytes, descriptors, WRITE_BACK, through, errand=Errand(purpose, request, number))

    def when_written(self, writes: int, call: Done) -> None:
        """Make ``call`` once ``writes`` write-backs are through, at once where they are."""
        self._write_call = (writes, call)
        self._check_written()

    def _written(self) -> None:
        self.ended_writes += 1
        self._check_written()

    def _check_written(self) -> None:
        if self._write_call is not None and self.ended_writes >= self._write_call[0]:
            call, self._write_call = self._write_call[1], None
            call()
