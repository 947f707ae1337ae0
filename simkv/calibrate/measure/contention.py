"""How much a lane that carries without pause slows computation, and computation without pause the lane.

As in a run: the lane's thread copies piece by piece and takes over the next transfer by itself, while the thread that
computes starts kernel after kernel. Alone and during take turns, so that both see the same machine. Computing with
waits is timed too, the waits themselves left out: a layer that comes after one is slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from itertools import cycle
from time import perf_counter, sleep
from typing import Protocol

from simkv.calibrate.backend import WARM_UP, Backend, Tensor, load_torch, repeated
from simkv.calibrate.decode import Before, decode_layers
from simkv.calibrate.measure.carrier import Carrier
from simkv.calibrate.measure.kvpool import BLOCK_TOKENS, random_pool, random_tables
from simkv.calibrate.measure.pace import attention_s, layers_s, repeats_s
from simkv.calibrate.measure.without_pause import without_pause
from simkv.calibrate.model import Decoder, decoder
from simkv.calibrate.plain import Sizes, plain_sizes
from simkv.calibrate.task import Bench, Task
from simkv.profile.schema import LANES, WAIT, Lane, Sample

_BATCH, _CONTEXT, _MOST_LAYERS = 4, 1024, 10
_TRANSFERS = 4
"""One after the other, of which the mean is taken: they are short, and wait for a turn of the CPU now and then."""
_TRANSFER_S = {"h2d": 2e-3, "d2h": 2e-3, "ssd_read": 1e-2, "ssd_write": 2e-2}
_SET_UP_S = {"h2d": 0.4, "d2h": 0.4, "ssd_read": 1.0, "ssd_write": 1.0}
"""For estimates of the time alone."""
_STARTS_S = 5e-3
_PAUSE_S, _PIECES_OF_A_WAIT = 2e-3, 12
"""About what a layer waits for its pieces."""
_KINDS = ("compute_alone", "compute_during", "copy_alone", "copy_during")


class Stretch(Protocol):
    """Computes the next few layers, with a call before each one's attention if there is one."""

    def __call__(self, before: Before | None = None) -> Tensor:
        """Return what comes out of the last of them."""


def tasks(bench: Bench) -> Iterator[Task]:
    """Yield computing with and without waits, then the four kinds of each lane, the drive's with a folder on one.

    Raises :class:`InputError` for a model that isn't computed.
    """
    sizes = plain_sizes(bench.model)
    layers = _layers_of_call(sizes)
    linear_s = layers_s(bench.backend, sizes, _BATCH, layers)
    compute_s = linear_s + attention_s(bench.backend, sizes, _BATCH * _CONTEXT, layers)
    once_s = 2 * compute_s + layers * _PAUSE_S
    yield Task(f"contention/{WAIT}", _SET_UP_S["h2d"] + repeats_s(bench, once_s), partial(_waits, bench))
    for lane in LANES if bench.ssd_path is not None else LANES[:2]:
        once_s = 4 * compute_s + 2 * (_TRANSFERS + 1) * _TRANSFER_S[lane] + 2 * _STARTS_S
        yield Task(f"contention/{lane}", _SET_UP_S[lane] + repeats_s(bench, once_s), partial(_lane, bench, lane))


def _layers_of_call(sizes: Sizes) -> int:
    return min(_MOST_LAYERS, sizes.layers)


def _lane(bench: Bench, lane: Lane) -> list[Sample]:
    model = decoder(bench.backend, bench.model)
    compute = _stretch(model, _layers_of_call(model.sizes))
    through = _waited_for(bench.backend, compute)
    seconds: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    with Carrier(bench, model, lane) as carrier:

        def all_kinds() -> float:
            begun = perf_counter()
            bench.backend.synchronize()  # a GPU may still compute what it was given last
            seconds["compute_alone"].append(_took_s(through))
            seconds["copy_alone"].append(_took_s(carrier.transfer, _TRANSFERS))
            with carrier.busy():
                seconds["compute_during"].append(_took_s(through))
            with _computing(bench.backend, compute):
                seconds["copy_during"].append(_took_s(carrier.transfer, _TRANSFERS))
            return perf_counter() - begun

        repeated(all_kinds, bench.budget_s)
    return [Sample(kind=kind, at={"lane": lane}, seconds=tuple(seconds[kind][WARM_UP:])) for kind in _KINDS]


