"""What values and files count as in a hash: what they say, not where they are or when they were written."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from simkv.errors import InputError, Problem
from simkv.scenario.base import FileRef


def digest(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of nested values, in whatever order their keys are."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def content_digest(ref: FileRef) -> str:
    """Return what a file counts as in a hash, its content, and a folder: the files of a trace in it, by name.

    Raises InputError where it can't be read.
    """
    from simkv.workload.readers.files import parts

    try:
        if not os.path.isdir(ref.path):
            return "sha256:" + _of_file(ref.path)
        listed = "\n".join(f"{file.name} {_of_file(str(file))}" for file in parts(pathlib.Path(ref.path)))
        return "sha256:" + hashlib.sha256(listed.encode()).hexdigest()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(Problem(f"can't be read: {reason}", "see the paths of the workload", ref.given)) from None


def client_digests(ref: FileRef) -> list[str]:
    """Return the digests of the files of clients, one or all of a folder; whatever else lies there doesn't count."""
    from simkv.workload.clients.folder import client_files

    found = client_files(pathlib.Path(ref.path))
    return [content_digest(FileRef(str(file), str(file))) for files in found for file in (files.trace, files.dataset)]


def _of_file(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
