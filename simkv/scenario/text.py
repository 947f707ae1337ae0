"""A scenario file to a plain tree that remembers its lines. Safe on anything: bounded, no tags, no aliases.

Scalars are read as YAML 1.2 has them (``on`` and ``1:30`` are text), so that nothing turns into
something else behind the writer's back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from simkv.errors import InputError, Problem
from simkv.reading import read_bounded

MAX_BYTES = 1 << 20
MAX_DEPTH = 16
MAX_NODES = 50_000
MAX_KEY = 200
"""Characters of a key."""

Path = tuple[str, ...]
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_INT = re.compile(r"[-+]?(0|[1-9](?:_?[0-9])*)")
_FLOAT = re.compile(
    r"[-+]?([0-9](?:_?[0-9])*\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None,
          "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}  # fmt: skip
_LONGEST_NUMBER = 100


@dataclass(slots=True)
class Tree:
    """What a file says: nested dicts and lists, the line of each path, and what was wrong with it."""

    file: str
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line_of(self, path: Path) -> int | None:
        """Return the line of ``path``, or of the nearest section around it that is in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


def read_file(path: str) -> Tree:
    """Return the tree of a scenario file; raises InputError where there is none to speak of."""
    return parse(read_text(path), path)


def _mend_missing(path: str) -> str:
    near = next((name for name in (f"{path}.yaml", f"scenarios/{path}.yaml") if os.path.isfile(name)), "")
    return f"did you mean {near}?" if near else "`simkv catalog scenarios` lists those that come with simkv, and where"


def read_text(path: str) -> str:
    """Return what a scenario file says, as it stands; raises InputError where it is no text of a reasonable size."""
    shown = path if path.isprintable() else ascii(path)
    try:
        if os.path.isdir(path):
            raise InputError(Problem("is a folder", "name a scenario file in it", shown))
        data = read_bounded(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        mend = _mend_missing(path) if isinstance(error, FileNotFoundError) else "name a scenario file (YAML)"
        raise InputError(Problem(f"can't be read: {reason}", mend, shown)) from None
    if len(data) > MAX_BYTES:
        raise InputError(Problem("is longer than 1 MiB", "a scenario is a few dozen lines of YAML", shown))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(Problem("is UTF-16", "save it as UTF-8", shown))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(Problem("is not UTF-8 text", "save it as UTF-8", shown, line)) from None


def parse(text: str, file: str) -> Tree:
    """Return the tree of ``text``; raises InputError if it isn't a YAML mapping.

    Smaller faults (a key given twice, an alias, a tag) are left in ``problems`` so that they can be
    told together with what validation finds.
    """
    tree = Tree(file)
    try:
        root = _Builder(tree).build(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(filter(None, (error.context, error.problem))) or "unreadable"
        raise InputError(
            Problem(f"not valid YAML: {what}", _mend_syntax(what), file, mark.line + 1 if mark else None)
        ) from None
    except UnicodeError:
        raise InputError(Problem("is not UTF-8 text", "save it as UTF-8", file)) from None
    except yaml.YAMLError as error:
        what = str(error).splitlines()[0] if str(error) else "unreadable"
        raise InputError(Problem(f"not valid YAML: {what}", "a scenario is plain text", file)) from None
    if root is None:
        raise InputError(Problem("is empty", "`simkv init` writes a scenario to start from", file))
    if not isinstance(root, dict):
        kind = "a list" if isinstance(root, list) else "a single value"
        raise InputError(Problem(f"holds {kind}, not sections", 'start with lines such as "name: chatbot"', file, 1))
    tree.values = root
    return tree


_SYNTAX = {
    "tab": "indent with blanks, not with tabs",
    "cannot start any token": "put the value into quotes; a line begins with blanks, not with tabs",
    "mapping values are not allowed": "see the indentation of this line, and put a text with ': ' in it into quotes",
    "expected ',' or": "close the bracket, and put commas between values",
    "unexpected end of stream": "close the quote",
    "expected ':'": "write it like name: value",
    "escape": "write \\\\ for a backslash, or use single quotes",
    "maximum nesting depth": f"the deepest that makes sense is {MAX_DEPTH} levels",
    "expected key": "see the indentation: keys of one section stand below one another",
    "block end": "see the indentation: keys of one section stand below one another",
    "document": "write one document, without lines that begin with % or ---",
}
"""What YAML's parser says where, and what to do about it."""


def _mend_syntax(what: str) -> str:
    return next((mend for words, mend in _SYNTAX.items() if words in what), "put texts with special signs into quotes")


def scalar(text: str) -> Any:
    """Return what a plain scalar says: null, a truth value, a number, or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _LONGEST_NUMBER:
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


class _Builder:
    """Builds values from parser events; size and depth are held to their limits on the way."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._events: Iterator[Any] = iter(())
        self._nodes = 0

    def build(self, text: str) -> Any:
        """Return the document's value; None for an empty one."""
        self._events = iter(yaml.parse(text, _Loader))
        root = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._stop("holds more than one document", 'remove what follows "---"', event)
            elif isinstance(event, yaml.NodeEvent):
                root = self._value(event, ())
        return root

    def _value(self, event: Any, path: Path) -> Any:
        """Return the value that starts with ``event``, its events used up."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._stop("has too many values", f"the most is {MAX_NODES}", event)
        if len(path) >= MAX_DEPTH:
            raise self._stop("is nested too deeply", f"the deepest that makes sense is {MAX_DEPTH} levels", event)
        if isinstance(event, yaml.AliasEvent):
            self._problem(f"*{event.anchor}: aliases aren't supported", "write the value out", path, event)
            return None
        if event.tag is not None:
            self._problem(f"the tag {event.tag} isn't supported", "remove it", path, event)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path)
        return scalar(event.value) if event.implicit[0] else event.value

    def _sequence(self, path: Path) -> list[Any]:
        values: list[Any] = []
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            below = (*path, str(len(values)))
            self._tree.lines.setdefault(below, event.start_mark.line + 1)
            values.append(self._value(event, below))
        return values

    def _mapping(self, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._key(event, path)
            below = (*path, key)
            again = key in values
            if again:
                first = self._tree.lines[below]
                self._problem(f"is given twice (first on line {first})", "keep one of them", below, event)
            else:
                self._tree.lines.setdefault(below, event.start_mark.line + 1)
            value = self._value(next(self._events), below)
            if not again:
                values[key] = value
        return values

    def _key(self, event: Any, path: Path) -> str:
        if isinstance(event, yaml.ScalarEvent):
            if len(event.value) > MAX_KEY:
                raise self._stop("has a key that is too long", f"the most is {MAX_KEY} characters", event)
            return str(event.value)
        self._problem("a key must be plain text", "write it like name: value", path, event)
        self._value(event, (*path, "?"))
        return "?"

    def _problem(self, what: str, mend: str, path: Path, event: Any) -> None:
        self._tree.problems.append(Problem(what, mend, self._tree.file, event.start_mark.line + 1, ".".join(path)))

    def _stop(self, what: str, mend: str, event: Any) -> InputError:
        return InputError(Problem(what, mend, self._tree.file, event.start_mark.line + 1))
