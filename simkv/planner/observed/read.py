"""A file that a benchmark wrote: which one, and what is in it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, NoReturn

from simkv.errors import InputError, Problem
from simkv.planner.observed.bench import read_run, tool_of
from simkv.planner.observed.fields import Fields
from simkv.planner.observed.requests_log import is_log, read_log
from simkv.planner.observed.types import Observed
from simkv.reading import read_bounded
from simkv.units import shown

MOST_BYTES = 256 << 20
KNOWN = (
    "give what vllm bench serve --save-result or sglang.bench_serving --output-file wrote, or a log of requests "
    "(JSON Lines with queued_ts, first_token_ts, last_token_ts, input_toks, output_toks)"
)


def read_observed(path: str) -> Observed:
    """Return what was measured; of several runs in one file, the last.

    Raises InputError, with file, line and key, for anything that is none of the known formats, or wrong in one.
    """
    objects = _objects(_text(path), path)
    first = next(objects)
    if is_log(first[1]):
        return read_log(Fields(values, path, line) for line, values in chain([first], objects))
    ((runs, (line, values)),) = deque(enumerate(chain([first], objects), 1), maxlen=1)
    tool = tool_of(values)
    if tool is None:
        keys = ", ".join(list(values)[:6]) or "none"
        _refuse(f"is no measured run that simkv knows (its keys are {keys[:200]})", path, line if line > 1 else None)
    observed = read_run(Fields(values, path, line if runs > 1 else None), tool)
    if runs > 1:
        note = f"the file has {runs} runs: the last is taken"
        observed = replace(observed, notes=(*observed.notes, note))
    return observed


def _text(path: str) -> str:
    try:
        data = read_bounded(path, MOST_BYTES)
    except OSError as error:
        _refuse(f"can't be read: {error.strerror or error}", path)
    except ValueError:
        _refuse("is no file name", path)
    if len(data) > MOST_BYTES:
        _refuse(f"is larger than {MOST_BYTES >> 20} MiB", path, mend="leave out generated texts")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse("is not UTF-8", path, data.count(b"\n", 0, error.start) + 1)
    if not text.strip():
        _refuse("is empty", path)
    if text.lstrip()[:1] == "<":
        _refuse("is HTML or XML, no JSON", path, 1)
    return text


def _objects(text: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file and the lines that they begin on: one over many lines, or one a line."""
    whole = _parsed(text)
    if not isinstance(whole, _Unreadable):
        yield 1, _object(whole, path, 1)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            value = _parsed(line)
            if isinstance(value, _Unreadable):
                _refuse(f"{shown(line.strip())} is no JSON: {value.why}", path, number)
            yield number, _object(value, path, number)


class _Unreadable:
    def __init__(self, why: str) -> None:
        self.why = why


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        return _Unreadable(error.msg)
    except (ValueError, RecursionError):
        return _Unreadable("a number or a nesting too large")


def _object(value: Any, path: str, line: int) -> dict[str, Any]:
    if isinstance(value, list):
        _refuse("is a JSON list, and not an object a run or a line", path, line)
    if not isinstance(value, dict):
        _refuse(f"{shown(value)} is no JSON object", path, line)
    return value


def _refuse(what: str, path: str, line: int | None = None, mend: str = KNOWN) -> NoReturn:
    raise InputError(Problem(what, mend, path, line))
