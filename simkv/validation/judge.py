"""How good predictions are: each beside its tolerance, each group and each kind beside what it is held to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from simkv.validation.groups import ANY_KIND, BY_NAME, MEASURED, GroupName
from simkv.validation.study import Judged


@dataclass(frozen=True, slots=True)
class Tally:
    """Errors of some observations; what constants were fitted on counts by itself."""

    observations: int
    judged: int
    """With a prediction, and not fitted."""
    fitted: int
    skipped: int
    failed: int
    outside: int
    """Predicted, and further off than their tolerance."""
    median: float | None
    """Of the absolute errors of ``judged``, as is ``largest``."""
    largest: float | None
    median_fitted: float | None


@dataclass(frozen=True, slots=True)
class Target:
    """What must hold: ``value`` at most ``limit``, and nothing failed."""

    name: str
    value: float | None
    """None: all of it failed."""
    limit: float
    holds: bool
    group: GroupName | None = None
    """Whose target it is; of the worst kind the first that it is in."""
    of: str = "median"
    """What the value is: a ``median`` of absolute errors, or a number of ``cases``."""
    worst: str | None = None
    """Which kind has the value, where it is the worst of several."""


def tolerance_of(row: Judged) -> float | None:
    """Return how far an observation may be off."""
    return BY_NAME[row.case.group].tolerance(row.tolerance)


def within(row: Judged) -> bool | None:
    """Say whether a prediction keeps to its tolerance; None: there is no prediction."""
    limit = tolerance_of(row)
    return None if row.error is None else limit is None or abs(row.error) <= limit


def kind_of(row: Judged) -> str:
    """Return what was measured: the case's kind, or its group where it has none."""
    return row.case.kind or row.case.group


def tally(rows: Sequence[Judged]) -> Tally:
    """Return the errors of ``rows`` together."""
    errors = _errors(row for row in rows if not row.observation.fitted)
    fitted = _errors(row for row in rows if row.observation.fitted)
    return Tally(
        len(rows), len(errors), len(fitted),
        sum(row.status == "skipped" for row in rows), sum(row.status == "failed" for row in rows),
        sum(within(row) is False for row in rows),
        median(errors) if errors else None, max(errors, default=None), median(fitted) if fitted else None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind:
    """Published measurements of one kind whose errors are of one sort: differences don't mix with relative errors."""

    name: str
    difference: bool
    rows: list[Judged]

    @property
    def groups(self) -> list[GroupName]:
        """In which groups they are, in order."""
        return list(dict.fromkeys(row.case.group for row in self.rows))


def by_kind(rows: Sequence[Judged]) -> list[Kind]:
    """Return the published measurements among ``rows`` by their kind, in order."""
    kinds: dict[tuple[str, bool], Kind] = {}
    for row in rows:
        group = BY_NAME[row.case.group]
        if group.measured:
            key = (kind_of(row), group.difference)
            kinds.setdefault(key, Kind(*key, [])).rows.append(row)
    return list(kinds.values())


def group_target(name: GroupName, rows: Sequence[Judged]) -> Target | None:
    """Return what a group is held to, None where nothing in it could be judged."""
    group, found = BY_NAME[name], tally(rows)
    if group.each:
        if not (found.judged or found.fitted or found.failed):
            return None
        value, limit = found.outside + found.failed, 0
        return Target("cases outside their tolerance", value, limit, value <= limit, name, "cases")
    return None if group.target is None else _median(f"median error of {name}", rows, group.target, name)


def targets(rows: Sequence[Judged]) -> list[Target]:
    """Return everything that ``rows`` are held to: groups, all measured ones together, the worst kind."""
    found = [group_target(name, [row for row in rows if row.case.group == name]) for name in BY_NAME]
    relative = [row for row in rows if BY_NAME[row.case.group].measured and not BY_NAME[row.case.group].difference]
    found.append(_median("median error of all published measurements", relative, MEASURED))
    return [target for target in (*found, _worst_kind(rows)) if target is not None]


def _worst_kind(rows: Sequence[Judged]) -> Target | None:
    medians = [(value, kind) for kind in by_kind(rows) if (value := tally(kind.rows).median) is not None]
    if not medians:
        return None
    value, worst = max(medians, key=lambda one: one[0])
    name = "largest median error of a kind of measurements"
    return Target(name, value, ANY_KIND, value <= ANY_KIND, worst.groups[0], worst=worst.name)


def _median(name: str, rows: Sequence[Judged], limit: float, group: GroupName | None = None) -> Target | None:
    found = tally([row for row in rows if not row.observation.fitted])
    if found.median is None and not found.failed:
        return None
    holds = found.median is not None and found.median <= limit and not found.failed
    return Target(name, found.median, limit, holds, group)


def _errors(rows: Iterable[Judged]) -> list[float]:
    return [abs(row.error) for row in rows if row.error is not None]
