"""Agent sessions of kv-cache-tester: a JSON file a session, alone or in a folder of them.

``{"id", "block_size": 64, "hash_id_scope": "local", "requests": [...]}`` with two kinds of entries:

* a request ``{"t", "type": "n"|"s", "in", "out", "hash_ids", "api_time", "think_time"}``: ``t`` seconds
  from the session's start, one id a *full* block of the prompt, the rest private. ``api_time`` is how long
  the answer took; ``think_time`` the pause before, from the end of the answer before that has an
  ``api_time``: where the one before has none, ``think_time`` holds that one's time too and isn't used.
* a subagent ``{"t", "type": "subagent", "duration_ms", "requests": [...]}`` without ``in``: an agent with a
  chain of requests of its own. Its ``t`` is its *end*, ``duration_ms`` before it is its start, from which its
  requests' ``t`` count (in some collections they count from the session's start, and are then above it).

Ids are local to a session, except with ``hash_id_scope`` ``global``. A request that generated nothing stays,
with one output token: its prompt is what the next ones build on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from simkv.errors import InputError, Problem
from simkv.workload.readers.blocks import block_ids, block_spans
from simkv.workload.readers.extent import expected_keys
from simkv.workload.readers.faults import time_fault
from simkv.workload.readers.files import excerpt, parts
from simkv.workload.readers.jsonfile import parsed
from simkv.workload.readers.jsonl import Fields, Row, kind
from simkv.workload.readers.plan import RESOLUTION_S, SessionPlan, Timeline
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import PRIVATE_STREAM_BASE, Request

_KEYS = ("t", "type", "in", "out", "hash_ids", "api_time", "think_time", "requests", "duration_ms")
_TYPES = ("n", "s")
_SCOPES = ("local", "global")
MOST_NESTED = 16


class AgentSessionsReader:
    """Reads a session, or a folder of sessions."""

    name = "agent-sessions"
    summary = '{"block_size", "hash_id_scope", "requests": [{"t", "in", "out", "hash_ids"}, ...]}, a file a session'

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether the text begins like a session."""
        start = b"".join(lines)
        return b'"block_size"' in start and (b'"hash_id_scope"' in start or b'"requests"' in start)

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Yield all requests in file order, subagents' where they stand, at their recorded times."""
        for plan in self.sessions(path, report):
            for turn in plan.turns:
                yield turn.request

    def sessions(self, path: Path, report: ReadReport) -> Iterator[SessionPlan]:
        """Yield the sessions by file name; raises InputError that names the file, and the place in it."""
        report.time_key = "t"
        known: set[bytes] = set()
        for number, file in enumerate(parts(path)):
            session = _Session(file, number, report)
            digest = hashlib.blake2b(orjson.dumps(session.entries), digest_size=16).digest()
            if digest in known:
                what = "the file holds the same requests as one before it: another session"
                report.note("duplicate", what, 0, place=f"in {file.name}")
            known.add(digest)
            yield session.plan()

    def expected_requests(self, path: Path, sessions: int | None) -> int:
        """Return how often the key of a prompt's length stands in the files."""
        return expected_keys(parts(path)[:sessions], b'"in"')


@dataclass(slots=True)
class _Chain:
    """Entries that follow each other: of the session, or of a subagent."""

    entries: list[Row]
    place: str
    """The path of the list in the file."""
    base_s: float
    """What its times count from."""
    before: tuple[int, ...]
    """The turns that its first request waits for."""
    depth: int = 0


