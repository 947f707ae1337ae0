"""The terminal summary: fits the screen, says what the summary says, and harms no terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simkv.results import quantity
from simkv.results.result import RunResult
from simkv.results.summary import summarize
from simkv.results.text import render
from tests.results_factory import make_context, make_result, make_run

FULL: dict[str, Any] = {
    "slo": {"ttft_p95": 2.0, "itl_p95": 0.06},
    "cost": {"gpu_hour": 2.0, "dram_gib_hour": 0.003, "ssd_tib_hour": 0.05, "currency": "USD", "source": "a list"},
    "concurrency_formula": 13,
    "closed_form": {"concurrency": 13, "ttft_s": 0.12, "kv_bytes": 131072, "speedup_max": 1.8},
    "notes": ("Quality is not modelled.",),
}


@pytest.mark.parametrize("width", [60, 80, 100, 300])
@pytest.mark.parametrize("n", [0, 1, 5000])
def test_render_fits_the_screen(n: int, width: int) -> None:
    lines = render(make_result(n, **FULL), Path("reports/chatbot"), width, ascii_only=False).splitlines()
    assert max(len(line) for line in lines) <= (100 if width >= 100 else max(width, 98))
    assert len(lines) <= (40 if width >= 100 else 60)


def test_render_begins_with_question_and_answer() -> None:
    result = make_result(2000)
    lines = render(result, None, ascii_only=False).splitlines()
    assert lines[0] == "chatbot: How much does a DRAM tier buy this chatbot?"
    assert lines[1].startswith("Offloading helps: mean TTFT")


def test_render_shows_the_figures_of_the_summary() -> None:
    result = make_result(2000, rate=1.5, **FULL)
    text = render(result, Path("reports/chatbot"), ascii_only=False)
    for key in ("ttft_s", "itl_s", "tpot_s", "e2e_s", "queue_s"):
        for statistic in ("mean", "p95", "p99"):
            assert quantity.seconds(result.summary[key][statistic]) in text
    for part in ("VRAM 10 %", "DRAM 30 %", "ceiling 45 %", "no offload", "← bottleneck", "closed form 13",
                 "ttft 120 ms (simulated", "reports/chatbot/", "USD per million", "Note: Quality"):  # fmt: skip
        assert part in text


def test_render_names_bounds_and_whose_formula_a_closed_form_is() -> None:
    forms = {"published_ttft_s": 0.2, "speedup_most": 1.8, "speedup_most_article": 2.5}
    text = " ".join(render(make_result(50, closed_form=forms), None, ascii_only=False).split())
    for part in ("FlexGen's formula: ttft 200 ms", "speedup at most 1.80", "the article's bound 1 + T_t / T_c = 2.50"):
        assert part in text


def test_render_puts_warnings_in_plain_sight() -> None:
    data = make_run(500, rate=5.0, rejected=2)
    result = RunResult(summarize(data, make_context()), data, "", "chatbot", "h")
    lines = render(result, None, ascii_only=False).splitlines()
    assert [line.split(":")[0] for line in lines[:12] if line.startswith("!")] == ["! rejected", "! not_stationary"]


def test_render_for_a_plain_terminal_is_ascii() -> None:
    text = render(make_result(500, question="Wie groß? 🎉"), Path("out"), ascii_only=True)
    assert text.isascii() and "+/-" in text and "#" in text


def test_render_of_hostile_names_sends_no_control_characters() -> None:
    text = render(
        make_result(50, scenario="\x1b[2J\x07evil\r\n" + "x" * 300, question="\x1b]0;q\x07"), Path("a\x1b[1mb")
    )
    assert not any(not c.isprintable() for c in text if c != "\n")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0324, "32.4 ms"), (0.0, "0 s"), (65.46, "65.5 s"), (3561.2, "3561 s"), (86400 * 4, "4.00 d"), (2e-5, "20.0 µs"),
     (None, "-"), (-0.2, "-200 ms"), (1e-12, "1.00e-12 s"), (0.9999, "1.00 s")],
)  # fmt: skip
def test_seconds_adapts_its_unit(value: float | None, text: str) -> None:
    assert quantity.seconds(value) == text


@pytest.mark.parametrize(
    ("shown", "text"),
    [(quantity.share(0.123), "12 %"), (quantity.share(0.0456), "4.6 %"), (quantity.share(0.0001), "<0.1 %"),
     (quantity.share(0.999), "99.9 %"), (quantity.share(1.0), "100 %"), (quantity.share(0.9999), ">99.9 %"),
     (quantity.share(0.0), "0 %"),
     (quantity.count(144793823), "145 M"), (quantity.count(13.0), "13"), (quantity.count(0.4026), "0.403"),
     (quantity.data(2**30), "1.00 GiB"), (quantity.data(17), "17 B"), (quantity.change(-0.66), "-66 %"),
     (quantity.change(0.034), "+3.4 %"), (quantity.count(31000), "31.0 k"), (quantity.count(9999), "9999")],
)  # fmt: skip
def test_quantities_read_well(shown: str, text: str) -> None:
    assert shown == text
