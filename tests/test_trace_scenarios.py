"""A scenario whose workload is a trace: what its keys take, and a run of it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from simkv.errors import InputError
from simkv.scenario.build import workload_source
from simkv.scenario.explain import to_yaml
from simkv.scenario.resolve import resolve_text
from simkv.scenario.workload_schema import TraceColumns, TraceWorkload
from simkv.simulation import run_scenario
from simkv.workload.readers import READERS
from simkv.workload.readers.log import ROLES, UNITS
from tests import faults

HEAD = "name: t\nmodel: {kv_bytes_per_token: 100KiB}\nhardware: {step_time: 10ms, kv_tokens: 20000}\n"
LOG = """\
t,in,out,user,kind
0,500,5,a,chat
100,900,5,b,batch
900,600,5,a,chat
950,700,0,a,chat
"""
WORKLOAD = (
    "workload: {kind: trace, path: FILE, arrival_unit: ms, "
    "columns: {arrival: t, prompt_tokens: in, output_tokens: out, session: user, class: kind}}\n"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    return path


def complaints(content: str) -> list[str]:
    return faults.complaints(content, use=lambda resolved: workload_source(resolved, 0))


def test_trace_formats_of_a_scenario_are_those_that_are_read() -> None:
    allowed = get_args(TraceWorkload.model_fields["format"].annotation)
    assert sorted(allowed) == sorted(["auto", *READERS])


def test_trace_columns_and_units_of_a_scenario_are_those_of_the_log_reader() -> None:
    fields = TraceColumns.model_fields.items()
    assert [field.alias or name for name, field in fields] == list(ROLES)
    unit = TraceWorkload.model_fields["arrival_unit"].annotation
    assert [name for arm in get_args(unit) for name in get_args(arm)] == list(UNITS)


def test_trace_of_a_log_runs_with_its_sessions_and_classes(log: Path) -> None:
    content = HEAD + "engine: {scheduling: priority}\nclasses: {batch: {priority: 1}, chat: {priority: 0}}\n"
    resolved = resolve_text(content + WORKLOAD.replace("FILE", str(log)))
    result = run_scenario(resolved)
    assert result.data.arrived == result.data.finished == 3
    assert set(result.data.class_names) == {"chat", "batch"}
    rows = result.data.requests
    third = int(rows["id"].argmax())
    assert rows["hit_vram_tokens"][third] == 496  # of the 505 of its session's first turn, in blocks of 16
    assert rows["ceiling_tokens"].tolist() == rows["hit_vram_tokens"].tolist()
    assert [float(t) for t in sorted(rows["arrival_s"])] == [0.0, 0.1, 0.9]
    again = resolve_text(to_yaml(resolved))
    assert again.scenario_hash == resolved.scenario_hash
    notes = [w["message"] for w in result.summary["warnings"] if w["code"] == "trace_rows"]
    assert notes == ["In the trace, 1 row dropped: out is 0: nothing was generated (first on line 5)."]


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (
            "{kind: trace, path: FILE, format: azure, columns: {arrival: t}}",
            "s.yaml:4: workload.columns: does nothing with format azure; write format: log, or leave it out",
        ),
        (
            "{kind: trace, path: FILE, format: mooncake, arrival_unit: s}",
            's.yaml:4: workload.arrival_unit = "s": does nothing with format mooncake; write format: log, or leave',
        ),
        ("{kind: trace, path: FILE, columns: {}}", "s.yaml:4: workload.columns: names no column"),
        (
            "{kind: trace, path: FILE, columns: {prefix_tokens: n}}",
            's.yaml:4: workload.columns.prefix_tokens = "n": does nothing without prefix_hash; name the column',
        ),
        (
            "{kind: trace, path: FILE, columns: {arival: t}}",
            's.yaml:4: workload.columns.arival: unknown key; did you mean "arrival"?',
        ),
        (
            "{kind: trace, path: FILE, arrival_unit: min}",
            's.yaml:4: workload.arrival_unit = "min": not one of the choices; valid: s, ms, us, ns, datetime',
        ),
    ],
)
def test_trace_settings_that_do_nothing_are_refused(log: Path, workload: str, message: str) -> None:
    (text,) = complaints(HEAD + "workload: " + workload.replace("FILE", str(log)))
    assert text.startswith(message)


def test_trace_classes_that_no_request_has_are_refused(log: Path) -> None:
    content = HEAD + WORKLOAD.replace("FILE", str(log)) + "classes: {chat: {}, bulk: {}}\n"
    assert complaints(content) == [
        "s.yaml: classes.bulk: no request of the trace is of this class; its classes are chat, batch"
    ]
    without = content.replace(", class: kind", "")
    assert complaints(without) == [
        "s.yaml: classes.chat: no request of the trace is of this class; name its column in workload.columns.class"
    ]


def test_trace_class_priority_under_fcfs_is_refused(log: Path) -> None:
    content = HEAD + WORKLOAD.replace("FILE", str(log)) + "engine: {scheduling: fcfs}\nclasses: {chat: {priority: 1}}\n"
    (text,) = complaints(content)
    assert "classes.chat.priority = 1: does nothing under fcfs" in text


@pytest.mark.shared
def test_trace_of_azure_runs_end_to_end(shared: Path) -> None:
    path = shared / "traces/azure/AzureLLMInferenceTrace_code.csv"
    content = HEAD + f"workload: {{kind: trace, path: {path}, limit: 200}}\n"
    data = run_scenario(resolve_text(content)).data
    assert data.arrived == data.finished == 200


@pytest.mark.parametrize(
    ("rows", "mend"),
    [("", "at least one row"), ("5,ChatGPT,0,0,0,API\n6,ChatGPT,0,0,0,API\n", "2 rows dropped: .*line 2")],
)
def test_trace_without_a_request_names_the_file_and_what_was_left_out(tmp_path: Path, rows: str, mend: str) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n" + rows)
    resolved = resolve_text(HEAD + f"workload: {{kind: trace, path: {path}}}\n", "s.yaml")
    with pytest.raises(InputError, match=rf"empty\.csv: has no request that can be served; .*{mend}"):
        run_scenario(resolved)
