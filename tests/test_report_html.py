"""A document as HTML: one file, harmless, the same each time, small enough."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from simkv.report.document import Data, Document, Figure, Section, Table, Widget
from simkv.report.html import page as html_page
from simkv.report.html.page import page as written
from simkv.report.html.render import _data
from simkv.report.html.svg import inline
from simkv.report.tabular import csv_of
from tests.document_factory import DRAWINGS, HEADS, ROWS, document, noisy, picture, table
from tests.report_factory import HOSTILE


class Reader(HTMLParser):
    """Notes every element with its attributes' names, those of figures only once, and what scripts there are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, list[str]]] = []
        self.attributes: list[dict[str, str | None]] = []
        self.drawn: set[tuple[str, ...]] = set()
        self.scripts: list[str] = []
        self._in_script = self._in_svg = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        names = sorted(name for name, _ in attrs if (tag, name) != ("td", "class"))
        self._in_svg = self._in_svg or tag == "svg"
        self.drawn.add((tag, *names)) if self._in_svg else self.elements.append((tag, names))
        self.attributes.append(dict(attrs))
        self._in_script = tag == "script"

    def handle_data(self, data):
        if self._in_script:
            self.scripts.append(data)

    def handle_endtag(self, tag):
        self._in_script = False
        self._in_svg = self._in_svg and tag != "svg"


def test_page_of_a_document_is_one_file_that_says_its_language_and_its_size():
    text = written(document(), DRAWINGS)
    assert text.startswith("<!doctype html>")
    for part in ('<html lang="en">', '<meta charset="utf-8">', 'name="viewport"', "<title>A chatbot</title>"):
        assert part in text
    outside = re.sub(r"<(script|style)>.*?</\1>", "", text, flags=re.DOTALL)
    assert set(re.findall(r"""(?:src|href)=["']?(#|data:|.{9})""", outside)) == {"#", "data:"}
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_page_of_the_same_document_is_the_same_bytes():
    assert written(document("x")) == written(document("x"))


def test_ids_are_unique_and_every_reference_has_its_target():
    found = Reader(written(document(), DRAWINGS)).attributes
    ids = [attributes["id"] for attributes in found if "id" in attributes]
    assert len(ids) == len(set(ids))
    values = [(key, value or "") for attributes in found for key, value in attributes.items()]
    wanted = [value[1:] for key, value in values if key in ("href", "xlink:href") and value.startswith("#")]
    wanted += [name for _, value in values for name in re.findall(r"url\(#([^)]+)\)", value)]
    assert len(wanted) > 50
    assert set(wanted) <= set(ids)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_name_brings_no_element_and_no_script_of_its_own(name):
    harmless = "plain `code`" if "`" in HOSTILE[name] else "plain"
    plain = Reader(written(document(harmless), DRAWINGS))
    hostile = Reader(written(document(HOSTILE[name]), DRAWINGS))
    assert hostile.elements == plain.elements
    assert hostile.drawn == plain.drawn
    assert hostile.scripts == plain.scripts


def test_text_that_cannot_be_seen_is_written_out():
    text = written(document(HOSTILE["control"] + HOSTILE["right_to_left"]), DRAWINGS)
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2028]", text)
    assert "\\x1b[31m" in text
    assert "\\u202egnol" in text
    assert "שלום" in text


def test_policy_names_the_scripts_that_are_on_the_page_and_no_others():
    text = written(document(), DRAWINGS)
    policy = re.search(r'Security-Policy" content="([^"]*)"', text)[1].replace("&#39;", "'")
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    named = re.findall(r"'sha256-([^']+)'", policy)
    assert named == [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy


def test_data_of_a_widget_cannot_end_its_element():
    hostile = {"a": "</script><!-- <script> ]]> \u2028 &amp;", "n": float("nan"), "v": np.arange(2)}
    text = _data(Widget("player", "x", hostile))
    assert not re.search("[<>&\u2028]", text)
    assert '"n":null,"v":[0,1]' in text


def test_csv_behind_a_figure_and_a_table_has_the_exact_values():
    text = written(document(), DRAWINGS)
    links = dict(re.findall(r'download="([^"]+)" href="data:text/csv;charset=utf-8;base64,([^"]+)"', text))
    assert list(links) == ["latency.csv", "latency-2.csv", "timeline.csv", "shares.csv", "more.csv"]
    read = list(csv.reader(io.StringIO(base64.b64decode(links["latency.csv"]).decode())))
    assert read[0] == HEADS
    assert [[float(row[0]), float(row[1]), int(row[2]), row[3]] for row in read[1:]] == ROWS
    shares = list(csv.reader(io.StringIO(base64.b64decode(links["shares.csv"]).decode())))
    assert float(shares[1][1]) == 1 / 3


def test_csv_of_a_text_that_a_spreadsheet_would_compute_is_marked_as_text():
    rows = [["=HYPERLINK(1)", "+1", "-", "-x", np.float64(0.1), float("nan"), None]]
    found = csv_of(Figure("f", "f", lambda *_: None, Data(list("abcdefg"), rows), "f"))
    assert found.splitlines()[1] == "'=HYPERLINK(1),+1,-,'-x,0.1,,"


def test_colours_of_a_figure_follow_the_page_and_its_letters_stay_text():
    from simkv.report.drawing import Drawings

    svg = inline(Drawings()(picture("p", "a & b"), "text"), "p", "told & <told>")
    assert "var(--s1, #0072b2)" in svg
    assert "var(--ink, #222222)" in svg
    assert "var(--paper, #ffffff)" in svg
    assert "a &amp; b</text>" in svg
    assert 'aria-label="told &amp; &lt;told&gt;"' in svg
    assert "<style" not in svg
    assert "metadata" not in svg


def test_page_that_would_be_too_large_says_what_it_leaves_out(monkeypatch):
    many = Table(["n"], [table("t").rows[0][:1]] * 2_000, "n")
    large = Document("large", "", [Section("s", "s", [noisy("cloud", 3_000), many])])
    whole = written(large)
    assert "To keep" not in whole
    monkeypatch.setattr(html_page, "MOST_BYTES", 400_000)
    dots = written(large)
    assert "To keep it under 5 MB: figures with very many lines are drawn as dots." in dots
    assert "data:image/png" in dots
    monkeypatch.setattr(html_page, "MOST_BYTES", 150_000)
    cut = written(large)
    assert "and 1,800 rows more" in cut
    assert "cloud.csv" not in cut
    assert len(cut.encode()) < 150_000 and len(dots) < len(whole)
    monkeypatch.setattr(html_page, "MOST_BYTES", 0)
    assert "figures are told in words" in written(large)
    assert "<svg" not in written(large)
