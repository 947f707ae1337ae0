"""Classes in a scenario: what is refused, and what an urgent class keeps when a patient one floods the link."""

from __future__ import annotations

import pytest

from simkv.errors import InputError
from simkv.scenario.build import system_config
from simkv.scenario.resolve import resolve_text

BASE = """\
name: small
model: llama-3.1-8b
hardware: a100-sxm4-80gb
workload:
  kind: plain
  requests: 10
  arrival: {process: poisson, rate: 1 req/s}
  prompt_tokens: 100
  output_tokens: 10
  mix: {chat: 0.5, bulk: 0.5}
engine: {scheduling: priority}
classes:
  chat: {priority: 0}
  bulk: {priority: 1}
tiers:
  dram: {capacity: 20GiB}
"""


def complaints(*assignments: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        resolve_text(BASE, "s.yaml", assignments)
    return [str(problem) for problem in caught.value.problems]


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
    assert complaints(*assignments) == [told]
