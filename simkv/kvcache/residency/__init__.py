"""The resident set of running sequences under sparse access; start with ``resident.py``."""

from simkv.kvcache.residency.in_order import InOrder
from simkv.kvcache.residency.resident import Admitted, ResidentSet

__all__ = ["Admitted", "InOrder", "ResidentSet"]
