"""Law L48: the rows of blocks lead to what the tiers hold, at any time of the window."""

from __future__ import annotations

import re
from itertools import groupby
from math import isnan
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.kvcache.eviction import make_policy
from simkv.kvcache.index import PrefixIndex
from simkv.scenario.build import system_config, workload_source
from simkv.scenario.resolve import resolve
from simkv.sim.config import SystemConfig
from simkv.sim.record import sequences
from simkv.sim.record.extents import latest
from simkv.sim.record.labels import Labels
from simkv.sim.record.log import Log
from simkv.sim.record.names import Names
from simkv.sim.record.pools import PoolLog
from simkv.sim.record.recording import TIERS, WHATS, Wanted
from simkv.sim.record.sequences import SequenceLog
from simkv.workload.bodies import PlainBodies
from simkv.workload.request import OLD_STREAM, PRIVATE_STREAM_BASE, Source, Spans
from simkv.workload.single import Limits, OpenSource
from simkv.workload.streams import Streams
from tests import test_active_fuzz, test_tiers
from tests.active_factory import active_config
from tests.article_program import Program
from tests.blocks_factory import hold_law, watched
from tests.record_factory import recorded, rows
from tests.sim_factory import request

ROOT = Path(__file__).parents[1]


@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_rows_of_any_system_lead_to_what_its_tiers_hold(rng: Random) -> None:
    config, requests = test_tiers.random_case(rng)
    hold_law(watched(config, requests, share=0.2))


@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
def test_rows_of_any_window_lead_to_what_is_there_but_for_what_is_left_out(rng: Random) -> None:
    config, requests = test_tiers.random_case(rng)
    most = rng.choice((20, 60, 400))
    wanted = [Wanted("latest", most, True), Wanted("from_start", most, True), Wanted("asked", 10**6, True, 20.0, 60.0)]
    hold_law(watched(config, requests, *wanted, share=0.2), least=0)


@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_rows_of_running_sequences_lead_to_where_they_are(
    tmp_path_factory: pytest.TempPathFactory, rng: Random
) -> None:
    config, requests = test_active_fuzz.system(rng, Path(tmp_path_factory.mktemp("reads")))
    hold_law(watched(config, requests, share=0.3), least=0)


@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_rows_of_running_sequences_in_any_window_lead_to_where_those_are_that_are_followed(
    tmp_path_factory: pytest.TempPathFactory, rng: Random
) -> None:
    config, requests = test_active_fuzz.system(rng, Path(tmp_path_factory.mktemp("reads")))
    most = rng.choice((10, 40, 200))
    begin_s = rng.uniform(0.0, 10.0)
    wanted = [Wanted("latest", most, True), Wanted("asked", 10**6, True, begin_s, begin_s + 10.0)]
    most_blocks = rng.choice((1, 10, 8192))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "MOST_BLOCKS", most_blocks)
        hold_law(watched(config, requests, *wanted, share=0.3), least=0, follows=most_blocks == 8192)


SHORT = ("run.baselines=[]",)
SHIPPED: dict[str, tuple[str, tuple[str, ...], float]] = {
    # file, what is set, and the share of times that are looked at
    "chatbot": ("chatbot", ("workload.requests=150",), 0.003),
    "chatbot, warm, in units": (
        "chatbot",
        ("workload.requests=100", "run.warm_tiers=60s", "tiers.dram.capacity=4GiB", "offload.unit_tokens=256"),
        0.005,
    ),
    "two replicas": ("chatbot", ("workload.requests=100", "replicas.count=2", "tiers.dram.capacity=4GiB"), 0.005),
    "agent sessions": ("agent-sessions", (), 0.001),
    "two classes": ("qos-two-classes", ("run.duration=10s",), 0.003),
    "sparse": ("long-context-active", ("workload.requests=3", "workload.output_tokens=12"), 0.2),
    "dense": (
        "long-context-active",
        ("workload.requests=2", "workload.output_tokens=8", "offload.access={pattern: dense}"),
        0.1,
    ),
    "static batches": ("flexgen-opt-30b-t4", ("workload.size=48", "engine.gpu_batch_size=16"), 0.005),
}  # fmt: skip


def scenario(file: str, *assignments: str) -> tuple[SystemConfig, Source]:
    resolved = resolve(str(ROOT / "scenarios" / f"{file}.yaml"), [*assignments, *SHORT])
    return system_config(resolved, 0), workload_source(resolved, 0)


