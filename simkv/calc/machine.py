"""What a machine is called and brings, what scenarios assume beyond it, and what they say of a model's limit."""

from __future__ import annotations

from simkv.calc.answer import Line
from simkv.catalog import load_hardware, load_machine
from simkv.errors import InputError, Problem
from simkv.formulas.kv_size import kv_dtype_or_default
from simkv.formulas.weights import native_weight_dtype, weight_bytes_per_rank
from simkv.hardware import Figure, Gpu
from simkv.model import ModelShape
from simkv.profile.machine import is_profile_name, load_calibrated
from simkv.profile.schema import LinkFit
from simkv.units import short

_OF_THE_HOST = ("h2d_bytes_per_s", "d2h_bytes_per_s", "duplex_bytes_per_s", "ssd_read_bytes_per_s")


def load_gpu(name: str) -> Gpu:
    """Return an accelerator by name; of an instance, its accelerator with the links and SSDs of the host.

    A name that ends in ``.json`` is the path of a calibration profile, whose fitted rates are taken.

    Raises InputError with the nearest names for an unknown one, and with what is wrong with a profile.
    """
    if is_profile_name(name):
        profile, gpu = load_calibrated(name)
        return (
            gpu if profile.fit.ssd_read is None else gpu.with_figures(ssd_read_bytes_per_s=_drive(profile.fit.ssd_read))
        )
    found = load_machine(name)
    if isinstance(found, Gpu):
        return found
    brought = {key: found.figures[key] for key in _OF_THE_HOST if key in found.figures}
    return load_hardware(found.gpu).with_figures(**brought)


def _drive(fit: LinkFit) -> Figure:
    return Figure(fit.bytes_per_s, "B/s", "calibration profile", "fitted")


def host_link(gpu: Gpu) -> Figure:
    """Return the bandwidth from host to device; raises InputError for a profile in which it wasn't measured."""
    if "h2d_bytes_per_s" not in gpu.figures:
        mend = "measure it (simkv calibrate), or name a card of the catalogue as the profile's device.base"
        raise InputError(Problem("has no bandwidth from host to device", mend, path="hardware", value=gpu.name))
    return gpu.figure("h2d_bytes_per_s")


def machine_lines(model: ModelShape, gpu: Gpu, ranks: int, weight_dtype: str, mode: str = "") -> list[Line]:
    """Return what says which model runs on what; ``mode``: how its steps run, where that matters."""
    gpus = f"{ranks} GPU{'s' * (ranks > 1)}"
    return [
        Line("model", model.name, "model", "text", f"{native_weight_dtype(model, weight_dtype)} weights"),
        Line("hardware", gpu.name, "hardware", "text", f"{gpus}, {mode}" if mode else gpus),
    ]


def kv_dtype_line(kv_dtype: str, note: str = "") -> Line:
    """Return what says in which format a cache is kept."""
    return Line("kv_dtype", kv_dtype_or_default(kv_dtype), "KV dtype", "text", note)


def descriptor_s() -> float:
    """Return the latency of one contiguous piece on a host link."""
    from simkv.scenario.schema import Link

    return float(Link.model_fields["latency"].default)


def ssd_read_bytes_per_s() -> float:
    """Return the read bandwidth of a host's SSDs."""
    from simkv.scenario.schema import Ssd

    return Ssd().read


def too_long(model: ModelShape, tokens: int) -> list[str]:
    """Return a warning where ``tokens`` are more than the model was made for."""
    longest = model.max_position_embeddings
    if tokens <= longest:
        return []
    return [f"{tokens:,} tokens are more than {model.name}'s longest, {longest:,}"]


def unfit(model: ModelShape, gpu: Gpu, tensor_parallel: int, weight_dtype: str) -> list[str]:
    """Return a warning where the weights alone are more than the memory of the GPUs: times are then of no machine."""
    weights, usable = weight_bytes_per_rank(model, tensor_parallel, weight_dtype), gpu.usable_bytes
    if weights <= usable:
        return []
    gpus = f"{tensor_parallel} x {gpu.name}"
    size, room = short(weights, "size"), short(usable, "size")
    return [f"{model.name} doesn't fit on {gpus}: {size} of weights a GPU, and there is {room}; see --tp"]
