"""nvbandwidth, text and ``-j``: matrices of GB/s (1e9 B/s), a column a GPU. Source: its output.cpp and json_output.cpp.

A bidirectional test by copy engines prints the measured direction only, while the other is busy; one by SM copies
prints both directions together (alternate warps copy to and fro: size / kernel time, README).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from simkv.calibrate.imports.imported import Copy, Engine, Parsed
from simkv.calibrate.imports.text import Text, read_json

DEFAULT_BUFFER_BYTES = 512 << 20
"""Since 0.2; it isn't printed."""
GB_PER_S = 1e9
_TEXT = re.compile(r"^nvbandwidth Version:|^Running (benchmark )?\w+_(ce|sm)\.|^memcpy (CE|SM) ", re.MULTILINE)
_RUNNING = re.compile(r"\s*Running (?:benchmark )?(\w+)\.\s*")
_COMMAND = re.compile(r"nvbandwidth\b[^\n]*?\s(?:-b\s*|--bufferSize[ =])([0-9]{1,9})\b")
_TEST = re.compile(r"(host_to_device|device_to_host|host_to_all|all_to_host)(_bidirectional)?_memcpy_(ce|sm)")
_DEVICE = re.compile(r"\s*Device [0-9]+: (.+?)(?: \([0-9a-fA-F:]+\))?\s*")
_VERSION = re.compile(r"^nvbandwidth Version:[ \t]*(\S{1,40})", re.MULTILINE)
_UP = ("host_to_device", "host_to_all")
_HEAD = re.compile(r"\s*[0-9]+(\s+[0-9]+)*\s*")
_SMALL = "NOTE: You have chosen a buffer size that is smaller"


@dataclass(frozen=True, slots=True)
class Matrix:
    """What one test printed: cells as text, with the lines they are in."""

    test: str
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int | None, ...]
    unit: str


def is_nvbandwidth(text: Text) -> bool:
    """Say whether this is what nvbandwidth prints."""
    return _TEXT.search(text.whole) is not None or '"nvbandwidth"' in text.whole


def read_nvbandwidth(text: Text, buffer_bytes: int | None = None) -> Parsed:
    """Return the copies of one run; raises InputError for a matrix that isn't one.

    The buffer's size is that given, else that of a command line (``nvbandwidth -b 1024``) in the file, else the tool's
    default.
    """
    as_json = _TEXT.search(text.whole) is None
    root = _root(text) if as_json else {}
    told = buffer_bytes or _told(text, root)
    size = text.size(told or DEFAULT_BUFFER_BYTES, None)
    matrices = list(_of_json(text, root) if as_json else _of_text(text))
    copies = tuple(c for matrix in matrices for c in _copies(text, matrix, size))
    version = str(root.get("version", "")) if as_json else _first(_VERSION, text.whole)
    devices = _json_devices(root) if as_json else _devices(text)
    return Parsed("nvbandwidth", version[:40], devices, copies, notes=tuple(_notes(text, told, matrices)))


def _devices(text: Text) -> tuple[str, ...]:
    return tuple(m.group(1)[:200] for m in map(_DEVICE.fullmatch, text.lines) if m)


def _notes(text: Text, told: int | None, matrices: list[Matrix]) -> Iterator[str]:
    if told is None:
        yield "the buffer's size isn't printed: 512 MiB, the tool's default, is taken"
        if _SMALL in text.whole:
            yield "the tool says that a smaller one was chosen: give it"
    for matrix in matrices:
        if not matrix.rows and _TEST.fullmatch(matrix.test):
            yield f"{matrix.test} printed no figures"
        if matrix.test.startswith("host_device_latency") and matrix.rows:
            yield f"{matrix.test}: {matrix.rows[0][0][:20]} ns is a kernel's load of host memory, not a copy's latency"


def _first(pattern: re.Pattern[str], whole: str) -> str:
    match = pattern.search(whole)
    return match.group(1) if match else ""


def _told(text: Text, root: dict[str, Any]) -> int | None:
    size = root.get("bufferSize")
    told = str(size) if isinstance(size, int) and 0 < size < 1 << 30 else _command(text)
    return int(told) << 20 if told and int(told) else None


def _command(text: Text) -> str:
    return next((m.group(1) for m in map(_COMMAND.search, text.lines) if m), "")


def _of_text(text: Text) -> Iterator[Matrix]:
    """Yield the tests of a text: ``Running NAME.``, what it is, a line of columns, rows."""
    parts = list(text.parts(range(len(text.lines)), _RUNNING))
    if not parts:
        yield from _bare(text)
    for at, running, end in parts:
        yield _matrix(text, running.group(1), at + 1, end)


