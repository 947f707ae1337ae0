"""What the machine that a scenario names brings: a GPU, and, of a whole instance, its host and price.

A calibration profile brings what was measured.

Everything here is a default: what a preset or the scenario says wins. What a host hasn't got is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from simkv import units
from simkv.catalog import load_hardware, load_machine
from simkv.errors import InputError
from simkv.formulas.kv_size import check_tensor_parallel
from simkv.hardware import Gpu
from simkv.instances import Instance
from simkv.model import ModelShape
from simkv.profile.machine import is_profile_name, load_calibrated, source_of
from simkv.profile.schema import Profile
from simkv.scenario import calibrated
from simkv.scenario.faults import Fault
from simkv.scenario.overrides import put
from simkv.scenario.quantity import SI
from simkv.scenario.schema import InlineHardware, Replicas, Scenario
from simkv.scenario.text import Path

CATALOGUE, INSTANCE = "catalogue", "instance"
_LINK_FIGURES = {"h2d": "h2d_bytes_per_s", "d2h": "d2h_bytes_per_s", "duplex": "duplex_bytes_per_s"}
_HOST_FIGURES: Mapping[Path, str] = {
    ("link", "uplink", "bandwidth"): "uplink_bytes_per_s",
    ("tiers", "dram", "bandwidth"): "dram_bytes_per_s",
    ("tiers", "ssd", "read"): "ssd_read_bytes_per_s",
    ("tiers", "ssd", "write"): "ssd_write_bytes_per_s",
    ("tiers", "ssd", "latency"): "ssd_latency_s",
}


@dataclass(frozen=True, slots=True)
class Machine:
    """A GPU, and the instance that it is in where one is named."""

    gpu: Gpu | None = None
    """None: given inline."""
    instance: Instance | None = None
    profile: Profile | None = None
    """What the GPU's figures are from, where the scenario names a calibration profile."""
    path: str = ""
    """Where that is, from the working directory."""


@dataclass(frozen=True, slots=True)
class Brought:
    """Values of a scenario that come with the machine, and where each is from."""

    values: Mapping[str, Any]
    origins: Mapping[Path, str]


def find_machine(name: str, folder: str = "") -> Machine:
    """Return the accelerator or instance called ``name``, or that of the calibration profile in a file.

    A name that ends in ``.json`` is a file's, as is one of a file that is there and that the catalogue doesn't know;
    files are looked for in ``folder`` and in the working directory.

    Raises InputError with the nearest names, or with what is wrong with the file.
    """
    path = calibrated.profile_file(name, folder)
    if is_profile_name(name):
        return _of_profile(path)
    try:
        found = load_machine(name)
    except InputError:
        if os.path.isfile(path):
            return _of_profile(path)
        raise
    return Machine(found) if isinstance(found, Gpu) else Machine(load_hardware(found.gpu), found)


def _of_profile(path: str) -> Machine:
    profile, gpu = load_calibrated(path)
    return Machine(gpu, profile=profile, path=path)


