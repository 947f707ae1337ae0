"""What the next step will read, from the access history: predictors by name."""

from __future__ import annotations

from collections.abc import Callable

from simkv.errors import InputError, Problem, unknown
from simkv.kvcache.predict.accuracy import stated_accuracy
from simkv.kvcache.predict.base import Predictor
from simkv.kvcache.predict.heavy_hitters import HeavyHitters
from simkv.kvcache.predict.last_step import LastStep
from simkv.kvcache.predict.stride import Stride

__all__ = ["PREDICTORS", "Predictor", "make_predictor", "stated_accuracy"]

PREDICTORS: dict[str, Callable[[int, int], Predictor]] = {
    "last_step": lambda groups, lead: LastStep(),
    "stride": Stride,
    "heavy_hitters": lambda groups, lead: HeavyHitters(),
}
"""Every predictor's maker, called with layer groups a block and lead, which only ``stride`` reads."""


def make_predictor(name: str, groups: int, lead: int = 1) -> Predictor:
    """Return a predictor, ``lead`` steps ahead, of units of ``groups`` layer groups a block; InputError for others."""
    maker = PREDICTORS.get(name)
    if maker is None:
        raise unknown("predictor", name, PREDICTORS, "predictor")
    for path, value in (("groups", groups), ("lead", lead)):
        if value < 1:
            raise InputError(
                Problem("must be at least 1", "write a whole number from 1 up", path=path, value=str(value))
            )
    return maker(groups, lead)
