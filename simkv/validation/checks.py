"""What can be wrong with a file of cases that its format alone doesn't tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from simkv.validation.groups import BY_NAME
from simkv.validation.schema import Case, CaseFile, Observation

_READERS = {"seeds": ("scenario",), "data": ("scenario", "hits")}
"""Which sections take what a case may have beside them."""


class Fault(NamedTuple):
    """Something wrong at a path of the file."""

    at: tuple[str, ...]
    what: str
    mend: str
    value: str = ""


def faults(file: CaseFile) -> Iterator[Fault]:
    """Yield what is wrong between cases, and between what a case asks and the group that it is in."""
    first: dict[str, int] = {}
    for number, case in enumerate(file.cases):
        at = ("cases", str(number))
        if case.id in first:
            yield Fault((*at, "id"), f"is the id of cases.{first[case.id]}, too", "give each case its own", case.id)
        first.setdefault(case.id, number)
        yield from _of_section(case, at)
        yield from _of_observations(case, at)


def _of_section(case: Case, at: tuple[str, ...]) -> Iterator[Fault]:
    for key, given in (("seeds", case.seeds > 1), ("data", bool(case.data))):
        if given and case.ask not in _READERS[key]:
            yield Fault(
                (*at, key), f"does nothing for {case.ask}", f"leave it out; {' and '.join(_READERS[key])} take it"
            )


def _of_observations(case: Case, at: tuple[str, ...]) -> Iterator[Fault]:
    labels: dict[str, int] = {}
    for number, seen in enumerate(case.observations):
        here = (*at, "observations", str(number))
        if seen.name in labels:
            what = f"is called as observations.{labels[seen.name]} is: {seen.name}"
            yield Fault(here, what, "give a label to one of them")
        labels.setdefault(seen.name, number)
        yield from _of_observation(case, seen, here)


def _of_observation(case: Case, seen: Observation, here: tuple[str, ...]) -> Iterator[Fault]:
    group, figure = BY_NAME[case.group], seen.figure
    if figure is None:
        yield from _of_oracle(case, seen, here)
        return
    if not group.difference and figure.value == 0:
        mend = "give what isn't zero: a share as the difference to 1, a change as a ratio"
        yield Fault((*here, "expected"), "is zero, and errors are relative to it", mend, str(seen.expected))
    if group.each and group.tolerance(seen.tolerance) is None:
        mend = 'say how far it may be off, like "tolerance: 0.02"'
        yield Fault((*here, "tolerance"), f"is missing, and each case of {case.group} must keep to its own", mend)


def _of_oracle(case: Case, seen: Observation, here: tuple[str, ...]) -> Iterator[Fault]:
    at, mend = (*here, "expected"), "give what was found"
    if case.ask != "queue":
        yield Fault(at, f"can't be said by {case.ask}, which knows no theory", mend, str(seen.expected))
    elif seen.relative_to is not None:
        yield Fault(at, "is no ratio", f"{mend}, or leave out relative_to", str(seen.expected))
