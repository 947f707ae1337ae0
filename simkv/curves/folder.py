"""The folder of curves: a CSV and two pictures each, ``curves.json``, and the runs that are kept to go on with."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from simkv.curves.study import NAMES
from simkv.files import Content, replace_files
from simkv.jobs.store import Store
from simkv.plots.curves import draw
from simkv.plots.style import FORMATS
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
    drawn: dict[str, Content] = {}
    for name, curve in curves.items():
        drawn[f"{name}.csv"] = _csv(curve["rows"]).encode()
        drawn |= {f"{name}.{form}": partial(_draw, name, curve, form) for form in FORMATS}
    _replace(answer, folder, drawn)


def keep(answer: Mapping[str, Any], folder: Path) -> None:
    """Write ``curves.json`` alone into ``folder``, and take away what is there of curves that were drawn before.

    Raises InputError where that fails.
    """
    _replace(answer, folder, {})


def _replace(answer: Mapping[str, Any], folder: Path, drawn: Mapping[str, Content]) -> None:
    all_drawn = [f"{name}.{form}" for name in NAMES for form in ("csv", *FORMATS)]
    files = {**drawn, ANSWER: text_of(answer).encode()}
    replace_files(folder, files, gone=[name for name in all_drawn if name not in files])


def _draw(name: str, curve: Mapping[str, Any], form: str, path: Path) -> None:
    page = io.BytesIO()
    draw(name, curve, page, form)
    path.write_bytes(page.getvalue())


def _csv(rows: list[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(_columns(rows)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _columns(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the columns that any row has, in the order in which they come."""
    yield from dict.fromkeys(key for row in rows for key in row)
