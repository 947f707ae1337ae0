"""The CSV traces of Azure and BurstGPT as published: counts and statistics known beforehand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simkv.workload.readers import TraceSource, open_trace
from simkv.workload.request import Request

pytestmark = pytest.mark.shared


@pytest.fixture
def traces(shared: Path) -> Path:
    """The folder of public traces beside the repository."""
    return shared / "traces"


def read(path: Path) -> tuple[TraceSource, list[Request]]:
    source = open_trace(path)
    return source, list(source.arrivals())


def figures(values: list[int]) -> list[float]:
    """Mean, and by nearest rank median, 95th percentile and maximum."""
    sample = np.array(values)
    return [float(sample.mean()), *(float(np.percentile(sample, q, method="inverted_cdf")) for q in (50, 95, 100))]


@pytest.mark.parametrize(
    ("name", "rows", "span_s", "inputs", "outputs"),
    [
        ("code", 8_819, 3_436, [2_048, 1_469, 7_315, 7_437], [28, 13, 90, 1_899]),
        ("conv", 19_366, 3_502, [1_155, 1_020, 4_083, 14_050], [211, 129, 451, 1_000]),
    ],
)
def test_azure_has_the_rows_span_and_statistics_of_the_index(
    traces: Path, name: str, rows: int, span_s: float, inputs: list[float], outputs: list[float]
) -> None:
    source, made = read(traces / f"azure/AzureLLMInferenceTrace_{name}.csv")
    assert source.reader.name == "azure"
    assert source.report.notes == {}
    assert len(made) == source.report.kept == rows
    assert made[0].arrival_s == 0.0
    assert made[-1].arrival_s == pytest.approx(span_s, abs=0.6)
    assert figures([r.prompt_tokens for r in made]) == pytest.approx(inputs, abs=0.6)
    assert figures([r.output_tokens for r in made]) == pytest.approx(outputs, abs=0.6)


def test_azure_times_keep_a_hundred_nanoseconds(traces: Path) -> None:
    _, made = read(traces / "azure/AzureLLMInferenceTrace_code.csv")
    assert [r.arrival_s for r in made[:3]] == [0.0, 0.052, 0.098189]


def test_burstgpt_head_has_the_rows_span_and_statistics_of_the_index(traces: Path) -> None:
    """The index counts all 400 rows; 17 of them are failures of no tokens, which are left out."""
    source, made = read(traces / "burstgpt/burstgpt_1_head400.csv")
    assert (len(made), source.report.kept, source.report.dropped) == (383, 383, 17)
    assert [n.code for n in source.report.notes.values()] == ["failed"]
    assert source.report.notes["failed"].first_line == 22
    assert made[-1].arrival_s - made[0].arrival_s == 37_269
    failures = [0] * 17
    assert figures([r.prompt_tokens for r in made] + failures) == pytest.approx([520, 308, 1_637, 2_126], abs=0.6)
    assert figures([r.output_tokens for r in made] + failures) == pytest.approx([276, 229, 812, 2_019], abs=0.6)
    times = [r.arrival_s for r in made]
    assert len(set(times)) < len(times)
    assert max(np.diff(times)) == pytest.approx(6_650, abs=1)
    assert all(r.session == -1 for r in made)


def test_burstgpt_sessions_of_version_3_repeat_their_history(traces: Path) -> None:
    """24 prompts hold all that their session held; 5 are shorter, and begin anew."""
    source, made = read(traces / "burstgpt/burstgpt_3_head60.csv")
    assert len(made) == 60
    assert {n.code: n.count for n in source.report.notes.values()} == {"wall_clock": 1, "session_anew": 5}
    assert sum(r.session == -1 for r in made) == 3
    assert sum(r.turn > 0 for r in made) == 29
    assert made[0].arrival_s == 0.0


def test_inference_perf_sample_of_the_azure_shape_is_read(traces: Path) -> None:
    source, made = read(traces / "other_formats/inference-perf_trace.csv")
    assert (source.reader.name, len(made), source.report.notes) == ("azure", 20, {})
