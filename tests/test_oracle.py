"""The macro-stepping engine against slower ones: its own single steps, and a naive engine of blocks and loops.

Cases are drawn by :func:`draw_case` from a ``random.Random``; hypothesis supplies one that it can shrink.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simkv.formulas.step import ConstantStep
from simkv.sim.config import (
    ClassConfig,
    DramConfig,
    EngineConfig,
    LinkConfig,
    OffloadConfig,
    SsdConfig,
    StepCost,
    SystemConfig,
)
from simkv.sim.rundata import RunData
from simkv.sim.system import System
from simkv.workload.replay import FixedSource
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Span
from tests.naive_engine import run_naive
from tests.spans import merged

BLOCK_BYTES = 1000
EXACT_COLUMNS = ("id", "replica", "rejected", "scheduled_s", "first_token_s", "finish_s", "hit_vram_tokens",
                 "hit_dram_tokens", "hit_ssd_tokens", "recomputed_tokens", "preemptions")  # fmt: skip
PART_COLUMNS = ("queue_time_s", "load_dram_time_s", "load_ssd_time_s", "prefill_time_s", "decode_time_s",
                "recompute_time_s", "preempted_time_s")  # fmt: skip


class AwkwardStep:
    """A step time that grows with everything and is never a short binary fraction."""

    def __init__(self, layers: int = 3) -> None:
        self.layers = layers

    def decode(self, sequences: int, context_tokens: int) -> tuple[float, float, int]:
        return 0.1 / 3 + 0.007 * sequences + 1.3e-4 * context_tokens, 1.3e-4 * sequences, 1 << 62

    def mixed(self, sequences: int, context_tokens: int, chunks: list[tuple[int, int]], sampled: int) -> float:
        work = sum(0.003 * new + 1e-5 * new * (before + new) for new, before in chunks)
        return 0.1 / 3 + 0.007 * sequences + 1.7e-4 * context_tokens + work + 1e-3 * sampled


class KneeStep(AwkwardStep):
    """The same with a knee: beyond ``knee`` context tokens each one costs more."""

    def __init__(self, knee: int = 40, layers: int = 3) -> None:
        super().__init__(layers)
        self.knee = knee

    def decode(self, sequences: int, context_tokens: int) -> tuple[float, float, int]:
        first = 0.1 / 3 + 0.007 * sequences + 1.3e-4 * context_tokens
        if context_tokens < self.knee:
            return first, 1.3e-4 * sequences, ceil((self.knee - context_tokens) / sequences)
        return first + 1e-3 * (context_tokens - self.knee), 1.13e-3 * sequences, 1 << 62


@dataclass(frozen=True)
class Case:
    """One system and what is sent to it."""

    config: SystemConfig
    requests: list[Request]


# ---- drawing


def draw_requests(rng: Random, bt: int, most: int, tick_s: float, classes: tuple[str, ...] = ("",)) -> list[Request]:
    """Draw requests that share prefixes, repeat each other and follow each other in sessions."""
    count = rng.randint(1, most)
    scale = rng.choice((6, 20, 60)) * (1 if bt < 16 else 3)
    systems = rng.randint(1, 3)
    out: list[Request] = []
    grown: dict[int, int] = {}
    now = 0.0
    gap = rng.choice((0.0, 0.3, 1.0, 4.0, 15.0)) * tick_s
    ties = rng.random() < 0.4
    for number in range(count):
        if rng.random() < 0.8:
            now += round(rng.random() * 2) * gap if ties else rng.random() * 2 * gap
        output = rng.choice((1, 1, 2, rng.randint(1, 2 * bt + 3), rng.randint(1, scale)))
        kind = rng.randint(0, 4)
        private = PRIVATE_STREAM_BASE + number
        if kind == 0 or not out:
            prompt = rng.randint(1, scale)
            spans: list[Span] = [(private, 0, prompt + output)]
        elif kind == 1:  # the very same prompt again, or a part of it
            old = rng.choice(out)
            prompt = old.prompt_tokens if rng.random() < 0.7 else rng.randint(1, old.prompt_tokens)
            spans, left = [], prompt
            for stream, start, length in old.spans:
                spans.append((stream, start, min(length, left)))
                left -= min(length, left)
            spans.append((private, 0, output))
        elif kind == 2:  # a system prompt and a tail
            head, tail = rng.randint(1, scale), rng.randint(0, scale // 2)
            prompt = head + tail
            spans = [(rng.randint(1, systems), 0, head), (private, 0, tail + output)]
        elif kind == 3:  # the next turn of a session whose answers come back
            session = 100 + rng.randint(0, 2)
            prompt = min(grown.get(session, 0) + rng.randint(1, scale // 2 + 1), 3 * scale)
            spans = [(session, 0, prompt + output)]
            grown[session] = prompt + output
        else:  # a system prompt, a session, a tail
            head, middle, tail = rng.choice((bt, 2 * bt + 1, 5)), rng.randint(0, scale), rng.randint(0, 5)
            prompt = head + middle + tail
            spans = [(rng.randint(1, systems), 0, head), (200 + rng.randint(0, 1), 0, middle)]
            spans.append((private, 0, tail + output))
        request = Request(number, now, prompt, output, merged(spans), cls=rng.choice(classes))
        assert sum(span[2] for span in request.spans) == prompt + output
        out.append(request)
    return out


def draw_engine(rng: Random, bt: int, requests: list[Request]) -> EngineConfig:
    """Draw an engine whose pool is often barely larger than its largest request."""
    largest = max(-(-(r.prompt_tokens + r.output_tokens - 1) // bt) for r in requests)
    seqs = rng.choice((1, 2, 3, 4, 8, 64))
    return EngineConfig(
        block_tokens=bt,
        block_bytes=BLOCK_BYTES,
        num_gpu_blocks=max(1, largest + rng.choice((-1, 0, 0, 1, 2, 5, largest, 4 * largest, 1000))),
        max_num_seqs=seqs,
        max_num_batched_tokens=max(seqs, rng.choice((seqs, 7, 16, 64, 8192))),
        max_model_len=10**9 if rng.random() < 0.95 else 2 * largest * bt // 3 + 1,
        prefix_caching=rng.random() < 0.9,
        reserve_full_prompt=rng.random() < 0.6,
    )


def draw_cost(rng: Random) -> StepCost:
    """Draw a step cost; steps take about a tenth of a second, or exactly one."""
    return rng.choice((ConstantStep(1.0, 4), ConstantStep(0.1), AwkwardStep(), KneeStep(rng.randint(5, 200))))


def step_scale_s(cost: StepCost) -> float:
    return cost.decode(1, 1)[0]


NO_LINK = LinkConfig(1e9, 1e9, inf, 0.0)


def draw_plain(rng: Random, most: int = 14) -> Case:
    """VRAM only, first come first served: what the naive engine knows."""
    bt = rng.choice((1, 4, 16))
    cost = draw_cost(rng)
    requests = draw_requests(rng, bt, most, step_scale_s(cost))
    return Case(
        SystemConfig(
            draw_engine(rng, bt, requests),
            cost,
            1,
            1,
            "round_robin",
            NO_LINK,
            DramConfig(0.0, inf, False),
            SsdConfig(0.0, 1e9, 1e9, 0.0, 1),
            OffloadConfig(write="never"),
        ),
        requests,
    )


def draw_priority(rng: Random, most: int = 14) -> Case:
    """VRAM only, with classes of different urgency."""
    case = draw_plain(rng, most)
    for request in case.requests:
        request.cls = rng.choice("abc")
    engine = replace(case.config.engine, scheduling="priority")
    classes = tuple(ClassConfig(name, rng.randint(-1, 1)) for name in "abc")
    return Case(replace(case.config, engine=engine, classes=classes), case.requests)


def draw_dram(rng: Random, most: int = 14) -> Case:
    """A DRAM tier behind an independent link, loads that hold their request, write-through."""
    case = draw_priority(rng, most) if rng.random() < 0.3 else draw_plain(rng, most)
    vram = case.config.engine.num_gpu_blocks
    tick_s = step_scale_s(case.config.cost)
    block_s = rng.choice((0.0, 0.05, 0.25, 1.0, 3.0)) * tick_s
    rate = BLOCK_BYTES / block_s if block_s else inf
    latency = rng.choice((0.0, 0.0, 0.125 * tick_s))
    return Case(
        replace(
            case.config,
            engine=replace(case.config.engine, store_outputs=rng.random() < 0.3),
            link=LinkConfig(rate, rate * rng.choice((0.5, 1.0, 3.0)), inf, latency),
            dram=DramConfig(rng.choice((1, vram // 2, vram, 3 * vram, inf)) * BLOCK_BYTES, inf, False),
            offload=OffloadConfig(write=rng.choice(("write_through", "write_through", "write_through", "never"))),
        ),
        case.requests,
    )


def draw_anything(rng: Random, most: int = 24) -> Case:
    """Every feature at once."""
    case = draw_priority(rng, most) if rng.random() < 0.4 else draw_plain(rng, most)
    config = case.config
    vram = config.engine.num_gpu_blocks
    tick_s = step_scale_s(config.cost)
    replicas = rng.choice((1, 1, 2, 3))
    block_s = rng.choice((0.0, 0.05, 0.25, 1.0, 3.0)) * tick_s
    rate = BLOCK_BYTES / block_s if block_s else inf
    eviction = rng.choice(("lru", "lru", "lfu", "fifo", "score"))
    link = LinkConfig(
        rate * rng.choice((1.0, 1.0, 0.5)) if rng.random() < 0.95 else 0.0,
        rate * rng.choice((1.0, 0.7)) if rng.random() < 0.95 else 0.0,
        rng.choice((inf, 1.5 * rate, rate)),
        rng.choice((0.0, 0.01, 0.125)) * tick_s,
        rng.choice((1, 2, 8)),
        rng.choice((BLOCK_BYTES // 2, BLOCK_BYTES, 7 * BLOCK_BYTES)),
    )
    ssd = SsdConfig(
        rng.choice((0, 0, vram // 2, 3 * vram, inf)) * BLOCK_BYTES,
        rate * rng.choice((0.2, 1.0)),
        rate * rng.choice((0.2, 1.0)),
        rng.choice((0.0, 0.1)) * tick_s,
        rng.choice((1, 4)),
    )
    dram_blocks = rng.choice((0, 1, vram // 2, vram, 3 * vram, inf))
    config = replace(
        config,
        engine=replace(
            config.engine, store_outputs=rng.random() < 0.3, load="overlap" if rng.random() < 0.3 else "hold"
        ),
        replicas=replicas,
        hosts=rng.randint(1, replicas),
        router=rng.choice(("round_robin", "least_loaded", "prefix_aware")),
        link=link,
        dram=DramConfig(dram_blocks * BLOCK_BYTES, rng.choice((inf, 2 * rate, 0.7 * rate)), rng.random() < 0.5),
        ssd=ssd,
        offload=OffloadConfig(
            eviction=eviction,
            eviction_lambda=rng.choice((0.0, 0.3, 1.0)) if eviction == "score" else None,
            write=rng.choice(("write_through", "write_through_selective", "write_back", "never")),
            relation=rng.choice(("copy", "copy", "exclusive")),
            prefetch=rng.choice(("none", "queue")),
            prefetch_window=rng.randint(1, 8),
        ),
        sample_s=rng.choice((None, 0.03, 1.0, 0.37)),
        duration_s=None if rng.random() < 0.9 else case.requests[-1].arrival_s / 2,
    )
    return Case(config, case.requests)


# ---- comparing


def run(case: Case, **changes: bool) -> RunData:
    """Run the simulator."""
    return System(replace(case.config, **changes), FixedSource(case.requests)).run()


def assert_close(name: str, a: object, b: object) -> None:
    assert np.allclose(a, b, rtol=1e-9, atol=1e-9), f"{name}: {a} and {b}"  # type: ignore[arg-type]


def assert_same_run(a: RunData, b: RunData) -> None:
    """Equal to the bit where something is decided, to 1e-9 where something is added up."""
    for column in EXACT_COLUMNS:
        np.testing.assert_array_equal(a.requests[column], b.requests[column], column)
    for column in PART_COLUMNS:
        assert_close(column, a.requests[column], b.requests[column])
    for column in ("end_s", "gap_s"):
        np.testing.assert_array_equal(np.sort(a.gaps[column]), np.sort(b.gaps[column]), column)
    for name in ("arrived", "finished", "rejected", "live", "end_s", "bytes", "tier_written_blocks", "preemptions",
                 "recomputed_tokens", "refused_stores", "running_max", "load_waits", "steps_total",
                 "prefetch", "swap"):  # fmt: skip
        assert getattr(a, name) == getattr(b, name), f"{name}: {getattr(a, name)} and {getattr(b, name)}"
    for name in ("running_time_s", "load_held_s", "load_hidden_s"):
        assert_close(name, getattr(a, name), getattr(b, name))
    for name in a.busy_s:
        assert_close(f"busy {name}", a.busy_s[name], b.busy_s[name])
    assert_close("intervals", intervals(a), intervals(b))
    rows = min(len(a.timeseries["t_s"]), len(b.timeseries["t_s"])) - 1
    for name in a.timeseries:
        assert_close(f"sampled {name}", a.timeseries[name][:rows], b.timeseries[name][:rows])


def intervals(data: RunData) -> tuple[float, float]:
    """Number and sum of all inter-token intervals."""
    s = {name: column.astype(float) for name, column in data.steps.items()}
    lasting = s["count"] * (s["first_s"] + s["growth_s"] * (s["count"] - 1) / 2)
    return float((s["count"] * s["decodes"]).sum()), float((lasting * s["decodes"]).sum())


def check_single_steps(case: Case) -> None:
    """Macro-steps and single steps give the same run, and the laws hold in both."""
    macro = run(case)
    assert_same_run(macro, run(case, step_exact=True))
    assert_same_run(macro, run(case, audit=True))
    assert macro.live == 0


def check_naive(case: Case) -> None:
    """The naive engine agrees; it tries the head at every boundary where that can't make a difference."""
    eager = case.config.engine.reserve_full_prompt or not case.config.dram.capacity_bytes
    data = run(case)
    naive = run_naive(case.config, case.requests, eager)
    columns = data.requests
    rows = len(columns["id"])
    assert rows == len(naive.rows)
    for index in range(rows):
        row = naive.rows[index]
        for name in ("id", "rejected", "finish_s", "preemptions", "recomputed_tokens", "hit_vram_tokens",
                     "hit_dram_tokens"):  # fmt: skip
            assert columns[name][index] == getattr(row, name), f"{name} of {row.id}: {columns[name][index]}, {row}"
        if not row.rejected:
            for name in ("scheduled_s", "first_token_s"):
                assert columns[name][index] == getattr(row, name), f"{name} of {row.id}: {columns[name][index]}, {row}"
            for part in ("queue", "prefill", "decode", "recompute", "preempted"):
                assert_close(f"{part} of {row.id}", columns[f"{part}_time_s"][index], row.parts.get(part, 0.0))
            assert_close(f"load of {row.id}", columns["load_dram_time_s"][index], row.parts.get("load", 0.0))
    assert data.refused_stores == naive.refused_stores
    assert data.steps_total == naive.steps
    assert data.swap.get("refused", 0) == naive.swaps_refused
    assert (data.bytes["h2d"], data.bytes["d2h"]) == (naive.bytes_up, naive.bytes_down)
    assert_close("busy", data.busy_s["gpu"], naive.gpu_busy_s)


