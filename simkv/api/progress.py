"""How far a long piece of work is, for whoever asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[float, str], None]
"""Called now and then with the share of the work that is done, 0 to 1, and in words what is done or doing."""


def silent(share: float, doing: str) -> None:
    """Say nothing."""
