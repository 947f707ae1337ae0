"""Answers kept in one SQLite file, each committed at once: whatever ends a process, what was finished is there.

A write-ahead log, synced at its checkpoints: kill -9 loses no commit on any local file system, as the system holds
what was written; a power cut may cost the last answers, never the file. A commit so takes 0.1 ms, not the 1 to 30 ms
of a synced one, for which a worker would wait, and readers and the writer never wait for each other.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType, UnionType
from typing import Any, Literal

import orjson

from simkv.errors import InputError, Problem
from simkv.jobs.job import Answer, Failure

LAYOUT = 1
"""Version of the tables, ``user_version`` of the file."""
APPLICATION = 0x734B5631
"""``application_id`` of the file: it is one of ours."""
PATIENCE_S = 30.0
"""How long one process waits for what another does to the file as a whole."""

_TABLES = """
CREATE TABLE results (
    key TEXT PRIMARY KEY,
    label TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('begun', 'done', 'failed')),
    attempts INTEGER NOT NULL,
    answer TEXT,
    failure_kind TEXT,
    failure_message TEXT,
    wall_s REAL NOT NULL DEFAULT 0
);
CREATE TABLE points (
    position INTEGER NOT NULL,
    params TEXT NOT NULL,
    seed INTEGER NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (params, seed, key)
);
CREATE INDEX points_in_order ON points (position, seed);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
_BEGIN = """
INSERT INTO results (key, label, status, attempts) VALUES (?, ?, 'begun', 1)
ON CONFLICT (key) DO UPDATE SET label = excluded.label, status = 'begun', attempts = attempts + 1,
    answer = NULL, failure_kind = NULL, failure_message = NULL, wall_s = 0
"""
_DONE = """
INSERT INTO results (key, label, status, attempts, answer, wall_s) VALUES (?1, '', 'done', 1, ?2, ?3)
ON CONFLICT (key) DO UPDATE SET status = 'done', answer = ?2, failure_kind = NULL, failure_message = NULL, wall_s = ?3
"""
_FAILED = """
INSERT INTO results (key, label, status, attempts, failure_kind, failure_message, wall_s)
VALUES (?1, '', 'failed', 1, ?2, ?3, ?4)
ON CONFLICT (key) DO UPDATE SET status = 'failed', answer = NULL, failure_kind = ?2, failure_message = ?3, wall_s = ?4
"""
_POINT = """
INSERT INTO points (position, params, seed, key) VALUES (?, ?, ?, ?)
ON CONFLICT (params, seed, key) DO UPDATE SET position = excluded.position
"""
_KEPT = "results.key, label, status, attempts, answer, failure_kind, failure_message, wall_s"
_PAGE = f"""
SELECT points.rowid, position, params, seed, points.key, {_KEPT}
FROM points LEFT JOIN results ON results.key = points.key
WHERE (position, seed, points.rowid) > (?, ?, ?) ORDER BY position, seed, points.rowid LIMIT 200
"""
_FIRST = -(1 << 63)

_DAMAGED = ("it is damaged", "move it away and run it again")
_REASONS = {
    sqlite3.SQLITE_FULL: ("no space is left on the disk", "make room and run it again: what was finished is kept"),
    sqlite3.SQLITE_READONLY: ("it can't be written: it, or its disk, is read-only", "pick another folder with --out"),
    sqlite3.SQLITE_CANTOPEN: ("it can't be opened or made there", "pick another folder with --out"),
    sqlite3.SQLITE_PERM: ("permission is denied", "pick another folder with --out"),
    sqlite3.SQLITE_BUSY: ("another process has held it for too long", "let it end, then run it again"),
    sqlite3.SQLITE_NOTADB: ("it is no file of kept answers", "move it away, or pick another folder with --out"),
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_ERROR: _DAMAGED,
    sqlite3.SQLITE_IOERR: (
        "the disk is full, or can't be read or written",
        "make room and run it again, or pick another folder with --out",
    ),
}
_GONE = ("it was taken away while it was being written", "leave it there, and run it again")
_NOTHING = ("there are no kept answers", "run the sweep first")


