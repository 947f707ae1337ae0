"""What scenarios assume of a machine beyond its card."""

from __future__ import annotations


def descriptor_s() -> float:
    """Return the latency of one contiguous piece on a host link."""
    from simkv.scenario.schema import Link

    return float(Link.model_fields["latency"].default)


def ssd_read_bytes_per_s() -> float:
    """Return the read bandwidth of a host's SSDs."""
    from simkv.scenario.schema import Ssd

    return Ssd().read
