"""What ``simkv trace fetch`` is asked for, and what it says meanwhile."""

from __future__ import annotations

import json
import sys
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from simkv import units
from simkv.catalog.traces import PublicTrace, list_public_traces, load_public_trace
from simkv.errors import InputError, Problem


class Wanted(NamedTuple):
    """A file to download, and what to call it."""

    url: str
    sha256: str
    file_name: str
    about: str


def listing(as_json: bool) -> str:
    """Return the traces that have a name, as a table or JSON."""
    from simkv.cli.table import table
    from simkv.workload.fetch import cache_folder

    traces = [load_public_trace(name) for name in list_public_traces()]
    here = cache_folder()
    if as_json:
        return json.dumps([_row(trace) | {"cached": (here / trace.file_name).exists()} for trace in traces], indent=2)
    rows = [
        [t.name, f"{t.requests:,}", f"{t.size_bytes / 1e6:.1f} MB", t.licence, t.repository, t.what] for t in traces
    ]
    head = ("name", "requests", "size", "licence", "repository", "what")
    other = "Any other file: simkv trace fetch --url URL --sha256 HASH"
    return "\n".join([table(head, rows, (1, 2)), "", f"Kept in {here}", other])


def _row(trace: PublicTrace) -> dict[str, object]:
    return {
        "name": trace.name,
        "what": trace.what,
        "format": trace.format,
        "requests": trace.requests,
        "size_bytes": trace.size_bytes,
        "licence": trace.licence,
        "url": trace.url,
        "sha256": trace.sha256,
    }


def wanted(name: str | None, url: str | None, sha256: str | None) -> Wanted:
    """Return what is asked for by name or by address; raises InputError where it is neither or both."""
    if name is not None and url is None and sha256 is None:
        trace = load_public_trace(name)
        return Wanted(trace.url, trace.sha256, trace.file_name, f"{trace.licence}, from {trace.repository}")
    if name is None and url is not None and sha256 is not None:
        return Wanted(url, sha256, _name_in(url), f"from {urlsplit(url).netloc}")
    if name is None and url is None and sha256 is None:
        raise InputError(Problem("nothing to fetch", f"name one of {', '.join(list_public_traces())}"))
    if name is not None:
        raise InputError(Problem("a name and an address", "give NAME alone, or --url with --sha256"))
    missing = "--sha256" if sha256 is None else "--url"
    raise InputError(Problem("is missing", "--url and --sha256 go together", path=missing))


def download(wanted: Wanted, out: Path | None) -> Path:
    """Download into ``out`` or the cache, telling on stderr what comes from where; return where it is."""
    from simkv.cli.progress import Progress
    from simkv.workload.fetch import cache_folder, fetch

    target = (out if out is not None else cache_folder()) / wanted.file_name
    with Progress() as progress:
        new = fetch(wanted.url, wanted.sha256, target, progress)
    size = units.short(target.stat().st_size, "size")
    print(f"{'fetched' if new else 'there already'}: {size}, {wanted.about}", file=sys.stderr)
    return target


def _name_in(url: str) -> str:
    name = unquote(PurePosixPath(urlsplit(url).path).name)
    if not name or "/" in name or name.startswith("."):
        raise InputError(
            Problem("is no address of a file", "its path must end in a file's name", path="--url", value=url)
        )
    return name
