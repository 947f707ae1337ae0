"""Files that are read whole: regular ones, of a bounded size. A pipe or a device would make us wait, or never end."""

from __future__ import annotations

import errno
import os
import stat


class NotRegular(OSError):
    """What is there is no regular file, but a pipe, a device or a socket."""


_KINDS = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISDIR, "a folder"))


def read_bounded(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Return the first ``most_bytes`` + 1 bytes of a regular file: one that has more is longer than that.

    Raises OSError, NotRegular among them, and ValueError for what is no name of a file.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            kind = next((name for is_such, name in _KINDS if is_such(found.st_mode)), "a device")
            raise NotRegular(errno.EINVAL, f"it is {kind}, no regular file", str(path))
        data = file.read(min(found.st_size, most_bytes) + 1)
        return data if len(data) <= found.st_size else data + file.read(most_bytes + 1 - len(data))


def _without_waiting(path: str, flags: int) -> int:
    """Open what may be a pipe that nobody writes into."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
