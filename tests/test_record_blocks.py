"""Law L48: the rows of blocks lead to what the tiers hold, at any time of the window."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.sim.record.recording import Wanted
from tests import test_active_fuzz, test_tiers
from tests.blocks_factory import hold_law, watched


@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_rows_of_any_system_lead_to_what_its_tiers_hold(rng: Random) -> None:
    config, requests = test_tiers.random_case(rng)
    hold_law(watched(config, requests, share=0.2))


@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
def test_rows_of_any_window_lead_to_what_is_there_but_for_what_is_left_out(rng: Random) -> None:
    config, requests = test_tiers.random_case(rng)
    most = rng.choice((20, 60, 400))
    wanted = [Wanted("latest", most, True), Wanted("from_start", most, True), Wanted("asked", 10**6, True, 20.0, 60.0)]
    hold_law(watched(config, requests, *wanted, share=0.2), least=0)


@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_rows_of_running_sequences_lead_to_where_they_are(
    tmp_path_factory: pytest.TempPathFactory, rng: Random
) -> None:
    config, requests = test_active_fuzz.system(rng, Path(tmp_path_factory.mktemp("reads")))
    hold_law(watched(config, requests, share=0.3), least=0)
