"""Multi-turn sessions: each turn's prompt is the whole context so far and new tokens.

Everything random about a session (turns, lengths, pauses, class, system prompt) is drawn when the
session starts, sessions start in one order, and their request ids are reserved then, so two
runs that finish turns in different order still serve the same requests under the same ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, islice

from simkv.workload.arrivals import think_times
from simkv.workload.bodies import PlainBodies
from simkv.workload.lengths import lengths
from simkv.workload.request import Request, Span
from simkv.workload.single import Limits
from simkv.workload.spec import Spec, bad, need, whole
from simkv.workload.streams import Streams

Plan = list[tuple[int, int, float]]
"""Turns as ``(new_tokens, output_tokens, pause_before_s)``, the next one last."""


class Session:
    """What is left of a running session."""

    __slots__ = ("cls", "context_tokens", "next_id", "number", "plan", "system", "turn")

    def __init__(self, number: int, first_id: int, plan: Plan, system: tuple[Span, ...], cls: str) -> None:
        self.number = number
        self.next_id = first_id
        self.plan = plan
        self.system = system
        self.cls = cls
        self.turn = 0
        self.context_tokens = 0


class SessionContent(PlainBodies):
    """The random content of sessions: per session a plan of turns, a system prompt and a class."""

    def __init__(self, spec: Spec, streams: Streams, where: str) -> None:
        super().__init__(spec, streams, where)
        for check in (self._turns, self._pauses, self._first_prompts):
            check()
        cap = spec.get("max_context")
        self.max_context = None if cap is None else whole(cap, f"{where}.max_context", 1)
        if self.max_context is not None and self.system.longest_tokens + 2 > self.max_context:
            what = f"leaves no room behind a system prompt of {self.system.longest_tokens} tokens"
            raise bad(
                f"{where}.max_context", self.max_context, what, f"write at least {self.system.longest_tokens + 2}"
            )

    def _turns(self) -> Iterator[int]:
        where = f"{self._where}.turns"
        return lengths(need(self._spec, "turns", self._where), self._streams("turns"), where)

    def _pauses(self) -> Iterator[float]:
        return think_times(self._spec.get("think_time"), self._streams("think_times"), f"{self._where}.think_time")

    def _first_prompts(self) -> Iterator[int] | None:
        spec, where = self._spec.get("first_prompt_tokens"), f"{self._where}.first_prompt_tokens"
        return None if spec is None else lengths(spec, self._streams("first_prompt_tokens"), where)

    def sessions(self) -> Iterator[tuple[Plan, tuple[Span, ...], str]]:
        """Yield ``(plan, system spans, class)`` of one session after the other, without end."""
        prompts, outputs, pauses, firsts = self._prompts(), self._outputs(), self._pauses(), self._first_prompts()
        for turns, system, cls in zip(self._turns(), self.system.draws(), self.classes.draws(), strict=False):
            plan = list(islice(zip(prompts, outputs, pauses, strict=False), turns))
            if firsts is not None:
                plan[0] = (next(firsts), *plan[0][1:])
            if self.max_context is not None:
                self._cut(plan, system, self.max_context)
            plan.reverse()
            yield plan, system, cls

    @staticmethod
    def _cut(plan: Plan, system: tuple[Span, ...], max_context: int) -> None:
        """Drop the turns that would go beyond ``max_context``; the first one always stays."""
        context = system[0][2] if system else 0
        for k, (new, output, _) in enumerate(plan):
            context += new + output
            if context > max_context and k:
                del plan[k:]
                return


class SessionSource:
    """Sessions that start at open times, or in a closed loop of users, one session after the other.

    Session j is stream ``system prompts + j``. A rejected turn ends its session. Where the number
    of requests is bounded, the session that would pass the bound is shortened.
    """

    def __init__(
        self,
        content: SessionContent,
        limits: Limits,
        times: Callable[[], Iterator[float]],
        gaps: Callable[[], Iterator[float]] | None = None,
    ) -> None:
        """``times`` are the starts of sessions; ``gaps``, the pauses of users between two sessions."""
        self._content = content
        self._limits = limits
        self._times = times
        self._make_gaps = gaps
        self._restart()

    @property
    def class_names(self) -> tuple[str, ...]:
        """Every value that ``Request.cls`` can take."""
        return self._content.classes.names

    def arrivals(self) -> Iterator[Request]:
        """Yield the first turn of each session; each call starts the workload over."""
        self._restart()
        first_turns = self._first_turns()
        return first_turns if self._gaps is None else iter(list(first_turns))

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        """Return the session's next turn, or its user's next session in a closed loop; else ()."""
        session = self._live.get(request.session)
        if session is not None and session.plan and finished:
            return self._turn(session, ended_s + session.plan[-1][2])
        if session is not None:
            del self._live[request.session]
        return () if self._gaps is None else self._start(ended_s + next(self._gaps))

    def content_name(self, stream: int, start: int) -> str:
        """Return what people call a stream: a system prompt, or a session."""
        own = stream - self._content.system.count
        return f"session {own}" if own >= 0 else self._content.content_name(stream, start)

    def session_over(self, request: Request) -> bool:
        """Return whether the session of ``request`` has no turn left."""
        return request.session not in self._live

    def _restart(self) -> None:
        self._gaps = self._make_gaps() if self._make_gaps is not None else None
        self._sessions = zip(count(), self._content.sessions(), strict=False)
        self._live: dict[int, Session] = {}
        self._planned = 0

    def _first_turns(self) -> Iterator[Request]:
        for start_s in self._times():
            first = self._start(start_s)
            if not first:
                return
            yield from first

    def _start(self, start_s: float) -> tuple[Request, ...]:
        """Draw a session and return its first turn; () once the limits are reached."""
        session = self._draw(start_s)
        return self._turn(session, start_s) if session is not None else ()

    def _draw(self, start_s: float) -> Session | None:
        """Return a new session, none of whose turns has been sent; None once the limits are reached."""
        most = self._limits.requests
        if not self._limits.open(start_s) or (most is not None and self._planned >= most):
            return None
        number, (plan, system, cls) = next(self._sessions)
        if most is not None and self._planned + len(plan) > most:
            del plan[: self._planned + len(plan) - most]
        session = Session(number, self._planned, plan, system, cls)
        self._planned += len(plan)
        self._live[number] = session
        return session

    def _turn(self, session: Session, arrival_s: float) -> tuple[Request, ...]:
        """Take the session's next turn off its plan and return it; () past the limits."""
        if not self._limits.open(arrival_s):
            del self._live[session.number]
            return ()
        new, output, _ = session.plan.pop()
        context = session.context_tokens + new
        session.context_tokens = context + output
        own: Span = (self._content.system.count + session.number, 0, context + output)
        system = session.system
        prompt = context + system[0][2] if system else context
        turn, session.turn = session.turn, session.turn + 1
        request_id, session.next_id = session.next_id, session.next_id + 1
        return (Request(request_id, arrival_s, prompt, output, (*system, own), session.number, turn, session.cls),)
