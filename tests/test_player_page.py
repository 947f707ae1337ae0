"""The block player in a browser: what it shows at any time is what the recording says, however one gets there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from simkv.report.document import Document, Section
from simkv.report.html.page import page as written
from simkv.report.player import player
from simkv.sim.record.recording import Recording
from tests.browser import overflow, show
from tests.player_factory import HOSTILE, RESOLVED, SUMMARY, Place, named, sessions, truth

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

TILES = """() => [...document.querySelectorAll('.player .shelf')].map(shelf =>
    [...shelf.querySelectorAll('.tile[data-cell]')].map(tile => [Number(tile.dataset.cell), tile.dataset.state]))"""
SLOTS = "() => [...document.querySelectorAll('.player .tile')].map(tile => tile.dataset.cell ?? '').join()"


def text_of(recording: Recording, resolved: str = RESOLVED) -> str:
    """Return a page with the player of ``recording`` on it."""
    widget = player(recording, SUMMARY, resolved)
    assert widget is not None
    return written(Document("A run", "played", [Section("player", "Blocks", [widget])]))


@pytest.fixture(scope="module")
def recording() -> Recording:
    return sessions()


@pytest.fixture(scope="module")
def text(recording: Recording) -> str:
    return text_of(recording)


@pytest.fixture
def opened(page: Page, text: str) -> Page:
    return show(page, text)


def whole(page: Page) -> Locator:
    return page.locator(".player")


def at(page: Page) -> float:
    """Return the time of the run that the player shows."""
    return float(whole(page).get_attribute("data-time") or "nan")


def wait(page: Page, true: Callable[[], bool]) -> None:
    """Wait until something holds."""
    for _ in range(200):
        if true():
            return
        page.wait_for_timeout(25)
    raise AssertionError("it never was so")


def put(page: Page, slider: str, value: str) -> None:
    """Move a slider; ``value`` may be ``max``."""
    move = "(one, to) => { one.value = to === 'max' ? one.max : to; one.dispatchEvent(new Event('input')); }"
    page.locator(slider).evaluate(move, value)


def scrub(page: Page, recording: Recording, t_s: float) -> None:
    """Move the slider to a time of the run."""
    share = (t_s - recording.begin_s) / (recording.end_s - recording.begin_s)
    page.locator(".scrub").evaluate(
        "(one, share) => { one.value = share; one.dispatchEvent(new Event('input')); }", share
    )


def states(page: Page, recording: Recording) -> dict[tuple[int, str], str]:
    """Return what is drawn on each shelf: by pool and content's name, ``here`` or ``coming``."""
    widget = player(recording, SUMMARY, RESOLVED)
    assert widget is not None
    names = [widget.data["labels"][label] for label in widget.data["cells"]["label"]]
    return {(pool, names[cell]): state for pool, shelf in enumerate(page.evaluate(TILES)) for cell, state in shelf}


def expected(recording: Recording, t_s: float) -> dict[tuple[int, str], str]:
    return {
        (pool, recording.labels[label]): "here" if here else "coming"
        for (pool, label, _), here in truth(recording, t_s).items()
    }


def held(recording: Recording, t_s: float, tier: int) -> int:
    """Return the blocks of a shelf that aren't free, by the recording."""
    state: dict[Place, bool] = truth(recording, t_s)
    alone = [
        blocks
        for when, where, blocks in zip(*(recording.private[name] for name in ("t_s", "tier", "blocks")), strict=True)
        if where == tier and when <= t_s
    ]
    return sum(pool == tier for pool, _, _ in state) + (int(alone[-1]) if alone else 0)


def moments(recording: Recording) -> list[float]:
    """Return times within the window, some of them in the middle of a transfer."""
    transfers = zip(recording.slices["begin_s"], recording.slices["end_s"], strict=True)
    middles = [(begin + end) / 2 for begin, end in transfers]
    return [recording.begin_s, *middles[::9], recording.end_s - 0.01]


def test_player_page_begins_with_the_window_and_waits(opened: Page, recording: Recording) -> None:
    assert at(opened) == recording.begin_s
    assert states(opened, recording) == expected(recording, recording.begin_s)
    assert whole(opened).get_attribute("data-playing") == "false"


def test_player_page_shows_what_the_recording_says_at_any_time(opened: Page, recording: Recording) -> None:
    for t_s in moments(recording):
        scrub(opened, recording, t_s)
        assert at(opened) == pytest.approx(t_s, abs=1e-6)
        assert states(opened, recording) == expected(recording, t_s)
        for tier, name in enumerate(("vram", "dram", "ssd")):
            assert int(whole(opened).get_attribute(f"data-{name}") or -1) == held(recording, t_s, tier)
            shelf = opened.locator(f'.shelf[data-tier="{name}"]')
            assert f"{held(recording, t_s, tier)} of " in shelf.inner_text()


