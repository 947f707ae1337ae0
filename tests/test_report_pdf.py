"""A document as PDF: its pages, its text, nothing from anywhere else."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from pypdf import PdfReader

from simkv.errors import InputError
from simkv.report.compose import document as composed
from simkv.report.document import Details, Document, Figure, Section, Table, Text, Widget
from simkv.report.folders import read_folder
from simkv.report.pdf import page as pdf_page
from simkv.report.pdf.page import page
from tests.document_factory import DRAWINGS, document, picture, table
from tests.report_factory import HOSTILE, small_run


def read(content: bytes) -> PdfReader:
    """Return a PDF opened."""
    return PdfReader(io.BytesIO(content))


def text_of(content: bytes) -> str:
    """Return the text of all pages, blanks as they may be broken."""
    return " ".join(" ".join(page.extract_text() for page in read(content).pages).split())


def test_pdf_of_a_run_has_its_pages_and_its_headline():
    folder = read_folder(small_run())
    made = composed([folder], no_curves="none")
    content = page(made)
    pages = read(content).pages
    assert 4 <= len(pages) <= 40
    last = pages[-1].extract_text()
    assert f"{len(pages)} / {len(pages)}" in last
    headline = next(block.text for block in made.sections[0].blocks if isinstance(block, Text) and block.lead)
    assert headline.split(":")[0] in text_of(content)
    assert read(content).metadata.title == "chatbot"
    for section in made.sections:
        assert section.title in [entry["/Title"] for entry in read(content).outline]
    assert len(content) < 5_000_000


def test_details_are_unfolded_and_widgets_told():
    widget = Widget("player", "Blocks move", {}, [Text("They moved."), picture("still")])
    content = page(Document("d", "", [Section("s", "S", [Details("More of it", [table("t")]), widget])]), DRAWINGS)
    text = text_of(content)
    for part in ("More of it", "0.333", "Blocks move", "They moved."):
        assert part in text
    assert "/JavaScript" not in read(content).trailer["/Root"].get("/Names", {})


def test_same_document_gives_the_same_bytes():
    assert page(document(), DRAWINGS) == page(document(), DRAWINGS)


def test_every_page_says_which_and_all_but_the_first_of_what():
    long = Table(["n", "m"], [table("t").rows[0][:2]] * 300, "n")
    pages = read(page(Document("A title of its own", "", [Section("s", "S", [long])]))).pages
    assert len(pages) > 4
    for number, one in enumerate(pages, start=1):
        text = one.extract_text()
        assert f"{number} / {len(pages)}" in text
        assert "A title of its own" in text


@pytest.mark.parametrize("name", ["script", "long", "link", "lines", "right_to_left"])
def test_hostile_name_is_text(name):
    content = page(document(HOSTILE[name]), DRAWINGS)
    annotations = [note.get_object() for one in read(content).pages for note in one.get("/Annots", [])]
    assert not [note for note in annotations if "/URI" in str(note.get("/A"))]
    assert 2 <= len(read(content).pages) <= 12
    if name in ("script", "link"):
        assert HOSTILE[name].split("(")[0] in text_of(content)


def test_nothing_but_data_is_fetched(monkeypatch):
    asked = []

    def draw(file, form):
        file.write(
            b'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">'
            b'<image xlink:href="file:///etc/hostname" width="9" height="9"/>'
            b'<image href="http://127.0.0.1:9/a.png" width="9" height="9"/><path d="M 0 0 L 9 9"/></svg>'
        )

    monkeypatch.setattr("urllib.request.OpenerDirector.open", lambda self, url, *a, **k: asked.append(url))
    found = picture("f")
    foreign = Figure("f", "f", draw, found.data, "alt")
    assert page(Document("d", "", [Section("s", "S", [foreign])])).startswith(b"%PDF")
    assert all(getattr(url, "full_url", url).startswith("data:") for url in asked)


def test_pdf_without_pango_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    with pytest.raises(InputError, match="apt install libpango") as caught:
        page(document(), DRAWINGS)
    assert "brew install pango" in str(caught.value)
    assert caught.value.problems[0].path == "--format"


def test_weasyprint_is_loaded_for_pdf_only():
    code = "import sys, simkv.report.write, simkv.report.pdf.page; assert 'weasyprint' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert pdf_page.page is page
