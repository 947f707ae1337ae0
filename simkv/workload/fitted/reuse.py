"""How far back a request's prefix was last seen, measured in requests."""

from __future__ import annotations

from simkv.workload.request import PRIVATE_STREAM_BASE, Request

_Key = tuple[int, int, int]
"""``(offset on the parent, stream, start)``."""


class _Run:
    """A run of one stream behind a given prefix: as long as anyone went along it, and who did so last."""

    __slots__ = ("children", "last", "length")

    def __init__(self) -> None:
        self.length = 0
        self.last = 0
        self.children: dict[_Key, _Run] = {}


class ReuseDistances:
    """Remembers all content; a request costs a dictionary look-up a span."""

    def __init__(self) -> None:
        self._root = _Run()
        self._count = 0

    def add(self, request: Request) -> tuple[int, int]:
        """Return how many leading prompt tokens were seen, and how many requests ago their end was passed last.

        Both are 0 where nothing was seen. The request's own content counts as seen from now on.
        """
        self._count += 1
        run, offset, seen, last, known = self._root, 0, 0, 0, True
        for stream, start, length in request.spans:
            if stream >= PRIVATE_STREAM_BASE:
                break
            key = (offset, stream, start)
            child = run.children.get(key)
            if child is None:
                known = False
                child = run.children[key] = _Run()
            elif known:
                seen += min(child.length, length)
                last = child.last
                known = child.length >= length
            child.length = max(child.length, length)
            child.last = self._count
            run, offset = child, length
        seen = min(seen, request.prompt_tokens)
        return (seen, self._count - last) if seen else (0, 0)
