"""What engines do that others don't: units, full tiers, loads that block, write-downs that block, stopped prefetches.

Times by hand: a step takes 1 s, a block crosses the link in 0.1 s and the SSD in 0.2 s.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.formulas.step import ConstantStep
from simkv.kvcache.eviction import COUNT_MODES, POLICIES
from tests.sim_factory import request, system_config
from tests.test_oracle import AwkwardStep, Case, KneeStep, check_single_steps, draw_anything
from tests.test_oracle import run as run_case
from tests.test_tiers import hold_laws

randoms = st.randoms(use_true_random=False)


# ---- macro-steps and single steps


def draw_reuse(rng: Random, most: int) -> Case:
    """A few prompts that come again and again, over a VRAM and a DRAM that don't hold them all and an SSD that does."""
    rate = rng.choice((2e4, 2e5))
    config = system_config(
        rng.choice((AwkwardStep(), KneeStep(60), ConstantStep(0.125))),
        num_gpu_blocks=rng.choice((24, 30, 45)),
        max_num_seqs=rng.choice((1, 2, 4)),
        max_num_batched_tokens=rng.choice((16, 64)),
        replicas=rng.choice((1, 2)),
        shared=rng.random() < 0.3,
        dram_blocks=rng.choice((20, 40, 70)),
        ssd_blocks=500,
        h2d=rate,
        d2h=rate * rng.choice((0.3, 1.0)),
        duplex=rate * 1.5,
        latency_s=rng.choice((0.0, 1e-3)),
        ssd_read=rate * rng.choice((0.1, 0.5)),
        ssd_write=rate,
        store_outputs=rng.random() < 0.3,
        sample_s=rng.choice((None, 0.37)),
    )
    now, requests = 0.0, []
    for number in range(2 * most):
        now += rng.choice((0.0, rng.random(), 4 * rng.random()))
        prompt = rng.choice((25, 40, 61))
        shared = rng.choice((prompt, prompt, prompt // 2))
        requests.append(request(number, now, prompt, rng.randint(1, 30), shared, rng.randint(1, 6)))
    return Case(config, requests)


def with_options(rng: Random, most: int) -> Case:
    """A system with every tier short, and what only some engines do."""
    case = draw_reuse(rng, most) if rng.random() < 0.6 else draw_anything(rng, most)
    config, offload = case.config, case.config.offload
    write = rng.choice(("write_through", "write_through_selective", "write_back"))
    writes_through = write != "write_back"
    policy = rng.choice(tuple(POLICIES))
    count = rng.choice(COUNT_MODES) if policy in ("lfu", "score") else "in_cache"
    offload = replace(
        offload,
        eviction=policy,
        eviction_lambda=rng.choice((0.0, 0.3, 1.0)) if policy == "score" else None,
        eviction_count=count,
        eviction_half_life_uses=rng.choice((1.0, 30.0)) if count == "decayed" else None,
        write=write,
        relation="copy" if writes_through else rng.choice(("copy", "exclusive")),
        prefetch=rng.choice(("none", "queue", "arrival")),
        prefetch_stop=rng.choice(("wait_complete", "best_effort", "timeout")),
        timeout_base_s=rng.choice((0.0, 0.05, 1.0)),
        timeout_per_ki_token_s=rng.choice((0.0, 0.25, 20.0)),
        prefetch_min_tokens=rng.choice((0, 0, 9)),
        prefetch_in_flight=rng.choice((0.2, 0.5, 1.0)),
        prefetch_batch_blocks=rng.choice((1, 2, 128)),
        unit_blocks=rng.choice((1, 2, 3)) if writes_through else 1,
        when_full=rng.choice(("refuse", "retry", "part", "drop")),
        whole_nodes=rng.random() < 0.5,
        write_back_blocks=not writes_through and rng.random() < 0.7,
    )
    engine = replace(
        config.engine, load=rng.choice(("hold", "overlap", "block")), preemption=rng.choice(("recompute", "swap"))
    )
    return Case(replace(config, engine=engine, offload=offload), case.requests)


@settings(max_examples=40)
@given(randoms)
def test_single_steps_agree_under_every_option(rng: Random) -> None:
    check_single_steps(with_options(rng, 12))


def test_single_steps_agree_on_cases_by_number() -> None:
    for seed in range(60):
        try:
            check_single_steps(with_options(Random(seed), 20))
        except Exception as error:
            raise AssertionError(f"case {seed}") from error


@settings(max_examples=15)
@given(randoms)
def test_every_option_keeps_the_laws_after_every_event(rng: Random) -> None:
    case = with_options(rng, 10)
    hold_laws(case.config, case.requests)


def test_cases_by_number_meet_what_options_do() -> None:
    """Refusals of each kind, units, stops and steps that wait for write-downs do occur in what is searched."""
    met: Counter[str] = Counter()
    for seed in range(120):
        case = with_options(Random(seed), 20)
        data, offload = run_case(case), case.config.offload
        met[offload.when_full] += data.refused_stores > 0
        met["unit"] += offload.unit_blocks > 1 and data.bytes["h2d"] > 0
        met["block"] += case.config.engine.load == "block" and data.bytes["h2d"] > 0
        met[f"arrival {offload.prefetch_stop}"] += offload.prefetch == "arrival" and data.prefetch["loaded_bytes"] > 0
        met["nodes"] += offload.whole_nodes and data.bytes["h2d"] > 0
        met["write-downs"] += offload.write_back_blocks and data.bytes["d2h"] > 0
    assert min(met.values()) >= 2, met
