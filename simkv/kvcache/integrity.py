"""What must hold between a prefix index's counters and its tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simkv.kvcache.index import PrefixIndex


def check_tree(index: PrefixIndex) -> None:
    """Raise AssertionError unless counters, parents, pins and candidates of ``index`` agree with its tree."""
    resident = evictable = candidates = 0
    stack = [index.root]
    while stack:
        node = stack.pop()
        for key, child in node.children.items():
            assert child.parent is node and child.key == key, "parent or key"
            assert child.blocks > 0 and child.end == node.end + child.blocks, "extent"
            assert child.refs >= 0 and (child.refs <= node.refs or node is index.root), "pins grow towards the root"
            assert not child.pending or child.refs, "pending blocks are pinned"
            assert child.resident or child.children or child.refs, "a ghost without a purpose"
            if child.resident:
                resident += child.blocks
                if child.refs == 0:
                    evictable += child.blocks
                    candidates += not (index.policy.needs_leaves and child.children)
            stack.append(child)
    assert resident == index.resident_blocks, f"resident {index.resident_blocks}, tree holds {resident}"
    assert evictable == index.evictable_blocks, f"evictable {index.evictable_blocks}, tree holds {evictable}"
    assert candidates == len(index.policy), f"{len(index.policy)} candidates, tree has {candidates}"
