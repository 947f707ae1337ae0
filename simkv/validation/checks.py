"""What can be wrong with a file of cases that its format alone doesn't tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pydantic import ValidationError

from simkv.validation.dimensions import SHARE, dimension_of, given, wrong
from simkv.validation.groups import BY_NAME
from simkv.validation.schema import ASKS, Case, Observation

_READERS = {"seeds": ("scenario",), "data": ("scenario", "hits")}
"""Which sections take what a case may have beside them."""


_NEEDED = {"id", "group", *ASKS}
"""Keys that a case can't be looked at without."""


class Fault(NamedTuple):
    """Something wrong at a path of the file."""

    at: tuple[str, ...]
    what: str
    mend: str
    value: str = ""


class Placed(NamedTuple):
    """A case with its number in the file, and those of its observations."""

    number: int
    case: Case
    observations: tuple[int, ...]


def faults(cases: Iterable[Placed]) -> Iterator[Fault]:
    """Yield what is wrong between cases, and between what a case asks and the group that it is in."""
    first: dict[str, int] = {}
    for number, case, observations in cases:
        at = ("cases", str(number))
        if case.id in first:
            yield Fault((*at, "id"), f"is the id of cases.{first[case.id]}, too", "give each case its own", case.id)
        first.setdefault(case.id, number)
        yield from _of_section(case, at)
        yield from _of_names(case.data, case, (*at, "data"))
        yield from _of_observations(case, observations, at)


def _of_section(case: Case, at: tuple[str, ...]) -> Iterator[Fault]:
    for key, is_given in (("seeds", case.seeds > 1), ("data", bool(case.data))):
        readers = _READERS[key]
        if is_given and case.ask not in readers:
            take = f"{' and '.join(readers)} {'take' if len(readers) > 1 else 'takes'} it"
            yield Fault((*at, key), f"does nothing for {case.ask}", f"leave it out; {take}")


def _of_names(names: Iterable[str], case: Case, at: tuple[str, ...]) -> Iterator[Fault]:
    """Yield names that begin with the section that they are laid over."""
    for name in names:
        if name.partition(".")[0] == case.ask:
            short = name.partition(".")[2] or "a key of it"
            mend = f'leave "{case.ask}." out: {short}' if "." in name else f"name {short}"
            yield Fault((*at, name), f"begins with {case.ask}, the section that it is laid over", mend)


def _of_observations(case: Case, numbers: Iterable[int], at: tuple[str, ...]) -> Iterator[Fault]:
    labels: dict[str, int] = {}
    for number, seen in zip(numbers, case.observations, strict=True):
        here = (*at, "observations", str(number))
        if seen.name in labels:
            what = f"is called as observations.{labels[seen.name]} is: {seen.name}"
            yield Fault(here, what, "give a label to one of them")
        labels.setdefault(seen.name, number)
        yield from _of_names(seen.set, case, (*here, "set"))
        if seen.relative_to is not None:
            yield from _of_names(seen.relative_to.set, case, (*here, "relative_to", "set"))
        yield from _of_observation(case, seen, here)


def _of_observation(case: Case, seen: Observation, here: tuple[str, ...]) -> Iterator[Fault]:
    group, figure = BY_NAME[case.group], seen.figure
    if figure is None:
        yield from _of_oracle(case, seen, here)
        return
    at, misfit = (*here, "expected"), wrong(case.ask, seen)
    if misfit is not None:
        yield Fault(at, *misfit, given(seen))
    elif not group.difference and figure.value == 0:
        yield Fault(at, "is zero, and errors are relative to it", _mend_of_zero(case, seen), given(seen))
    if group.each and group.tolerance(seen.tolerance) is None:
        mend = 'say how far it may be off, like "tolerance: 0.02"'
        yield Fault((*here, "tolerance"), f"is missing, and each case of {case.group} must keep to its own", mend)


def _mend_of_zero(case: Case, seen: Observation) -> str:
    if seen.relative_to is not None:
        return "give what isn't zero: a change as a ratio" if seen.relative_to.change else "give what isn't zero"
    if dimension_of(case.ask, seen.metric) is SHARE:
        return "put hit rates and other shares into a case of group hit_curves, where errors are differences"
    return "leave it out, or give what isn't zero: errors are differences in hit_curves alone, which is for shares"


def _of_oracle(case: Case, seen: Observation, here: tuple[str, ...]) -> Iterator[Fault]:
    at, mend = (*here, "expected"), "give what was found"
    if case.ask != "queue":
        yield Fault(at, f"can't be said by {case.ask}, which knows no theory", mend, given(seen))
    elif seen.relative_to is not None:
        yield Fault(at, "is no ratio", f"{mend}, or leave out relative_to", given(seen))


def sound(values: Any, errors: Iterable[tuple[str, ...]]) -> list[Placed]:
    """Return what can be looked at of a file that has ``errors``: its cases without the observations and keys in them.

    A case is left out where the error is what it asks, its id or its group.
    """
    bad: dict[int, list[tuple[str, ...]]] = defaultdict(list)
    for at in errors:
        if at == ("cases",):
            return []
        if at[0] == "cases":
            bad[int(at[1])].append(at[2:])
    found = (_sound(number, case, bad[number]) for number, case in enumerate(values["cases"]))
    return [placed for placed in found if placed is not None]


def _sound(number: int, case: Any, bad: list[tuple[str, ...]]) -> Placed | None:
    observations = {at[1] for at in bad if at[:1] == ("observations",) and len(at) > 1}
    keys = {at[0] for at in bad if at and at[0] != "observations"}
    if () in bad or ("observations",) in bad or keys & _NEEDED:
        return None
    left = [one for one in range(len(case["observations"])) if str(one) not in observations]
    kept = {key: value for key, value in case.items() if key not in keys}
    try:
        found = Case.model_validate(kept | {"observations": [case["observations"][one] for one in left]})
    except ValidationError:  # nothing is left, or the case as a whole isn't right: told once the rest is
        return None
    return Placed(number, found, tuple(left))