@pytest.mark.parametrize("name", SHIPPED)
def test_rows_of_a_shipped_scenario_lead_to_what_its_tiers_hold(name: str) -> None:
    file, assignments, share = SHIPPED[name]
    found = watched(*scenario(file, *assignments), share=share)
    compared = hold_law(found)
    (recording,) = found.data.recordings
    assert recording.whole and compared
    assert recording.blocks["t_s"] or name == "static batches"


def test_rows_of_the_articles_program_move_its_twelve_blocks_and_no_others() -> None:
    """As many loads as its reference counts, each when its transfer ends, and every block in one place."""
    data = watched(*scenario("article-toy"), share=0.0).data
    (recording,) = data.recordings
    assert recording.labels == ("request 0",)
    assert [row["capacity_blocks"] for row in rows(recording.pools)] == [3, 8, 12]
    told = [row | {"tier": TIERS[row["tier"]], "what": WHATS[row["what"]]} for row in rows(recording.blocks)]
    first = told.pop(0)
    assert (first["tier"], first["what"], first["first"], first["end"]) == ("ssd", "here", 0, 12)
    assert all(0 <= row["first"] < row["end"] <= 12 for row in told)
    loads = [row for row in told if (row["tier"], row["what"]) == ("vram", "here")]
    told = [row for row in told if row["t_s"] < recording.end_s]  # in the end everything goes at once
    assert all(row["end"] == row["first"] + 1 for row in told)
    tiers: dict[str, set[int]] = {"vram": set(), "dram": set(), "ssd": set(range(12))}
    for _, instant in groupby(told, key=lambda row: row["t_s"]):
        for row in instant:
            if row["what"] in ("here", "coming"):
                tiers[row["tier"]].add(row["first"])
            elif row["what"] == "gone":
                tiers[row["tier"]].remove(row["first"])
        assert len(tiers["vram"]) <= 3 and len(tiers["dram"]) <= 8
        assert not tiers["vram"] & tiers["dram"] and not tiers["dram"] & tiers["ssd"], "a block in two places"
    ends = dict(zip(recording.transfers["id"], recording.transfers["end_s"], strict=True))
    assert all(ends[row["transfer"]] == row["t_s"] for row in loads)
    program = Program(prefetches=True)
    program.run()
    assert len(loads) == program.loads
    came = {(row["t_s"], row["first"]) for row in loads}
    left = {(row["t_s"], row["first"]) for row in told if (row["tier"], row["what"]) == ("vram", "gone")}
    assert came & left, "some go for their own load"


def test_first_steps_of_the_articles_program_are_those_worked_out_by_hand() -> None:
    """Step 0 reads 0, 11 and 6 from SSD, 0.75 s each, into three free blocks; 1 is fetched for step 1 and, being the
    least recently used, goes again, to CPU memory. Step 1 reads 0, and 1 for 0.5 s in the place of 11."""
    (recording,) = watched(*scenario("article-toy"), share=0.0).data.recordings
    told = [
        (row["t_s"], TIERS[row["tier"]], WHATS[row["what"]], row["first"])
        for row in rows(recording.blocks)
        if row["t_s"] < 3.6
    ]
    assert told == [
        (0.0, "ssd", "here", 0),  # all twelve
        (0.0, "ssd", "gone", 0), (0.0, "vram", "coming", 0),
        (0.75, "vram", "here", 0), (0.75, "vram", "used", 0), (0.75, "ssd", "gone", 11), (0.75, "vram", "coming", 11),
        (1.5, "vram", "here", 11), (1.5, "vram", "used", 11), (1.5, "ssd", "gone", 6), (1.5, "vram", "coming", 6),
        (2.25, "vram", "here", 6), (2.25, "vram", "used", 6), (2.25, "ssd", "gone", 1),
        (3.0, "vram", "here", 1), (3.0, "vram", "gone", 1), (3.0, "dram", "here", 1),
        (3.0, "vram", "used", 0),
        (3.0, "dram", "gone", 1), (3.0, "vram", "gone", 11), (3.0, "dram", "here", 11), (3.0, "vram", "coming", 1),
        (3.5, "vram", "here", 1), (3.5, "vram", "used", 1), (3.5, "ssd", "gone", 2),
    ]  # fmt: skip


