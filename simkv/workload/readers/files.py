"""Opening trace files and cutting them into lines; says what is wrong with a file that is no trace."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from difflib import get_close_matches
from functools import partial
from math import inf
from pathlib import Path
from typing import BinaryIO, cast

from simkv.errors import InputError, Problem

MAX_LINE_BYTES = 16 << 20
"""A prompt of a million tokens with an id for each 16, or of its tokens themselves, stays below it."""
MAX_WHOLE_BYTES = 1 << 27
MAX_EMPTY_LINES = 100_000
MAX_RATIO = 50
"""Text of traces is packed to a fifth or a thirtieth of its size, never to a fiftieth."""
MIN_UNPACKED_BYTES = 16 << 20
_PIECE_BYTES = 1 << 20
HEAD_BYTES = 1 << 16
BOM = b"\xef\xbb\xbf"

_MAGIC = {
    b"PAR1": "is a Parquet file",
    b"PK\x03\x04": "is a zip archive",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd",
    b"BZh": "is compressed with bzip2",
    b"\xfd7zXZ": "is compressed with xz",
    b"SQLite format 3": "is an SQLite database",
    b"\xff\xfe": "is UTF-16 text",
    b"\xfe\xff": "is UTF-16 text",
}


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of ``path``, their ends included; gzip is known by its first bytes.

    Raises InputError for a file that can't be read, for a line of over 16 MiB, for more empty lines than anybody
    leaves, and for gzip that unpacks to far more than any trace does.
    """
    number = empty = 0
    try:
        with _open(path) as file:
            left = _most_bytes(path, file)
            for number, line in enumerate(iter(partial(file.readline, MAX_LINE_BYTES + 1), b""), 1):
                if len(line) > MAX_LINE_BYTES:
                    raise too_long(path, number, line)
                left -= len(line)
                if left < 0:
                    what = f"unpacks to more than {MAX_RATIO} times its size"
                    raise InputError(Problem(what, "unpack it, if it is a trace", file=str(path), line=number))
                empty = empty + 1 if len(line) < 3 else 0
                if empty > MAX_EMPTY_LINES:
                    what = f"has more than {MAX_EMPTY_LINES:,} empty lines in a row"
                    raise InputError(Problem(what, "take them out", file=str(path), line=number))
                yield line
    except (OSError, EOFError, zlib.error) as error:
        what = f"can't be read on: {error}"
        raise InputError(Problem(what, "get a whole copy of the file", file=str(path), line=number + 1)) from error


def too_long(path: Path, number: int, line: bytes) -> InputError:
    """Return the error that a line is longer than 16 MiB."""
    what = f"is longer than {MAX_LINE_BYTES:,} bytes"
    return InputError(Problem(what, "write one request a line", file=str(path), line=number, path=excerpt(line, 30)))


def head(path: Path) -> bytes:
    """Return the lines that begin in the first 64 KiB of the text in ``path``, without a byte order mark.

    The last one may be cut off where it is over 16 MiB.

    Raises InputError where ``path`` is no readable file, empty, a Git LFS pointer, or not text.
    """
    try:
        _check_is_file(path)
        with _open(path) as file:
            start = file.read(HEAD_BYTES)
            start += file.readline(MAX_LINE_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        mend = "name another file" if getattr(error, "errno", None) else "get a whole copy of the file"
        raise InputError(Problem(f"can't be read: {error}", mend, file=str(path))) from error
    what, mend = _not_text(start)
    if what:
        raise InputError(Problem(what, mend, file=str(path)))
    return start.removeprefix(BOM)


def parts(path: Path) -> list[Path]:
    """Return the files of a trace: ``path``, or where it is a folder its JSON files, by name; [] where it has none."""
    if not os.path.isdir(path):
        return [path]
    found = [p for p in inside(path) if p.name.endswith((".json", ".json.gz")) and not p.name.startswith(".")]
    return [p for p in found if not p.is_dir()]


def inside(folder: Path) -> list[Path]:
    """Return what is in ``folder``, by name; raises InputError where it can't be listed."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise InputError(Problem(f"can't be read: {error.strerror or error}", "name another", str(folder))) from error


def whole(path: Path) -> bytes:
    """Return all of the text in ``path``, without a byte order mark; of formats that aren't lines.

    Raises InputError as :func:`head` does, and for a text of over 128 MiB.
    """
    head(path)
    try:
        with _open(path) as file:
            text = _read(file, MAX_WHOLE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(Problem(f"can't be read: {error}", "get a whole copy of the file", file=str(path))) from error
    if len(text) > MAX_WHOLE_BYTES:
        what, mend = f"is larger than {MAX_WHOLE_BYTES:,} bytes", "split it into files of one session each"
        raise InputError(Problem(what, mend, file=str(path)))
    return text.removeprefix(BOM)


def excerpt(text: object, most: int = 60) -> str:
    """Return ``text`` in a form that fits into a message."""
    shown = text.strip()[: 4 * most + 4].decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def _most_bytes(path: Path, file: object) -> float:
    """Return how many bytes of text ``path`` may hold: of gzip, no more than text can be packed."""
    return max(MIN_UNPACKED_BYTES, MAX_RATIO * path.stat().st_size) if isinstance(file, gzip.GzipFile) else inf


def _read(file: BinaryIO, most: int) -> bytes:
    """Return ``most`` bytes, or all where there are fewer; takes no more memory than these."""
    text = bytearray()
    while len(text) < most and (piece := file.read(min(_PIECE_BYTES, most - len(text)))):
        text += piece
    return bytes(text)


def _check_is_file(path: Path) -> None:
    if path.is_file():
        return
    if path.is_dir():
        names = entries(path)
        raise InputError(Problem("is a folder, not a trace file", named(names), file=str(path)))
    if path.exists():
        raise InputError(Problem("is not a regular file", "save it in a file", file=str(path)))
    if path.is_symlink():
        raise InputError(Problem("is a link that leads nowhere", "mend the link", file=str(path)))
    folder = path.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    if folder != path.parent:
        raise InputError(Problem("does not exist", f"its folder is missing; there is {folder}", file=str(path)))
    names = [p.name for p in inside(folder)]
    near = get_close_matches(path.name, names, 3, 0.5)
    raise InputError(Problem("does not exist", named(near or names), file=str(path)))


def entries(folder: Path) -> list[str]:
    """Return the names of what is in ``folder``, folders with a slash behind them."""
    return [p.name + ("/" if p.is_dir() else "") for p in inside(folder)]


def named(names: list[str]) -> str:
    """Return what there is, the first five of ``names``, for a message."""
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f"there is {shown}" if names else "its folder is empty"


def _not_text(start: bytes) -> tuple[str, str]:
    """Return what is wrong with a file that begins with ``start``, and the mend; or two empty strings."""
    if not start.removeprefix(BOM).strip():
        return "is empty", "give a trace with at least one row"
    if start.startswith(b"version https://git-lfs"):
        return "is a Git LFS pointer, not the data itself", "run 'git lfs pull' where it came from"
    for magic, what in _MAGIC.items():
        if start.startswith(magic):
            return what, "give lines of text, plain or compressed with gzip"
    if b"\0" in start:
        return "is not text: it holds zero bytes", "give lines of text, plain or compressed with gzip"
    return "", ""
