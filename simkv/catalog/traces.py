"""Public traces by name, from ``data/traces.yaml``: where a file lies, and what it must be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from simkv.catalog.data import data, find, names

_FILE = "traces.yaml"
_BASE = "https://raw.githubusercontent.com"


@dataclass(frozen=True, slots=True)
class PublicTrace:
    """A file of a public repository, pinned by the SHA-256 of its content."""

    name: str
    what: str
    format: str
    requests: int
    repository: str
    licence: str
    size_bytes: int
    url: str
    sha256: str

    @property
    def file_name(self) -> str:
        """What the file is called here: the trace's name with the ending that it has there."""
        return self.name + PurePosixPath(self.url).suffix


def load_public_trace(name: str) -> PublicTrace:
    """Return a trace of the catalogue; raises :class:`InputError` with the nearest names for an unknown one."""
    key = find(name, "trace", _names())
    entry = data(_FILE)[key]
    return PublicTrace(
        name=key,
        what=entry["what"],
        format=entry["format"],
        requests=entry["requests"],
        repository=entry["repository"],
        licence=entry["licence"],
        size_bytes=entry["bytes"],
        url=f"{_BASE}/{entry['repository']}/{entry['commit']}/{entry['path']}",
        sha256=entry["sha256"],
    )


def list_public_traces() -> list[str]:
    """Names of all traces, in the order of the file."""
    return list(data(_FILE))


@cache
def _names() -> Mapping[str, str]:
    return names(data(_FILE))
