"""Figures of accelerators, each with its unit, its source and its standing.

FLOP/s are dense (never with sparsity) and, on consumer cards, with FP32 accumulation. Rates are a
direction. A figure that isn't known is absent, not zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from simkv.errors import InputError, Problem
from simkv.model import normalise_dtype

Standing = Literal["datasheet", "measured", "fitted", "assumed"]
STANDINGS: tuple[Standing, ...] = ("datasheet", "measured", "fitted", "assumed")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number in SI with where it comes from."""

    value: float
    unit: str
    source: str
    standing: Standing


def named_figure(figures: Mapping[str, Figure], name: str, owner: str) -> Figure:
    """Return the figure of ``owner`` called ``name``; raises :class:`InputError` naming those that there are."""
    try:
        return figures[name]
    except KeyError:
        known = ", ".join(sorted(figures))
        raise InputError(Problem(f"{owner} has no figure {name!r}", f"it has {known}")) from None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One accelerator; ``figures`` holds everything that is known of it by name."""

    name: str
    vendor: str
    family: str
    figures: Mapping[str, Figure] = field(hash=False)
    aliases: tuple[str, ...] = ()
    note: str = ""

    def figure(self, name: str) -> Figure:
        """Return the figure called ``name``.

        Raises :class:`InputError` naming the card and the figures that it has.
        """
        return named_figure(self.figures, name, self.name)

    def value(self, name: str) -> float:
        """Return the plain number of a figure, in its SI unit."""
        return self.figure(name).value

    def with_figures(self, **changed: Figure) -> Gpu:
        """Return a copy with some figures replaced or added."""
        return replace(self, figures=MappingProxyType({**self.figures, **changed}))

    @property
    def vram_bytes(self) -> int:
        """Memory on the label."""
        return int(self.value("vram_bytes"))

    @property
    def usable_bytes(self) -> int:
        """Memory the driver reports as total: what engines apply their utilisation to."""
        return int(self.value("usable_bytes"))

    @property
    def hbm_bytes_per_s(self) -> float:
        """Device memory bandwidth, data sheet."""
        return self.value("hbm_bytes_per_s")

    def has_dense_rate(self, dtype: str) -> bool:
        """Say whether the card multiplies matrices in ``dtype`` natively."""
        return self._rate_name(dtype) in self.figures

    def dense_flops_per_s(self, dtype: str) -> float:
        """Dense peak of matrix products in ``dtype`` (FLOP/s). Raises :class:`InputError` if it has none."""
        return self.value(self._rate_name(dtype))

    @staticmethod
    def _rate_name(dtype: str) -> str:
        name = normalise_dtype(dtype)
        return "flops_fp16_per_s" if name in ("bf16", "fp16") else f"flops_{name}_per_s"
