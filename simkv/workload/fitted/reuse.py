"""How far back a request's prefix was last seen, measured in requests."""

from __future__ import annotations

from simkv.workload.request import PRIVATE_STREAM_BASE, Request

_Key = tuple[int, int, int]
"""``(offset on the parent, stream, start)``."""


class Passed:
    """Who went how far along a run of tokens.

    ``(tokens, request)``, the latest last, and of those before only who went further than all since.
    """

    __slots__ = ("_latest",)

    def __init__(self) -> None:
        self._latest: list[tuple[int, int]] = []

    @property
    def tokens(self) -> int:
        """How far anyone went."""
        return self._latest[0][0]

    def last(self, tokens: int) -> int:
        """Return who went at least ``tokens`` far last; -1: nobody."""
        return next((request for far, request in reversed(self._latest) if far >= tokens), -1)

    def go(self, tokens: int, request: int) -> None:
        """Note that ``request`` goes ``tokens`` far."""
        latest = self._latest
        while latest and latest[-1][0] <= tokens:
            latest.pop()
        latest.append((tokens, request))


class _Run:
    """A run of one stream behind a given prefix, and those behind it."""

    __slots__ = ("children", "passed")

    def __init__(self) -> None:
        self.passed = Passed()
        self.children: dict[_Key, _Run] = {}


class ReuseDistances:
    """Remembers all content; a request costs a dictionary look-up a span."""

    def __init__(self) -> None:
        self._root = _Run()
        self._count = 0

    def add(self, request: Request) -> tuple[int, int]:
        """Return how many leading prompt tokens were seen, and how many requests ago all of them were last.

        Both are 0 where nothing was seen. The request's own content counts as seen from now on.
        """
        self._count += 1
        run, offset, seen, last, known = self._root, 0, 0, 0, True
        left = request.prompt_tokens
        for stream, start, length in request.spans:
            if stream >= PRIVATE_STREAM_BASE:
                break
            key = (offset, stream, start)
            child = run.children.get(key)
            if child is None:
                known = False
                child = run.children[key] = _Run()
            elif known and left > 0:
                common = min(child.passed.tokens, length, left)
                seen, left = seen + common, left - common
                last = child.passed.last(common)
                known = child.passed.tokens >= length
            child.passed.go(length, self._count)
            run, offset = child, length
        return (seen, self._count - last) if seen else (0, 0)
