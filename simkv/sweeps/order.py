"""Settings in the order of what was set or what was found."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from simkv import units
from simkv.errors import InputError, Problem
from simkv.sweeps.names import path_of
from simkv.sweeps.paths import quantity_at
from simkv.sweeps.point import number_or_text
from simkv.sweeps.rows import PARAMS
from simkv.sweeps.settings import Setting


def ordered(
    settings: Sequence[Setting], axes: Collection[str], metrics: Collection[str], by: str | None
) -> list[Setting]:
    """Return ``settings`` by an axis or a metric (``-NAME``: the largest first); those without a value last.

    None leaves them as they are. Raises InputError for a name that they don't have.
    """
    if by is None:
        return list(settings)
    name = by.removeprefix("-")
    axis = name.removeprefix(PARAMS)
    if axis not in axes and name not in metrics:
        mend = f"name an axis ({', '.join(axes)}) or a metric of points.csv"
        raise InputError(Problem("is neither an axis nor a metric of a point", mend, path="--sort", value=name))

    def value(setting: Setting) -> float | str | None:
        if axis in axes:
            return size_of(axis, setting.params[axis])
        mean = setting.mean(name)
        return mean.value if mean is not None else setting.text(name)

    found = [(value(setting), setting) for setting in settings]
    some = sorted((row for row in found if row[0] is not None), key=_numbers_first, reverse=by.startswith("-"))
    return [setting for _, setting in some] + [setting for at, setting in found if at is None]


def size_of(axis: str, written: str) -> float | str:
    """Return a value of an axis as what it measures, ``400GiB`` in bytes; a text where it measures nothing."""
    try:
        quantity = quantity_at(path_of(axis))
        if quantity is not None:
            return float(units.parse(written, quantity.dimension))
    except (InputError, units.QuantityError):
        pass
    return number_or_text(written)


def _numbers_first(row: tuple[float | str | None, Setting]) -> tuple[bool, float, str]:
    at = row[0]
    return (True, 0.0, at) if isinstance(at, str) else (False, at or 0.0, "")
