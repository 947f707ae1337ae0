"""How many times longer things take while another goes on."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from simkv.calibrate.fit.memory import clamped
from simkv.calibrate.fit.points import points_of
from simkv.profile.schema import LANES, WAIT, Contention, Lane, Sample


def fit_contention(samples: Sequence[Sample]) -> tuple[Contention, list[str]]:
    """Return the factors of every lane that was measured, and remarks on those that came out below 1."""
    compute, notes = _factors(samples, "compute", "computing while {} carries")
    copies, more = _factors(samples, "copy", "{} while the device computes")
    after, last = _after_wait(samples)
    return Contention(compute_during=compute, during_compute=copies, after_wait=after), notes + more + last


def _after_wait(samples: Sequence[Sample]) -> tuple[float, list[str]]:
    """Return how many times longer layers take that each come after a wait; 1 where that wasn't measured."""
    during, alone = (_of_lane(samples, f"compute_{kind}", WAIT) for kind in ("during", "alone"))
    return clamped(median(during) / median(alone), "computing after a wait") if during and alone else (1.0, [])


def _factors(samples: Sequence[Sample], kind: str, what: str) -> tuple[dict[Lane, float], list[str]]:
    """Return, for each lane that has both, ``kind`` during over ``kind`` alone."""
    found: dict[Lane, float] = {}
    notes: list[str] = []
    for lane in LANES:
        during, alone = _of_lane(samples, f"{kind}_during", lane), _of_lane(samples, f"{kind}_alone", lane)
        if during and alone:
            found[lane], remarks = clamped(median(during) / median(alone), what.format(lane))
            notes += remarks
    return found, notes


def _of_lane(samples: Sequence[Sample], kind: str, lane: str) -> list[float]:
    return [point.seconds for point in points_of(samples, kind) if point.at.get("lane") == lane]
