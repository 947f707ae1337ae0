"""Workloads fitted from a trace: what is drawn is like the trace, and ``simkv trace fit`` says how much."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from simkv.cli import app
from simkv.errors import InputError
from simkv.workload.ceiling import Ceiling
from simkv.workload.fitted import FittedModel, build_fitted, fit, load, save
from simkv.workload.fitted.fit import fit_arrivals
from simkv.workload.fitted.model import FittedArrivals, FittedRequests, Origin
from simkv.workload.fitted.reuse import ReuseDistances
from simkv.workload.fitted.source import FittedSource, arrival_times, cut
from simkv.workload.inspect import inspect_requests
from simkv.workload.readers import ReadReport, open_trace
from simkv.workload.request import Request, Spans
from simkv.workload.single import Limits
from simkv.workload.streams import Streams

ROOT = Path(__file__).parents[1]


def simkv(*args: str | Path) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def chats(count: int, seed: int = 0) -> list[Request]:
    """Twenty chats behind one system prompt of 200 tokens, each turn 300 tokens longer, bursts of three."""
    rng = np.random.default_rng(seed)
    turns, made, now_s = dict.fromkeys(range(20), 0), [], 0.0
    for i in range(count):
        chat = int(rng.integers(20))
        turns[chat] = turns[chat] % 12 + 1
        own = 300 * turns[chat]
        if i % 3 == 0:
            now_s += float(rng.gamma(0.5, 4.0))
        stream = 1 + chat * 100_000 + i // 240
        made.append(Request(i, now_s, 200 + own, 50, ((0, 0, 200), (stream, 0, own), (1 << 40 | i, 0, 50))))
    return made


def fitted(requests: list[Request], **options: Any) -> FittedModel:
    return fit(requests, ReadReport("chats"), **options)


def drawn(model: FittedModel, count: int, seed: int = 0, scale: float = 1.0) -> list[Request]:
    return list(FittedSource(model, Limits(count, None), scale, Streams(seed)).arrivals())


def told(requests: list[Request]) -> list[tuple[object, ...]]:
    return [(r.id, r.arrival_s, r.prompt_tokens, r.output_tokens, r.spans) for r in requests]


def simple(rows: list[tuple[int, int, int, int]], arrivals: FittedArrivals | None = None) -> FittedModel:
    columns = [list(column) for column in zip(*rows, strict=True)]
    by_itself = FittedArrivals(100.0, [1.0], [1.0], [1.0])
    return FittedModel(Origin("any", len(rows), 100.0, None), arrivals or by_itself, FittedRequests(*columns))


# ---- laws of what is drawn --------------------------------------------------------------------


def test_fitted_requests_come_in_order_with_ids_that_rise() -> None:
    requests = drawn(fitted(chats(600)), 2000)
    assert [r.id for r in requests] == list(range(2000))
    assert requests[0].arrival_s == 0
    assert all(a.arrival_s <= b.arrival_s for a, b in pairwise(requests))


def test_fitted_spans_cover_prompt_and_output() -> None:
    for r in drawn(fitted(chats(600)), 2000):
        assert sum(length for _, _, length in r.spans) == r.prompt_tokens + r.output_tokens
        assert all(length > 0 for _, _, length in r.spans)
        assert all(a[0] != b[0] or a[1] + a[2] != b[1] for a, b in pairwise(r.spans)), "merged"


def test_fitted_requests_are_the_same_for_the_same_seed_only() -> None:
    model = fitted(chats(300))
    assert told(drawn(model, 500, 3)) == told(drawn(model, 500, 3))
    assert told(drawn(model, 500, 3)) != told(drawn(model, 500, 4))
    source = FittedSource(model, Limits(500, None), 1.0, Streams(3))
    assert told(list(source.arrivals())) == told(list(source.arrivals()))


def test_fitted_requests_more_of_them_begin_with_the_same() -> None:
    model = fitted(chats(300))
    assert told(drawn(model, 900))[:400] == told(drawn(model, 400))


def test_fitted_request_hits_what_its_row_shares() -> None:
    """In a cache that never forgets, once there is enough to share; exactly, request by request."""
    model = fitted(chats(600))
    rows = set(zip(model.requests.prompt_tokens, model.requests.shared_tokens, strict=True))
    ceiling = Ceiling(1)
    hits = [(r.prompt_tokens, ceiling.add_uncapped(r)) for r in drawn(model, 3000)]
    assert set(hits[500:]) <= rows


def test_fitted_requests_hit_as_often_as_the_trace() -> None:
    requests = chats(1500)
    model = fitted(requests)
    seen, tokens = (sum(column) for column in (model.requests.shared_tokens, model.requests.prompt_tokens))
    ceiling, again = Ceiling(1), drawn(model, 6000)
    rate = sum(ceiling.add_uncapped(r) for r in again) / sum(r.prompt_tokens for r in again)
    assert seen / tokens > 0.5
    assert rate == pytest.approx(seen / tokens, abs=0.02)


def test_fitted_requests_reuse_after_as_many_others_as_the_trace() -> None:
    model = fitted(chats(1500))
    found = ReuseDistances()
    again = [distance for shared, distance in map(found.add, drawn(model, 4000)) if shared]
    before = [d for d, s in zip(model.requests.rank_distance, model.requests.shared_tokens, strict=True) if s]
    for q in (25, 50, 75, 90):
        assert np.percentile(again, q) == pytest.approx(np.percentile(before, q), rel=0.25, abs=2)


def test_fitted_rows_keep_prompt_and_output_together() -> None:
    model = simple([(10, 1, 0, 0), (1000, 100, 0, 0)])
    assert {(r.prompt_tokens, r.output_tokens) for r in drawn(model, 200)} == {(10, 1), (1000, 100)}


@given(
    st.lists(st.tuples(st.integers(1, 300), st.integers(1, 40), st.integers(0, 300), st.integers(1, 50)), min_size=1)
)
def test_fitted_source_serves_any_rows(rows: list[tuple[int, int, int, int]]) -> None:
    """Whatever is shared, nothing is shared that isn't there, and lengths are those of the row."""
    sound = [(p, o, min(p, s), d if min(p, s) else 0) for p, o, s, d in rows]
    lengths = {(p, o) for p, o, _, _ in sound}
    ceiling = Ceiling(1)
    for r in drawn(simple(sound), 60):
        assert (r.prompt_tokens, r.output_tokens) in lengths
        assert sum(length for _, _, length in r.spans) == r.prompt_tokens + r.output_tokens
        assert ceiling.add_uncapped(r) <= r.prompt_tokens


