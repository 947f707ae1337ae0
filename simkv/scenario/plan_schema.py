"""The ``plan`` section: what may vary, what must hold, what it costs, and what is best."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StringConstraints

from simkv.scenario.base import Section
from simkv.scenario.quantity import Number, NumberAboveZero, Quantity, TimeAboveZero
from simkv.scenario.sweep_schema import Axis

Targets = dict[str, TimeAboveZero]
"""``METRIC_STATISTIC: time``."""


class PlanPrice(Section):
    """What an hour of an instance (or of a GPU, for machines named by their GPU) costs the user."""

    hour: Number
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")] = "USD"
    source: Annotated[str, StringConstraints(max_length=2000)] = ""
    date: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None


class Plan(Section):
    """What `simkv plan` searches, and what it judges by."""

    objective: Literal["cost", "gpus", "goodput", "users"] = Field(
        default="cost",
        description="cost: least per million output tokens at the scenario's load; gpus: fewest for that load; "
        "goodput, users: most within the budget or the number of units, whatever the scenario's load is",
    )
    vary: dict[str, Axis] = Field(
        min_length=1,
        max_length=16,
        description="By path or short name (instance, tp, dram, ssd, p, ...): values to choose from, as in --grid",
    )
    slo: Targets = Field(default_factory=dict, description="METRIC_STATISTIC: time; absent: the scenario's slo")
    classes: dict[str, Targets] = Field(default_factory=dict, description="The same for each class of requests")
    prices: dict[str, PlanPrice] = Field(
        default_factory=dict, description="By instance or GPU: the user's own, over those of the catalogue"
    )
    budget: NumberAboveZero | None = Field(
        default=None, description="Most that an hour may cost, in the prices' currency"
    )
    units: Annotated[int | None, Quantity("count", least=1, most=10_000)] = Field(
        default=None, description="Most instances (or replicas, of bare GPUs); absent: as many as the load takes"
    )
    headroom: Annotated[float, Quantity("fraction", most=0.9)] = Field(
        default=0.1, description="Share of what a unit carries that is kept free at the planned load"
    )
    beyond_engine: StrictBool = Field(default=False, description="Search what the engine can't be told, too")
    confirm: Annotated[int, Quantity("count", least=2, most=100)] = Field(
        default=3, description="Seeds with which the best are simulated once more"
    )
