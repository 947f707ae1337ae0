"""simkv's own trace format for sessions, whose turns wait for each other: a row a turn, with what it waits for.

The header has ``"sessions": true``. To what a request has, a row adds ``session``, ``turn`` (0, 1, ... in
file order) and, where they aren't empty or zero, ``after`` (the turns that must have ended),
``pause_s`` (from the end of the last of them, or from the session's start) and ``not_before_s``
(from the session's start); the first row of a session ``start_s`` and ``shares``, as
:class:`~simkv.workload.readers.plan.SessionPlan` has them. A session of one turn that the source didn't
call a session is ``alone``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from simkv.workload.readers.extent import expected_lines
from simkv.workload.readers.jsonl import Fields, Row, first_objects, kind
from simkv.workload.readers.own import KEYS, MARK, VERSION, own_request, own_rows
from simkv.workload.readers.plan import SessionPlan, Turn
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import Request

_KEYS = (*KEYS, "after", "pause_s", "not_before_s", "start_s", "shares", "alone")


class OwnSessionsReader:
    """Reads what ``simkv trace convert`` makes of sessions."""

    name = "simkv-sessions"
    summary = f'a line {{"{MARK}": {VERSION}, "sessions": true, ...}}, then a turn a line'

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether the first line is the header of a trace of sessions."""
        return any(MARK in row and row.get("sessions") is True for row in first_objects(lines[:1]))

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Yield the turns in file order, at their recorded times."""
        fields = Fields(path, _KEYS)
        for line, row in own_rows(path, report):
            request = _turn_request(row, line, fields, report)
            if row.get("alone") is True:
                request.session, request.turn = -1, 0
            yield request

    def sessions(self, path: Path, report: ReadReport) -> Iterator[SessionPlan]:
        """Yield the sessions in order of their start, those of equal starts in file order; holds them all."""
        fields = Fields(path, _KEYS)
        plans: dict[int, SessionPlan] = {}
        for line, row in own_rows(path, report):
            request = _turn_request(row, line, fields, report)
            plan = plans.get(request.session)
            if plan is None:
                start_s = _seconds(row, "start_s", line, fields)
                shares, alone = (row.get(key) is True for key in ("shares", "alone"))
                plan = plans[request.session] = SessionPlan(request.session, [], start_s, shares, alone)
            if request.turn != len(plan.turns):
                what = f"is not the next turn of session {request.session}, which is {len(plan.turns)}"
                raise fields.bad(line, "turn", request.turn, what, "keep every turn of a session, in order")
            after = _after(row, line, request.turn, fields)
            waits = (_seconds(row, key, line, fields) for key in ("pause_s", "not_before_s"))
            plan.turns.append(Turn(request, after, *waits))
        yield from sorted(plans.values(), key=lambda plan: plan.start_s)

    def expected_requests(self, path: Path, sessions: int | None) -> int:
        """Return about how many lines the file has, whatever they belong to."""
        return expected_lines(path)


def _turn_request(row: Row, line: int, fields: Fields, report: ReadReport) -> Request:
    request = own_request(row, line, fields, report)
    request.session = fields.tokens(row, "session", line, 0)
    request.turn = fields.tokens(row, "turn", line, 0)
    return request


def _after(row: Row, line: int, turn: int, fields: Fields) -> tuple[int, ...]:
    """Return the turns that a turn waits for."""
    after = row.get("after", [])
    if type(after) is not list:
        raise fields.bad(line, "after", after, f"is {kind(after)}, not a list", "list the turns that it waits for")
    for k in after:
        if type(k) is not int or not 0 <= k < turn:
            raise fields.bad(line, "after", after, f"{k} is no turn before {turn}", "list turns of the same session")
    return tuple(after)


def _seconds(row: Row, key: str, line: int, fields: Fields) -> float:
    return fields.time(row, key, line) if key in row else 0.0
