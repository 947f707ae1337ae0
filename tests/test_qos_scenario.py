"""Classes in a scenario: what is refused, and what an urgent class keeps when a patient one floods the link."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simkv.scenario.build import system_config, workload_source
from simkv.scenario.resolve import resolve, resolve_text
from simkv.sim import tiers
from simkv.sim.system import System
from simkv.workload.replay import FixedSource
from tests.faults import SMALL, complaints

BASE = SMALL.replace(
    "tiers:",
    """\
  mix: {chat: 0.5, bulk: 0.5}
engine: {scheduling: priority}
classes:
  chat: {priority: 0}
  bulk: {priority: 1}
tiers:""",
)
SCENARIO = Path(__file__).parents[1] / "scenarios" / "qos-two-classes.yaml"


def test_shares_reach_the_simulator() -> None:
    assignments = ["classes.chat.dram_share=0.25", "classes.bulk.vram_share=0.5"]
    chat, bulk = system_config(resolve_text(BASE, "s.yaml", assignments)).classes
    assert (chat.dram_share, chat.vram_share) == (0.25, None)
    assert (bulk.dram_share, bulk.vram_share) == (None, 0.5)


@pytest.mark.parametrize(
    ("assignments", "told"),
    [
        (
            ("classes.chat.dram_share=0.6", "classes.bulk.dram_share=0.6"),
            "--set: classes.chat.dram_share = 0.6: the classes' parts of DRAM sum to 1.2; they must sum to 1 or less",
        ),
        (
            ("classes.chat.dram_share=0.6", "tiers.dram.capacity=0GiB"),
            "--set: classes.chat.dram_share = 0.6: is a part of nothing: there is no DRAM tier; give "
            "tiers.dram.capacity, or leave it out",
        ),
        (
            ("classes.chat.dram_share=1",),
            "s.yaml:14: classes.bulk: no DRAM is left for it: the parts of the others sum to 1; leave some, or give "
            "every class a dram_share",
        ),
        (
            ("classes.chat.dram_share=0.5", "offload.write=write_back"),
            "--set: classes.chat.dram_share = 0.5: an evicted block is no class's own, and offload.write is "
            "write_back; write a write_through policy, or leave dram_share out",
        ),
        (
            ("classes.chat.vram_share=1.5",),
            "--set: classes.chat.vram_share = 1.5: too large; the most that makes sense here is 1",
        ),
        (("classes.chat.dram_share=0",), "--set: classes.chat.dram_share = 0: zero; it must be above zero"),
    ],
)
def test_wrong_share_is_told_with_its_mend(assignments: tuple[str, ...], told: str) -> None:
    assert complaints(BASE, *assignments) == [told]


def test_retention_reaches_the_simulator_and_is_of_policy_priority_alone() -> None:
    chat, bulk = system_config(
        resolve_text(BASE, "s.yaml", ["classes.chat.retention=80", "offload.eviction.policy=priority"])
    ).classes
    assert (chat.retention, bulk.retention) == (80, None)
    assert complaints(BASE, "classes.chat.retention=80") == [
        "--set: classes.chat.retention = 80: does nothing with offload.eviction.policy lru; write policy: priority, or "
        "leave it out"
    ]


# ---- a flood


def interactive(*assignments: str, flood: bool = True) -> tuple[float, float]:
    """Return the interactive class's p95 TTFT after the warm-up, and its share of hits in VRAM.

    ``flood``: beside the batch job.
    """
    resolved = resolve(str(SCENARIO), assignments=list(assignments))
    requests = list(workload_source(resolved, 0).arrivals())
    kept = [one for one in requests if flood or one.cls == "interactive"]
    data = System(system_config(resolved), FixedSource(kept)).run()
    rows = data.requests["cls"] == data.class_names.index("interactive")
    rows &= data.requests["arrival_s"] > resolved.scenario.run.warm_up
    assert int(rows.sum()) > 100
    ttft_s = (data.requests["first_token_s"] - data.requests["arrival_s"])[rows]
    in_vram = data.requests["hit_vram_tokens"][rows].sum() / data.requests["prompt_tokens"][rows].sum()
    return float(np.percentile(ttft_s, 95)), float(in_vram)


def test_interactive_class_keeps_its_ttft_under_a_flood_with_priorities_and_not_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kept: within 100 ms of its value alone, about a step and a chunk. Priorities in the queue alone don't do it.

    It may be less than alone: the flood asks about the same manuals, and leaves more of them in VRAM.
    """
    alone_s, alone_in_vram = interactive(flood=False)
    first_s, first_in_vram = interactive()
    equal_s, _ = interactive("classes.batch.priority=0")
    unbounded_s, _ = interactive("classes.batch.vram_share=1")
    monkeypatch.setattr(tiers, "ranks", lambda config, classes: (0,) * len(classes))
    queue_only_s, _ = interactive()
    assert first_s <= alone_s + 0.1
    assert first_s >= alone_s or first_in_vram > alone_in_vram
    assert equal_s > 4 * alone_s
    assert queue_only_s > 4 * alone_s
    assert unbounded_s > 4 * alone_s
