"""The cases of hit rates, loads and chats over tiers: figures as published, and what simkv says of the quick ones."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import pytest
import yaml

from simkv.jobs.workers import Workers
from simkv.validation.expected import expected_si
from simkv.validation.read import Read, own_cases
from simkv.validation.study import study

PUBLISHED = {
    "vllm-h100-l8b-hitrate-tput": ["throughput", "baseline_no_offload"],
    "vllm-h100-l1b-cpuhit-ttft": ["dma", "kernel"],
    "vllm-h100-d2h-bw": ["dma", "kernel"],
    "pegaflow-h800-l8b-10k": ["cold_mean_ttft", "cold_p99_ttft", "warm_mean_ttft", "warm_p99_ttft"],
    "mooncake-transfer-engine": ["4x200Gbps", "8x400Gbps"],
    "mooncake-ssd-overall": [
        f"{what}_{tiers}" for what in ("ttft", "in_tput") for tiers in ("gpu_only", "l2", "mooncake", "mooncake_ssd")
    ],
    "mooncake-ssd-per-turn": ["ttft_gpu_only", "ttft_l2", "ttft_mooncake", "ttft_ssd"],
    "mooncake-ssd-per-turn-hits": ["hit_gpu_only", "hit_l2", "hit_mooncake", "hit_ssd"],
}
"""Cases, and which of what was observed there they have, in order."""


def case_of(name: str) -> Read:
    """Return one of simkv's own cases."""
    return next(read for read in own_cases() if read.case.id == name)


@pytest.mark.shared
@pytest.mark.parametrize("name", PUBLISHED)
def test_expected_figures_are_those_that_were_published(name: str, shared: Path) -> None:
    every: list[dict[str, Any]] = yaml.safe_load((shared / "published" / "measurements.yaml").read_text())
    observed = next(one for one in every if one["id"] == name.removesuffix("-hits"))["observed"]
    published: list[float] = []
    for figure in PUBLISHED[name]:
        one = observed[figure]
        points = [y for _, y in one["points"]] if "points" in one else [one["value"]]
        published += [expected_si(f"{y} {one.get('unit') or observed[PUBLISHED[name][0]]['unit']}") for y in points]
    assert [expected_si(seen.expected) for seen in case_of(name).case.observations] == pytest.approx(published)


@pytest.mark.parametrize(
    ("name", "most"), [("vllm-h100-l1b-cpuhit-ttft", 0.05), ("vllm-h100-d2h-bw", 0.06), ("pegaflow-ssd", 0.1)]
)
def test_loads_and_copies_are_predicted_within_what_is_said_of_them(name: str, most: float) -> None:
    with Workers(1) as workers:
        rows = study([case_of(name)], None, workers)
    errors = [abs(row.error) for row in rows if row.error is not None and not row.observation.fitted]
    assert len(errors) == sum(not row.observation.fitted for row in rows)
    assert median(errors) < most


def test_fitted_rows_are_few_and_of_what_the_file_names() -> None:
    fitted = {
        read.case.id: sum(seen.fitted for seen in read.case.observations)
        for read in own_cases()
        if read.case.id in PUBLISHED
    }
    assert {name: count for name, count in fitted.items() if count} == {
        "vllm-h100-l8b-hitrate-tput": 1,
        "vllm-h100-l1b-cpuhit-ttft": 11,
        "vllm-h100-d2h-bw": 5,
        "mooncake-ssd-per-turn": 3,
        "mooncake-ssd-overall": 4,
    }
