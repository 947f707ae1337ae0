"""What the block player is given: the same blocks in the same places as the recording says, nothing left out unsaid."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.report.document import Figure, Table, Text, Widget
from simkv.report.player import cells, ground, player
from simkv.report.player.payload import payload
from simkv.report.player.policy import policy
from simkv.scenario.resolve import resolve
from simkv.sim.record.recording import PLAYER, POOLS, Recording
from simkv.simulation import run_scenario
from tests.player_factory import (
    COMING,
    D2H,
    DRAM,
    GONE,
    H2D,
    HERE,
    HOSTILE,
    RESOLVED,
    SUMMARY,
    THERE,
    USED,
    VRAM,
    Maker,
    Place,
    named,
    sessions,
    table,
    truth,
)  # fmt: skip


def shown(recording: Recording) -> dict[str, Any]:
    """Return the player's data as a page would read it."""
    widget = player(recording, SUMMARY, RESOLVED)
    assert widget is not None and widget.kind == "player"
    return dict(json.loads(json.dumps(widget.data)))


def played(data: Mapping[str, Any], until: float) -> dict[Place, bool]:
    """Replay what is given to the page, up to ``until`` of its time: the drawn blocks only."""
    state: dict[Place, bool] = {}
    place = {key: data["cells"][key] for key in ("label", "first", "end")}

    def blocks(pool: int, first: int, end: int) -> list[Place]:
        return [
            (pool, place["label"][cell], block)
            for cell in range(first, end)
            for block in range(place["first"][cell], place["end"][cell])
        ]

    start = data["start"]
    for pool, first, end, transfer in zip(start["pool"], start["first"], start["end"], start["transfer"], strict=True):
        state.update(dict.fromkeys(blocks(pool, first, end), transfer < 0))
    columns = (data["events"][name] for name in ("t", "pool", "what", "first", "end"))
    for t, pool, what, first, end in zip(*columns, strict=True):
        if t > until:
            break
        for one in blocks(pool, first, end):
            if what == GONE:
                state.pop(one, None)
            elif what != USED:
                state[one] = what == HERE
    return state


def level(data: Mapping[str, Any], table: str, pool: int, until: float) -> int:
    """Return the last count of a pool in one of the two tables of counts."""
    columns = (data[table][name] for name in ("t", "pool", "blocks"))
    counts = [blocks for t, number, blocks in zip(*columns, strict=True) if number == pool and t <= until]
    return int(counts[-1]) if counts else 0


def called(state: Mapping[Place, bool], labels: Sequence[str]) -> dict[tuple[int, str, int], bool]:
    """Return ``state`` with names instead of numbers."""
    return {(pool, labels[label], block): here for (pool, label, block), here in state.items()}


def assert_same(recording: Recording, data: Mapping[str, Any]) -> None:
    """At every event the page shows what the recording says: drawn blocks one by one, the others by number."""
    names = data["labels"]
    drawn = set()
    for label, first, end in zip(*(data["cells"][key] for key in ("label", "first", "end")), strict=True):
        drawn |= {(names[label], block) for block in range(first, end)}
    times = sorted({recording.begin_s, *recording.blocks["t_s"], recording.end_s})
    for t_s in times:
        until = round(t_s - recording.begin_s, 9)
        exact = {
            (pool, recording.labels[label], block): here for (pool, label, block), here in truth(recording, t_s).items()
        }
        seen = {(pool, names[label], block): here for (pool, label, block), here in played(data, until).items()}
        assert seen == {one: here for one, here in exact.items() if one[1:] in drawn}
        for pool in range(len(data["pools"])):
            others = sum(one[0] == pool and one[1:] not in drawn for one in exact)
            assert level(data, "hidden", pool, until) == others


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 12), st.integers(0, 20))
def test_player_any_recording_is_shown_as_it_is(seed: int, count: int, turns: int) -> None:
    recording = sessions(count, turns, seed)
    assert_same(recording, shown(recording))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 11))
def test_player_blocks_that_are_not_drawn_are_counted(seed: int, most: int) -> None:
    recording = sessions(12, 20, seed)
    pools = ground.pools(recording)
    rows = list(ground.rows(recording, pools))
    data = payload(recording, pools, rows, cells.cut(rows, most), policy(RESOLVED))
    assert len(data["cells"]["label"]) == most
    assert any(data["hidden"]["blocks"])
    assert_same(recording, data)


