"""What a report says of one run: every kind of run gives a page that makes sense, with the summary's figures."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.report.document import Cell, Code, Details, Facts, Figure, Note, Section, Table, Text
from simkv.report.folders import RunFolder
from simkv.report.run import answered, sections
from simkv.results.metrics import METRICS
from simkv.results.quantity import seconds
from tests.report_runs import FEW, all_blocks, changed, figures, folder_of, made_up, shipped

OFTEN_THERE = ("answer", "question", "resources", "obtained")


def texts(found: list[Section]) -> list[str]:
    """Return every text of a document."""
    said = [section.title for section in found]
    for block in all_blocks(found):
        if isinstance(block, Text | Note | Code):
            said.append(block.text)
        elif isinstance(block, Facts):
            said += [text for row in block.rows for text in row]
        elif isinstance(block, Table):
            said += [*block.heads, *(cell.text for row in block.rows for cell in row), block.caption]
        elif isinstance(block, Figure):
            said += [block.finding, block.alt, block.note]
        elif isinstance(block, Details):
            said.append(block.title)
    return said


def table_of(found: list[Section], name: str) -> Table:
    """Return the table of that name."""
    (table,) = (block for block in all_blocks(found) if isinstance(block, Table) and block.name == name)
    return table


def check(found: list[Section]) -> None:
    """Hold a document to what every one keeps."""
    keys = [section.key for section in found]
    assert set(OFTEN_THERE) <= set(keys) and len(set(keys)) == len(keys)
    assert all(section.blocks for section in found)
    names = [block.name for block in all_blocks(found) if isinstance(block, Figure | Table)]
    assert len(set(names)) == len(names) and all(re.fullmatch("[a-z0-9-]+", name) for name in names)
    for text in texts(found):
        assert not re.search(r"\b(nan|inf|None|null)\b|Infinity|  ", re.sub(r"\binf GB/s|run: .*", "", text)), text
    for block in all_blocks(found):
        if isinstance(block, Table):
            assert block.rows and all(len(row) == len(block.heads) for row in block.rows)
            assert all(isinstance(cell, Cell) for row in block.rows for cell in row)
        elif isinstance(block, Figure):
            assert block.finding and block.finding[0].upper() == block.finding[0] and len(block.alt) > 40
            assert block.data.rows and all(len(row) == len(block.data.heads) for row in block.data.rows)
        elif isinstance(block, Facts):
            assert block.rows


def without_code(found: list[Section]) -> list[Section]:
    """Return the sections without files and commands."""
    return [Section(s.key, s.title, [b for b in s.blocks if not isinstance(b, Code | Details)]) for s in found]


@pytest.mark.parametrize("name", sorted(FEW))
def test_sections_of_shipped_scenarios_make_sense_and_can_be_drawn(name: str) -> None:
    found = sections(shipped(name))
    check(without_code(found))
    for figure in figures(found).values():
        file = io.BytesIO()
        figure.draw(file, "svg")
        assert b"<svg" in file.getvalue() and len(file.getvalue()) < 300_000


def test_answer_of_a_helpful_offload_has_its_number_and_interval_first() -> None:
    folder = shipped("chatbot")
    lead = sections(folder)[0].blocks[0]
    difference = folder.summary["baselines"]["no_offload"]["difference"]["ttft_s"]
    assert isinstance(lead, Text) and lead.lead
    before = difference["mean"] / difference["relative"]
    assert lead.text.startswith("Offloading to 200 GiB of DRAM makes mean TTFT ")
    assert f"{seconds(before + difference['mean'])} ± " in lead.text and f"instead of {seconds(before)}" in lead.text
    assert "[" in lead.text and f"over the same {difference['pairs']:,} requests" in lead.text


def test_answer_without_a_baseline_gives_figures_and_says_why_there_is_no_verdict() -> None:
    found = [block.text for block in sections(made_up(plain=False))[0].blocks if isinstance(block, Text)]
    assert found[0].startswith("Mean TTFT ") and " ± " in found[0] and "over 400 requests." in found[0]
    assert found[1] == "There is no run without offload to compare with (run.baselines)."


def test_answer_of_prefetch_alone_is_its_speedup() -> None:
    blocks = sections(shipped("article-toy"))[0].blocks
    assert isinstance(blocks[0], Text)
    assert blocks[0].text.startswith("Prefetch makes a decode step 1.83 times as fast: 1.20 s instead of 2.20 s")


@pytest.mark.parametrize(("helps", "mean", "says"), [(False, 0.0, "changes nothing"), (False, 1e-6, "no difference")])
def test_answer_of_an_offload_that_changes_little_says_so(helps: bool, mean: float, says: str) -> None:
    folder = made_up()
    plain = dict(folder.summary["baselines"]["no_offload"])
    one = {"mean": mean, "ci95": [mean - 1e-3, mean + 1e-3], "relative": mean / 0.5, "pairs": 7}
    plain["difference"] = {"ttft_s": one, "e2e_s": one}
    verdict = {"offload_helps": helps, "because": "It doesn't matter."}
    lead = sections(changed(folder, baselines={"no_offload": plain}, verdict=verdict))[0].blocks[0]
    assert isinstance(lead, Text) and says in lead.text


def test_answer_of_several_classes_tells_them_apart_and_who_has_no_slo() -> None:
    folder = shipped("qos-two-classes")
    said = [block.text for block in sections(folder)[0].blocks if isinstance(block, Text | Note)]
    means = {name: seconds(row["ttft_s"]["mean"]) for name, row in folder.summary["classes"].items()}
    (by_class,) = [text for text in said if text.startswith("Mean TTFT by class: ")]
    assert f"batch {means['batch']}" in by_class and f"interactive {means['interactive']}" in by_class
    (slo,) = [text for text in said if text.startswith("SLO of each request")]
    assert slo.endswith("requests of batch have none and count as meeting it.")


@pytest.mark.parametrize(
    ("met", "overall", "tone", "says"),
    [
        (True, 1.0, "good", "The SLO holds: TTFT p95 1.50 s ≤ 2.00 s; 100 % of requests meet it"),
        (False, 0.2, "bad", "The SLO is missed: TTFT p95 1.50 s > 2.00 s; 20 % of requests meet it"),
        (None, 0.0, "bad", "SLO of each request: 0 % of requests meet it"),
    ],
)
def test_slo_is_told_target_by_target_and_is_bad_where_nobody_meets_it(
    met: bool | None, overall: float, tone: str, says: str
) -> None:
    targets = {} if met is None else {"ttft_p95": {"value": 1.5, "limit": 2.0, "met": met}}
    found = sections(changed(made_up(), slo_attainment={"overall": overall, "classes": {}, "targets": targets}))
    (note,) = [block for block in found[0].blocks if isinstance(block, Note) and "SLO" in block.text]
    assert note.text.startswith(says) and note.tone == tone


def test_closed_form_of_how_many_fit_says_what_bound_where_others_waited() -> None:
    def why(folder: RunFolder) -> str:
        (table,) = [
            block for block in all_blocks(sections(folder)) if isinstance(block, Table) and block.name == "closed-form"
        ]
        return next(row[-1].text for row in table.rows if row[0].text.startswith("Requests at once"))

    crowded, idle = shipped("qos-two-classes"), shipped("chatbot")
    assert crowded.summary["concurrency"]["max"] < crowded.summary["concurrency"]["formula"]
    assert why(crowded) == "more waited: not this room, but host-to-device link bound"
    assert why(idle) == "there was room for more: no more were there at once"


def test_hits_over_the_ceiling_are_explained_where_requests_overtake_each_other() -> None:
    assert "arrive" in figures(sections(shipped("qos-two-classes")))["hit-rates-over-time"].note
    assert not figures(sections(shipped("chatbot")))["hit-rates-over-time"].note


def test_active_offload_loaded_block_by_block_has_no_queue_that_was_not_measured() -> None:
    (table,) = [
        block
        for block in all_blocks(sections(shipped("article-toy")))
        if isinstance(block, Table) and block.name == "t-avg"
    ]
    assert [row[0].text for row in table.rows] == ["formula", "service", "exposed"]
    (table,) = [
        block
        for block in all_blocks(sections(shipped("long-context-active")))
        if isinstance(block, Table) and block.name == "t-avg"
    ]
    assert [row[0].text for row in table.rows] == ["formula", "service", "queued", "exposed"]


def test_answer_shows_every_warning_and_note_in_plain_sight() -> None:
    folder = shipped("long-context-active")
    notes = [block for block in sections(folder)[0].blocks if isinstance(block, Note)]
    warned = {(warning["code"], warning["message"]) for warning in folder.summary["warnings"]}
    assert warned and warned <= {(note.code, note.text) for note in notes if note.tone == "warning"}
    assert set(folder.summary["notes"]) <= {note.text for note in notes}


def test_answer_of_a_missed_slo_is_bad_and_of_one_that_holds_is_good() -> None:
    for limit, tone in ((1e-3, "bad"), (1e3, "good")):
        blocks = sections(made_up(context={"slo": {"ttft_p95": limit}}))[0].blocks
        assert [note.tone for note in blocks if isinstance(note, Note) and "SLO" in note.text] == [tone]


@pytest.mark.parametrize(
    ("run", "lead"),
    [
        ({"n": 0}, "No request finished, of 0 that"),
        ({"n": 0, "rejected": 5}, "No request finished, of 5 that"),
        ({"n": 1}, "Mean TTFT "),
        ({"n": 30, "batch": True}, "Mean TTFT "),
        ({"n": 60, "rejected": 20, "classes": ("fast", "slow")}, "Mean TTFT "),
    ],
)
def test_sections_of_odd_runs_make_sense(run: dict, lead: str) -> None:
    found = sections(made_up(plain=False, **run))
    check(without_code(found))
    assert isinstance(found[0].blocks[0], Text) and found[0].blocks[0].text.startswith(lead)


def test_sections_of_an_interrupted_run_say_that_it_was() -> None:
    from simkv.results.result import RunResult
    from simkv.results.summary import summarize
    from tests.results_factory import make_context, make_run

    data = make_run(50)
    data.interrupted, data.live, data.arrived = True, 3, 53
    folder = folder_of(RunResult(summarize(data, make_context()), data, "name: chatbot\n", "chatbot", "0" * 64))
    found = sections(folder)
    check(without_code(found))
    assert "interrupted" in [block.code for block in found[0].blocks if isinstance(block, Note)]
    assert any("3 under way at the end" in text for text in texts(found))


def test_sections_without_content_are_not_there() -> None:
    keys = [section.key for section in sections(made_up(0, plain=False))]
    assert not {"latency", "time-goes-to", "hit-rates", "active-offload", "cost"} & set(keys)


_MAY_BE_NULL = [
    name
    for name in METRICS
    if name
    not in (
        "schema_version", "simkv_version", "scenario", "scenario_hash", "seed", "requests", "concurrency", "kv_usage",
        "bytes", "utilization", "speedup", "closed_form", "baselines", "verdict", "warnings", "notes", "prompt_tokens",
        "output_tokens", "makespan_s", "warm_up_s", "preemptions", "recomputed_tokens", "time_breakdown_s", "queue_s",
        "ttft_s", "t_wait_s", "t_compute_s", "t_transfer_s", "e2e_s",
    )
]  # fmt: skip


@given(st.sets(st.sampled_from(_MAY_BE_NULL)), st.sampled_from(["chatbot", "long-context-active", "article-toy"]))
@settings(max_examples=20)
def test_sections_of_any_summary_with_nulls_make_sense(nulls: set[str], name: str) -> None:
    folder = changed(shipped(name), **dict.fromkeys(sorted(nulls)))
    check(without_code(sections(folder)))


def test_sections_of_a_summary_with_all_that_may_be_null_make_sense() -> None:
    everything = dict.fromkeys([*_MAY_BE_NULL, "time_breakdown_s", "queue_s", "ttft_s", "e2e_s"])
    everything |= dict.fromkeys(("t_wait_s", "t_compute_s", "t_transfer_s", "t_step_s"))
    check(without_code(sections(changed(shipped("chatbot"), **everything))))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=300))
@settings(max_examples=12)
def test_sections_keep_any_question_as_it_is_written(question: str) -> None:
    found = sections(changed(shipped("article-toy"), question=question or None))
    said = [block.text for section in found for block in section.blocks if isinstance(block, Text) and block.lead]
    assert not question or question in said


def test_settings_tell_where_each_value_came_from() -> None:
    from simkv.report.run.settings import settings as read

    given_ = read(shipped("chatbot"))
    assert given_.origin("workload.requests") == "--set"
    assert given_.origin("tiers.dram.capacity") == "scenario" and given_.text("tiers.dram.capacity") == "200GiB"
    assert given_.origin("engine") == "scenario; preset vllm 0.33; computed from the memory budget; catalogue; " \
        "computed: 16-bit whatever the weights; default"  # fmt: skip
    assert given_.amount("link.h2d", "rate") == 25e9 and given_.amount("link.h2d", "time") is None


@pytest.mark.parametrize("text", ["a: [", "- 1", "", "name: x\n  y: 2\n"])
def test_settings_of_a_damaged_scenario_are_refused(text: str) -> None:
    from simkv.report.run.settings import settings as read

    folder = made_up(5)
    (folder.path / "scenario.resolved.yaml").write_text(text, "utf-8")
    with pytest.raises(InputError, match="isn't the scenario of a run"):
        read(RunFolder(folder.path, folder.summary))


def test_question_has_a_row_for_every_key_of_the_workload() -> None:
    table = table_of(sections(shipped("chatbot")), "assumptions")
    rows = {row[0].text: row[1].text for row in table.rows}
    assert rows["Workload"] == "sessions" and rows["Workload: requests"] == "2,000"
    assert rows["Workload: prompt tokens"] == "lognormal, max 4,000, median 120, sigma 1.0"
    assert rows["SSD"] == "none" and rows["SLO"] == "ttft p95 2s, itl p95 60ms"


def test_obtained_names_the_command_that_repeats_the_run() -> None:
    import shlex

    folder = shipped("chatbot")
    code = next(b for b in all_blocks(sections(folder)) if isinstance(b, Code))
    verb = shlex.split(code.text)
    assert verb[:2] == ["simkv", "run"] and Path(verb[2]).exists() and verb[3:] == ["--seed", "0"]


def test_obtained_names_the_calibration_with_its_residuals() -> None:
    found = sections(shipped("calibrated-small"))
    table = table_of(found, "calibration-residuals")
    assert "copies to the device" in [row[0].text for row in table.rows]
    assert any("amd-epyc-2-cores" in text for text in texts(found))


def test_obtained_says_when_the_calibration_is_gone() -> None:
    folder = shipped("calibrated-small")
    text = folder.resolved.replace("amd-epyc-2-cores.json", "gone.json")
    moved = RunFolder(folder.path, folder.summary)
    moved.__dict__["resolved"] = text
    assert any("can't be read from here" in said for said in texts(sections(moved)))


def test_closed_form_stands_beside_the_simulated_figure() -> None:
    folder = shipped("chatbot")
    table = table_of(sections(folder), "closed-form")
    rows = {row[0].text: row for row in table.rows}
    assert rows["TTFT"][1].exact == folder.summary["closed_form"]["ttft_s"]
    assert rows["TTFT"][2].exact == folder.summary["ttft_s"]["mean"]
    ratio = folder.summary["ttft_s"]["mean"] / folder.summary["closed_form"]["ttft_s"]
    assert rows["TTFT"][4].exact == pytest.approx(ratio)
    assert all(row[5].text for row in table.rows)


def test_latency_table_holds_the_summarys_numbers_exactly() -> None:
    folder = shipped("chatbot")
    table = table_of(sections(folder), "latencies")
    row = next(row for row in table.rows if row[0].text == "E2E")
    values = folder.summary["e2e_s"]
    assert [cell.exact for cell in row[3:8]] == [values[name] for name in ("p50", "p90", "p95", "p99", "max")]


def test_cost_says_what_it_is_without_offload() -> None:
    cost = {"gpu_hour": 2.0, "dram_gib_hour": 0.001, "currency": "USD", "source": "a list"}
    found = {s.key: s for s in sections(made_up(context={"cost": cost}))}["cost"]
    (facts,) = found.blocks
    assert isinstance(facts, Facts)
    rows = dict(facts.rows)
    assert rows["An hour"] == "2.20 USD" and "A million output tokens without offload" in rows
    assert rows["Prices from"] == "a list"


def test_resources_mark_what_binds_and_say_what_each_can_carry() -> None:
    folder = shipped("qos-two-classes")
    table = table_of(sections(folder), "resources")
    marked = [row[0].text for row in table.rows if row[5].text == "bottleneck"]
    assert marked == ["H2D link"] and folder.summary["bottleneck"] == "h2d"
    link = next(row for row in table.rows if row[0].text == "H2D link")
    assert link[4].exact == 12e9
    assert link[3].exact == pytest.approx(folder.summary["bytes"]["h2d"] / folder.summary["makespan_s"])
    assert np.isclose(link[3].exact / link[4].exact, folder.summary["utilization"]["h2d"], rtol=0.05)


def test_resources_tell_of_swaps_and_of_warm_tiers() -> None:
    swap = {"requests": 9, "refused": 1, "out_bytes": 2**30, "in_bytes": 2**31}
    warm = {"requests": 500, "time_s": 60.0, "settled": True, "written": {"vram": 2.0, "dram": 0.5, "ssd": None}}
    said = texts(sections(changed(made_up(50), swap=swap, warm_tiers=warm, preemptions=10)))
    assert "9 preempted requests; 1.00 GiB out and 2.00 GiB back in; DRAM refused 1" in said
    assert any("VRAM written 2.00 times over, DRAM written 0.500 times over; longer would" in text for text in said)


def test_answered_is_the_first_section_alone() -> None:
    folder = shipped("article-toy")
    assert answered(folder) == sections(folder)[0]


def test_answer_says_what_becomes_of_the_slo_without_offload() -> None:
    folder = shipped("chatbot")
    plain = folder.summary["baselines"]["no_offload"]["slo_attainment"]
    told = " ".join(block.text for block in answered(folder).blocks if isinstance(block, Text))
    met = all(target["met"] for target in plain["targets"].values())
    assert f"Without offload the SLO {'holds, too' if met else 'is missed'}: " in told
    assert seconds(plain["targets"]["ttft_p95"]["value"]) in told
