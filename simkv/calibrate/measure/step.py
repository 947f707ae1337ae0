"""Whole decode steps with everything resident, operation by operation what a paged engine computes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from simkv.calibrate.backend import load_torch
from simkv.calibrate.decode import decode_step
from simkv.calibrate.measure.kvpool import BLOCK_TOKENS, most_kv_bytes, random_pool, random_tables
from simkv.calibrate.measure.pace import attention_s, head_s, kv_bytes, layers_s, repeats_s
from simkv.calibrate.model import decoder
from simkv.calibrate.plain import plain_sizes
from simkv.calibrate.task import Bench, Task
from simkv.profile.schema import Sample

_CONTEXTS = {True: (512, 1024), False: (256, 1024, 4096, 16384)}
_BATCHES = {True: (1, 4), False: (1, 2, 4, 8)}
"""By ``quick``."""
_MOST_TOKENS = 32768


def tasks(bench: Bench) -> Iterator[Task]:
    """Yield ``step`` by batch and context; what doesn't fit is left out.

    Raises :class:`InputError` for a model that isn't computed.
    """
    sizes, backend = plain_sizes(bench.model), bench.backend
    most = most_kv_bytes(backend)
    for batch in _BATCHES[bench.quick]:
        for context in _CONTEXTS[bench.quick]:
            tokens = batch * context
            if tokens > _MOST_TOKENS or sizes.layers * kv_bytes(backend, sizes, tokens) > most:
                continue
            layers_take_s = layers_s(backend, sizes, batch, sizes.layers)
            once_s = layers_take_s + attention_s(backend, sizes, tokens, sizes.layers) + head_s(backend, sizes, batch)
            yield Task(f"step/{batch}x{context}", repeats_s(bench, once_s), partial(_step, bench, batch, context))


def _step(bench: Bench, batch: int, context: int) -> list[Sample]:
    backend, model = bench.backend, decoder(bench.backend, bench.model)
    blocks = -(-context // BLOCK_TOKENS)
    slots = model.layers * batch * blocks
    pool = random_pool(model, slots, BLOCK_TOKENS)
    tables = list(random_tables(backend, slots, model.layers, batch, blocks)[0])
    tokens = load_torch().arange(batch, device=backend.device)
    positions = load_torch().full_like(tokens, min(context, len(model.angles)) - 1)
    seconds = backend.time(lambda: decode_step(model, tokens, positions, pool, tables, context), bench.budget_s)
    return [Sample(kind="step", at={"batch": batch, "context": context, "block_tokens": BLOCK_TOKENS}, seconds=seconds)]
