"""Machines as one rents or buys them: GPUs, host memory, drives, and what shares a path to what.

Figures are those of one host, each with its source and standing. A figure that isn't known is absent,
not zero. Rates are a direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simkv.hardware import Figure, Standing, named_figure

DAYS_A_YEAR = 365

Groups = tuple[tuple[int, ...], ...]
"""GPUs of a host by number, each in one group."""


@dataclass(frozen=True, slots=True)
class Drive:
    """One NVMe drive."""

    name: str
    interface: str
    figures: Mapping[str, Figure] = field(hash=False)
    aliases: tuple[str, ...] = ()
    note: str = ""

    @property
    def capacity_bytes(self) -> int:
        """What the drive holds."""
        return int(self.figures["capacity_bytes"].value)

    @property
    def endurance(self) -> Figure | None:
        """Bytes that may be written over its life: as stated, else a day's writes times the warranty; None: unknown."""
        if "endurance_bytes" in self.figures:
            return self.figures["endurance_bytes"]
        if "drive_writes_per_day" not in self.figures or "endurance_years" not in self.figures:
            return None
        daily, years = self.figures["drive_writes_per_day"], self.figures["endurance_years"]
        lifetime = daily.value * DAYS_A_YEAR * years.value * self.capacity_bytes
        source = f"{daily.value:g} drive writes a day over {years.value:g} years; {daily.source}"
        return Figure(lifetime, "B", source, daily.standing)


@dataclass(frozen=True, slots=True)
class Component:
    """Memory (a channel or a socket of it) or a link, and how fast it is."""

    name: str
    kind: str
    figures: Mapping[str, Figure] = field(hash=False)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Topology:
    """Which GPUs share a NUMA node, and which share one path to host memory."""

    numa: Groups
    uplinks: Groups
    standing: Standing
    source: str


@dataclass(frozen=True, slots=True)
class Price:
    """What an hour of the whole instance costs, on which day and under which terms."""

    figure: Figure
    date: str
    terms: str

    @property
    def currency(self) -> str:
        """Three letters, of the figure's unit."""
        return self.figure.unit.split("/")[0]


@dataclass(frozen=True, slots=True)
class Instance:
    """One host; ``figures`` holds everything that is known of it by name."""

    name: str
    provider: str
    gpu: str
    """Name of the accelerator in the catalogue."""
    gpu_link: str
    """What its GPUs talk to each other over: nvlink, xgmi, pcie, or none for a single one."""
    topology: Topology
    figures: Mapping[str, Figure] = field(hash=False)
    memory: str = ""
    """Name of its memory in the catalogue; empty: not known."""
    drive: str = ""
    """Name of its drives in the catalogue; empty: not published, or none."""
    price: Price | None = None
    aliases: tuple[str, ...] = ()
    note: str = ""

    def figure(self, name: str) -> Figure:
        """Return the figure called ``name``.

        Raises :class:`InputError` naming the instance and the figures that it has.
        """
        return named_figure(self.figures, name, self.name)

    @property
    def gpus(self) -> int:
        """GPUs of one host."""
        return int(self.figure("gpus").value)

    @property
    def dram_bytes(self) -> int:
        """Host memory."""
        return int(self.figure("dram_bytes").value)

    @property
    def ssd_bytes(self) -> int:
        """Local SSD of all drives; 0 where there is none."""
        return int(self.figures["ssd_bytes"].value) if "ssd_bytes" in self.figures else 0

    @property
    def gpus_per_uplink(self) -> int:
        """How many GPUs share one path to host memory; 1 where each has its own."""
        return max(len(group) for group in self.topology.uplinks)

    @property
    def price_per_gpu_hour(self) -> float | None:
        """The price of an hour, divided by its GPUs; None where it isn't rented."""
        return self.price.figure.value / self.gpus if self.price is not None else None
