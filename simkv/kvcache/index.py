"""The prefix index of one tier: a radix tree whose nodes are extents (runs of blocks).

It knows what is resident, what is pinned and what may be evicted; it has no clock and never
decides *whether* to keep something, only carries out what :class:`simkv.kvcache.pool.KVPool`
and an eviction policy say. A 12,000-token prompt costs a few node visits at any block size.

Words: a *handle* is the deepest node of a pinned path; ``end`` is a node's distance in blocks
from the root to its end. A *ghost* is a node whose blocks are not here (a lower tier that took
only the tail of a prefix); a *pending* node's blocks are still on their way in.
"""

from __future__ import annotations

from simkv.kvcache.eviction.base import EvictionPolicy
from simkv.kvcache.integrity import Looked, check_tree
from simkv.kvcache.node import Extent, Match, Node, here_stretches, key_after, path_extent, shared_blocks, tail_below
from simkv.kvcache.spans import Key, advance, block_key, common_tokens, locate
from simkv.kvcache.watch import Watch
from simkv.workload.request import Spans


class PrefixIndex:
    """Residency of one tier. Not thread-safe; every mutator keeps :meth:`check_integrity` true."""

    def __init__(self, block_tokens: int, policy: EvictionPolicy[Node], merge: bool, whole: bool = False) -> None:
        """``merge``: grow a private leaf in place (only where the policy doesn't look at use counts).

        ``whole``: a node is evicted whole (what one insertion brought below what was there), not block by block.
        """
        self.block_tokens = block_tokens
        self.policy = policy
        self.merge = merge
        self.whole = whole
        self.root = Node(None, (), (), 0, 0, 0, 0)
        self.root.refs = 1
        self.resident_blocks = 0
        self.evictable_blocks = 0
        self.evictions = 0
        self._sequence = 0
        self.watch: Watch | None = None
        """Who sees blocks come, be used and go; None: nobody."""

    @property
    def sequence(self) -> int:
        """How many uses there were so far, as ``Node.last_use`` counts them."""
        return self._sequence

    # ---- queries (no side effects)

    def match(self, spans: Spans, limit: int, start: int = 0) -> Match:
        """Return how far the blocks ``start .. limit-1`` of ``spans`` are resident without a gap.

        Blocks before ``start`` need only be known, not resident. ``Match.end`` is below ``start``
        where even the path to it is unknown. Mutates nothing.
        """
        block_tokens = self.block_tokens
        node = self.root
        end = span = offset = 0
        spans_count = len(spans)
        while end < limit and span < spans_count:
            stream, first, length = spans[span]
            run = length - offset
            key = (stream, first + offset) if run >= block_tokens else block_key(spans, span, offset, block_tokens)
            child = node.children.get(key)  # type: ignore[arg-type]
            if child is None:
                break
            blocks = limit - end
            if blocks > child.blocks:
                blocks = child.blocks
            tokens = blocks * block_tokens
            if run < tokens or child.spans[child.span][2] - child.offset < tokens:  # else: one run, equal by its key
                tokens = common_tokens(child.spans, child.span, child.offset, spans, span, offset, tokens)
                blocks = tokens // block_tokens
                tokens = blocks * block_tokens
            if (child.pending or not child.resident) and end + blocks > start:
                return Match(node, end, child.pending)
            end += blocks
            if blocks < child.blocks:
                return Match(child, end, 0)
            node = child
            offset += tokens
            while span < spans_count and offset >= spans[span][2]:
                offset -= spans[span][2]
                span += 1
        return Match(node, end, 0)

    # ---- pins

    def pin(self, match: Match, use: bool = True, priority: int | None = None) -> Node:
        """Pin the matched path, splitting its last node where the match ends inside it; return the handle.

        ``use=False`` holds it without counting as a use (a transfer that reads it for another tier);
        ``priority`` is what its blocks are worth from now on, None: as before.
        """
        node, end = match.node, match.end
        if node.end > end:
            node = self._split(node, node.blocks - (node.end - end))
        self._pin_path(node, use, priority)
        return node

    def _pin_path(self, node: Node, use: bool, priority: int | None) -> None:
        self._sequence += 1
        sequence = self._sequence
        at: Node | None = node
        while at is not None and at.parent is not None:
            if at.refs == 0 and at.resident:
                self._withdraw(at)
            at.refs += 1
            if use:
                at.uses += 1
                at.last_use = sequence
            if priority is not None:
                at.priority = priority
            at = at.parent
        if use and (watch := self.watch) is not None:
            for start, end in here_stretches(node):
                watch.used(node.spans, start, end)

    def _withdraw(self, node: Node) -> None:
        """Take a resident unpinned node out of what may be evicted."""
        self.evictable_blocks -= node.blocks
        if not self.policy.needs_leaves or not node.children:
            self.policy.discard(node)

    def unpin(self, node: Node) -> None:
        """Release a handle; what nobody holds any more becomes evictable, tails first."""
        policy = self.policy
        leaves_only = policy.needs_leaves
        at = node
        while at.parent is not None:
            parent = at.parent
            at.refs -= 1
            if at.refs == 0:
                if at.resident:
                    self._sequence += 1
                    at.last_use = self._sequence
                    self.evictable_blocks += at.blocks
                    if not leaves_only or not at.children:
                        policy.add(at)
                else:
                    self._drop_ghosts(at)
            at = parent

    # ---- contents

    def extend(
        self,
        node: Node,
        spans: Spans,
        end: int,
        pending: int = 0,
        resident: bool = True,
        priority: int | None = None,
    ) -> tuple[Node, int]:
        """Extend the pinned path at ``node`` down to block ``end`` of ``spans``; pins move with it.

        Returns the new handle and how many blocks became resident that were not (known ones are
        pinned, not duplicated). ``pending`` marks the new blocks as on their way in. With
        ``resident=False`` unknown blocks are entered as ghosts. ``priority`` is what all of them are
        worth from now on; None: known ones as before, new ones the default.
        """
        block_tokens = self.block_tokens
        added = 0
        start = node.end
        if start >= end:
            return node, 0
        if self.merge and node.refs == 1 and not node.children and self._grow(node, spans, end, pending, resident):
            return node, end - start
        span, offset = locate(spans, start * block_tokens)
        while node.end < end:
            key = block_key(spans, span, offset, block_tokens)
            assert key is not None, "extend beyond the content"
            child = node.children.get(key)
            if child is None:
                added += self._append(node, key, spans, span, offset, end, pending, resident)
                child = node.children[key]
                if priority is not None:
                    child.priority = priority
                return child, added
            blocks = shared_blocks(child, spans, span, offset, end - node.end, block_tokens)
            if blocks < child.blocks:
                child = self._split(child, blocks)
            added += self._claim(child, pending, resident)
            if priority is not None:
                child.priority = priority
            node = child
            span, offset = advance(spans, span, offset, blocks * block_tokens)
        return node, added

    def _claim(self, child: Node, pending: int, resident: bool) -> int:
        """Pin one known node that an extension runs over; bring a ghost to life."""
        self._sequence += 1
        if child.refs == 0 and child.resident:
            self._withdraw(child)
        child.refs += 1
        child.uses += 1
        child.last_use = self._sequence
        if child.resident or not resident:
            if self.watch is not None and child.resident and not child.pending:
                self.watch.used(child.spans, child.end - child.blocks, child.end)
            return 0
        child.resident = True
        child.pending = pending
        child.uses = 1
        child.inserted = self._sequence
        self.resident_blocks += child.blocks
        if self.watch is not None:
            self.watch.entered(child.spans, child.end - child.blocks, child.end, pending)
        return child.blocks

    def _append(
        self, node: Node, key: Key, spans: Spans, span: int, offset: int, end: int, pending: int, resident: bool
    ) -> int:
        """Add the unknown blocks up to ``end`` below pinned ``node`` as a new leaf, pinned."""
        blocks = end - node.end
        self._sequence += 1
        child = Node(node, key, spans, span, offset, blocks, end)
        child.refs = 1
        child.uses = 1
        child.last_use = child.inserted = self._sequence
        child.resident = resident
        child.pending = pending if resident else 0
        node.children[key] = child
        if not resident:
            return 0
        self.resident_blocks += blocks
        if self.watch is not None:
            self.watch.entered(spans, end - blocks, end, pending)
        return blocks

    def _grow(self, node: Node, spans: Spans, end: int, pending: int, resident: bool) -> bool:
        """Grow a leaf that nobody else holds in place, where that tells the same as a new child would."""
        if not resident or not node.resident or node.pending != pending or node.parent is None:
            return False
        if node.spans is not spans:
            node.span, node.offset = locate(spans, (node.end - node.blocks) * self.block_tokens)
            node.spans = spans
        self.resident_blocks += end - node.end
        if self.watch is not None:
            self.watch.entered(spans, node.end, end, pending)
        node.blocks += end - node.end
        node.end = end
        return True

    def arrived(self, node: Node, spans: Spans, transfer: int) -> None:
        """Mark what ``transfer`` brought in on the path ``spans`` to ``node`` as here."""
        at: Node | None = node
        while at is not None:
            if at.pending == transfer:
                at.pending = 0
                if self.watch is not None:
                    self.watch.arrived(at.spans, at.end - at.blocks, at.end, transfer)
            at = at.parent
        if self.merge:
            self._compact(node, spans)

    def _compact(self, node: Node, spans: Spans) -> None:
        """Let a pinned node absorb the parents that exactly its own holders hold: fewer nodes to walk."""
        parent = node.parent
        while parent is not None and parent.parent is not None and len(parent.children) == 1:
            same = parent.refs == node.refs > 0 and parent.resident and node.resident
            if not same or parent.pending or node.pending:
                return
            node.blocks += parent.blocks
            node.spans = spans
            node.span, node.offset = locate(spans, (node.end - node.blocks) * self.block_tokens)
            node.key = parent.key
            node.parent = parent.parent
            parent.parent.children[node.key] = node
            parent = node.parent

    def evict(self, blocks: int, taken: list[Extent] | None = None) -> int:
        """Evict ``blocks`` blocks in the policy's order, tails first; return how many went.

        Fewer go where the rest is pinned; more where the last victim goes whole: the middle of a prefix always does.
        ``taken`` collects the evicted extents where the caller wants to move them elsewhere.
        """
        policy = self.policy
        left = blocks
        while left > 0:
            victim = policy.victim()
            if victim is None:
                break
            if policy.any_order and victim.children:
                victim = tail_below(victim)
            if left < victim.blocks and taken is None and not victim.children and not self.whole:
                self._trim(victim, left)
                return blocks
            take = victim.blocks if victim.children or self.whole else min(left, victim.blocks)
            if taken is not None:
                taken.append(path_extent(victim, victim.end - take, victim.end, self.block_tokens))
            self._shorten(victim, take)
            left -= take
        return blocks - left

    def remove(self, spans: Spans, start: int, end: int) -> int:
        """Remove the unpinned resident blocks ``start .. end-1`` of ``spans`` (they moved away); return how many."""
        self.unpin(self.pin(self.match(spans, start, start), use=False))  # a node border at ``start``
        handle = self.pin(self.match(spans, end, start), use=False)
        path: list[Node] = []
        at: Node | None = handle
        while at is not None and at.end > start:
            path.append(at)
            at = at.parent
        self.unpin(handle)
        gone = 0
        for node in path:
            if node.refs == 0 and node.resident and node.parent is not None:
                gone += node.blocks
                self._shorten(node, node.blocks)
        return gone

    def _shorten(self, node: Node, blocks: int) -> None:
        assert node.refs == 0 and node.resident and 0 < blocks <= node.blocks
        assert blocks == node.blocks or not node.children
        policy = self.policy
        if blocks < node.blocks:
            self._trim(node, blocks)
            return
        self.evictions += blocks
        self.resident_blocks -= blocks
        self.evictable_blocks -= blocks
        if self.watch is not None:
            self.watch.left(node.spans, node.end - blocks, node.end)
        if not policy.needs_leaves or not node.children:
            policy.discard(node)
            policy.evicted(node)
        if node.children:
            node.resident = False
            return
        self._detach(node)

    def _trim(self, node: Node, blocks: int) -> None:
        """Cut ``blocks`` blocks, not all, off the end of an evictable leaf."""
        self.evictions += blocks
        self.resident_blocks -= blocks
        self.evictable_blocks -= blocks
        if self.watch is not None:
            self.watch.left(node.spans, node.end - blocks, node.end)
        node.blocks -= blocks
        node.end -= blocks
        if self.policy.remembers:
            self.policy.trimmed(node, blocks, key_after(node, self.block_tokens))

    def _detach(self, node: Node) -> None:
        """Cut an empty or ghost leaf off, and the ghosts above that it alone kept."""
        parent = node.parent
        assert parent is not None
        del parent.children[node.key]
        node.parent = None
        if parent.parent is None or parent.refs or parent.children:
            return
        if not parent.resident:
            self._detach(parent)
        elif self.policy.needs_leaves:
            self.policy.add(parent)

    def _drop_ghosts(self, node: Node) -> None:
        if not node.children and node.parent is not None:
            self._detach(node)

    def _split(self, node: Node, blocks: int) -> Node:
        """Split ``node`` after its first ``blocks`` blocks; the new upper node is returned and must be pinned next.

        ``node`` stays the lower part, so handles and its place in the policy's order stay valid.
        """
        assert 0 < blocks < node.blocks
        parent = node.parent
        assert parent is not None
        upper = Node(parent, node.key, node.spans, node.span, node.offset, blocks, node.end - node.blocks + blocks)
        upper.refs = node.refs
        upper.uses = node.uses
        upper.last_use = node.last_use
        upper.inserted = node.inserted
        upper.priority = node.priority
        upper.resident = node.resident
        upper.pending = node.pending
        parent.children[node.key] = upper
        node.span, node.offset = advance(node.spans, node.span, node.offset, blocks * self.block_tokens)
        key = block_key(node.spans, node.span, node.offset, self.block_tokens)
        assert key is not None
        node.key = key
        node.parent = upper
        node.blocks -= blocks
        upper.children[key] = node
        if node.resident:
            self.policy.split(node, upper)
        if upper.refs == 0 and upper.resident and not self.policy.needs_leaves:
            self.policy.add(upper)
        return upper

    def check_integrity(self) -> Looked:
        """Raise Breach (an AssertionError) unless counters, parents, pins and candidates agree with the tree."""
        return check_tree(self)