def test_cut_takes_the_first_tokens() -> None:
    spans: Spans = ((0, 5, 10), (1, 0, 10))
    assert cut(spans, 10) == ((0, 5, 10),)
    assert cut(spans, 13) == ((0, 5, 10), (1, 0, 3))
    assert cut(spans, 20) == spans


def test_reuse_distances_count_requests_back_to_the_last_that_held_the_prefix() -> None:
    def request(*spans: tuple[int, int, int]) -> Request:
        tokens = sum(length for _, _, length in spans)
        return Request(0, 0.0, tokens, 5, (*spans, (1 << 40, 0, 5)))

    found = ReuseDistances()
    assert found.add(request((0, 0, 100))) == (0, 0)
    assert found.add(request((0, 0, 100), (1, 0, 50))) == (100, 1)
    assert found.add(request((2, 0, 10))) == (0, 0)
    assert found.add(request((0, 0, 100), (1, 0, 80))) == (150, 2)
    assert found.add(request((0, 0, 60))) == (60, 1)
    assert found.add(request((0, 0, 100), (1, 0, 80), (3, 0, 1))) == (180, 2)


# ---- arrivals ---------------------------------------------------------------------------------


def times_of(arrivals: FittedArrivals, count: int, scale: float = 1.0, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.array(list(islice(arrival_times(arrivals, scale, Streams(seed)), count)))


@pytest.mark.parametrize("cv", [0.0, 0.5, 1.0, 3.0])
def test_fitted_arrivals_have_their_rate_and_burstiness(cv: float) -> None:
    times = times_of(FittedArrivals(50.0, [4.0], [cv], [1.0]), 40_000)
    gaps = np.diff(times)
    assert gaps.mean() == pytest.approx(0.25, rel=4 * cv / 200 + 1e-9)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.08, abs=1e-9)


