"""The ``workload`` section: which keys each kind of workload takes.

``spec(workload)`` gives the section as a plain dict in SI (absent keys left out), which is what
``simkv.workload.synthetic.build`` reads. Kinds and their keys:

* all but trace, clients and fitted: ``requests`` (count; ``run.duration`` also bounds), ``system_prompt
  {tokens, variants}`` shared by requests that draw the same variant, ``mix {class: share}``
* ``plain``: ``arrival``, ``prompt_tokens``, ``output_tokens``, ``stored`` (share of the prompts that lower tiers hold
  beforehand); each prompt is private
* ``sessions``: ``arrival`` (of sessions), ``turns``, ``think_time``, ``prompt_tokens`` (new user tokens of
  a turn), ``first_prompt_tokens`` (of the first turn, where it differs), ``output_tokens``, ``max_context``
  (a session ends before its context would be longer)
* ``documents``: ``arrival``, ``documents {count, tokens, popularity, questions}``, ``prompt_tokens`` (the question),
  ``output_tokens``
* ``batch``: ``size`` requests at time 0 and, with ``interval``, again every interval; ``prompt_tokens``,
  ``output_tokens``; no ``arrival``
* ``trace``: ``path``, ``format``, ``time_scale``, ``limit``; for recorded sessions ``arrival`` (of sessions) and
  ``block_tokens``; for a log of one's own ``columns {arrival, prompt_tokens, output_tokens, session, prefix_hash,
  prefix_tokens, class}`` and ``arrival_unit``
* ``clients``: ``path`` (a folder), ``start``, ``duration`` (of the recording), ``rate_scale``, ``requests``
* ``fitted``: ``path`` (what ``simkv trace fit`` wrote), ``requests``, ``rate_scale``

``arrival {process: poisson|gamma|constant, rate[, cv]}`` is open;
``{process: closed_loop, users[, think_time]}`` starts a user's next request when the last has ended (with
``sessions``: their next session); ``{process: all_at_once}`` is everything at time 0; ``{process: stages, stages:
[{rate, duration}, ...], pause}`` (plain, documents) is one Poisson process after the other, each once the one before is
served to the end; ``{process: ready_queue, users[, max_parallel, rate, order, round_barrier]}`` (sessions) is a client
that sends its users' turns, no more than so many under way.

Lengths, ``turns`` and think times can vary: ``varying.py`` has the distributions.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, StringConstraints, model_validator

from simkv.scenario.base import Discriminated, FilePath, Section, fault, plain
from simkv.scenario.quantity import (
    Count,
    FractionAboveZero,
    NumberAboveZero,
    Quantity,
    RequestRate,
    SmallCount,
    Time,
    TimeAboveZero,
    TokensAboveZero,
)
from simkv.scenario.varying import Length, VaryingTime

# ---- arrivals ---------------------------------------------------------------------------------


class PoissonArrival(Section):
    process: Literal["poisson"]
    rate: RequestRate


class GammaArrival(Section):
    """Gaps are gamma distributed: ``cv`` above 1 is burstier than Poisson, below 1 smoother."""

    process: Literal["gamma"]
    rate: RequestRate
    cv: NumberAboveZero


class ConstantArrival(Section):
    process: Literal["constant"]
    rate: RequestRate


class ClosedLoopArrival(Section):
    """A fixed number of users; each sends again, after thinking, when the last one has ended."""

    process: Literal["closed_loop"]
    users: Count
    think_time: VaryingTime = 0.0


class AllAtOnceArrival(Section):
    process: Literal["all_at_once"]


class Stage(Section):
    """``rate`` times ``duration`` requests at that rate."""

    rate: RequestRate
    duration: TimeAboveZero


class StagesArrival(Section):
    """Poisson arrivals at one rate after the other, as load generators make them; each stage is a class of requests.

    A stage begins ``pause`` after the last request of the one before it has ended. Documents with ``questions`` are
    asked from the first of their order in each.
    """

    process: Literal["stages"]
    stages: Annotated[tuple[Stage, ...], Field(min_length=1, max_length=100)]
    pause: Time = 0.0


class ReadyQueueArrival(Section):
    """One client sends the turns of its users' sessions, one session a user, so many requests under way at most."""

    process: Literal["ready_queue"]
    users: Count
    max_parallel: Count | None = Field(default=None, description="Absent: no bound but one request a user")
    rate: RequestRate | None = Field(
        default=None, description="Sending pauses by exponential gaps of this rate; absent: none"
    )
    order: Literal["random", "fifo"] = Field(default="random", description="Which of the ready turns is sent next")
    round_barrier: StrictBool = Field(
        default=False, description="Nobody's next turn is ready before everybody's turn of the round has ended"
    )


