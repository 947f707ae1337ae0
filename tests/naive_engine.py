"""A naive engine: every step of every sequence, every block in a dict. Slow, and written from the rules alone.

One replica; VRAM and, optionally, DRAM behind an independent link in each direction; least recently used
goes first; writes through or not at all; loads hold their request. See the test of the oracle for its use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any

from simkv.sim.config import SystemConfig
from simkv.sim.series import boundary_s
from simkv.workload.request import Request

TRANSFER, ARRIVAL, ENGINE = 0, 1, 2
STORE = 10_000
"""Added to the urgency of what nobody waits for."""


@dataclass
class NaiveRow:
    """What became of one request."""

    id: int
    rejected: bool
    scheduled_s: float = -1.0
    first_token_s: float = -1.0
    finish_s: float = -1.0
    hit_vram_tokens: int = 0
    hit_dram_tokens: int = 0
    recomputed_tokens: int = 0
    preemptions: int = 0
    parts: dict[str, float] = field(default_factory=dict)


@dataclass
class NaiveRun:
    """What became of all, in the order they ended, and a few sums."""

    rows: list[NaiveRow]
    gpu_busy_s: float
    steps: int
    refused_stores: int
    bytes_up: int
    bytes_down: int
    swaps_refused: int


class Blocks:
    """One tier's blocks: cached ones with their pins, those that may go in order, and a number of private ones."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.pins: dict[int, int] = {}
        self.order: dict[int, None] = {}
        self.pending: dict[int, int] = {}
        self.private = 0

    @property
    def free(self) -> int:
        return self.capacity - self.private - len(self.pins)

    @property
    def available(self) -> int:
        return self.free + len(self.order)

    def make_room(self, blocks: int) -> None:
        while self.free < blocks:
            oldest = next(iter(self.order))
            del self.order[oldest]
            del self.pins[oldest]

    def take(self, blocks: int) -> None:
        self.make_room(blocks)
        self.private += blocks

    def pin(self, key: int) -> None:
        """Pin a block, which becomes cached where it wasn't."""
        self.pins[key] = self.pins.get(key, 0) + 1
        self.order.pop(key, None)

    def unpin(self, path: list[int]) -> None:
        """Release a path, the deepest block first."""
        for key in reversed(path):
            self.pins[key] -= 1
            if not self.pins[key]:
                self.order[key] = None

    def check(self) -> None:
        assert self.free >= 0 and self.private >= 0
        assert set(self.order) == {key for key, pins in self.pins.items() if not pins}


class Sequence:
    """A request on its way."""

    def __init__(self, request: Request, keys: list[int], priority: int) -> None:
        self.request = request
        self.keys = keys
        """What each full block of prompt and output holds, as a number."""
        self.priority = priority
        self.place: tuple[int, int] = (0, 0)
        self.admission = 0
        self.target = request.prompt_tokens
        self.tokens = 0
        self.made = 0
        self.decoding = False
        self.path: list[int] = []
        self.private = 0
        self.side = 0
        self.loaded = False
        self.noted = False
        self.refused = False
        self.kept: list[int] = []
        """Blocks that DRAM keeps since it was swapped out."""
        self.computed_once = 0
        self.state = "queue"
        self.since_s = request.arrival_s
        self.row = NaiveRow(request.id, False)

    def enter(self, state: str, now: float) -> None:
        parts = self.row.parts
        parts[self.state] = parts.get(self.state, 0.0) + now - self.since_s
        self.state, self.since_s = state, now

    @property
    def held(self) -> int:
        return len(self.path) + self.private


Sent = tuple[int, int, int, int, Callable[[], None]]
"""Urgency, serial number, transfer, blocks, and what to call when it is through."""


