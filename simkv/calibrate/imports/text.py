"""A file that another tool wrote, as text: bounded, decoded, and refused with its line where it is none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from simkv.errors import InputError, Problem

MAX_BYTES = 64 << 20
"""fio's json+ with every latency bin is a few MiB."""
LONGEST_LINE = 4000
"""Characters; none of the tools prints a longer one."""
RATES = (1e3, 1e15)
"""B/s that a link or a drive may have."""
SIZES = (1, 1 << 44)
"""Bytes of one transfer."""
_MAGIC = {
    b"\x1f\x8b": ("is compressed", "unpack it"),
    b"PK\x03\x04": ("is compressed", "unpack it"),
    b"\xff\xfe": ("is UTF-16", "save it as UTF-8"),
    b"\xfe\xff": ("is UTF-16", "save it as UTF-8"),
    b"version https://git-lfs": ("is a Git LFS pointer, not the file itself", "run git lfs pull"),
}
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


Found = tuple[int, re.Match[str], int]
"""Index of a line, its match, and the index of the next line that matches."""


@dataclass(frozen=True, slots=True)
class Text:
    """What a file says, by line, without colours and without what a carriage return overwrote."""

    file: str
    whole: str
    lines: tuple[str, ...]

    def refuse(self, what: str, mend: str = "", line: int | None = None, path: str = "", value: str = "") -> NoReturn:
        """Raise the error that says ``what`` is wrong at ``line`` (from 1)."""
        raise InputError(Problem(what, mend, self.file, line, path, _cut(value)))

    def rate(self, number: str, unit_bytes_per_s: float, line: int | None, path: str = "") -> float:
        """Return a bandwidth in B/s; refuses what no link or drive has."""
        value = self.number(number, line, path) * unit_bytes_per_s
        if not RATES[0] <= value <= RATES[1]:
            self.refuse(f"is no believable bandwidth: {value:.3g} B/s", "check the unit", line, path, number)
        return value

    def parts(self, within: range, *starts: re.Pattern[str]) -> Iterator[Found]:
        """Yield the lines in ``within`` that are one of ``starts``, each with where its part ends."""
        found = [(n, m) for n in within for m in (p.fullmatch(self.lines[n]) for p in starts) if m]
        for (at, match), end in zip(found, [n for n, _ in found[1:]] + [within.stop], strict=False):
            yield at, match, end

    def number(self, number: str, line: int | None, path: str = "") -> float:
        """Return a finite number that isn't negative."""
        if len(number) > 40 or not re.fullmatch(r"\s*[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?\s*", number):
            self.refuse("a number was expected", "get a whole copy of the file", line, path, number or '""')
        value = float(number)
        if value > 1e300:
            self.refuse("is too large", "get a whole copy of the file", line, path, number)
        return value

    def size(self, number: float, line: int | None, path: str = "") -> int:
        """Return bytes of one transfer; refuses what can't be."""
        if not SIZES[0] <= number <= SIZES[1]:
            self.refuse("is no believable size of a transfer", "check the unit", line, path, f"{number:.6g} bytes")
        return round(number)


def read_text(path: Path) -> Text:
    """Return the text of ``path``. Raises InputError for a folder, nothing, anything compressed, binary or too long."""
    file = str(path) if str(path).isprintable() else ascii(str(path))
    try:
        if path.is_dir():
            raise InputError(Problem("is a folder", "name the file in it", file))
        if path.exists() and not path.is_file():
            raise InputError(Problem("is not a regular file", "save the tool's output in a file", file))
        with path.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(Problem(f"can't be read: {reason}", file=file)) from None
    return _text(_decoded(data, file), file)


def _decoded(data: bytes, file: str) -> str:
    if len(data) > MAX_BYTES:
        what = f"is longer than {MAX_BYTES >> 20} MiB"
        raise InputError(Problem(what, "give what the tool printed at the end, without its logs", file))
    for magic, (what, mend) in _MAGIC.items():
        if data.startswith(magic):
            raise InputError(Problem(what, mend, file, 1))
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InputError(Problem("is not text: it holds zero bytes", "give what the tool printed", file, line))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(Problem("is not UTF-8 text", "save it as UTF-8", file, line)) from None


def _text(whole: str, file: str) -> Text:
    if not whole.strip():
        raise InputError(Problem("is empty", "give what the tool printed", file))
    whole = _ESCAPES.sub("", whole)
    lines = (line.rstrip("\r").rpartition("\r")[2][:LONGEST_LINE] for line in whole.split("\n"))
    return Text(file, whole, tuple(lines))


def read_json(text: Text) -> dict[str, Any] | None:
    """Return the JSON object that begins on a line of its own, whatever stands before and behind it; None for none.

    Raises InputError where it is cut off or broken.
    """
    start = re.search(r"^[ \t]*\{", text.whole, re.MULTILINE)
    if start is None:
        return None
    at = start.end() - 1
    before = text.whole.count("\n", 0, at)
    try:
        found, _ = json.JSONDecoder().raw_decode(text.whole, at)
    except json.JSONDecodeError as error:
        text.refuse(f"is not whole JSON: {error.msg}", "get a whole copy of the file", error.lineno)
    except RecursionError:
        text.refuse("is JSON nested too deeply", "get a whole copy of the file", before + 1)
    except ValueError as error:
        text.refuse(f"is not JSON: {error}", "get a whole copy of the file", before + 1)
    return found if isinstance(found, dict) else None


def _cut(value: str) -> str:
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in value[:64])
    return shown if len(value) <= 60 else shown[:59] + "…"
