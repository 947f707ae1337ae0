"""How much there is to read, roughly, for a progress bar."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simkv.workload.readers.files import HEAD_BYTES, head, whole

_GZIP_TRAILER_BYTES = 4
_ENOUGH_BYTES = 1 << 26


def expected_lines(path: Path) -> int:
    """Return about how many lines ``path`` has, by the length of its first ones; at least 1.

    Of a gzip file the last four bytes say how large the text is, modulo 4 GiB.
    """
    start = head(path)
    lines = max(1, start.count(b"\n"))
    if len(start) < HEAD_BYTES:
        return lines
    return max(1, round(_text_bytes(path) * lines / len(start)))


def expected_keys(files: Sequence[Path], key: bytes) -> int:
    """Return about how often ``key`` stands in ``files``, at least 1, by the first 64 MiB of them."""
    found = looked_at = read_bytes = 0
    for file in files:
        text = whole(file)
        found += text.count(key)
        looked_at += 1
        read_bytes += len(text)
        if read_bytes > _ENOUGH_BYTES:
            break
    return max(1, round(found * len(files) / max(1, looked_at)))


def _text_bytes(path: Path) -> int:
    with path.open("rb") as file:
        if file.read(2) != b"\x1f\x8b":
            return path.stat().st_size
        file.seek(-_GZIP_TRAILER_BYTES, 2)
        return int.from_bytes(file.read(), "little")
