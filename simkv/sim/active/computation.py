"""What a replica's GPU computes, as work at a pace: slower while its lanes carry, and they slower while it computes.

Where computation and copies don't slow each other a stretch of it is one event. Else it is work that progresses by
``1 / (1 + Σ (factor - 1))`` seconds a second, over the lanes that carry something; the pace changes when a lane starts
or stops, and that alone moves its end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from simkv.sim.active.config import Contention, LaneFactors
from simkv.sim.active.traffic import Traffic
from simkv.sim.clock import Clock, Timer
from simkv.sim.fabric import Lane
from simkv.sim.ledger import Done
from simkv.sim.tiers import ReplicaTiers

PIPELINE_RANK = 5
"""After transfers and arrivals of an instant, before the engines."""


class Computation(Protocol):
    """Computes one stretch at a time."""

    def run(self, seconds: float, call: Done) -> None:
        """Compute what takes ``seconds`` undisturbed, then make ``call``."""


def later(clock: Clock, seconds: float, call: Done) -> None:
    """Make ``call`` in ``seconds``, in the steps' turn at that instant."""

    def fire(timer: Timer) -> None:
        call()

    clock.at(clock._now + seconds, PIPELINE_RANK, fire)


class Undisturbed:
    """Computation that nothing slows, and that slows nothing."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def run(self, seconds: float, call: Done) -> None:
        """Compute for ``seconds``, then make ``call``."""
        later(self.clock, seconds, call)


class Contended:
    """Computation beside copies; books the time that they cost it."""

    def __init__(self, traffic: Traffic, contention: Contention) -> None:
        self.traffic = traffic
        self.clock = traffic.clock
        self.fabric = traffic.tiers.host.fabric
        self._slowing = [(lane, factor - 1.0) for lane, factor in _above_one(traffic.tiers, contention.compute_during)]
        self._slowed = _above_one(traffic.tiers, contention.during_compute)
        self._call: Done | None = None
        """To be made when the stretch is over; None: nothing is computed."""
        self._left_s = 0.0
        """Of it, how long what is left takes undisturbed, as of ``_since_s``."""
        self._since_s = 0.0
        self._pace = 1.0
        """How many seconds a second of it takes."""
        self._version = 0
        if self._slowing:
            self.fabric.watchers.append(self._look)

    def run(self, seconds: float, call: Done) -> None:
        """Compute what takes ``seconds`` undisturbed, then make ``call``."""
        assert self._call is None, "a GPU computes one stretch at a time"
        self._call, self._left_s = call, seconds
        self._since_s = self.clock._now
        self._begin(self._pace_now())
        self._hinder(1)

    def _pace_now(self) -> float:
        return 1.0 + sum(more for lane, more in self._slowing if lane.active is not None)

    def _look(self) -> None:
        """A lane has started or stopped."""
        if self._call is None or (pace := self._pace_now()) == self._pace:
            return
        now = self.clock._now
        self._book(now)
        self._left_s = max(0.0, self._left_s - (now - self._since_s) / self._pace)
        self._since_s = now
        self._begin(pace)

    def _begin(self, pace: float) -> None:
        """Go on at ``pace`` from now."""
        self._pace = pace
        self._version += 1
        self.clock.at(self.clock._now + self._left_s * pace, PIPELINE_RANK, self._fire, self._version)

    def _fire(self, timer: Timer) -> None:
        if timer.payload != self._version:
            return
        call, self._call = self._call, None
        assert call is not None
        self._book(self.clock._now)
        self._hinder(-1)
        call()

    def _book(self, now: float) -> None:
        passed = now - self._since_s
        self.traffic.measured.contended_s += passed - passed / self._pace

    def _hinder(self, change: int) -> None:
        for lane, factor in self._slowed:
            lane.hinder(change, factor)
        if self._slowed:
            self.fabric.rebalance()


def make_computation(traffic: Traffic, contention: Contention) -> Computation:
    """Return what computes on a replica whose copies are ``traffic``."""
    beside = replace(contention, after_wait=1.0)
    return Undisturbed(traffic.clock) if beside == Contention() else Contended(traffic, beside)


def _above_one(tiers: ReplicaTiers, factors: LaneFactors) -> list[tuple[Lane, float]]:
    """Return a replica's own lanes and its host's that have a factor, with it."""
    host = tiers.host
    found = [
        (tiers.h2d, factors.h2d), (tiers.d2h, factors.d2h),
        (host.ssd_read, factors.ssd_read), (host.ssd_write, factors.ssd_write),
    ]  # fmt: skip
    return [(lane, factor) for lane, factor in found if factor > 1.0]
