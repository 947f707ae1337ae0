"""The plan of a recorded session: its turns, what each waits for, and how long it pauses after that.

A turn waits for whatever of its session *had ended, as recorded, when it started*: the request
before it, the subagents that were started in between, or, where it ran beside the request before
it, what that one had waited for. Replayed against a system of another speed, turns that followed
each other still do, with the recorded pause, and turns that ran side by side still may.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from simkv.workload.request import Request

RESOLUTION_S = 1.0
"""Recorded times are often whole seconds: a start by so much before an end still counts as after it."""


@dataclass(slots=True)
class Turn:
    """One request of a session."""

    request: Request
    """Its ``arrival_s`` is as recorded."""
    after: tuple[int, ...]
    """The turns of the session, by index, that must have ended; all are before it. (): none."""
    pause_s: float
    """From the end of the last of them, or from the session's start, to its arrival."""
    not_before_s: float = 0.0
    """The earliest arrival, from the session's start."""


@dataclass(slots=True)
class SessionPlan:
    """All turns of one session; ``Request.turn`` is the place in ``turns``."""

    number: int
    turns: list[Turn] = field(default_factory=list)
    start_s: float = 0.0
    """When it started, as recorded."""
    shares: bool = False
    """Whether other sessions may name the stream that its prompts end with."""
    alone: bool = False
    """Whether it is one request that the source didn't call a session."""


class Timeline:
    """Builds a plan turn by turn from recorded starts and ends."""

    def __init__(self, plan: SessionPlan) -> None:
        self.plan = plan
        self._ends_s: list[float] = []
        self._known: list[bool] = []

    def waits(self, open_turns: Sequence[int], start_s: float) -> tuple[int, ...]:
        """Return which turns something that started at ``start_s`` waited for.

        ``open_turns`` are those that nothing in its own chain has waited for yet; where all of
        them were still running, it is what these had waited for, and so on.
        """
        while open_turns:
            ended = tuple(k for k in open_turns if self._ends_s[k] <= start_s + RESOLUTION_S)
            if ended:
                return ended
            open_turns = sorted({j for k in open_turns for j in self.plan.turns[k].after})
        return ()

    def gap_s(self, waits: Iterable[int], start_s: float) -> float:
        """Return the recorded time from the end of the last of ``waits`` to ``start_s``, not below 0.

        Without waits it is ``start_s`` itself until :meth:`finish` knows when the session started.
        """
        ended_s = max((self._ends_s[k] for k in waits), default=None)
        return start_s if ended_s is None else max(0.0, start_s - ended_s)

    def end_is_known(self, k: int) -> bool:
        """Return whether the recorded end of turn ``k`` was given."""
        return self._known[k]

    def add(self, request: Request, served_s: float | None, waits: tuple[int, ...], pause_s: float) -> int:
        """Append a turn and return its index; ``served_s`` is how long it took, as recorded.

        None: nobody knows, and it counts as ended at once.
        """
        self.plan.turns.append(Turn(request, waits, pause_s))
        self._ends_s.append(request.arrival_s + (served_s or 0.0))
        self._known.append(served_s is not None)
        return len(self._ends_s) - 1

    def finish(self) -> SessionPlan:
        """Return the plan: its first turn starts it."""
        starts = [turn for turn in self.plan.turns if not turn.after]
        begun_s = min((turn.pause_s for turn in starts), default=0.0)
        for turn in starts:
            turn.pause_s -= begun_s
        return self.plan


class RunningSession:
    """A session while it is served: says what arrives next, and when."""

    __slots__ = ("_followers", "_scale", "_start_s", "_waiting", "left", "plan")

    def __init__(self, plan: SessionPlan, start_s: float, time_scale: float) -> None:
        """It starts at ``start_s``; recorded pauses are multiplied by ``time_scale``."""
        self.plan = plan
        self.left = len(plan.turns)
        """Turns that haven't ended."""
        self._start_s = start_s
        self._scale = time_scale
        self._waiting = [len(turn.after) for turn in plan.turns]
        self._followers: dict[int, list[int]] = {}
        for k, turn in enumerate(plan.turns):
            for before in turn.after:
                self._followers.setdefault(before, []).append(k)

    def first(self) -> Iterator[Request]:
        """Yield the requests that wait for no other."""
        for k, waiting in enumerate(self._waiting):
            if not waiting:
                yield self._due(k, self._start_s)

    def ended(self, request: Request, ended_s: float) -> Iterator[Request]:
        """Note the end of ``request``, served or turned away, and yield those that it was the last to hold up."""
        self.left -= 1
        for k in self._followers.pop(request.turn, ()):
            self._waiting[k] -= 1
            if not self._waiting[k]:
                yield self._due(k, ended_s)

    def _due(self, k: int, from_s: float) -> Request:
        """Return turn ``k`` with the time at which it arrives."""
        turn = self.plan.turns[k]
        earliest_s = self._start_s + turn.not_before_s * self._scale
        turn.request.arrival_s = max(from_s + turn.pause_s * self._scale, earliest_s)
        return turn.request
