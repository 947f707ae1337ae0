"""Results written beside their place and put there in one move: whole or not at all, one writer at a time.

What is being written lies in a draft, a hidden folder beside its place that its writer holds locked. Errors, a full
disk among them, and Ctrl-C leave what was there before, and no draft; a draft that a killed process left goes when
the same place is written next.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from simkv.errors import InputError, Problem
from simkv.interrupt import Undisturbed

PATIENCE_S = 30.0
"""How long one writer waits while another puts its files into place."""
_DRAFT, _OLD = ".part", ".old"
_POLL_S = 0.02
_NAMED_BYTES = 100
_REASONS = {
    errno.ENOSPC: "no space is left on the disk",
    errno.EFBIG: "a file may not become that large",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission is denied",
    errno.EPERM: "permission is denied",
    errno.ELOOP: "its links go round in a circle",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOTDIR: "a part of its path is a file",
    errno.EISDIR: "a folder is there",
    errno.EEXIST: "something that is no folder is in its path",
    errno.ENXIO: "a device or a pipe is there",
    errno.EBUSY: "a disk is mounted just there, so that it can't be replaced; a folder in it can",
    errno.EAGAIN: "another process is writing there",
}

Content = bytes | Callable[[Path], object]
"""What a file is to hold, or what writes the file that it is given the path of."""


def reason(error: OSError | RuntimeError | ValueError) -> str:
    """Return in a few words why something can't be written."""
    if isinstance(error, RuntimeError):
        return _REASONS[errno.ELOOP]  # what pathlib says of links in a circle
    number = error.errno if isinstance(error, OSError) else None
    return _REASONS.get(number or 0) or getattr(error, "strerror", None) or str(error)


def replace_bytes(path: Path, content: bytes) -> None:
    """Have ``path`` hold ``content``, whole or not at all; raises InputError where that fails."""
    replace_files(path.parent, {path.name: content})


def replace_files(folder: Path, files: Mapping[str, Content], gone: Iterable[str] = ()) -> None:
    """Write ``files``, by their names below ``folder``, then put all into place, and take those that are ``gone`` away.

    The folder is made. Nobody else's writing comes in between. Raises InputError where that fails; then nothing has
    changed, unless the moves themselves failed.
    """
    shown = folder / next(iter(files), "")
    try:
        with draft(shown) as beside:
            for name, content in files.items():
                shown = folder / name
                (beside / name).parent.mkdir(parents=True, exist_ok=True)
                _put(content, beside / name)
            with alone_in(folder), Undisturbed():
                for name in files:
                    shown = folder / name
                    shown.parent.mkdir(parents=True, exist_ok=True)
                    _move(beside / name, shown)
                for name in gone:
                    (folder / name).unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        mend = "make room, or pick another folder"
        raise InputError(Problem(f"can't be written: {reason(error)}", mend, file=str(shown))) from error


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield where to write what takes the place ``path`` once the block has ended well. Raises OSError."""
    with draft(path) as beside:
        yield beside / path.name
        with alone_in(path.parent):
            _move(beside / path.name, path)


def replace_folder(place: Path, fill: Callable[[Path], None], check: Callable[[], None]) -> None:
    """Have ``fill`` write a folder that then takes the place of ``place``, and of all that is in it.

    ``check`` is called last, while nobody else can write there. Raises OSError, and what these two raise; nothing
    has changed then.
    """
    with draft(place) as beside:
        fill(beside)
        beside.chmod(0o777 & ~_umask())
        with alone_in(place.parent):
            check()
            _swap(beside, place)


@contextlib.contextmanager
def draft(place: Path) -> Iterator[Path]:
    """Yield a new folder beside ``place``, whose parent is made; it and a parent so made are gone after an error.

    Raises OSError. Drafts for the same place whose writers are no more are taken away.
    """
    with _made(place.parent):
        with alone_in(place.parent):
            _clear(place)
            beside = Path(tempfile.mkdtemp(prefix=_prefix(place), suffix=_DRAFT, dir=place.parent))
            held = _hold(beside)
        try:
            yield beside
        finally:
            shutil.rmtree(beside, ignore_errors=True)
            if held is not None:
                os.close(held)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep others who ask, too, from looking at, or replacing, what is in ``folder`` meanwhile.

    Raises OSError where it can't be opened, or another has it for longer than anybody needs.
    """
    try:
        import fcntl
    except ImportError:  # Windows: two writers at once are not told apart there
        yield
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        until_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until_s:
                    raise
                time.sleep(_POLL_S)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        os.close(number)


def _put(content: Content, file: Path) -> None:
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        content(file)


def _move(made: Path, place: Path) -> None:
    """Put a file in the place of another; never in that of a device or a pipe."""
    if place.exists() and not place.is_file() and not place.is_dir():
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    made.replace(place)


def _swap(beside: Path, place: Path) -> None:
    """Put ``beside`` in place of an older folder, which comes back where that fails."""
    if not place.exists():
        beside.rename(place)
        return
    old = Path(tempfile.mkdtemp(prefix=_prefix(place), suffix=_OLD, dir=place.parent))
    try:
        with Undisturbed():
            place.rename(old)
            try:
                beside.rename(place)
            except OSError:
                old.rename(place)
                raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _clear(place: Path) -> None:
    """Take away what killed writers left beside ``place``; an older result that was to be replaced comes back."""
    ours = re.compile(re.escape(_prefix(place)) + rf"[^.]+({re.escape(_DRAFT)}|{re.escape(_OLD)})")
    with os.scandir(place.parent) as entries:
        left = sorted(e.path for e in entries if ours.fullmatch(e.name) and e.is_dir(follow_symlinks=False))
    for found in map(Path, left):
        held = _hold(found)
        if held is None:
            continue  # somebody writes it, or nobody can tell
        if found.suffix == _OLD and not place.exists() and any(found.iterdir()):
            found.rename(place)
        else:
            shutil.rmtree(found, ignore_errors=True)
        os.close(held)


def _hold(folder: Path) -> int | None:
    """Return the open folder, locked for as long as this process lives; None where that can't be, or it is gone."""
    try:
        import fcntl

        number = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        return None
    return number


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make ``folder``; what was made of it, and is empty, goes after an error."""
    missing = [folder, *folder.parents]
    missing = missing[: next((number for number, part in enumerate(missing) if part.is_dir()), len(missing))]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for part in missing:
            with contextlib.suppress(OSError):
                part.rmdir()
        raise


def _prefix(place: Path) -> str:
    name = os.fsencode(place.name)
    if len(name) <= _NAMED_BYTES:
        return f".{place.name}."
    return f".{name[:_NAMED_BYTES].decode(errors='ignore')}-{zlib.crc32(name):x}."


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
