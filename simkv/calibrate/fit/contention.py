"""How many times longer things take while another goes on.

Alone and during were timed in turns: where there are as many of one as of the other, each is compared with its
neighbour, which saw the same machine, and the factor is the middle of those ratios.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from simkv.calibrate.fit.memory import clamped
from simkv.profile.schema import LANES, WAIT, Contention, Lane, Sample


def fit_contention(samples: Sequence[Sample]) -> tuple[Contention, list[str]]:
    """Return the factors of every lane that was measured, and remarks on those that came out below 1."""
    compute, notes = _factors(samples, "compute", "computing while {} carries")
    copies, more = _factors(samples, "copy", "{} while the device computes")
    after, last = _after_wait(samples)
    return Contention(compute_during=compute, during_compute=copies, after_wait=after), notes + more + last


def _after_wait(samples: Sequence[Sample]) -> tuple[float, list[str]]:
    """Return how many times longer layers take that each come after a wait; 1 where that wasn't measured."""
    ratio = _ratio(samples, "compute", WAIT)
    return (1.0, []) if ratio is None else clamped(ratio, "computing after a wait")


def _factors(samples: Sequence[Sample], kind: str, what: str) -> tuple[dict[Lane, float], list[str]]:
    """Return, for each lane that has both, ``kind`` during over ``kind`` alone."""
    found: dict[Lane, float] = {}
    notes: list[str] = []
    for lane in LANES:
        ratio = _ratio(samples, kind, lane)
        if ratio is not None:
            found[lane], remarks = clamped(ratio, what.format(lane))
            notes += remarks
    return found, notes


def _ratio(samples: Sequence[Sample], kind: str, lane: str) -> float | None:
    during, alone = (_of_lane(samples, f"{kind}_{when}", lane) for when in ("during", "alone"))
    if not during or not alone:
        return None
    if len(during) == len(alone):
        return median(slow / fast for slow, fast in zip(during, alone, strict=True))
    return median(during) / median(alone)


def _of_lane(samples: Sequence[Sample], kind: str, lane: str) -> list[float]:
    """Return all repeats, in the order taken."""
    return [
        one for sample in samples if sample.kind == kind and sample.at.get("lane") == lane for one in sample.seconds
    ]
