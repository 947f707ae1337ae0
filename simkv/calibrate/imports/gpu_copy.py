"""gpu_copy of superbenchmark: a line a copy, ``cpu_to_gpu0_by_dma_under_numa0 26.2387``. Source: its gpu_copy.cu.

Bandwidth is GB/s (1e9 B/s); ``and`` stands for both directions together; a copy within one GPU counts its bytes once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from simkv.calibrate.imports.imported import Copy, Engine, Parsed
from simkv.calibrate.imports.text import Text

DEFAULT_BUFFER_BYTES = 64 << 20
"""Of superbenchmark's own runs; it isn't printed, and later versions take more."""
GB_PER_S = 1e9
_LINE = re.compile(
    r"\s*(cpu|gpu[0-9]{1,3})_(to|and)_(cpu|gpu[0-9]{1,3})(?:_(?:read|write))?(?:_by_gpu[0-9]+_using|_by)_(sm|dma)"
    r"(?:_under_numa([0-9]{1,4}))?\s+(\S+)\s*"
)
_OURS = re.compile(r"^[ \t]*(cpu|gpu[0-9]+|gpu_all)_(to|and)_(cpu|gpu[0-9]+|gpu_all)_\S*", re.MULTILINE)
Kind = Literal["h2d", "d2h", "duplex", "device_copy"]


def is_gpu_copy(text: Text) -> bool:
    """Say whether this is what gpu_copy prints."""
    return _OURS.search(text.whole) is not None


def read_gpu_copy(text: Text, buffer_bytes: int | None = None) -> Parsed:
    """Return the copies of one run; copies between GPUs are left out."""
    size = text.size(buffer_bytes or DEFAULT_BUFFER_BYTES, None)
    note = () if buffer_bytes else ("the buffer's size isn't printed: 64 MiB, superbenchmark's default, is taken",)
    return Parsed("gpu_copy", "", (), tuple(_copies(text, size)), notes=note)


def _copies(text: Text, size: int) -> Iterator[Copy]:
    for number, line in enumerate(text.lines, 1):
        row = _LINE.fullmatch(line)
        if row is None:
            if _OURS.match(line) and len(line.split()) != 2:
                text.refuse("a name and a bandwidth were expected", "get a whole copy of the file", number, value=line)
            continue
        start, between, end, by, node, rate = row.groups()
        kind = _kind(start, end, both=between == "and")
        if kind is None:
            continue
        engine: Engine = "sm" if by == "sm" else "ce"
        gpu = int((end if start == "cpu" else start)[3:])
        test = line.split()[0]
        value = text.rate(rate, GB_PER_S, number, test)
        yield Copy(kind, value, size, gpu, test, engine, node=None if node is None else int(node))


def _kind(start: str, end: str, both: bool) -> Kind | None:
    """Return what goes from ``start`` to ``end``; None for copies between GPUs, and within one in both directions."""
    if "cpu" in (start, end):
        if start == end:
            return None
        return "duplex" if both else ("h2d" if start == "cpu" else "d2h")
    return "device_copy" if start == end and not both else None
