"""What can be done to the bytes of any file, and to what a JSON file says."""

from __future__ import annotations

import copy
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

LFS = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)
NUMBERS = (
    "-1", "0", "1e999", "-1e999", "NaN", "Infinity", "-Infinity", "1e308", "-1e308", "1e-320", "0.5", "1.0000001",
    "-0.0", "99999999999", "18446744073709551615", "18446744073709551616", "9223372036854775807",
    "-9223372036854775809", "9" * 400, "1e15", "4294967296", "1073741824", "2147483648", "0x10", "1_000", "+5",
    ".5", "5.", "01", "1e5",
)  # fmt: skip
"""As a text has them; some are no numbers to JSON."""
OTHERS = (
    "null", "true", "false", '""', '"x"', '"12"', '"1e5"', "[]", "{}", "[null]", "[[1]]", '{"a": 1}', '"\\ud800"',
    '"\\u0000"', '"\u202e"', '"' + "y" * 3000 + '"', "[" * 200 + "]" * 200, "[1, 2, 3]", '[1, "a"]', '"nan"', '"-5"',
    "[1, 1]", "[-1]", "[1e400]", '"2024-01-01T00:00:00Z"', '"9999-99-99"', "[18446744073709551615]",
)  # fmt: skip


class Raw(str):
    """A text that is written as it stands, where JSON has a value."""

    __slots__ = ()


def dumps(value: Any) -> str:
    """Return ``value`` as JSON on one line, :class:`Raw` as it stands."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {dumps(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(dumps, value)) + "]"
    return json.dumps(value)


def odd(rng: Random) -> Raw:
    """Return a value that nobody expects."""
    return Raw(rng.choice(NUMBERS if rng.random() < 0.6 else OTHERS))


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything in ``tree``; of long lists the first three and the last."""
    if isinstance(tree, dict):
        inner: list[tuple[Any, Any]] = list(tree.items())
    elif isinstance(tree, list):
        inner = [(k, tree[k]) for k in sorted({0, 1, 2, len(tree) - 1}) if 0 <= k < len(tree)]
    else:
        return
    for key, value in inner:
        yield (*path, key)
        yield from places(value, (*path, key))


def broken(rng: Random, tree: Any, notes: list[str], most: int = 3) -> Any:
    """Return a copy of ``tree`` with values replaced, taken away, renamed, doubled or exchanged."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.randint(1, most)):
        there = list(places(tree))
        if not there:
            break
        path = rng.choice(there)
        notes.append(f"{'.'.join(map(str, path))}: {_break(rng, tree, path, there)}")
    return tree


def _break(rng: Random, tree: Any, path: tuple[Any, ...], there: list[tuple[Any, ...]]) -> str:
    parent = at(tree, path[:-1])
    kind = rng.randrange(8)
    if kind <= 3:
        parent[path[-1]] = odd(rng)
        return str(parent[path[-1]])[:60]
    if kind == 4:
        del parent[path[-1]]
        return "taken away"
    if kind == 5 and isinstance(parent, dict):
        parent[rng.choice((str(path[-1]) + "s", str(path[-1]).upper(), "", "\u202e", "x"))] = parent.pop(path[-1])
        return "renamed"
    if kind == 6 and isinstance(parent, list):
        parent.insert(path[-1], copy.deepcopy(parent[path[-1]]))
        return "doubled"
    parent[path[-1]] = copy.deepcopy(at(tree, rng.choice(there)))
    return "as elsewhere"


def at(tree: Any, path: tuple[Any, ...]) -> Any:
    """Return what is at ``path`` of ``tree``."""
    for key in path:
        tree = tree[key]
    return tree


# ---- bytes ------------------------------------------------------------------------------------


def _bomb(rng: Random, data: bytes) -> bytes:
    """Return gzip of some GiB of little content, made of members, so that making it takes no time."""
    filler = rng.choice((b"\0", b" ", b"\n", b"[", b"7", data[:200] + b"\n"))
    member = gzip.compress(filler * ((8 << 20) // len(filler)), 1)
    return gzip.compress(data) + member * rng.choice((4, 40))


def _zipped(rng: Random, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("trace.jsonl", data)
    return buffer.getvalue()


def _flip(rng: Random, data: bytes) -> bytes:
    changed = bytearray(data or b"x")
    for _ in range(rng.choice((1, 1, 5, 50))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _spliced(rng: Random, data: bytes) -> bytes:
    begin, end = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    return data[:begin] + data[end:]


BYTES: dict[str, Callable[[Random, bytes], bytes]] = {
    "empty": lambda rng, data: b"",
    "only a mark": lambda rng, data: b"\xef\xbb\xbf",
    "blank lines": lambda rng, data: b"\n" * rng.choice((1, 10_000)),
    "UTF-8 with a mark": lambda rng, data: b"\xef\xbb\xbf" + data,
    "UTF-16": lambda rng, data: data.decode("utf-8", "replace").encode("utf-16"),
    "UTF-16 without its mark": lambda rng, data: data.decode("utf-8", "replace").encode("utf-16-le"),
    "UTF-32": lambda rng, data: data.decode("utf-8", "replace").encode("utf-32"),
    "CR": lambda rng, data: data.replace(b"\n", b"\r"),
    "CRLF": lambda rng, data: data.replace(b"\n", b"\r\n"),
    "no last end of line": lambda rng, data: data.rstrip(b"\n"),
    "cut off": lambda rng, data: data[: rng.randrange(len(data) + 1)],
    "spliced": _spliced,
    "bytes changed": _flip,
    "zero bytes": lambda rng, data: data[: len(data) // 2] + b"\0" * rng.choice((1, 5000)) + data[len(data) // 2 :],
    "random bytes": lambda rng, data: rng.randbytes(rng.choice((1, 100, 100_000))),
    "random bytes behind": lambda rng, data: data + rng.randbytes(500),
    "a long line": lambda rng, data: data + b'{"x": "' + b"y" * rng.choice((100_000, 10 << 20, 17 << 20)) + b'"}\n',
    "a long line without an end": lambda rng, data: b"7" * rng.choice((1 << 20, 20 << 20)),
    "gzip": lambda rng, data: gzip.compress(data),
    "gzip of gzip": lambda rng, data: gzip.compress(gzip.compress(data)),
    "gzip cut off": lambda rng, data: gzip.compress(data)[: -rng.choice((1, 8, 20))],
    "gzip changed": lambda rng, data: _flip(rng, gzip.compress(data)),
    "gzip with more behind": lambda rng, data: gzip.compress(data) + b"garbage",
    "gzip's first bytes": lambda rng, data: b"\x1f\x8b" + data,
    "a gzip bomb": _bomb,
    "a zip": _zipped,
    "a Git LFS pointer": lambda rng, data: LFS,
    "a Parquet file's first bytes": lambda rng, data: b"PAR1" + data,
    "HTML": lambda rng, data: b"<!DOCTYPE html><html><body>404: Not Found</body></html>\n",
    "deep JSON": lambda rng, data: rng.choice((b"[", b'{"a":')) * rng.choice((900, 100_000)),
    "deep JSON that ends": lambda rng, data: b"[" * 3000 + b"]" * 3000,
    "a huge number": lambda rng, data: b"9" * 100_000,
}


def bytes_damaged(rng: Random, data: bytes, notes: list[str]) -> bytes:
    """Return ``data`` with one thing done to it as a whole."""
    name = rng.choice(list(BYTES))
    notes.append(name)
    return BYTES[name](rng, data)
