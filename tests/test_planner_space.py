"""What a plan can choose from, what a unit of it is, and what that costs."""

from __future__ import annotations

import pytest

from simkv.errors import InfeasibleError, InputError
from simkv.planner import space as module
from simkv.planner.space import Space, space
from simkv.planner.types import Price
from tests.planner_factory import INSTANCES, SINGLE_SERVER, SMALL, planned, written


def names(found: Space) -> list[str]:
    return [one.candidate.name for one in found.choices]


def reasons(found: Space) -> dict[str, str]:
    return {one.name: one.reason for one in found.left_out}


def price(plan: str, text: str = INSTANCES) -> Price:
    (choice,) = space(planned(text, plan)).choices
    assert choice.candidate.unit.price is not None
    return choice.candidate.unit.price


def test_space_instance_unit_is_the_whole_machine() -> None:
    found = space(planned(INSTANCES, "{vary: {instance: [p4d.24xlarge, g6.12xlarge], tp: [1, 4, 8]}}"))
    units = {one.candidate.name: one.candidate.unit for one in found.choices}
    assert [(name, unit.gpus, unit.replicas) for name, unit in units.items()] == [
        ("p4d.24xlarge tp 1", 8, 8),
        ("p4d.24xlarge tp 4", 8, 2),
        ("p4d.24xlarge tp 8", 8, 1),
        ("g6.12xlarge tp 1", 4, 4),
        ("g6.12xlarge tp 4", 4, 1),
    ]
    assert "4 GPUs a host" in reasons(found)["g6.12xlarge tp 8"]
    counts = [one.resolved.scenario.replicas.count for one in found.choices]
    assert counts == [8, 2, 1, 4, 1]


def test_space_bare_gpu_unit_is_one_replica() -> None:
    found = space(planned(INSTANCES, "{vary: {gpu: [h100-sxm5-80gb], tp: [1, 2]}, objective: gpus}"))
    assert [(one.candidate.unit.gpus, one.candidate.unit.replicas) for one in found.choices] == [(1, 1), (2, 1)]


def test_space_more_dram_than_the_host_has_is_left_out_with_the_reason() -> None:
    found = space(planned(INSTANCES, "{vary: {dram: [500GiB, 5TiB]}}"))
    assert names(found) == ["p4d.24xlarge dram 500GiB"]
    assert "more than a host of p4d.24xlarge has" in reasons(found)["dram 5TiB"]


def test_space_model_that_does_not_fit_is_left_out_with_the_reason() -> None:
    text = INSTANCES.replace("llama-3.1-8b", "llama-3.1-70b")
    found = space(planned(text, "{vary: {tp: [1, 8]}}"))
    assert names(found) == ["p4d.24xlarge tp 8"]
    assert reasons(found)["tp 1"].startswith("does not fit: ")


def test_space_what_the_engine_cannot_do_is_left_out_unless_asked_for() -> None:
    vary = "vary: {dram: [100GiB], ssd: [0TB, 1TB]}"
    strict, beyond = (space(planned(INSTANCES, f"{{{vary}{more}}}")) for more in ("", ", beyond_engine: true"))
    assert names(strict) == ["p4d.24xlarge dram 100GiB ssd 0TB"]
    assert "not realisable in vLLM" in reasons(strict)["dram 100GiB ssd 1TB"]
    assert len(beyond.choices) == 2


def test_space_presets_that_come_to_the_same_are_one_candidate() -> None:
    found = space(planned(INSTANCES, "{vary: {preset: [vllm, vllm-tiering], dram: [100GiB], ssd: [0TB, 1TB]}}"))
    assert [(one.candidate.name, one.also) for one in found.choices] == [
        ("p4d.24xlarge vllm dram 100GiB ssd 0TB", ("p4d.24xlarge vllm-tiering dram 100GiB ssd 0TB",)),
        ("p4d.24xlarge vllm-tiering dram 100GiB ssd 1TB", ()),
    ]


def test_space_ssd_that_nothing_reaches_is_left_out() -> None:
    found = space(planned(INSTANCES, "{vary: {preset: [vllm-tiering], dram: [0GiB, 100GiB], ssd: [1TB]}}"))
    assert len(found.choices) == 1
    assert "does nothing" in next(iter(reasons(found).values()))