def _waits(bench: Bench) -> list[Sample]:
    """Return computing layer after layer, and with a wait in each where a step waits for its pieces."""
    model = decoder(bench.backend, bench.model)
    compute = _stretch(model, _layers_of_call(model.sizes))
    seconds: dict[str, list[float]] = {"compute_alone": [], "compute_during": []}
    with ExitStack() as stack:
        wait: Callable[[], object] = partial(sleep, _PAUSE_S)
        if bench.ssd_path is not None:
            wait = stack.enter_context(Carrier(bench, model, "ssd_read", _PIECES_OF_A_WAIT, up=True)).transfer

        def both() -> float:
            begun = perf_counter()
            seconds["compute_alone"].append(_computed_s(bench.backend, compute))
            seconds["compute_during"].append(_computed_s(bench.backend, compute, wait))
            return perf_counter() - begun

        repeated(both, bench.budget_s)
    return [Sample(kind=kind, at={"lane": WAIT}, seconds=tuple(took[WARM_UP:])) for kind, took in seconds.items()]


def _computed_s(backend: Backend, compute: Stretch, wait: Callable[[], object] | None = None) -> float:
    """Return the seconds of one stretch without its waits: on a GPU nothing is launched meanwhile, as in a run."""
    watch = backend.stopwatch()

    def pause(layer: int) -> None:
        watch.end()
        backend.wait_computed()
        assert wait is not None
        wait()
        watch.begin()

    backend.synchronize()
    watch.begin()
    compute(pause if wait is not None else None)
    watch.end()
    return watch.seconds()


def _stretch(model: Decoder, layers: int) -> Stretch:
    """Return a call that decodes through the next ``layers`` layers, everything resident."""
    backend, torch = model.backend, load_torch()
    blocks = -(-_CONTEXT // BLOCK_TOKENS)
    slots = model.layers * _BATCH * blocks
    pool = random_pool(model, slots, BLOCK_TOKENS)
    tables = list(random_tables(backend, slots, model.layers, _BATCH, blocks)[0])
    tokens = torch.arange(_BATCH, device=backend.device)
    positions, start = torch.full_like(tokens, _CONTEXT - 1), model.embed(tokens)
    order = cycle(range(model.layers))

    def call(before: Before | None = None) -> Tensor:
        taken = [next(order) for _ in range(layers)]
        return decode_layers(model, taken, start, positions, pool, tables, _CONTEXT, before)

    return call


def _took_s(call: Callable[[], object], times: int = 1) -> float:
    """Return the seconds of one ``call``, the mean of as many ``times``."""
    begun = perf_counter()
    for _ in range(times):
        call()
    return max((perf_counter() - begun) / times, 1e-9)


def _waited_for(backend: Backend, compute: Callable[[], Tensor]) -> Callable[[], None]:
    """Return ``compute`` with waiting until it is through, but not for the copies of other streams."""

    def call() -> None:
        compute()
        backend.wait_computed()

    return call


def _computing(backend: Backend, compute: Callable[[], Tensor]) -> AbstractContextManager[None]:
    """Have the device compute without pause in a thread of its own: on a GPU the next call is launched meanwhile."""
    if backend.kind == "cpu":
        return without_pause(compute)
    event = load_torch().cuda.Event
    last = event()
    last.record()

    def one_ahead() -> None:
        nonlocal last
        compute()
        now = event()
        now.record()
        last.synchronize()
        last = now

    return without_pause(one_ahead)
