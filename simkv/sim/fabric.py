"""The data paths of one host: PCIe lanes, SSD queues, and the DRAM bandwidth they share.

A :class:`Lane` serves one transfer at a time, the most urgent first: by kind, and within a kind by the
rank of the class that it is for. A more urgent one takes over at the next chunk boundary. While lanes
are busy together their rates are cut where they share something: both directions of a link (``duplex``),
links behind one uplink, reads and writes of an SSD, and everything that touches DRAM. One event a
transfer unless somebody's rate changes under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from math import ceil, inf
from typing import TYPE_CHECKING

from simkv.sim.clock import TRANSFER_RANK, Clock, Timer
from simkv.sim.record.errand import Errand

if TYPE_CHECKING:
    from simkv.sim.record.sink import Sink

DEMAND, NEXT_STEP, LOOK_AHEAD, WRITE_BACK = range(4)
"""Kinds of transfer, most urgent first (design: demand > next step > look-ahead > write-back)."""
KINDS = 4


class Transfer:
    """Bytes on their way over one lane."""

    __slots__ = (
        "bytes", "cap_bytes_per_s", "done", "errand", "hindered_s", "level", "remaining", "stop", "submitted_s",
    )  # fmt: skip

    def __init__(
        self,
        nbytes: int,
        cap_bytes_per_s: float,
        level: int,
        done: Callable[[], None],
        submitted_s: float,
        errand: Errand,
    ) -> None:
        self.bytes = nbytes
        self.submitted_s = submitted_s
        self.errand = errand
        self.cap_bytes_per_s = cap_bytes_per_s
        """Its rate when alone, descriptor latencies included."""
        self.level = level
        """Its place among waiting ones: by kind, then by rank; the lowest goes first."""
        self.done = done
        self.remaining = float(nbytes)
        self.hindered_s = 0.0
        """Time of its service that computation beside it cost."""
        self.stop = 0.0
        """Bytes that may remain when its service ends (above 0: it gives way)."""


class Lane:
    """One direction of a link, or one kind of SSD access."""

    def __init__(
        self, fabric: Fabric, name: str, bytes_per_s: float, latency_s: float, chunk_bytes: int, setup_s: float = 0.0
    ) -> None:
        """``latency_s`` is of each descriptor (on SSDs: request), ``setup_s`` of a transfer."""
        self.fabric = fabric
        self.name = name
        self.bytes_per_s = bytes_per_s
        self.latency_s = latency_s
        self.setup_s = setup_s
        self.chunk_bytes = chunk_bytes
        self.alone_bytes_per_s = inf
        """The least of the caps on what it shares, DRAM aside: all that it can have."""
        self.queues: list[deque[Transfer]] = [deque() for _ in range(KINDS * fabric.ranks)]
        self.active: Transfer | None = None
        self.slowdown = 1.0
        """How many times longer its transfers take now."""
        self._hinderers = 0
        self.rate = 0.0
        self.since_s = 0.0
        self.served_since_s = 0.0
        """Since when it serves the active transfer without a break."""
        self.log: Sink | None = None
        self.version = 0
        self.busy_s = 0.0
        self.busy_since_s = 0.0
        self.submitted_bytes = 0
        self.delivered_bytes = 0

    @property
    def usable(self) -> bool:
        """False where nothing can ever get through."""
        return self.bytes_per_s > 0.0 and self.alone_bytes_per_s > 0.0

    def overhead_s(self, descriptors: int) -> float:
        """Time of a transfer in which no byte moves: ``setup + descriptors * latency``."""
        return self.setup_s + descriptors * self.latency_s

    def service_s(self, nbytes: int, descriptors: int) -> float:
        """Time of an isolated transfer: ``setup + descriptors * latency + bytes / bandwidth``."""
        return self.overhead_s(descriptors) + (nbytes / self.bytes_per_s if self.bytes_per_s > 0 else inf)

    def submit(
        self,
        nbytes: int,
        descriptors: int,
        priority: int,
        done: Callable[[], None],
        rank: int = 0,
        most_bytes_per_s: float = inf,
        errand: Errand | None = None,
    ) -> Transfer:
        """Queue a transfer of ``nbytes`` in ``descriptors`` pieces; ``done()`` is called when it is through.

        ``priority`` is its kind (DEMAND, ...); within the kind a lower ``rank`` goes first. ``most_bytes_per_s``:
        what its ends can take, where that is less than the lane. ``errand``: what it is for, where somebody tells.
        """
        level = priority * self.fabric.ranks + rank
        alone_s = max(self.service_s(nbytes, descriptors), nbytes / most_bytes_per_s)
        cap_bytes_per_s = nbytes / alone_s if alone_s > 0 else inf
        transfer = Transfer(nbytes, cap_bytes_per_s, level, done, self.fabric.clock._now, errand or Errand())
        self.submitted_bytes += nbytes
        active = self.active
        self.queues[level].append(transfer)
        if active is None:
            self._start_next()
            self.fabric.rebalance()
        elif level < active.level and active.stop == 0.0:
            self._give_way(active)
        return transfer

    def urge(self, transfer: Transfer, priority: int, rank: int = 0) -> None:
        """Raise ``transfer`` to ``priority`` and ``rank``: somebody waits for it now.

        One that is as urgent already is left alone, and so is one that is through.
        """
        level = priority * self.fabric.ranks + rank
        if level >= transfer.level:
            return
        active = self.active
        if transfer is active:
            transfer.level = level
        elif transfer in self.queues[transfer.level]:
            self.queues[transfer.level].remove(transfer)
            transfer.level = level
            self.queues[level].append(transfer)
            if active is not None and level < active.level and active.stop == 0.0:
                self._give_way(active)

    def hinder(self, change: int, factor: float) -> None:
        """Count ``change`` more that hinder it: its transfers take ``factor`` times as long while there is any.

        Rates are as before until the fabric shares them out anew.
        """
        self._progress()
        self._hinderers += change
        self.slowdown = factor if self._hinderers else 1.0

    def in_flight_bytes(self) -> int:
        """Bytes submitted and not delivered."""
        return sum(transfer.bytes for transfer in self.in_flight())

    def in_flight(self) -> Iterator[Transfer]:
        """Yield what was submitted and isn't through, the active one first."""
        if self.active is not None:
            yield self.active
        for queue in self.queues:
            yield from queue

    def carried_share(self, transfer: Transfer) -> float:
        """Return how much of ``transfer`` is through by now, 0 to 1."""
        left = transfer.remaining
        if transfer is self.active:
            left = max(transfer.stop, left - self.rate * (self.fabric.clock.now - self.since_s))
        return 1.0 - left / transfer.bytes if transfer.bytes else 1.0

    def _give_way(self, active: Transfer) -> None:
        self._progress()
        through = active.bytes - active.remaining
        boundary = ceil(through / self.chunk_bytes) * self.chunk_bytes
        active.stop = float(max(0, active.bytes - boundary))
        if active.stop > 0.0:
            self._schedule()

    def _progress(self) -> None:
        now = self.fabric.clock.now
        active = self.active
        if active is not None and now > self.since_s:
            active.remaining = max(active.stop, active.remaining - self.rate * (now - self.since_s))
            if self.slowdown > 1.0:
                active.hindered_s += (now - self.since_s) * (1.0 - 1.0 / self.slowdown)
        self.since_s = now

    def _start_next(self) -> None:
        now = self.fabric.clock.now
        for queue in self.queues:
            if queue:
                if self.active is None:
                    self.busy_since_s = now
                self.active = queue.popleft()
                self.rate = 0.0
                self.since_s = self.served_since_s = now
                return

    def set_rate(self, rate: float) -> None:
        """Serve the active transfer at ``rate`` from now on."""
        if rate == self.rate:
            return
        self._progress()
        self.rate = rate
        self._schedule()

    def _schedule(self) -> None:
        active = self.active
        assert active is not None
        self.version += 1
        left_s = (active.remaining - active.stop) / self.rate if self.rate < inf else 0.0
        clock = self.fabric.clock
        clock.at(clock.now + left_s, TRANSFER_RANK, self._fire, self.version)

    def _fire(self, timer: Timer) -> None:
        if timer.payload != self.version:
            return
        active = self.active
        assert active is not None
        if self.slowdown > 1.0:
            self._progress()
        over = active.stop == 0.0
        if over:
            self.version += 1
            self.delivered_bytes += active.bytes
        else:  # it gives way, and goes on before later ones of its level
            active.remaining = active.stop
            active.stop = 0.0
            self.queues[active.level].appendleft(active)
        if self.log is not None:
            self._tell(self.log, active, over)
        if any(self.queues):
            self._start_next()
        else:
            self.active = None
            self.busy_s += self.fabric.clock.now - self.busy_since_s
        self.fabric.rebalance()
        if over:
            active.done()

    def _tell(self, log: Sink, transfer: Transfer, over: bool) -> None:
        """``transfer`` isn't served any more: have it recorded while nobody is."""
        self.active = None
        log.served(self, transfer, over)
        self.active = transfer

    def busy_until(self, now: float) -> float:
        """Busy seconds up to ``now``."""
        return self.busy_s + (now - self.busy_since_s if self.active is not None else 0.0)


