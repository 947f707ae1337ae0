"""Opening what is measured: which device, with how much of it, and whether it can be verified.

What is wrong names the option of ``simkv calibrate``.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from simkv.calibrate.backend import Kind, load_torch, open_backend
from simkv.calibrate.environment import memory_bytes
from simkv.calibrate.model import check_fits
from simkv.calibrate.plan import MODELS
from simkv.calibrate.task import Bench
from simkv.catalog import list_models, load_model
from simkv.errors import InputError, Problem
from simkv.units import short

_HOT_POOL_BYTES = 2 << 30
_LEAST_POOL_BYTES = 64 << 20
_MOST_OF_MEMORY = 0.5


def kind_of(device: str | None) -> Kind:
    """Return the device that is asked for, or the best that there is. Raises :class:`InputError` without torch."""
    torch = load_torch()
    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    for kind in get_args(Kind):
        if device == kind:
            return kind  # type: ignore[no-any-return]
    raise InputError(Problem("is no kind of device", "write cuda or cpu", path="--device", value=device))


def open_bench(
    kind: Kind, *, quick: bool, ssd_path: Path | None, model: str | None, dtype: str | None, threads: int | None,
    hot_pool: float | None,
) -> Bench:  # fmt: skip
    """Return what is measured. Raises :class:`InputError` where it can't be."""
    for option, value, needs in (("--threads", threads, "cpu"), ("--hot-pool", hot_pool, "cpu")):
        if value is not None and kind != needs:
            raise InputError(Problem(f"does nothing with --device {kind}", "leave it out", path=option))
    pool_bytes = int(_HOT_POOL_BYTES if hot_pool is None else hot_pool) if kind == "cpu" else 0
    if kind == "cpu":
        _check_room(pool_bytes)
    backend, shape = open_backend(kind, dtype, threads), load_model(model or MODELS[kind])
    check_fits(backend, shape)
    return Bench(backend, shape, quick, ssd_path, pool_bytes)


def _check_room(pool_bytes: int) -> None:
    memory = memory_bytes()
    if memory is not None and pool_bytes > _MOST_OF_MEMORY * memory:
        what, mend = f"more than half of this machine's {short(memory, 'size')}", "give less"
    elif pool_bytes < _LEAST_POOL_BYTES:
        what, mend = "too small", f"the least is {short(_LEAST_POOL_BYTES, 'size')}"
    else:
        return
    raise InputError(Problem(what, mend, path="--hot-pool", value=short(pool_bytes, "size")))


def check_verifiable(bench: Bench, option: str = "--verify") -> None:
    """Raise InputError, before anything is measured, where a verification has nowhere to put KV."""
    if bench.backend.kind == "cpu" and bench.ssd_path is None:
        what = "on a CPU, KV below the pool lies on a drive"
        raise InputError(Problem(what, "name a folder on it: --ssd-path DIR", path=option))
    name = bench.model.name
    if name not in list_models():
        what, mend = "is not in the catalogue, and scenarios of a verification name their model", f"leave out {option}"
        raise InputError(Problem(what, mend, path="--model", value=name))
