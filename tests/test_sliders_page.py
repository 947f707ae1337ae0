"""The sliders of a report in a real browser: its numbers are Python's, its curves move, and it says what left them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from simkv.formulas.concurrency import max_concurrency
from simkv.formulas.latency import average_latency
from simkv.formulas.overlap import feasible_beta, speedup, speedup_bounds, step_ideal, step_serial
from simkv.formulas.transfer import transfer_s
from simkv.report.document import Document, Section
from simkv.report.html.page import page as html
from simkv.report.sliders import sliders
from simkv.report.sliders.ground import Scene, read_scene
from simkv.scenario.explain import to_yaml
from simkv.scenario.resolve import resolve
from tests.browser import overflow, show
from tests.report_factory import HOSTILE
from tests.sliders_factory import DENSE, REUSE, SPARSE, WINDOWS, as_if_ran, ran

if TYPE_CHECKING:
    from playwright.sync_api import Page

REL = 1e-6
CALIBRATED = Path(__file__).parents[1] / "scenarios" / "calibrated-small.yaml"
GRID = [
    {"p": p, "beta": beta, "context": tokens, "bandwidth": times}
    for p, beta, tokens, times in itertools.product((0.1, 0.3, 1.0), (0.0, 0.45, 1.0), (0.3, 1.0, 3.7), (0.2, 1.0, 6.0))
]
"""Context and bandwidth as multiples of the scenario's own."""


@cache
def case(name: str) -> tuple[dict[str, Any], str, dict[str, Any] | None]:
    if name == "calibrated":
        return as_if_ran(500, 40), to_yaml(resolve(str(CALIBRATED))), None
    return ran({"dense": DENSE, "sparse": SPARSE, "reuse": REUSE, "windows": WINDOWS}[name], name != "reuse")


@cache
def text(name: str, scenario: str = "") -> str:
    summary, resolved, curves = case(name)
    widget = sliders(summary | ({"scenario": scenario} if scenario else {}), resolved, curves, str(CALIBRATED))
    assert widget is not None
    return html(Document(scenario or name, "", [Section("live", "Live closed forms", [widget])]))


def scene_of(name: str) -> Scene:
    scene = read_scene(*case(name), str(CALIBRATED))
    assert scene is not None
    return scene


def put(page: Page, **values: float) -> None:
    """Write values into the number boxes."""
    for key, value in values.items():
        page.locator(f'input[type="number"][data-key="{key}"]').fill(repr(value))


_VISIT = """points => points.map(values => {
  for (const [key, value] of Object.entries(values)) {
    const box = document.querySelector(`input[type="number"][data-key="${key}"]`);
    box.value = String(value);
    box.dispatchEvent(new Event("input", {bubbles: true}));
    if (box.getAttribute("aria-invalid") !== "false") throw new Error(`${key} = ${value} was refused`);
  }
  const charts = [...document.querySelectorAll("figure[data-chart]")];
  return Object.fromEntries(charts.map(one => [one.dataset.chart, {...one.dataset}]));
})"""


def visit(page: Page, points: list[dict[str, float]]) -> list[dict[str, dict[str, str]]]:
    """Write each of ``points`` into the number boxes, one after the other; return the data-* of all charts at each."""
    found: list[dict[str, dict[str, str]]] = page.evaluate(_VISIT, points)
    return found


def read(page: Page, chart: str) -> Mapping[str, str]:
    """Return the data-* of a chart."""
    found: dict[str, str] = page.locator(f'figure[data-chart="{chart}"]').evaluate("one => ({...one.dataset})")
    return found


def close(value: str, expected: float) -> None:
    assert float(value) == pytest.approx(expected, rel=REL)


def moved(scene: Scene, asked: Mapping[str, float]) -> tuple[float, float, int, float]:
    """Return p, β, context and bandwidth of a point of the grid, kept to what sliders allow."""
    longest = min(scene.config.engine.max_model_len, scene.context * 64)
    return asked["p"], asked["beta"], min(longest, int(scene.context * asked["context"])), round(
        scene.bytes_per_s * asked["bandwidth"], -8
    )  # fmt: skip


