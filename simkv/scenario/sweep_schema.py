"""The ``sweep`` section: which values vary where the command line doesn't say."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from simkv.scenario.base import Section
from simkv.scenario.quantity import Quantity

AxisValue = str | float | int | bool
Axis = Annotated[
    AxisValue | list[AxisValue],
    Field(description="A list of values, or a range as in --grid: 0.1:1.0:0.1, 100GiB:400GiB:100GiB"),
]
Replications = Annotated[int, Quantity("count", least=1, most=1000)]


class Sweep(Section):
    """What `simkv sweep` varies where the command line names nothing."""

    grid: dict[str, Axis] = Field(
        default_factory=dict, max_length=32, description="By path (p, beta, lambda and so on stand for theirs)"
    )
    sample: Annotated[int | None, Quantity("count", least=1, most=1_000_000)] = Field(
        default=None, description="So many points spread over the axes, instead of all of them"
    )
    replications: Replications | None = Field(
        default=None, description="Seeds of each point, the same for all points; absent: run.replications"
    )
