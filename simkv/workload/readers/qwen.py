"""Qwen-Bailian traces: JSON Lines with hashes of the *content* of 16-token blocks.

``{"chat_id", "parent_chat_id", "timestamp": s, "input_length", "output_length", "type", "turn",
"hash_ids"}``, one id a block, the last one partial or padded. The same block of text has the same
id wherever it stands, so an id may come again within a prompt or behind another predecessor, and
is then no reuse: prompts share what they have in common from their beginning. Chats are not
followed: a row holds its whole prompt and has its own time, and the parent of many isn't in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from simkv.workload.readers.blocks import hashed_requests
from simkv.workload.readers.jsonl import first_objects
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import Request

BLOCK_TOKENS = 16
_KEYS = ("chat_id", "parent_chat_id", "timestamp", "input_length", "output_length", "type", "turn", "hash_ids")


class QwenReader:
    """Reads Qwen-Bailian JSONL."""

    name = "qwen"
    summary = '{"chat_id", "timestamp": s, "input_length", "output_length", "hash_ids": [...]}, 16-token blocks'

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether some row is of a chat and has lengths or ids."""
        return any(
            "chat_id" in row and sum(key in row for key in _KEYS[2:]) >= 2 and "session_id" not in row
            for row in first_objects(lines)
        )

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Return the requests in file order; rows without output are dropped and noted."""
        return hashed_requests(path, report, _KEYS, BLOCK_TOKENS, 1)
