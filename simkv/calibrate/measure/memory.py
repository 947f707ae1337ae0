"""Bandwidth of the device's own memory, and what launching one kernel takes.

Sizes are beyond the caches. On a CPU the device's memory is the host's, used by the threads that compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from simkv.calibrate.backend import Backend, load_torch, repeats_take
from simkv.calibrate.measure.topology import beyond_caches_bytes, free_device_bytes
from simkv.calibrate.task import Bench, Task
from simkv.profile.schema import Sample

_BYTES_PER_S = {"cpu": 8e9, "cuda": 1e12}
"""For estimates of the time alone."""
_GPU_CACHES_BYTES = 256 << 20
_LAUNCHES = 64


def tasks(bench: Bench) -> Iterator[Task]:
    """Yield copying and reading device memory, and ``launch``."""
    for nbytes in _sizes(bench):
        for kind, prepare in (("device_copy", _copying), ("device_read", _reading)):
            once_s = 2 * nbytes / _BYTES_PER_S[bench.backend.kind]
            estimate_s = repeats_take(once_s, bench.budget_s) + 8 * once_s
            yield Task(f"{kind}/{nbytes}", estimate_s, partial(_measured, bench, kind, nbytes, prepare))
    yield Task("launch", repeats_take(_LAUNCHES * 2e-5, bench.budget_s), partial(_launch, bench))


def _sizes(bench: Bench) -> list[int]:
    """Return sizes of one buffer, of which two must fit a quarter of what is free."""
    base = _GPU_CACHES_BYTES if bench.backend.kind == "cuda" else beyond_caches_bytes()
    most = free_device_bytes(bench.backend) // 8
    wanted = [base] if bench.quick else [base, 2 * base, 4 * base]
    return [nbytes for nbytes in wanted if nbytes <= most] or [1 << max(20, most.bit_length() - 1)]


def _measured(
    bench: Bench, kind: str, nbytes: int, prepare: Callable[[Backend, int], Callable[[], object]]
) -> list[Sample]:
    seconds = bench.backend.time(prepare(bench.backend, nbytes), bench.budget_s)
    return [Sample(kind=kind, at={"bytes": nbytes}, seconds=seconds)]


def _copying(backend: Backend, nbytes: int) -> Callable[[], object]:
    source, target = (backend.device_memory(nbytes) for _ in range(2))
    return lambda: target.copy_(source)


def _reading(backend: Backend, nbytes: int) -> Callable[[], object]:
    numbers = backend.device_memory(nbytes).view(load_torch().float32)
    return lambda: numbers.amax()


def _launch(bench: Bench) -> list[Sample]:
    tiny = bench.backend.device_memory(64)

    def call() -> None:
        tiny.add_(1)
        bench.backend.synchronize()

    return [Sample(kind="launch", at={}, seconds=bench.backend.time(call, bench.budget_s, _LAUNCHES))]