class _Session:
    """One file while it is read."""

    def __init__(self, path: Path, number: int, report: ReadReport) -> None:
        self._path = path
        self._report = report
        self._fields = Fields(path, _KEYS)
        self._session = _parse(path)
        self._number = number
        self.entries: list[Row] = _entries(self._session, "", self._fields)
        self._block_tokens = self._fields.tokens(self._session, "block_size", 0, 1)
        self._shares = self._scope() == "global"
        self._stream = 0 if self._shares else 1 + number
        self._timeline = Timeline(SessionPlan(number, shares=self._shares))
        if report.block_tokens is None:
            report.block_tokens = self._block_tokens
        if report.block_tokens != self._block_tokens:
            what = f"differs from the {report.block_tokens} of the sessions before"
            mend = "keep sessions of one block size in a folder"
            raise self._fields.bad(0, "block_size", self._block_tokens, what, mend)

    def plan(self) -> SessionPlan:
        """Return the session's turns, in file order."""
        self._follow(_Chain(self.entries, "requests", 0.0, ()))
        if not self._timeline.plan.turns:
            raise self._fields.bad(0, "requests", self.entries, "holds no request", "give a session with a request")
        return self._timeline.finish()

    def _scope(self) -> str:
        scope = self._session.get("hash_id_scope")
        if scope is None:
            what = "hash_id_scope is missing: the ids are taken as the session's own"
            self._report.note("no_scope", what, 0, place=f"in {self._path.name}")
            return "local"
        if scope not in _SCOPES:
            raise self._fields.bad(0, "hash_id_scope", scope, "is not known", f"write {' or '.join(_SCOPES)}")
        return str(scope)

    def _follow(self, chain: _Chain) -> tuple[int, ...]:
        """Append the turns of ``chain`` and return those that whoever comes after it may wait for."""
        open_turns, last, last_t = chain.before, -1, 0.0
        for k, entry in enumerate(chain.entries):
            fields = self._fields.under(f"{chain.place}[{k}].")
            start_s = fields.time(entry, "t", 0)
            if start_s < last_t:
                self._note("back", "t steps back: it ran beside the entry before it", fields)
            last_t = start_s
            if "in" not in entry:
                ends = self._subagent(entry, open_turns, start_s + chain.base_s, chain, fields)
                open_turns = tuple(dict.fromkeys((*open_turns, *ends)))
                continue
            waits = self._timeline.waits(open_turns, start_s + chain.base_s)
            last = self._request(entry, start_s + chain.base_s, waits, last, fields)
            open_turns = (*(j for j in open_turns if j not in waits), last)
        return open_turns

    def _subagent(
        self, entry: Row, open_turns: tuple[int, ...], end_s: float, outer: _Chain, fields: Fields
    ) -> tuple[int, ...]:
        """Append the turns of a subagent and return its last ones."""
        place = f"{fields.prefix}requests"
        if outer.depth == MOST_NESTED:
            raise fields.bad(0, "requests", None, f"is nested over {MOST_NESTED} deep", "check where lists end")
        if entry.get("type") not in ("subagent", None):
            raise fields.missing(entry, "in", 0)
        entries = _entries(entry, fields.prefix, self._fields)
        if not entries:
            self._note("idle_subagent", "the subagent has no request", fields, dropped=True)
            return ()
        lasted_s = _optional_time(entry, "duration_ms", fields)
        start_s = end_s if lasted_s is None else end_s - lasted_s / 1000
        first_s = self._fields.under(f"{place}[0].").time(entries[0], "t", 0)
        base_s = 0.0 if first_s > 0 and start_s - RESOLUTION_S <= first_s else start_s
        waits = self._timeline.waits(open_turns, base_s + first_s)
        return self._follow(_Chain(entries, place, base_s, waits, outer.depth + 1))

    def _request(self, entry: Row, start_s: float, waits: tuple[int, ...], last: int, fields: Fields) -> int:
        """Append a request; ``last`` is the one before it in its chain, -1: none."""
        if entry.get("type", "n") not in _TYPES:
            raise fields.bad(0, "type", entry["type"], "is not known", 'write "n", or "s" where it streamed')
        served_s = _optional_time(entry, "api_time", fields)
        thought_s = _optional_time(entry, "think_time", fields)
        if served_s is None:
            self._note("no_api_time", "api_time is missing: the pause after it counts from its own start", fields)
        if thought_s is None and last >= 0:
            self._note("no_think_time", "think_time is missing: it is told by t and api_time", fields)
        timeline = self._timeline
        follows = waits == (last,) and timeline.end_is_known(last)
        pause_s = thought_s if thought_s is not None and follows else timeline.gap_s(waits, start_s)
        return timeline.add(self._made(entry, start_s, fields), served_s, waits, pause_s)

    def _made(self, entry: Row, start_s: float, fields: Fields) -> Request:
        prompt = fields.tokens(entry, "in", 0, 1)
        output = fields.tokens(entry, "out", 0, 0)
        if output == 0:
            self._note("no_output", "out is 0: taken as one token, since later prompts build on this one", fields)
            output = 1
        size = self._block_tokens
        ids = block_ids(entry, 0, prompt, size, fields, ("hash_ids", "in"))
        report = self._report
        i, turn = report.kept, len(self._timeline.plan.turns)
        report.kept += 1
        report.line = report.kept
        rest = prompt - min(prompt, len(ids) * size) + output
        spans = (*block_spans(ids, prompt, size, self._stream), (PRIVATE_STREAM_BASE + i, 0, rest))
        return Request(i, start_s, prompt, output, spans, self._number, turn)

    def _note(self, code: str, what: str, fields: Fields, *, dropped: bool = False) -> None:
        self._report.note(code, what, 0, dropped=dropped, place=f"in {self._path.name}, {fields.prefix[:-1]}")


def _parse(path: Path) -> Row:
    """Return the object in ``path``; raises InputError with the line where it is no JSON."""
    session = parsed(path, "give a whole session, a file each")
    if not isinstance(session, dict):
        what, shown = f"is {kind(session)}, not an object", excerpt(session)
        raise InputError(Problem(what, "give one session", file=str(path), path=shown))
    return session


def _entries(holder: Row, prefix: str, fields: Fields) -> list[Row]:
    """Return the list of entries in ``holder``, each an object."""
    inner = fields.under(prefix)
    entries: Any = holder.get("requests")
    if entries is None:
        raise inner.missing(holder, "requests", 0)
    if not isinstance(entries, list):
        raise inner.bad(0, "requests", entries, f"is {kind(entries)}, not a list", "write [{...}, ...]")
    for k, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise inner.bad(0, f"requests[{k}]", entry, f"is {kind(entry)}, not an object", "write {...}")
    return entries


def _optional_time(entry: Row, key: str, fields: Fields) -> float | None:
    """Return a time in the file's unit, None where it is absent or null."""
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise fields.bad(0, key, value, f"is {kind(value)}, not a number", "write a number, or leave it out")
    what, _ = time_fault(value)
    if what:
        raise fields.bad(0, key, value, what, "write how long it took, or leave it out")
    return float(value)
