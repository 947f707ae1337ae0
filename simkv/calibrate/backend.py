"""The device that is measured, and how time is taken on it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, Protocol, TypeAlias

from simkv.errors import InputError, Problem

Tensor: TypeAlias = Any
"""A ``torch.Tensor``: torch is looked at only where it is used."""
Kind = Literal["cpu", "cuda"]
WARM_UP, FEWEST, MOST = 2, 3, 9
"""Calls before the first repeat that counts, and the least and most repeats of one turn of a measurement."""
_TORCH_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def load_torch() -> Any:
    """Return the module torch. Raises :class:`InputError` saying how to install it."""
    try:
        import torch
    except ImportError:
        mend = "pip install 'simkv[torch]' (a CPU build does for --device cpu)"
        raise InputError(Problem("calibration measures with torch, which isn't installed", mend)) from None
    return torch


class Stopwatch(Protocol):
    """Adds up the time between ``begin`` and ``end``, however often."""

    def begin(self) -> None:
        """Time runs from here on."""

    def end(self) -> None:
        """And stops."""

    def seconds(self) -> float:
        """Return the sum, once the device has done everything."""


class _WallClock:
    def __init__(self) -> None:
        self._sum_s = self._begun_s = 0.0

    def begin(self) -> None:
        self._begun_s = perf_counter()

    def end(self) -> None:
        self._sum_s += perf_counter() - self._begun_s

    def seconds(self) -> float:
        return max(self._sum_s, 1e-9)


class _Events:
    def __init__(self) -> None:
        self._cuda = load_torch().cuda
        self._pairs: list[tuple[Any, Any]] = []

    def begin(self) -> None:
        first, last = (self._cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        self._pairs.append((first, last))

    def end(self) -> None:
        self._pairs[-1][1].record()

    def seconds(self) -> float:
        self._cuda.synchronize()
        return max(1e-3 * sum(float(first.elapsed_time(last)) for first, last in self._pairs), 1e-9)


@dataclass(frozen=True)
class Backend:
    """One device, the dtype that models run in, and on a CPU the threads that compute."""

    kind: Kind
    device: Any
    dtype: str
    """``fp32``, ``bf16`` or ``fp16``."""
    threads: int

    @property
    def torch_dtype(self) -> Any:
        """Return ``dtype`` as torch calls it."""
        return getattr(load_torch(), _TORCH_DTYPES[self.dtype])

    def synchronize(self) -> None:
        """Wait until the device has done everything that it was given."""
        if self.kind == "cuda":
            load_torch().cuda.synchronize()

    def wait_computed(self) -> None:
        """Wait until what was given to compute is through, but not for the copies of other streams."""
        if self.kind == "cuda":
            load_torch().cuda.current_stream().synchronize()

    def time(self, call: Callable[[], object], budget_s: float = 0.1, inner: int = 1) -> tuple[float, ...]:
        """Return the seconds of repeated ``call``s, warm-up left out: as many as fit ``budget_s``, within bounds.

        On a GPU by CUDA events around the call; else by the wall clock. ``inner``: calls in one repeat, of which the
        mean is taken (for calls of microseconds).
        """
        once = self._event_s if self.kind == "cuda" else wall_s
        return repeated(lambda: once(call, inner), budget_s)

    def _event_s(self, call: Callable[[], object], inner: int) -> float:
        watch = _Events()
        self.synchronize()
        watch.begin()
        for _ in range(inner):
            call()
        watch.end()
        return watch.seconds() / inner

    def stopwatch(self) -> Stopwatch:
        """Return what takes the time of parts of a call: by CUDA events on a GPU, else by the wall clock."""
        return _Events() if self.kind == "cuda" else _WallClock()

    def host_memory(self, nbytes: int, pinned: bool) -> Tensor:
        """Return ``nbytes`` of host memory as bytes; ``pinned`` on a GPU's machine alone. Every page is touched."""
        torch = load_torch()
        return torch.zeros(nbytes, dtype=torch.uint8, pin_memory=pinned and self.kind == "cuda")

    def device_memory(self, nbytes: int) -> Tensor:
        """Return ``nbytes`` of the device's memory as bytes, touched."""
        torch = load_torch()
        return torch.zeros(nbytes, dtype=torch.uint8, device=self.device)


def repeated(once: Callable[[], float], budget_s: float) -> tuple[float, ...]:
    """Return the seconds that ``once`` says it took, warm-up left out: as many as fit ``budget_s``, within bounds.

    For what prepares each repeat; what is called alike every time is timed by :meth:`Backend.time`.
    """
    for _ in range(WARM_UP):
        once()
    seconds: list[float] = []
    begun = perf_counter()
    while len(seconds) < FEWEST or (len(seconds) < MOST and perf_counter() - begun < budget_s):
        seconds.append(once())
    return tuple(seconds)


def repeats_take(once_s: float, budget_s: float) -> float:
    """Return about how long :func:`repeated` takes over what takes ``once_s``."""
    return max((WARM_UP + FEWEST) * once_s, min(WARM_UP * once_s + budget_s, (WARM_UP + MOST) * once_s))


def wall_s(call: Callable[[], object], inner: int = 1) -> float:
    """Return the seconds of one ``call`` by the wall clock: the mean of ``inner`` of them."""
    begun = perf_counter()
    for _ in range(inner):
        call()
    return max((perf_counter() - begun) / inner, 1e-9)


def open_backend(kind: Kind, dtype: str | None = None, threads: int | None = None) -> Backend:
    """Return the device ``kind``, ready to be measured.

    ``dtype``: absent, bf16 on a GPU and fp32 on a CPU, which computes that everywhere. ``threads``: absent, all cores
    but one, which is left to copies. Sets torch's thread count. Raises :class:`InputError` without torch, or without a
    GPU for ``cuda``.
    """
    torch = load_torch()
    if kind == "cuda" and not torch.cuda.is_available():
        what = "torch finds no CUDA device"
        raise InputError(
            Problem(what, "use --device cpu, or install a CUDA build of torch", path="--device", value=kind)
        )
    chosen = dtype or ("bf16" if kind == "cuda" else "fp32")
    if chosen not in _TORCH_DTYPES:
        mend = f"use one of {', '.join(_TORCH_DTYPES)}"
        raise InputError(Problem("is not a dtype that is measured", mend, path="--dtype", value=chosen))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = threads or max(1, cores - 1)
    torch.set_num_threads(count)
    return Backend(kind, torch.device(kind), chosen, count)