@dataclass(frozen=True, slots=True)
class Kept:
    """What the file tells of a piece of work."""

    key: str
    label: str
    status: Literal["begun", "done", "failed"]
    """``begun``: it is being done, or what did it was stopped."""
    attempts: int
    answer: Answer | None
    failure: Failure | None
    wall_s: float
    """Seconds of the last attempt that ended."""


@dataclass(frozen=True, slots=True)
class Point:
    """A row of the table of points, with what is kept of its work (None: not begun)."""

    position: int
    params: str
    """JSON, as it was put."""
    seed: int
    key: str
    kept: Kept | None


class Store:
    """The file of kept answers, open for writing: made where there is none, and nobody else's meanwhile.

    Raises InputError where it can't be that (in use, no such file, written by a newer simkv, a full or read-only
    disk), from every method. What a killed process had locked is free again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _told(path), contextlib.ExitStack() as opened:
            path.parent.mkdir(parents=True, exist_ok=True)
            opened.enter_context(_locked(path))
            self._open(opened, "rwc")

    @classmethod
    def read(cls, path: Path) -> Store:
        """Return the file at ``path`` for reading only, also while another process writes it."""
        self = cls.__new__(cls)
        self.path = path
        with _told(path), contextlib.ExitStack() as opened:
            if not path.is_file():
                raise _refusal(path, *_NOTHING)
            self._open(opened, "rw")  # a reader, too, undoes what a killed writer left half done
            self._file.execute("PRAGMA query_only = ON")
        return self

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and give it free."""
        self._opened.close()

    def get(self, key: str) -> Kept | None:
        """Return what is kept of ``key``; None: it was never begun."""
        rows = self._rows(f"SELECT {_KEPT} FROM results WHERE key = ?", (key,))
        return self._kept(rows[0]) if rows else None

    def attempts(self, key: str) -> int:
        """Return how often ``key`` was begun."""
        rows = self._rows("SELECT attempts FROM results WHERE key = ?", (key,))
        return int(rows[0][0]) if rows else 0

    def finished(self) -> frozenset[str]:
        """Return the keys that have an answer."""
        return frozenset(key for (key,) in self._rows("SELECT key FROM results WHERE status = 'done'"))

    def begin(self, key: str, label: str = "") -> None:
        """Count an attempt at ``key``."""
        self._commit(_BEGIN, [(key, _text(label))])

    def done(self, key: str, answer: Answer | bytes, wall_s: float) -> None:
        """Keep the answer of ``key`` (bytes: JSON already); what is not a number becomes null, as JSON has none."""
        text = answer if isinstance(answer, bytes) else json_of(answer)
        self._commit(_DONE, [(key, text.decode(), wall_s)])

    def failed(self, key: str, failure: Failure, wall_s: float) -> None:
        """Keep why ``key`` has no answer."""
        self._commit(_FAILED, [(key, failure.kind, _text(failure.message), wall_s)])

    def put(self, name: str, value: Any) -> None:
        """Keep ``value`` (plain data) as ``name``, instead of what it was before."""
        self._commit("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", [(name, json_of(value).decode())])

    def get_meta(self, name: str, default: Any = None) -> Any:
        """Return what is kept as ``name``."""
        rows = self._rows("SELECT value FROM meta WHERE name = ?", (name,))
        with _told(self.path):
            return orjson.loads(rows[0][0]) if rows else default

    def put_points(self, points: Iterable[tuple[int, str, int, str]]) -> None:
        """Keep (position, params as JSON, seed, key) of each point, all at once; a known one moves to its position."""
        self._commit(_POINT, points)

    def points(self) -> Iterator[Point]:
        """Yield every point by position and seed, with what is kept of it; no lock is held between two of them."""
        last = (_FIRST, _FIRST, _FIRST)
        while rows := self._rows(_PAGE, last):
            for rowid, position, params, seed, key, *kept in rows:
                self._hold((position, int), (params, str), (seed, int), (key, str))
                yield Point(position, params, seed, key, self._kept(kept) if kept[0] is not None else None)
                last = (position, seed, rowid)

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with _told(self.path):
            return self._file.execute(query, values).fetchall()

    def _kept(self, row: tuple[Any, ...] | list[Any]) -> Kept:
        key, label, status, attempts, answer, kind, message, wall_s = row
        with _told(self.path):
            found = orjson.loads(answer) if answer is not None else None
        self._hold((key, str), (label, str), (attempts, int), (found, dict | None), (wall_s, int | float))
        self._hold((kind, str | None), (message, str | None))
        if (status == "done") != (found is not None) or (status == "failed") != (kind is not None):
            raise _refusal(self.path, *_DAMAGED)
        return Kept(key, label, status, attempts, found, Failure(kind, message) if kind is not None else None, wall_s)

    def _hold(self, *values: tuple[object, type | UnionType]) -> None:
        """Raise InputError unless values from the file are of the kinds that were kept."""
        for value, kind in values:
            if not isinstance(value, kind):
                raise _refusal(self.path, *_DAMAGED)

    def _commit(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with _told(self.path), _transaction(self._file):
            self._file.executemany(statement, rows)
        if _identity(self.path) != self._identity:
            raise _refusal(self.path, *_GONE)

    def _open(self, opened: contextlib.ExitStack, mode: Literal["rw", "rwc"]) -> None:
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        file = sqlite3.connect(uri, timeout=PATIENCE_S, isolation_level=None, uri=True)
        self._file = opened.enter_context(contextlib.closing(file))
        self._check(new=mode == "rwc")
        if mode == "rwc":
            self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")
        self._identity = _identity(self.path)
        self._opened = opened.pop_all()

    def _check(self, new: bool) -> None:
        """Make the tables in an empty file (``new``), refuse what isn't ours."""
        ((application,),) = self._file.execute("PRAGMA application_id").fetchall()
        ((layout,),) = self._file.execute("PRAGMA user_version").fetchall()
        ((tables,),) = self._file.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        if new and not tables and not application:
            self._file.executescript(
                f"BEGIN; {_TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {LAYOUT}; COMMIT;"
            )
        elif not tables and not application:
            raise _refusal(self.path, *_NOTHING)
        elif application != APPLICATION:
            raise _refusal(self.path, *_REASONS[sqlite3.SQLITE_NOTADB])
        elif layout > LAYOUT:
            what = f"a newer simkv wrote it (layout {layout}, this one knows {LAYOUT})"
            raise _refusal(self.path, what, "update simkv, or pick another folder with --out")


def json_of(value: Any) -> bytes:
    """Return plain data (numpy's numbers and arrays among it) as JSON; raises TypeError for anything else."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def _text(words: str) -> str:
    """Return ``words`` as text that can be kept: the name of a file in them may be none."""
    return words.encode("utf-8", "replace").decode()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells the file at ``path`` from any that comes in its place; None: there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def _transaction(file: sqlite3.Connection) -> Iterator[None]:
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
        file.execute("COMMIT")
    except BaseException:
        if file.in_transaction:
            file.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock that says that this process writes, on a file beside ``path``; the system frees it at our end."""
    try:
        import fcntl
    except ImportError:  # Windows: two writers at once are not told apart there
        yield
        return
    with path.with_name(path.name + ".lock").open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            by = f" by process {who}" if (who := lock.read(20).strip()) else ""
            raise _refusal(path, f"it is in use{by}", "let that end, or pick another folder with --out") from None
        except OSError:  # a file system without locks
            pass
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what SQLite and the system say into an InputError that names the file and the mend."""
    try:
        yield
    except sqlite3.Error as error:
        known = _REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if known is None and isinstance(error, sqlite3.OperationalError):  # a text there is no UTF-8
            known = _DAMAGED
        if known is None:
            raise
        raise _refusal(path, *known) from error
    except (orjson.JSONDecodeError, UnicodeDecodeError) as error:  # SQLite's own words may quote what is no UTF-8
        raise _refusal(path, *_DAMAGED) from error
    except OSError as error:
        reason = "no space is left on the disk" if error.errno == errno.ENOSPC else error.strerror or str(error)
        raise _refusal(path, f"it can't be made: {reason}", "pick another folder with --out") from error


def _refusal(path: Path, what: str, mend: str) -> InputError:
    return InputError(Problem(what, mend, str(path)))
