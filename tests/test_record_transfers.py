"""What recorded transfers were for, and what became of prefetches: cases whose course is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simkv.kvcache.access import TopK
from simkv.scenario.resolve import resolve
from simkv.sim.rundata import RunData
from simkv.simulation import run_scenario
from tests.active_factory import active_config, decoding
from tests.record_factory import WHOLE, check_whole, recorded, rows, transfers
from tests.sim_factory import BLOCK_BYTES, request, same
from tests.test_swap import TWO, short
from tests.test_tiers import PROMPT, REUSED, evicting, twice, waiting_for_its_turn, with_prefetch

ROOT = Path(__file__).parents[1]


def fates(data: RunData) -> list[str]:
    """Return what became of prefetches, in the order that they ended in."""
    return [row["fate"] for row in transfers(data, "prefetch")]


def test_load_is_for_its_request_and_store_for_whose_blocks_they_are() -> None:
    data = recorded(evicting(), twice())
    (load,) = transfers(data, "load")
    assert (load["request"], load["bytes"], load["lane"], load["kind"]) == (
        2,
        REUSED * BLOCK_BYTES,
        "replica 0 h2d",
        "demand",
    )
    assert {row["request"] for row in transfers(data, "store")} == {0, 1}
    assert {row["kind"] for row in transfers(data, "store")} == {"write_back"}
    assert fates(data) == []
    assert {row["fate"] for row in transfers(data)} == {"none"}


def test_spills_cascades_and_promotions_are_told_apart() -> None:
    config = evicting(write="write_back", dram_blocks=6, ssd_blocks=100)
    data = recorded(config, [*twice()[:2], request(3, 80.0, 24, 1), same(2, 100.0, PROMPT, 1, 1)])
    spilled = transfers(data, "spill")
    assert {row["lane"] for row in spilled} == {"replica 0 d2h", "host 0 ssd_write"}
    (promoted,) = transfers(data, "promote")
    assert (promoted["lane"], promoted["request"], promoted["fate"]) == ("host 0 ssd_read", 2, "none")
    through = recorded(evicting(ssd_blocks=100), twice())
    assert {row["lane"] for row in transfers(through, "cascade")} == {"host 0 ssd_write"}


def test_swaps_go_out_and_come_in_for_their_request() -> None:
    data = recorded(short(), TWO)
    (out,), (back,) = transfers(data, "swap_out"), transfers(data, "swap_in")
    assert (out["request"], out["bytes"], out["lane"]) == (1, 2 * BLOCK_BYTES, "replica 0 d2h")
    assert (back["request"], back["bytes"], back["lane"]) == (1, BLOCK_BYTES, "replica 0 h2d")


def test_step_that_waits_for_a_swap_says_for_how_long() -> None:
    data = recorded(short(d2h=500.0), TWO)  # two blocks of a thousand bytes take four seconds
    waits = [row["wait_s"] for row in rows(data.recordings[0].steps) if row["wait_s"]]
    assert waits == pytest.approx([4.0])
    check_whole(data)


# ---- prefetches of waiting requests


def test_prefetch_that_was_there_in_time_is_useful() -> None:
    config, requests = waiting_for_its_turn()
    data = recorded(with_prefetch(config), requests)
    (row,) = transfers(data, "prefetch")
    assert (row["fate"], row["request"], row["kind"]) == ("useful", 3, "look_ahead")


def test_prefetch_that_is_waited_for_is_late_and_urgent() -> None:
    config, requests = waiting_for_its_turn(h2d=100.0)
    (row,) = transfers(recorded(with_prefetch(config), requests), "prefetch")
    assert (row["fate"], row["request"], row["kind"]) == ("late", 3, "demand")


@pytest.mark.parametrize(("output", "used_blocks", "fate"), [(12, 2, "useful"), (16, 1, "useful"), (20, 0, "wasted")])
def test_prefetch_pushed_out_before_anything_of_it_was_read_is_wasted(output: int, used_blocks: int, fate: str) -> None:
    """The sequence that runs takes the room of what was fetched, tails first, as it grows."""
    config, requests = waiting_for_its_turn(num_gpu_blocks=6)
    requests[1] = request(1, 100.0, 4, output)
    data = recorded(with_prefetch(config), requests)
    assert data.prefetch["used_bytes"] == used_blocks * BLOCK_BYTES
    assert fates(data) == [fate]


@pytest.mark.parametrize(
    ("offload", "fate"),
    [
        ({}, "late"),
        ({"prefetch_stop": "best_effort"}, "late"),
        ({"prefetch_stop": "timeout", "timeout_base_s": 25.0}, "late"),
    ],
)
def test_read_ahead_that_its_request_waits_for_or_gives_up_is_late(offload: dict[str, Any], fate: str) -> None:
    changes = {"num_gpu_blocks": 30, "dram_blocks": 6, "ssd_blocks": 100, "ssd_read": 100.0}
    config, requests = waiting_for_its_turn(**changes, **({"timeout_per_ki_token_s": 0.0} | offload))
    requests[2] = request(2, 50.0, 24, 1)
    requests[1] = request(1, 40.0, 4, 80)
    data = recorded(with_prefetch(config), requests)
    assert [row["fate"] for row in transfers(data, "prefetch") if row["lane"] == "host 0 ssd_read"] == [fate]


def test_read_ahead_in_time_is_useful_on_both_its_hops() -> None:
    config, requests = waiting_for_its_turn(num_gpu_blocks=30, dram_blocks=6, ssd_blocks=100)
    requests[2] = request(2, 50.0, 24, 1)
    requests[1] = request(1, 40.0, 4, 80)
    data = recorded(with_prefetch(config), requests)
    assert [(row["lane"], row["fate"]) for row in transfers(data, "prefetch")] == [
        ("host 0 ssd_read", "useful"),
        ("replica 1 h2d", "useful"),
    ]


def test_read_ahead_pushed_out_and_read_again_is_wasted_once() -> None:
    config, _ = waiting_for_its_turn(num_gpu_blocks=20, dram_blocks=6, ssd_blocks=100)
    requests = [
        same(0, 0.0, PROMPT, 1, 1),
        request(1, 40.0, 4, 1),
        request(2, 50.0, 24, 1),
        request(3, 100.0, 60, 20),
        request(4, 105.0, 4, 1),
        same(5, 108.0, PROMPT, 1, 1),
        request(6, 110.0, 24, 1),
    ]
    data = recorded(with_prefetch(config), requests)
    assert len(transfers(data, "promote")) == 1
    assert fates(data) == ["wasted"]


# ---- prefetches of active offload

SPARSE: dict[str, Any] = {"access": TopK(24, 4, 4, 0.5, 0.3), "residency": 0.6, "num_gpu_blocks": 100}


def active(**changes: Any) -> RunData:
    data = recorded(active_config(**changes), [decoding(80, 20)])
    check_whole(data, steps_wait=True)
    return data


def test_streams_and_write_downs_of_active_offload_are_told_apart() -> None:
    data = active(policy="layer")
    assert {row["lane"] for row in transfers(data, "stream")} == {"replica 0 h2d"}
    assert {(row["lane"], row["request"]) for row in transfers(data, "store")} == {("replica 0 d2h", 0)}
    assert fates(data) == []


def test_next_steps_first_layers_are_useful_late_or_unread() -> None:
    quick, slow = active(policy="next_step", h2d=1e6), active(policy="next_step", h2d=3e3)
    assert set(fates(quick)) <= {"useful", "open"} and fates(quick).count("open") <= 1
    assert "late" in fates(slow)
    assert {row["kind"] for row in transfers(slow, "prefetch") if row["fate"] == "late"} == {"demand"}


def test_the_oracles_flights_are_never_wasted() -> None:
    data = active(policy="oracle", **SPARSE, h2d=1e6)
    assert set(fates(data)) == {"useful"}
    assert set(fates(active(policy="oracle", **SPARSE, h2d=1e3))) == {"useful", "late"}


def test_guesses_that_nobody_reads_are_wasted() -> None:
    wrong = active(policy="next_step", accuracy=0.0, **SPARSE, h2d=1e6)
    assert "wasted" in fates(wrong) and "late" not in fates(wrong)
    assert wrong.active is not None and wrong.active.wasted > 0
    half = active(policy="next_step", accuracy=0.5, **SPARSE, h2d=1e6)
    assert fates(half).count("useful") > fates(wrong).count("useful")


def test_prefetches_of_the_articles_program_are_all_wasted_and_of_the_corrected_one_hardly_any() -> None:
    """In the program a block that is prefetched into a full VRAM is itself the one to go; corrected, it stays."""
    found = {}
    for name in ("article-toy", "article-toy-corrected"):
        resolved = resolve(str(ROOT / "scenarios" / f"{name}.yaml"), ["run.baselines=[]"])
        found[name] = fates(run_scenario(resolved, record=(WHOLE,)).data)
    assert set(found["article-toy"]) == {"wasted"}
    assert found["article-toy-corrected"].count("wasted") == 1
    assert set(found["article-toy-corrected"]) == {"useful", "wasted"}
