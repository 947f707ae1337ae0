"""A document written to a folder, in each form that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from simkv.errors import InputError, Problem, unknown
from simkv.files import replace_files
from simkv.report.document import Document
from simkv.report.drawing import Drawings

NAME = "report"


def check_formats(names: Sequence[str]) -> tuple[str, ...]:
    """Return the forms asked for, each once, in the order of ``FORMATS``; raises InputError for others and for none."""
    for name in names:
        if name not in FORMATS:
            raise unknown("format", name, list(FORMATS), "--format")
    if not names:
        raise InputError(Problem("names no format", f"valid: {', '.join(FORMATS)}", path="--format"))
    return tuple(name for name in FORMATS if name in names)


def write(document: Document, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Write ``document`` as ``report.html``, ... into ``folder``, which is made; return the files, pages first.

    Raises InputError where that can't be done; what was there before then stays.
    """
    drawings = Drawings()
    made = [dict(FORMATS[name](document, drawings)) for name in formats]
    files = {name: content for each in made for name, content in each.items()}
    replace_files(folder, files, _older(folder, files))
    return [folder / name for name in files]


def _html(document: Document, drawings: Drawings) -> Iterator[tuple[str, bytes]]:
    from simkv.report.html.page import page

    yield f"{NAME}.html", page(document, drawings).encode()


def _markdown(document: Document, drawings: Drawings) -> Iterator[tuple[str, bytes]]:
    from simkv.report.markdown.page import FOLDER, page

    found = page(document, drawings)
    yield f"{NAME}.md", found.text.encode()
    for name, content in found.files.items():
        yield f"{FOLDER}/{name}", content


def _pdf(document: Document, drawings: Drawings) -> Iterator[tuple[str, bytes]]:
    from simkv.report.pdf.page import page

    yield f"{NAME}.pdf", page(document, drawings)


FORMATS: Mapping[str, Callable[[Document, Drawings], Iterator[tuple[str, bytes]]]] = {
    "html": _html, "md": _markdown, "pdf": _pdf,
}  # fmt: skip
"""Each yields its files by name, the page first."""


def _older(folder: Path, files: Collection[str]) -> Iterator[str]:
    """Yield, by their names below ``folder``, pictures and tables of an earlier report that this one hasn't got."""
    beside = {str(Path(name).parent) for name in files} - {"."}
    for name in sorted(beside):
        for old in sorted((folder / name).iterdir()):
            if f"{name}/{old.name}" not in files and old.suffix in (".svg", ".csv") and old.is_file():
                yield f"{name}/{old.name}"
