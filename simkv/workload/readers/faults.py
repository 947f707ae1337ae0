"""What can be wrong with a number in a trace, whatever the file's syntax: each says what and the mend."""

from __future__ import annotations

from math import isfinite

MAX_TOKENS = 2**31 - 1
MAX_TIME = 1e20
"""In the file's own unit; above it is no time that anybody meant."""
LATEST_S = 1e10
"""In seconds: 317 years, where the smallest difference of two times is 2 us. As a clock's time, in the year 2286."""
CHECK_TIMES = f"no run lasts longer than {LATEST_S:g} s: check the unit of its times, or workload.time_scale"

Fault = tuple[str, str]
"""What is wrong, and the mend; two empty strings where nothing is."""

SOUND: Fault = ("", "")


def tokens_fault(value: int | float, low: int) -> Fault:
    """Return what is wrong with ``value`` as a number of tokens of at least ``low``."""
    if not isfinite(value):
        return "is not a finite number", "write a number"
    if value != int(value):
        return "is not a whole number of tokens", "write an integer"
    if value < low:
        what = "is negative" if value < 0 else "is no tokens at all" if value == 0 else f"is below {low}"
        return what, f"write {low} or more, or remove the row"
    if value > MAX_TOKENS:
        return "is more tokens than any model takes", "check the unit"
    return SOUND


def time_fault(value: int | float) -> Fault:
    """Return what is wrong with ``value`` as a time in the file's own unit."""
    if not isfinite(value):
        return "is not a finite number", "write a number"
    if value < 0:
        return "is negative", "count times from the start of the trace"
    if value > MAX_TIME:
        return "is no sensible time", "check the unit"
    return SOUND
