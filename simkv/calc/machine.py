"""What scenarios assume of a machine beyond its card, and what they say of a model's limit."""

from __future__ import annotations

from simkv.model import ModelShape


def descriptor_s() -> float:
    """Return the latency of one contiguous piece on a host link."""
    from simkv.scenario.schema import Link

    return float(Link.model_fields["latency"].default)


def ssd_read_bytes_per_s() -> float:
    """Return the read bandwidth of a host's SSDs."""
    from simkv.scenario.schema import Ssd

    return Ssd().read


def too_long(model: ModelShape, tokens: int) -> list[str]:
    """Return a warning where ``tokens`` are more than the model was made for."""
    longest = model.max_position_embeddings
    if tokens <= longest:
        return []
    return [f"{tokens:,} tokens are more than {model.name}'s longest, {longest:,}"]
