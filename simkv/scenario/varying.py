"""Lengths, turns and times that vary: the distributions that a scenario can draw them from.

A *length* is a token count, or ``{dist: constant, value}``, ``{dist: uniform, low, high}`` (both ends
included), ``{dist: lognormal, mean|median, sigma|cv[, min, max]}``, ``{dist: geometric, mean[, min, max]}``,
``{dist: empirical, values[, weights]}`` or ``{dist: empirical, path}``; ``turns`` is the same with counts.
A *time* that varies is a time, or ``{dist: constant, value}``, ``{dist: exponential, mean}``,
``{dist: uniform, low, high}`` or ``{dist: lognormal, mean|median, sigma|cv[, min, max]}``, in seconds.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from simkv.scenario.base import Discriminated, FilePath, Section, fault
from simkv.scenario.quantity import NumberAboveZero, Time, TimeAboveZero, TokensAboveZero


class _Limited(Section):
    """Mixin of the distributions with a tail."""

    min: TokensAboveZero | None = Field(default=None, description="Draws below are raised to this")
    max: TokensAboveZero | None = Field(default=None, description="Draws above are lowered to this")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise fault("min is above max", "swap them")
        return self


def _one_of(section: Section, first: str, second: str) -> None:
    given = [key for key in (first, second) if getattr(section, key) is not None]
    if len(given) != 1:
        reason = f"both {first} and {second} are given" if given else f"neither {first} nor {second} is given"
        raise fault(reason, f"give one of {first}, {second}")


class ConstantLength(Section):
    dist: Literal["constant"]
    value: TokensAboveZero


class UniformLength(Section):
    """Every length from ``low`` to ``high``, both included."""

    dist: Literal["uniform"]
    low: TokensAboveZero
    high: TokensAboveZero

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise fault("low is above high", "swap them")
        return self


class LognormalLength(_Limited):
    """Logarithm normally distributed; ``cv`` is the standard deviation over the mean."""

    dist: Literal["lognormal"]
    mean: TokensAboveZero | None = None
    median: TokensAboveZero | None = None
    sigma: Annotated[NumberAboveZero | None, Field(description="Of the logarithm")] = None
    cv: NumberAboveZero | None = None

    @model_validator(mode="after")
    def _one_each(self) -> Self:
        _one_of(self, "mean", "median")
        _one_of(self, "sigma", "cv")
        return self


class GeometricLength(_Limited):
    """1, 2, 3, ...: the discrete exponential."""

    dist: Literal["geometric"]
    mean: Annotated[TokensAboveZero, Field(description="Of the untruncated distribution")]


class EmpiricalLength(Section):
    """Drawn from given values, or from the numbers in a file, one a line."""

    dist: Literal["empirical"]
    values: list[TokensAboveZero] | None = Field(default=None, min_length=1, max_length=1_000_000)
    weights: list[NumberAboveZero] | None = Field(default=None, min_length=1, max_length=1_000_000)
    path: FilePath | None = Field(default=None, description="Text file with one number a line")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _one_of(self, "values", "path")
        if self.weights is not None and (self.values is None or len(self.weights) != len(self.values)):
            raise fault("weights doesn't have one entry a value", "give as many weights as values, or none")
        return self


Length = Annotated[
    TokensAboveZero | ConstantLength | UniformLength | LognormalLength | GeometricLength | EmpiricalLength,
    Discriminated("dist", TokensAboveZero),
]


class ConstantTime(Section):
    dist: Literal["constant"]
    value: Time


class ExponentialTime(Section):
    dist: Literal["exponential"]
    mean: Time


class UniformTime(Section):
    dist: Literal["uniform"]
    low: Time
    high: Time

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise fault("low is above high", "swap them")
        return self


class LognormalTime(Section):
    dist: Literal["lognormal"]
    mean: TimeAboveZero | None = None
    median: TimeAboveZero | None = None
    sigma: NumberAboveZero | None = None
    cv: NumberAboveZero | None = None
    min: Time | None = None
    max: Time | None = None

    @model_validator(mode="after")
    def _one_each(self) -> Self:
        _one_of(self, "mean", "median")
        _one_of(self, "sigma", "cv")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise fault("min is above max", "swap them")
        return self


VaryingTime = Annotated[
    Time | ConstantTime | ExponentialTime | UniformTime | LognormalTime,
    Discriminated("dist", Time),
]
