"""Case files: what is asked of simkv, and what somebody else found (docs/validation-cases.md).

A *case* asks one thing in one of five ways, the section that it has: ``scenario`` (a simulated run), ``step`` (the
step-time model by itself), ``calc`` (a closed form), ``hits`` (a trace replayed without time), ``queue`` (a degenerate
scenario beside queueing theory). Each of its *observations* is one number: a ``metric`` of the answer, after ``set``
has been laid over the section.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from simkv.errors import InputError
from simkv.scenario.base import Section, fault
from simkv.validation.expected import ORACLE, Figure, expected_figure
from simkv.validation.groups import GroupName

Line = Annotated[str, StringConstraints(min_length=1, max_length=2000, strip_whitespace=True)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=120)]
Settings = dict[Annotated[str, StringConstraints(min_length=1, max_length=200)], Any]
"""Values by dotted name, laid over a section."""
ASKS = ("scenario", "step", "calc", "hits", "queue")
MOST_CASES = 2000
MOST_OBSERVATIONS = 500


def _figure(given: Any) -> Any:
    if given == ORACLE:
        return given
    try:
        expected_figure(given)
    except InputError as error:
        raise _wrong(error.problems[0].what, error.problems[0].mend) from None
    return given


Expected = Annotated[float | str, BeforeValidator(_figure)]
MOST_PLAIN = 1.0
"""Tolerance as a plain number: who writes more means percent."""


def _tolerance(given: Any) -> Any:
    """Return a tolerance as a share; a text is one in percent."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return given
    mend = 'write it like 0.1 or "10 %"'
    try:
        figure = expected_figure(given)
    except InputError as error:
        raise _wrong(error.problems[0].what, mend) from None
    if figure.unit not in ("", "%", "pp"):
        raise _wrong("is no share", mend)
    if not figure.unit and figure.value > MOST_PLAIN:
        raise _wrong("is more than 1, which is all of it", f'write "{figure.value:g} %" or {figure.value / 100:g}')
    return figure.value


def _wrong(reason: str, mend: str) -> PydanticCustomError:
    return PydanticCustomError("quantity", "{reason}", {"reason": reason, "mend": mend})


Tolerance = Annotated[float, BeforeValidator(_tolerance), Field(ge=0, le=10)]


class Source(Section):
    """Who found it, and where it can be read."""

    title: Line = Field(description="What was published")
    where: Line | None = Field(default=None, description="Where it is found: a repository at a commit, a paper, a page")
    locator: Line | None = Field(default=None, description="Which table, figure or file in it")
    confirmation: Line | None = Field(default=None, description="How the number was read: text, table, figure, ...")


class Relative(Section):
    """What the expected figure is a ratio to: the same metric (or another one) under other settings."""

    set: Settings = Field(default_factory=dict, description="Laid over the case's section, by dotted name")
    metric: Line | None = Field(default=None, description="What is divided by; absent: the observation's own metric")
    change: bool = Field(default=False, description="Expected is ratio - 1 (-0.06: 6 % less), not the ratio")


class Observation(Section):
    """One number that somebody found, and how simkv is asked for it."""

    metric: Line = Field(description="What is asked for, by its name in the answer")
    expected: Expected = Field(
        description='In SI, or a text with its unit, such as "266 ms"; oracle: what the answer itself expects'
    )
    label: Line | None = Field(default=None, description="Ends the observation's id; absent: metric and settings")
    set: Settings = Field(default_factory=dict, description="Laid over the case's section, by dotted name")
    relative_to: Relative | None = Field(default=None, description="Where the figure is a ratio to another one")
    fitted: bool = Field(default=False, description="Whether a constant of simkv was set with it")
    tolerance: Tolerance | None = Field(
        default=None, description='How large the error may be, like 0.1 or "10 %"; absent: what the group says'
    )
    because: Line | None = Field(default=None, description="The cause, where simkv is known to differ")

    @property
    def figure(self) -> Figure | None:
        """What is expected; None: the answer says."""
        return None if self.expected == ORACLE else expected_figure(self.expected)

    @property
    def name(self) -> str:
        """What it is called within its case: its label, or metric and settings."""
        if self.label is not None:
            return self.label
        words = [self.metric, *_settings(self.set)]
        if self.relative_to is not None:
            words += ["relative to", *_settings(self.relative_to.set)]
            words += [self.relative_to.metric] if self.relative_to.metric is not None else []
        return " ".join(words)


def _settings(settings: dict[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in settings.items()]


class Case(Section):
    """Observations of one set-up."""

    id: Name = Field(description="Letters, digits and . _ + -; no other case of the file has it")
    group: GroupName = Field(description="What it is judged with")
    kind: Name | None = Field(default=None, description="What was measured; cases of a kind are also judged together")
    title: Line | None = Field(default=None, description="The set-up in a line")
    source: Source | None = Field(default=None, description="Who found it")
    family: Name | None = Field(default=None, description="GPU family and software whose constants it depends on")
    scenario: dict[str, Any] | str | None = Field(
        default=None,
        description="A scenario, or the path of one (from the case file's folder), or a shipped one's name",
    )
    step: dict[str, Any] | None = Field(default=None, description="What the step-time model by itself is asked")
    calc: dict[str, Any] | None = Field(default=None, description="What a closed form is asked")
    hits: dict[str, Any] | None = Field(default=None, description="A trace to be replayed without time")
    queue: dict[str, Any] | None = Field(default=None, description="A degenerate system beside queueing theory")
    data: dict[str, Line] = Field(
        default_factory=dict, description="Files of the data folder, by the key of the section that names them"
    )
    seeds: Annotated[int, Field(ge=1, le=50)] = Field(default=1, description="Runs whose mean is the prediction")
    observations: list[Observation] = Field(
        min_length=1, max_length=MOST_OBSERVATIONS, description="What was found, one number each"
    )
    notes: Line | None = Field(default=None, description="What is assumed where the source leaves it open")

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        given = [name for name in ASKS if getattr(self, name) is not None]
        if len(given) != 1:
            raise fault(f"has {' and '.join(given) or 'nothing that is asked'}", f"give one of {', '.join(ASKS)}")
        return self

    @property
    def ask(self) -> str:
        """Which of the sections it has."""
        return next(name for name in ASKS if getattr(self, name) is not None)


class CaseFile(Section):
    """A file of cases."""

    simkv_cases: Literal[1] = Field(description="Version of the format")
    cases: list[Case] = Field(min_length=1, max_length=MOST_CASES)