def test_player_page_steps_go_there_and_back_through_the_same_states(opened: Page, recording: Recording) -> None:
    forward, back = opened.locator(".forward"), opened.locator(".back")
    seen = [(at(opened), opened.evaluate(SLOTS))]
    for _ in range(25):
        forward.press("Enter")
        seen.append((at(opened), opened.evaluate(SLOTS)))
    assert [time for time, _ in seen] == sorted({time for time, _ in seen})
    for time, slots in reversed(seen[:-1]):
        back.press("Enter")
        assert (at(opened), opened.evaluate(SLOTS)) == (time, slots)
    for time, slots in (seen[7], seen[23], seen[12]):
        scrub(opened, recording, time + 1e-6)
        assert opened.evaluate(SLOTS) == slots


def test_player_page_steps_tell_what_happens_and_playing_is_silent(opened: Page) -> None:
    status = opened.locator(".player .status")
    for _ in range(3):
        opened.locator(".forward").click()
    assert status.get_attribute("aria-live") == "polite"
    assert "session" in status.inner_text() and "t = 100." in status.inner_text()
    opened.locator(".play").click()
    assert status.get_attribute("aria-live") == "off"


def test_player_page_plays_until_paused(opened: Page, recording: Recording) -> None:
    opened.locator(".play").click()
    wait(opened, lambda: at(opened) > 100.2)
    opened.locator(".play").click()
    assert whole(opened).get_attribute("data-playing") == "false"
    stopped = at(opened)
    opened.wait_for_timeout(150)
    assert at(opened) == stopped
    assert states(opened, recording) == expected(recording, stopped)


def test_player_page_plays_faster_when_asked_and_ends_with_the_window(opened: Page, recording: Recording) -> None:
    put(opened, ".speed-input", "max")
    assert "1,000×" in opened.locator(".slider.speed").inner_text()
    opened.locator(".play").click()
    wait(opened, lambda: whole(opened).get_attribute("data-playing") == "false")
    assert at(opened) == pytest.approx(recording.end_s, abs=1e-6)


def test_player_page_speed_is_preset_to_half_a_minute(opened: Page) -> None:
    seconds = float(opened.locator(".slider.speed").inner_text().split("all in ")[1].split(" s")[0])
    assert 18 < seconds < 48


def test_player_page_keys_play_and_step(opened: Page) -> None:
    opened.locator(".scrub").focus()
    opened.keyboard.press("ArrowRight")
    first = at(opened)
    opened.keyboard.press("ArrowRight")
    assert at(opened) > first > 100.0
    opened.keyboard.press("ArrowLeft")
    assert at(opened) == first
    opened.keyboard.press("Space")
    assert whole(opened).get_attribute("data-playing") == "true"
    opened.keyboard.press("Space")
    opened.keyboard.press("Home")
    assert at(opened) == 100.0 and whole(opened).get_attribute("data-playing") == "false"