@pytest.mark.parametrize("name", ["dense", "sparse", "windows", "calibrated"])
def test_page_over_a_grid_of_values_shows_what_python_computes(page: Page, name: str) -> None:
    show(page, text(name))
    scene = scene_of(name)
    forms, engine = scene.forms, scene.config.engine
    points = [moved(scene, asked) for asked in GRID]
    boxes = [{"p": p, "beta": b, "context": tokens, "bandwidth": rate / 1e9} for p, b, tokens, rate in points]
    link, piece_bytes = scene.config.link, engine.block_bytes / scene.config.cost.layers
    for (p, beta, tokens, rate), charts in zip(points, visit(page, boxes), strict=True):
        p_hit = forms.p_hit(p)
        memory_s = forms.piece.vram_s + transfer_s(piece_bytes, rate, 1, link.latency_s, link.setup_s)
        average = charts["t_avg"]
        close(average["pHit"], p_hit)
        close(average["tAvgS"], average_latency(p_hit, forms.piece.vram_s, memory_s))
        read_tokens = tokens if forms.reads.most_tokens is None else min(tokens, forms.reads.most_tokens)
        steps, speeds = charts["t_step"], charts["speedup"]
        for n, found in ((scene.step_sequences, steps), (scene.speedup_sequences, speeds)):
            compute_s = scene.config.cost.decode(n, n * read_tokens)[0]
            moving_s = (1 - p_hit) * n * forms.read_bytes(tokens) / rate
            if found is steps:
                close(found["tComputeS"], compute_s)
                assert float(found["tTransferS"]) == pytest.approx(moving_s, rel=REL, abs=1e-15)
                close(found["tSerialS"], step_serial(compute_s, moving_s))
                close(found["tIdealS"], step_ideal(compute_s, moving_s))
                continue
            most, bounds = feasible_beta(compute_s, moving_s), speedup_bounds(compute_s, moving_s)
            close(found["betaMax"], most)
            close(found["speedup"], speedup(compute_s, moving_s, min(beta, most)))
            close(found["whatIf"], speedup(compute_s, moving_s, beta))
            close(found["sMax"], bounds.value)
            close(found["sMaxArticle"], bounds.article)
            assert found["binding"] == bounds.binding
            assert found["infeasible"] == str(beta > most).lower()
        room = engine.num_gpu_blocks * engine.block_bytes
        assert int(charts["concurrency"]["cMax"]) == max_concurrency(room, forms.sequence_bytes(tokens), p)


def test_page_hit_rate_over_lambda_lies_between_simulated_points(page: Page) -> None:
    show(page, text("sparse"))
    curves = case("sparse")[2]
    assert curves is not None
    rates = {row["lambda"]: row["hit_rate"] for row in curves["curves"]["lambda"]["rows"] if row["series"] == "score"}
    for lam in rates:
        put(page, **{"lambda": lam})
        close(read(page, "lambda")["hitRate"], rates[lam])
    put(page, **{"lambda": 0.25})
    close(read(page, "lambda")["hitRate"], (rates[0.0] + rates[0.5]) / 2)