# ---- the searches

randoms = st.randoms(use_true_random=False)


def search(examples: int) -> Callable[[Callable[[Random], None]], Callable[[], None]]:
    """Search ``examples`` drawn cases, the same in every run; ``HYPOTHESIS_PROFILE=explore`` searches wider.

    Hypothesis takes constants of whatever modules are loaded into what it draws: only plain seeds repeat.
    """

    def repeated(test: Callable[[Random], None]) -> Callable[[], None]:
        def each() -> None:
            for seed in range(examples):
                try:
                    test(Random(seed))
                except AssertionError as error:
                    error.add_note(f"drawn with seed {seed}")
                    raise

        each.__name__, each.__doc__ = test.__name__, test.__doc__
        return each

    if settings().max_examples <= 1000:
        return repeated
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return lambda test: settings(max_examples=10 * examples, suppress_health_check=slow)(given(randoms)(test))


@search(200)
def test_naive_engine_agrees_on_vram_alone(rng: Random) -> None:
    check_naive(draw_plain(rng, 10))


@search(150)
def test_naive_engine_agrees_on_priorities(rng: Random) -> None:
    check_naive(draw_priority(rng, 10))


@search(300)
def test_naive_engine_agrees_on_dram(rng: Random) -> None:
    check_naive(draw_dram(rng, 10))


