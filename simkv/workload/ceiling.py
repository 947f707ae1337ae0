"""The ceiling on prefix hits: what a cache that never forgets would hit, in order of arrival.

A tree of runs of token content. A node is a run of one stream as it follows a given prefix, and
as long as anyone has gone along it; children hang on it at the offset where they left it. A
request costs one dictionary look-up a span, whatever its tokens, and a growing session keeps one
node. Private streams can't come again and are not remembered.
"""

from __future__ import annotations

from simkv.workload.request import PRIVATE_STREAM_BASE, Request

_Key = tuple[int, int, int]
"""``(offset on the parent, stream, start)``."""


class _Node:
    __slots__ = ("children", "length")

    def __init__(self, length: int) -> None:
        self.length = length
        self.children: dict[_Key, _Node] | None = None


class Ceiling:
    """Counts, request by request, the leading tokens that a cache without limit would hold."""

    def __init__(self, block_tokens: int) -> None:
        """``block_tokens``: hits come in full blocks of so many tokens; 1 counts tokens."""
        self._block_tokens = block_tokens
        self._root = _Node(0)
        self._heads: dict[int, list[tuple[_Node, _Key]]] = {}
        """By stream: where its runs hang on the root or on a run of another stream."""

    def add(self, request: Request) -> int:
        """Return the hit of ``request`` in tokens and remember its prompt and output as seen.

        The hit is full blocks only and leaves at least one prompt token to compute.
        """
        seen = self._walk(request)
        hit = min(seen, request.prompt_tokens - 1)
        return hit - hit % self._block_tokens

    def add_uncapped(self, request: Request) -> int:
        """Like :meth:`add`, but return all leading prompt tokens that were seen: no blocks, no last token."""
        return min(self._walk(request), request.prompt_tokens)

    def forget(self, request: Request) -> None:
        """Drop the last stream of ``request`` that isn't private, and all that follows it: a session that is over."""
        own = next((stream for stream, _, _ in reversed(request.spans) if stream < PRIVATE_STREAM_BASE), -1)
        for node, key in self._heads.pop(own, ()):
            assert node.children is not None
            del node.children[key]

    def __len__(self) -> int:
        """Return how many runs are remembered."""
        count, stack = 0, [self._root]
        while stack:
            children = stack.pop().children
            if children:
                count += len(children)
                stack.extend(children.values())
        return count

    def _walk(self, request: Request) -> int:
        """Return how many leading tokens were seen before, and see them all."""
        node, above, offset, seen, known = self._root, -1, 0, 0, True
        for stream, start, length in request.spans:
            if stream >= PRIVATE_STREAM_BASE:
                break
            key = (offset, stream, start)
            if node.children is None:
                node.children = {}
            child = node.children.get(key)
            if child is None:
                known = False
                child = node.children[key] = _Node(length)
                if stream != above:
                    self._heads.setdefault(stream, []).append((node, key))
            else:
                if known:
                    seen += min(child.length, length)
                    known = child.length >= length
                if child.length < length:
                    child.length = length
            node, above, offset = child, stream, length
        return seen
