"""Numbers as people read them: adaptive units, three significant digits. Presentation only."""

from __future__ import annotations

import math

MISSING = "-"
_TIME_UNITS = ((86400.0, "d"), (3600.0, "h"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_COUNT_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_PLAIN_BELOW = 1e4
_BYTE_UNITS = ((2**50, "PiB"), (2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def digits(value: float, significant: int = 3) -> str:
    """Return ``value`` with ``significant`` digits, never in exponent form between 1e-4 and 1e6."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{significant - 1}e}")
    magnitude = math.floor(math.log10(abs(rounded)))
    if not -4 <= magnitude < 6:
        return f"{value:.{significant - 1}e}"
    return f"{value:.{max(0, significant - 1 - magnitude)}f}"


def seconds(value: float | None) -> str:
    """``0.0324`` to ``32.4 ms``; hours from 3 h on, days from 3 d on."""
    if value is None:
        return MISSING
    size = abs(value)
    if size == 0:
        return "0 s"
    for unit, name in _TIME_UNITS:
        if size >= unit * (3 if unit > 1 else 0.9995):
            return f"{digits(value / unit)} {name}"
    return f"{value:.2e} s"


def count(value: float | None) -> str:
    """``144793823`` to ``145 M``; whole numbers below ten thousand stay as they are."""
    if value is None:
        return MISSING
    for unit, name in _COUNT_UNITS if abs(value) >= _PLAIN_BELOW else ():
        if abs(value) >= unit:
            return f"{digits(value / unit)} {name}"
    return f"{value:.0f}" if float(value).is_integer() else digits(value)


def data(value: float | None) -> str:
    """Bytes in binary units."""
    if value is None:
        return MISSING
    for unit, name in _BYTE_UNITS:
        if abs(value) >= unit:
            return f"{digits(value / unit)} {name}"
    return f"{value:.0f} B"


def share(value: float | None) -> str:
    """``0.123`` to ``12 %``; one decimal below ten percent and close to all."""
    if value is None:
        return MISSING
    percent = 100 * value
    if percent == 0:
        return "0 %"
    if 0 < percent < 0.05:
        return "<0.1 %"
    if 99.95 <= percent < 100:
        return ">99.9 %"
    if abs(percent) < 9.95 or 99 < percent < 100:
        return f"{percent:.1f} %"
    return f"{percent:.0f} %"


def change(ratio: float) -> str:
    """A relative change with its sign: ``-66 %``."""
    return f"{100 * ratio:+.1f} %" if abs(ratio) < 0.0995 else f"{100 * ratio:+.0f} %"
