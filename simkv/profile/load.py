"""A calibration profile as a file: read with everything that is wrong in it, written so that people can read it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from simkv.errors import InputError, Problem
from simkv.files import new_file, reason
from simkv.profile.schema import SCHEMA, Profile

LARGEST_BYTES = 64 << 20
MOST_PROBLEMS = 10
_DIGITS = 6
_WIDTH = 120
_AGAIN = "measure again with simkv calibrate"
_LFS = "version https://git-lfs"
_MENDS = {
    "extra_forbidden": "remove it, or measure with the simkv that wrote it",
    "missing": f"the file is not whole: {_AGAIN}",
    "literal_error": "it can be {expected}",
    "greater_than": "it must be more than {gt:g}",
    "greater_than_equal": "the least is {ge:g}",
    "less_than_equal": "the most is {le:g}",
    "finite_number": "write a number",
    "too_long": "the most is {max_length}",
    "too_short": "give at least one",
    "string_too_long": "the most is {max_length} characters",
}
_WHATS = {
    "extra_forbidden": "unknown key",
    "missing": "is missing",
    "greater_than": "too small",
    "greater_than_equal": "too small",
    "less_than_equal": "too large",
    "too_long": "too long",
    "string_too_long": "too long",
}
_UNION_ARMS = ("float", "int", "str", "bool")


def read_profile(path: str | os.PathLike[str]) -> Profile:
    """Return the profile in the file ``path``.

    Raises :class:`InputError` with what is wrong, each with file, JSON path and value: no such file, no JSON, another
    schema, and whatever the schema refuses.
    """
    file = os.fspath(path)
    text = _text(file)
    _check_tree(_tree(text, file), file)
    try:
        return Profile.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise InputError(_problems(error, file)) from None


def write_profile(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write ``profile`` as JSON, whole or not at all: numbers of six digits, lists of numbers on one line.

    Raises :class:`InputError` where the file can't be written, and for a profile that could not be read again.
    """
    file = os.fspath(path)
    text = "".join(_lines(_rounded(profile.model_dump(by_alias=True)), "")) + "\n"
    _check_tree(_tree(text, file), file)
    try:
        Profile.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise InputError(_problems(error, file)) from None
    try:
        _replace(file, text)
    except OSError as error:
        mend = "name a file in a folder that can be written"
        raise InputError(Problem(f"can't be written: {reason(error)}", mend, file)) from None


def _replace(file: str, text: str) -> None:
    """Put ``text`` where ``file`` is, in one move."""
    with new_file(Path(file)) as draft, draft.open("w", encoding="utf-8", newline="\n") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())


def _text(file: str) -> str:
    try:
        if os.path.isdir(file):
            raise InputError(Problem("is a folder", "name a calibration profile, a .json file", file))
        if os.path.exists(file) and not os.path.isfile(file):
            raise InputError(Problem("is not a regular file", "name a calibration profile, a .json file", file))
        with open(file, "rb") as opened:
            content = opened.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else f"can't be read: {_why(error)}"
        mend = "make one with simkv calibrate, or name a card of the catalogue (simkv catalog hardware)"
        raise InputError(Problem(reason, mend, file)) from None
    if len(content) > LARGEST_BYTES:
        raise InputError(Problem("more than 64 MiB: no calibration profile", _AGAIN, file))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(Problem(f"not UTF-8 text (byte {error.start})", _AGAIN, file)) from None


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