@search(100)
def test_single_steps_agree_on_everything(rng: Random) -> None:
    check_single_steps(draw_anything(rng, 12))


KINDS: dict[str, tuple[Callable[[Random, int], Case], Callable[[Case], None], int]] = {
    "plain": (draw_plain, check_naive, 300),
    "priority": (draw_priority, check_naive, 200),
    "dram": (draw_dram, check_naive, 400),
    "anything": (draw_anything, check_single_steps, 120),
}


@pytest.mark.parametrize("kind", KINDS)
def test_cases_by_number(kind: str) -> None:
    draw, check, count = KINDS[kind]
    check_by_number(kind, draw, check, count)


def check_by_number(kind: str, draw: Callable[[Random, int], Case], check: Callable[[Case], None], count: int) -> None:
    """Larger cases than a search would draw, the same on every run."""
    for seed in range(count):
        try:
            check(draw(Random(seed), 20))
        except Exception as error:
            raise AssertionError(f"{kind} case {seed}") from error


# ---- what searching rarely meets


def shared_prompts(count: int, gap_s: float, prompt: int, output: int) -> list[Request]:
    """Requests that share the first two thirds of their prompts by threes."""
    out = []
    for number in range(count):
        head = 2 * prompt // 3
        spans = ((1 + number % 3, 0, head), (PRIVATE_STREAM_BASE + number, 0, prompt - head + output))
        out.append(Request(number, number * gap_s, prompt, output, spans))
    return out