@pytest.mark.parametrize(
    ("vary", "replicas", "units"),
    [("{hosts: [3]}", 8, 3), ("{count: [2]}", 2, 1), ("{count: [16]}", 8, 2), ("{count: [12], hosts: [3]}", 4, 3)],
)
def test_space_counts_fix_the_number_of_units(vary: str, replicas: int, units: int) -> None:
    (choice,) = space(planned(INSTANCES, f"{{vary: {vary}}}")).choices
    assert (choice.candidate.unit.replicas, choice.units) == (replicas, units)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("{vary: {rate: [1 req/s, 2 req/s]}}", "says what is asked"),
        ("{vary: {seed: [1, 2]}}", "says what is asked"),
        ("{vary: {dram: '100GiB:400GiB'}}", "has no step"),
        ("{vary: {count: [p5.48xlarge, 2]}}", "is no number of replicas; write whole numbers from 1 to 1,024"),
        ("{vary: {count: [0.5]}}", "is no number of replicas"),
        ("{vary: {count: [2], replicas.hosts: [0]}}", "is no number of hosts"),
        ("{vary: {drum: [1, 2]}}", "no scenario has such a path"),
        ("{vary: {tp: [3]}}", "none of its 1 combinations can be"),
        ("{vary: {ssd: [1TB]}}", "plan.beyond_engine"),
    ],
)
def test_space_plan_that_makes_no_sense_is_refused(plan: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        space(planned(INSTANCES, plan))
    assert caught.value.problems[0].file == "small.yaml"


def test_space_without_a_plan_says_how_to_write_one() -> None:
    with pytest.raises(InputError, match="the scenario has no plan; write one, like plan: "):
        space(written(INSTANCES))


def test_space_too_many_combinations_names_the_largest_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 10)
    with pytest.raises(InputError, match=r"makes 12 combinations, and the most is 10; take fewer .* of dram"):
        space(planned(INSTANCES, "{vary: {tp: [1, 2], dram: '100GiB:600GiB:100GiB'}}"))


def test_space_where_nothing_fits_is_infeasible() -> None:
    text = INSTANCES.replace("llama-3.1-8b", "llama-3.1-70b")
    with pytest.raises(InfeasibleError, match=r"none of 2 combinations of plan.vary fits: tp 1: does not fit"):
        space(planned(text, "{vary: {tp: [1, 2]}}"))


def test_space_inline_hardware_varies_like_any_other() -> None:
    found = space(planned(SINGLE_SERVER, "{vary: {engine.max_num_seqs: [1, 2]}, objective: gpus}"))
    assert names(found) == ["inline engine.max_num_seqs 1", "inline engine.max_num_seqs 2"]
    assert all(one.candidate.unit.price is None for one in found.choices)


# ---- prices -----------------------------------------------------------------------------------


def test_price_of_an_instance_is_the_catalogues_with_source_and_date() -> None:
    found = price("{vary: {tp: [1]}}")
    assert (found.hour, found.currency) == (21.957642, "USD")
    assert found.date == "2026-08-26" and "on-demand" in found.source


def test_price_of_the_user_wins_by_instance_then_by_gpu() -> None:
    by_gpu = "a100-sxm4-40gb: {hour: 1.5, source: a quote, date: 2026-11-01}"
    own = price(f"{{vary: {{tp: [1]}}, prices: {{{by_gpu}, p4d.24xlarge: {{hour: 7}}}}}}")
    assert (own.hour, own.source) == (7.0, "plan.prices")
    gpu = price(f"{{vary: {{tp: [1]}}, prices: {{{by_gpu}}}}}")
    assert (gpu.hour, gpu.source, gpu.date) == (12.0, "a quote", "2026-11-01")


def test_price_of_bare_gpus_counts_dram_and_ssd_where_the_scenario_prices_them() -> None:
    text = SMALL + "cost: {gpu_hour: 2, dram_gib_hour: 0.01, ssd_tib_hour: 0.1}\n"
    plan = "{vary: {preset: [vllm-tiering], dram: [100GiB], ssd: [2TiB]}}"
    assert price(plan, text).hour == pytest.approx(2 + 1 + 0.2)
    assert price("{vary: {tp: [3]}}", text).hour == pytest.approx(6)


def test_price_in_two_currencies_names_both() -> None:
    plan = "{vary: {instance: [p4d.24xlarge, g6.12xlarge]}, prices: {g6.12xlarge: {hour: 4, currency: EUR}}}"
    with pytest.raises(InputError, match=r"p4d.24xlarge in USD, g6.12xlarge in EUR"):
        space(planned(INSTANCES, plan))


def test_price_of_what_is_nowhere_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"plan.prices.p4d.24xlrge: .*p4d.24xlarge"):
        space(planned(INSTANCES, "{vary: {tp: [1]}, prices: {p4d.24xlrge: {hour: 4}}}"))


def test_space_where_another_card_may_be_chosen_estimates_pools_instead_of_taking_the_logged_one() -> None:
    others = space(planned(SMALL, "{vary: {gpu: [t4, l4], dram: [0GiB]}, objective: gpus}"))
    assert len(others.choices) == 2
    assert all(one.resolved.scenario.engine.num_gpu_blocks != 1024 for one in others.choices)
    same = space(planned(SMALL, "{vary: {dram: [0GiB, 1GiB]}, objective: gpus}"))
    assert {one.resolved.scenario.engine.num_gpu_blocks for one in same.choices} == {1024}
