"""A real browser for tests of pages: ``page`` fails its test for any complaint in the console and for any request.

``tests/conftest.py`` hands the fixtures to every test; nothing is started before a test asks for ``page``.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_HARMLESS = ("data:", "blob:", "about:")


def chromium() -> tuple[str | None, list[str]]:
    """Return where Chromium is (None: nowhere), and the options that it needs here."""
    program = next((found for name in _NAMES if (found := shutil.which(name))), None)
    return program, ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield a headless Chromium. Without one tests are skipped, in CI they fail.

    It lives as long as a file's tests: while it runs, nothing else in the process can run an event loop.
    """
    api = _needed("playwright.sync_api")
    program, options = chromium()
    if program is None:
        _missing(f"no Chromium is installed ({', '.join(_NAMES)}); on Debian: apt install chromium")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=options)
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Yield an empty page without a network; at the end it must have asked for nothing, and met no error."""
    context = browser.new_context(offline=True)
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("console", lambda said: wrong.append(f"console: {said.text}") if said.type == "error" else None)
    opened.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    opened.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    opened.on("request", lambda request: None if _own(request) else wrong.append(f"request: {request.url[:200]}"))
    yield opened
    context.close()
    assert not wrong, "\n".join(wrong)


def show(
    page: Page, source: Path | str, width: int = 1200, dark: bool = False, height: int = 900, still: bool = False
) -> Page:
    """Open ``source``, a file or the text of a page, ``width`` pixels wide; ``still``: with reduced motion."""
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce" if still else "no-preference")
    if isinstance(source, Path):
        page.goto(source.resolve().as_uri())
        return page
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(source, encoding="utf-8")
        page.goto(file.as_uri())
    return page


def overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def _own(request: Any) -> bool:
    """Say whether a request is for the page itself, or for what the page has in it."""
    itself = request.is_navigation_request() and request.url.startswith("file:")
    return itself or request.url.startswith(_HARMLESS)


def _needed(module: str) -> Any:
    try:
        return __import__(module, fromlist=["_"])
    except ImportError:
        _missing("playwright is not installed: pip install 'simkv[dev]'")


def _missing(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
