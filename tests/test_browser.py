"""The browser fixture itself: what it must notice, it notices."""

from __future__ import annotations

from tests.browser import overflow, show

pytest_plugins = ("pytester",)
_HEAD = "import pytest\nfrom tests.browser import browser, page, show\n"


def test_page_with_nothing_wrong_passes(page):
    show(page, "<!doctype html><p>Hello</p><script>console.log('fine')</script>", width=380)
    assert page.locator("p").inner_text() == "Hello"
    assert overflow(page) == 0


def test_overflow_of_something_too_wide_is_how_much(page):
    show(page, "<!doctype html><body style='margin:0'><div style='width:500px'>x</div>", width=380)
    assert overflow(page) == 120


WRONG = {
    "<script>console.error('oh')</script>": "console: oh",
    "<script>nothing()</script>": "nothing is not defined",
    "<img src='https://example.org/a.png'>": "request: https://example.org/a.png",
    "<link rel=stylesheet href='style.css'>": "request: file://",
    "<script>alert(1)</script>": "dialog: 1",
}


def test_page_with_something_wrong_fails_its_test(pytester):
    pytester.makepyfile(
        f"{_HEAD}@pytest.mark.parametrize('body', {list(WRONG)!r})\n"
        "def test_it(page, body):\n    show(page, f'<!doctype html>{body}')\n"
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.parseoutcomes() == {"passed": len(WRONG), "errors": len(WRONG)}
    for said in WRONG.values():
        assert said in result.stdout.str()
