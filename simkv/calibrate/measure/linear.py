"""Matrix products of decoder layers over how many tokens pass them, and of the head.

A call takes the next few layers of the model, the one after it those that follow: a layer's weights come again when
the others have been read, so that caches serve as little of them as in a real step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle

from simkv.calibrate.backend import load_torch
from simkv.calibrate.measure.pace import head_s, layers_s, repeats_s
from simkv.calibrate.model import Decoder, decoder
from simkv.calibrate.plain import Sizes, plain_sizes
from simkv.calibrate.task import Bench, Task
from simkv.profile.schema import Sample

_MOST_TOKENS = {True: 512, False: 4096}
_MOST_ROWS = {True: 16, False: 128}
"""Of the head: sequences that get a token. By ``quick``."""
_MOST_LAYERS, _TOKENS_A_CALL = 10, 128


def tasks(bench: Bench) -> Iterator[Task]:
    """Yield ``linear`` and ``head``, tokens doubling. Raises :class:`InputError` for a model that isn't computed."""
    sizes, backend = plain_sizes(bench.model), bench.backend
    for tokens in _doubling(_MOST_TOKENS[bench.quick]):
        layers = layers_of_call(sizes, tokens)
        estimate_s = repeats_s(bench, layers_s(backend, sizes, tokens, layers))
        yield Task(f"linear/{tokens}", estimate_s, partial(_linear, bench, tokens, layers))
    for tokens in _doubling(_MOST_ROWS[bench.quick]):
        yield Task(f"head/{tokens}", repeats_s(bench, head_s(backend, sizes, tokens)), partial(_head, bench, tokens))


def layers_of_call(sizes: Sizes, tokens: int) -> int:
    """Return how many layers one call takes: fewer where many tokens make each of them long."""
    return min(sizes.layers, max(1, min(_MOST_LAYERS, _TOKENS_A_CALL // tokens)))


def stretch(model: Decoder, tokens: int, layers: int) -> Callable[[], object]:
    """Return a call that passes ``tokens`` through the linear part of the next ``layers`` layers.

    Q stands for attention's output, which is as wide.
    """
    order = cycle(range(model.layers))
    torch = load_torch()
    ids = torch.arange(tokens, device=model.backend.device)
    positions, start = ids % len(model.angles), model.embed(ids % model.sizes.vocab)

    def call() -> object:
        x = start
        for _ in range(layers):
            layer = next(order)
            q, _, _ = model.project(layer, x, positions)
            x = model.close(layer, x, q.reshape(tokens, -1))
        return x

    return call


def _linear(bench: Bench, tokens: int, layers: int) -> list[Sample]:
    call = stretch(decoder(bench.backend, bench.model), tokens, layers)
    seconds = bench.backend.time(call, bench.budget_s)
    return [Sample(kind="linear", at={"tokens": tokens, "layers": layers}, seconds=seconds)]


def _head(bench: Bench, tokens: int) -> list[Sample]:
    model = decoder(bench.backend, bench.model)
    rows = model.embed(load_torch().arange(tokens, device=bench.backend.device) % model.sizes.vocab)
    seconds = bench.backend.time(lambda: model.head(rows), bench.budget_s)
    return [Sample(kind="head", at={"tokens": tokens}, seconds=seconds)]


def _doubling(most: int) -> list[int]:
    return [1 << power for power in range(most.bit_length())]
