"""Takes the pictures of the example report that the README shows; ``python -m tests.example PAGE``."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser import chromium

WIDTH, HEIGHT = 1200, 860
STEPS = 100, 1500
"""Of the player: at least, and at most, until several transfers are under way."""


def take(page: Path) -> list[Path]:
    """Write the top of ``page`` as a reader sees it and its player under way beside it, as PNG; return where."""
    program, options = chromium()
    if program is None:
        raise SystemExit("a picture needs Chromium; on Debian: apt install chromium")
    report, player = page.with_name("report.png"), page.with_name("player.png")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=options)
        opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        opened.goto(page.resolve().as_uri())
        opened.screenshot(path=report)
        _seek(opened)
        opened.locator("div.widget[data-kind=player]").screenshot(path=player)
        browser.close()
    return [report, player]


def _seek(page: Page) -> None:
    """Step the player on until several transfers are under way."""
    page.evaluate(
        """([first, last]) => {
            const player = document.querySelector('div.widget[data-kind=player]');
            const moving = () => player.querySelectorAll('.mover[visibility=visible]').length;
            const forward = player.querySelector('.forward');
            for (let k = 0; k < last && (k < first || moving() < 3); k += 1) forward.click();
        }""",
        list(STEPS),
    )


if __name__ == "__main__":
    for picture in take(Path(sys.argv[1])):
        print(picture)