Arrival = Annotated[
    PoissonArrival | GammaArrival | ConstantArrival | ClosedLoopArrival | AllAtOnceArrival,
    Discriminated("process"),
]
StagedArrival = Annotated[
    PoissonArrival | GammaArrival | ConstantArrival | ClosedLoopArrival | AllAtOnceArrival | StagesArrival,
    Discriminated("process"),
]
SessionArrival = Annotated[
    PoissonArrival | GammaArrival | ConstantArrival | ClosedLoopArrival | AllAtOnceArrival | ReadyQueueArrival,
    Discriminated("process"),
]


# ---- the kinds --------------------------------------------------------------------------------


MOST_CLASSES = 100


class SystemPrompt(Section):
    """Tokens at the head of a prompt that other requests share."""

    tokens: TokensAboveZero
    variants: SmallCount = Field(default=1, description="How many different ones; drawn uniformly")


class _Synthetic(Section):
    requests: Count | None = Field(default=None, description="How many requests; run.duration bounds as well")
    prompt_tokens: Length
    output_tokens: Length
    system_prompt: SystemPrompt | None = None
    mix: dict[str, FractionAboveZero] | None = Field(
        default=None, max_length=MOST_CLASSES, description="Share of each class of requests; sums to 1"
    )


class PlainWorkload(_Synthetic):
    """Independent requests whose prompts share nothing but a system prompt."""

    kind: Literal["plain"]
    arrival: StagedArrival
    stored: FractionAboveZero | None = Field(
        default=None,
        description="Share of the prompts, evenly spread, that have passed the tiers untimed before the run",
    )

    @model_validator(mode="after")
    def _stored_are_so_many(self) -> Self:
        if self.stored is not None and (self.requests is None or isinstance(self.arrival, StagesArrival)):
            raise fault("needs to know of how many requests", "give workload.requests, and no stages", key="stored")
        return self


class SessionsWorkload(_Synthetic):
    """Conversations: each turn's prompt is everything said so far and ``prompt_tokens`` new ones."""

    kind: Literal["sessions"]
    arrival: Annotated[SessionArrival, Field(description="Of sessions")]
    turns: Annotated[Length, Field(description="Turns of a session")]
    think_time: Annotated[VaryingTime, Field(description="From an answer's end to the next turn")] = 0.0
    max_context: TokensAboveZero | None = Field(
        default=None, description="A session ends before its context would be longer; its first turn always runs"
    )
    first_prompt_tokens: Length | None = Field(default=None, description="Of the first turn; absent: as prompt_tokens")


class Documents(Section):
    count: SmallCount
    tokens: Annotated[Length, Field(description="Length of a document")]
    popularity: Annotated[
        float | Literal["uniform"],
        Quantity("number", least=5e-324, most=100, words=("uniform",)),
        Field(description="uniform, or the exponent of a Zipf law"),
    ] = "uniform"
    questions: SmallCount | None = Field(
        default=None,
        description="How many questions each document has: each is asked once, in one shuffled order, and then all "
        "again in the same order; absent: every question is new, and about a drawn document",
    )

    @model_validator(mode="after")
    def _all_alike_in_an_order(self) -> Self:
        if self.questions is not None and self.popularity != "uniform":
            mend = "leave it out, or questions"
            raise fault("does nothing where each question is asked once", mend, key="popularity")
        return self


class DocumentsWorkload(_Synthetic):
    """Questions about documents: a document is the shared head, ``prompt_tokens`` the question behind it."""

    kind: Literal["documents"]
    arrival: StagedArrival
    documents: Documents


