"""What engines do that others don't: units, full tiers, loads that block, write-downs that block, stopped prefetches.

Times by hand: a step takes 1 s, a block crosses the link in 0.1 s and the SSD in 0.2 s.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.test_oracle import Case, check_single_steps, draw_anything

randoms = st.randoms(use_true_random=False)


# ---- macro-steps and single steps


def with_options(rng: Random, most: int) -> Case:
    """A system with every tier short, and what only some engines do."""
    case = draw_anything(rng, most)
    config, offload = case.config, case.config.offload
    write = rng.choice(("write_through", "write_through_selective", "write_back"))
    writes_through = write != "write_back"
    offload = replace(
        offload,
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
    engine = replace(config.engine, load=rng.choice(("hold", "overlap", "block")), preemption="recompute")
    return Case(replace(config, engine=engine, offload=offload), case.requests)


@settings(max_examples=150)
@given(randoms)
def test_single_steps_agree_under_every_option(rng: Random) -> None:
    check_single_steps(with_options(rng, 12))


def test_single_steps_agree_on_cases_by_number() -> None:
    for seed in range(200):
        try:
            check_single_steps(with_options(Random(seed), 20))
        except Exception as error:
            raise AssertionError(f"case {seed}") from error