class Link:
    """One direction: one transfer at a time, the most urgent first; only one that has just begun gives way."""

    def __init__(self, engine: NaiveEngine, bytes_per_s: float, latency_s: float, descriptors: int) -> None:
        self.engine = engine
        self.bytes_per_s, self.latency_s, self.descriptors = bytes_per_s, latency_s, descriptors
        self.queue: list[Sent] = []
        self.active: Sent | None = None
        self.begun_s = 0.0
        self.serial = self.bytes = 0

    def submit(self, transfer: int, blocks: int, urgency: int, done: Callable[[], None]) -> None:
        self.bytes += blocks * self.engine.config.engine.block_bytes
        self._queue((urgency, 0, transfer, blocks, done))

    def urge(self, transfer: int, urgency: int) -> None:
        """Put a transfer that hasn't begun behind those that are as urgent as who waits for it."""
        for item in self.queue:
            if item[2] == transfer and urgency < item[0]:
                self.queue.remove(item)
                heapify(self.queue)
                self._queue((urgency, *item[1:]))
                return

    def _queue(self, item: Sent) -> None:
        self.serial += 1
        heappush(self.queue, (item[0], self.serial, *item[2:]))
        if self.active is not None and self.begun_s == self.engine.now and item[0] < self.active[0]:
            heappush(self.queue, self.active)
            self.active = None
        if self.active is None:
            self._start()

    def _start(self) -> None:
        self.active = item = heappop(self.queue)
        self.begun_s = begun_s = self.engine.now
        _, _, _, blocks, done = item
        nbytes = blocks * self.engine.config.engine.block_bytes
        alone_s = blocks * self.descriptors * self.latency_s + nbytes / self.bytes_per_s
        rate = nbytes / alone_s if alone_s else inf  # the mean rate first: it is what others would be scaled by

        def fire() -> None:
            if self.active is not item or self.begun_s != begun_s:
                return  # it gave way, and may be under way anew
            self.active = None
            if self.queue:
                self._start()
            done()

        self.engine.at(self.engine.now + (nbytes / rate if rate < inf else 0.0), TRANSFER, fire)


