"""A document as Markdown: what it says, letter by letter, and the files beside it."""

from __future__ import annotations

import csv
import io
import json
import re
from xml.etree import ElementTree

import pytest

from simkv.report.compose import document as composed
from simkv.report.document import Code, Document, Facts, Section, Text, Widget
from simkv.report.folders import read_folder
from simkv.report.markdown.escaped import code, inline, paragraph, verbatim
from simkv.report.markdown.page import page
from tests.document_factory import DRAWINGS, HEADS, document, picture, table
from tests.report_factory import HOSTILE, small_run


def shape(text: str) -> list[str]:
    """Return what each line is, fences with all that they hold as one."""
    kinds, fence = [], ""
    for line in text.splitlines():
        if fence:
            fence = "" if line == fence else fence
            continue
        if found := re.match("`{3,}", line):
            fence = found[0]
            kinds.append("code")
            continue
        first = re.match(r"#+ |> |- |\| |!\[|\[data|<[a-z/]+>|---$|\*\*|$", line)
        kinds.append(first[0] if first else "text")
    return kinds


def test_document_as_markdown_has_every_block():
    found = page(document(), DRAWINGS)
    for part in (
        "# A chatbot\n", "## The answer\n", "**Offloading A chatbot saves 0.528 s of 0.630 s.**",
        "> ⚠ Warning: warning: A chatbot (`A chatbot`)", "- **Model:** llama-3.1-8b",
        "### A chatbot rises, then falls", "![A line, A chatbot.](report-files/latency.svg)",
        "[data (CSV)](report-files/latency.csv)", "| A chatbot | share | so |\n| --- | ---: | --- |",
        "| other | 2e-09 | slow |", "```text\nsimkv run x\n  --set 'name=A chatbot'\n```",
        "<details>\n<summary>A chatbot</summary>\n\nA chatbot\n\n**Shares of row**", "</details>",
    ):  # fmt: skip
        assert part in found.text


def test_files_beside_the_page_are_all_that_it_refers_to():
    found = page(document(), DRAWINGS)
    assert sorted(found.files) == sorted(re.findall(r"\(report-files/([^)]+)\)", found.text))
    assert next(csv.reader(io.StringIO(found.files["latency.csv"].decode()))) == HEADS
    ElementTree.fromstring(found.files["latency-2.svg"])


def test_same_document_gives_the_same_bytes():
    assert page(document("x")) == page(document("x"))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_name_leaves_every_line_what_it_is(name):
    plain, hostile = page(document(), DRAWINGS).text, page(document(HOSTILE[name]), DRAWINGS).text
    assert shape(hostile) == shape(plain)
    outside = re.sub("`[^`]*`", "", re.sub(r"(?ms)^```+text$.*?^```+$", "", hostile))
    assert not re.search(r"<(?!/?(?:details|summary|code)>)", outside)
    assert not re.search(r"(?<!\\)\]\((?!report-files/[a-z0-9-]+\.(?:svg|csv)\))", outside)
    assert not re.search(r"\w://", outside)
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2028]", hostile)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("ttft_s.p95 = 0.1", "ttft_s.p95 = 0.1"),
        ("_a_ *b* `c` ~~d~~", r"\_a\_ \*b\* \`c\` \~\~d\~\~"),
        ("a|b\\|c", r"a\|b\\\|c"),
        ("<b> & &amp;", "&lt;b&gt; &amp; &amp;amp;"),
        ("a\nb\x1b", "a b\\\\x1b"),
        ("http://x.org www.x.org", r"http\://x.org www\.x.org"),
    ],
)
def test_inline_text_is_shown_letter_by_letter(text, escaped):
    assert inline(text) == escaped


@pytest.mark.parametrize(
    ("text", "escaped"),
    [("# a", r"\# a"), ("- a", r"\- a"), ("+ a", r"\+ a"), ("1. a", r"1\. a"), ("12) a", r"12\) a"),
     ("-0.5 s", "-0.5 s"), ("---", r"--\-"),
     ("1.5 s", "1.5 s"), ("=== a", "=== a"), ("===", r"==\="), ("> a", "&gt; a"), ("run `simkv x`", "run `simkv x`")],
)  # fmt: skip
def test_paragraph_is_no_heading_and_no_list(text, escaped):
    assert paragraph(text) == escaped


def test_code_cannot_be_ended_by_what_is_in_it():
    assert verbatim("a\n```\nb") == "````text\na\n```\nb\n````"
    assert code("a`b") == "<code>a\\`b</code>"
    assert code("") == "` `"


def test_widget_is_told_by_what_stands_instead_of_it():
    widget = Widget("player", "Blocks move", {}, [Text("They moved."), table("moved"), picture("still")])
    found = page(Document("d", "", [Section("s", "S", [widget, Facts([]), Code("x")])]))
    assert "### Blocks move\n\nThey moved.\n\n**Shares of row**" in found.text
    assert list(found.files) == ["moved.csv", "still.svg", "still.csv"]


def test_numbers_of_a_run_equal_those_of_its_summary():
    folder = read_folder(small_run())
    text = page(composed([folder], no_curves="none")).text
    rows = dict(re.findall(r"^\| ([\w.]+) \| (.*) \| [^|]* \|$", text, re.MULTILINE))
    raw = json.loads((small_run() / "summary.json").read_text("utf-8"), parse_float=str, parse_int=str)
    expected = dict(_leaves(raw))
    numbers = {name: value for name, value in expected.items() if re.fullmatch(r"-?\d.*", value)}
    assert len(numbers) > 100
    assert {name: rows.get(name) for name in numbers} == numbers


def _leaves(found, name=""):
    items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else None
    if items is None:
        yield name, str(found)
        return
    for key, value in items:
        yield from _leaves(value, f"{name}.{key}" if name else str(key))