Cap = tuple[Sequence[Lane], float]
"""Lanes, and the most that their rates sum to."""


class Fabric:
    """All lanes of one host, and what they share."""

    def __init__(self, clock: Clock, dram_bytes_per_s: float, ranks: int = 1) -> None:
        """``ranks``: how many ranks of classes its lanes tell apart within a kind of transfer."""
        self.clock = clock
        self.dram_bytes_per_s = dram_bytes_per_s
        self.ranks = ranks
        self.links: list[tuple[Lane, Lane, float]] = []
        self.ssd: tuple[Lane, Lane] | None = None
        self.uplinks: list[Cap] = []
        self.readers: list[Lane] = []
        self.watchers: list[Callable[[], None]] = []
        """Called whenever a lane has started or stopped, rates being what they are from then on."""
        self._lanes: list[Lane] = []

    def add_link(self, h2d: Lane, d2h: Lane, duplex_bytes_per_s: float) -> None:
        """Register a replica's link; both directions together stay within ``duplex_bytes_per_s``."""
        self.links.append((h2d, d2h, duplex_bytes_per_s))
        h2d.alone_bytes_per_s = d2h.alone_bytes_per_s = duplex_bytes_per_s
        self._lanes += [h2d, d2h]

    def add_uplink(self, lanes: Sequence[Lane], bytes_per_s: float) -> None:
        """Let ``lanes``, one direction of links added before, stay within ``bytes_per_s`` together."""
        self.uplinks.append((lanes, bytes_per_s))
        for lane in lanes:
            lane.alone_bytes_per_s = min(lane.alone_bytes_per_s, bytes_per_s)

    def add_ssd(self, read: Lane, write: Lane) -> None:
        """Register the host's SSD; reads and writes share its time."""
        self.ssd = (read, write)
        self._lanes += [read, write]

    def add_reader(self, lane: Lane) -> None:
        """Register what reads DRAM without leaving the host: computation on the CPU."""
        self.readers.append(lane)
        self._lanes.append(lane)

    def rebalance(self) -> None:
        """Work out every busy lane's rate again."""
        busy = [lane for lane in self._lanes if lane.active is not None]
        if len(busy) == 1:
            lane = busy[0]
            lane.set_rate(min(_wanted(lane), lane.alone_bytes_per_s, self.dram_bytes_per_s) / lane.slowdown)
        elif busy:
            self._share()
        for look in self.watchers:
            look()

    def caps(self) -> list[Cap]:
        """Return the lanes that share something, and the most that they carry together (SSD: see ``_ssd_rates``)."""
        links = [((h2d, d2h), duplex) for h2d, d2h, duplex in self.links]
        return [*links, *self.uplinks, (self._lanes, self.dram_bytes_per_s)]

    def _share(self) -> None:
        rates = self._crossing() if self.uplinks else self._nested()
        for lane in self._lanes:
            if lane.active is not None:
                lane.set_rate(rates[lane] / lane.slowdown)

    def _nested(self) -> dict[Lane, float]:
        """Share each link, then DRAM: caps inside one another are max-min fair from the inside out."""
        rates: dict[Lane, float] = {}
        for h2d, d2h, duplex in self.links:
            down = _wanted(h2d)
            up = _wanted(d2h)
            if down and up:
                down, up = max_min([down, up], duplex)
            rates[h2d] = min(down, duplex)
            rates[d2h] = min(up, duplex)
        if self.ssd is not None:
            read, write = self.ssd
            rates[read], rates[write] = _ssd_rates(read, write)
        rates.update({lane: _wanted(lane) for lane in self.readers})
        busy = [lane for lane in rates if rates[lane] > 0.0]
        fair = max_min([rates[lane] for lane in busy], self.dram_bytes_per_s)
        rates.update(zip(busy, fair, strict=True))
        return rates

    def _crossing(self) -> dict[Lane, float]:
        """Share all caps at once: an uplink's lanes are halves of several links."""
        wanted = {lane: _wanted(lane) for lane in self._lanes}
        if self.ssd is not None:
            wanted.update(zip(self.ssd, _ssd_rates(*self.ssd), strict=True))
        return fill({lane: rate for lane, rate in wanted.items() if rate > 0.0}, self.caps())


