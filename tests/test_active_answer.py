"""What the summary of active offload says, and that its figures add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simkv.scenario.resolve import resolve_text
from simkv.simulation import run_scenario
from tests.test_active_scenario import BASE, DENSE

NEXT = ("offload.prefetch={policy: oracle}",)
KINDS = {
    "on demand": (BASE, ("offload.prefetch={policy: none}",)),
    "layers ahead": (BASE, ("offload.prefetch={policy: layer}",)),
    "steps ahead": (BASE, NEXT),
    "dense": (DENSE, ("offload.prefetch={policy: layer}",)),
    "dense, steps ahead": (DENSE, ("offload.prefetch={policy: next_step}",)),
    "beta": (DENSE, ("offload.prefetch={policy: fixed_overlap, beta: 0.5}",)),
    "rewrite": (DENSE, ("offload.prefetch={policy: next_step}", "offload.write=rewrite")),
    "write back": (BASE, ("offload.prefetch={policy: none}", "offload.write=write_back", "engine.prefill=here")),
    "slow writes": (BASE, ("offload.prefetch={policy: none}", "offload.write=write_back", "link.d2h=0.05 GB/s")),
    "host": (BASE, ("offload.prefetch={policy: layer}", "offload.host_cost_per_block=1us")),
    "SSD": (BASE, ("offload.prefetch={policy: layer}", "tiers.ssd.capacity=1TB", "engine.prefill=ssd")),
}


def summary(content: str, *assignments: str, **options: Any) -> dict[str, Any]:
    return run_scenario(resolve_text(content, "s.yaml", assignments), audit=True, **options).summary


@pytest.mark.parametrize("kind", KINDS)
def test_decode_step_is_compute_and_what_it_waits_for(kind: str) -> None:
    content, assignments = KINDS[kind]
    found = summary(content, *assignments, "workload.output_tokens=40")
    parts = found["t_compute_s"] + sum(found["t_wait_s"].values())
    assert found["t_step_s"] == pytest.approx(parts, rel=1e-9)
    assert 0 <= found["p_resident"] <= found["p_hit"] <= 1


def test_timely_prefetch_counts_as_hit_and_not_as_resident_before() -> None:
    on_demand = summary(DENSE, "offload.prefetch={policy: none}", "workload.output_tokens=40")
    ahead = summary(DENSE, "offload.prefetch={policy: layer}", "workload.output_tokens=40", "link.h2d=100000 GB/s")
    assert on_demand["p_hit"] == on_demand["p_resident"] == pytest.approx(ahead["p_resident"])
    assert ahead["p_hit"] > 0.9


def test_room_below_vram_is_named_where_sequences_wait_for_it() -> None:
    crowded = ("workload.size=8", "workload.output_tokens=64", "offload.prefetch={policy: layer}")
    found = summary(BASE, *crowded, "tiers.dram.capacity=300MiB")
    assert found["concurrency"]["max"] == 1
    assert found["bottleneck"] == "dram" and "room below VRAM" in found["bottleneck_because"]
    assert summary(BASE, *crowded)["bottleneck"] != "dram"


def test_closed_form_with_staging_is_what_runs_at_once() -> None:
    crowded = ("workload.size=40", "workload.output_tokens=64", "engine.num_gpu_blocks=800", "engine.max_num_seqs=64")
    found = summary(DENSE, *crowded, "offload.prefetch={policy: layer}")
    assert found["concurrency"]["max"] == found["closed_form"]["concurrency_with_staging"]
    assert found["concurrency"]["formula"] > found["concurrency"]["max"]


def test_log_that_ends_early_is_told(tmp_path: Path) -> None:
    rows = [{"step": step, "sequence": number, "blocks": [step, 0]} for number in range(2) for step in range(1, 4)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = f"offload.access={{pattern: replay, path: {tmp_path / 'log.jsonl'}}}"
    found = summary(BASE, asked, "offload.prefetch={policy: none}")
    told = [warning["message"] for warning in found["warnings"] if warning["code"] == "empty_steps"]
    assert len(told) == 1 and "62 %" in told[0], told
