"""``simkv validate``: what it prints, as a table and as JSON, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.cli import app
from simkv.cli.validated import render
from simkv.validation import study as studying
from simkv.validation.answer import answer_of, text_of
from simkv.validation.groups import BY_NAME
from simkv.validation.page import page
from tests.planner_factory import here
from tests.validation_factory import SCENARIO, case, case_file, row, seen

ROW = {"id", "metric", "expected", "predicted", "error", "tolerance", "fitted", "pass"}
TRACE = SCENARIO | {"workload": {"kind": "trace"}}


def simkv(*args: str | Path) -> Any:
    return CliRunner().invoke(app, ["validate", *map(str, args)])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command do its work in this process."""
    monkeypatch.setattr("simkv.jobs.workers.Workers", lambda jobs=None, cluster=None: here())


def several(folder: Path) -> Path:
    """Return a file of some cases that take different times."""
    longer = [seen(expected=0.1 * 2**k, set={"workload.output_tokens": 2**k}) for k in range(8, 0, -1)]
    large = SCENARIO | {"model": "llama-3.1-70b", "hardware": "t4"}
    return case_file(
        folder,
        case(id="last", group="cross_check"),
        case(id="long", observations=longer),
        case(id="large", scenario=large, kind="kv"),
        case(id="waits", scenario=TRACE, data={"workload.path": "no.jsonl"}),
    )


def test_answer_is_the_same_on_one_process_and_on_two(tmp_path: Path) -> None:
    one, two = (simkv("--cases", several(tmp_path), "--json", "--jobs", jobs) for jobs in ("1", "2"))
    assert one.stdout == two.stdout and one.exit_code == two.exit_code == 4
    answer = json.loads(one.stdout)
    assert [group["name"] for group in answer["groups"]] == ["compute", "cross_check"]
    assert [row["case"] for row in answer["groups"][0]["cases"]] == ["long"] * 8 + ["large", "waits"]
    states = {row["case"]: (row["status"], row["pass"]) for row in answer["groups"][0]["cases"]}
    assert states == {"long": ("judged", True), "large": ("failed", None), "waits": ("skipped", None)}
    assert all(row.keys() >= ROW for group in answer["groups"] for row in group["cases"])
    found = answer["summary"]
    assert (found["cases"], found["judged"], found["skipped"], found["failed"]) == (4, 9, 1, 1)
    assert not found["pass"] and [miss["id"] for miss in found["misses"]] == ["large: makespan_s"]


@pytest.mark.usefixtures("quick")
def test_exit_code_is_zero_where_every_target_holds(tmp_path: Path) -> None:
    done = simkv("--cases", case_file(tmp_path, case()))
    assert done.exit_code == 0 and "3 of 3 targets met" in done.stdout


@pytest.mark.usefixtures("quick")
def test_exit_code_is_four_where_one_is_missed(tmp_path: Path) -> None:
    done = simkv("--cases", case_file(tmp_path, case(observations=[seen(expected="1 s", because="a reason")])))
    assert done.exit_code == 4 and "MISSED" in done.stdout
    assert "  compute: a reason:\n    two: makespan_s -60.0 %\n" in done.stdout


@pytest.mark.usefixtures("quick")
def test_skipped_cases_do_not_fail_and_are_told(tmp_path: Path) -> None:
    done = simkv("--cases", case_file(tmp_path, case(scenario=TRACE, data={"workload.path": "a.jsonl"})))
    assert done.exit_code == 0 and "skipped: give --data DIR" in done.stdout and "nothing to judge by" in done.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--only", "computing"), ("--only", "computing", "did you mean compute")),
        (("--data", "nowhere"), ("--data", "nowhere")),
        (("--cases", "nowhere.yaml"), ("nowhere.yaml", "validation-cases.md")),
    ],
)
@pytest.mark.usefixtures("quick")
def test_wrong_option_is_told(args: tuple[str, str], words: tuple[str, ...]) -> None:
    done = simkv(*args)
    assert done.exit_code == 2 and all(word in done.stderr for word in words) and not done.stdout


def test_no_process_at_all_is_refused() -> None:
    done = simkv("--jobs", "0")
    assert done.exit_code == 2 and "--jobs = 0" in done.stderr


