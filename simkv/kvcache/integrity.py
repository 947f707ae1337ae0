"""What must hold between a prefix index's counters and its tree; INVARIANTS.md lists the laws by id."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from simkv.kvcache.index import PrefixIndex
    from simkv.kvcache.node import Node


class Breach(AssertionError):
    """A law that doesn't hold of one tier's memory."""

    def __init__(self, law: str, what: str) -> None:
        super().__init__(what)
        self.law = law


class Looked(NamedTuple):
    """What was looked at, and which transfers are bringing something in."""

    nodes: int
    transfers: tuple[int, ...]


def hold(law: str, holds: bool, what: str) -> None:
    """Raise Breach unless ``holds``."""
    if not holds:
        raise Breach(law, what)


def check_tree(index: PrefixIndex) -> Looked:
    """Raise Breach unless counters, parents, pins and candidates of ``index`` agree with its tree."""
    resident = evictable = candidates = nodes = 0
    transfers: dict[int, None] = {}
    stack = [index.root]
    while stack:
        node = stack.pop()
        for key, child in node.children.items():
            if child.parent is not node or child.key != key or child.end != node.end + child.blocks or child.blocks < 1:
                raise Breach("L3", f"{_named(child)}: parent, key or extent are not those of its place")
            if child.refs < 0 or (child.refs > node.refs and node is not index.root):
                raise Breach("L4", f"{_named(child)}: {child.refs} pins, and {node.refs} of what comes before them")
            if child.pending:
                if not child.refs:
                    raise Breach("L5", f"{_named(child)} are on their way (transfer {child.pending}) and not pinned")
                transfers[child.pending] = None
            if child.resident:
                resident += child.blocks
                if child.refs == 0:
                    evictable += child.blocks
                    candidates += not (index.policy.needs_leaves and child.children)
            elif not (child.children or child.refs):
                raise Breach("L5", f"{_named(child)} are gone, and nothing that follows them is here or held")
            nodes += 1
            stack.append(child)
    counted = index.resident_blocks, index.evictable_blocks, len(index.policy)
    hold("L3", resident == counted[0], f"{counted[0]} blocks counted as resident, the tree holds {resident}")
    hold("L5", evictable == counted[1], f"{counted[1]} blocks counted as evictable, the tree has {evictable}")
    hold("L5", candidates == counted[2], f"{counted[2]} candidates for eviction, the tree has {candidates}")
    return Looked(nodes, tuple(transfers))


def _named(node: Node) -> str:
    return f"blocks {node.end - node.blocks}..{node.end - 1} of a prefix of stream {node.spans[0][0]}"