def transfer(recording: Recording, keep: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the first transfer that ``keep`` wants."""
    rows = [dict(zip(recording.transfers, row, strict=True)) for row in zip(*recording.transfers.values(), strict=True)]
    return next(row for row in rows if keep(row))


def test_player_page_blocks_on_their_way_are_between_the_shelves(opened: Page, recording: Recording) -> None:
    one = transfer(recording, lambda row: row["lane"] == 0)
    heights = []
    for share in (0.2, 0.5, 0.8):
        scrub(opened, recording, one["submitted_s"] + share * (one["end_s"] - one["submitted_s"]))
        assert whole(opened).get_attribute("data-movers") == "1"
        box = opened.locator(".mover.up:not([visibility=hidden]) rect").bounding_box()
        assert box is not None
        heights.append(box["y"])
        done = opened.locator(".strip.up .strip-done >> nth=0").evaluate("one => parseFloat(one.style.width)")
        assert done == pytest.approx(100 * share, abs=2)
    assert heights == sorted(heights, reverse=True) and heights[0] - heights[-1] > 40


def test_player_page_reduced_motion_draws_no_movers_and_steps(page: Page, recording: Recording) -> None:
    show(page, text_of(recording), still=True)
    one = transfer(recording, lambda row: row["lane"] == 0)
    scrub(page, recording, (one["submitted_s"] + one["end_s"]) / 2)
    assert whole(page).get_attribute("data-movers") == "0"
    assert "coming" in states(page, recording).values()
    page.locator(".forward").click()
    assert at(page) > one["submitted_s"]
    assert page.locator(".flight").count() == 0


def test_player_page_prefetches_are_marked_by_what_became_of_them(opened: Page, recording: Recording) -> None:
    for number, mark in ((1, "✓"), (2, "!"), (3, "✕")):
        one = transfer(recording, lambda row, fate=number: row["fate"] == fate)
        scrub(opened, recording, (one["submitted_s"] + one["end_s"]) / 2)
        assert opened.locator(".tile.ahead .mark").all_text_contents() == [mark]


@pytest.mark.parametrize("act", ["hover", "focus", "tap"])
def test_player_page_tells_a_blocks_story(opened: Page, recording: Recording, act: str) -> None:
    one = transfer(recording, lambda row: row["lane"] == 0 and row["fate"] == 0)
    scrub(opened, recording, one["end_s"] + 0.001)
    tile = opened.locator('.shelf[data-tier="vram"] .tile[data-state="here"]').last
    {"hover": tile.hover, "focus": tile.focus, "tap": tile.click}[act]()
    story = opened.locator(".story").inner_text()
    assert "session" in story and "Now in VRAM" in story and "score" in story
    assert "load from DRAM to VRAM for request 7 in " in story and "used" in story
    assert "in DRAM as the window begins" in story


def test_player_page_story_can_be_closed(page: Page, text: str) -> None:
    show(page, text, width=380)
    page.locator(".tile[data-cell]").first.click()
    assert page.locator(".story").get_attribute("data-cell") != "-1"
    page.locator(".story-close").click()
    assert page.locator(".story").get_attribute("data-cell") == "-1"
    assert not page.locator(".story-close").is_visible()


def test_player_page_story_that_opens_over_the_block_it_is_of_stays(page: Page, text: str) -> None:
    show(page, text, width=380)
    tile = page.locator('.tile[data-state="here"]').first
    tile.evaluate("(one) => scrollBy(0, one.getBoundingClientRect().top - innerHeight + 40)")
    page.evaluate("""() => {
      window.changes = 0;
      const seen = new MutationObserver(() => { window.changes += 1; });
      seen.observe(document.querySelector(".story"), { attributes: true });
    }""")
    box = tile.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_timeout(500)
    assert page.locator(".story").get_attribute("data-cell") != "-1"
    assert page.evaluate("window.changes") <= 2
    page.mouse.move(5, 5)
    wait(page, lambda: page.locator(".story").get_attribute("data-cell") == "-1")


def test_player_page_arrows_go_from_block_to_block(opened: Page) -> None:
    tile = opened.locator('.tile[tabindex="0"]')
    assert tile.count() == 1
    tile.focus()
    first = opened.locator(".story-title").inner_text()
    opened.keyboard.press("ArrowRight")
    assert opened.locator(".story-title").inner_text() != first
    assert at(opened) == 100.0


def test_player_page_lambda_changes_the_heat(opened: Page, recording: Recording) -> None:
    tiles = "() => [...document.querySelectorAll('.shelf[data-tier=dram] .tile[data-state=here]')]"
    fills = f"{tiles}.map(one => getComputedStyle(one.querySelector('.body')).fill)"
    heats = f"{tiles}.map(one => Number(one.dataset.heat))"
    scrub(opened, recording, 106.0)
    assert "λ = 0.60" in opened.locator(".slider.lambda").inner_text()
    before = opened.evaluate(fills)
    put(opened, ".lambda-input", "1")
    assert opened.evaluate(fills) != before and len(set(before)) > 3
    recency = opened.evaluate(heats)
    assert min(recency) == 0 and max(recency) == 100
    put(opened, ".lambda-input", "0")
    assert opened.evaluate(heats) != recency


@pytest.mark.parametrize("dark", [False, True])
def test_player_page_narrow_screen_needs_no_sideways_scrolling(page: Page, recording: Recording, dark: bool) -> None:
    show(page, text_of(named(recording, HOSTILE)), width=380, dark=dark)
    scrub(page, recording, 106.0)
    page.locator(".tile[data-cell]").last.click()
    assert overflow(page) == 0


def test_player_page_hostile_names_are_only_shown(page: Page, recording: Recording) -> None:
    show(page, text_of(named(recording, HOSTILE * 3)))
    said = set()
    for _ in range(15):
        page.locator(".forward").press("Enter")
        said.add(page.locator(".player .status").inner_text())
    page.locator('.tile[data-cell="0"]').first.hover()
    assert page.locator(".story-title").inner_text().startswith(HOSTILE[0])
    assert any(HOSTILE[0] in line for line in said)
    assert page.locator(".player img, .player script").count() == 0


def test_player_page_two_players_play_apart(page: Page, recording: Recording) -> None:
    widget = player(recording, SUMMARY, RESOLVED)
    assert widget is not None
    show(page, written(Document("Two", "", [Section(key, key, [widget]) for key in ("one", "two")])))
    page.locator(".forward").first.click()
    times = [float(one.get_attribute("data-time") or "nan") for one in whole(page).all()]
    assert times[0] > times[1] == 100.0