def test_player_cells_are_cut_where_any_row_begins_or_ends() -> None:
    maker = Maker((64, 64, 0))
    maker.there(DRAM, 0, 0, 30)
    maker.move(101.0, H2D, (0, 0, 20), "load")
    maker.note(102.0, VRAM, GONE, (0, 12, 20))
    data = shown(maker.recording(103.0, ["session 0"]))
    assert list(zip(data["cells"]["first"], data["cells"]["end"], strict=True)) == [(0, 12), (12, 20), (20, 30)]


def test_player_many_blocks_draw_at_most_four_hundred_cells_of_what_is_heard_most() -> None:
    maker = Maker((5000, 5000, 0))
    for label in range(900):
        maker.there(DRAM, label, 0, 2)
    for label in range(700, 900):
        maker.note(101.0, DRAM, USED, (label, 0, 2))
    recording = maker.recording(102.0, [f"session {label}" for label in range(900)])
    data = shown(recording)
    assert len(data["cells"]["label"]) == cells.MOST_CELLS
    assert {f"session {label}" for label in range(700, 900)} <= set(data["labels"])
    assert level(data, "hidden", 1, 0.0) == 1800 - 2 * cells.MOST_CELLS
    assert len(json.dumps(data)) < 500_000


def test_player_blocks_left_out_of_the_recording_are_there_until_they_leave() -> None:
    maker = Maker((64, 64, 0))
    maker.there(VRAM, 0, 0, 4)
    maker.note(101.0, VRAM, GONE, (1, 0, 6))
    maker.note(102.0, VRAM, USED, (2, 0, 3))
    recording = replace(maker.recording(103.0, ["a 0", "b 1", "c 2"]), left_out_blocks=(20, 0))
    data = shown(recording)
    assert sum(here for (pool, _, _), here in played(data, 0.0).items() if pool == 0) == 4 + 6 + 3
    assert sum(1 for _ in played(data, 1.5)) == 4 + 3
    assert level(data, "hidden", 0, 0.0) == level(data, "hidden", 0, 3.0) == 20 - 6 - 3


def test_player_tiers_of_larger_blocks_count_in_their_own() -> None:
    maker = Maker((64, 8, 0))
    maker.rows.append((maker.begin_s, DRAM, 0, THERE, 0, 0, 3, 0))
    maker.last.append(99.0)
    maker.uses.append(2)
    maker.move(101.0, H2D, (0, 0, 12), "load")
    pools = table(POOLS, [(VRAM, 0, 64, 1 << 20, 16), (DRAM, 0, 8, 4 << 20, 64)])
    data = shown(replace(maker.recording(102.0, ["session 0"]), pools=pools))
    assert [pool["scale"] for pool in data["pools"]] == [1, 4]
    assert list(zip(data["cells"]["first"], data["cells"]["end"], strict=True)) == [(0, 12)]
    assert data["start"] == {"pool": [1], "first": [0], "end": [1], "transfer": [-1], "last_s": [-1.0], "uses": [2]}


def test_player_hostile_names_stay_data() -> None:
    data = shown(named(sessions(), HOSTILE))
    assert set(HOSTILE) <= set(data["labels"])


def test_player_transfer_that_is_not_over_has_no_end_and_brings_what_comes() -> None:
    maker = Maker((64, 64, 0))
    maker.there(DRAM, 0, 0, 30)
    maker.move(101.0, H2D, (0, 0, 30), "prefetch", "open", over=False)
    data = shown(maker.recording(101.1, ["session 0"]))
    assert data["transfers"]["end"] == [None] and data["events"]["transfer"] == [0]
    assert data["events"]["what"] == [COMING]


def test_player_nothing_recorded_is_nothing_to_show() -> None:
    assert player(Maker((64, 64, 0)).recording(101.0, []), SUMMARY, RESOLVED) is None


