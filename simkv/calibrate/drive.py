"""A file on the drive that is measured, read and written past the page cache where that works."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType

from simkv.calibrate.backend import Backend, Tensor
from simkv.errors import InputError, Problem

ALIGNMENT = 4096
"""Bytes: O_DIRECT wants buffers, offsets and lengths at multiples of the drive's block, at most this."""
_MOST_OF_FREE = 0.5
_STEP = 4 << 20


def padded(nbytes: int) -> int:
    """Return ``nbytes`` rounded up to what O_DIRECT reads."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def aligned(backend: Backend, nbytes: int) -> tuple[Tensor, memoryview]:
    """Return host memory that O_DIRECT can read into, as bytes of a tensor (pinned on a GPU) and as a buffer."""
    raw = backend.host_memory(nbytes + ALIGNMENT, pinned=True)
    skip = -raw.data_ptr() % ALIGNMENT
    memory = raw[skip : skip + nbytes]
    return memory, memoryview(memory.numpy())


class Drive:
    """``nbytes`` on the drive under ``folder``, filled with data; gone when closed, or when the process ends.

    Tries O_DIRECT; where the file system has none, goes through the page cache, dropped after every access: ``direct``
    and ``why_not`` say which. Raises :class:`InputError` for a folder that is absent, read-only or too full.
    """

    def __init__(self, folder: Path, nbytes: int, direct: bool = True, fill: bool = True) -> None:
        """``direct``: False doesn't try O_DIRECT; ``fill``: False leaves a hole, for who writes before reading."""
        self.nbytes = padded(nbytes)
        self.why_not = ""
        self._fd = -1
        _check(folder, self.nbytes)
        try:
            self._fd, self.direct = self._open(folder, direct)
            if fill:
                self._fill()
        except OSError as error:
            self.close()
            raise InputError(_problem(folder, error.strerror or str(error))) from None

    def read(self, buffer: memoryview, offset: int) -> None:
        """Fill ``buffer`` with what lies at ``offset``."""
        got = os.preadv(self._fd, (buffer,), offset)
        while got < len(buffer):
            count = os.preadv(self._fd, [buffer[got:]], offset + got)
            if not count:
                raise OSError(errno.EIO, f"the file ends at {offset + got} bytes")
            got += count
        if not self.direct:
            self._forget(offset, len(buffer))

    def write(self, buffer: memoryview, offset: int) -> None:
        """Write ``buffer`` to ``offset``."""
        put = 0
        while put < len(buffer):
            put += os.pwritev(self._fd, [buffer[put:]], offset + put)
        if not self.direct:
            os.fdatasync(self._fd)
            self._forget(offset, len(buffer))

    def sync(self) -> None:
        """Wait until the drive has what was written."""
        os.fsync(self._fd)

    def close(self) -> None:
        """Give the space back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Drive:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _open(self, folder: Path, direct: bool) -> tuple[int, bool]:
        name = tempfile.mktemp(prefix=".simkv-", dir=folder)
        plain = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.truncate(plain, self.nbytes)
            if not direct:
                self.why_not = "asked to go through the page cache"
                return plain, False
            past = self._past_the_cache(name)
        except BaseException:
            os.close(plain)
            raise
        finally:
            os.unlink(name)
        if past is None:
            return plain, False
        os.close(plain)
        return past, True

    def _past_the_cache(self, name: str) -> int | None:
        """Return the file opened past the page cache, and None, saying why, where one block can't be read so."""
        import mmap

        flag = getattr(os, "O_DIRECT", 0)
        if not flag:
            self.why_not = "this system has no O_DIRECT"
            return None
        fd = -1
        try:
            fd = os.open(name, os.O_RDWR | flag)
            with mmap.mmap(-1, ALIGNMENT) as page:
                os.pwritev(fd, [page], 0)
                os.preadv(fd, [page], 0)
            return fd
        except OSError as error:
            if fd >= 0:
                os.close(fd)
            self.why_not = f"the file system refuses O_DIRECT ({error.strerror})"
            return None

    def _fill(self) -> None:
        """Write data to the whole file: a hole would be read from nowhere."""
        import mmap

        with mmap.mmap(-1, min(_STEP, self.nbytes)) as page:
            page.write(os.urandom(len(page)))
            for offset in range(0, self.nbytes, len(page)):
                with memoryview(page) as view:
                    self.write(view[: min(len(page), self.nbytes - offset)], offset)
        self.sync()

    def _forget(self, offset: int, nbytes: int) -> None:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._fd, offset, nbytes, os.POSIX_FADV_DONTNEED)


def _check(folder: Path, nbytes: int) -> None:
    if not folder.is_dir():
        raise InputError(_problem(folder, "no folder is there" if not folder.exists() else "not a folder"))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(_problem(folder, "can't be written"))
    free = shutil.disk_usage(folder).free
    if nbytes > free * _MOST_OF_FREE:
        raise InputError(_problem(folder, f"{free >> 20} MiB are free, and {nbytes >> 20} MiB would be written"))


def _problem(folder: Path, what: str) -> Problem:
    return Problem(what, "name a folder on the drive to measure, with room", path="--ssd-path", value=str(folder))