class _Twice(ValueError):
    """A key that an object has two of."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Twice(next(key for key in keys if keys.count(key) > 1))
    return found


def _tree(text: str, file: str) -> Any:
    """Return the JSON of ``text``; raises InputError where it is none."""
    if text.startswith(_LFS):
        raise InputError(Problem("only a pointer of Git LFS", "fetch the file itself: git lfs pull", file))
    if not text.strip("\0 \t\r\n"):
        raise InputError(Problem("is empty", _AGAIN, file))
    try:
        return json.loads(text, object_pairs_hook=_once)
    except _Twice as error:
        raise InputError(Problem("the key is there twice", "remove one", file, None, str(error))) from None
    except json.JSONDecodeError as error:
        what = f"not JSON: {error.msg[0].lower()}{error.msg[1:]} (column {error.colno})"
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        mend = f"the file seems to be cut off: {_AGAIN}" if cut else _AGAIN
        raise InputError(Problem(what, mend, file, error.lineno)) from None
    except RecursionError:
        raise InputError(Problem("nested too deeply: no calibration profile", _AGAIN, file)) from None
    except ValueError as error:  # an integer of thousands of digits
        raise InputError(Problem(f"not JSON: {error}", _AGAIN, file)) from None


def _check_tree(tree: Any, file: str) -> None:
    """Raise InputError where ``tree`` is no profile of this schema, or holds what isn't a number."""
    if not isinstance(tree, dict):
        raise InputError(Problem("no calibration profile: not a JSON object", _AGAIN, file))
    schema = tree.get("schema")
    if schema is None:
        mend = f"a calibration profile says what it is: {_AGAIN}"
        raise InputError(Problem("is missing", mend, file, None, "schema"))
    if schema != SCHEMA:
        what = f"calibrated by a newer or older simkv, this one reads {SCHEMA}"
        raise InputError(Problem(what, _AGAIN, file, None, "schema", _shown(schema)))
    odd = [
        Problem("not a finite number", "write a number", file, None, where, str(value)) for where, value in _odd(tree)
    ]
    if odd:
        raise InputError(_few(odd, file))


def _odd(tree: Any) -> Iterator[tuple[str, float]]:
    """Yield the path and value of what JSON reads as NaN or infinite."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), tree)]
    while waiting:
        where, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(((*where, key), one) for key, one in value.items())
        elif isinstance(value, list):
            waiting.extend(((*where, n), one) for n, one in enumerate(value))
        elif isinstance(value, float) and not isfinite(value):
            yield _path(where), value


def _problems(error: ValidationError, file: str) -> list[Problem]:
    errors = error.errors(include_url=False)
    # what is left of a list after its own faults isn't a fault
    told = [one for one in errors if not (one["type"] == "too_short" and one["input"])]
    found = [_problem(one, file) for one in told]
    once = {(one.path, one.what): one for one in found}
    return _few(list(once.values()), file)


def _few(found: list[Problem], file: str) -> list[Problem]:
    if len(found) <= MOST_PROBLEMS:
        return found
    rest = len(found) - MOST_PROBLEMS
    return [*found[:MOST_PROBLEMS], Problem(f"and {rest:,} more", _AGAIN, file)]


def _problem(error: ErrorDetails, file: str) -> Problem:
    kind, context = error["type"], error.get("ctx", {})
    path = _path(error["loc"])
    if kind == "refused":
        return Problem(context["reason"], context["mend"], file, None, path)
    if kind == "json_invalid":
        return Problem("not JSON: " + str(context.get("error", "")), _AGAIN, file)
    mend = _MENDS.get(kind, "").format(**context) or _AGAIN
    what = _WHATS.get(kind) or error["msg"][0].lower() + error["msg"][1:]
    value = "" if kind in ("missing", "too_long", "too_short", "string_too_long") else _shown(error["input"])
    return Problem(what, mend, file, None, path, value)


def _path(loc: tuple[str | int, ...]) -> str:
    """Return a JSON path such as ``fit.compute.linear[3][1]``."""
    while loc and (loc[-1] == "[key]" or (loc[-1] in _UNION_ARMS and len(loc) > 1 and loc[0] == "samples")):
        loc = loc[:-1]
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def _rounded(value: Any) -> Any:
    """Return ``value`` with six significant digits to a number; whole numbers stay as they are."""
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    if not isinstance(value, float) or not isfinite(value):
        return value
    short = value if value.is_integer() else float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1 << 53 else short


def _lines(value: Any, indent: str) -> Iterator[str]:
    """Yield ``value`` as JSON: on one line where it is short or a list of numbers, else item by item."""
    compact = json.dumps(value, ensure_ascii=False)
    numbers = isinstance(value, list) and not any(isinstance(one, dict | list | str) for one in value)
    if numbers or not isinstance(value, dict | list) or not value or len(indent) + len(compact) <= _WIDTH:
        yield compact
        return
    deeper = indent + "  "
    keys = (
        [json.dumps(key, ensure_ascii=False) + ": " for key in value] if isinstance(value, dict) else [""] * len(value)
    )
    items = value.values() if isinstance(value, dict) else value
    yield "{" if isinstance(value, dict) else "["
    for n, (key, one) in enumerate(zip(keys, items, strict=True)):
        yield f"{',' if n else ''}\n{deeper}{key}"
        yield from _lines(one, deeper)
    yield "\n" + indent + ("}" if isinstance(value, dict) else "]")