def test_fitted_arrivals_follow_the_rate_of_each_window_round_and_round() -> None:
    times = times_of(FittedArrivals(100.0, [10.0, 0.0, 1.0], [1.0, 1.0, 1.0], [1.0]), 100_000)
    of = (times // 100).astype(int) % 3
    whole_rounds = times[-1] // 300
    counts = np.bincount(of, minlength=3) / whole_rounds
    assert counts[1] == 0
    assert counts[[0, 2]] == pytest.approx([1000, 100], rel=0.05)


def test_fitted_arrivals_step_over_rounds_in_which_nothing_comes() -> None:
    """A round of a microsecond at one request an hour: nobody walks through a billion of them."""
    times = times_of(FittedArrivals(1e-6, [1 / 3600, 0.0], [1.0, 1.0], [1.0]), 2000)
    assert np.diff(times).mean() == pytest.approx(7200, rel=0.1)
    assert np.diff(times).std() == pytest.approx(7200, rel=0.1)


@pytest.mark.parametrize("cv", [0.0, 1.0, 1000.0])
@pytest.mark.parametrize("window_s", [2e-6, 1.0, 1e10])
@pytest.mark.parametrize("rate_per_s", [1e-9, 1e12])
def test_fitted_arrivals_of_extreme_windows_come_in_order_and_without_end(
    cv: float, window_s: float, rate_per_s: float
) -> None:
    """Late times are further apart than the shortest windows, and a gap can be a million of the mean."""
    arrivals = FittedArrivals(window_s, [rate_per_s, 0.0, rate_per_s], [cv] * 3, [0.5, *[0.0] * 98, 0.5])
    times = times_of(arrivals, 2000)
    assert len(times) == 2000
    assert np.isfinite(times).all()
    assert (np.diff(times) >= 0).all()


def test_fitted_arrivals_come_in_batches_of_the_right_sizes() -> None:
    times = times_of(FittedArrivals(100.0, [6.0], [1.0], [0.5, 0.0, 0.5]), 30_000)
    sizes = np.unique(times, return_counts=True)[1][:-1]
    assert set(sizes.tolist()) == {1, 3}
    assert (sizes == 3).mean() == pytest.approx(0.5, abs=0.02)
    assert 30_000 / times[-1] == pytest.approx(6, rel=0.05)


def test_fitted_rate_scale_divides_times() -> None:
    arrivals = FittedArrivals(100.0, [2.0], [1.5], [1.0])
    assert times_of(arrivals, 100, 4.0) == pytest.approx(times_of(arrivals, 100) / 4)


def test_fit_arrivals_finds_rates_by_window() -> None:
    rng = np.random.default_rng(2)
    times = np.sort(np.concatenate([rng.uniform(0, 500, 4000), rng.uniform(500, 1000, 1000)]))
    found = fit_arrivals(times, np.ones(len(times), dtype=np.int64))
    assert len(found.rate_per_s) == 50
    assert np.mean(found.rate_per_s[:25]) == pytest.approx(8, rel=0.02)
    assert np.mean(found.rate_per_s[25:]) == pytest.approx(2, rel=0.02)
    assert np.mean(found.gap_cv) == pytest.approx(1, abs=0.1)
    assert sum(found.rate_per_s) * found.window_s == pytest.approx(len(times) - 1)


def test_fit_of_its_own_draws_finds_itself() -> None:
    """A fit of 20,000 requests drawn from a fit has its figures."""
    model = fitted(chats(1500))
    again = fitted(drawn(model, 20_000))
    assert again.arrivals.mean_batch == pytest.approx(model.arrivals.mean_batch, rel=0.05)
    assert np.mean(again.arrivals.rate_per_s) == pytest.approx(np.mean(model.arrivals.rate_per_s), rel=0.05)
    for column in ("prompt_tokens", "shared_tokens"):
        expected = np.mean(getattr(model.requests, column))
        assert np.mean(getattr(again.requests, column)) == pytest.approx(expected, rel=0.03)


# ---- the sample and the file ------------------------------------------------------------------


def test_fit_holds_no_more_rows_than_asked_for_a_uniform_sample() -> None:
    requests = [Request(i, float(i), 1 + i, 1, ((1 << 40 | i, 0, 2 + i),)) for i in range(5000)]
    model = fitted(requests, rows=500)
    assert len(model.requests.prompt_tokens) == 500
    assert model.origin.requests == 5000
    assert model.requests.prompt_tokens == sorted(set(model.requests.prompt_tokens)), "no row twice, in file order"
    assert np.mean(model.requests.prompt_tokens) == pytest.approx(2500, abs=4 * 1443 / 500**0.5)
    assert fitted(requests, rows=500) == model
    assert fitted(requests, rows=500, seed=1) != model


def test_fit_of_requests_that_come_at_once_is_refused() -> None:
    with pytest.raises(InputError, match="5 requests within 1 ms have no gaps to fit"):
        fitted([replace_time(r, 0.0) for r in chats(5)])


def test_fit_of_requests_in_another_unit_than_seconds_is_refused() -> None:
    requests = [replace_time(r, r.id * 1e12) for r in chats(5)]
    with pytest.raises(InputError, match=r"^log.csv: ts: lasts 4e\+12 s; no run lasts longer than 1e\+10 s"):
        fit(requests, ReadReport("log", "ts"), file="log.csv")


def replace_time(request: Request, arrival_s: float) -> Request:
    request.arrival_s = arrival_s
    return request


def test_fit_saved_and_loaded_is_the_same(tmp_path: Path) -> None:
    model = fitted(chats(100))
    with (tmp_path / "w.json").open("wb") as file:
        save(model, file)
    assert load(tmp_path / "w.json") == model


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., Path]:
    """Write a sound fit with one part replaced."""

    def written(part: str = "", key: str = "", value: object = None) -> Path:
        path = tmp_path / "workload.json"
        with path.open("wb") as file:
            save(simple([(10, 2, 0, 0), (20, 2, 10, 1)]), file)
        if part:
            read = json.loads(path.read_text())
            if value == "gone":
                del read[part][key]
            else:
                read[part][key] = value
            path.write_text(json.dumps(read))
        return path

    return written