@pytest.mark.parametrize(
    ("key", "charts"),
    [
        ("p", {"speedup"}),
        ("context", {"t_step", "speedup", "concurrency"}),
        ("bandwidth", {"t_avg", "t_step", "speedup"}),
    ],
)
def test_page_slider_moved_by_keys_redraws_the_curves_that_feel_it(page: Page, key: str, charts: set[str]) -> None:
    show(page, text("dense"))

    def drawn() -> dict[str, str]:
        curves = "all => Object.fromEntries(all.map(one => [one.dataset.chart, [...one.querySelectorAll("
        curves += "'svg[role=img] path.sl-line')].map(path => path.getAttribute('d')).join(' ')]))"
        found: dict[str, str] = page.locator("figure[data-chart]").evaluate_all(curves)
        return found

    before = drawn()
    page.locator(f'input[type="range"][data-key="{key}"]').focus()
    for _ in range(12):
        page.keyboard.press("ArrowLeft")
    after = drawn()
    assert {chart for chart in before if before[chart] != after[chart]} >= charts
    assert "NaN" not in "".join(after.values())
    put(page, **{key: float(page.locator(f'input[type="number"][data-key="{key}"]').get_attribute("min") or 0)})
    assert drawn() != after


def test_page_left_says_of_what_the_points_are_and_reset_restores(page: Page) -> None:
    show(page, text("dense"))
    rest = page.locator(".widget").inner_html()
    reset = page.locator("button.sl-reset")
    assert reset.is_disabled()
    scene = scene_of("dense")
    put(page, context=scene.context * 2, bandwidth=7)
    note = page.locator('figure[data-chart="t_step"] .sl-points').inner_text()
    own = f"context ({scene.context:,} tokens) and bandwidth"
    assert note.startswith(f"Simulated points are of the scenario's own {own}")
    assert page.locator('figure[data-chart="concurrency"] .sl-points').inner_text().count("bandwidth") == 0
    reset.click()
    assert page.locator(".sl-points").all_inner_texts() == [""] * page.locator(".sl-points").count()
    assert page.locator(".widget").inner_html() == rest


def test_page_beta_beyond_one_step_is_marked_and_named(page: Page) -> None:
    show(page, text("dense"))
    put(page, beta=1, bandwidth=3)
    figure = page.locator('figure[data-chart="speedup"]')
    assert figure.get_attribute("data-infeasible") == "true"
    assert figure.locator(".sl-now.sl-beyond").count() == 1
    assert "isn't feasible" in figure.locator(".sl-warn").inner_text()
    put(page, beta=0.0)
    assert figure.get_attribute("data-infeasible") == "false"
    assert figure.locator(".sl-warn").count() == 0


def test_page_text_alternatives_follow_the_sliders(page: Page) -> None:
    show(page, text("dense"))
    pictures = page.locator('figure[data-chart] svg[role="img"]')
    before = pictures.evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
    put(page, p=0.77)
    after = pictures.evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
    assert len(before) == 4
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert page.locator("input").evaluate_all("all => all.every(one => one.labels.length || one.ariaLabel)")
    assert page.locator('input[type="range"][data-key="p"]').get_attribute("aria-valuetext") == "0.77"


def test_page_nonsense_in_a_box_changes_nothing_and_is_marked(page: Page) -> None:
    show(page, text("dense"))
    before = dict(read(page, "concurrency"))
    box = page.locator('input[type="number"][data-key="p"]')
    for nonsense in ("7", "-1", ""):
        box.fill(nonsense)
        assert box.get_attribute("aria-invalid") == "true"
        assert read(page, "concurrency") == before
    box.blur()
    assert box.get_attribute("aria-invalid") == "false"
    assert float(box.input_value()) == 0.5


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["sparse", "reuse", "windows"])
def test_page_of_380_pixels_has_nothing_beside_it(page: Page, name: str, dark: bool) -> None:
    show(page, text(name), 380, dark)
    put(page, p=0.07, context=300)
    assert overflow(page) <= 0
    wide = page.locator("figure[data-chart]").evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
    assert wide and all(width > 280 for width in wide)


@pytest.mark.parametrize("what", HOSTILE)
def test_page_of_a_hostile_name_is_harmless(page: Page, what: str) -> None:
    """The fixture fails for a dialog, a request or a complaint."""
    show(page, text("dense", HOSTILE[what]))
    assert page.locator("figure[data-chart]").count() == 4
    assert page.locator(".widget img, .widget iframe").count() == 0
