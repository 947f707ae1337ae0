"""A small real decode with KV in several tiers, and the simulator's prediction of it."""

from simkv.calibrate.verify.compare import verify
from simkv.calibrate.verify.text import verification_text

__all__ = ["verification_text", "verify"]
