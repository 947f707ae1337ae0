"""Mooncake traces (FAST'25): JSON Lines with chained hashes of 512-token blocks.

``{"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}``, one id a block of
the prompt, the last block partial: ``len(hash_ids) = ceil(input_length / 512)``; two prompts share
as many leading blocks as their ids agree (see ``blocks.py``). Where the id of the partial block is
left out (floor instead of ceil) that tail counts as private.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from simkv.workload.readers.blocks import hashed_requests
from simkv.workload.readers.jsonl import first_objects
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import Request

BLOCK_TOKENS = 512
_KEYS = ("timestamp", "input_length", "output_length", "hash_ids")


class MooncakeReader:
    """Reads Mooncake JSONL."""

    name = "mooncake"
    summary = '{"timestamp": ms, "input_length", "output_length", "hash_ids": [...]}, 512-token blocks'

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether some row has most of the keys, and no key of the formats that look alike."""
        return any(
            sum(key in row for key in _KEYS) >= 3 and "chat_id" not in row and "session_id" not in row
            for row in first_objects(lines)
        )

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Return the requests in file order; rows without output are dropped and noted."""
        return hashed_requests(path, report, _KEYS, BLOCK_TOKENS, 1000)
