"""Retention: what a class's blocks are worth to the eviction policy, wherever they lie and however they came there."""

from __future__ import annotations

import pytest

from simkv.sim.config import ClassConfig, SystemConfig
from tests.sim_factory import column, run, same, system_config

KEPT = ClassConfig("kept", retention=90)
PLAIN = ClassConfig("plain")


def small(*classes: ClassConfig, policy: str = "priority") -> SystemConfig:
    """Return a pool of six blocks in which three prompts of three blocks don't fit at once."""
    return system_config(classes=classes, num_gpu_blocks=6, eviction=policy)


def prompts(gap_s: float = 50.0) -> list[object]:
    """Return a kept prompt, two plain ones that push something out, and the kept one again."""
    parts = [(0, "kept", 1), (1, "plain", 2), (2, "plain", 3), (3, "kept", 1)]
    return [same(number, number * gap_s, 12, stream=stream, cls=cls) for number, cls, stream in parts]


def test_kept_class_survives_in_vram_where_lru_lets_it_go() -> None:
    kept = run(small(KEPT, PLAIN), prompts())
    assert column(kept, "hit_vram_tokens", [3]) == [8]
    for config in (small(KEPT, PLAIN, policy="lru"), small(PLAIN)):
        assert column(run(config, prompts()), "hit_vram_tokens", [3])[0] < 8


@pytest.mark.parametrize("write", ["write_through", "write_back"])
def test_kept_class_survives_in_dram(write: str) -> None:
    parts = [(0, "kept", 1), (1, "plain", 2), (2, "plain", 3), (3, "plain", 4), (4, "kept", 1)]
    requests = [same(number, number * 50.0, 12, stream=stream, cls=cls) for number, cls, stream in parts]
    hits = []
    for kept in (KEPT, ClassConfig("kept")):
        config = system_config(
            classes=(kept, PLAIN), num_gpu_blocks=3, eviction="priority", dram_blocks=6, write=write
        )  # fmt: skip
        hits.append(column(run(config, requests), "hit_dram_tokens", [4]))
    assert hits == [[8], [0]]
