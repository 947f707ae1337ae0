"""Executes notebooks; ``python -m tests.notebooks [NAME ...]`` does it in place, and keeps what they print.

What is kept has no times, no machine's paths and no random ids in it, so that a run that finds the same leaves the same
file, but for cells tagged ``varies``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
VARIES = "varies"
"""Tag of a cell whose output is of this machine at this moment."""
_TIMEOUT_S = 300
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_MACHINE = re.compile(r"/(?:home|root|tmp|work|usr|opt|mnt|Users)/\S*|0x[0-9a-f]{6,}", re.IGNORECASE)


def paths() -> list[Path]:
    """Return all notebooks, in order."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> Any:
    """Return the notebook with what its cells print now; raises where one fails. The file stays as it is."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=_TIMEOUT_S, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    tidy(notebook)
    return notebook


def tidy(notebook: Any) -> None:
    """Leave out what differs from run to run (mutates)."""
    notebook.metadata = nbformat.from_dict(_METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{number:02}"
        cell.metadata = nbformat.from_dict({"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {})
        if cell.cell_type == "code":
            cell.outputs = list(_joined(cell.outputs))
            for output in cell.outputs:
                if "metadata" in output:
                    output.metadata = nbformat.from_dict({})


def _joined(outputs: list[Any]) -> Iterator[Any]:
    """Yield ``outputs``, those of one stream that follow each other as one: how they were cut is chance."""
    for _, group in groupby(enumerate(outputs), key=lambda at: at[1].get("name", at[0])):
        first, *others = (output for _, output in group)
        for other in others:
            first.text += other.text
        yield first


def code(notebook: Any) -> list[Any]:
    """Return the cells that run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def varies(cell: Any) -> bool:
    """Say whether a cell prints something else each time."""
    return VARIES in cell.metadata.get("tags", ())


def texts(cell: Any) -> list[str]:
    """Return what a cell shows as text and as HTML; pictures aside."""
    found: list[str] = []
    for output in cell.outputs:
        if output.output_type == "stream":
            found.append(output.text)
        for kind in ("text/plain", "text/html"):
            if kind in output.get("data", {}):
                found.append(output.data[kind])
    return found


def pictures(cell: Any) -> Iterator[str]:
    """Yield what a cell shows as pictures, as the file holds them."""
    for output in cell.outputs:
        for kind in ("image/png", "image/svg+xml"):
            if kind in output.get("data", {}):
                yield output.data[kind]


def imported(notebook: Any) -> set[str]:
    """Return the names of all packages that cells import."""
    found: set[str] = set()
    for cell in code(notebook):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module or ".")
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "__import__":
                found.add("__import__")
    return found


def of_a_machine(text: str) -> list[str]:
    """Return the paths and addresses in ``text`` that no other machine has."""
    return _MACHINE.findall(text)


def main() -> None:
    """Execute in place those that are named, or all."""
    for path in paths():
        if sys.argv[1:] and path.stem not in sys.argv[1:] and path.name not in sys.argv[1:]:
            continue
        print(path.relative_to(ROOT), flush=True)
        text = nbformat.writes(executed(path), version=4)
        path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
