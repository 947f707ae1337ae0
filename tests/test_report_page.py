"""Reports in a real browser: nothing in the console, nothing from a network, readable however it is looked at."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from simkv.report.compose import document as composed
from simkv.report.folders import read_folder
from simkv.report.html.page import page as written
from tests.browser import overflow, show
from tests.document_factory import DRAWINGS, HEADS, ROWS, document
from tests.report_factory import HOSTILE, renamed, small_run

_CONTRAST = """
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [x, y, z] = [r, g, b].map((v) => linear(v / 255));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const found = {};
  for (const element of document.querySelectorAll("p, h1, h2, h3, td, th, dt, dd, code, summary, a, .icon, svg text")) {
    if (!element.checkVisibility() || !element.textContent.trim()) continue;
    const style = getComputedStyle(element);
    const ink = light(rgb(element.namespaceURI.endsWith("svg") ? style.fill : style.color));
    const paper = light(behind(element));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    const kind = element.tagName + "." + (element.getAttribute("class") || element.parentElement.getAttribute("class"));
    found[kind] = Math.min(found[kind] ?? 99, ratio);
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def run_page(tmp_path_factory) -> Path:
    """Return the page of a run."""
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(written(composed([read_folder(small_run())], no_curves="none")), "utf-8")
    return file


@pytest.mark.parametrize("width", [320, 380, 700, 1200, 1900])
def test_page_of_a_run_fits_its_window(page, run_page, width):
    show(page, run_page, width=width)
    assert page.locator("h1").inner_text() == "chatbot"
    assert page.locator("main > section").count() > 5
    assert overflow(page) == 0


def test_letters_of_figures_can_be_read_on_a_narrow_screen(page, run_page):
    show(page, run_page, width=380)
    heights = page.locator("figure svg").evaluate_all(
        "svgs => svgs.map(svg => "
        "Math.min(...[...svg.querySelectorAll('text')].map(text => text.getBoundingClientRect().height)))"
    )
    assert len(heights) >= 5
    assert min(heights) > 6


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_stands_out_from_what_is_behind_it(page, run_page, dark):
    for source in (run_page, written(document(), DRAWINGS)):
        show(page, source, dark=dark)
        found = page.evaluate(_CONTRAST)
        assert len(found) > 10
        assert {kind: ratio for kind, ratio in found.items() if ratio < (3.0 if "text" in kind else 4.5)} == {}


def test_button_changes_colours_and_says_which_come_next(page):
    show(page, written(document(), DRAWINGS))
    paper = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(paper)
    page.get_by_role("button", name="Show in dark colours").click()
    assert page.evaluate(paper) != before
    assert page.locator("figure svg path").first.evaluate("p => getComputedStyle(p).fill") == page.evaluate(paper)
    page.get_by_role("button", name="Show in light colours").click()
    assert page.evaluate(paper) == before


def test_print_unfolds_everything_in_light_colours_without_controls(page):
    show(page, written(document(), DRAWINGS), dark=True)
    folded = page.locator("details.more p").first
    assert not folded.is_visible()
    page.emulate_media(media="print", color_scheme="dark")
    folded.wait_for(state="visible")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for control in (".theme", ".contents", ".tools", ".copy", ".skip"):
        assert not page.locator(control).first.is_visible()
    page.emulate_media(media="screen")
    folded.wait_for(state="hidden")


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_printed_page_has_pages_and_all_texts(page, paper):
    from pypdf import PdfReader

    show(page, written(document(), DRAWINGS))
    pages = PdfReader(io.BytesIO(page.pdf(format=paper))).pages
    text = " ".join(one.extract_text() for one in pages)
    assert 2 <= len(pages) <= 6
    assert text.count("Shares of") == 2
    assert "data (CSV)" not in text


def test_csv_of_a_figure_downloads_with_its_exact_values(page, tmp_path):
    show(page, written(document(), DRAWINGS))
    with page.expect_download() as found:
        page.locator("figure a[download]").first.click()
    assert found.value.suggested_filename == "latency.csv"
    found.value.save_as(tmp_path / "latency.csv")
    read = list(csv.reader(io.StringIO((tmp_path / "latency.csv").read_text("utf-8"))))
    assert read[0] == HEADS
    assert [[float(row[0]), float(row[1]), int(row[2]), row[3]] for row in read[1:]] == ROWS


def test_alternative_to_a_figure_is_one_click_away_and_told_to_readers_of_screens(page):
    show(page, written(document(), DRAWINGS), width=380)
    assert page.get_by_role("img", name="A line, A chatbot.").is_visible()
    assert not page.get_by_text("A line, A chatbot.").is_visible()
    page.locator("figure summary").first.click()
    assert page.get_by_text("A line, A chatbot.").is_visible()


def test_keyboard_reaches_the_content_and_wide_tables(page):
    show(page, written(document(), DRAWINGS), width=380)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#content"
    assert page.locator(".scroll[tabindex='0'][role=region][aria-label]").count() == 2


def test_contents_lead_to_every_section(page, run_page):
    show(page, run_page, still=True)
    links = page.locator(".contents a").evaluate_all("links => links.map(a => a.hash)")
    assert len(links) == len(set(links)) == page.locator("main > section").count()
    page.locator(".contents a").last.click()
    page.wait_for_function("document.querySelector('.contents a[aria-current]') !== null")
    assert page.evaluate("scrollY") > 500


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_name_is_shown_as_text_wherever_it_stands(page, name):
    show(page, written(document(HOSTILE[name]), DRAWINGS), width=380)
    assert overflow(page) == 0
    assert page.locator("main script, main img, main a:not([download]), b:not(.word)").count() == 0
    assert page.locator("script").count() == 1
    if name in ("script", "breakout", "emoji"):
        assert page.locator("h1").inner_text() == HOSTILE[name]
        assert page.title() == HOSTILE[name]


@pytest.mark.parametrize("name", ["breakout", "long", "math"])
def test_run_with_a_hostile_name_makes_a_harmless_page(page, tmp_path, name):
    folder = read_folder(renamed(tmp_path / "r", HOSTILE[name]))
    show(page, written(composed([folder], no_curves=HOSTILE[name])), width=380)
    assert overflow(page) == 0
    assert page.locator("main img").count() == 0
    assert page.locator("main > section").count() > 5


def test_without_scripts_everything_is_there_but_what_moves(browser):
    context = browser.new_context(java_script_enabled=False, offline=True)
    opened = context.new_page()
    opened.set_content(written(document(), DRAWINGS))
    assert opened.locator("section").count() == 3
    assert opened.locator(".contents a").first.is_visible()
    assert not opened.locator("button").first.is_visible()
    context.close()
