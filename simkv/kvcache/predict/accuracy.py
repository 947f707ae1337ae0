"""A prediction of stated accuracy, for scenarios that give one instead of a predictor."""

from __future__ import annotations

import numpy as np

from simkv.errors import InputError, Problem
from simkv.kvcache.predict.base import AnyUnits, Units


def stated_accuracy(
    true_units: AnyUnits, population_units: AnyUnits | int, accuracy: float, rng: np.random.Generator
) -> Units:
    """Return ``true_units``, each kept with probability ``accuracy`` and otherwise replaced by a wrong one.

    Wrong ones are drawn without repetition from the population (units, or their number from 0) less the true ones;
    where it has too few, the rest is left out. Kept units keep their places. Draws from ``rng``; InputError for an
    accuracy that is no share. The model is ours: errors independent of one another and of the unit.
    """
    if not 0 <= accuracy <= 1:
        mend = "write a number from 0 to 1"
        raise InputError(Problem("an accuracy is a share", mend, path="accuracy", value=str(accuracy)))
    guess = np.array(true_units, np.int32)
    lost = np.flatnonzero(rng.random(guess.size) >= accuracy)
    drawn = _wrong(guess, population_units, lost.size, rng)
    guess[lost[: drawn.size]] = drawn
    return np.delete(guess, lost[drawn.size :])


def _wrong(true: Units, population: AnyUnits | int, number: int, rng: np.random.Generator) -> AnyUnits:
    """Draw ``number`` units of the population that aren't ``true``, or all where it has fewer."""
    size = population if isinstance(population, int) else len(population)
    tried = rng.integers(size, size=4 * number + 16) if size > 8 * (true.size + number) else rng.permutation(size)
    units = tried if isinstance(population, int) else population[tried]
    units = units[~np.isin(units, true)]
    _, first = np.unique(units, return_index=True)
    return units[np.sort(first)][:number]
