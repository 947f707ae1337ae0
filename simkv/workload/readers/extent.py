"""How much there is to read, roughly, for a progress bar."""

from __future__ import annotations

from pathlib import Path

from simkv.workload.readers.files import HEAD_BYTES, head

_GZIP_TRAILER_BYTES = 4


def expected_lines(path: Path) -> float:
    """Return about how many lines ``path`` has, by the length of its first ones; at least 1.

    Of a gzip file the last four bytes say how large the text is, modulo 4 GiB.
    """
    start = head(path)
    lines = max(1, start.count(b"\n"))
    if len(start) < HEAD_BYTES:
        return lines
    return max(1.0, _text_bytes(path) * lines / len(start))


def _text_bytes(path: Path) -> int:
    with path.open("rb") as file:
        if file.read(2) != b"\x1f\x8b":
            return path.stat().st_size
        file.seek(-_GZIP_TRAILER_BYTES, 2)
        return int.from_bytes(file.read(), "little")
