"""The article's program and claims as scenarios, and the page that tells what comes out."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from simkv.scenario.resolve import resolve
from simkv.simulation import run_scenario
from tests.article import PAGE, PLAIN, ROOT, RUN, TABLE, TABLES, summary, table
from tests.article_program import RING, STEPS, needed, totals

TEXT = PAGE.read_text("utf-8")
LOG = ROOT / "scenarios" / "article-toy.access.jsonl"
FAST_SSD = ("tiers.ssd.read=inf GB/s",)


def makespans(name: str, *assignments: str) -> tuple[float, float]:
    """Return how long a toy takes without and with prefetch."""
    return tuple(summary(name, assignments, which)["makespan_s"] for which in ("no_prefetch", RUN))  # type: ignore


# ---- the program


def test_toy_log_is_what_the_program_reads_in_its_order() -> None:
    rows = [json.loads(line) for line in LOG.read_text("utf-8").splitlines()]
    assert [row["step"] for row in rows] == list(range(STEPS))
    assert [row["blocks"] for row in rows] == [list(needed(step)) for step in range(STEPS)]
    assert [row["prefetch"] for row in rows] == [[(step + 1) % RING] for step in range(STEPS)]


def test_toy_prints_what_the_program_prints() -> None:
    assert makespans("article-toy") == totals() == (527.0, 288.0)


def test_toy_without_prefetch_loads_539_times() -> None:
    moved = summary("article-toy", (), "no_prefetch")["bytes"]
    assert moved["h2d"] == 539 * 1024


@pytest.mark.parametrize(("name", "stalls"), [("article-toy-lru", False), ("article-toy-corrected", True)])
def test_corrected_toy_with_instant_ssd_equals_the_reference_that_keeps_a_steps_reads(name: str, stalls: bool) -> None:
    expected = totals(proper_lru=True, keeps_step=True, stalls=stalls, ssd_cost=1.0)
    assert makespans(name, *FAST_SSD) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("name", "low", "high"), [("article-toy-lru", 1.6, 1.7), ("article-toy-corrected", 1.28, 1.5)])
def test_corrected_toy_is_less_fast_than_the_article_says(name: str, low: float, high: float) -> None:
    without, ahead = makespans(name)
    assert low < without / ahead < high < 527 / 288


@pytest.mark.parametrize("name", ["article-toy", "article-toy-lru", "article-toy-corrected"])
def test_toys_keep_every_law_and_differ_in_two_options(name: str) -> None:
    result = run_scenario(resolve(str(ROOT / "scenarios" / f"{name}.yaml")), audit=True)
    own, first = (resolve(str(ROOT / "scenarios" / f"{n}.yaml")).scenario for n in (name, "article-toy"))
    assert result.data.finished == 1
    alike = {"name", "question", "offload"}
    assert own.model_dump(exclude=alike) == first.model_dump(exclude=alike)
    assert own.offload.model_dump(exclude={"eviction", "prefetch"}) == first.offload.model_dump(
        exclude={"eviction", "prefetch"}
    )


# ---- the page


def _tables() -> list[Any]:
    slow = (pytest.mark.slow,)
    return [
        pytest.param(found, id=found["name"], marks=() if found["name"] in ("toy", "p03") else slow)
        for found in TABLE.finditer(TEXT)
    ]


@pytest.mark.parametrize("found", _tables())
def test_page_table_is_what_runs_give(found: re.Match[str]) -> None:
    assert found["rows"] == table(found["name"]), "run: make readme"


def test_page_has_every_table_and_names_every_scenario() -> None:
    assert {found["name"] for found in TABLE.finditer(TEXT)} == {"toy", *TABLES}
    named = set(re.findall(r"(?:scenarios/|`)(article-[\w-]+|long-context-active)\.yaml", TEXT))
    assert named == {path.stem for path in (ROOT / "scenarios").glob("article-*.yaml")} | {"long-context-active"}


@pytest.mark.parametrize("name", sorted({spec.scenario for spec in TABLES.values()} - {"long-context-active"}))
def test_scenario_of_a_claim_names_the_lines_that_the_page_uses(name: str) -> None:
    comments = (ROOT / "scenarios" / f"{name}.yaml").read_text("utf-8")
    spec = next(spec for spec in TABLES.values() if spec.scenario == name)
    for assignment in {one for row in spec.rows for one in row.assignments}:
        path = assignment.partition("=")[0]
        assert f"--set {path}=" in comments or f"--set '{path}=" in comments


# ---- what the page says in words


def test_p03_concurrency_is_eleven_for_staging_and_throughput_falls() -> None:
    run, plain = (summary("article-p03-concurrency", (), which) for which in (RUN, PLAIN))
    assert run["concurrency"]["formula"] == 13
    assert (plain["concurrency"]["max"], run["concurrency"]["max"]) == (4, 11)
    step_bytes = run["bytes"]["h2d"] * run["t_step_s"] / run["makespan_s"]
    assert step_bytes == pytest.approx(11 * 0.7 * 10e9, rel=0.005)
    assert run["output_tokens_per_s"] < plain["output_tokens_per_s"] / 30


@pytest.mark.slow
def test_support_bot_throughput_triples_by_histories_in_dram_alone() -> None:
    rates = [row["output_tokens_per_s"] for row in _rows("support-bot")]
    plain, dense, _, reuse, short, _ = rates
    assert dense < plain and reuse > 3 * plain and short > reuse


@pytest.mark.slow
def test_summaries_on_half_the_cards_take_more_than_claimed() -> None:
    eight, four, offload, _, free = (row["makespan_s"] for row in _rows("batch-summaries"))
    assert 55 / 40 < four / eight < 2 < offload / eight
    assert free == pytest.approx(four, rel=0.01)


@pytest.mark.slow
def test_maas_reaches_18_and_saves_nothing() -> None:
    plain, dense, free, alone, alone_free = _rows("maas")
    cost = "cost_per_million_output_tokens"
    assert 17 < dense["concurrency"]["mean"] < 19 and plain["concurrency"]["max"] == 8
    assert dense[cost] > 1.7 * plain[cost]
    assert 8 / 18 < alone_free[cost] / alone[cost] < free[cost] / plain[cost] < 1


def _rows(name: str) -> list[Any]:
    spec = TABLES[name]
    return [summary(spec.scenario, row.assignments, row.which) for row in spec.rows]


# ---- p, β and λ


def _long(**at: float) -> tuple[float, float]:
    names = {"p": "offload.residency", "beta": "offload.prefetch.beta", "lam": "offload.eviction.lambda"}
    found = summary("long-context-active", tuple(f"{names[key]}={value}" for key, value in at.items()), RUN)
    return found["p_hit"], found["t_step_s"]


@pytest.mark.slow
def test_long_context_p_beta_and_lambda_all_matter() -> None:
    base = _long()
    for other in (_long(p=0.1), _long(beta=0), _long(p=0.1, lam=1)):
        assert other[0] < base[0] - 0.01 and other[1] > base[1] * 1.05
    middle = _long(p=0.1, lam=0.8)
    for end in (_long(p=0.1, lam=0), _long(p=0.1, lam=1)):
        assert abs(middle[0] - end[0]) > 0.005 and abs(middle[1] / end[1] - 1) > 0.01


def test_long_context_all_resident_moves_nothing_and_runs_fewer_at_once() -> None:
    found = summary("long-context-active", ("offload.residency=1",), RUN)
    assert found["p_hit"] == 1 and found["bytes"]["h2d"] == 0 and found["beta"] is None
    assert found["concurrency"]["max"] == 4


def test_long_context_says_that_a_predictor_of_the_last_step_fetches_nothing() -> None:
    found = summary("long-context-active", ("offload.prefetch={policy: next_step}",), RUN)
    assert "prefetch_idle" in {one["code"] for one in found["warnings"]} and found["prefetch"] is None
    again = summary("long-context-active", ("offload.prefetch={policy: none}",), RUN)
    assert "prefetch_idle" not in {one["code"] for one in again["warnings"]}
    assert found["t_step_s"] == again["t_step_s"]


def test_baselines_stand_beside_their_own_closed_forms() -> None:
    plain = summary("article-p03-concurrency", (), PLAIN)
    assert plain["concurrency"]["formula"] == 4
    assert plain["t_avg_s"]["formula"] == plain["t_avg_s"]["service"]
