"""Mooncake-style JSON Lines with sessions, as AIPerf and vLLM's trace replay take them.

``{"session_id", "input_length", "output_length", "hash_ids", "timestamp": ms, "delay": ms}``; a row
without ``session_id`` is a session of one turn. Rows of a session are its turns in file order:

* The first one starts at its ``timestamp`` (0 without one). A later one follows the end of the one
  before it, after its ``delay``, or not before its ``timestamp``, counted from the session's start.
* ``input_length`` and ``hash_ids`` are of the turn's *new* tokens, and the prompt is all that was said
  before, answers included, with these behind. A session whose second row begins with the id that
  its first row begins with writes whole prompts instead, and so do all of its rows.

Ids are of blocks of ``block_tokens`` (512 unless told otherwise), the partial last one there or left out; what
has no id is the session's own. Sessions are put together from the whole file, which is held in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from simkv.workload.readers.blocks import block_ids, block_spans
from simkv.workload.readers.extent import expected_lines
from simkv.workload.readers.jsonl import Fields, Row, first_objects, kind, rows
from simkv.workload.readers.plan import SessionPlan, Turn
from simkv.workload.readers.report import ReadReport
from simkv.workload.readers.source import origin
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Span

BLOCK_TOKENS = 512
_KEYS = ("session_id", "input_length", "output_length", "hash_ids", "timestamp", "delay")
_LENGTHS = ("hash_ids", "input_length")
_TEXTS = ("text_input", "input_text", "messages", "payload")


class AiperfReader:
    """Reads Mooncake-style JSONL with sessions."""

    name = "aiperf"
    summary = '{"session_id", "input_length", "output_length"[, "hash_ids", "timestamp" or "delay": ms]}'

    def __init__(self, block_tokens: int = BLOCK_TOKENS) -> None:
        """``block_tokens``: of how many tokens the ids are."""
        self.block_tokens = block_tokens

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether rows have lengths or texts, and sessions, delays or no times at all."""
        found = [row for row in first_objects(lines) if "chat_id" not in row]
        told = [row for row in found if "input_length" in row or any(text in row for text in _TEXTS)]
        timed = any("timestamp" in row for row in told)
        return bool(told) and (not timed or any("session_id" in row or "delay" in row for row in told))

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Yield the requests in file order; a turn without a timestamp has that of the one before it and its delay."""
        for turn, session in self._turns(path, report):
            if not session.named:
                turn.request.session = -1
            yield turn.request

    def sessions(self, path: Path, report: ReadReport) -> Iterator[SessionPlan]:
        """Yield the sessions in order of their start, those of equal starts in file order."""
        plans: dict[int, SessionPlan] = {}
        for turn, session in self._turns(path, report):
            plan = plans.get(session.number)
            if plan is None:
                plan = plans[session.number] = SessionPlan(
                    session.number, start_s=session.start_s, shares=True, alone=not session.named
                )
            plan.turns.append(turn)
        by_start = sorted(plans.values(), key=lambda plan: plan.start_s)
        origin_s = origin(by_start[0].start_s, report) if by_start else 0.0
        for plan in by_start:
            plan.start_s -= origin_s
        yield from by_start

    def expected_requests(self, path: Path, sessions: int | None) -> int:
        """Return about how many lines the file has, whatever they belong to."""
        return expected_lines(path)

    def _turns(self, path: Path, report: ReadReport) -> Iterator[tuple[Turn, _Session]]:
        fields = Fields(path, _KEYS)
        report.time_key = "timestamp"
        named: dict[str | int, _Session] = {}
        numbers = count()
        for line, row in rows(path, report):
            _refuse_texts(row, line, fields)
            name = _name(row, line, fields)
            session = _Session(next(numbers), False) if name is None else named.get(name)
            if session is None:
                assert name is not None
                session = named[name] = _Session(next(numbers), True)
            placed = session.place(row, line, fields, report)
            yield Turn(self._request(row, line, placed[0], session, fields, report), *placed[1:]), session

    def _request(
        self, row: Row, line: int, recorded_s: float, session: _Session, fields: Fields, report: ReadReport
    ) -> Request:
        new = fields.tokens(row, "input_length", line, 1)
        output = fields.tokens(row, "output_length", line, 0)
        if output == 0:
            report.note("no_output", "output_length is 0: taken as one token, since later turns build on it", line)
            output = 1
        ids: list[int] = []
        if row.get("hash_ids") is not None:
            ids = block_ids(row, line, new, self.block_tokens, fields, _LENGTHS)
            report.block_tokens = self.block_tokens
        i = report.kept
        report.kept += 1
        spans = session.say(ids, new, output, self.block_tokens, PRIVATE_STREAM_BASE + i)
        prompt = sum(length for _, _, length in spans) - output
        return Request(i, recorded_s, prompt, output, spans, session.number, session.turns - 1)


class _Session:
    """What the rows of a session have said so far."""

    def __init__(self, number: int, named: bool) -> None:
        self.number = number
        self.named = named
        """Whether other rows can belong to it."""
        self.turns = 0
        self.start_s = 0.0
        self._recorded_s = 0.0
        self._first_id = -1
        self._whole = False
        """Whether rows are whole prompts; told by the second one."""
        self._context: list[Span] = []
        self._tokens = 0

    def place(
        self, row: Row, line: int, fields: Fields, report: ReadReport
    ) -> tuple[float, tuple[int, ...], float, float]:
        """Return when the next turn was recorded, what it waits for, its pause after that and its earliest time."""
        at_s, delay_s = (_seconds(row, key, line, fields) for key in ("timestamp", "delay"))
        pause_s = delay_s or 0.0
        if not self.turns:
            self.start_s = at_s or 0.0
            self._recorded_s = self.start_s + pause_s
            return self._recorded_s, (), pause_s, 0.0
        if at_s is None:
            report.note("no_timestamp", "a later turn has no timestamp: it waits for the one before it", line)
        self._recorded_s = self._recorded_s + pause_s if at_s is None else at_s
        earliest_s = max(0.0, at_s - self.start_s) if at_s is not None and delay_s is None else 0.0
        return self._recorded_s, (self.turns - 1,), pause_s, earliest_s

    def say(self, ids: list[int], new: int, output: int, block_tokens: int, private: int) -> tuple[Span, ...]:
        """Take up the next turn and return the content of its prompt and output."""
        if not self.turns:
            self._first_id = ids[0] if ids else -1
        if self.turns == 1:
            self._whole = bool(ids) and ids[0] == self._first_id
        self.turns += 1
        blocks = block_spans(ids, new, block_tokens)
        rest = new - min(new, len(ids) * block_tokens)
        if self._whole or not self.named:
            return (*blocks, (private, 0, rest + output))
        self._context += blocks
        self._tokens += new - rest
        self._append(rest + output)
        return tuple(self._context)

    def _append(self, tokens: int) -> None:
        """Add tokens of the session's own, each of which is named by its place."""
        own, context = 1 + self.number, self._context
        if context and context[-1][0] == own and context[-1][1] + context[-1][2] == self._tokens:
            _, start, length = context.pop()
            context.append((own, start, length + tokens))
        else:
            context.append((own, self._tokens, tokens))
        self._tokens += tokens


def _refuse_texts(row: Row, line: int, fields: Fields) -> None:
    for key in _TEXTS:
        if row.get(key) is not None:
            what = "is given in place of lengths, and no tokenizer is at hand to count it"
            raise fields.bad(line, key, row[key], what, "give input_length, in tokens, and leave the text out")


def _name(row: Row, line: int, fields: Fields) -> str | int | None:
    name = row.get("session_id")
    if name is None or type(name) is str or type(name) is int:
        return name
    raise fields.bad(line, "session_id", name, f"is {kind(name)}, not a name", "write text")


def _seconds(row: Row, key: str, line: int, fields: Fields) -> float | None:
    return None if row.get(key) is None else fields.time(row, key, line) / 1000