@pytest.mark.parametrize(
    ("eviction", "lam", "orders"),
    [("{policy: score, lambda: 0.55}", 0.55, True), ("{policy: lru}", 1.0, True), ("{policy: lfu}", 0.0, True),
     ("{policy: s3fifo}", 0.7, False)],
)  # fmt: skip
def test_player_heat_begins_with_the_runs_own_lambda(eviction: str, lam: float, orders: bool) -> None:
    found = policy(f"offload:\n  eviction: {eviction}\n")
    assert (found["lambda"], found["orders"]) == (lam, orders)


def test_player_instead_tells_the_window_in_figures() -> None:
    recording = sessions()
    widget = player(recording, SUMMARY, RESOLVED)
    assert isinstance(widget, Widget)
    kinds = [type(block) for block in widget.instead]
    assert kinds == [Text, Table, Table, Figure]
    moved, shelves, figure = widget.instead[1:]
    assert isinstance(moved, Table) and isinstance(shelves, Table) and isinstance(figure, Figure)
    assert sum(row[3].exact for row in moved.rows) == len(recording.transfers["id"])
    assert sum(row[4].exact for row in moved.rows) == sum(recording.transfers["bytes"])
    prefetches = next(row for row in moved.rows if row[2].text == "prefetch")
    assert sum(int(cell.exact) for cell in prefetches[5:]) == prefetches[3].exact
    last = truth(recording, recording.end_s)
    alone = [
        blocks for tier, blocks in zip(recording.private["tier"], recording.private["blocks"], strict=True) if tier == 0
    ]
    assert shelves.rows[0][4].exact == sum(pool == 0 for pool, _, _ in last) + alone[-1]
    drawn = io.BytesIO()
    figure.draw(drawn, "png")
    assert drawn.getvalue().startswith(b"\x89PNG")
    assert "VRAM" in figure.alt


def test_player_articles_program_plays_twelve_blocks_on_three_and_eight_places() -> None:
    result = run_scenario(resolve("scenarios/article-toy.yaml"), record=(PLAYER,))
    recording = result.data.recordings[0]
    widget = player(recording, result.summary, result.resolved)
    assert widget is not None
    data = json.loads(json.dumps(widget.data))
    assert [pool["capacity_blocks"] for pool in data["pools"]] == [3, 8, 12]
    assert list(zip(data["cells"]["first"], data["cells"]["end"], strict=True)) == [(k, k + 1) for k in range(12)]
    assert data["policy"]["eviction"] == "lru" and data["policy"]["lambda"] == 1.0
    assert_same(recording, data)
    assert D2H in recording.transfers["lane"]
    shelves = next(block for block in widget.instead if isinstance(block, Table) and block.name == "player_shelves")
    came = {row[0].text: [cell.exact for cell in row[5:]] for row in shelves.rows}
    assert came == {"VRAM": [541, 541], "DRAM": [221, 221], "SSD": [38, 38]}, "whatever came has left at the end"


def test_player_of_static_batches_says_that_more_than_blocks_is_carried() -> None:
    result = run_scenario(resolve("scenarios/flexgen-opt-30b-t4.yaml"), record=(PLAYER,))
    widget = player(result.data.recordings[0], result.summary, result.resolved)
    assert widget is not None and widget.finding.startswith("Weights, activations and KV between the tiers: ")


def test_player_serving_fills_its_tiles_and_never_more() -> None:
    sets = ["workload.requests=250", "engine.num_gpu_blocks=3000", "tiers.dram.capacity=10GiB", "run.baselines=[]"]
    result = run_scenario(resolve("scenarios/chatbot.yaml", sets), record=(PLAYER,))
    widget = player(result.data.recordings[0], result.summary, result.resolved)
    assert widget is not None
    data = json.loads(json.dumps(widget.data))
    for share in (0.0, 0.3, 0.6, 1.0):
        until = share * (data["window"]["end_s"] - data["window"]["begin_s"])
        drawn = played(data, until)
        for number, pool in enumerate(data["pools"]):
            used = sum(one[0] == number for one in drawn)
            used += level(data, "hidden", number, until) + level(data, "private", number, until)
            assert 0.9 * pool["capacity_blocks"] < used <= pool["capacity_blocks"]
    assert len(data["cells"]["label"]) <= cells.MOST_CELLS and len(json.dumps(data)) < 500_000
