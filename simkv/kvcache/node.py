"""The nodes of a prefix index, and what can be told from a path of them alone."""

from __future__ import annotations

from typing import NamedTuple

from simkv.kvcache.eviction.base import DEFAULT_PRIORITY
from simkv.kvcache.spans import Key, advance, block_key, common_tokens, cut, locate, merged
from simkv.workload.request import Spans


class Node:
    """An extent: ``blocks`` consecutive blocks of one prefix, below ``parent``."""

    __slots__ = (
        "blocks",
        "children",
        "counted",
        "depth",
        "end",
        "inserted",
        "key",
        "last_use",
        "offset",
        "parent",
        "pending",
        "priority",
        "queue",
        "refs",
        "resident",
        "span",
        "spans",
        "uses",
    )

    def __init__(self, parent: Node | None, key: Key, spans: Spans, span: int, offset: int, blocks: int, end: int):
        self.parent = parent
        self.key = key
        self.children: dict[Key, Node] = {}
        self.spans = spans
        self.span = span
        self.offset = offset
        self.blocks = blocks
        self.end = end
        self.depth = end
        """``end`` when the node was made: policies order by it, so it must not move."""
        self.refs = 0
        self.uses = 0
        self.last_use = 0
        self.inserted = 0
        self.priority = DEFAULT_PRIORITY
        self.queue = self.counted = 0  # the eviction policy's notes
        self.resident = True
        self.pending = 0
        """Id of the transfer that is bringing it in; 0 when it is here."""


class Match(NamedTuple):
    """How far a prefix is resident: up to block ``end``, which lies in (or at the end of) ``node``."""

    node: Node
    end: int
    pending: int
    """Id of the transfer that stopped the match (its blocks come next), or 0."""


class Extent(NamedTuple):
    """Blocks ``start .. end-1`` of the prefix ``spans``."""

    spans: Spans
    start: int
    end: int
    priority: int | None = None
    """What they are worth to the eviction policy; None: nothing in particular."""


def path_extent(node: Node, start: int, end: int, block_tokens: int) -> Extent:
    """Return blocks ``start .. end-1`` of the path to ``node`` as an extent with spans from the root."""
    parts: list[tuple[int, int, int]] = []
    chain: list[Node] = []
    at: Node | None = node
    while at is not None and at.parent is not None:
        chain.append(at)
        at = at.parent
    for part in reversed(chain):
        parts.extend(cut(part.spans, part.span, part.offset, part.blocks * block_tokens))
    return Extent(merged(parts), start, end, node.priority)


def shared_blocks(node: Node, spans: Spans, span: int, offset: int, most: int, block_tokens: int) -> int:
    """Return how many of the first blocks of ``node``, at most ``most``, are those of ``spans`` from there on."""
    tokens = min(node.blocks, most) * block_tokens
    return common_tokens(node.spans, node.span, node.offset, spans, span, offset, tokens) // block_tokens


def held_below(node: Node, spans: Spans, end: int, block_tokens: int) -> int:
    """Return how many blocks from ``node`` down to ``end`` somebody holds already: they can't go, nor need room."""
    if not node.children:
        return 0
    at, held = node.end, 0
    span, offset = locate(spans, at * block_tokens)
    while at < end:
        key = block_key(spans, span, offset, block_tokens)
        child = node.children.get(key) if key is not None else None
        if child is None:
            break
        blocks = shared_blocks(child, spans, span, offset, end - at, block_tokens)
        at += blocks
        held += blocks if child.resident and child.refs else 0
        if blocks < child.blocks:
            break
        node = child
        span, offset = advance(spans, span, offset, blocks * block_tokens)
    return held


def tail_below(head: Node) -> Node:
    """Return the leaf below unpinned ``head`` to which the least recently used children lead; it is resident."""
    while head.children:
        head = min(head.children.values(), key=lambda child: child.last_use)
    return head


def unpinned_blocks(match: Match) -> int:
    """Return how many of the matched blocks may be evicted now (pinning them takes them away)."""
    node, end = match.node, match.end
    blocks = 0
    at: Node | None = node
    while at is not None and at.parent is not None:
        if at.refs:
            break
        blocks += at.blocks - max(0, at.end - end)
        at = at.parent
    return blocks


def used_depth(handle: Node, uses: int) -> int:
    """Return how deep the path to ``handle`` has been used at least ``uses`` times, in blocks."""
    at: Node | None = handle
    while at is not None and at.parent is not None:
        if at.uses >= uses:
            return at.end
        at = at.parent
    return 0


def here_stretches(handle: Node) -> list[tuple[int, int]]:
    """Return the stretches ``(start, end)`` of the path to ``handle`` that are here, in order from the root."""
    found: list[tuple[int, int]] = []
    at: Node | None = handle
    while at is not None and at.parent is not None:
        if at.resident and not at.pending:
            start, end = at.end - at.blocks, at.end
            if found and found[-1][0] == end:
                end = found.pop()[1]
            found.append((start, end))
        at = at.parent
    return found[::-1]


def key_after(node: Node, block_tokens: int) -> Key:
    """Return the key of the block that followed ``node`` before its end was cut off."""
    span, offset = advance(node.spans, node.span, node.offset, node.blocks * block_tokens)
    key = block_key(node.spans, span, offset, block_tokens)
    assert key is not None
    return key
