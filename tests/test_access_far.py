"""Weighted draws of far blocks without replacement: three ways, one law."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from simkv.kvcache.access import TopK, far, make_pattern
from simkv.kvcache.access.far import FarBlocks

RUNS = 12_000


def successive(weights: list[float], count: int, taken: tuple[int, ...] = ()) -> dict[frozenset[int], float]:
    """Return the probability of each set that drawing one after the other by weight gives, by all orders."""
    chances: dict[frozenset[int], float] = {}
    for order in permutations([i for i in range(len(weights)) if i not in taken], count):
        left = sum(w for i, w in enumerate(weights) if i not in taken)
        chance = 1.0
        for i in order:
            chance *= weights[i] / left
            left -= weights[i]
        chances[frozenset(order)] = chances.get(frozenset(order), 0.0) + chance
    return chances


def weights_of(blocks: FarBlocks, group: int = 0) -> list[float]:
    """Return the weights that ``blocks`` draws by."""
    return np.diff(blocks._sums[group], prepend=0.0).tolist()


def assert_follows(found: Counter[frozenset[int]], chances: dict[frozenset[int], float]) -> None:
    """Hold frequencies against chances, each within five standard errors."""
    runs = found.total()
    assert set(found) <= set(chances)
    for group, chance in chances.items():
        error = (chance * (1 - chance) / runs) ** 0.5
        assert found[group] / runs == pytest.approx(chance, abs=5 * error + 1e-4), sorted(group)


@pytest.mark.parametrize("taken", [(), (1,), (0, 4)])
@pytest.mark.parametrize("lost", [0.0, 2.0], ids=["drawn", "raced"])
def test_others_follow_the_law_of_draws_without_replacement(
    taken: tuple[int, ...], lost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far, "_LOST", lost)
    blocks = FarBlocks(3, "x", 1, 1.3, 6)
    found: Counter[frozenset[int]] = Counter()
    for _ in range(RUNS):
        drawn = blocks.others(0, 3, 6, np.array(taken, dtype=np.intp)).tolist()
        assert len(set(drawn)) == 3
        found[frozenset(drawn)] += 1
    assert_follows(found, successive(weights_of(blocks), 3, taken))


def test_others_rounding_lets_nothing_in_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The heaviest are gone and the others hardly show in the sums; drawn by these nevertheless."""
    monkeypatch.setattr(far, "_LOST", 0.0)
    blocks = FarBlocks(3, "x", 1, 10.0, 300)
    by_weight = np.argsort(weights_of(blocks))
    for heaviest in (1, 3, 10, 20, 39) * 60:
        taken = by_weight[-heaviest:]
        drawn = blocks.others(0, 15, 300, taken)
        assert len(set(drawn.tolist()) | set(taken.tolist())) == 15 + heaviest


def test_others_leave_out_blocks_that_are_not_far_yet() -> None:
    blocks = FarBlocks(3, "x", 1, 1.0, 50)
    for _ in range(200):
        assert sorted(blocks.others(0, 4, 5, np.array([2]))) == [0, 1, 3, 4]


@pytest.mark.parametrize("spare", [None, 1], ids=["by candidates", "completed"])
def test_topk_picks_of_a_step_follow_the_law_of_draws_without_replacement(spare: int | None) -> None:
    """Nothing sticks: each step draws 2 of 6 far blocks anew (blocks of 1024 tokens, so that none joins)."""
    from simkv.kvcache.access.topk import _TopKSteps

    pattern = make_pattern(TopK(3 * 1024, 1, 0, 1.3, 0.0), 1024, 1, seed=4)
    steps, found = 1000, Counter[frozenset[int]]()
    for request in range(12):
        drawing = _TopKSteps(pattern, 4, "access.0", 6 * 1024 + 1)  # type: ignore[arg-type]
        drawing._draws = np.random.default_rng(request)
        if spare:
            drawing._spare, drawing._order = spare, np.arange(spare)
        taken = drawing.steps()
        found.update(frozenset(next(taken)[:-1].tolist()) for _ in range(steps))
    assert_follows(found, successive(weights_of(drawing._far), 2))


def test_weights_are_zipf_over_a_permutation_and_unlike_by_layer_group() -> None:
    blocks = FarBlocks(1, "x", 3, 1.5, 400)
    expected = np.arange(1, 401) ** -1.5
    for group in range(3):
        assert np.sort(weights_of(blocks, group))[::-1] == pytest.approx(expected, rel=1e-9)
    assert weights_of(blocks, 0) != weights_of(blocks, 1)
    assert weights_of(blocks, 0) != sorted(weights_of(blocks, 0), reverse=True)


@pytest.mark.parametrize("begin", [0, 1, 30])
def test_weights_grown_in_any_portions_are_the_same(begin: int) -> None:
    at_once, bit_by_bit = (FarBlocks(1, "x", 2, 1.0, begin) for _ in range(2))
    at_once.grow(100)
    for blocks in (begin, begin + 1, begin + 1, 40, 47, 100, 3):
        bit_by_bit.grow(blocks)
    assert len(at_once) == len(bit_by_bit) == 100
    assert (at_once._sums == bit_by_bit._sums).all()


def test_blocks_that_join_take_any_rank_alike() -> None:
    weights = np.array([weights_of(_grown(seed))[-1] for seed in range(3000)])
    ranks = np.rint(1 / weights)
    assert (ranks >= 1).all() and (ranks <= 21).all()
    assert ranks.mean() == pytest.approx(11, abs=0.5)


def _grown(seed: int) -> FarBlocks:
    blocks = FarBlocks(seed, "x", 1, 1.0, 20)
    blocks.grow(21)
    return blocks


@pytest.mark.parametrize("skew", [0.0, 1.0, 10.0])
def test_draw_never_leaves_its_range(skew: float) -> None:
    blocks = FarBlocks(1, "x", 1, skew, 300)
    shares = np.array([[0.0, 1 - 2**-53, 0.5]] * 300)
    drawn = blocks.draw(0, shares, np.arange(1, 301)[:, None])
    assert (drawn >= 0).all() and (drawn < np.arange(1, 301)[:, None]).all()
