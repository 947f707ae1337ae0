"""The step model asked by itself, figures fitted to what it says, and how they are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from simkv.catalog import load_hardware, load_model
from simkv.errors import InputError
from simkv.formulas.step import step_cost
from simkv.validation import families as families_of
from simkv.validation.asks.step import answer, step_of
from simkv.validation.fit import FIGURES, Point, fit, points_of, points_to_fit
from simkv.validation.question import Question
from simkv.validation.read import Read, own_cases
from simkv.validation.schema import Case, Observation

COST = step_cost(load_model("llama-3.1-8b"), load_hardware("h100-sxm5-80gb"))
STEP = {"model": "llama-3.1-8b", "hardware": "h100-sxm5-80gb"}
TRUE = {"flops_efficiency": 0.61, "weight_bandwidth_efficiency": 0.77, "layer_overhead_s": 2e-5}


def ask(section: dict[str, Any], *metrics: str, **settings: Any) -> dict[str, float]:
    """Return metrics of a step section."""
    names = tuple((name.replace("__", "."), value) for name, value in settings.items())
    return answer(Question("a-case", "step", section, names, metrics))


def told(section: dict[str, Any], *metrics: str) -> str:
    """Return what is wrong with a section."""
    with pytest.raises(InputError) as refused:
        ask(section, *metrics)
    return str(refused.value)


# ---- asking


def test_prefill_in_one_step_is_the_models_mixed_step() -> None:
    found = ask({**STEP, "work": {"prefill": {"tokens": 5000}}}, "seconds", "prompt_tokens_per_s")
    assert found["seconds"] == COST.mixed(0, 0, [(5000, 0)], 1)
    assert found["prompt_tokens_per_s"] == pytest.approx(5000 / found["seconds"])


def test_prefill_within_a_budget_is_cut_and_packed() -> None:
    section = {**STEP, "work": {"prefill": {"sequences": 3, "tokens": 3000, "budget": 4096}}}
    steps = [
        COST.mixed(0, 0, [(3000, 0), (1096, 0)], 1),
        COST.mixed(0, 0, [(1904, 1096), (2192, 0)], 1),
        COST.mixed(0, 0, [(808, 2192)], 1),
    ]
    assert ask(section, "seconds")["seconds"] == pytest.approx(sum(steps), rel=1e-12)


def test_prefill_of_a_cached_prefix_computes_the_rest_only() -> None:
    section = {**STEP, "work": {"prefill": {"tokens": 8000, "cached_tokens": 7000}}}
    found = ask(section, "seconds", "prompt_tokens_per_s")
    assert found["seconds"] == COST.mixed(0, 0, [(1000, 7000)], 1)
    assert found["prompt_tokens_per_s"] == pytest.approx(1000 / found["seconds"])


def test_decode_is_the_sum_of_its_steps() -> None:
    section = {**STEP, "work": {"decode": {"sequences": 8, "context_tokens": 100, "steps": 50}}}
    each = [COST.decode(8, 8 * (100 + step))[0] for step in range(50)]
    found = ask(section, "decode_s", "step_s", "output_tokens_per_s")
    assert found["decode_s"] == pytest.approx(sum(each), rel=1e-12)
    assert found["step_s"] == pytest.approx(sum(each) / 50)
    assert found["output_tokens_per_s"] == pytest.approx(400 / sum(each))


def test_decode_across_a_window_bends_where_the_model_does() -> None:
    section = {"model": "gpt-oss-20b", "hardware": "h100-sxm5-80gb",
               "work": {"decode": {"sequences": 4, "context_tokens": 100, "steps": 60}}}  # fmt: skip
    cost = step_cost(load_model("gpt-oss-20b"), load_hardware("h100-sxm5-80gb"))
    each = [cost.decode(4, 4 * (100 + step))[0] for step in range(60)]
    assert ask(section, "seconds")["seconds"] == pytest.approx(sum(each), rel=1e-12)


def test_output_rate_counts_first_tokens_of_the_prefill() -> None:
    work = {"prefill": {"sequences": 8, "tokens": 32}, "decode": {"sequences": 8, "context_tokens": 33, "steps": 127}}
    found = ask({**STEP, "work": work}, "seconds", "prefill_s", "decode_s", "output_tokens_per_s")
    assert found["seconds"] == found["prefill_s"] + found["decode_s"]
    assert found["output_tokens_per_s"] == pytest.approx(8 * 128 / found["seconds"])


def test_linear_part_leaves_attention_head_and_all_reduce_out() -> None:
    section = {**STEP, "mode": "kernels", "part": "linear", "work": {"decode": {"sequences": 64, "context_tokens": 9}}}
    kernels = step_cost(load_model("llama-3.1-8b"), load_hardware("h100-sxm5-80gb"), mode="kernels")
    assert ask(section, "seconds")["seconds"] == pytest.approx(kernels.overhead_s + kernels.linear.seconds(64))
    split = ask({**section, "tensor_parallel": 8}, "seconds")["seconds"]
    faster = ask({**section, "tensor_parallel": 8, "figures": {"allreduce_latency_s": 1.0}}, "seconds")["seconds"]
    assert split == pytest.approx(faster) and split < 0.5 * ask(section, "seconds")["seconds"]


def test_figures_of_a_case_replace_the_catalogues() -> None:
    section = {**STEP, "tensor_parallel": 8, "work": {"prefill": {"tokens": 8192}}}
    slow = ask({**section, "figures": {"gpu_link_bytes_per_s": 25e9}}, "seconds")["seconds"]
    assert slow > 1.5 * ask(section, "seconds")["seconds"]


def test_synchronous_steps_take_the_hosts_time_more() -> None:
    section = {**STEP, "work": {"decode": {"sequences": 1, "context_tokens": 9, "steps": 10}}}
    more = ask({**section, "mode": "synchronous"}, "seconds")["seconds"] - ask(section, "seconds")["seconds"]
    assert more == pytest.approx(10 * load_hardware("h100-sxm5-80gb").value("host_step_overhead_s"))


def test_settings_are_laid_over_the_section_and_null_takes_work_away() -> None:
    section = {**STEP, "work": {"prefill": {"tokens": 8192}}}
    found = ask(section, "seconds", work__prefill=None, work__decode={"context_tokens": 9})
    assert found["seconds"] == COST.decode(1, 9)[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"work": {}}, "nothing to do"),
        ({"work": {"prefill": {"tokens": 10, "cached_tokens": 10}}}, "cached_tokens"),
        ({"work": {"prefill": {"tokens": 0}}}, "work.prefill.tokens"),
        ({"work": {"prefill": {"sequences": 100_000, "tokens": 10**8, "budget": 1}}}, "chunks of the prompts"),
        ({"work": {"decode": {"context_tokens": 1, "steps": True}}}, "work.decode.steps"),
        ({"model": "llama-9"}, "llama-9"),
        ({"hardware": "h1000"}, "h1000"),
        ({"mode": "fast"}, "step.mode"),
        ({"part": "attention"}, "step.part"),
        ({"figures": {"flops": 1.0}}, "no figure 'flops'"),
        ({"figures": {"hbm_bytes_per_s": float("nan")}}, "figures.hbm_bytes_per_s"),
        ({"weight_dtype": "fp3"}, "fp3"),
        ({"speed": 1}, "step.speed"),
    ],
)
def test_faulty_section_names_what_is_wrong(change: dict[str, Any], says: str) -> None:
    assert says in told({**STEP, "work": {"prefill": {"tokens": 10}}, **change}, "seconds")


def test_metric_of_work_that_is_not_asked_is_refused() -> None:
    assert "seconds, prefill_s" in told({**STEP, "work": {"prefill": {"tokens": 10}}}, "step_s")


# ---- fitting


def synthetic(family: str, card: str, case: str = "a-case", true: dict[str, float] | None = None) -> list[Point]:
    """Return points of a card whose figures are ``true``: prefills and decodes as the model itself says."""
    points = []
    true = TRUE if true is None else true
    works: list[dict[str, Any]] = [{"prefill": {"tokens": tokens}} for tokens in (512, 2048, 8192)]
    works += [{"decode": {"sequences": batch, "context_tokens": 64}} for batch in (1, 8, 64)]
    for model in ("llama-3.1-8b", "qwen3-14b"):
        for work in works:
            section = {"model": model, "hardware": card, "work": work}
            seen = Observation(metric="seconds", expected=1.0, label=f"{model} {work}", fitted=True)
            shell = Case(id=case, group="compute", family=family, step=section, observations=[seen])
            asked = step_of(Question(case, "step", section, (), ("seconds",)))
            point = Point(shell, seen, asked, 1.0, "")
            points.append(replace(point, expected=point.predict(true)))
    return points


def test_fit_recovers_the_figures_that_made_its_points() -> None:
    found = fit("hopper", synthetic("hopper", "h200-sxm5-141gb"), dict.fromkeys(TRUE, 0.5) | {"layer_overhead_s": 1e-5})
    assert found.figures == pytest.approx(TRUE, rel=1e-3)
    assert max(map(abs, found.errors.values())) < 1e-4


def test_fit_near_other_figures_takes_only_what_points_do_not_say() -> None:
    points = [point for point in synthetic("hopper", "h200-sxm5-141gb") if point.asked.work.prefill is None]
    near = {"flops_efficiency": 0.4, "weight_bandwidth_efficiency": 0.5, "layer_overhead_s": 1e-5}
    found = fit("hopper", points, dict.fromkeys(TRUE, 0.5) | {"layer_overhead_s": 1e-5}, near).figures
    assert found["flops_efficiency"] == pytest.approx(0.4, rel=0.02)  # decodes don't tell
    assert found["weight_bandwidth_efficiency"] == pytest.approx(TRUE["weight_bandwidth_efficiency"], rel=0.05)


def test_points_are_the_fitted_observations_of_the_familys_step_cases() -> None:
    cases = own_cases()
    for family in FIGURES:
        points = points_to_fit(cases, family)
        assert points, family
        assert all(load_hardware(point.asked.hardware).family == family for point in points)
        assert all(point.observation.fitted and point.case.group == "compute" for point in points)


def test_catalogue_holds_what_the_fit_of_its_cases_gives() -> None:
    cases = own_cases()
    for family in FIGURES:
        points = points_to_fit(cases, family)
        card = load_hardware(points[0].asked.hardware)
        for name, value in fit(family, points).figures.items():
            assert card.figure(name).standing == "fitted", (family, name)
            assert card.value(name) == pytest.approx(value, rel=0.01), (family, name)


def test_no_served_run_or_simulator_is_fitted_on() -> None:
    for read in own_cases():
        if read.case.group in ("serving_trace", "cross_check"):
            assert not any(seen.fitted for seen in read.case.observations), read.case.id


# ---- leaving out


def reads(points: Sequence[Point]) -> list[Read]:
    """Return the cases of points, each point an observation with its own work."""
    cases: dict[str, list[Point]] = {}
    for point in points:
        cases.setdefault(point.case.id, []).append(point)
    found = []
    for ones in cases.values():
        seen = [
            point.observation.model_copy(
                update={
                    "expected": point.expected,
                    "set": {"model": point.asked.model, "work": point.case.step["work"]},
                }
            )
            for point in ones
            if point.case.step is not None
        ]
        found.append(Read(ones[0].case.model_copy(update={"observations": seen}), ""))
    return found


def test_case_left_out_is_predicted_by_the_others_alone() -> None:
    good = synthetic("hopper", "h200-sxm5-141gb", "good")
    odd = [replace(point, expected=2 * point.expected) for point in synthetic("hopper", "h100-sxm5-80gb", "odd")]
    start = {name: FIGURES["hopper"].get(name, 0.0) for name in FIGURES["hopper"]}
    errors = list(families_of.case_left_out("hopper", [*good, *odd], start))
    # The odd case takes twice as long: fitted to it, the good one's times double, and the other way round.
    assert errors[: len(good)] == pytest.approx([1.0] * len(good), abs=0.25)
    assert errors[len(good) :] == pytest.approx([-0.5] * len(odd), abs=0.15)


def test_case_left_out_that_is_not_left_out_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    good = synthetic("hopper", "h200-sxm5-141gb", "good")
    odd = [replace(point, expected=2 * point.expected) for point in synthetic("hopper", "h100-sxm5-80gb", "odd")]
    real = families_of.fit

    def cheating(family: str, points: Sequence[Point], *more: Any, **named: Any) -> Any:
        return real(family, [*good, *odd], *more, **named)

    monkeypatch.setattr(families_of, "fit", cheating)
    errors = list(families_of.case_left_out("hopper", [*good, *odd], FIGURES["hopper"]))
    assert errors[0] < 0.6  # a fit that saw both lies between them


def test_family_left_out_takes_the_mean_of_the_others() -> None:
    fits = {
        "hopper": {"flops_efficiency": 0.6, "weight_bandwidth_efficiency": 0.7, "layer_overhead_s": 3e-5},
        "ampere": {"flops_efficiency": 0.9, "weight_bandwidth_efficiency": 0.9},
        "ampere-gddr": {"flops_efficiency": 0.5, "weight_bandwidth_efficiency": 0.8},
        "ada-geforce": {"flops_efficiency": 1.0, "weight_bandwidth_efficiency": 0.6},
    }
    found = families_of.of_others("ampere", fits)
    # Shares of the peak of half-rate cards aren't taken, their shares of the bandwidth are; its own never.
    assert found["flops_efficiency"] == pytest.approx(0.55)
    assert found["weight_bandwidth_efficiency"] == pytest.approx(0.7)
    assert found["tile_fill_loss"] == 0.0
    assert families_of.of_others("hopper", fits)["attention_flops_efficiency"] == pytest.approx(0.7)
    assert families_of.of_others("hopper", {"hopper": fits["hopper"]})["weight_bandwidth_efficiency"] == 1.0


def test_family_left_out_is_blind_to_its_own_points() -> None:
    own = synthetic("ampere", "a100-sxm4-80gb", "own")
    other = synthetic("ampere-gddr", "a40", "other")
    slower = [replace(point, expected=3 * point.expected) for point in own]
    before = families_of.leave_one_out(reads([*own, *other]))[0]
    after = families_of.leave_one_out(reads([*slower, *other]))[0]
    assert before["family"] == after["family"] == "ampere"
    assert after["median_family_left_out"] == pytest.approx(2 / 3, abs=0.15)
    assert before["median_family_left_out"] < 0.15 < after["median_family_left_out"]


def test_leave_one_out_of_the_own_cases_has_a_row_a_family() -> None:
    rows = families_of.leave_one_out(own_cases())
    assert [row["family"] for row in rows] == list(FIGURES)
    for row in rows:
        for what in ("fitted", "case_left_out", "family_left_out"):
            assert 0 <= row[f"median_{what}"] <= row[f"largest_{what}"] < 1
        assert row["median_fitted"] <= row["median_case_left_out"]
    assert all(row["median_case_left_out"] < 0.06 for row in rows if row["family"] != "ada")


def test_points_relative_to_another_are_no_points() -> None:
    section = {**STEP, "work": {"prefill": {"tokens": 10}}}
    seen = Observation.model_validate({"metric": "seconds", "expected": 2.0, "relative_to": {"set": {}}})
    case = Case(id="a", group="compute", step=section, observations=[seen])
    assert not points_of([Read(case, "")], lambda case, seen: True)
