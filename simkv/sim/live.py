"""A request while it is in the system."""

from __future__ import annotations

from simkv.kvcache.node import Node
from simkv.sim.record.errand import LATE, USEFUL, WASTED, Errand
from simkv.sim.tiers import Owner
from simkv.workload.request import Request

QUEUE, LOAD_DRAM, LOAD_SSD, PREFILL, DECODE, RECOMPUTE, PREEMPTED = range(7)
"""Where a request's time goes; the order of the ``*_time_s`` columns that the recorder writes."""

NOBODY = Owner(0, None)


class Fetch:
    """A read from SSD to DRAM ahead of need, in one transfer or in several, one after the other."""

    __slots__ = ("begun_s", "blocks", "held", "over", "stopped", "transfer", "waited_for")

    def __init__(self, blocks: int, begun_s: float) -> None:
        self.blocks = blocks
        """All that it is after."""
        self.begun_s = begun_s
        self.held: Node | None = None
        """What its request will find in DRAM, held there until it has its turn."""
        self.transfer = 0
        """The one under way."""
        self.over = False
        self.stopped = False
        """Its request goes on without what isn't here yet."""
        self.waited_for = False

    def gave_up(self, transfer: int) -> bool:
        """Say whether its request goes on without what ``transfer`` is bringing."""
        return self.stopped and transfer == self.transfer


class Live:
    """A request's progress: which tokens are computed, what it holds, where its time went."""

    __slots__ = (
        "asked_ssd",
        "blocks_held",
        "ceiling",
        "cls",
        "computed_once",
        "epoch",
        "fetch",
        "fetched",
        "first_token_s",
        "foreseen",
        "gave_way",
        "generated",
        "handle",
        "hit_dram",
        "hit_ssd",
        "hit_vram",
        "last_token_s",
        "order",
        "owner",
        "parts",
        "place",
        "preemptions",
        "prefetched",
        "priority",
        "promoted",
        "recomputed",
        "request",
        "scheduled_s",
        "side_blocks",
        "since_s",
        "state",
        "step0",
        "store_refused",
        "swapped",
        "target",
        "tokens",
    )

    def __init__(self, request: Request, cls: int, priority: int, now: float) -> None:
        self.request = request
        self.cls = cls
        self.priority = priority
        self.owner = NOBODY
        """Its class's rank on the lanes and part of DRAM, once it has a replica."""
        self.order = (0, 0)
        """Place in the waiting queue: lowest first."""
        self.place = -1
        """Admission number while running: the highest was admitted last."""
        self.state = QUEUE
        self.since_s = now
        self.parts = [0.0] * 7
        self.target = request.prompt_tokens
        """Tokens to compute before the next output token: the prompt and what was generated before."""
        self.tokens = 0
        """Tokens whose KV is in VRAM; while decoding: at the beginning of step ``step0``."""
        self.step0 = -1
        """Engine step in which it decoded first; -1 while not decoding."""
        self.generated = 0
        """Output tokens made before ``step0``."""
        self.epoch = 0
        """Bumped when it stops decoding: older entries of the finish heap are void."""
        self.handle: Node | None = None
        self.blocks_held = 0
        """Private blocks while not decoding (what decoding adds follows from the step)."""
        self.side_blocks = 0
        """Private blocks of windows and states, while running."""
        self.computed_once = 0
        """Tokens computed (or loaded) before the last preemption."""
        self.recomputed = 0
        self.preemptions = 0
        self.scheduled_s = -1.0
        self.first_token_s = -1.0
        self.last_token_s = -1.0
        self.gave_way = False
        """It let go of what was loaded for it before its first turn: the hits that were noted were in vain."""
        self.hit_vram = -1
        self.hit_dram = 0
        self.hit_ssd = 0
        self.fetched: list[tuple[int, int]] = []
        """Block ranges that a look-ahead prefetch brought from DRAM into VRAM for it."""
        self.promoted: list[tuple[int, int]] = []
        """Block ranges that were brought from SSD into DRAM for it."""
        self.foreseen: list[tuple[Errand, int, bool]] = []
        """Prefetches for it of which isn't known yet what became: the first block, and whether they go to VRAM."""
        self.prefetched = False
        self.fetch: Fetch | None = None
        """What a prefetcher reads from SSD for it, where it may be stopped."""
        self.asked_ssd = False
        """A promotion on demand was tried: it isn't tried again before the next preemption."""
        self.store_refused = False
        self.swapped: Node | None = None
        """Holds in DRAM what was swapped out at its preemption, until it runs again."""
        self.ceiling = 0
        """Prompt tokens that an infinite cache would have hit."""

    def enter(self, state: int, now: float) -> None:
        """Book the time since the last change on the old state."""
        self.parts[self.state] += now - self.since_s
        self.state = state
        self.since_s = now

    def judge_late(self, transfer: int) -> None:
        """Note that it needs what ``transfer`` is still bringing, which may be a prefetch of its own."""
        for errand, _, _ in self.foreseen:
            if errand.number == transfer:
                errand.judge(LATE)

    def judge(self, vram_end: int, hit_end: int) -> None:
        """It finds blocks up to ``vram_end`` in VRAM and ``hit_end`` in DRAM on its turn: settle its prefetches."""
        for errand, start, to_vram in self.foreseen:
            errand.judge(USEFUL if start < (vram_end if to_vram else hit_end) else WASTED)
        self.foreseen.clear()

    @property
    def last_tokens(self) -> int:
        """Tokens in VRAM at its end: the last output token is never read."""
        return self.request.prompt_tokens + self.request.output_tokens - 1

    def context(self, step: int) -> int:
        """Tokens in VRAM at the beginning of engine step ``step``."""
        return self.tokens + step - self.step0 if self.step0 >= 0 else self.tokens

    def made(self, step: int) -> int:
        """Output tokens made before engine step ``step``."""
        return self.generated + step - self.step0 if self.step0 >= 0 else self.generated
