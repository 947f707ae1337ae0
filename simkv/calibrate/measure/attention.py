"""Attention: decode over contiguous KV and through a block table, by batch and context; prefill by length.

One call attends in several layers, each with KV of its own in places that caches don't hold. Decode attention is timed
where it stands in a step: between the matrix products of its layer and those of the next, which empty the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle

from simkv.calibrate.backend import Tensor, load_torch, repeated
from simkv.calibrate.measure.kvpool import (
    BLOCK_TOKENS,
    KvStrip,
    cold_bytes,
    fill,
    most_kv_bytes,
    random_pool,
    random_tables,
)
from simkv.calibrate.measure.linear import stretch
from simkv.calibrate.measure.pace import attention_s, kv_bytes, layers_s, prefill_s, repeats_s
from simkv.calibrate.model import Decoder, decoder
from simkv.calibrate.plain import Sizes, plain_sizes
from simkv.calibrate.task import Bench, Task
from simkv.profile.schema import Sample

_CONTEXTS = {True: (128, 1024, 4096), False: (128, 256, 512, 1024, 2048, 4096, 8192, 16384)}
_BATCHES = {True: (1, 2, 4), False: (1, 2, 4, 8)}
_PROMPTS = {True: (128, 512, 2048), False: (128, 256, 512, 1024, 2048, 4096, 8192)}
"""By ``quick``."""
_TOKENS_A_CALL, _MOST_LAYERS = 16384, 8
_CALLS_APART = 2
"""A pool holds the KV of so many calls at least: none reads what the one before it read."""

Attending = Callable[[], list[Callable[[], object]]]
"""Returns what attends in one layer after the other of a call."""
Settings = dict[str, float | int | str | bool]


def tasks(bench: Bench) -> Iterator[Task]:
    """Yield ``decode_attention`` and ``paged_attention``, then ``prefill_attention``; what doesn't fit is left out.

    Raises :class:`InputError` for a model that isn't computed.
    """
    sizes, backend = plain_sizes(bench.model), bench.backend
    most = most_kv_bytes(backend)
    for batch in _BATCHES[bench.quick]:
        for context in _CONTEXTS[bench.quick]:
            layers = _layers_of_call(sizes, batch * context)
            if _CALLS_APART * layers * kv_bytes(backend, sizes, batch * context) > most:
                continue
            once_s = attention_s(backend, sizes, batch * context, layers) + layers_s(backend, sizes, batch, layers)
            estimate_s = repeats_s(bench, once_s) + 0.1
            for kind in _DECODE:
                measuring = partial(_decode, bench, kind, batch, context, layers)
                yield Task(f"{kind}/{batch}x{context}", estimate_s, measuring)
    for tokens in _PROMPTS[bench.quick]:
        layers = _layers_of_call(sizes, tokens * tokens // 32)
        estimate_s = repeats_s(bench, prefill_s(backend, sizes, tokens, layers))
        yield Task(f"prefill_attention/{tokens}", estimate_s, partial(_prefill, bench, tokens, layers))


def _layers_of_call(sizes: Sizes, tokens: int) -> int:
    return min(sizes.layers, max(1, min(_MOST_LAYERS, _TOKENS_A_CALL // tokens)))


def _decode(bench: Bench, kind: str, batch: int, context: int, layers: int) -> list[Sample]:
    model = decoder(bench.backend, bench.model)
    attends, more = _DECODE[kind](model, batch, context, layers)
    products = stretch(model, batch, 1)

    def once() -> float:
        watch = bench.backend.stopwatch()
        for attend in attends():
            products()
            watch.begin()
            attend()
            watch.end()
        return watch.seconds()

    at: Settings = {"batch": batch, "context": context, "layers": layers}
    return [Sample(kind=kind, at=at | more, seconds=repeated(once, bench.budget_s))]


def _contiguous(model: Decoder, batch: int, context: int, layers: int) -> tuple[Attending, Settings]:
    nbytes = _CALLS_APART * layers * kv_bytes(model.backend, model.sizes, batch * context)
    strip = KvStrip(model, max(nbytes, cold_bytes(model.backend)))
    q, _, _ = _random_qkv(model, batch)
    return lambda: [partial(model.attend, q, *strip.next(batch, context)) for _ in range(layers)], {}


def _paged(model: Decoder, batch: int, context: int, layers: int) -> tuple[Attending, Settings]:
    blocks = -(-context // BLOCK_TOKENS)
    beyond_caches = -(-cold_bytes(model.backend) // model.piece_bytes(BLOCK_TOKENS))
    slots = max(_CALLS_APART * layers * batch * blocks, beyond_caches)
    pool = random_pool(model, slots, BLOCK_TOKENS)
    turns = cycle(random_tables(model.backend, slots, layers, batch, blocks))
    q, _, _ = _random_qkv(model, batch)
    return lambda: [partial(model.attend_paged, q, pool, table, context) for table in next(turns)], {
        "block_tokens": BLOCK_TOKENS
    }


_DECODE = {"decode_attention": _contiguous, "paged_attention": _paged}


def _prefill(bench: Bench, tokens: int, layers: int) -> list[Sample]:
    model = decoder(bench.backend, bench.model)
    inputs = [[part.transpose(0, 1).unsqueeze(0) for part in _random_qkv(model, tokens)] for _ in range(layers)]
    seconds = bench.backend.time(lambda: [model.prefill(*qkv) for qkv in inputs], bench.budget_s)
    return [Sample(kind="prefill_attention", at={"tokens": tokens, "layers": layers}, seconds=seconds)]


def _random_qkv(model: Decoder, rows: int) -> list[Tensor]:
    """Return q ``[rows, heads, d]``, k and v ``[rows, kv_heads, d]``."""
    sizes = model.sizes
    where = {"dtype": model.backend.torch_dtype, "device": model.backend.device}
    wide = load_torch().empty(rows, sizes.heads + 2 * sizes.kv_heads, sizes.head_dim, **where)
    fill(wide.view(-1))
    return list(wide.split((sizes.heads, sizes.kv_heads, sizes.kv_heads), 1))
