"""The folder of curves: a CSV and two pictures each, ``curves.json``, and the runs that are kept to go on with."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from simkv.curves.study import NAMES
from simkv.jobs.store import Store
from simkv.plots.curves import draw
from simkv.plots.style import FORMATS
from simkv.sweeps.export import replace_bytes
from simkv.sweeps.owned import check_owned

ANSWER = "curves.json"
RUNS = "runs.sqlite"
_META = "curves"


def check_folder(folder: Path, scenario: str) -> None:
    """Raise InputError where the curves of ``scenario`` can't be written to ``folder``, or go on there."""
    check_owned(folder, RUNS, _META, scenario)


def opened(folder: Path, scenario: str) -> Store:
    """Return the runs kept in ``folder``, which is made where there is none, open for writing."""
    store = Store(folder / RUNS)
    store.put(_META, {"scenario": scenario})
    return store


def text_of(answer: Mapping[str, Any]) -> str:
    """Return ``curves.json``."""
    return json.dumps(answer, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write(answer: Mapping[str, Any], folder: Path) -> None:
    """Write everything of ``answer`` into ``folder``, and take away the files of curves that it hasn't got.

    Raises InputError where that fails.
    """
    curves: Mapping[str, Mapping[str, Any]] = answer["curves"]
    for name, curve in curves.items():
        replace_bytes(folder / f"{name}.csv", _csv(curve["rows"]).encode())
        for form in FORMATS:
            page = io.BytesIO()
            draw(name, curve, page, form)
            replace_bytes(folder / f"{name}.{form}", page.getvalue())
    _clear(folder, [name for name in NAMES if name not in curves])
    replace_bytes(folder / ANSWER, text_of(answer).encode())


def keep(answer: Mapping[str, Any], folder: Path) -> None:
    """Write ``curves.json`` alone into ``folder``, and take away what is there of curves that were drawn before.

    Raises InputError where that fails.
    """
    _clear(folder, NAMES)
    replace_bytes(folder / ANSWER, text_of(answer).encode())


def _clear(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        for form in ("csv", *FORMATS):
            (folder / f"{name}.{form}").unlink(missing_ok=True)


def _csv(rows: list[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(_columns(rows)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _columns(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the columns that any row has, in the order in which they come."""
    yield from dict.fromkeys(key for row in rows for key in row)
