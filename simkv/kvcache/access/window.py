"""``window``: the newest tokens, and the attention sinks at the beginning."""

from __future__ import annotations

from simkv.kvcache.access.base import Units
from simkv.kvcache.access.spec import Window
from simkv.kvcache.access.units import Numbering, joined


class WindowPattern:
    """Reads the blocks that hold one of the newest or of the first tokens (StreamingLLM)."""

    sparse = True
    approximate = True

    def __init__(self, spec: Window, numbering: Numbering) -> None:
        self._spec = spec
        self._numbering = numbering
        self._sinks = numbering.blocks(spec.sink_tokens)
        self.groups = numbering.groups

    def open(self, request_id: int, prompt_tokens: int, output_tokens: int) -> WindowAccess:
        """Return the reads of a request."""
        self._numbering.check(request_id, prompt_tokens + output_tokens)
        return WindowAccess(self._numbering, self._spec.window_tokens, self._sinks, prompt_tokens)

    def most_units(self, tokens: int) -> int:
        """Return the units of a whole window, wherever it begins, and the sinks, or of ``tokens`` tokens."""
        most = self._sinks + self._numbering.most_newest(self._spec.window_tokens)
        return min(most, self._numbering.blocks(tokens)) * self.groups


class WindowAccess:
    """The reads of one sequence."""

    def __init__(self, numbering: Numbering, window_tokens: int, sinks: int, prompt_tokens: int) -> None:
        """``sinks`` is in blocks."""
        self._numbering = numbering
        self._window_tokens = window_tokens
        self._sinks = sinks
        self._prompt_tokens = prompt_tokens

    def reads(self, step: int) -> Units:
        """Return the units of the sinks and of the window that ends with the token of ``step``."""
        numbering, tokens = self._numbering, self._prompt_tokens + step + 1
        first, end = numbering.first_of_newest(tokens, self._window_tokens), numbering.blocks(tokens)
        if first <= self._sinks:
            return numbering.run(0, end)
        return joined([numbering.run(0, self._sinks), numbering.run(first, end)])
