"""Axes held against the scenario before anything runs: values that it can't take, and what else was set."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from simkv.errors import InfeasibleError, InputError, Problem
from simkv.scenario import text
from simkv.scenario.resolve import resolve_text
from simkv.sweeps.axes import Axis, assignments

if TYPE_CHECKING:
    from simkv.sweeps.simulate import Written

_RESOLVED = 500
"""Values that are tried, of all axes together."""
_TRIED = 40
"""Points at which a value is tried before it is refused."""
_TOLD = 3
"""Values of one axis whose faults are told."""


def check(written: Written, axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return ``axes`` as they are in this scenario: without bringing along what the user has set otherwise.

    Every value (of a long axis: some) is resolved. Raises InputError for one that is refused at its own path wherever
    it was tried, for a path that ``--set`` gives too, and for faults that no axis mends; what is wrong with one point
    alone, or doesn't fit it, is left to that point.
    """
    here = settled(written, axes)
    trials = _Trials(written, here)
    problems = trials.of_all()
    for axis in here:
        problems += trials.of_axis(axis)
    if problems:
        raise InputError(problems)
    return here


def settled(written: Written, axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return ``axes`` with those settings that the scenario as written calls for.

    Left out is what would take away a key that isn't in the file, and what would change something that ``--set`` or
    another axis gives. Raises InputError for an axis that ``--set`` gives too.
    """
    given = tuple(assignment.partition("=")[0].strip() for assignment in written.assignments)
    values = text.parse(written.text, written.file).values
    problems = [
        axis.problem(f"is given by --set {path} too", "leave one of the two out")
        for axis in axes for path in given if _within(path, axis.path)
    ]  # fmt: skip
    if problems:
        raise InputError(problems)

    def free(axis: Axis, path: str) -> bool:
        others = (*given, *(other.path for other in axes if other is not axis))
        return not any(_within(path, other) or _within(other, path) for other in others)

    def called_for(axis: Axis, setting: str) -> bool:
        path, _, value = setting.partition("=")
        return free(axis, path) and (value != "null" or _holds(values, path))

    return tuple(
        replace(
            axis,
            settings=tuple(setting for setting in axis.settings if called_for(axis, setting)),
            only_with=tuple(one for one in axis.only_with if called_for(axis, f"{one[0]}=null")),
        )
        for axis in axes
    )


def _within(path: str, outer: str) -> bool:
    return path == outer or path.startswith(f"{outer}.")


def _holds(tree: object, path: str) -> bool:
    for key in path.split("."):
        if not isinstance(tree, Mapping) or tree.get(key) is None:
            return False
        tree = tree[key]
    return True


def some(axis: Axis, most: int) -> list[str]:
    """Return at most ``most`` values of an axis, evenly spread with both ends among them."""
    if axis.span is not None:
        return list(dict.fromkeys(axis.span.at(share, False) for share in (0.0, 1.0, 0.5)))
    last = len(axis.values) - 1
    if last < most:
        return list(axis.values)
    return [axis.values[number * last // (most - 1)] for number in range(most)]


class _Trials:
    """Points of the axes, resolved."""

    def __init__(self, written: Written, axes: tuple[Axis, ...]) -> None:
        self._written = written
        self._axes = axes
        self._ends = [{axis.name: some(axis, 2)[at] for axis in axes} for at in (0, -1)]

    def of_all(self) -> list[Problem]:
        """Return what is wrong with the scenario whatever the axes say."""
        found: list[Problem] | None = None
        for point in (*self._ends, {}):
            problems = self._problems(point)
            if not problems:
                return []
            paths = {problem.path for problem in problems}
            found = problems if found is None else [one for one in found if one.path in paths]
        return [one for one in found or () if not any(_concerns(axis, one) for axis in self._axes)]

    def of_axis(self, axis: Axis) -> list[Problem]:
        """Return what is wrong with values of ``axis``; where every value fails for another reason, of the first."""
        values = some(axis, max(5, _RESOLVED // len(self._axes)))
        told: list[Problem] = []
        failed: list[list[Problem]] = []
        refused = 0
        for value in values:
            problems = self._of_value(axis, value)
            own = [one for one in problems if _concerns(axis, one)]
            failed += [problems] if problems else []
            refused += bool(own)
            told += [_told(axis, value, one) for one in own[:2]]
            if refused == _TOLD:
                return told
        if told or len(failed) < len(values) or self._problems({}):
            return told
        return [_told(axis, values[0], one) for one in failed[0][:2]]

    def _of_value(self, axis: Axis, value: str) -> list[Problem]:
        """Return what is wrong wherever ``value`` is tried: at the axis's own path if that is so each time."""
        tried: list[tuple[list[Problem], list[Problem]]] = []
        for others in itertools.islice(self._others(axis), _TRIED):
            found = self._problems({**others, axis.name: value})
            if not found:
                return []
            own = [one for one in found if _concerns(axis, one)]
            tried.append((own, found))
            if len(tried) >= 3 and not all(own for own, _ in tried):
                break
        own, found = tried[0]
        return own if all(own for own, _ in tried) else [one for one in found if one not in own]

    def _others(self, axis: Axis) -> Iterator[dict[str, str]]:
        """Yield points of the other axes, the scenario alone first."""
        yield {}
        yield from self._ends if len(self._axes) > 1 else ()
        for other in self._axes:
            if other is not axis:
                yield from ({other.name: value} for value in some(other, 12))

    def _problems(self, point: Mapping[str, str]) -> list[Problem]:
        """Return what is wrong with the scenario at a point of some of the axes; that it doesn't fit isn't."""
        given = (*self._written.assignments, *assignments(self._axes, point))
        try:
            resolve_text(self._written.text, self._written.file, given)
        except InputError as error:
            return error.problems
        except InfeasibleError:
            pass
        return []


def _concerns(axis: Axis, problem: Problem) -> bool:
    """Say whether a problem is at the axis's own path, or at one that it brings along."""
    paths = (axis.path, *(setting.partition("=")[0] for setting in axis.settings))
    if not problem.path:
        return problem.file == f"--set {axis.path}"
    return any(_within(problem.path, path) for path in paths)


def _told(axis: Axis, value: str, problem: Problem) -> Problem:
    """Return a problem found in a scenario as one of the axis's."""
    what = problem.what if problem.path in ("", axis.path) else f"{problem.path}: {problem.what}"
    return axis.problem(what, problem.mend, value)
