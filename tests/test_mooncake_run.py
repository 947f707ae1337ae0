"""The Mooncake conversation trace, whole, through three replicas and all tiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simkv.scenario.resolve import resolve
from simkv.simulation import run_scenario

SCENARIO = Path(__file__).parents[1] / "scenarios" / "mooncake-conversation.yaml"

pytestmark = pytest.mark.shared


def summary_of(shared: Path, *changes: str) -> dict[str, Any]:
    trace = shared / "traces" / "mooncake" / "conversation_trace.jsonl"
    return run_scenario(resolve(str(SCENARIO), [f"workload.path={trace}", "run.baselines=[]", *changes])).summary


@pytest.fixture(scope="module")
def shipped(shared: Path) -> dict[str, Any]:
    return summary_of(shared)


def test_mooncake_every_request_and_token_is_there_and_the_run_is_stationary(shipped: dict[str, Any]) -> None:
    assert shipped["requests"] == {"arrived": 12_031, "finished": 12_031, "rejected": 0, "live": 0}
    assert shipped["prompt_tokens"] == 144_793_823
    assert shipped["output_tokens"] == 4_122_048
    assert "not_stationary" not in {warning["code"] for warning in shipped["warnings"]}
    rates = shipped["hit_rate"]
    assert sum(rates[tier] for tier in ("vram", "dram", "ssd", "miss")) == pytest.approx(1.0, abs=1e-12)
    assert 1 - rates["miss"] <= rates["ceiling"] == pytest.approx(0.3736, abs=0.002)


def test_mooncake_dram_tier_raises_hits_and_lowers_ttft(shared: Path) -> None:
    dram = summary_of(shared, "tiers.ssd.capacity=0GiB")
    none = summary_of(shared, "tiers.dram.capacity=0GiB", "tiers.ssd.capacity=0GiB")
    assert dram["hit_rate"]["miss"] < none["hit_rate"]["miss"] - 0.05
    assert dram["ttft_s"]["mean"] < none["ttft_s"]["mean"]
    assert dram["hit_rate"]["ceiling"] == none["hit_rate"]["ceiling"]
    assert none["bytes"]["h2d"] is None and none["bytes"]["d2h"] is None  # there is no lower tier


def test_mooncake_slow_link_is_not_better(shared: Path, shipped: dict[str, Any]) -> None:
    slow = summary_of(shared, "link.h2d=1 GB/s", "link.d2h=1 GB/s")
    assert slow["ttft_s"]["mean"] > 1.01 * shipped["ttft_s"]["mean"]
    assert slow["ttft_s"]["p95"] > shipped["ttft_s"]["p95"]
    assert slow["output_tokens"] == shipped["output_tokens"]
