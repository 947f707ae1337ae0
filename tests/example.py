"""Takes the picture of the example report that the README shows; ``python -m tests.example PAGE PICTURE``."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser import chromium

WIDTH, HEIGHT = 1200, 860


def take(page: Path, picture: Path) -> None:
    """Write the top of ``page`` as a reader sees it to ``picture``, a PNG."""
    program, options = chromium()
    if program is None:
        raise SystemExit("a picture needs Chromium; on Debian: apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=options)
        opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        opened.goto(page.resolve().as_uri())
        opened.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