@pytest.mark.parametrize(
    ("part", "key", "value", "said"),
    [
        ("arrivals", "window_s", 0, "arrivals.window_s: is no finite number above 1e-06"),
        ("arrivals", "window_s", 1e11, "arrivals.window_s: is above 1e+10"),
        ("arrivals", "rate_per_s", [], "is no list of 1 to"),
        ("arrivals", "rate_per_s", [0.0], "nothing would ever arrive"),
        ("arrivals", "rate_per_s", [-1.0], "arrivals.rate_per_s[0]"),
        ("arrivals", "gap_cv", [1.0, 1.0], "has 2 values where rate_per_s has 1"),
        ("arrivals", "gap_cv", "gone", "arrivals.gap_cv: is missing"),
        ("arrivals", "batch_shares", [0, 0], "sums to zero"),
        ("requests", "prompt_tokens", [10, 0], "requests.prompt_tokens[1]"),
        ("requests", "prompt_tokens", [10, True], "requests.prompt_tokens[1]"),
        ("requests", "output_tokens", [1], "has 1 values where prompt_tokens has 2"),
        ("requests", "shared_tokens", [0, 21], "21 is more than the prompt's 20"),
        ("requests", "rank_distance", [0, 0], "requests.rank_distance[1]"),
        ("origin", "format", 3, "origin.format: is no text"),
    ],
)
def test_load_refuses_a_broken_fit_and_names_the_part(
    saved: Callable[..., Path], part: str, key: str, value: object, said: str
) -> None:
    path = saved(part, key, value)
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("{}", "is no fitted workload"),
        ('{"simkv_workload": 9}', "of version 9"),
        ("", "is empty"),
    ],
)
def test_load_refuses_another_file(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "w.json"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        load(path)


def test_fitted_needs_a_bound(saved: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match="nothing bounds the workload"):
        build_fitted({"path": str(saved())}, 0)
    requests = list(build_fitted({"path": str(saved())}, 0, 30.0).arrivals())
    assert 10 < len(requests) < 60
    assert build_fitted({"path": str(saved())}, 0, 30.0).expected_requests() == 30
    assert build_fitted({"path": str(saved()), "requests": 7}, 0, 30.0).expected_requests() == 7
    assert requests[-1].arrival_s < 30


def test_fitted_rate_scale_that_leaves_nothing_is_refused(saved: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=r"workload.rate_scale = 1e-300: leaves 1e-300 requests a second"):
        build_fitted({"path": str(saved()), "requests": 5, "rate_scale": 1e-300}, 0)


# ---- public traces ----------------------------------------------------------------------------


@pytest.mark.shared
def test_fit_of_mooncake_conversation_draws_requests_like_it(shared: Path) -> None:
    source = open_trace(shared / "traces/mooncake/conversation_trace.jsonl")
    report = ReadReport(source.reader.name)
    model = fit(source.reader.read(source.path, report), report)
    answer = inspect_requests(drawn(model, 12_031, seed=2), ReadReport("drawn", block_tokens=512)).answer()
    cache = answer["infinite_cache"]
    assert (cache["token_hit_rate"], cache["block_hit_rate"]) == pytest.approx((0.3736, 0.3664), abs=0.03)
    assert answer["prompt_tokens"]["mean"] == pytest.approx(12_035, rel=0.05)
    assert answer["prompt_tokens"]["p95"] == pytest.approx(39_552, rel=0.1)
    assert answer["output_tokens"]["mean"] == pytest.approx(342.6, rel=0.03)
    arrivals = answer["arrivals"]
    assert arrivals["rate_per_s"] == pytest.approx(3.40, rel=0.05)
    assert arrivals["gap_cv"] == pytest.approx(3.03, rel=0.1)
    assert arrivals["counts"][0]["index_of_dispersion"] == pytest.approx(7.9, rel=0.15)


@pytest.mark.shared
def test_fit_of_mooncake_conversation_hits_like_it_in_small_caches(shared: Path) -> None:
    """Least recently used blocks, at capacities where only what comes back soon is still there."""
    from simkv.kvcache.eviction.lru import Lru
    from simkv.kvcache.replay import replay

    source = open_trace(shared / "traces/mooncake/conversation_trace.jsonl", limit=4000)
    requests = list(source.arrivals())
    again = drawn(fit(requests, source.report), 4000)
    rates = []
    for made in (requests, again):
        references = block_references(made)
        rates.append([replay(references, blocks, Lru()) / len(references) for blocks in (2_000, 10_000, 40_000)])
    assert rates[1] == pytest.approx(rates[0], abs=0.06)


def block_references(requests: list[Request], block_tokens: int = 512) -> list[int]:
    """Return the blocks of all prompts by number: equal where the tokens up to their end are."""
    numbers: dict[tuple[int, int, int], int] = {}
    references = []
    for r in requests:
        before = -1
        ends = range(block_tokens, r.prompt_tokens + block_tokens, block_tokens)
        for end in ends:
            stream, offset = last_token(r.spans, min(end, r.prompt_tokens))
            before = numbers.setdefault((before, stream, offset), len(numbers))
            references.append(before)
    return references


def last_token(spans: Spans, tokens: int) -> tuple[int, int]:
    """Return stream and offset of the last of the first ``tokens`` tokens."""
    for stream, start, length in spans:
        if tokens <= length:
            return stream, start + tokens - 1
        tokens -= length
    raise AssertionError(spans)


@pytest.mark.shared
def test_trace_fit_prints_the_trace_beside_what_is_drawn(shared: Path, tmp_path: Path) -> None:
    out = tmp_path / "workload.json"
    trace = shared / "traces/mooncake/arxiv_mooncake_trace_head1000.jsonl"
    result = simkv("trace", "fit", trace, "--out", out)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == f"wrote {out}: 1,000 of 1,000 requests, arrivals by one rate"
    assert any(line.startswith("infinite cache, prompt tokens") and "39.07%" in line for line in lines)
    assert "Kolmogorov-Smirnov" in lines[-2]
    assert lines[-1] == f"To use it: workload: {{kind: fitted, path: {out}, requests: 1000}}"


@pytest.mark.shared
def test_trace_fit_json_is_close_to_the_trace(shared: Path, tmp_path: Path) -> None:
    trace = shared / "traces/azure/AzureLLMInferenceTrace_conv.csv"
    result = simkv("trace", "fit", trace, "--out", tmp_path / "w.json", "--rows", "4000", "--json")
    answer = json.loads(result.stdout)
    assert answer["rows"] == 4000
    assert answer["trace"]["requests"] == 19_366
    assert max(answer["ks"].values()) < 0.03
    assert answer["drawn"]["arrivals"]["rate_per_s"] == pytest.approx(
        answer["trace"]["arrivals"]["rate_per_s"], rel=0.05
    )
    assert set(answer["drawn"]["infinite_cache"].values()) == {None}, "the trace says nothing of content"


# ---- the command line -------------------------------------------------------------------------


def test_trace_fit_then_run_simulates_what_was_drawn(tmp_path: Path) -> None:
    trace, out = tmp_path / "trace.jsonl", tmp_path / "w.json"
    rows = [
        {"timestamp": 500 * i, "input_length": 1024, "output_length": 20, "hash_ids": [0, i % 5]} for i in range(60)
    ]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert simkv("trace", "fit", trace, "--out", out).exit_code == 0
    scenario = ROOT / "scenarios" / "chatbot.yaml"
    workload = f"workload={{kind: fitted, path: {out}, requests: 80, rate_scale: 2}}"
    result = simkv("run", scenario, "--set", workload, "--out", tmp_path / "r", "--json")
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert summary["requests"]["finished"] == 80
    assert summary["prompt_tokens"] == 80 * 1024
    assert summary["hit_rate"]["ceiling"] > 0.8


def test_trace_fit_never_replaces_unless_forced(tmp_path: Path) -> None:
    trace, out = tmp_path / "trace.jsonl", tmp_path / "w.json"
    rows = [{"arrival_s": i, "prompt_tokens": 9, "output_tokens": 9} for i in range(3)]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out.write_text("precious")
    assert simkv("trace", "fit", trace, "--out", out).exit_code == 2
    assert out.read_text() == "precious"
    assert simkv("trace", "fit", trace, "--out", out, "--force").exit_code == 0
    assert simkv("trace", "inspect", out).exit_code == 2


def test_trace_fit_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"arrival_s": 0, "prompt_tokens": 9, "output_tokens": 9}\n')
    result = simkv("trace", "fit", trace, "--out", tmp_path / "w.json")
    assert result.exit_code == 2
    assert "fit a longer trace" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["trace.jsonl"]


@pytest.mark.shared
def test_trace_fit_of_sessions_is_refused(shared: Path, tmp_path: Path) -> None:
    result = simkv("trace", "fit", shared / "traces/claude_code_sessions", "--out", tmp_path / "w.json")
    assert result.exit_code == 2
    assert "it has no arrivals to fit" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("path: nowhere.json, requests: 5", "no such file"),
        ("path: {path}", "nothing ends this workload"),
        ("path: {path}, requests: 5, rate_scale: 0", "workload.rate_scale"),
        ("path: {path}, requests: 5, time_scale: 2", "workload.time_scale"),
    ],
)
def test_fitted_scenario_refuses_bad_keys(saved: Callable[..., Path], tmp_path: Path, keys: str, said: str) -> None:
    keys = keys.replace("{path}", str(saved()))
    scenario = ROOT / "scenarios" / "chatbot.yaml"
    result = simkv("run", scenario, "--set", f"workload={{kind: fitted, {keys}}}", "--out", tmp_path / "r")
    assert result.exit_code == 2
    assert said in result.stderr
