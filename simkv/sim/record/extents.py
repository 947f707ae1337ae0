"""What a prefix index holds, the most recently used first, without looking at all of it."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf

from simkv.kvcache.index import PrefixIndex
from simkv.kvcache.node import Node


def latest(index: PrefixIndex, most: int) -> list[Node]:
    """Return the resident nodes among the ``most`` used last, what is pinned before all; nearly in that order.

    A node is used with all above it, so what was used last is below what was used last.
    """
    order = 0
    heap: list[tuple[float, int, Node]] = []
    for child in index.root.children.values():
        heap.append((_age(child), order, child))
        order += 1
    heapify(heap)
    found: list[Node] = []
    while heap and most > 0:
        node = heappop(heap)[2]
        most -= 1
        if node.resident:
            found.append(node)
        for child in node.children.values():
            heappush(heap, (_age(child), order, child))
            order += 1
    return found


def _age(node: Node) -> float:
    return -inf if node.refs else -node.last_use