# ---- what content is called


def test_labels_name_content_by_its_last_token_and_by_all_before_it() -> None:
    names = Names()
    content = PlainBodies({"prompt_tokens": 8, "output_tokens": 8, "system_prompt": {"tokens": 6, "variants": 2}},
                          Streams(0), "workload")  # fmt: skip
    source = OpenSource(content, lambda: iter(()), Limits(None, None))
    labels = Labels(source, names)

    def called(spans: Spans, start: int, end: int) -> list[tuple[str, int, int]]:
        return [(names.texts[label], *run) for label, *run in labels.stretches(spans, start, end, 4)]

    one = ((0, 0, 6), (PRIVATE_STREAM_BASE + 7, 0, 20))
    assert called(one, 0, 6) == [("shared prefix 0", 0, 1), ("request 7", 1, 6)]
    assert called(one, 2, 3) == [("request 7", 2, 3)] and called(one, 0, 1) == [("shared prefix 0", 0, 1)]
    other = ((1, 0, 6), (5, 0, 8), (PRIVATE_STREAM_BASE + 8, 0, 20))
    assert called(other, 0, 4)[1] == ("shared prefix 5", 1, 3)
    behind = ((0, 0, 6), (5, 0, 8))
    assert called(behind, 1, 3) == [("shared prefix 5 after shared prefix 0", 1, 3)]
    assert called(((0, 0, 2), (0, 2, 4), (5, 0, 8)), 1, 3) == called(behind, 1, 3), "a run in two parts is one"
    assert called(((0, 2, 6),), 0, 1) == [("shared prefix 0 (2)", 0, 1)]
    assert called(((OLD_STREAM + 3, 0, 8),), 0, 2) == [("earlier content 3", 0, 2)]


@pytest.mark.parametrize(
    ("file", "assignments", "expected"),
    [
        ("chatbot", ("workload.requests=40",), {"shared prefix", "session"}),
        ("agent-sessions", (), {"hash", "request"}),
        ("qos-two-classes", ("run.duration=20s",), {"document", "request"}),
        ("article-toy", (), {"request"}),
    ],
)
def test_labels_of_shipped_scenarios_say_what_people_call_it(file: str, assignments: Any, expected: set[str]) -> None:
    (recording,) = watched(*scenario(file, *assignments), share=0.0).data.recordings
    assert len(set(recording.labels)) == len(recording.labels)
    assert {re.sub(r" \d.*", "", label) for label in recording.labels} <= expected


# ---- as a window begins


def test_window_in_the_middle_begins_with_what_was_used_last_and_counts_the_rest() -> None:
    config, source = scenario("chatbot", "workload.requests=400", "tiers.dram.capacity=8GiB")
    found = watched(config, source, Wanted("latest", 200, True), share=0.002)
    (recording,) = found.data.recordings
    there = [row for row in rows(recording.blocks) if WHATS[row["what"]] == "there"]
    assert recording.begin_s > 0.0 and not recording.whole and recording.full
    assert 0 < len(there) <= 200 and len(there) == len(recording.last_use_s) == len(recording.uses)
    assert sum(recording.left_out_blocks) > 0 and all(row["t_s"] == recording.begin_s for row in there)
    known = [used_s for used_s in recording.last_use_s if not isnan(used_s)]
    assert known and all(0.0 <= used_s <= recording.begin_s for used_s in known)
    assert all(uses >= 1 for uses in recording.uses)
    hold_law(found, least=0)


def test_window_of_more_sequences_than_are_followed_counts_what_the_others_hold_once() -> None:
    config, source = scenario("long-context-active", "workload.output_tokens=80")
    (recording,) = recorded(config, source, Wanted("latest", 7000, True)).recordings
    assert recording.begin_s > 0
    named = sum(
        row["end"] - row["first"]
        for row in rows(recording.blocks)
        if (TIERS[row["tier"]], WHATS[row["what"]]) == ("vram", "there")
    )
    (private, *_) = [row["blocks"] for row in rows(recording.private) if row["tier"] == 0]
    resident = 0.3 * sum(one.prompt_tokens for one in source.arrivals()) / 16
    assert 0 < named < private, "one is followed, seven aren't"
    assert recording.left_out_blocks[0] + named + private == pytest.approx(resident, rel=0.02)