def unmeasured(machine: Machine, written: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield what a calibration profile hasn't got, and the scenario doesn't give either."""
    if machine.profile is not None and machine.gpu is not None:
        yield from calibrated.unmeasured_links(machine.profile, machine.gpu.figures, written)


def brought(machine: Machine, written: Mapping[str, Any]) -> Brought:
    """Return what the machine brings; an abstract machine's link costs nothing unless given."""
    if machine.gpu is None:
        return Brought({"link": {key: SI(float("inf")) for key in _LINK_FIGURES}}, {})
    rows = [*_links(machine.gpu, machine), *_host(machine.instance), *_price(machine.instance, written)]
    if machine.profile is not None:
        rows += calibrated.rows(machine.profile)
    values: dict[str, Any] = {}
    for path, value, _ in rows:
        put(values, path, value)
    return Brought(values, {path: origin for path, _, origin in rows})


def limits(scenario: Scenario, instance: Instance | None) -> Iterator[Fault]:
    """Yield what is asked of an instance's hosts that they haven't got."""
    if instance is not None:
        yield from _gpus(scenario.replicas, instance)
        yield from _room(scenario, instance)


def unsplit(scenario: Scenario, model: ModelShape | None) -> list[Fault]:
    """Return what keeps the model's heads from being split over a replica's GPUs; nothing on inline hardware."""
    if model is None or isinstance(scenario.hardware, InlineHardware):
        return []
    try:
        check_tensor_parallel(model, scenario.replicas.tensor_parallel)
    except InputError as error:
        return [Fault(("replicas", "tensor_parallel"), found.what, found.mend) for found in error.problems]
    return []


def idle_gpus(scenario: Scenario, instance: Instance | None) -> list[tuple[str, str]]:
    """Return a note where GPUs are paid for that nobody uses."""
    if instance is None or instance.price is None or scenario.cost is None:
        return []
    replicas = scenario.replicas
    idle = instance.gpus * replicas.hosts - replicas.count * replicas.tensor_parallel
    if not idle:
        return []
    rented = instance.price.figure.value * replicas.hosts
    sentence = (
        f"{idle} of {instance.gpus * replicas.hosts} GPUs of {instance.name} are idle: the cost is that of the "
        f"others, and the whole is rented for {rented:.2f} {instance.price.currency} an hour"
    )
    return [("idle_gpus", sentence)]


Row = tuple[Path, object, str]
"""A path of the scenario, its value, and where it is from."""


def _links(gpu: Gpu, machine: Machine) -> Iterator[Row]:
    """Yield the GPU's own link, as far as the host lets it; what a profile hasn't got is missing."""
    instance, profile = machine.instance, machine.profile
    for key, name in _LINK_FIGURES.items():
        if profile is not None:
            if name in gpu.figures:
                yield ("link", key), SI(gpu.value(name)), _of_card(gpu, profile, name)
            continue
        if instance is not None and name in instance.figures:
            figure = instance.figures[name]
            yield ("link", key), SI(figure.value), f"{_origin(instance)}, {figure.standing}"
        else:
            figure = gpu.figure(name)
            yield ("link", key), SI(figure.value), f"{CATALOGUE}, {figure.standing}"


def _of_card(gpu: Gpu, profile: Profile, name: str) -> str:
    """Return where a figure of a calibrated card is from: the profile, or the card beneath it."""
    figure = gpu.figure(name)
    own = figure.source == source_of(profile)
    return calibrated.origin(profile, figure.standing) if own else f"{CATALOGUE}, {figure.standing}"


def _host(instance: Instance | None) -> Iterator[Row]:
    if instance is None:
        return
    for path, name in _HOST_FIGURES.items():
        if name in instance.figures:
            figure = instance.figures[name]
            yield path, SI(figure.value), f"{_origin(instance)}, {figure.standing}"
    if "uplink_bytes_per_s" in instance.figures:
        yield ("link", "uplink", "gpus"), instance.gpus_per_uplink, f"{_origin(instance)}, {instance.topology.standing}"


def _price(instance: Instance | None, written: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the price of a GPU; nothing where the scenario has one of its own, or counts in another currency."""
    cost = written.get("cost") or {}
    if instance is None or instance.price is None or not isinstance(cost, Mapping) or "gpu_hour" in cost:
        return
    if cost.get("currency", instance.price.currency) != instance.price.currency:
        return
    origin = f"{_origin(instance)}, {instance.price.figure.standing}"
    source = f"{instance.price.terms}: {instance.price.figure.source}"
    values = {
        "gpu_hour": instance.price_per_gpu_hour,
        "currency": instance.price.currency,
        "source": source,
        "date": instance.price.date,
    }
    for key, value in values.items():
        yield ("cost", key), value, origin


def _origin(instance: Instance) -> str:
    return f"{INSTANCE} {instance.name}"


def _gpus(replicas: Replicas, instance: Instance) -> Iterator[Fault]:
    """Hold that each host has the GPUs of its replicas, which are dealt to the hosts in turn."""
    ranks, here = replicas.tensor_parallel, instance.gpus
    if ranks > here:
        mend = f"the most is {here}: a replica doesn't span hosts"
        yield Fault(("replicas", "tensor_parallel"), f"{instance.name} has {here} GPUs a host", mend)
        return
    fullest = replicas.of_fullest_host
    if fullest * ranks > here:
        hosts = -(-replicas.count // (here // ranks))
        what = f"{fullest} x {ranks} GPUs a host, and {instance.name} has {here}"
        mend = f"the most is {here // ranks * replicas.hosts}, or write replicas.hosts: {hosts}"
        yield Fault(("replicas", "count"), what, mend)


def _room(scenario: Scenario, instance: Instance) -> Iterator[Fault]:
    tiers = scenario.tiers
    asked = {"dram": (tiers.dram.capacity, instance.dram_bytes), "ssd": (tiers.ssd.capacity, instance.ssd_bytes)}
    for key, (capacity, there) in asked.items():
        path = ("tiers", key, "capacity")
        if capacity and not there:
            yield Fault(path, f"{instance.name} has no local {key.upper()}", "leave it out, or name the GPU alone")
        elif capacity > there:
            yield Fault(path, f"more than a host of {instance.name} has", f"the most is {units.exact(there, 'size')}")
