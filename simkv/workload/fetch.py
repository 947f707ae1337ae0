"""Downloading a trace into the user's cache: whole and of the right content, or not at all."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simkv.errors import InputError, Problem

CACHE = "SIMKV_CACHE"
"""The environment variable that names another cache folder."""

Progress = Callable[[float], None]
"""Told the share of the file that is there, 0 to 1."""

_CHUNK_BYTES = 1 << 16
_LFS = b"version https://git-lfs"


def cache_folder() -> Path:
    """Return where traces are kept: ``$SIMKV_CACHE``, or the user's cache folder of this system."""
    import pooch

    named = os.environ.get(CACHE)
    return (Path(named) if named else Path(pooch.os_cache("simkv"))) / "traces"


def fetch(url: str, sha256: str, target: Path, progress: Progress = lambda _: None) -> bool:
    """Make ``target`` the file at ``url``, whose content has the given hash; return whether it was downloaded.

    A file that is there already and is the right one is left as it is; another one is an error.
    Raises InputError for an address that doesn't answer or has another content, with nothing left behind.
    """
    _check(url, sha256)
    if target.exists():
        _check_there(target, sha256)
        return False
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    try:
        pooch.retrieve(
            url, f"sha256:{sha256.lower()}", target.name, str(target.parent), downloader=_Download(sha256, progress)
        )
    except requests.HTTPError as error:
        answer = error.response
        what = f"the server answers {answer.status_code} {answer.reason}" if answer is not None else str(error)
        raise InputError(Problem(what, "check the address", file=url)) from None
    except (requests.ConnectionError, requests.Timeout) as error:
        what = f"can't be reached: {_reason(error)}"
        mend = f"check the network, or bring the file here yourself and put it at {target}"
        raise InputError(Problem(what, mend, file=url)) from None
    except requests.RequestException as error:
        what = f"the download broke off: {_reason(error)}"
        raise InputError(Problem(what, "try again", file=url)) from None
    except OSError as error:
        what = f"can't be written: {error.strerror or error}"
        raise InputError(Problem(what, f"name another folder with --out or {CACHE}", file=str(target))) from None
    return True


def _check(url: str, sha256: str) -> None:
    if not re.match(r"https?://[^/\s]+/\S", url):
        raise InputError(Problem("is no address of a file", "write https://HOST/PATH", path="--url", value=url))
    if not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        mend = "write the 64 hexadecimal digits that 'sha256sum FILE' prints"
        raise InputError(Problem("is no SHA-256", mend, path="--sha256", value=sha256))


def _check_there(target: Path, sha256: str) -> None:
    if not target.is_file():
        raise InputError(Problem("is there and is no file", "name another folder with --out", file=str(target)))
    with target.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256.lower():
        what = f"is there already with another content: its SHA-256 is {found}, not {sha256.lower()}"
        raise InputError(Problem(what, "move it away, or name another folder with --out", file=str(target)))


class _Download:
    """Gets a file over HTTP into the temporary file that pooch renames if all went well."""

    def __init__(self, sha256: str, progress: Progress) -> None:
        self._sha256 = sha256.lower()
        self._progress = progress

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        """Download ``url``; raises InputError where its content is another than was asked for."""
        from pooch import HTTPDownloader

        HTTPDownloader(progressbar=_Bar(self._progress), chunk_size=_CHUNK_BYTES)(url, output_file, pooch)
        self._check(url, Path(output_file))

    def _check(self, url: str, path: Path) -> None:
        with path.open("rb") as file:
            start = file.read(len(_LFS))
            file.seek(0)
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found == self._sha256:
            return
        if start == _LFS:
            what, mend = "is a Git LFS pointer, not the data itself", "give the address of the data"
        else:
            what = f"has another content ({path.stat().st_size:,} bytes): its SHA-256 is {found}, not {self._sha256}"
            mend = "the file was changed, or the address is another file's"
        raise InputError(Problem(what, mend, file=url))


class _Bar:
    """What pooch tells of its progress, as a share."""

    def __init__(self, progress: Progress) -> None:
        self.total = 0
        self._done = 0
        self._progress = progress

    def update(self, size_bytes: int) -> None:
        """Note that so much more is there."""
        self._done += size_bytes
        self._progress(min(1.0, self._done / self.total) if self.total else 0.0)

    def reset(self) -> None:
        """Start over."""
        self._done = 0

    def close(self) -> None:
        """Do nothing: whoever listens ends by itself."""


def _reason(error: Exception) -> str:
    """Return what the innermost of nested errors says: why a connection failed."""
    inner: BaseException = error
    while (cause := inner.__cause__ or inner.__context__) is not None:
        inner = cause
    return getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
