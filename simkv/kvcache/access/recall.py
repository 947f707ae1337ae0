"""``recall``: the newest tokens, and now and then one block of those before them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simkv.kvcache.access.base import Units
from simkv.kvcache.access.far import FarBlocks
from simkv.kvcache.access.forward import Forward
from simkv.kvcache.access.spec import Recall
from simkv.kvcache.access.units import Numbering, joined
from simkv.rng import stream


class RecallPattern:
    """Every so many steps each layer group looks one far block up."""

    sparse = True
    approximate = True

    def __init__(self, spec: Recall, numbering: Numbering, seed: int) -> None:
        self._spec = spec
        self._numbering = numbering
        self._seed = seed
        self.groups = numbering.groups

    def open(self, request_id: int, prompt_tokens: int, output_tokens: int) -> Forward:
        """Return the reads of a request."""
        self._numbering.check(request_id, prompt_tokens + output_tokens)
        return Forward(lambda: self._steps(f"access.{request_id}", prompt_tokens + 1))

    def most_units(self, tokens: int) -> int:
        """Return the units of a whole window, wherever it begins, and a far block, or of ``tokens`` tokens."""
        most = 1 + self._numbering.most_newest(self._spec.window_tokens)
        return min(most, self._numbering.blocks(tokens)) * self.groups

    def _steps(self, name: str, tokens: int) -> Iterator[Units]:
        """Yield the reads of a sequence whose streams are called ``name``, from a context of ``tokens`` on."""
        numbering, spec = self._numbering, self._spec
        picks = stream(self._seed, f"{name}.picks")
        far: FarBlocks | None = None
        step = 0
        while True:
            first = numbering.first_of_newest(tokens, spec.window_tokens)
            newest = numbering.run(first, numbering.blocks(tokens))
            if step % spec.every == 0 and first:
                if far is None:
                    far = FarBlocks(self._seed, name, self.groups, spec.skew, first)
                far.grow(first)
                yield joined([self._far_units(far, picks, first), newest])
            else:
                yield newest
            tokens += 1
            step += 1

    def _far_units(self, far: FarBlocks, picks: np.random.Generator, blocks: int) -> Units:
        """Return one unit a layer group among ``blocks`` far blocks."""
        shares, among = picks.random(self.groups), np.array([blocks])
        units = [far.draw(g, shares[g : g + 1], among)[0] * self.groups + g for g in range(self.groups)]
        return np.sort(np.array(units, dtype=np.int32))