class BatchWorkload(_Synthetic):
    """``size`` requests at once; with an ``interval``, again every interval."""

    kind: Literal["batch"]
    size: Count
    interval: TimeAboveZero | None = None


ColumnName = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]


class TraceColumns(Section):
    """What the columns (or keys) of a log are called; each has its own name here as default."""

    arrival: ColumnName | None = None
    prompt_tokens: ColumnName | None = None
    output_tokens: ColumnName | None = None
    session: ColumnName | None = Field(default=None, description="Requests of one continue each other")
    prefix_hash: ColumnName | None = Field(default=None, description="Requests of one begin with the same tokens")
    prefix_tokens: ColumnName | None = Field(
        default=None, description="How many tokens the hash stands for; absent: the whole prompt"
    )
    class_: ColumnName | None = Field(default=None, alias="class", description="As in the scenario's classes")

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not self.by_role():
            raise fault("names no column", "name some, or leave it out")
        if self.prefix_tokens is not None and self.prefix_hash is None:
            raise fault("does nothing without prefix_hash", "name the column of the hash too", key="prefix_tokens")
        return self

    def by_role(self) -> dict[str, str]:
        """Return the names that are given."""
        return {role: name for role, name in self.model_dump(by_alias=True).items() if name is not None}


class TraceWorkload(Section):
    """Requests from a file, or sessions from a folder of them."""

    kind: Literal["trace"]
    path: FilePath
    format: Literal[
        "auto",
        "simkv",
        "simkv-sessions",
        "agent-sessions",
        "qwen",
        "dynamo",
        "aiperf",
        "mooncake",
        "azure",
        "burstgpt",
        "log",
        "lengths",
    ] = "auto"
    time_scale: NumberAboveZero = Field(
        default=1.0,
        description="Recorded times (arrivals, pauses within sessions) are multiplied by this: 2 is half the load",
    )
    limit: Count | None = Field(
        default=None, description="At most this many requests (formats of sessions: sessions), from the front"
    )
    arrival: Arrival | None = Field(
        default=None,
        description="When sessions start (formats of sessions); absent: as recorded, which agent-sessions are not: "
        "all at once",
    )
    block_tokens: TokensAboveZero | None = Field(
        default=None, description="Tokens of a hashed block (aiperf, whose rows don't say it); absent: 512"
    )
    columns: TraceColumns | None = Field(default=None, description="Of a log of one's own (format log)")
    arrival_unit: Literal["s", "ms", "us", "ns", "datetime"] | None = Field(
        default=None, description="Of a log of one's own; absent: s, or datetime where the first arrival is a date"
    )


class ClientsWorkload(Section):
    """Clients that each send at their own rate and burstiness, which change over time (ServeGen's files)."""

    kind: Literal["clients"]
    path: FilePath = Field(description="Folder of chunk-N-trace.csv and chunk-N-dataset.json, or one of them")
    start: Time = Field(default=0.0, description="Where in the recording to begin; arrivals count from there")
    duration: TimeAboveZero | None = Field(default=None, description="How much of the recording to use")
    rate_scale: NumberAboveZero = Field(default=1.0, description="Every rate is multiplied by this")
    requests: Count | None = Field(default=None, description="At most this many requests, from the front")


class FittedWorkload(Section):
    """Requests drawn from what ``simkv trace fit`` made of a trace."""

    kind: Literal["fitted"]
    path: FilePath = Field(description="What simkv trace fit wrote")
    requests: Count | None = Field(default=None, description="How many requests; run.duration bounds as well")
    rate_scale: NumberAboveZero = Field(default=1.0, description="Every rate is multiplied by this")


Workload = Annotated[
    PlainWorkload
    | SessionsWorkload
    | DocumentsWorkload
    | BatchWorkload
    | TraceWorkload
    | ClientsWorkload
    | FittedWorkload,
    Discriminated("kind"),
]


def spec(workload: Section) -> dict[str, Any]:
    """Return the section as a plain dict in SI, keys without a value left out."""
    result: dict[str, Any] = plain(workload)
    return result
