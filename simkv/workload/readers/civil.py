"""Civil dates and times, as logs write them, to seconds since the first one: exactly, and quickly.

``2023-11-16 18:17:03.9799600``, ``2024-05-10T00:00:00+00:00``: year to second, a fraction of any
length (what is below a nanosecond is cut off), a zone or none. Differences are taken in whole
nanoseconds, so none is lost to the size of a date in seconds.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

_NS = 1_000_000_000
_FRACTION_DIGITS = 9
_MINUTE_CHARS = len("2023-11-16 18:17")
_MINUTES_KEPT = 4096
_EPOCH = datetime(1970, 1, 1)
_START = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", re.ASCII)
_REST = re.compile(r":([0-5]\d|60)(?:[.,](\d+))?\s?(Z|z|UTC|[+-]\d\d(?::?[0-5]\d)?)?", re.ASCII)
_SCALE = [10 ** (_FRACTION_DIGITS - digits) for digits in range(_FRACTION_DIGITS + 1)]

MEND = "write it like 2023-11-16 18:17:03.97996, with a zone such as +00:00 or without"


def looks_civil(text: str) -> bool:
    """Return whether ``text`` begins like a date and a time."""
    return _START.match(text) is not None


class CivilClock:
    """Turns texts into seconds since the first that it was given."""

    def __init__(self) -> None:
        self._minutes: dict[str, int] = {}
        self._zones: dict[str, int] = {}
        self._first_ns: int | None = None
        self._zoned = False

    def seconds(self, text: str) -> float:
        """Return the seconds from the first text to this one; raises ValueError that says what is wrong."""
        rest = _REST.fullmatch(text, _MINUTE_CHARS)
        if rest is None:
            raise ValueError("is not a date and a time of day" if text else "is empty")
        start = text[:_MINUTE_CHARS]
        minute_ns = self._minutes.get(start)
        if minute_ns is None:
            minute_ns = self._minute_ns(start)
        second, fraction, zone = rest.groups()
        ns = minute_ns + int(second) * _NS
        if fraction:
            fraction = fraction[:_FRACTION_DIGITS]
            ns += int(fraction) * _SCALE[len(fraction)]
        if zone:
            ns -= self._zones[zone] if zone in self._zones else self._zone_ns(zone)
        if self._first_ns is None:
            self._first_ns, self._zoned = ns, zone is not None
        if (zone is not None) is not self._zoned:
            raise ValueError("has no zone, unlike the first" if self._zoned else "has a zone, unlike the first")
        return (ns - self._first_ns) / _NS

    def _minute_ns(self, start: str) -> int:
        try:
            if not looks_civil(start):
                raise ValueError
            since = datetime.fromisoformat(start) - _EPOCH
        except ValueError:
            raise ValueError("is not a date and a time of day") from None
        if len(self._minutes) >= _MINUTES_KEPT:
            self._minutes.clear()
        self._minutes[start] = ns = since // timedelta(minutes=1) * 60 * _NS
        return ns

    def _zone_ns(self, zone: str) -> int:
        minutes = 0
        if zone[0] in "+-":
            digits = zone[1:].replace(":", "").ljust(4, "0")
            minutes = (int(digits[:2]) * 60 + int(digits[2:])) * (-1 if zone[0] == "-" else 1)
        self._zones[zone] = minutes * 60 * _NS
        return self._zones[zone]
