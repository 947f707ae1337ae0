"""From samples to figures: known ones are found again, and what can't be told is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.calibrate.fit import fit_profile, inversions, residual_rows
from simkv.calibrate.fit.links import KV_PIECES_BYTES, fit_link, link_s
from simkv.calibrate.fit.points import Point, points_of
from simkv.catalog import load_hardware
from simkv.formulas.interpolated import interpolated_step
from simkv.formulas.step import RooflineStep, step_cost
from simkv.profile.schema import Fit, LinkFit, Sample
from tests.calibrate_factory import BATCHES, CONTEXTS, GIB, KIB, MIB, MODEL, Link, Machine

SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB)
links = st.builds(
    Link,
    setup_s=st.one_of(st.just(0.0), st.floats(1e-6, 1e-4)),
    latency_s=st.floats(5e-7, 1e-4),
    bytes_per_s=st.floats(3e8, 1e11),
)


def transfers(link: Link, noise: float, seed: int, pieces: tuple[int, ...] = (1, 8, 64)) -> list[Point]:
    """Return a point for each of 21 transfers, with relative noise."""
    rng = np.random.default_rng(seed)
    return [
        Point({"bytes": size, "pieces": count}, link.seconds(size, count) * float(np.exp(rng.normal(0, noise))))
        for size in SIZES
        for count in pieces
    ]


def off(fit: LinkFit, link: Link, pieces: tuple[int, ...] = (1, 8, 64)) -> list[float]:
    """Return how far a fit is from the truth, where KV moves."""
    low, high = KV_PIECES_BYTES
    return [
        abs(link_s(fit, size, count) / link.seconds(size, count) - 1)
        for size in SIZES
        for count in pieces
        if low <= size <= high
    ]


def fitted(points: list[Point]) -> LinkFit:
    fit = fit_link(points)
    assert fit is not None
    return fit


@given(links)
def test_link_without_noise_is_found_again(link: Link) -> None:
    fit = fitted(transfers(link, 0.0, 0))
    assert fit.latency_s == pytest.approx(link.latency_s, rel=1e-3)
    assert fit.bytes_per_s == pytest.approx(link.bytes_per_s, rel=1e-3)
    assert fit.setup_s == pytest.approx(link.setup_s, rel=1e-2, abs=1e-8)
    assert fit.residual.points == 21 and fit.residual.largest < 1e-3
    assert (fit.smallest_bytes, fit.largest_bytes, fit.note) == (SIZES[0], SIZES[-1], "")


@given(links, st.integers(0, 1000))
def test_link_with_noise_predicts_within_three_times_it(link: Link, seed: int) -> None:
    errors = off(fitted(transfers(link, 0.03, seed)), link)
    assert np.median(errors) < 0.04 and max(errors) < 0.12


@given(links, st.integers(0, 1000), st.integers(0, 20), st.sampled_from([0.2, 5.0]))
def test_link_with_a_sample_five_times_off_is_hardly_pulled(link: Link, seed: int, which: int, times: float) -> None:
    points = transfers(link, 0.02, seed)
    clean = fitted(points)
    points[which] = replace(points[which], seconds=points[which].seconds * times)
    fit = fitted(points)
    assert max(off(fit, link)) < max(0.15, 2 * max(off(clean, link)))
    assert fit.residual.largest > 0.5, "the outlier is shown"


def test_link_least_squares_would_be_pulled_where_the_fit_is_not() -> None:
    """The wrong mutant: without its loss, the fit is far off."""
    link = Link(20e-6, 3e-6, 11e9)
    points = transfers(link, 0.0, 0)
    points[9] = replace(points[9], seconds=points[9].seconds * 0.2)
    seconds = np.array([p.seconds for p in points])
    terms = np.array([[1.0, p.number("pieces"), p.number("bytes") * p.number("pieces")] for p in points])
    plain = np.linalg.lstsq(terms / seconds[:, None], np.ones(len(points)), rcond=None)[0]
    assert max(abs(terms @ plain / [link.seconds(p.number("bytes"), p.number("pieces")) for p in points] - 1)) > 0.3
    assert max(off(fitted(points), link)) < 0.01


@given(links)
def test_link_of_single_pieces_gives_latency_all_and_says_so(link: Link) -> None:
    fit = fitted(transfers(link, 0.0, 0, pieces=(1,)))
    assert fit.setup_s == 0.0
    assert fit.latency_s == pytest.approx(link.latency_s + link.setup_s, rel=1e-3)
    assert "setup can't be told from latency" in fit.note


def test_link_of_one_size_gives_bandwidth_all_and_says_so() -> None:
    fit = fitted([Point({"bytes": MIB, "pieces": 1}, 1e-4)])
    assert (fit.setup_s, fit.latency_s) == (0.0, 0.0)
    assert fit.bytes_per_s == pytest.approx(MIB / 1e-4)
    assert "latency can't be told from bandwidth" in fit.note
    assert fit.smallest_bytes == fit.largest_bytes == MIB


def test_link_of_one_size_in_several_pieces_keeps_its_setup() -> None:
    link = Link(50e-6, 0.0, 1e10)
    fit = fitted([Point({"bytes": MIB, "pieces": n}, link.seconds(MIB, n)) for n in (1, 2, 8)])
    assert fit.setup_s == pytest.approx(50e-6, rel=1e-3)
    assert fit.bytes_per_s == pytest.approx(1e10, rel=1e-3)


def test_link_of_pieces_that_all_take_the_same_bounds_its_bandwidth_and_says_so() -> None:
    fit = fitted([Point({"bytes": size, "pieces": n}, n * 1e-5) for size in (512, 1024, 4096) for n in (1, 4)])
    assert fit.bytes_per_s == pytest.approx(4096 / 1e-5)
    assert "best rate seen" in fit.note


def test_link_that_falls_for_large_pieces_says_from_which_size() -> None:
    link = Link(10e-6, 2e-6, 1e10)
    slow = [Point(p.at, p.seconds * (1.6 if p.number("bytes") >= 16 * MIB else 1.0)) for p in transfers(link, 0.01, 1)]
    fit = fitted(slow)
    assert max(off(fit, link)) < 0.05, "the range of KV is matched best"
    assert "pieces from 16.0 MiB take 1.59 times as long" in fit.note


def test_link_that_falls_for_large_transfers_says_from_which_total_on() -> None:
    link = Link(10e-6, 2e-6, 1e10)

    def total(point: Point) -> float:
        return point.number("bytes") * point.number("pieces")

    points = [Point(p.at, p.seconds * (2.0 if total(p) >= 128 * MIB else 1.0)) for p in transfers(link, 0.0, 1)]
    fit = fitted(points)
    assert "transfers from 128 MiB in all take 2.0" in fit.note and "pieces up" not in fit.note


def test_link_that_is_faster_for_small_pieces_says_up_to_which_size() -> None:
    link = Link(0.0, 10e-6, 1e10)
    points = [Point(p.at, p.seconds * (0.5 if p.number("bytes") == 4 * KIB else 1.0)) for p in transfers(link, 0.0, 1)]
    fit = fitted(points)
    assert max(off(fit, link)) < 0.05
    assert "pieces up to 4.00 KiB take 0.50 times as long" in fit.note


def test_link_without_samples_is_none() -> None:
    assert fit_link([]) is None


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return Machine().all()


@pytest.fixture(scope="module")
def fit(samples: list[Sample]) -> Fit:
    return fit_profile(samples, MODEL, "bf16")


def test_profile_of_a_whole_machine_finds_its_figures(fit: Fit) -> None:
    machine = Machine()
    for found, true in ((fit.h2d, machine.h2d), (fit.d2h, machine.d2h), (fit.ssd_read, machine.ssd)):
        assert found is not None
        assert found.bytes_per_s == pytest.approx(true.bytes_per_s, rel=0.03)
        assert found.latency_s == pytest.approx(true.latency_s, rel=0.05)
    assert fit.duplex_bytes_per_s == pytest.approx(18e9, rel=0.03)
    assert fit.h2d_by_buffer is not None
    assert [x for x, _ in fit.h2d_by_buffer] == [GIB, 16 * GIB]
    assert [y for _, y in fit.h2d_by_buffer] == pytest.approx([11e9, 6e9], rel=0.03)
    assert fit.h2d_pageable is None and fit.notes == ()


def test_profile_reads_its_own_writing(fit: Fit) -> None:
    assert Fit.model_validate_json(fit.model_dump_json(), strict=True) == fit


def test_profile_without_samples_is_empty() -> None:
    assert fit_profile([], MODEL, "bf16") == Fit()
    assert fit_profile(Machine().all(), None, "bf16").compute is None


def test_profile_of_pageable_copies_alone_makes_the_link_of_them() -> None:
    machine = Machine()
    fit = fit_profile(list(machine.copies("h2d", machine.h2d, "pageable")), None, "fp32")
    assert fit.h2d is not None and fit.h2d_pageable is not None
    assert fit.h2d.bytes_per_s == fit.h2d_pageable.bytes_per_s
    assert "pageable" in fit.h2d.note and fit.h2d_pageable.note == ""


def test_profile_of_both_memories_keeps_them_apart() -> None:
    machine = Machine()
    slow = Link(10e-6, 5e-6, 4e9)
    fit = fit_profile([*machine.copies("h2d", slow, "pageable"), *machine.copies("h2d", machine.h2d)], None, "fp32")
    assert fit.h2d is not None and fit.h2d_pageable is not None
    assert fit.h2d.bytes_per_s == pytest.approx(11e9, rel=0.03)
    assert fit.h2d_pageable.bytes_per_s == pytest.approx(4e9, rel=0.03)


def test_drive_reads_one_after_another_make_the_line_and_deeper_ones_a_note(fit: Fit) -> None:
    assert fit.ssd_read is not None
    assert fit.ssd_read.residual.points == 12
    assert "best with more requests at a time: 6" in fit.ssd_read.note and "16 of" in fit.ssd_read.note


def test_drive_through_the_page_cache_counts_only_without_direct_requests() -> None:
    machine = Machine(noise=0.0)
    direct = list(machine.requests("ssd_read"))
    machine.ssd = Link(0.0, 5e-6, 8e9)
    cached = list(machine.requests("ssd_read", direct=False))
    both = fit_profile(cached + direct, None, "fp32").ssd_read
    alone = fit_profile(cached, None, "fp32").ssd_read
    assert both is not None and alone is not None
    assert both.bytes_per_s == pytest.approx(2.5e9, rel=0.01) and "page cache" not in both.note
    assert alone.bytes_per_s > 2 * both.bytes_per_s and "page cache" in alone.note


def test_drive_measured_at_depth_alone_says_so() -> None:
    deep = [s for s in Machine().requests("ssd_read") if s.at["depth"] == 4]
    found = fit_profile(deep, None, "fp32").ssd_read
    assert found is not None and "4 requests at a time" in found.note


def test_memory_is_that_beyond_caches_by_the_best_threads(fit: Fit) -> None:
    assert fit.memory.read_bytes_per_s == pytest.approx(100e9, rel=0.03)
    assert fit.memory.copy_bytes_per_s == pytest.approx(80e9, rel=0.03)
    assert fit.memory.dram_copy_bytes_per_s == pytest.approx(20e9, rel=0.03)
    assert fit.memory.dram_threads == 2
    assert fit.memory.far_node_factor == pytest.approx(1.7, rel=0.05)


def test_memory_of_a_far_node_that_is_faster_is_clamped_and_noted() -> None:
    at: dict[str, float | int | str | bool] = {"bytes": MIB, "threads": 1, "to_node": 0}
    near = Sample(kind="dram_copy", at={**at, "from_node": 0}, seconds=(1e-3,))
    far = Sample(kind="dram_copy", at={**at, "from_node": 1}, seconds=(9e-4,))
    fit = fit_profile([near, far], None, "fp32")
    assert fit.memory.far_node_factor == 1.0
    assert any("0.900 times" in note for note in fit.notes)


def test_compute_tables_are_the_medians_of_one_layer(samples: list[Sample], fit: Fit) -> None:
    assert fit.compute is not None
    linear = {s.at["tokens"]: s.median_s / 4 for s in samples if s.kind == "linear"}
    assert dict(fit.compute.linear) == pytest.approx(linear)
    assert [row.batch for row in fit.compute.decode] == list(BATCHES)
    assert fit.compute.paged is not None
    for row in fit.compute.paged:
        assert [tokens / row.batch for tokens, _ in row.context] == list(CONTEXTS)
        assert [y for _, y in row.context] == pytest.approx(
            [1.5 * Machine().attention_s(tokens) for tokens, _ in row.context], rel=0.05
        )


def test_compute_of_settings_measured_twice_takes_the_middle_of_all_repeats() -> None:
    once = Sample(kind="linear", at={"tokens": 4, "layers": 2}, seconds=(1.0, 1.0, 1.0))
    again = Sample(kind="linear", at={"layers": 2, "tokens": 4}, seconds=(3.0, 2.0))
    assert points_of([once, again], "linear") == [Point({"tokens": 4, "layers": 2}, 1.0)]


@settings(max_examples=25)
@given(st.floats(5e-5, 5e-3), st.integers(0, 1000))
def test_step_overhead_is_what_whole_steps_take_beyond_their_parts(overhead_s: float, seed: int) -> None:
    machine = Machine(noise=0.01, seed=seed, step_overhead_s=overhead_s)
    compute = fit_profile([*machine.computing(), *machine.steps()], MODEL, "bf16").compute
    assert compute is not None
    assert compute.step_overhead_s == pytest.approx(overhead_s, rel=0.05, abs=6e-5)
    assert compute.layer_overhead_s == 0.0
    assert compute.residual.points == 6 and compute.residual.largest < 0.05


def test_step_overhead_of_one_step_far_off_is_hardly_pulled() -> None:
    machine = Machine(noise=0.0)
    steps = list(machine.steps())
    steps[0] = Sample(kind="step", at=steps[0].at, seconds=(5 * steps[0].median_s,))
    compute = fit_profile([*machine.computing(), *steps], MODEL, "bf16").compute
    assert compute is not None
    assert compute.step_overhead_s == pytest.approx(machine.step_overhead_s, rel=0.05)


def test_step_faster_than_its_parts_has_no_overhead_and_is_noted() -> None:
    machine = Machine(noise=0.0, step_overhead_s=-400e-6)
    fit = fit_profile([*machine.computing(), *machine.steps()], MODEL, "bf16")
    assert fit.compute is not None and fit.compute.step_overhead_s == 0.0
    assert any("longer than whole steps" in note for note in fit.notes)


def test_step_outside_the_range_of_its_parts_is_left_out_and_noted() -> None:
    machine = Machine(noise=0.0)
    beyond = machine.sample("step", 1.0, batch=64, context=512, block_tokens=32)
    fit = fit_profile([*machine.computing(), *machine.steps(), beyond], MODEL, "bf16")
    assert fit.compute is not None and fit.compute.residual.points == 6
    assert any("1 whole steps are outside" in note for note in fit.notes)
    assert residual_rows([beyond], fit)[0]["fitted_s"] is None


def test_step_put_together_is_what_the_simulator_takes(samples: list[Sample], fit: Fit) -> None:
    assert fit.compute is not None
    roofline = step_cost(MODEL, load_hardware("rtx-4090"))
    assert isinstance(roofline, RooflineStep)
    simulated = interpolated_step(fit.compute, roofline, "paged")
    rows = [row for row in residual_rows(samples, fit) if row["kind"] == "step"]
    assert len(rows) == 6
    for row in rows:
        batch, context = int(row["at"]["batch"]), int(row["at"]["context"])
        assert row["fitted_s"] == simulated.decode(batch, batch * context)[0]


def test_compute_without_whole_steps_takes_no_overhead_and_says_so() -> None:
    fit = fit_profile(list(Machine().computing()), MODEL, "bf16")
    assert fit.compute is not None
    assert (fit.compute.step_overhead_s, fit.compute.residual.points) == (0.0, 0)
    assert any("no whole step was measured" in note for note in fit.notes)


def test_compute_that_misses_a_part_is_none_and_names_it() -> None:
    fit = fit_profile([s for s in Machine().computing() if s.kind != "head"], MODEL, "bf16")
    assert fit.compute is None and fit.rates is None
    assert fit.notes == ("no times of the model: head not measured",)


def test_compute_where_more_tokens_are_faster_stays_as_measured_and_is_noted() -> None:
    machine = Machine(noise=0.0)
    fast = machine.sample("linear", 4 * 100e-6, tokens=32, layers=4)
    fit = fit_profile([*machine.computing(), fast], MODEL, "bf16")
    assert fit.compute is not None and dict(fit.compute.linear)[32] == pytest.approx(100e-6)
    assert any("linear: 32 tokens 84% faster than 16" in note for note in fit.notes)


def test_compute_through_blocks_takes_those_of_the_size_that_whole_steps_have() -> None:
    machine = Machine(noise=0.0)
    odd = [
        machine.sample("paged_attention", 1.0, batch=1, context=context, layers=2, block_tokens=128)
        for context in range(100, 2000, 100)
    ]
    all_samples = [*odd, *machine.computing(), *machine.steps()]
    fit = fit_profile(all_samples, MODEL, "bf16")
    assert fit.compute is not None and fit.compute.paged is not None
    assert len(fit.compute.paged[0].context) == len(CONTEXTS)
    assert residual_rows(all_samples, fit)[0]["fitted_s"] is None


def test_rates_are_those_of_the_shape(fit: Fit) -> None:
    assert fit.rates is not None
    layer_params = 512 * (512 + 2 * 128) + 512 * 512 + 3 * 512 * 1024
    assert fit.rates.flops_per_s == pytest.approx(2 * layer_params / 40e-6, rel=0.05)
    assert fit.rates.weight_bytes_per_s == pytest.approx(2 * layer_params / 300e-6, rel=0.05)
    assert fit.rates.attention_bytes_per_s == pytest.approx(2 * 2 * 64 * 2 / 0.2e-6, rel=0.15)
    assert fit.rates.attention_flops_per_s == pytest.approx(
        2 * 8 * 128 * (2048 * 2049 / 2) / Machine().prefill_s(2048), rel=0.05
    )


def test_contention_is_the_middle_ratio_a_lane(fit: Fit) -> None:
    assert list(fit.contention.compute_during) == list(fit.contention.during_compute) == ["h2d", "ssd_read"]
    assert list(fit.contention.compute_during.values()) == pytest.approx([1.2, 1.2], rel=0.03)
    assert list(fit.contention.during_compute.values()) == pytest.approx([1.1, 1.1], rel=0.03)


def test_contention_after_a_wait_is_the_middle_ratio(fit: Fit) -> None:
    assert fit.contention.after_wait == pytest.approx(1.05, rel=0.03)


def test_contention_after_a_wait_below_one_is_clamped_and_noted_and_unmeasured_is_one() -> None:
    fit = fit_profile(list(Machine(noise=0.0, after_wait=0.9).contention()), None, "fp32")
    assert fit.contention.after_wait == 1.0
    assert any("computing after a wait: measured 0.900 times" in note for note in fit.notes)
    unmeasured = [s for s in Machine(after_wait=2.0).contention() if s.at["lane"] != "wait"]
    assert fit_profile(unmeasured, None, "fp32").contention.after_wait == 1.0


def test_contention_below_one_is_clamped_and_noted() -> None:
    fit = fit_profile(list(Machine(noise=0.0, copy_slowed=0.8).contention()), None, "fp32")
    assert set(fit.contention.during_compute.values()) == {1.0}
    assert sum("0.800 times" in note for note in fit.notes) == 2


def test_contention_without_its_other_half_is_absent() -> None:
    lonely = [s for s in Machine().contention() if not s.kind.endswith("alone")]
    assert fit_profile(lonely, None, "fp32").contention.compute_during == {}


@settings(max_examples=25)
@given(st.floats(1e-6, 1e-3), st.floats(1e-8, 1e-5), st.integers(0, 1000))
def test_host_is_a_step_and_so_much_a_block(step_s: float, block_s: float, seed: int) -> None:
    machine = Machine(noise=0.01, seed=seed, host_step_s=step_s, host_block_s=block_s)
    host = fit_profile(list(machine.host()), None, "fp32").host
    assert host is not None
    for blocks in (1, 100, 512):
        true = step_s + blocks * block_s
        assert host.step_s + blocks * host.block_s == pytest.approx(true, rel=0.05)


def test_host_measured_for_one_number_of_blocks_is_a_constant_and_noted() -> None:
    fit = fit_profile([Sample(kind="host_step", at={"blocks": 64}, seconds=(1e-4,))], None, "fp32")
    assert fit.host is not None and (fit.host.step_s, fit.host.block_s) == (1e-4, 0.0)
    assert any("64 blocks alone" in note for note in fit.notes)


def test_residual_rows_hold_every_sample_against_the_fit(samples: list[Sample], fit: Fit) -> None:
    rows = residual_rows(samples, fit)
    assert [row["kind"] for row in rows] == [sample.kind for sample in samples]
    told = [row for row in rows if row["residual"] is not None]
    assert {row["kind"] for row in told} >= {"h2d", "d2h", "ssd_read", "linear", "step", "host_step", "device_read"}
    assert max(abs(row["residual"] or 0.0) for row in told) < 0.1
    for row in told:
        assert row["residual"] == pytest.approx(row["fitted_s"] / row["measured_s"] - 1)
    deep = [row for row in rows if row["kind"] == "ssd_read" and row["at"]["depth"] != 1]
    cached = [row for row in rows if row["kind"] == "device_copy" and row["at"]["bytes"] == MIB]
    assert deep and cached and all(row["fitted_s"] is None for row in deep + cached)


def test_residual_row_tells_spread_and_outliers() -> None:
    sample = Sample(kind="h2d", at={"bytes": MIB}, seconds=(1.0, 1.1, 1.2, 1.3, 1.4, 9.0, 1.2, 1.2, 1.2))
    (row,) = residual_rows([sample], Fit())
    assert (row["fitted_s"], row["residual"], row["outliers"], row["repeats"]) == (None, None, 2, 9)
    assert (row["low_s"], row["high_s"]) == pytest.approx((1.2, 1.3))
    assert row["spread"] == pytest.approx(0.1 / 1.2)


def test_inversions_of_a_sound_machine_are_none(samples: list[Sample]) -> None:
    assert inversions(samples) == []


def test_inversions_name_pairs_where_more_bytes_are_faster_beyond_noise() -> None:
    def copy(size: int, *seconds: float, memory: str = "pinned") -> Sample:
        return Sample(kind="h2d", at={"bytes": size, "memory": memory}, seconds=seconds)

    small, large = copy(1000, 2.0, 2.1, 2.2, 2.1), copy(2000, 1.0, 1.1, 1.2, 1.1)
    assert inversions([large, small]) == [(small, large)]
    assert inversions([small, copy(2000, 1.0, 1.1, 1.2, 1.1, memory="pageable")]) == []
    assert inversions([small, copy(2000, 1.0, 2.1, 2.2, 1.9)]) == []
    assert inversions([small, copy(2000, 2.0, 2.0, 2.0, 2.0)]) == []
