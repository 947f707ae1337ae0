"""A measured vLLM run, predicted: RTX 4090, Llama-3.1-8B, 300 requests in the regime of preemption.

The efficiencies are fitted on kernel times of the card, never on this run (docs/model.md).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from simkv.results.result import RunResult
from simkv.scenario.resolve import resolve
from simkv.simulation import run_scenario

ROOT = Path(__file__).parents[1]
SCENARIO = ROOT / "scenarios" / "vllm-rtx4090-llama-3.1-8b.yaml"

# figure: measured (meta.json and requests.jsonl of the run), tolerance
MEASURED = {
    ("ttft_s", "mean"): (65.4566, 0.04),
    ("tpot_s", "mean"): (0.0324466, 0.04),
    ("ttft_s", "p95"): (122.739, 0.06),
    ("makespan_s", None): (183.6, 0.06),
}

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def predicted(shared: Path) -> RunResult:
    trace = shared / "traces" / "vllm_measured" / "sharegpt-llama-3.1-8b-300.jsonl"
    return run_scenario(resolve(str(SCENARIO), [f"workload.path={trace}"]), audit=True)


@pytest.fixture(scope="module")
def measured_ttft_s(shared: Path) -> NDArray[np.float64]:
    path = shared / "traces" / "vllm_measured" / "RTX4090" / "Llama-3.1-8B" / "requests.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows.sort(key=lambda row: int(row["request_id"].split("-")[1]))
    return np.array([row["first_token_ts"] - row["queued_ts"] for row in rows])


@pytest.mark.parametrize(("metric", "statistic"), MEASURED)
def test_measured_run_is_predicted_within_its_tolerance(
    predicted: RunResult, metric: str, statistic: str | None
) -> None:
    value, tolerance = MEASURED[metric, statistic]
    figure = predicted.summary[metric]
    assert (figure[statistic] if statistic else figure) == pytest.approx(value, rel=tolerance)


def test_measured_run_ttft_of_each_request_is_off_by_a_few_percent_of_the_mean(
    predicted: RunResult, measured_ttft_s: NDArray[np.float64]
) -> None:
    """docs/model.md reports the errors; a wave of admissions early or late moves its requests by seconds."""
    requests = predicted.data.requests
    order = np.argsort(requests["id"])
    ttft_s = (requests["first_token_s"] - requests["arrival_s"])[order]
    error_s = np.abs(ttft_s - measured_ttft_s)
    print(f"TTFT error of a request: mean {error_s.mean():.2f} s, p95 {np.percentile(error_s, 95):.2f} s")
    assert len(error_s) == 300
    assert error_s.mean() < 0.05 * measured_ttft_s.mean()
    assert np.corrcoef(ttft_s, measured_ttft_s)[0, 1] > 0.995


def test_measured_run_conserves_requests_and_tokens(predicted: RunResult) -> None:
    summary = predicted.summary
    assert summary["requests"] == {"arrived": 300, "finished": 300, "rejected": 0, "live": 0}
    assert summary["preemptions"] > 0, "the run preempts throughout"
    assert not [warning for warning in summary["warnings"] if warning["code"] == "rejected"]
