"""What the prompts of a log share, told by names alone: heads with a hash, and conversations that grow.

* Requests that name the same *head* begin with the same tokens, as many as the shorter head has.
* A request of a *session* whose prompt is at least as long as the session's content so far (its
  last prompt and the answer to it) begins with all of that: a chat sends its history along. A
  shorter prompt begins the conversation anew, and shares nothing with what was before.

Names get stream numbers in order of first appearance; memory grows with the number of different
names, not with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from simkv.workload.readers.report import ReadReport
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Spans

NO_HEAD = (-1, 0)
"""``(stream, tokens)`` of a prompt that begins with nothing known."""


@dataclass(slots=True)
class _Session:
    number: int
    turn: int
    head: tuple[int, int]
    stream: int
    """Of what follows the head."""
    total_tokens: int
    """All that was said so far, the head included."""


class Contents:
    """Gives requests their spans, in the order of the file."""

    def __init__(self, report: ReadReport) -> None:
        """``report`` takes the notes and counts the requests."""
        self._report = report
        self._streams = count()
        self._heads: dict[str, int] = {}
        self._sessions: dict[str, _Session] = {}

    def head(self, name: str, tokens: int) -> tuple[int, int]:
        """Return the head called ``name``, of ``tokens`` tokens; of none, or without a name, there is nothing."""
        if not name or not tokens:
            return NO_HEAD
        stream = self._heads.get(name)
        if stream is None:
            stream = self._heads[name] = next(self._streams)
        return stream, tokens

    def request(
        self, arrival_s: float, prompt: int, output: int, session: str = "", head: tuple[int, int] = NO_HEAD
    ) -> Request:
        """Return the next request: a turn of ``session``, or one that shares ``head`` at most.

        In a session ``head`` counts where a conversation begins.
        """
        i = self._report.kept
        self._report.kept += 1
        total = prompt + output
        if not session:
            return Request(i, arrival_s, prompt, output, _spans(head, PRIVATE_STREAM_BASE + i, 0, total))
        past = self._sessions.get(session)
        if past is None:
            past = self._sessions[session] = _Session(len(self._sessions), 0, head, next(self._streams), total)
        else:
            self._continue(past, prompt, head)
            past.turn += 1
            past.total_tokens = total
        spans = _spans(past.head, past.stream, past.head[1], total)
        return Request(i, arrival_s, prompt, output, spans, past.number, past.turn)

    def _continue(self, past: _Session, prompt: int, head: tuple[int, int]) -> None:
        report = self._report
        if prompt < past.total_tokens:
            what = "the prompt is shorter than its session's last one with the answer: taken as a new conversation"
            report.note("session_anew", what, report.line)
            past.head, past.stream = head, next(self._streams)
        elif head[0] not in (past.head[0], NO_HEAD[0]):
            what = "the prefix_hash differs from that of its conversation's start: taken to continue the conversation"
            report.note("hash_within_session", what, report.line)


def is_served(prompt: int, output: int, names: tuple[str, str], report: ReadReport) -> bool:
    """Return whether a request of such lengths can be served; note it as dropped where it can't."""
    if prompt and output:
        return True
    if not prompt and not output:
        code, what = "failed", f"{names[0]} and {names[1]} are 0: the request failed"
    elif output:
        code, what = "no_prompt", f"{names[0]} is 0: there is nothing to answer"
    else:
        code, what = "no_output", f"{names[1]} is 0: nothing was generated"
    report.note(code, what, report.line, dropped=True)
    return False


def _spans(head: tuple[int, int], stream: int, start: int, total_tokens: int) -> Spans:
    """Return ``head`` and behind it ``stream`` from ``start`` on, ``total_tokens`` in all."""
    stream_head, tokens = head
    if not tokens:
        return ((stream, start, total_tokens),)
    return ((stream_head, 0, tokens), (stream, start, total_tokens - tokens))
