"""How many sequences fit at once.

Source: the article, C_max = floor((M_VRAM - M_model) / (p * S_seq)).
"""

from __future__ import annotations

import math
from fractions import Fraction

from simkv.errors import InputError, Problem


def max_concurrency(free_bytes: float, sequence_bytes: float, residency: float = 1.0) -> int:
    """C_max: sequences whose resident share ``residency`` of ``sequence_bytes`` fits ``free_bytes``.

    ``free_bytes`` is VRAM less weights and working memory. The division is exact, so that 40 GB over
    4 GB is 10 and never 9. Raises :class:`InputError` unless sizes are positive and 0 < p <= 1.
    """
    if not 0 < residency <= 1:
        raise InputError(Problem("is not a share in (0, 1]", "use 0.3", path="residency", value=str(residency)))
    if sequence_bytes <= 0 or free_bytes < 0:
        raise InputError(Problem("needs a sequence size above zero and free memory of at least zero"))
    # Decimal reading of p: 0.3 means three tenths, not the nearest binary number.
    resident = Fraction(str(residency)) * Fraction(sequence_bytes)
    return math.floor(Fraction(free_bytes) / resident)