def _wanted(lane: Lane) -> float:
    return lane.active.cap_bytes_per_s if lane.active is not None else 0.0


def _ssd_rates(read: Lane, write: Lane) -> tuple[float, float]:
    """Rates at which reads and writes together take the SSD's whole time, or less."""
    reading, writing = _wanted(read), _wanted(write)
    if reading and writing and reading < inf and writing < inf:
        load = reading / read.bytes_per_s + writing / write.bytes_per_s
        return reading / max(1.0, load), writing / max(1.0, load)
    return reading, writing


def max_min(wanted: list[float], cap: float) -> list[float]:
    """Share ``cap`` fairly: who wants less than an equal share gets that, the others share what is left."""
    if sum(wanted) <= cap:
        return wanted
    shares = list(wanted)
    left = cap
    for done, index in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        shares[index] = min(wanted[index], left / (len(wanted) - done))
        left -= shares[index]
    return shares


def fill(wanted: dict[Lane, float], caps: Sequence[Cap]) -> dict[Lane, float]:
    """Share caps that cross: all rates rise together, and each stops at what it wants or when a cap of its is full."""
    binding = [(cap, [lane for lane in lanes if lane in wanted]) for lanes, cap in caps if cap < inf]
    rates: dict[Lane, float] = {}
    rising = list(wanted)
    while rising:
        level = min(wanted[lane] for lane in rising)
        stopped = [lane for lane in rising if wanted[lane] == level]
        for cap, lanes in binding:
            sharing = [lane for lane in lanes if lane not in rates]
            taken = sum(rates[lane] for lane in lanes if lane in rates)
            if sharing and (cap - taken) / len(sharing) < level:
                level, stopped = (cap - taken) / len(sharing), sharing
        rates.update(dict.fromkeys(stopped, level))
        rising = [lane for lane in rising if lane not in rates]
    return rates
