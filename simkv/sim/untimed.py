"""Serving without time: what a request leaves in the tiers of its replica, by the same policies as in a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from simkv.kvcache.node import Match, Node, unpinned_blocks
from simkv.sim.active.engine import ActiveEngine
from simkv.sim.config import OffloadConfig
from simkv.sim.engine import Engine
from simkv.sim.fabric import DEMAND, Lane
from simkv.sim.live import Live
from simkv.sim.prefetch import promote
from simkv.sim.record.errand import Errand
from simkv.sim.tiers import LowerHit

if TYPE_CHECKING:
    from simkv.sim.replica import ReplicaEngine


class UntimedLane:
    """Carries everything at once, and counts nothing: what is submitted is through at the next :meth:`flush`."""

    def __init__(self) -> None:
        self._through: list[Callable[[], None]] = []

    def submit(
        self,
        nbytes: int,
        descriptors: int,
        priority: int,
        done: Callable[[], None],
        rank: int = 0,
        *,
        errand: Errand | None = None,
    ) -> None:
        """Take a transfer."""
        self._through.append(done)

    def flush(self) -> None:
        """Let all transfers be through, and those that they lead to."""
        while self._through:
            through, self._through = self._through, []
            for done in through:
                done()


class Untimed(Protocol):
    """Serves one replica's requests without time."""

    def arrive(self, live: Live) -> None:
        """Take ``live`` in: find what is cached, keep what its prompt makes."""

    def end(self, live: Live) -> None:
        """Let ``live`` go with all of its output."""


@contextmanager
def at_once(engines: Sequence[ReplicaEngine]) -> Iterator[UntimedLane]:
    """Have one lane that takes no time in the place of all lanes of ``engines`` and their hosts."""
    lane = UntimedLane()
    own: list[tuple[Any, str, Lane]] = []
    for engine in engines:
        tiers = engine.tiers
        for holder, name in ((tiers, "h2d"), (tiers, "d2h"), (tiers.host, "ssd_read"), (tiers.host, "ssd_write")):
            own.append((holder, name, getattr(holder, name)))
            setattr(holder, name, lane)
    yield lane
    for holder, name, before in reversed(own):
        setattr(holder, name, before)


def untimed(engine: ReplicaEngine, offload: OffloadConfig, lane: UntimedLane) -> Untimed | None:
    """Return what serves ``engine`` without time; None where nothing is left for others there."""
    if isinstance(engine, Engine):
        return UntimedReuse(engine, offload, lane)
    if isinstance(engine, ActiveEngine) and engine.active.reuse:
        return UntimedSharing(engine)
    return None


class UntimedReuse:
    """Prefix reuse: blocks of VRAM taken, shared, written down, evicted and loaded as in a run, all at once."""

    def __init__(self, engine: Engine, offload: OffloadConfig, lane: UntimedLane) -> None:
        self.engine = engine
        self._lane = lane
        self._pushed_out: dict[Live, bool] = {}
        self._least_read_tokens = 0 if engine.reads_on_demand else offload.prefetch_min_tokens

    def arrive(self, live: Live) -> None:
        """Take ``live`` in: find what is cached, load what is below VRAM, keep what its prompt makes."""
        engine, config = self.engine, self.engine.config
        request = live.request
        found = self._found(live)
        lower = found[1]
        deep_tokens = (lower.ssd_end - lower.dram_end) * config.block_tokens
        if deep_tokens > 0 and deep_tokens >= self._least_read_tokens and promote(engine, live, lower, DEMAND):
            self._lane.flush()
            found = self._found(live)
        side = config.side_admitted(live.target, live.last_tokens)
        blocks = config.blocks(request.prompt_tokens)
        match, lower = self._with_room(live, blocks + side, *found)
        handle = engine.pool.index.pin(match, True, live.owner.retention)
        end = match.end
        if lower.dram_end > end:
            end = lower.dram_end
            handle, load = engine.mover.receive(handle, request.spans, end, lower.dram, DEMAND, live.owner)
            load(_nothing)
            self._lane.flush()
        live.handle = handle
        live.tokens = request.prompt_tokens
        live.blocks_held, live.side_blocks = blocks - end, side
        engine.holdings.take(blocks - end + side)
        engine.running[live] = None
        engine.holdings.commit_prompt(live)
        engine.holdings.end_prefill(live)
        self._lane.flush()

    def end(self, live: Live) -> None:
        """Let ``live`` go with all of its output."""
        engine, config = self.engine, self.engine.config
        if self._pushed_out.pop(live, False):
            self.arrive(live)
        if engine.running.pop(live, self) is self:
            return  # it ended early
        assert live.handle is not None
        more = config.blocks(live.last_tokens) - live.handle.end - live.blocks_held
        while more > engine.pool.available_blocks:
            self._push_out(next(reversed(engine.running)))
        if more > 0:
            engine.holdings.take(more)
            live.blocks_held += more
        engine.holdings.release(live, live.last_tokens, keep_outputs=True)
        if engine.tiers.dram is not None and config.prefix_caching:
            engine.mover.touch(live.request.spans, live.request.prompt_tokens // config.block_tokens, live.owner)
        self._lane.flush()

    def _push_out(self, live: Live) -> None:
        """Have ``live`` give its blocks back, to begin again when it ends."""
        del self.engine.running[live]
        self._pushed_out[live] = True
        self.engine.holdings.release(live, live.tokens, keep_outputs=False)

    def _found(self, live: Live) -> tuple[Match, LowerHit]:
        """Return what ``live`` would find now, in VRAM and below."""
        engine, spans = self.engine, live.request.spans
        limit = engine.config.most_hit_blocks(live.target)
        if not engine.config.keeps_vram:
            engine.mover.forget()
        match = engine.pool.index.match(spans, limit)
        return match, engine.tiers.lookup(spans, live.target, limit, match.end, live.owner.dram)

    def _with_room(self, live: Live, blocks: int, match: Match, lower: LowerHit) -> tuple[Match, LowerHit]:
        """Return what ``live`` finds once there is room for its ``blocks``: who came first ends early for it."""
        engine = self.engine
        while blocks - match.end > engine.pool.available_blocks - unpinned_blocks(match) and engine.running:
            self.end(next(iter(engine.running)))
            match, lower = self._found(live)
        return match, lower


class UntimedSharing:
    """Active offload: the full blocks that sequences share in DRAM."""

    def __init__(self, engine: ActiveEngine) -> None:
        self.engine = engine
        self._held: dict[Live, Node | None] = {}

    def arrive(self, live: Live) -> None:
        """Enter the full blocks of the prompt in DRAM, as far as there is room."""
        self.engine.running[live] = None
        self._held[live] = self._store(live, live.request.prompt_tokens)

    def end(self, live: Live) -> None:
        """Enter those of the output too, and hold none of them any more."""
        held = self._held.pop(live)
        whole = self._store(live, live.last_tokens)
        dram = live.owner.dram
        for handle in (held, whole):
            if handle is not None:
                assert dram is not None
                dram.index.unpin(handle)
        del self.engine.running[live]

    def _store(self, live: Live, tokens: int) -> Node | None:
        dram, blocks = live.owner.dram, tokens // self.engine.config.block_tokens
        if dram is None or not blocks:
            return None
        stored = dram.store(live.request.spans, 0, blocks, 0, part=True, priority=live.owner.retention)
        return stored[0] if stored is not None else None


def _nothing() -> None:
    """Nobody waits for an untimed load."""
