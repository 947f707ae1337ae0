"""A document written to a folder, in each form that is asked for; each file whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from simkv.errors import InputError, Problem, unknown
from simkv.report.document import Document
from simkv.report.drawing import Drawings
from simkv.sweeps.export import replace_file

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
    files = [(folder / name, content) for each in made for name, content in each.items()]
    for path, content in files:
        _put(path, content)
    for each in made:
        _clear(folder, each)
    return [path for path, _ in files]


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


def _put(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"can't be made: {error.strerror or error}"
        raise InputError(Problem(what, "pick another folder with --out", str(path.parent))) from error
    replace_file(path, lambda draft: draft.write_bytes(content))


def _clear(folder: Path, files: Mapping[str, bytes]) -> None:
    """Take away pictures and tables of an earlier report that this one hasn't got."""
    beside = {str(Path(name).parent) for name in files} - {"."}
    for name in sorted(beside):
        for old in sorted((folder / name).iterdir()):
            if f"{name}/{old.name}" not in files and old.suffix in (".svg", ".csv") and old.is_file():
                old.unlink(missing_ok=True)
