"""What ``queue`` sections take, system by system."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from simkv.scenario.base import Discriminated, Section, fault

LEAST_LOAD = 1e-3
"""Where hardly anybody waits."""
Load = Annotated[float, Field(ge=LEAST_LOAD, lt=1)]
Requests = Annotated[int, Field(strict=True, ge=1000, le=1_000_000)]
Seed = Annotated[int, Field(strict=True, ge=0, le=2**32 - 1)]
Weight = Annotated[float, Field(gt=0, le=1e6)]


class _Arriving(Section):
    requests: Requests
    seed: Seed = 0


class _Loaded(_Arriving):
    load: Load


class Mm1(_Loaded):
    system: Literal["mm1"]


class Md1(_Loaded):
    system: Literal["md1"]


class Mg1(_Loaded):
    system: Literal["mg1"]
    steps: list[Annotated[int, Field(strict=True, ge=1, le=100_000)]] = Field(min_length=1, max_length=100)
    weights: list[Weight]

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        if len(self.weights) != len(self.steps):
            raise fault("doesn't have one entry for each of steps", "give as many", "weights")
        return self


class Mmc(_Loaded):
    system: Literal["mmc"]
    servers: Annotated[int, Field(strict=True, ge=1, le=1000)]


class Priority(_Loaded):
    system: Literal["priority"]
    shares: list[Annotated[float, Field(gt=0, le=1)]] = Field(min_length=2, max_length=10)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if abs(sum(self.shares) - 1) > 1e-9:
            raise fault("don't sum to 1", "give each class its share of the requests", "shares")
        return self


class Tandem(_Arriving):
    system: Literal["tandem"]
    ssd: Load
    link: Load


class _Cache(Section):
    items: Annotated[int, Field(strict=True, ge=2, le=1_000_000)]
    exponent: Annotated[float, Field(ge=0, le=10)]
    capacity: Annotated[int, Field(strict=True, ge=1)]
    references: Annotated[int, Field(strict=True, ge=1, le=10_000_000)]
    seed: Seed = 0

    @model_validator(mode="after")
    def _evicts(self) -> Self:
        if self.capacity >= self.items:
            raise fault("holds every item", f"give less than items, {self.items}", "capacity")
        return self


class Lru(_Cache):
    system: Literal["lru"]
    through: Literal["replay", "pool"] = "replay"


class Fifo(_Cache):
    system: Literal["fifo"]


System = Annotated[Mm1 | Md1 | Mg1 | Mmc | Priority | Tandem | Lru | Fifo, Discriminated("system")]


class Queue(Section):
    """The section by its name."""

    queue: System