def test_extents_used_last_come_first_and_what_is_held_before_all() -> None:
    index = PrefixIndex(4, make_policy("lru"), merge=True)
    for stream in range(6):
        index.unpin(index.extend(index.root, ((stream, 0, 16),), 4)[0])
    held, _ = index.extend(index.root, ((9, 0, 8),), 2)
    index.unpin(index.pin(index.match(((2, 0, 16),), 2)))  # splits it: its first half is used last
    found = [(node.spans[0][0], node.end) for node in latest(index, 4)]
    assert found == [(9, 2), (2, 2), (5, 4), (4, 4)]
    assert len(latest(index, 100)) == 8 and held.end == 2


# ---- wrong recordings must be seen


def a_forgotten_gone(self: Any, *told: Any) -> None:
    if self.number or self.tier or told[1]:  # all but what begins at block 0 of VRAM
        left(self, *told)


def a_lower_tier_told_in_other_units(self: Any, what: int, label: int, first: int, end: int, transfer: int = 0) -> None:
    unit = 1 + (self.tier > 0)
    row(self, what, label, first * unit, end * unit, transfer)


def a_use_that_lets_in(self: Any, *told: Any) -> None:
    self.entered(*told, 0)


left, row, used = PoolLog.left, PoolLog.row, PoolLog.used
WRONG = [("left", a_forgotten_gone), ("row", a_lower_tier_told_in_other_units), ("used", a_use_that_lets_in)]


@pytest.mark.parametrize(("name", "wrong"), WRONG)
def test_mutant_of_what_pools_tell_is_seen(name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config, requests = test_tiers.random_case(Random(5))
    hold_law(watched(config, requests, share=0.3))
    monkeypatch.setattr(PoolLog, name, wrong)
    with pytest.raises(AssertionError):
        hold_law(watched(config, requests, share=0.3))


def test_mutant_that_forgets_private_blocks_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PoolLog, "held", lambda self: None)
    with pytest.raises(AssertionError):
        hold_law(watched(*test_tiers.random_case(Random(5))))


def test_mutant_that_counts_what_isnt_followed_twice_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = SequenceLog.snapshot

    def twice(self: SequenceLog, log: Log, most: int, left_out: dict[PoolLog, int]) -> int:
        for seq in self.store.sequences.values():
            if seq not in self._held and seq.resident:
                left_out[self._pool(0)] = left_out.get(self._pool(0), 0) + seq.resident
        return snapshot(self, log, most, left_out)

    monkeypatch.setattr(sequences, "MOST_BLOCKS", 1)
    requests = [request(0, 0.0, 30, 30), request(1, 0.0, 30, 30)]
    wanted = Wanted("asked", 10**6, True, 3.0, 9.0)
    hold_law(watched(active_config(), requests, wanted), follows=False)
    monkeypatch.setattr(SequenceLog, "snapshot", twice)
    with pytest.raises(AssertionError, match="as the window begins"):
        hold_law(watched(active_config(), requests, wanted), follows=False)


def test_window_that_ends_as_a_use_is_told_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path of which only stretches are here is told of in several rows: the first may be a window's last."""
    index = PrefixIndex(4, make_policy("lru"), merge=False)
    top, _ = index.extend(index.root, ((0, 0, 8),), 2)
    gap, _ = index.extend(top, ((0, 0, 12),), 3, resident=False)
    bottom, _ = index.extend(gap, ((0, 0, 20),), 5)

    class Once:
        told = 0

        def used(self, *told: Any) -> None:
            self.told, index.watch = self.told + 1, None

    index.watch = once = Once()  # type: ignore[assignment]
    index.pin(index.match(((0, 0, 20),), 5, start=3))
    assert once.told and index.watch is None
    assert bottom.refs


def test_mutant_that_forgets_sequences_that_are_over_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    look = SequenceLog.look

    def forgets(self: SequenceLog, tell: bool = True) -> None:
        live = self.store.sequences
        self._held = {seq: held for seq, held in self._held.items() if live.get(seq.live) is seq}
        look(self, tell)

    monkeypatch.setattr(SequenceLog, "look", forgets)
    requests = [request(0, 0.0, 30, 3), request(1, 0.0, 30, 12)]
    with pytest.raises(AssertionError):
        hold_law(watched(active_config(), requests))
