"""One sequence under sparse access against a reference in Python sets: lru, a step's reads at once, nobody else."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.kvcache.access import Replay
from simkv.sim.active.engine import ActiveEngine
from tests import active_factory as make
from tests.sim_factory import BLOCK, BLOCK_BYTES, run_system


@dataclass
class Naive:
    """What a run must count; units are blocks, whatever the layers do."""

    share: float
    exclusive: bool
    through: bool
    last: dict[int, int] = field(default_factory=dict)
    """By resident block, the step of its last use."""
    dirty: set[int] = field(default_factory=set)
    hits: int = 0
    loads: int = 0
    evicted: int = 0
    written: int = 0
    below: set[int] = field(default_factory=set)

    def room(self, blocks: int) -> int:
        return min(blocks, max(1, -(-round(self.share * 1000) * blocks // 1000)))

    def make_room(self, needed: int, most: int, keep: set[int]) -> None:
        going = sorted((b for b in self.last if b not in keep), key=lambda b: (self.last[b], -b))
        for block in going[: max(0, len(self.last) + needed - most)]:
            del self.last[block]
            self.evicted += 1
            if block in self.dirty or self.exclusive:
                self.written += 1
                self.below.add(block)
            self.dirty.discard(block)

    def run(self, prompt: int, reads: list[list[int]]) -> None:
        blocks = -(-prompt // BLOCK)
        kept = self.room(blocks)
        full = prompt // BLOCK
        done = full if self.through else blocks - kept
        self.written += done
        self.below |= set(range(done))
        for block in range(blocks - kept, blocks):
            self.last[block] = 0
            if block >= done:
                self.dirty.add(block)
        for step, wanted in enumerate(reads):
            tokens = prompt + step + 1
            if -(-tokens // BLOCK) > blocks:
                blocks += 1
                self.make_room(1, self.room(blocks), {blocks - 1})
                self.last[blocks - 1] = step
                self.dirty.add(blocks - 1)
            self.read(wanted, self.room(blocks), step)
            if self.through and tokens % BLOCK == 0:
                full = tokens // BLOCK - 1
                self.written += 1
                self.below.add(full)
                self.dirty.discard(full)

    def read(self, wanted: list[int], most: int, step: int) -> None:
        missing = [block for block in wanted if block not in self.last]
        assert set(missing) <= self.below
        self.hits += len(wanted) - len(missing)
        self.loads += len(missing)
        for block in wanted:
            if block in self.last:
                self.last[block] = step
        evictable = sum(block not in wanted for block in self.last)
        entering = missing[: max(0, most - len(self.last) + evictable)]
        self.make_room(len(entering), most, set(wanted))
        for block in entering:
            self.last[block] = step
            if self.exclusive:
                self.below.discard(block)


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 60),
    st.integers(2, 25),
    st.sampled_from((0.0, 0.1, 0.25, 0.5, 0.8)),
    st.sampled_from(((False, False), (False, True), (True, False))),
)
def test_a_sequence_alone_hits_loads_evicts_and_writes_as_the_reference(
    seed: int, prompt: int, output: int, share: float, kind: tuple[bool, bool]
) -> None:
    exclusive, through = kind
    reads = make.random_reads(random.Random(seed), prompt, output - 1)
    with TemporaryDirectory() as folder:
        access = Replay(make.write_log(Path(folder) / "reads.jsonl", {0: reads}))
        write = "write_through" if through else "write_back"
        config = make.active_config(access=access, residency=share, exclusive=exclusive, write=write)
        system, data = run_system(config, [make.request(0, 0.0, prompt, output)])
    naive = Naive(share, exclusive, through)
    naive.run(prompt, reads)
    found = data.active
    assert found is not None
    assert found.reads == sum(map(len, reads)) * make.LAYERS
    assert found.hits == naive.hits * make.LAYERS
    assert found.loads_dram == naive.loads * make.LAYERS
    engine = system.engines[0]
    assert isinstance(engine, ActiveEngine)
    assert engine.store.residency.evicted == naive.evicted  # type: ignore[union-attr]
    assert engine.carried_bytes()["d2h"] == naive.written * BLOCK_BYTES


def test_a_short_course_by_hand() -> None:
    """Four blocks, two of which stay: what each step does can be told."""
    naive = Naive(0.5, exclusive=False, through=False)
    naive.run(15, [[0, 3], [0, 3], [1, 4]])
    # 0 and 1 went down with the prompt, 2 and 3 stayed; 0 takes the place of 2, which is written; at 17 tokens a fifth
    # block comes, and a third may stay: it does; at last 1 takes the place of 3, which is written
    assert (naive.hits, naive.loads, naive.evicted, naive.written) == (4, 2, 2, 4)