@pytest.mark.usefixtures("quick")
def test_case_that_can_not_be_asked_is_told_with_its_place(tmp_path: Path) -> None:
    file = case_file(tmp_path, case(observations=[seen(metric="ttft_s.p51")]))
    done = simkv("--cases", file, "--json")
    assert done.exit_code == 2 and not done.stdout
    assert f"{file}:" in done.stderr and "cases.0.observations.0.metric = ttft_s.p51: case two" in done.stderr


@pytest.mark.usefixtures("quick")
def test_only_some_groups_are_asked(tmp_path: Path) -> None:
    file = case_file(tmp_path, case(), case(id="other", group="cross_check"))
    answer = json.loads(simkv("--cases", file, "--only", "cross_check", "--json").stdout)
    assert [group["name"] for group in answer["groups"]] == ["cross_check"]


@pytest.mark.parametrize(
    ("only", "ids"),
    [
        ("kv", ["two", "other"]),
        ("other", ["other"]),
        ("third,cross_check", ["other", "third"]),
        ("cross_check,queueing", ["other"]),
        ("two", ["two"]),
    ],
)
@pytest.mark.usefixtures("quick")
def test_only_some_cases_are_asked_by_kind_and_id(tmp_path: Path, only: str, ids: list[str]) -> None:
    others = (case(id="other", group="cross_check", kind="kv"), case(id="third"))
    file = case_file(tmp_path, case(kind="kv"), *others)
    answer = json.loads(simkv("--cases", file, "--only", only, "--json").stdout)
    assert sorted(row["case"] for group in answer["groups"] for row in group["cases"]) == sorted(ids)


@pytest.mark.parametrize(
    ("only", "mend"),
    [
        ("othr", "did you mean other?"),
        ("kvv", "did you mean kv?"),
        ("comput", "did you mean compute?"),
        ("x.y", "there"),
    ],
)
@pytest.mark.usefixtures("quick")
def test_only_what_no_case_is_called_is_told_with_the_nearest(tmp_path: Path, only: str, mend: str) -> None:
    file = case_file(tmp_path, case(kind="kv"), case(id="other", group="cross_check"))
    done = simkv("--cases", file, "--only", f"two,{only}")
    assert done.exit_code == 2 and f"--only = {only}: is no group, kind or id of a case" in done.stderr
    assert mend in done.stderr and "there are groups compute, cross_check; kinds kv" in done.stderr


def test_families_are_left_out_where_groups_are_asked_whole() -> None:
    one, whole = (
        json.loads(simkv("--only", only, "--json", "--jobs", "1").stdout)["summary"] for only in ("kv_size", "compute")
    )
    assert one["observations"] > 0 and not one["leave_one_family_out"] and whole["leave_one_family_out"]


@pytest.mark.usefixtures("quick")
def test_group_without_cases_is_told(tmp_path: Path) -> None:
    done = simkv("--cases", case_file(tmp_path, case()), "--only", "queueing")
    assert done.exit_code == 2 and "--only = queueing" in done.stderr and "compute" in done.stderr


