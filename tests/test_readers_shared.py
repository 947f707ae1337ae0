"""Trace readers and the ceiling on the public traces: counts and statistics known beforehand."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from simkv.errors import InputError
from simkv.workload.ceiling import Ceiling
from simkv.workload.readers import open_trace
from simkv.workload.request import Request

pytestmark = pytest.mark.shared


@pytest.fixture
def traces(shared: Path) -> Path:
    """The folder of public traces beside the repository."""
    return shared / "traces"


def read(path: Path) -> list[Request]:
    source = open_trace(path)
    made = list(source.arrivals())
    assert source.report.notes == {}
    return made


def figures(values: list[int]) -> list[float]:
    """Mean, and by nearest rank median, 95th percentile and maximum."""
    sample = np.array(values)
    return [float(sample.mean()), *(float(np.percentile(sample, q, method="inverted_cdf")) for q in (50, 95, 100))]


CASES = {
    "mooncake/conversation_trace.jsonl": (
        *(12_031, 3537, 144_793_823, 4_122_048),
        *([12_035, 6_909, 39_552, 126_195], [343, 350, 698, 2_000]),
    ),
    "mooncake/arxiv_mooncake_trace_head1000.jsonl": (
        *(1_000, 177, None, None),
        *([9_792, 6_557, 27_288, 121_290], [199, 34, 610, 2_000]),
    ),
    "vllm_measured/sharegpt-llama-3.1-8b-300.jsonl": (
        *(300, 29, None, None),
        *([858, 730, 1_747, 3_998], [653, 631, 773, 1_021]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_trace_has_the_rows_totals_and_statistics_of_the_index(traces: Path, name: str) -> None:
    rows, span_s, prompts, outputs, inputs, generated = CASES[name]
    made = read(traces / name)
    assert len(made) == rows
    assert round(made[-1].arrival_s - made[0].arrival_s) == pytest.approx(span_s, abs=1)
    assert prompts is None or sum(r.prompt_tokens for r in made) == prompts
    assert outputs is None or sum(r.output_tokens for r in made) == outputs
    assert figures([r.prompt_tokens for r in made]) == pytest.approx(inputs, abs=0.6)
    assert figures([r.output_tokens for r in made]) == pytest.approx(generated, abs=0.6)


def test_mooncake_conversation_is_in_file_order_with_ties_and_a_duplicate(traces: Path) -> None:
    made = read(traces / "mooncake/conversation_trace.jsonl")
    times = [r.arrival_s for r in made]
    assert [r.id for r in made] == list(range(12_031))
    assert times == sorted(times)
    assert len(set(times)) == 1_180
    assert all(r.spans[0][:2] == (0, 0) for r in made)
    assert sum(r.arrival_s == 2369.999 for r in made) >= 2


@pytest.mark.parametrize(
    ("name", "blocks", "tokens"),
    [
        ("mooncake/conversation_trace.jsonl", 0.3664, 0.3736),
        ("mooncake/arxiv_mooncake_trace_head1000.jsonl", 0.3799, 0.3907),
    ],
)
def test_ceiling_reproduces_the_hits_of_an_infinite_cache(
    traces: Path, name: str, blocks: float, tokens: float
) -> None:
    """The index counts partial last blocks, and prompts that are cached whole."""
    made = read(traces / name)
    ceiling = Ceiling(512)
    leading = [ceiling.add_uncapped(r) for r in made]
    referenced = sum(-(-r.prompt_tokens // 512) for r in made)
    assert sum(-(-n // 512) for n in leading) / referenced == pytest.approx(blocks, abs=5e-5)
    assert sum(leading) / sum(r.prompt_tokens for r in made) == pytest.approx(tokens, abs=5e-5)
    assert len(ceiling) < 1.1 * len(made)


def test_ceiling_in_full_blocks_is_just_below_and_falls_with_block_size(traces: Path) -> None:
    made = read(traces / "mooncake/conversation_trace.jsonl")
    total = sum(r.prompt_tokens for r in made)
    shares = []
    for block_tokens in (1, 16, 512):
        ceiling = Ceiling(block_tokens)
        shares.append(sum(ceiling.add(r) for r in made) / total)
    assert 0.37363 > shares[0] >= shares[1] >= shares[2] > 0.36


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("other_formats/ten_requests_text_cut.jsonl", "aibrix"),
        ("other_formats/tair_kvcache_optimizer_trace.jsonl", "Tair"),
        ("other_formats/lmbenchmark_agentic_demo.jsonl", "LMBenchmark"),
        ("other_formats/otel_simple_chain.json", "OpenTelemetry"),
        ("other_formats/arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv", "Vidur"),
        ("vllm_measured/RTX4090/Llama-3.1-8B/requests.jsonl", "measured run"),
    ],
)
def test_trace_of_another_format_is_refused_by_name(traces: Path, name: str, label: str) -> None:
    with pytest.raises(InputError) as caught:
        open_trace(traces / name)
    assert "looks like a" in str(caught.value)
    assert label in str(caught.value)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("other_formats/mooncake_tiny.jsonl", 16),
        ("other_formats/mooncake_trace_tiny.jsonl", 2),
        ("other_formats/example_trace.jsonl", 10),
        ("other_formats/workload_me2_01_mixed.jsonl", 608),
    ],
)
def test_trace_samples_of_known_formats_are_read_whole(traces: Path, name: str, rows: int) -> None:
    assert len(read(traces / name)) == rows


@pytest.mark.speed
def test_mooncake_conversation_is_read_quickly(traces: Path) -> None:
    def cost_s() -> float:
        started = perf_counter()
        read(traces / "mooncake/conversation_trace.jsonl")
        return perf_counter() - started

    assert min(cost_s() for _ in range(3)) < 0.3
