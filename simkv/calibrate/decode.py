"""One decode step through block tables, as a paged engine computes it, with a hook before each layer's attention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from simkv.calibrate.backend import Tensor
from simkv.calibrate.model import Decoder

Before = Callable[[int], None]
"""Called with a layer once its Q, K and V are computed and before its attention: the time to wait for pieces."""
After = Callable[[int, Tensor], None]
"""Called with a layer and its attention's output ``[batch, heads*d]``."""


def decode_step(
    model: Decoder,
    tokens: Tensor,
    positions: Tensor,
    pool: Tensor,
    tables: Sequence[Tensor],
    length: int,
    before: Before | None = None,
    after: After | None = None,
) -> Tensor:
    """Return the next token of each sequence ``[batch]``, writing this one's K and V into the pool.

    ``tokens``, ``positions``: of the token that is put in, ``[batch]``. ``pool``: as :meth:`Decoder.view_pool` gives
    it, pieces of all layers. ``tables[layer]``: slots of the pieces that are read, ``[batch, blocks]``, the block that
    takes the new token last; looked up after ``before(layer)``. ``length``: tokens of each row that are valid, the new
    one included.
    """
    x = model.embed(tokens)
    x = decode_layers(model, range(model.layers), x, positions, pool, tables, length, before, after)
    return model.head(x)


def decode_layers(
    model: Decoder,
    layers: Iterable[int],
    x: Tensor,
    positions: Tensor,
    pool: Tensor,
    tables: Sequence[Tensor],
    length: int,
    before: Before | None = None,
    after: After | None = None,
) -> Tensor:
    """Return what comes out of ``layers`` ``[batch, hidden]``; everything else as in :func:`decode_step`."""
    offset = (length - 1) % pool.shape[3]
    for layer in layers:
        q, k, v = model.project(layer, x, positions)
        if before is not None:
            before(layer)
        table = tables[layer]
        model.write(pool, table[:, -1], offset, k, v)
        attention = model.attend_paged(q, pool, table, length)
        if after is not None:
            after(layer, attention)
        x = model.close(layer, x, attention)
    return x
