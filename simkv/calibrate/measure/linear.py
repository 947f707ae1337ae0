"""Matrix products of decoder layers over how many tokens pass them, and of the head.

A call takes the next few layers of the model, the one after it those that follow: a layer's weights come again when
the others have been read, so that caches serve as little of them as in a real step. Of as many tokens as sequences
decode at once, the products are timed where they stand in a step: attention comes between them, untimed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle

from simkv.calibrate.backend import load_torch, repeated
from simkv.calibrate.measure.kvpool import BLOCK_TOKENS, random_pool, random_tables
from simkv.calibrate.measure.pace import attention_s, head_s, layers_s, repeats_s
from simkv.calibrate.model import Decoder, decoder
from simkv.calibrate.plain import Sizes, plain_sizes
from simkv.calibrate.task import Bench, Task
from simkv.profile.schema import Sample

_MOST_TOKENS = {True: 512, False: 4096}
_MOST_ROWS = {True: 16, False: 128}
"""Of the head: sequences that get a token. By ``quick``."""
_MOST_LAYERS, _TOKENS_A_CALL = 10, 128
_MOST_DECODING, _CONTEXT = 8, 512
"""Tokens that count as sequences that decode, and the context that each then has."""


def tasks(bench: Bench) -> Iterator[Task]:
    """Yield ``linear`` and ``head``, tokens doubling. Raises :class:`InputError` for a model that isn't computed."""
    sizes, backend = plain_sizes(bench.model), bench.backend
    for tokens in _doubling(_MOST_TOKENS[bench.quick]):
        layers = layers_of_call(sizes, tokens)
        once_s = layers_s(backend, sizes, tokens, layers)
        if tokens <= _MOST_DECODING:
            once_s += attention_s(backend, sizes, tokens * _CONTEXT, layers)
        estimate_s = repeats_s(bench, once_s)
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
    model = decoder(bench.backend, bench.model)
    if tokens > _MOST_DECODING:
        seconds = bench.backend.time(stretch(model, tokens, layers), bench.budget_s)
    else:
        seconds = repeated(_between_attention(model, tokens, layers), bench.budget_s)
    return [Sample(kind="linear", at={"tokens": tokens, "layers": layers}, seconds=seconds)]


def _between_attention(model: Decoder, tokens: int, layers: int) -> Callable[[], float]:
    """Return a call that decodes through the next ``layers`` layers, and says what all but attention took (s)."""
    backend, torch = model.backend, load_torch()
    blocks = max(1, _CONTEXT // BLOCK_TOKENS)
    slots = 2 * layers * tokens * blocks
    pool = random_pool(model, slots, BLOCK_TOKENS)
    tables = cycle(random_tables(backend, slots, layers, tokens, blocks))
    order = cycle(range(model.layers))
    ids = torch.arange(tokens, device=backend.device)
    start = model.embed(ids % model.sizes.vocab)

    def call() -> float:
        x, watch = start, backend.stopwatch()
        for table in next(tables):
            layer = next(order)
            watch.begin()
            q, _, _ = model.project(layer, x, ids)
            watch.end()
            attention = model.attend_paged(q, pool, table, blocks * BLOCK_TOKENS)
            watch.begin()
            x = model.close(layer, x, attention)
            watch.end()
        return watch.seconds()

    return call


def _head(bench: Bench, tokens: int) -> list[Sample]:
    model = decoder(bench.backend, bench.model)
    rows = model.embed(load_torch().arange(tokens, device=bench.backend.device) % model.sizes.vocab)
    seconds = bench.backend.time(lambda: model.head(rows), bench.budget_s)
    return [Sample(kind="head", at={"tokens": tokens}, seconds=seconds)]


def _doubling(most: int) -> list[int]:
    return [1 << power for power in range(most.bit_length())]
