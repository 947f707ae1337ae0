"""Time of one transfer: setup + descriptors * latency + bytes / bandwidth."""

from __future__ import annotations

import math

from simkv.errors import InputError, Problem


def transfer_s(
    size_bytes: float, bytes_per_s: float, descriptors: float = 1, latency_s: float = 0.0, setup_s: float = 0.0
) -> float:
    """Seconds to move ``size_bytes`` in ``descriptors`` contiguous pieces over an idle link.

    ``latency_s`` is of each descriptor, ``setup_s`` of the transfer.
    Nothing to move takes no time; a link of zero bandwidth never finishes (``inf``).
    Raises :class:`InputError` for negative figures.
    """
    if size_bytes < 0 or bytes_per_s < 0 or descriptors < 0 or latency_s < 0 or setup_s < 0:
        raise InputError(Problem("sizes, rates and latencies can't be negative"))
    if size_bytes == 0:
        return 0.0
    if bytes_per_s == 0:
        return math.inf
    return setup_s + descriptors * latency_s + size_bytes / bytes_per_s


def effective_bytes_per_s(piece_bytes: float, bytes_per_s: float, latency_s: float) -> float:
    """Bandwidth that pieces of ``piece_bytes`` see: bytes / (latency + bytes / bandwidth)."""
    seconds = transfer_s(piece_bytes, bytes_per_s, 1, latency_s)
    return piece_bytes / seconds if seconds else bytes_per_s
