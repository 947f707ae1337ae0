"""Files that are one JSON value, of formats that aren't lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from simkv.errors import InputError, Problem
from simkv.workload.readers.files import whole


def parsed(path: Path, mend: str) -> Any:
    """Return the value in ``path``, plain or compressed with gzip; ``mend`` is what to do where it is no JSON.

    Raises InputError with the line, and as :func:`~simkv.workload.readers.files.whole` does.
    """
    try:
        return orjson.loads(whole(path))
    except orjson.JSONDecodeError as error:
        what = f"is not JSON: {error.msg} (column {error.colno})"
        raise InputError(Problem(what, mend, file=str(path), line=error.lineno)) from None
