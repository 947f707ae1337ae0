"""How large the caches are to be: in blocks, or in bytes of a model's KV."""

from __future__ import annotations

from dataclasses import dataclass

from simkv import units
from simkv.errors import InputError, Problem
from simkv.formulas import kv_size
from simkv.model import ModelShape

DEFAULT_CAPACITIES = 6


@dataclass(frozen=True)
class Capacities:
    """Capacities as written (blocks or sizes; none: halvings of what the trace has), and whose KV they hold."""

    texts: tuple[str, ...] = ()
    model: ModelShape | None = None
    kv_dtype: str = "auto"

    def block_bytes(self, block_tokens: int) -> int | None:
        """Return the bytes of a block of KV, all layers, all ranks; None without a model."""
        if self.model is None:
            return None
        return kv_size.block_bytes(self.model, block_tokens, self.kv_dtype)

    def blocks(self, block_tokens: int, distinct_blocks: int) -> list[int]:
        """Return the capacities in blocks, each once, ascending; raises InputError for one that isn't any."""
        if not self.texts:
            return halvings(distinct_blocks)
        block_bytes = self.block_bytes(block_tokens)
        return sorted({_parsed(text, block_bytes) for text in self.texts})


def halvings(distinct_blocks: int) -> list[int]:
    """Return halves of ``distinct_blocks``, quarters and so on, to two digits."""
    found = {_round(distinct_blocks / 2**k) for k in range(1, DEFAULT_CAPACITIES + 1)}
    return sorted(capacity for capacity in found if capacity) or [1]


def _round(value: float) -> int:
    whole = round(value)
    return round(whole, 2 - len(str(whole)))


def _parsed(text: str, block_bytes: int | None) -> int:
    text = text.strip()
    try:
        if text.replace("_", "").isdecimal():
            blocks = int(units.parse(text, "count"))
        elif block_bytes is None:
            mend = "write a number of blocks, or name the model whose KV it is: --model llama-3.1-8b"
            raise InputError(Problem("is no number of blocks", mend, path="--capacity", value=units.shown(text)))
        else:
            blocks = int(_finite(units.parse(text, "size"), text)) // block_bytes
    except units.QuantityError as error:
        raise InputError(Problem(error.reason, error.mend, path="--capacity", value=units.shown(text))) from None
    if not blocks:
        mend = "give one block at least" + (f", {units.short(block_bytes, 'size')}" if block_bytes else "")
        raise InputError(Problem("holds no block", mend, path="--capacity", value=units.shown(text)))
    return blocks


def _finite(size_bytes: float, text: str) -> float:
    if size_bytes == float("inf"):
        mend = "the ceiling is what a cache without limit hits, and is always shown"
        raise InputError(Problem("is infinite", mend, path="--capacity", value=units.shown(text)))
    return size_bytes
