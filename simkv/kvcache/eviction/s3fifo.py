"""S3-FIFO (Yang et al., SOSP'23): a small queue that newcomers must survive, a large one behind it, and ghosts.

As in libCacheSim by default: the small queue has a tenth of the capacity, the ghosts of what it
let go nine tenths; two uses in the small queue earn a place in the main one, which is a clock with
two bits. Until the first eviction what the small queue has no room for goes to the main one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic

from simkv.kvcache.eviction.base import E
from simkv.kvcache.eviction.ghosts import Ghosts

SMALL_SHARE, GHOST_SHARE = 0.1, 0.9
EARNED_USES = 2
MOST_USES = 3

_SMALL, _MAIN = 1, 2


class S3Fifo(Generic[E]):
    """Pinned entries keep their place in their queue and are passed over.

    The uses that count are ``e.uses - e.counted``, so a hit costs nothing. ``victim`` only looks how
    far the hands would move; they move when it has gone.
    """

    __slots__ = ("_blocks", "_chosen", "_expected", "_full", "_ghosts", "_grows", "_held", "_main", "_most_ghosts",
                 "_most_main", "_most_small", "_passes", "_small")  # fmt: skip
    needs_leaves = False
    any_order = True
    remembers = True

    def __init__(self, capacity_blocks: int | None = None) -> None:
        self.resize(capacity_blocks or 0)
        self._grows = capacity_blocks is None
        self._small: OrderedDict[E, None] = OrderedDict()
        self._main: OrderedDict[E, None] = OrderedDict()
        self._blocks = [0, 0, 0]  # by queue
        self._held: dict[E, None] = {}
        self._ghosts = Ghosts()
        self._expected: dict[Hashable, None] = {}
        """Ghosts that are coming."""
        self._full = False
        self._chosen: E | None = None
        self._passes = False
        """Whether the hands pass somebody on their way to the chosen one."""

    def resize(self, capacity_blocks: int) -> None:
        """Go by another capacity from now on; entries keep their places."""
        self._most_small = int(capacity_blocks * SMALL_SHARE)
        self._most_main = capacity_blocks - self._most_small
        self._most_ghosts = int(capacity_blocks * GHOST_SHARE)

    def coming(self, key: Hashable) -> None:
        """Look for the ghost ``key`` before an eviction can make it fade."""
        if self._ghosts.take(key):
            self._expected[key] = None

    def add(self, e: E) -> None:
        """Let ``e`` in, or let it be a candidate again where it stands."""
        self._chosen = None
        if e.queue:
            del self._held[e]
            return
        key = e.key
        ghost = key in self._expected
        if ghost:
            del self._expected[key]
        else:
            ghost = self._ghosts.take(key)
        early = not self._full and self._blocks[_SMALL] >= self._most_small
        self._append(e, _MAIN if ghost or early else _SMALL)
        e.counted = 1
        if self._grows and sum(self._blocks) > self._most_small + self._most_main:
            self.resize(sum(self._blocks))

    def _append(self, e: E, queue: int) -> None:
        (self._small if queue == _SMALL else self._main)[e] = None
        e.queue = queue
        self._blocks[queue] += e.blocks

    def discard(self, e: E) -> None:
        """Pass over ``e`` from now on."""
        if not e.queue or e in self._held:
            raise KeyError(e)
        self._held[e] = None
        if e is not self._chosen:
            self._chosen = None

    def victim(self) -> E | None:
        """Return the first of the small queue that hasn't earned more, else whom the clock of the main one stops at."""
        held, promoted, spare = self._held, None, None
        over = self._blocks[_MAIN] > self._most_main
        for e in self._small:
            if e in held:
                continue
            spare = spare or e
            if over:
                break
            if e.uses - e.counted < EARNED_USES:
                self._chosen, self._passes = e, promoted is not None
                return e
            promoted = promoted or e
        self._chosen, self._passes = self._of_main(promoted) or spare, True
        return self._chosen

    def _of_main(self, promoted: E | None) -> E | None:
        """Return the first with the fewest bits; ``promoted`` comes after all of them, without bits."""
        held, best, fewest = self._held, promoted, MOST_USES + 1 if promoted is None else 1
        for e in self._main:
            bits = min(e.uses - e.counted, MOST_USES)
            if bits < fewest and e not in held:
                if not bits:
                    return e
                best, fewest = e, bits
        return best

    def evicted(self, e: E) -> None:
        """Move the hands to where ``e`` was chosen; what the small queue let go becomes a ghost."""
        if not e.queue:
            return
        del self._held[e]
        if e is self._chosen and self._passes:
            if self._blocks[_MAIN] <= self._most_main:
                self._promote(e)
            if e.queue == _MAIN:
                self._turn(e)
        self._chosen = None
        self._full = True
        queue = e.queue
        del (self._small if queue == _SMALL else self._main)[e]
        self._blocks[queue] -= e.blocks
        if queue == _SMALL:
            self._remember(e.key, e.blocks)
        e.queue = 0

    def _promote(self, until: E) -> None:
        """Move those of the small queue up to ``until`` to the main one that earned it."""
        passed = []
        for e in self._small:
            earned = e.uses - e.counted >= EARNED_USES
            if earned and e not in self._held:
                passed.append(e)
            if e is until and not earned:
                break
        for e in passed:
            del self._small[e]
            self._blocks[_SMALL] -= e.blocks
            self._append(e, _MAIN)
            e.counted = e.uses

    def _turn(self, until: E) -> None:
        """Turn the clock of the main queue until it stops at ``until``, taking a bit from all it passes."""
        main, held = self._main, self._held
        while True:
            e = next(iter(main))
            bits = min(e.uses - e.counted, MOST_USES)
            if e is until and not bits:
                return
            main.move_to_end(e)
            if e not in held:
                e.counted = e.uses - max(bits - 1, 0)

    def _remember(self, key: Hashable, blocks: int) -> None:
        """Make ``key`` the newest ghost, if there is room for ghosts."""
        ghosts, most = self._ghosts, self._most_ghosts
        while ghosts.blocks and ghosts.blocks + blocks > most:
            ghosts.drop_oldest()
        if blocks <= most:
            ghosts.add(key, blocks)

    def trimmed(self, e: E, blocks: int, key: Hashable) -> None:
        """Make the end of ``e`` a ghost, where the small queue let it go; the rest is chosen next."""
        self._full = True
        self._blocks[e.queue] -= blocks
        if e.queue == _SMALL:
            self._remember(key, blocks)

    def split(self, e: E, upper: E) -> None:
        """Give ``upper`` a place at the end of the queue of ``e``, held."""
        upper.queue = e.queue
        upper.counted = e.counted
        if e.queue:
            (self._small if e.queue == _SMALL else self._main)[upper] = None
            self._held[upper] = None
        self._chosen = None

    def __len__(self) -> int:
        return len(self._small) + len(self._main) - len(self._held)
