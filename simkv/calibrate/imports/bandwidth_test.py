"""bandwidthTest of the CUDA samples, text and ``--csv``. Source: bandwidthTest.cu of several versions.

GB/s (since CUDA 10.1) is 1e9 B/s. MB/s of CUDA 5 to 10.0 is bytes * 1024 / (ms * 2**20), that is 1.024e6 B/s; MB/s up
to CUDA 4.2, which tells the memory in the heading, is 2**20 B/s. Several devices are added up, one after another.
Device to device counts bytes read and bytes written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from simkv.calibrate.imports.imported import Copy, Parsed
from simkv.calibrate.imports.text import Text

Kind = Literal["h2d", "d2h", "device_copy"]
Memory = Literal["pinned", "pageable"]
MB_PER_S = 1.024e6
OLD_MB_PER_S = float(1 << 20)
GB_PER_S = 1e9
_TEXT = re.compile(r"\[CUDA Bandwidth Test\]|\[bandwidthTest\]|bandwidthTest-[DH]2[DH]|Transfer Size \(Bytes\)")
_HEADING = re.compile(
    r"\s*(Host to Device|Device to Host|Device to Device) Bandwidth(?:, ([0-9]{1,3}) Device\(s\))?(?:, (\w+) memory)?.*"
)
_MEMORY = re.compile(r"\s*(PINNED|PAGEABLE) Memory Transfers\s*")
_COLUMNS = re.compile(r".*Transfer Size \(Bytes\)\s+Bandwidth\s*\((\w+/s)\)\s*")
_ROW = re.compile(r"\s*([0-9]{1,15})\s+([0-9.eE+-]{1,30})\s*")
_CSV = re.compile(
    r"\s*bandwidthTest-(H2D|D2H|D2D)(?:-(Pinned|Paged))?(-?WriteCombined)?, Bandwidth = ([^ ]+) (\w+/s), "
    r"Time = [^ ]+ s, Size = ([0-9]{1,15}) bytes(?:, NumDevsUsed = ([0-9]{1,3}))?.*"
)
_KINDS: dict[str, Kind] = {
    "Host to Device": "h2d", "Device to Host": "d2h", "Device to Device": "device_copy",
    "H2D": "h2d", "D2H": "d2h", "D2D": "device_copy",
}  # fmt: skip
_MEMORIES: dict[str, Memory] = {"PAGEABLE": "pageable", "PAGED": "pageable", "PAGEABLE MEMORY": "pageable"}
_DEVICE = re.compile(r"\s*Device [0-9]+: (.+?)\s*")


def is_bandwidth_test(text: Text) -> bool:
    """Say whether this is what bandwidthTest prints."""
    return _TEXT.search(text.whole) is not None


def read_bandwidth_test(text: Text, buffer_bytes: int | None = None) -> Parsed:
    """Return the copies of one run; sizes are printed, so that ``buffer_bytes`` may only be None."""
    if buffer_bytes is not None:
        text.refuse("prints the size of each transfer", "leave out the buffer's size")
    copies = tuple(_copies(text))
    devices = tuple(m.group(1)[:200] for m in map(_DEVICE.fullmatch, text.lines) if m)
    return Parsed("bandwidthTest", "", devices, copies, notes=tuple(_notes(text, copies)))


def _notes(text: Text, copies: tuple[Copy, ...]) -> Iterator[str]:
    if re.search(r"MB/s", text.whole):
        yield f"MB/s is {_unit(text, 'MB/s') / 1e6:.6g}e6 B/s in this version"
    if "Result = FAIL" in text.whole:
        yield "the tool says that it failed"
    if "Write-Combined" in text.whole or "WriteCombined" in text.whole:
        yield "host memory was write-combined: slow for the CPU to read"
    if copies:
        yield "bandwidthTest prints one digit after the point, of one repeat"


def _unit(text: Text, unit: str) -> float:
    """Return the B/s of one ``unit`` in the version that wrote ``text``."""
    if unit == "GB/s":
        return GB_PER_S
    old = re.search(r"Device\(s\), (Paged|Pinned|Pageable) memory|\[bandwidthTest\]", text.whole)
    return OLD_MB_PER_S if old else MB_PER_S


def _copies(text: Text) -> Iterator[Copy]:
    kind: Kind | None = None
    memory: Memory = "pinned"
    devices, unit = 1, ""
    for number, line in enumerate(text.lines, 1):
        if row := _CSV.fullmatch(line):
            yield _of_csv(text, row, number)
        elif heading := _HEADING.fullmatch(line):
            kind, devices, unit = _KINDS[heading.group(1)], int(heading.group(2) or 1), ""
            memory = _MEMORIES.get((heading.group(3) or "").upper(), "pinned")
        elif told := _MEMORY.fullmatch(line):
            memory = "pageable" if told.group(1) == "PAGEABLE" else "pinned"
        elif columns := _COLUMNS.fullmatch(line):
            unit = columns.group(1)
        elif kind is not None and unit and (row := _ROW.fullmatch(line)):
            yield _copy(text, kind, memory, devices, unit, (row.group(1), row.group(2)), number)
        elif unit and line.strip() and re.match(r"\s*[0-9]+\s", line):
            text.refuse("a size and a bandwidth were expected", "get a whole copy of the file", number, value=line)
        elif line.lstrip().startswith("bandwidthTest-"):
            what = "isn't a whole line of bandwidthTest --csv"
            text.refuse(what, "get a whole copy of the file", number, value=line)


def _of_csv(text: Text, row: re.Match[str], line: int) -> Copy:
    kind, memory, _, rate, unit, size, devices = row.groups()
    held: Memory = "pageable" if memory == "Paged" else "pinned"
    return _copy(text, _KINDS[kind], held, int(devices or 1), unit, (size, rate), line)


def _copy(text: Text, kind: Kind, memory: Memory, devices: int, unit: str, row: tuple[str, str], line: int) -> Copy:
    if unit not in ("GB/s", "MB/s"):
        text.refuse("bandwidth is in a unit that bandwidthTest doesn't print", "GB/s or MB/s", line, value=unit)
    if devices < 1:
        text.refuse("was measured on no device", "get a whole copy of the file", line)
    shared = devices * (2 if kind == "device_copy" else 1)
    rate = text.rate(row[1], _unit(text, unit) / shared, line)
    return Copy(kind, rate, text.size(int(row[0]), line), 0, "bandwidthTest", memory=memory)