def _bare(text: Text) -> Iterator[Matrix]:
    """Yield matrices posted without the line that names the test: told by their heading."""
    arrows: dict[str, str] = {"->": "host_to_device", "<-": "device_to_host"}
    for at, line in enumerate(text.lines):
        heading = re.match(r"memcpy (CE|SM) CPU\(row\) (->|<-) GPU\(column\)", line)
        if heading:
            yield _matrix(text, f"{arrows[heading.group(2)]}_memcpy_{heading.group(1).lower()}", at, len(text.lines))


def _matrix(text: Text, test: str, at: int, end: int) -> Matrix:
    head = next((n for n in range(at, end) if _HEAD.fullmatch(text.lines[n])), None)
    if head is None or head - at > 4:
        return Matrix(test, (), (), "")
    unit = next((m.group(1) for m in (re.search(r"\(([^()]*)\)\s*$", line) for line in text.lines[at:head]) if m), "")
    columns, rows, lines = len(text.lines[head].split()), [], []
    for n in range(head + 1, end):
        cells = text.lines[n].split()
        if not cells or not cells[0].isdigit():
            break
        if len(cells) - 1 > columns or len(cells) < 2:
            what = f"the row has {len(cells) - 1} values, its heading names {columns} GPUs"
            text.refuse(what, "get a whole copy of the file", n + 1, test)
        rows.append(tuple(cells[1:]))
        lines.append(n + 1)
    return Matrix(test, tuple(rows), tuple(lines), unit)


def _root(text: Text) -> dict[str, Any]:
    root = (read_json(text) or {}).get("nvbandwidth")
    if not isinstance(root, dict):
        text.refuse("there is no object nvbandwidth", "give the output of nvbandwidth -j", path="nvbandwidth")
    return root


def _json_devices(root: dict[str, Any]) -> tuple[str, ...]:
    listed = root.get("GPU Device list", root.get("GPU Device info", []))
    named = listed if isinstance(listed, list) else []
    return tuple(re.sub(r"^[0-9]+:\s*|\s*\([0-9a-fA-F:]+\).*$", "", str(one))[:200] for one in named[:64])


def _of_json(text: Text, root: dict[str, Any]) -> Iterator[Matrix]:
    tests = root.get("testcases")
    if not isinstance(tests, list):
        error = str(root.get("error", ""))
        what = f"holds an error instead of tests: {error[:200]}" if error else "there is no list of testcases"
        text.refuse(what, "run nvbandwidth -j again", path="nvbandwidth.testcases")
    for number, test in enumerate(tests):
        path = f"nvbandwidth.testcases[{number}]"
        if not isinstance(test, dict) or not isinstance(test.get("name"), str):
            text.refuse("is no test with a name", "get a whole copy of the file", path=path)
        rows = test.get("bandwidth_matrix") or []
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            text.refuse("is no list of rows", "get a whole copy of the file", path=f"{path}.bandwidth_matrix")
        unit = re.search(r"\(([^()]*)\)\s*$", str(test.get("bandwidth_description", "")))
        cells = tuple(tuple(str(cell) for cell in row) for row in rows if row)
        yield Matrix(test["name"], cells, (None,) * len(cells), unit.group(1) if unit else "GB/s")


def _copies(text: Text, matrix: Matrix, size: int) -> Iterator[Copy]:
    test = _TEST.fullmatch(matrix.test)
    if test is None or not matrix.rows:
        return
    if matrix.unit != "GB/s":
        text.refuse("the matrix isn't in GB/s", "give the tool's own output", matrix.lines[0], matrix.test, matrix.unit)
    engine: Engine = "ce" if test.group(3) == "ce" else "sm"
    both = test.group(2) is not None
    kind: Literal["h2d", "d2h", "duplex"] = "h2d" if test.group(1) in _UP else "d2h"
    for row, line in zip(matrix.rows, matrix.lines, strict=True):
        for gpu, cell in enumerate(row):
            if cell == "N/A" or text.number(cell, line, matrix.test) == 0:
                continue
            yield Copy(
                kind="duplex" if both and engine == "sm" else kind,
                bytes_per_s=text.rate(cell, GB_PER_S, line, matrix.test),
                buffer_bytes=size,
                gpu=gpu,
                test=matrix.test,
                engine=engine,
                during=both and engine == "ce",
                all_gpus="all" in test.group(1),
            )
