"""Windows and states in the engine: blocks beside a sequence's own, and steps that bend, against slower engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from simkv.errors import LawError
from simkv.formulas.attention import WindowedAttention
from simkv.formulas.step import AllReduce, Roofline, RooflineStep
from simkv.sim.config import EngineConfig, SideBlocks, WindowPages
from simkv.sim.holdings import Holdings
from simkv.sim.live import Live
from tests.sim_factory import column, request, run, same, system_config
from tests.test_oracle import (
    Case,
    check_by_number,
    check_naive,
    check_single_steps,
    draw_anything,
    draw_dram,
    draw_plain,
    draw_priority,
    search,
)

# ---- drawing


def windowed_step(windows: list[tuple[int, bool]]) -> RooflineStep:
    """A step of about a tenth of a second whose attention sees no further than its windows in part of the layers."""
    line = Roofline(0.0031, 0.1 / 3, 0.34)
    layers = tuple(
        WindowedAttention(window, chunked, 1.7e-4 / (n + 1), 2.3e-4, 1.1e-5, 1e-5)
        for n, (window, chunked) in enumerate(windows)
    )
    head = Roofline(1e-4, 1e-3, 0.34)
    return RooflineStep(3, 0.01 / 3, 7e-3, line, None, head, 1.3e-4, 1.9e-4, 1e-5, 1e-5, AllReduce(0.0, 0.0), layers)


def draw_side(rng: Random, bt: int) -> SideBlocks:
    """Draw windows and states that take from nothing to more than a prompt does."""
    windows = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        decoding = rng.randint(1, 4)
        windows.append(WindowPages(bt * rng.choice((1, 1, 2)), decoding, decoding + rng.choice((0, 1, 6, 1000))))
    return SideBlocks(tuple(windows), rng.choice((0, 0, 1, 2)), rng.choice((1, 1, 2)))


def beside(draw: Callable[[Random, int], Case]) -> Callable[[Random, int], Case]:
    """Draw a case, and give it windows and states: the pool stays close to what its largest request takes."""

    def drawn(rng: Random, most: int) -> Case:
        case = draw(rng, most)
        engine = case.config.engine
        side = draw_side(rng, engine.block_tokens)
        largest = max(side.admitted(r.prompt_tokens, r.prompt_tokens + r.output_tokens) for r in case.requests)
        room = max(1, engine.num_gpu_blocks + largest + rng.choice((-1, 0, 0, 1, 3)))
        config = replace(case.config, engine=replace(engine, side=side, num_gpu_blocks=room))
        if rng.random() < 0.7:
            windows = [(rng.randint(1, 60), rng.random() < 0.3) for _ in range(rng.randint(1, 2))]
            config = replace(config, cost=windowed_step(windows))
        return Case(config, case.requests)

    return drawn


@search(150)
def test_naive_engine_agrees_on_side_blocks(rng: Random) -> None:
    check_naive(beside(draw_plain)(rng, 10))


@search(150)
def test_naive_engine_agrees_on_side_blocks_beside_dram(rng: Random) -> None:
    check_naive(beside(draw_dram)(rng, 10))


@search(100)
def test_single_steps_agree_on_side_blocks(rng: Random) -> None:
    check_single_steps(beside(draw_anything)(rng, 12))


KINDS: dict[str, tuple[Callable[[Random, int], Case], Callable[[Case], None], int]] = {
    "plain": (draw_plain, check_naive, 200),
    "priority": (draw_priority, check_naive, 100),
    "dram": (draw_dram, check_naive, 200),
    "anything": (draw_anything, check_single_steps, 80),
}


@pytest.mark.parametrize("kind", KINDS)
def test_side_cases_by_number(kind: str) -> None:
    draw, check, count = KINDS[kind]
    check_by_number(kind, beside(draw), check, count)


# ---- by hand


def engine(blocks: int, side: SideBlocks, **changes: object) -> EngineConfig:
    """An engine of ``blocks`` blocks of 4 tokens."""
    return replace(EngineConfig(4, 1000, blocks, 8, 1000, 10**6), side=side, **changes)  # type: ignore[arg-type]


WINDOW = SideBlocks((WindowPages(4, 2, 5),), 1)
"""Two pages of a window, five in the prefill, and a state."""


def test_side_blocks_take_the_larger_of_prefill_and_decoding() -> None:
    assert WINDOW.decoding(100) == 3 and WINDOW.decoding(4) == 2
    assert WINDOW.admitted(100, 120) == 6
    assert WINDOW.admitted(4, 120) == 3
    assert SideBlocks((), 3, 2).decoding(50) == 2


def test_sequences_that_fit_are_fewer_by_their_side_blocks() -> None:
    requests = [request(number, 0.0, 8, 5) for number in range(4)]
    # Twelve tokens are three blocks, beside them two pages of window and a state: six each.
    config = system_config(engine=engine(12, WINDOW))
    data = run(config, requests)
    assert column(data, "scheduled_s") == [0.0, 0.0, 5.0, 5.0]
    bare = run(system_config(engine=replace(config.engine, side=None)), requests)
    assert column(bare, "scheduled_s") == [0.0, 0.0, 0.0, 0.0]


def test_end_of_a_prefill_lets_somebody_in() -> None:
    requests = [request(0, 0.0, 24, 8), request(1, 0.0, 4, 2)]
    # The first takes 6 blocks and 6 beside them in its prefill, 3 later; the second 1 and 3.
    data = run(system_config(engine=engine(14, WINDOW)), requests)
    assert column(data, "scheduled_s") == [0.0, 1.0]


def test_request_too_large_with_its_side_blocks_is_rejected() -> None:
    fits, larger = request(0, 0.0, 20, 5), request(1, 0.0, 24, 5)
    data = run(system_config(engine=engine(12, WINDOW)), [fits, larger])
    assert column(data, "rejected") == [False, True]


def test_hit_below_vram_waits_for_its_side_blocks_too() -> None:
    config = system_config(engine=engine(26, WINDOW), dram_blocks=100, write="write_through")
    data = run(config, [same(0, 0.0, 40, 2), *[request(n, 20.0 + n, 40, 30) for n in (1, 2)], same(3, 60.0, 40, 2)])
    assert column(data, "hit_dram_tokens", [3]) == [36]
    assert all(column(data, "finish_s"))


def test_mutant_kept_side_blocks_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: Holdings, live: Live) -> None:
        live.side_blocks = 0

    monkeypatch.setattr(Holdings, "end_prefill", forget)
    with pytest.raises(LawError, match="L3"):
        run(system_config(engine=engine(40, WINDOW)), [request(n, 0.0, 24, 30) for n in range(2)])
