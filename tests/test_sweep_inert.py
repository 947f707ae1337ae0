"""Axes that can't matter: each promise is held by running both ends; what is said of them, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from simkv.sweeps import inert as inert_module
from simkv.sweeps.axes import Axis, assignments, parse_axes
from simkv.sweeps.check import settled
from simkv.sweeps.felt import Seen, same_figures, summary_of_inert, unfelt
from simkv.sweeps.grid import grid
from simkv.sweeps.inert import RULES, Rule, effective, inert
from simkv.sweeps.simulate import Case, Written, simulate

SCENARIOS = Path(__file__).parents[1] / "scenarios"
SHORT = "workload.prompt_tokens={dist: uniform, low: 20000, high: 30000}"
ACTIVE = (SHORT, "workload.size=4", "workload.output_tokens=12", "run.baselines=[]")
COMPARED = (*ACTIVE, "run.baselines=[no_offload, no_prefetch]", "offload.residency=1")
P1 = (*ACTIVE, "offload.residency=1")
DENSE = (*ACTIVE, "offload.access={pattern: dense}")
NEXT = (*P1, "offload.prefetch={policy: next_step, accuracy: 0.4}")
GUESS = (*P1, "offload.prefetch={policy: next_step}")
CHAT = ("workload.requests=60", "run.baselines=[]")
BARE = (*CHAT, "tiers.dram.capacity=0GiB")


def written(name: str, *assigned: str) -> Written:
    file = SCENARIOS / f"{name}.yaml"
    return Written(file.read_text(), str(file), assigned)


INERT = [
    ("long-context-active", COMPARED, "beta=0,0.9"),
    ("long-context-active", P1, "lambda=0.1,0.9"),
    ("long-context-active", (*P1, "offload.eviction.lambda=null"), "offload.eviction.policy=lru,fifo,s3fifo"),
    ("long-context-active", P1, "offload.staging_layers=1,8"),
    ("long-context-active", (*P1, "engine.prefill=here", "workload.prompt_tokens=20000"), "beta=0,0.9"),
    ("long-context-active", (*P1, "engine.max_num_seqs=2"), "beta=0,0.9"),
    ("long-context-active", NEXT, "offload.prefetch.accuracy=0.1,0.9"),
    ("long-context-active", GUESS, "offload.prefetch.lead=1,4"),
    ("long-context-active", GUESS, "offload.prefetch.predictor=last_step,stride"),
    ("long-context-active", DENSE, "lambda=0.1,0.9"),
    ("long-context-active", (*DENSE, "offload.eviction.lambda=null"), "offload.eviction.policy=lru,arc"),
    ("long-context-active", (*DENSE, "offload.residency=1"), "beta=0,0.9"),
    ("long-context-active", ACTIVE, "tiers.ssd.read=1 GB/s,9 GB/s"),
    ("long-context-active", ACTIVE, "replicas.router=round_robin,prefix_aware"),
    ("long-context-active", (*ACTIVE, "workload.prompt_tokens=66000", "offload.access={pattern: window}"), "seed=1,2"),
    ("chatbot", (*CHAT, "replicas.router=scored"), "replicas.scorers.queue=0,3"),
    ("chatbot", (*CHAT, "offload.residency=1"), "beta=0,0.9"),
    ("chatbot", (*CHAT, "offload.residency=1"), "offload.host_cost_per_step=0s,1ms"),
    ("chatbot", (*CHAT, "engine.prefix_caching=false"), "lambda=0.1,0.9"),
    ("chatbot", BARE, "link.h2d=1 GB/s,60 GB/s"),
    ("chatbot", BARE, "link.latency=1us,1ms"),
    ("chatbot", BARE, "tiers.dram.bandwidth=1 GB/s,60 GB/s"),
    ("chatbot", BARE, "tiers.dram.shared=true,false"),
    ("chatbot", BARE, "offload.when_full=refuse,retry"),
    ("chatbot", (*BARE, "offload.write=write_back"), "offload.write_back_blocks=true,false"),
    ("chatbot", (*BARE, "offload.prefetch.policy=queue"), "offload.prefetch.window=1,20"),
    ("chatbot", BARE, "ssd=0TB,2TB"),
    ("chatbot", (*BARE, "tiers.ssd.capacity=2TB"), "tiers.ssd.write=1 GB/s,9 GB/s"),
]


def ends(
    name: str, assigned: tuple[str, ...], text: str
) -> tuple[Axis, list[Mapping[str, str]], list[dict[str, object]]]:
    """Return the axis, what is said of it at each value, and the summaries of its first and last."""
    here = written(name, *assigned)
    (axis,) = settled(here, parse_axes([text]))
    cases = [Case(here, axis.assignments(value)) for value in axis.values]
    resolved = [case.resolve() for case in cases]
    summaries = [simulate(cases[at], resolved[at].scenario.run.seed) for at in (0, -1)]
    return axis, [inert(one, [axis]) for one in resolved], summaries


@pytest.mark.parametrize(("name", "assigned", "text"), INERT, ids=[f"{n} {a[-1]} {t}" for n, a, t in INERT])
def test_axis_called_inert_changes_no_figure(name: str, assigned: tuple[str, ...], text: str) -> None:
    axis, said, (first, last) = ends(name, assigned, text)
    assert all(axis.name in one for one in said)
    assert same_figures(first, last)


def test_every_rule_is_held_by_some_case() -> None:
    told = {reason for name, assigned, text in INERT for reason in _said(name, assigned, text)}
    assert {rule.reason for rule in RULES} <= told


def _said(name: str, assigned: tuple[str, ...], text: str) -> list[str]:
    here = written(name, *assigned)
    (axis,) = settled(here, parse_axes([text]))
    return list(inert(Case(here, axis.assignments(axis.values[0])).resolve(), [axis]).values())


MATTERS = [
    ("long-context-active", ACTIVE, "beta=0,0.9"),
    ("long-context-active", (*ACTIVE, "workload.output_tokens=40"), "lambda=0.0,1.0"),
    ("long-context-active", (*P1, "engine.prefill=dram"), "beta=0,0.9"),
    ("long-context-active", DENSE, "beta=0,0.9"),
    ("long-context-active", DENSE, "p=0.3,1"),
    ("long-context-active", ACTIVE, "seed=1,2"),
    ("chatbot", CHAT, "link.d2h=1 GB/s,60 GB/s"),
    ("chatbot", (*BARE, "cost={gpu_hour: 2, ssd_tib_hour: 1}"), "ssd=0TB,2TB"),
    ("chatbot", (*CHAT, "replicas.count=2"), "replicas.router=round_robin,prefix_aware"),
]


@pytest.mark.parametrize(("name", "assigned", "text"), MATTERS, ids=[f"{n} {a[-1]} {t}" for n, a, t in MATTERS])
def test_axis_that_changes_figures_is_not_called_inert(name: str, assigned: tuple[str, ...], text: str) -> None:
    axis, said, (first, last) = ends(name, assigned, text)
    assert not any(axis.name in one for one in said)
    assert not same_figures(first, last)


# ---- whole grids ------------------------------------------------------------------------------

AXES = ("p=0.3,1.0", "beta=0,0.9", "lambda=0.5,0.8")


def seen(here: Written, axes: tuple[Axis, ...], run: bool = False) -> list[Seen]:
    points = []
    for params in grid(axes):
        case = Case(here, assignments(axes, params))
        resolved = case.resolve()
        summary = simulate(case, resolved.scenario.run.seed) if run else None
        points.append(Seen(params, inert(resolved, axes), summary))
    return points


@pytest.mark.parametrize("name", ["long-context-active", "chatbot"])
def test_points_with_one_stand_in_have_the_same_figures(name: str) -> None:
    active = name == "long-context-active"
    here = written(name, *(ACTIVE if active else CHAT))
    axes = settled(
        here, parse_axes(AXES if active else ("dram=0GiB,50GiB", "ssd=0TB,1TB", "tiers.ssd.read=1 GB/s,7 GB/s"))
    )
    points = seen(here, axes, run=True)
    runs: dict[tuple[str, ...], list[Seen]] = {}
    for point in points:
        stand_in = effective(point.params, axes, point.inert)
        assert stand_in.keys() == point.params.keys()
        runs.setdefault(tuple(stand_in.values()), []).append(point)
    assert len(runs) == (5 if active else 4)
    for group in runs.values():
        assert all(same_figures(group[0].summary or {}, one.summary or {"none": 1}) for one in group)
        standing = next(
            one
            for one in points
            if tuple(one.params.values()) == tuple(effective(group[0].params, axes, group[0].inert).values())
        )
        assert standing.inert.keys() == group[0].inert.keys()


def test_inert_axes_are_told_where_and_why_and_what_it_spares() -> None:
    here = written("long-context-active", *ACTIVE)
    axes = settled(here, parse_axes(["p=0.1:1.0:0.1", "beta=0,0.5,0.9", "lambda=0.5,0.8"]))
    points = seen(here, axes)
    assert summary_of_inert(axes, points) == [
        "beta and lambda can't matter at p = 1: running sequences keep all of their KV in VRAM "
        "(6 of 60 points share 1 run)."
    ]
    runs = {tuple(effective(point.params, axes, point.inert).values()) for point in points}
    assert len(runs) == 55


def test_inert_everywhere_is_told_so() -> None:
    here = written("long-context-active", *DENSE)
    axes = settled(here, parse_axes(["p=0.3,0.5", "lambda=0.5,0.8"]))
    (said,) = summary_of_inert(axes, seen(here, axes))
    assert said.startswith("lambda can't matter at any point: dense access") and "4 of 4 points share 2 runs" in said


def _point(p: str, beta: str, figure: float, off: Mapping[str, str] | None = None) -> Seen:
    return Seen(
        {"p": p, "beta": beta}, off or {}, {"itl_s": {"p95": figure}, "scenario_hash": p + beta, "warnings": [beta]}
    )


def test_axis_that_changed_nothing_is_told_after_the_runs() -> None:
    axes = parse_axes(["p=0.1,0.2", "beta=0,1"])
    points = [_point(p, beta, float(p)) for p in ("0.1", "0.2") for beta in ("0", "1")]
    assert unfelt(axes, points) == ["beta could have mattered, and changed nothing: every value gave the same figures."]


def test_axis_that_changed_nothing_in_places_is_told_where() -> None:
    axes = parse_axes(["p=0.1,0.2", "beta=0,1"])
    points = [
        _point(p, beta, float(p) * (1 + (p == "0.1") * float(beta))) for p in ("0.1", "0.2") for beta in ("0", "1")
    ]
    points = [
        _point(one.params["p"], one.params["beta"], one.summary["itl_s"]["p95"] + 1) for one in points if one.summary
    ]
    assert unfelt(axes[1:], points) == [
        "beta changed nothing at 2 points, such as p = 0.2, beta = 0, and did elsewhere."
    ]
    assert "beta changed nothing at p = 0.2, and did elsewhere." in unfelt(axes, points)


def test_axis_that_cannot_matter_is_not_told_again_after_the_runs() -> None:
    axes = parse_axes(["p=0.1,0.2", "beta=0,1"])
    points = [_point(p, beta, float(p), {"beta": "why"}) for p in ("0.1", "0.2") for beta in ("0", "1")]
    assert unfelt(axes, points) == []


def test_mutant_rule_that_promises_too_much_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    always = Rule(("offload.prefetch.beta",), lambda scenario: True, "it never matters")
    monkeypatch.setattr(inert_module, "RULES", (always, *RULES))
    with pytest.raises(AssertionError):
        test_axis_called_inert_changes_no_figure("long-context-active", ACTIVE, "beta=0,0.9")