def system(cost: StepCost, **changes: object) -> SystemConfig:
    """A small system with every tier."""
    base = SystemConfig(
        EngineConfig(4, BLOCK_BYTES, 40, 4, 32, 10**9),
        cost,
        1,
        1,
        "round_robin",
        LinkConfig(2e4, 2e4, 3e4, 1e-3),
        DramConfig(60 * BLOCK_BYTES, 5e4, False),
        SsdConfig(0.0, 1e4, 1e4, 1e-3, 4),
        OffloadConfig(),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("cost", [AwkwardStep(), KneeStep(60), ConstantStep(0.125)])
@pytest.mark.parametrize("router", ["prefix_aware", "least_loaded"])
@pytest.mark.parametrize("shared", [False, True])
def test_routers_that_look_at_vram_under_way(cost: StepCost, router: str, shared: bool) -> None:
    dram = DramConfig(60 * BLOCK_BYTES, 5e4, shared)
    config = system(cost, replicas=2, router=router, dram=dram)
    check_single_steps(Case(config, shared_prompts(40, 0.25, 30, 41)))


@pytest.mark.parametrize("cost", [AwkwardStep(), ConstantStep(0.125)])
@pytest.mark.parametrize("write", ["write_through", "write_back"])
def test_prefetcher_that_takes_vram_under_way(cost: StepCost, write: str) -> None:
    """A replica with free VRAM finds in the shared DRAM what the other one wrote there."""
    config = system(
        cost,
        replicas=2,
        engine=EngineConfig(4, BLOCK_BYTES, 40, 2, 32, 10**9),
        dram=DramConfig(60 * BLOCK_BYTES, 5e4, True),
        ssd=SsdConfig(200 * BLOCK_BYTES, 1e4, 1e4, 1e-3, 4),
        offload=OffloadConfig(write=write, prefetch="queue"),  # type: ignore[arg-type]
    )
    case = Case(config, shared_prompts(40, 0.1, 30, 21))
    check_single_steps(case)
    if write == "write_through":
        assert run(case).prefetch["loaded_bytes"] > 0


@pytest.mark.parametrize("cost", [AwkwardStep(), KneeStep(60), ConstantStep(0.125)])
def test_sampling_changes_nothing(cost: StepCost) -> None:
    case = Case(system(cost), shared_prompts(30, 0.3, 30, 41))
    seldom = run(Case(replace(case.config, sample_s=1e6), case.requests))
    for sample_s in (0.125, 0.0311):
        sampled = Case(replace(case.config, sample_s=sample_s), case.requests)
        check_single_steps(sampled)
        often = run(sampled)
        for column in EXACT_COLUMNS:
            np.testing.assert_array_equal(often.requests[column], seldom.requests[column], column)


class Chain(FixedSource):
    """Each request is followed by another at the very instant when it ends."""

    def __init__(self, requests: list[Request], follow: int) -> None:
        super().__init__(requests)
        self.left = follow

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        if not self.left:
            return ()
        self.left -= 1
        return (replace(request, id=1000 - self.left, arrival_s=ended_s),)


@pytest.mark.parametrize("router", ["round_robin", "least_loaded", "prefix_aware"])
def test_arrival_at_a_boundary_that_is_over(router: str) -> None:
    """Replicas in step: an end in a later replica's turn brings an arrival to one whose turn is over."""
    engine = EngineConfig(4, BLOCK_BYTES, 60, 8, 64, 10**9)
    config = system(ConstantStep(1.0), replicas=3, router=router, engine=engine)
    requests = [replace(r, output_tokens=r.output_tokens - 5 * (r.id % 4)) for r in shared_prompts(9, 0.0, 8, 30)]
    for r in requests:
        r.spans = (*r.spans[:-1], (r.spans[-1][0], 0, r.spans[-1][2] - 5 * (r.id % 4)))
    assert_same_run(
        System(config, Chain(requests, 40)).run(),
        System(replace(config, step_exact=True), Chain(requests, 40)).run(),
    )


def test_sample_at_a_boundary_sees_the_step_that_begins() -> None:
    config = system(ConstantStep(1.0), sample_s=1.0, offload=OffloadConfig(write="never"))
    data = run(Case(config, [Request(0, 0.0, 4, 6, ((7, 0, 10),))]))
    assert list(data.timeseries["vram_blocks"][:7]) == [1, 2, 2, 2, 2, 3, 0]


def test_last_running_request_does_not_wait_for_loaded_ones() -> None:
    """A request alone in the batch gets the blocks that loaded requests wait with, instead of restarting for ever."""
    case = draw_anything(Random(2541), 24)

    def stuck(ended: int, now_s: float) -> None:
        assert ended == len(case.requests) or now_s < 100.0, f"{ended} requests ended by {now_s} s"

    assert System(case.config, FixedSource(case.requests)).run(stuck).live == 0


def test_pending_blocks_of_somebody_else_are_not_waited_for() -> None:
    """Two prompts part at the end of a VRAM hit: the transfer of the one's tail is no business of the other's."""
    engine = EngineConfig(4, BLOCK_BYTES, 100, 8, 1000, 10**9)
    config = system(ConstantStep(1.0), engine=engine, link=LinkConfig(1e3, 1e3, inf, 0.0))
    requests = [
        Request(0, 0.0, 20, 30, ((1, 0, 4), (2, 0, 46))),
        Request(1, 2.0, 20, 2, ((1, 0, 4), (3, 0, 18))),
    ]
    data = run(Case(config, requests))
    assert data.requests["scheduled_s"].tolist() == [2.0, 0.0]
    assert data.load_waits == 0


def test_store_needs_no_room_for_what_is_coming_already() -> None:
    """Two equal prompts in one step: the second finds its blocks on their way and evicts or refuses nothing."""
    config = system(ConstantStep(1.0), dram=DramConfig(5 * BLOCK_BYTES, inf, False))
    data = run(Case(config, [Request(i, 0.0, 16, 2, ((1, 0, 18),)) for i in range(2)]))
    assert data.refused_stores == 0
    assert data.tier_written_blocks["dram"] == 4


def test_refused_store_is_offered_again_at_the_end() -> None:
    """DRAM is full of pinned blocks when a prompt ends, and free when the request does, without a new full block."""
    config = system(
        ConstantStep(1.0),
        dram=DramConfig(5 * BLOCK_BYTES, inf, False),
        link=LinkConfig(1e9, 2e3, inf, 0.0),
    )
    requests = [
        Request(0, 0.0, 16, 1, ((1, 0, 17),)),
        Request(1, 0.0, 16, 3, ((2, 0, 19),)),
    ]
    data = run(Case(config, requests))
    assert data.refused_stores == 1
    assert data.tier_written_blocks["dram"] == 8
