"""Expected figures as sources print them, in SI."""

from __future__ import annotations

import math
import re

from simkv.errors import InputError, Problem

UNITS: dict[str, float] = {
    "": 1.0, "%": 0.01, "pp": 0.01, "x": 1.0,
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0,
    "token/s": 1.0, "tokens/s": 1.0, "req/s": 1.0, "requests/s": 1.0, "req/min": 1 / 60,
    "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30,
    "B/s": 1.0, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12, "GiB/s": 2.0**30, "Gbit/s": 1.25e8,
    "FLOP/s": 1.0, "TFLOP/s": 1e12, "tokens": 1.0, "blocks": 1.0, "KiB/token": 2.0**10, "B/token": 1.0,
}  # fmt: skip
_TEXT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(\S.*?)?\s*")


def expected_si(given: float | str) -> float:
    """Return a number, or a text such as ``"266 ms"``, in SI; raises InputError for a unit that isn't known."""
    if isinstance(given, str):
        match = _TEXT.fullmatch(given)
        if match is None:
            raise InputError(
                Problem("is no number with a unit", 'write it like "266 ms"', path="expected", value=given)
            )
        unit = match[2] or ""
        if unit not in UNITS:
            known = ", ".join(name for name in UNITS if name)
            raise InputError(Problem("has a unit that isn't known", f"one of {known}", path="expected", value=given))
        given = float(match[1]) * UNITS[unit]
    if not math.isfinite(given):
        raise InputError(Problem("is not finite", "give what was measured", path="expected", value=str(given)))
    return float(given)