class NaiveEngine:
    """Runs one configuration; ``eager`` tries the queue's head at every boundary, needed or not."""

    def __init__(self, config: SystemConfig, requests: list[Request], eager: bool) -> None:
        self.config = config
        self.engine = config.engine
        self.eager = eager
        self.bt = config.engine.block_tokens
        self.now = 0.0
        self.events: list[tuple[float, int, int, Callable[[], None]]] = []
        self.serial = 0
        self.vram = Blocks(self.engine.num_gpu_blocks)
        dram_blocks = config.dram.capacity_bytes / self.engine.block_bytes
        self.dram = Blocks(int(dram_blocks) if dram_blocks < inf else 1 << 60) if dram_blocks >= 1 else None
        link = config.link
        self.up = Link(self, link.h2d_bytes_per_s, link.latency_s, link.descriptors_per_block)
        self.down = Link(self, link.d2h_bytes_per_s, link.latency_s, link.descriptors_per_block)
        self.by_priority = self.engine.scheduling == "priority"
        self.priorities = {cls.name: cls.priority for cls in config.classes}
        self.interned: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
        self.waiting: list[Sequence] = []
        self.coming: list[list[Any]] = []
        """Who came while a step ran, and how many steps have ended since."""
        self.running: list[Sequence] = []
        self.chunks: list[tuple[Sequence, int]] = []
        self.held = 0
        self.asleep = True
        self.look = False
        self.anchor: tuple[float, float, float, int] | None = None
        self.anchor_steps = 0
        self.since_s = 0.0
        self.rows: list[NaiveRow] = []
        self.arrived = self.fronts = self.admissions = self.transfers = self.steps = self.refused = 0
        self.gpu_busy_s = 0.0
        self.swaps_refused = self.swapping = 0
        self.swapped: Callable[[], None] | None = None
        """Begins the step that waits for what is being swapped out."""
        self.waiters: dict[int, list[Sequence]] = {}
        for request in sorted(requests, key=lambda r: r.arrival_s):
            self.at(request.arrival_s, ARRIVAL, lambda r=request: self.arrive(r))  # type: ignore[misc]

    def at(self, time_s: float, rank: int, call: Callable[[], None]) -> None:
        self.serial += 1
        heappush(self.events, (time_s, rank, self.serial, call))

    def run(self) -> NaiveRun:
        while self.events:
            self.now, _, _, call = heappop(self.events)
            call()
            self.vram.check()
            if self.dram is not None:
                self.dram.check()
        assert not self.running and not self.waiting and not self.held, "somebody never finished"
        return NaiveRun(
            self.rows, self.gpu_busy_s, self.steps, self.refused, self.up.bytes, self.down.bytes, self.swaps_refused
        )

    # ---- arrivals and the queue

    def arrive(self, request: Request) -> None:
        tokens = request.prompt_tokens + request.output_tokens
        largest = self.blocks(tokens - 1) + self.side_blocks(tokens - 1, tokens - 1)
        if tokens > self.engine.max_model_len or largest > self.engine.num_gpu_blocks:
            self.rows.append(NaiveRow(request.id, True, finish_s=self.now))
            return
        sequence = Sequence(request, self.keys(request), self.priorities.get(request.cls, 0))
        self.arrived += 1
        sequence.place = (sequence.priority if self.by_priority else 0, self.arrived)
        if self.engine.async_scheduling and self.running:
            self.coming.append([sequence, 0])
            return
        was_empty = not self.waiting
        self.queue(sequence)
        if was_empty or self.waiting[0] is sequence:
            self.wake()

    def let_in(self, boundaries: int) -> None:
        """Queue those who came before the last ``boundaries`` ends of steps."""
        while self.coming and self.coming[0][1] >= boundaries:
            sequence, _ = self.coming.pop(0)
            self.queue(sequence)
            self.look |= self.waiting[0] is sequence
        for entry in self.coming:
            entry[1] += 1

    def keys(self, request: Request) -> list[int]:
        """Number every full block so that equal numbers mean equal content from the very start."""
        tokens = [(stream, start + i) for stream, start, length in request.spans for i in range(length)]
        out: list[int] = []
        for end in range(self.bt, len(tokens) + 1, self.bt):
            key = (out[-1] if out else -1, tuple(tokens[end - self.bt : end]))
            out.append(self.interned.setdefault(key, len(self.interned)))
        return out

    def blocks(self, tokens: int) -> int:
        return -(-tokens // self.bt)

    def side_blocks(self, prompt: int, last: int) -> int:
        """What a sequence needs beside its tokens' blocks: in its prefill, or later, whichever is more."""
        side = self.engine.side
        if side is None:
            return 0
        pages = [side.state_pages, side.state_pages]
        for window in side.windows:
            pages[0] += min(-(-prompt // window.block_tokens), window.prefilling)
            pages[1] += min(-(-last // window.block_tokens), window.decoding)
        return max(-(-number // side.pages_per_block) for number in pages)

    def side_of(self, sequence: Sequence, prompt: int) -> int:
        return self.side_blocks(prompt, sequence.request.prompt_tokens + sequence.request.output_tokens - 1)

    def urgency(self, sequence: Sequence) -> int:
        return sequence.priority if self.by_priority else 0

    def queue(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)
        self.waiting.sort(key=lambda s: s.place)

    def wake(self) -> None:
        if not self.waiting:
            return
        self.look = True
        if self.asleep:
            self.asleep = False
            self.at(self.now, ENGINE, self.boundary)

    # ---- one boundary

    def boundary(self) -> None:
        changed = self.complete()
        self.let_in(1)
        preempted = self.schedule_running()
        self.decide(changed or preempted, preempted)
        if self.coming and not self.running:
            self.let_in(0)
            self.decide(changed or preempted, preempted)
        self.begin(changed or preempted)

    def decide(self, changed: bool, preempted: bool) -> None:
        """Admit who waits; where nobody runs and the first can't be had, those behind it that hold blocks give way."""
        look = self.eager or self.look or changed
        self.look = False
        if self.swapping or (preempted and self.running):
            self.look = True
        elif look:
            self.admit()
        while not self.swapping and not self.running and not self.held and self.waiting:
            holders = [s for s in self.waiting[1:] if s.loaded]
            if not holders:
                break
            self.give_way(holders[-1])
            self.admit()

    def complete(self) -> bool:
        """Book the step that ends now."""
        decoding = [s for s in self.running if s.decoding]
        if not decoding and not self.chunks:
            return False
        self.steps += 1
        self.gpu_busy_s += self.now - self.since_s
        changed = bool(self.chunks)
        for sequence in decoding:
            sequence.tokens += 1
            sequence.made += 1
        chunks, self.chunks = self.chunks, []
        for sequence, tokens in chunks:
            sequence.tokens += tokens
            if self.engine.prefix_caching:
                self.commit(sequence)
                self.store(sequence)
            if sequence.tokens == sequence.target:
                sequence.made += 1
                if sequence.row.first_token_s < 0:
                    sequence.row.first_token_s = self.now
                sequence.decoding = True
                sequence.enter("decode", self.now)
                if sequence.made == sequence.request.output_tokens:
                    self.finish(sequence)
                else:
                    self.vram.private += self.side_of(sequence, 0) - sequence.side
                    sequence.side = self.side_of(sequence, 0)
        for sequence in sorted(decoding, key=lambda s: s.request.id):
            if sequence.made == sequence.request.output_tokens:
                self.finish(sequence)
                changed = True
        return changed

    def schedule_running(self) -> bool:
        preempted = False
        while True:
            decoding = [s for s in self.running if s.decoding]
            partial = next((s for s in self.running if not s.decoding), None)
            need = sum(s.tokens % self.bt == 0 for s in decoding)
            chunk = 0
            if partial is not None:
                chunk = min(partial.target - partial.tokens, self.engine.max_num_batched_tokens - len(decoding))
                need += max(0, self.blocks(partial.tokens + chunk) - partial.held) if chunk else 0
            if need <= self.vram.available:
                break
            holders = [s for s in self.waiting if s.loaded]
            if len(self.running) == 1 and holders:
                self.give_way(holders[-1])
                self.look = True
                continue
            victim = self.running[-1]
            if self.by_priority:
                victim = max(self.running, key=lambda s: (s.priority, s.request.arrival_s, s.admission))
            self.preempt(victim)
            preempted = True
        for sequence in decoding:
            if sequence.tokens % self.bt == 0:
                self.take(sequence, 1)
        if partial is not None and chunk:
            self.take(partial, max(0, self.blocks(partial.tokens + chunk) - partial.held))
            self.compute(partial, chunk)
        return preempted

    def take(self, sequence: Sequence, blocks: int) -> None:
        self.vram.take(blocks)
        sequence.private += blocks

    def compute(self, sequence: Sequence, chunk: int) -> None:
        self.chunks.append((sequence, chunk))
        again = min(sequence.tokens + chunk, sequence.computed_once) - sequence.tokens
        sequence.row.recomputed_tokens += max(0, again)

    # ---- admission

    def admit(self) -> None:
        while self.waiting and len(self.running) < self.engine.max_num_seqs:
            budget = self.engine.max_num_batched_tokens - sum(s.decoding for s in self.running)
            budget -= sum(tokens for _, tokens in self.chunks)
            if budget <= 0 or not self.try_head(self.waiting[0], budget):
                return

    def try_head(self, head: Sequence, budget: int) -> bool:
        vram, dram, bt = self.vram, self.dram, self.bt
        reserve = self.blocks(head.target) if self.engine.reserve_full_prompt else 0
        side = self.side_of(head, head.target)
        if not head.loaded:
            most = (head.target - 1) // bt if self.engine.prefix_caching else 0
            hit = 0
            while hit < most and head.keys[hit] in vram.pins:
                if head.keys[hit] in vram.pending:
                    return self.wait_for(head, vram.pending[head.keys[hit]])
                hit += 1
            end = hit
            while dram is not None and end < most and head.keys[end] in dram.pins:
                if head.keys[end] in dram.pending:
                    return self.wait_for(head, dram.pending[head.keys[end]])
                end += 1
            available = vram.available - sum(key in vram.order for key in head.keys[:hit])
            if end > hit:
                if max(end - hit, reserve - hit + side if reserve else 0) > available:
                    return False
            else:
                chunk = min(head.target - hit * bt, budget)
                if max(self.blocks(hit * bt + chunk), reserve) - hit + side > available:
                    return False
            self.note_hits(head, hit, end)
            for key in head.keys[:hit]:
                vram.pin(key)
            head.path = head.keys[:hit]
            head.tokens = hit * bt
            if end > hit:
                self.load(head, end)
                return True
        chunk = min(head.target - head.tokens, budget)
        need = self.blocks(head.tokens + chunk) - head.held
        if max(need, reserve - head.held) + side > vram.available:
            return False
        self.waiting.pop(0)
        head.loaded = False
        self.let_go(head)
        self.admissions += 1
        head.admission = self.admissions
        if head.row.scheduled_s < 0:
            head.row.scheduled_s = self.now
        head.enter("recompute" if head.row.preemptions else "prefill", self.now)
        self.take(head, need)
        vram.take(side)
        head.side = side
        self.running.append(head)
        self.compute(head, chunk)
        return True

    def wait_for(self, head: Sequence, transfer: int) -> bool:
        self.waiting.pop(0)
        self.hold(head)
        self.waiters[transfer].append(head)
        self.up.urge(transfer, self.urgency(head))
        self.down.urge(transfer, self.urgency(head))
        return True

    def note_hits(self, head: Sequence, vram_end: int, dram_end: int) -> None:
        if not head.noted:
            head.noted = True
            head.row.hit_vram_tokens = vram_end * self.bt
            head.row.hit_dram_tokens = (dram_end - vram_end) * self.bt

    def hold(self, sequence: Sequence) -> None:
        self.held += 1
        sequence.enter("load", self.now)

    def resume(self, sequence: Sequence) -> None:
        self.held -= 1
        sequence.enter("preempted" if sequence.row.preemptions else "queue", self.now)
        if self.engine.async_scheduling and self.running:
            self.coming.append([sequence, 0])
            return
        self.queue(sequence)
        self.wake()

    def load(self, head: Sequence, end: int) -> None:
        assert self.dram is not None
        self.waiting.pop(0)
        self.hold(head)
        source, coming = head.keys[:end], head.keys[len(head.path) : end]
        for key in source:
            self.dram.pin(key)
        self.vram.make_room(len(coming))
        self.transfers += 1
        transfer = self.transfers
        self.waiters[transfer] = []
        for key in coming:
            self.vram.pin(key)
            self.vram.pending[key] = transfer
        head.path = head.keys[:end]

        def through() -> None:
            assert self.dram is not None
            self.dram.unpin(source)
            for key in coming:
                del self.vram.pending[key]
            head.tokens = end * self.bt
            head.loaded = True
            self.resume(head)
            for waiter in self.waiters.pop(transfer):
                self.resume(waiter)

        self.up.submit(transfer, len(coming), self.urgency(head), through)

    def give_way(self, sequence: Sequence) -> None:
        self.vram.unpin(sequence.path)
        sequence.path = []
        sequence.tokens = 0
        sequence.loaded = False

    # ---- blocks

    def commit(self, sequence: Sequence) -> None:
        """Full blocks become shareable; a copy of what is cached already is given back."""
        for key in sequence.keys[len(sequence.path) : sequence.tokens // self.bt]:
            sequence.private -= 1
            self.vram.private -= 1
            self.vram.pin(key)
            sequence.path.append(key)

    def release(self, sequence: Sequence) -> None:
        self.vram.private -= sequence.private + sequence.side
        self.vram.unpin(sequence.path)
        sequence.private = sequence.side = 0
        sequence.path = []
        sequence.decoding = False
        self.running.remove(sequence)

    def finish(self, sequence: Sequence) -> None:
        if self.engine.prefix_caching:
            self.commit(sequence)
            if sequence.refused or self.engine.store_outputs:
                self.store(sequence)
        self.release(sequence)
        sequence.enter("over", self.now)
        sequence.row.finish_s = self.now
        self.rows.append(sequence.row)
        if self.dram is not None and self.engine.prefix_caching:
            self.touch(sequence.keys[: sequence.request.prompt_tokens // self.bt])

    def preempt(self, sequence: Sequence) -> None:
        sequence.computed_once = max(sequence.computed_once, sequence.tokens)
        if self.engine.prefix_caching:
            self.commit(sequence)
        self.release(sequence)
        if self.engine.preemption == "swap":
            self.swap_out(sequence)
        sequence.target = sequence.request.prompt_tokens + sequence.made
        sequence.tokens = 0
        sequence.row.preemptions += 1
        sequence.enter("preempted", self.now)
        if not self.by_priority:
            self.fronts -= 1
            sequence.place = (0, self.fronts)
        self.queue(sequence)

    # ---- DRAM

    def touch(self, keys: list[int]) -> None:
        """Make the readable beginning of a path the most recent."""
        assert self.dram is not None
        path = self.readable(keys)
        for key in path:
            self.dram.pin(key)
        self.dram.unpin(path)

    def readable(self, keys: list[int]) -> list[int]:
        assert self.dram is not None
        for end, key in enumerate(keys):
            if key not in self.dram.pins or key in self.dram.pending:
                return keys[:end]
        return keys

    def store(self, sequence: Sequence) -> None:
        dram = self.dram
        if dram is None or self.config.offload.write == "never":
            return
        request = sequence.request
        most = request.prompt_tokens + (request.output_tokens if self.engine.store_outputs else 0)
        keys = sequence.path[: most // self.bt]
        sequence.refused = False
        if len(self.readable(keys)) == len(keys):
            return
        known = [key for key in keys if key in dram.pins]
        lacking = [key for key in keys if key not in dram.pins]
        if len(lacking) > dram.available - sum(key in dram.order for key in known):
            sequence.refused = True
            self.refused += 1
            self.touch(keys)
            return
        for key in known:
            dram.pin(key)
        if not lacking:
            dram.unpin(keys)
            return
        dram.make_room(len(lacking))
        self.transfers += 1
        transfer = self.transfers
        self.waiters[transfer] = []
        for key in lacking:
            dram.pin(key)
            dram.pending[key] = transfer
        for key in keys:
            self.vram.pin(key)

        def through() -> None:
            assert dram is not None
            self.vram.unpin(keys)
            for key in lacking:
                del dram.pending[key]
            dram.unpin(keys)
            for waiter in self.waiters.pop(transfer):
                self.resume(waiter)
            self.wake()

        self.down.submit(transfer, len(lacking), STORE + self.urgency(sequence), through)

    def swap_out(self, sequence: Sequence) -> None:
        """Keep the full blocks of a preempted sequence in DRAM; the next step waits for those that it hasn't yet."""
        dram, keys = self.dram, sequence.keys[: sequence.tokens // self.bt]
        if not keys:
            return
        lacking = [key for key in keys if dram is None or key not in dram.pins]
        if dram is None or len(lacking) > dram.available - sum(key in dram.order for key in keys):
            self.swaps_refused += 1
            if dram is not None:
                self.touch(keys)
            return
        for key in keys:
            if key in dram.pins:
                dram.pin(key)
        dram.make_room(len(lacking))
        for key in lacking:
            dram.pin(key)
        sequence.kept = keys
        if not lacking:
            return
        self.transfers += 1
        transfer = self.transfers
        self.waiters[transfer] = []
        for key in lacking:
            dram.pending[key] = transfer
        self.swapping += 1

        def through() -> None:
            self.swapping -= 1
            for key in lacking:
                del dram.pending[key]
            begin, self.swapped = (None, self.swapped) if self.swapping else (self.swapped, None)
            if begin is not None:
                begin()
            for waiter in self.waiters.pop(transfer):
                self.resume(waiter)
            self.wake()

        self.down.submit(transfer, len(lacking), self.urgency(sequence), through)

    def let_go(self, sequence: Sequence) -> None:
        """What was kept for a sequence that runs again may go; what wouldn't be written down goes at once."""
        keys, sequence.kept = sequence.kept, []
        if self.dram is None or not keys:
            return
        self.dram.unpin(keys)
        first = len(keys) if self.engine.store_outputs else sequence.request.prompt_tokens // self.bt
        for key in keys[0 if self.config.offload.write == "never" else first :]:
            if not self.dram.pins.get(key, 1):
                del self.dram.pins[key]
                del self.dram.order[key]

    # ---- time

    def begin(self, changed: bool) -> None:
        """Work out when the step that begins now ends."""
        decoding = [s for s in self.running if s.decoding]
        self.since_s = self.now
        if not decoding and not self.chunks:
            self.asleep = True
            self.anchor = None
            return
        self.asleep = False
        context = sum(s.tokens + 1 for s in decoding)
        if self.swapping:
            self.begin_waiting(decoding, context)
            return
        if self.chunks:
            step_s = self.mixed_s(decoding, context)
            self.anchor = None
            self.at(boundary_s(self.now, step_s, 0.0, 1), ENGINE, self.boundary)
            return
        if changed or self.anchor is None or self.anchor_steps >= self.anchor[3]:
            self.anchor = (self.now, *self.config.cost.decode(len(decoding), context))
            self.anchor_steps = 0
        self.anchor_steps += 1
        start_s, first_s, growth_s, _ = self.anchor
        self.at(boundary_s(start_s, first_s, growth_s, self.anchor_steps), ENGINE, self.boundary)

    def mixed_s(self, decoding: list[Sequence], context: int) -> float:
        work = [(tokens, s.tokens) for s, tokens in self.chunks]
        sampled = len(decoding) + sum(s.tokens + tokens == s.target for s, tokens in self.chunks)
        return self.config.cost.mixed(len(decoding), context, work, sampled)

    def begin_waiting(self, decoding: list[Sequence], context: int) -> None:
        """The step computes when what is being swapped out is through: it takes over that room."""
        if self.chunks:
            step_s = self.mixed_s(decoding, context)
        else:
            step_s = self.config.cost.decode(len(decoding), context)[0]
        self.anchor = None
        begun_s = self.now

        def begin() -> None:
            lasts_s = self.now + step_s - begun_s
            self.at(max(self.now, boundary_s(begun_s, lasts_s, 0.0, 1)), ENGINE, self.boundary)

        self.swapped = begin


def run_naive(config: SystemConfig, requests: list[Request], eager: bool) -> NaiveRun:
    """Run ``requests`` through the naive engine."""
    return NaiveEngine(config, requests, eager).run()
