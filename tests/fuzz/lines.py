"""What can be done to the lines and the bytes of a text that was fine."""

from __future__ import annotations

import re
from random import Random

from tests.fuzz.base import NASTY, scenario_text


def _value(rng: Random, lines: list[str]) -> str:
    """Put something else behind a key, in block style or inside of braces."""
    number = _with(rng, lines, ":")
    head, _, rest = lines[number].partition(":")
    nasty = rng.choice(NASTY)
    if rng.random() < 0.4 and ":" in rest:
        inner = [i for i, c in enumerate(rest) if c == ":"]
        at = rng.choice(inner)
        end = min((e for e in (rest.find(",", at), rest.find("}", at)) if e >= 0), default=len(rest))
        lines[number] = f"{head}:{rest[: at + 1]} {nasty}{rest[end:]}"
    else:
        lines[number] = f"{head}: {nasty}"
    return f"line {number + 1}: {lines[number][:200]!r}"


def _number(rng: Random, lines: list[str]) -> str:
    """Change a number, and leave its unit."""
    number = _with(rng, lines, ":")
    found = list(re.finditer(r"(?<=[ {\[])\d[\d.]*", lines[number].partition("#")[0]))
    if not found:
        return _value(rng, lines)
    at, value = rng.choice(found), 0.0
    try:
        value = float(at.group())
    except ValueError:
        return "nothing"
    others = (
        0,
        1,
        2,
        value * 2,
        value * 3,
        value * 10,
        value * 1000,
        value / 10,
        value / 1000,
        value + 1,
        1e9,
        0.5,
        -value,
    )
    lines[number] = f"{lines[number][: at.start()]}{rng.choice(others):g}{lines[number][at.end() :]}"
    return f"line {number + 1}: {lines[number][:200]!r}"


def _with(rng: Random, lines: list[str], mark: str) -> int:
    """Return a line with ``mark`` in it that is no comment, where there is one."""
    having = [i for i, line in enumerate(lines) if mark in line and not line.lstrip().startswith("#")]
    return rng.choice(having or range(len(lines)))


def _delete(rng: Random, lines: list[str]) -> str:
    number = _with(rng, lines, ":")
    del lines[number]
    return f"line {number + 1} deleted"


def _double(rng: Random, lines: list[str]) -> str:
    number = _with(rng, lines, ":")
    lines.insert(rng.choice((number, len(lines))), lines[number])
    return f"line {number + 1} doubled"


def _swap(rng: Random, lines: list[str]) -> str:
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return f"lines {one + 1} and {other + 1} swapped"


def _indent(rng: Random, lines: list[str]) -> str:
    number = _with(rng, lines, ":")
    lines[number] = rng.choice((" ", "    ", "\t", "\u00a0", "- ", "? ", "")) + lines[number].lstrip()
    return f"line {number + 1} indented anew"


def _insert(rng: Random, lines: list[str]) -> str:
    number = rng.randrange(len(lines) + 1)
    line = rng.choice((
        "unknown_key: 1", "---", "...", "%YAML 9.9", "<<: *base", "base: &base {a: 1}", "? [a, b]", ": x", "- 1", "\t",
        "!!omap", "name: again", "\x00", "\ufeff", "x" * 5000, "{", "}", "'", "# " + "c" * 5000, "null: 1", "1: 2",
        ": :", "? ? ? a", "'\\0': 1", '"\\0": 1', "\u202ename: x", "engine: {preset: flexgen}",
        "offload: {residency: 0.3}",
    ))  # fmt: skip
    lines.insert(number, line)
    return f"line {number + 1} inserted: {line[:80]!r}"


def _cut(rng: Random, lines: list[str]) -> str:
    number = rng.randrange(len(lines))
    lines[number] = lines[number][: rng.randrange(len(lines[number]) + 1)]
    del lines[number + 1 :]
    return f"cut off in line {number + 1}"


def _section(rng: Random, lines: list[str]) -> str:
    """Take over a section of another scenario, beside or instead of one's own."""
    other = _sections(scenario_text(rng).splitlines())
    name = rng.choice(list(other))
    own = _sections(lines)
    if name in own and rng.random() < 0.9:
        first = lines.index(own[name][0])
        lines[first : first + len(own[name])] = other[name]
    else:
        lines.extend(other[name])
    return f"section {name} of another"


def _sections(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if line[:1].isalpha() and ":" in line:
            name = line.partition(":")[0]
        if name:
            found.setdefault(name, []).append(line)
    return found or {"": list(lines)}


def _bomb(rng: Random, lines: list[str]) -> str:
    """Add aliases of aliases, or brackets in brackets."""
    kind = rng.randrange(4)
    if kind == 0:
        lines.append("a0: &a0 [x, x, x, x, x, x, x, x, x]")
        lines.extend(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))
    elif kind == 1:
        lines.append("deep: " + rng.choice("[{") * rng.choice((20, 500, 50_000)))
    elif kind == 2:
        lines.append("deep: " + "[" * 2000 + "]" * 2000)
    else:
        lines.append("many: [" + "1, " * rng.choice((1000, 60_000)) + "1]")
    return f"bomb {kind}"


MUTATIONS = (_number,) * 12 + (
    _value,
    _value,
    _value,
    _value,
    _delete,
    _double,
    _swap,
    _indent,
    _insert,
    _cut,
    _section,
    _section,
    _bomb,
)


def mutated(rng: Random, text: str, most: int = 3) -> tuple[bytes, list[str]]:
    """Return ``text`` with a few things done to it, and what they were."""
    lines = text.splitlines() or [""]
    notes = []
    for _ in range(rng.choice((1, 1, 1, *range(1, most + 1)))):
        notes.append(rng.choice(MUTATIONS)(rng, lines))
        lines = lines or [""]
    return _encoded(rng, "\n".join(lines), notes), notes


def _encoded(rng: Random, text: str, notes: list[str]) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    kind = rng.randrange(40)
    table = {
        0: ("UTF-16", lambda: text.encode("utf-16", "surrogatepass")),
        1: ("UTF-16 without its mark", lambda: text.encode("utf-16-le", "surrogatepass")),
        2: ("UTF-8 with a mark", lambda: b"\xef\xbb\xbf" + data),
        3: ("CRLF", lambda: data.replace(b"\n", b"\r\n")),
        4: ("CR", lambda: data.replace(b"\n", b"\r")),
        5: ("a byte changed", lambda: _byte(rng, data)),
        6: ("random bytes", lambda: rng.randbytes(rng.choice((1, 100, 10_000)))),
        7: ("UTF-32", lambda: text.encode("utf-32", "surrogatepass")),
        8: ("Latin-1", lambda: text.encode("latin-1", "replace")),
        9: ("a long line", lambda: data + b"\nx: " + b"y" * rng.choice((10_000, 900_000, 10 << 20))),
        10: ("marks of direction", lambda: data.replace(b": ", b": \xe2\x80\xae", 1)),
    }
    if kind not in table:
        return data
    notes.append(table[kind][0])
    return table[kind][1]()


def _byte(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data)) if data else 0
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