@pytest.mark.usefixtures("quick")
def test_interrupted_it_exits_with_130(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*args: Any) -> Iterator[Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(studying, "execute", stopped)
    done = simkv("--cases", case_file(tmp_path, case()))
    assert done.exit_code == 130 and "interrupted" in done.stderr and not done.stdout


def test_help_tells_of_the_exit_code() -> None:
    assert "4" in CliRunner().invoke(app, ["--help"]).stdout and "Exit code 4" in simkv("--help").stdout


# ---- what is printed ----------------------------------------------------------------------------


def everything() -> dict[str, Any]:
    """Return an answer with something in every group."""
    rows = [
        row(
            name,
            1e-12 if group.each else error,
            kind="kind-of-" + name,
            label=f"{'long ' * 30}{error}",
            because="why " * 40,
        )
        for name, group in BY_NAME.items()
        for error in (0.0, -0.2, 3.0)
    ]
    return answer_of([*rows, row(error=None, status="failed"), row("hit_curves", None, status="skipped")])


def test_table_is_at_most_a_hundred_columns_wide() -> None:
    lines = render(everything()).splitlines()
    assert max(map(len, lines)) <= 100


def test_table_has_units_of_the_source(tmp_path: Path) -> None:
    text = render(answer_of([row(error=0.1, label="here")]))
    assert "550 ms" not in text and "0.55" in text and "+10.0 %" in text


def test_lines_do_not_end_between_a_number_and_its_percent() -> None:
    rows = [row(error=0.1 + k / 1000, kind="k" * k, because="x" * (1 + k % 7), tolerance=0.01) for k in range(1, 60)]
    assert not [line for line in render(answer_of(rows)).splitlines() if line.strip().startswith(("%", "pp"))]


def test_table_says_shares_in_points() -> None:
    assert "+20.0 pp" in render(answer_of([row("hit_curves", 0.2)]))


def test_warnings_are_below_their_case_once() -> None:
    rejected, idle = "rejected: 6 of 8 requests", "tiers.ssd: does nothing"
    rows = [row(label="here", warnings=(rejected, idle)), row(label="there", warnings=(idle,))]
    other = row("hit_curves", warnings=(f"{idle} {'and so on ' * 20}",))
    answer = answer_of([*rows, other])
    lines = render(answer).splitlines()
    where = next(k for k, line in enumerate(lines) if line.startswith("  there"))
    assert lines[where + 1 : where + 3] == [f"  ! here: {rejected}", f"  ! {idle}"]
    assert render(answer).count("  ! ") == 3 and max(map(len, lines)) <= 100
    assert f"- {idle}: `two`\n" in page(answer) and "\nWarnings of the runs:\n" in page(answer)
    assert [one["warnings"] for one in answer["groups"][0]["cases"]] == [[rejected, idle], [idle]]


def test_many_warnings_of_a_case_are_counted() -> None:
    text = render(answer_of([row(warnings=tuple(f"number {k}" for k in range(9)))]))
    assert text.count("  ! ") == 5 and "  ! 5 more warnings" in text


def test_rows_say_under_which_settings_a_figure_is() -> None:
    base = {"set": {"workload.size": 2}, "change": True}
    asked = row(set={"workload.size": 10**30, "a": [1, None]}, relative_to=base)
    [found] = json.loads(text_of(answer_of([asked])))["groups"][0]["cases"]
    assert found["set"] == {"workload.size": 1e30, "a": [1, None]} and found["seeds"] == 1
    assert found["relative_to"] == {"set": {"workload.size": 2}, "metric": None, "change": True}


def test_kind_in_points_is_told_in_points() -> None:
    rows = [row("tiered_serving", -0.344, kind="k"), row("hit_curves", -0.3, kind="k"), row(error=0.3, kind="j")]
    answer = answer_of(rows)
    kinds = [(one["kind"], one["groups"], one["median"]) for one in answer["summary"]["kinds"]]
    assert [one[:2] for one in kinds] == [("k", ["tiered_serving"]), ("k", ["hit_curves"]), ("j", ["compute"])]
    assert [value for *_, value in kinds] == pytest.approx([0.344, 0.3, 0.3])
    assert "(k) 34.4 %, at most 25 %: MISSED" in render(answer)
    assert "| k | hit_curves | 1 | 0 | 30.0 pp | 30.0 pp | MISSED |" in page(answer)
    assert "(k) 30.0 pp, at most 25 pp: MISSED" in render(answer_of(rows[1:2]))


def test_kind_in_two_groups_of_relative_errors_is_one() -> None:
    answer = answer_of([row("tiered_serving", 0.5, kind="k"), row(error=0.1, kind="k")])
    [kind] = answer["summary"]["kinds"]
    assert kind["groups"] == ["tiered_serving", "compute"] and kind["median"] == pytest.approx(0.3)
    assert "| k | tiered_serving, compute | 2 |" in page(answer)


def test_page_has_every_row_and_target() -> None:
    answer = everything()
    text = page(answer)
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(lines) == answer["summary"]["observations"]
    assert all(f"(`{name}`)" in text for name in BY_NAME)
    assert text.count(": holds") + text.count(": MISSED") > len(answer["summary"]["targets"])
    assert page(json.loads(json.dumps(answer))) == text
