"""Batch mode's closed forms: FlexGen's by hand, the schedule block by block, bytes, memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.catalog import load_hardware, load_model
from simkv.errors import InfeasibleError, InputError
from simkv.formulas.placement import (
    BatchPolicy,
    Block,
    Job,
    LayerShape,
    Placement,
    Rates,
    Room,
    Share,
    blocks,
    by_matrices,
    check_memory,
    flexgen_t4,
    hardware_rates,
    layer_shape,
    mapped_bytes_per_s,
    needs,
    published,
    schedule_s,
)
from simkv.formulas.placement.blocks import alone_s

GPU, CPU, DISK = Share(1, 0), Share(0, 1), Share(0, 0)
LAYER = LayerShape(
    layers=3, hidden=8, intermediate=32, heads=2, params=100, weight_bytes=200, kv_bytes=16, kv_wide_bytes=16,
    query_bytes=16, prefill_pair_flops=32, decode_pair_flops=32,
)  # fmt: skip
RATES = Rates(
    h2d=100.0, d2h=80.0, ssd_read=50.0, ssd_write=40.0, mm_prefill=1000.0, mm_decode=500.0,
    bmm_prefill=2000.0, bmm_decode=400.0, cpu_attention=64.0, copy=90.0,
)  # fmt: skip


def policy(weights: Share = CPU, kv: Share = CPU, activations: Share = CPU, **changes: object) -> BatchPolicy:
    """Return a policy of two GPU batches of two sequences."""
    base = BatchPolicy(Placement(weights, kv, activations), gpu_batch_size=2, num_gpu_batches=2)
    return replace(base, **changes)  # type: ignore[arg-type]


shares = st.tuples(st.integers(0, 10), st.integers(0, 10)).filter(lambda p: sum(p) <= 10).map(
    lambda p: Share(p[0] / 10, p[1] / 10)
)  # fmt: skip
policies = st.builds(
    lambda w, kv, act, *rest: BatchPolicy(Placement(w, kv, act), *rest),
    shares, shares, shares, st.integers(1, 3), st.integers(1, 3), *[st.booleans()] * 6,
    st.sampled_from(["never", "repeated", "always"]),
)  # fmt: skip
jobs = st.builds(Job, st.integers(1, 9), st.integers(1, 20), st.integers(1, 4))


# ---- FlexGen's closed form


def test_published_everything_below_on_cpu_equals_the_sum_by_hand() -> None:
    job = Job(sequences=4, prompt_tokens=10, output_tokens=5)
    found = published(LAYER, policy(cpu_attention=True), RATES, job)
    # prefill: up 200 B of weights and 4 * 10 * 16 B of activations; down 11 tokens of KV each and the activations;
    # 2 FLOPs a weight and token, 32 a pair
    up, down, computed = (200 + 640) / 100, (704 + 640) / 80, 2 * 100 * 40 / 1000 + 32 * 4 * 100 / 2000
    assert found.prefill_layer_s == pytest.approx(max(up, down, computed)) == pytest.approx(16.8)
    # decoding at 12.5 tokens: weights and activations go up first, then the CPU reads 4 * 12.5 * 16 B of KV
    assert found.decode_layer_s == pytest.approx((200 + 64) / 100 + (2 * 100 * 4 / 500 + 800 / 64))
    assert found.total_s == pytest.approx(3 * 16.8 + 3 * 4 * (2.64 + 1.6 + 12.5))
    assert found.tokens_per_s == pytest.approx(20 / found.total_s)


def test_published_from_disk_adds_reads_to_loads_and_writes_to_stores() -> None:
    found = published(LAYER, policy(DISK, DISK, GPU), RATES, Job(4, 10, 5))
    up, down = 200 / 100 + 200 / 50, 704 / 80 + 704 / 40
    assert found.prefill_layer_s == pytest.approx(max(up, down)) == pytest.approx(26.4)
    context = 4 * 12.5 * 16  # attended on the GPU, so it goes up as well
    computed = 2 * 100 * 4 / 500 + 32 * 2 * 2 * 12 / 400  # pairs at a whole token
    read = context / 50 + 200 / (0.95 * 50)
    assert found.decode_layer_s == pytest.approx((200 + context) / 100 + max(read, computed, 64 / 40))


def test_published_opt_30b_on_a_t4_gives_the_throughput_that_was_measured() -> None:
    layer = layer_shape(load_model("opt-30b"))
    chosen = BatchPolicy(Placement(Share(0.2, 0.8), CPU, CPU), 48, 3, cpu_attention=True)
    found = published(layer, chosen, flexgen_t4(layer, 48), Job(144, 512, 32))
    assert found.tokens_per_s == pytest.approx(7.32, rel=0.05)  # README, prompt 512
    assert layer.weight_bytes == 8 * 7168**2 + 4 * 7168 * 28672  # cost_model.py: wi
    assert layer.kv_bytes == 4 * 7168


def test_flexgen_t4_small_batches_and_narrow_layers_attend_slower_on_the_cpu() -> None:
    wide, narrow = layer_shape(load_model("opt-30b")), replace(layer_shape(load_model("opt-30b")), hidden=1024)
    assert flexgen_t4(wide, 64).cpu_attention == 0.0123e12
    assert flexgen_t4(wide, 16).cpu_attention == pytest.approx(0.0123e12 * (1 - 2 * 0.0328))
    both = 1 + 0.0168 * 2 * 2 - 0.0328 * 2 - 0.0621 * 2
    assert flexgen_t4(narrow, 16).cpu_attention == pytest.approx(0.0123e12 * both)


# ---- the schedule


@pytest.mark.parametrize("kind", ["opt-6.7b", "opt-30b", "opt-175b"])
@pytest.mark.parametrize("kv", [GPU, CPU], ids=["kv on gpu", "kv on cpu"])
@pytest.mark.parametrize("cpu_attention", [False, True])
def test_schedule_one_gpu_batch_equals_the_published_form(kind: str, kv: Share, cpu_attention: bool) -> None:
    layer = layer_shape(load_model(kind))
    chosen = BatchPolicy(Placement(CPU, kv, CPU), 64, 1, cpu_attention=cpu_attention)
    rates, job = flexgen_t4(layer, 64), Job(64, 512, 64)
    _, total_s = schedule_s(layer, chosen, rates, job)
    assert total_s == pytest.approx(published(layer, chosen, rates, job).total_s, rel=0.01)


def test_schedule_one_block_takes_what_its_chains_take() -> None:
    job = Job(2, 10, 2)
    chosen = policy(num_gpu_batches=1, cpu_attention=True)
    layer = replace(LAYER, layers=1)
    first, prefill, decode = blocks(layer, chosen, RATES, job)
    assert (first.h2d, first.gpu_s) == (200, 0.0)
    assert (prefill.h2d, prefill.d2h_cache, prefill.d2h) == (200 + 2 * 16, 0, 0)  # weights again, the next token's act.
    assert prefill.gpu_s == pytest.approx(2 * 100 * 20 / 1000 + 32 * 2 * 100 / 2000)
    travels = 2 * 16
    assert (decode.h2d, decode.d2h_cache, decode.d2h) == (travels, 2 * 10 * 16, 2 * 10 * 16 + travels)
    assert decode.cpu == 2 * 10 * 16
    first_s, total_s = schedule_s(layer, chosen, RATES, job)
    assert first_s == pytest.approx(2.0 + max(2.32, prefill.gpu_s))
    stores, computes = (320 + 352) / 80, 320 / 64 + 2 * 100 * 2 / 500
    assert total_s - first_s == pytest.approx(0.32 + max(stores, computes))


@given(policies, jobs)
def test_schedule_any_policy_moves_each_byte_once(chosen: BatchPolicy, job: Job) -> None:
    all_blocks = list(blocks(LAYER, chosen, RATES, job))
    layers, passes, batches = LAYER.layers, job.output_tokens, chosen.gpu_batches(job.sequences)
    assert len(all_blocks) == 1 + layers * passes * len(batches)
    weights = sum(chosen.placement.weights.split(LAYER.weight_bytes)[1:]) * layers * passes
    new = [job.prompt_tokens] + [1] * (passes - 1)
    act = [sum(chosen.placement.activations.split(LAYER.activation_bytes * n * size)[1:])
           for n in new for _ in range(layers) for size in batches]  # fmt: skip
    cached = [sum(chosen.placement.kv.split(LAYER.kv_bytes * (job.prompt_tokens + token - 1) * size)[1:]) * layers
              for token in range(1, passes) for size in batches]  # fmt: skip
    travels = sum(
        round(LAYER.query_bytes * size * below / (LAYER.kv_bytes * (job.prompt_tokens + token - 1) * size)) * layers
        for (token, size), below in zip(product(range(1, passes), batches), (c // layers for c in cached), strict=True)
    )  # fmt: skip
    carried = sum(block.h2d + block.up for block in all_blocks)
    attended = sum(block.cpu for block in all_blocks)
    if chosen.cpu_attention:
        assert attended == sum(cached)
        assert carried == weights + sum(act[1:]) + travels
        assert sum(b.d2h + b.down for b in all_blocks) == sum(act[:-1]) + travels
    else:
        assert attended == 0
        assert carried == weights + sum(act[1:]) + sum(cached)
        assert sum(b.d2h + b.down for b in all_blocks) == sum(act[:-1])
    stored = [
        sum(chosen.placement.kv.split(LAYER.kv_bytes * n * size)[1:]) * layers for n in new[:-1] for size in batches
    ]
    assert sum(block.d2h_cache + block.down_cache for block in all_blocks) == sum(stored)


@given(policies, jobs)
def test_schedule_all_on_gpu_is_plain_computation(chosen: BatchPolicy, job: Job) -> None:
    chosen = replace(chosen, placement=Placement(GPU, GPU, GPU))
    total_s = sum(
        RATES.gpu_s(LAYER, size, 1 if token else job.prompt_tokens, job.prompt_tokens + token - 1 if token else 0, 1.0)
        for token in range(job.output_tokens)
        for size in chosen.gpu_batches(job.sequences)
    )
    assert schedule_s(LAYER, chosen, RATES, job)[1] == pytest.approx(LAYER.layers * total_s)


@given(policies, jobs, st.sampled_from(["h2d", "d2h", "ssd_read", "ssd_write", "cpu_attention", "mm_decode"]))
@settings(max_examples=60)
def test_faster_anything_is_never_slower(chosen: BatchPolicy, job: Job, name: str) -> None:
    faster = replace(RATES, **{name: 2 * getattr(RATES, name)})
    assert schedule_s(LAYER, chosen, faster, job)[1] <= schedule_s(LAYER, chosen, RATES, job)[1] * (1 + 1e-12)
    assert published(LAYER, chosen, faster, job).total_s <= published(LAYER, chosen, RATES, job).total_s * (1 + 1e-12)


@given(policies, jobs)
def test_overlap_is_never_slower_than_one_after_the_other(chosen: BatchPolicy, job: Job) -> None:
    at_once, first, serial = (
        schedule_s(LAYER, replace(chosen, overlap=overlap, loads_first=loads_first), RATES, job)[1]
        for overlap, loads_first in ((True, False), (True, True), (False, True))
    )
    assert max(at_once, first) <= serial * (1 + 1e-12)


# ---- memory that isn't pinned, mapped files, heads written out


def pinned(chosen: BatchPolicy) -> BatchPolicy:
    """Return the policy with everything in DRAM pinned."""
    return replace(chosen, stages_weights=False, stages_kv=False)


@given(policies, jobs, st.floats(1.0, 1e4))
def test_staging_never_speeds_up(chosen: BatchPolicy, job: Job, copy: float) -> None:
    rates = replace(RATES, copy=copy)
    staged, direct = (schedule_s(LAYER, one, rates, job)[1] for one in (chosen, pinned(chosen)))
    assert staged >= direct * (1 - 1e-12)
    assert staged >= schedule_s(LAYER, chosen, replace(rates, copy=2 * copy), job)[1] * (1 - 1e-12)


@given(policies, jobs)
def test_staging_by_copies_that_take_no_time_costs_nothing_where_loads_go_first(chosen: BatchPolicy, job: Job) -> None:
    chosen, rates = replace(pinned(chosen), loads_first=True), replace(RATES, copy=inf)
    staged = replace(chosen, stages_weights=True, stages_kv=True)
    for block in blocks(LAYER, chosen, rates, job):
        if block.token > 0:
            assert alone_s(block, LAYER, staged, rates) == pytest.approx(alone_s(block, LAYER, chosen, rates))


@given(policies, jobs, st.floats(1.0, 1e4))
def test_everything_pinned_is_exactly_what_it_is_without_a_copy(chosen: BatchPolicy, job: Job, copy: float) -> None:
    chosen = replace(pinned(chosen), expands_kv="never")
    assert schedule_s(LAYER, chosen, replace(RATES, copy=copy), job) == schedule_s(LAYER, chosen, RATES, job)


def test_staged_block_by_hand_waits_for_its_copies_and_for_the_last_tensor() -> None:
    chosen = policy(GPU, CPU, GPU, gpu_batch_size=2, num_gpu_batches=1, stages_kv=True)
    layer, job = replace(LAYER, layers=1), Job(2, 10, 3)
    last = list(blocks(layer, chosen, RATES, job))[-2]
    assert (last.token, last.cache, last.h2d) == (1, 2 * 11 * 16, 2 * 11 * 16)
    half = 176
    before, crossing = half / 90, max(half / 90, half / 100)  # keys are copied; they cross while values are copied
    assert _alone(layer, chosen, last) == pytest.approx(before + crossing + half / 100 + _rest(layer, chosen, last))


def _alone(layer: LayerShape, chosen: BatchPolicy, block: Block) -> float:
    return alone_s(block, layer, chosen, RATES)


def _rest(layer: LayerShape, chosen: BatchPolicy, block: Block) -> float:
    """What is left of a block that loads nothing."""
    return alone_s(replace(block, h2d=0, cache=0, weights=0), layer, chosen, RATES)


@given(policies, jobs, st.floats(1.0, 200.0))
def test_slower_loads_and_reads_never_speed_up(chosen: BatchPolicy, job: Job, most: float) -> None:
    base = schedule_s(LAYER, chosen, RATES, job)[1]
    for name in ("weight_load", "kv_load", "mapped_read", "mapped_load", "d2h_cache"):
        assert schedule_s(LAYER, chosen, replace(RATES, **{name: most}), job)[1] >= base * (1 - 1e-12)


@given(policies, jobs)
def test_reads_first_is_never_faster_than_loads_first(chosen: BatchPolicy, job: Job) -> None:
    reads, loads = (
        schedule_s(LAYER, replace(chosen, loads_first=True, reads_first=first), RATES, job)[1]
        for first in (True, False)
    )
    assert reads >= loads * (1 - 1e-12)


@given(st.floats(1e6, 1e10), st.integers(1, 1 << 30))
def test_mapped_file_is_slower_than_its_drive_and_gains_by_reading_ahead(drive: float, window: int) -> None:
    assert mapped_bytes_per_s(drive, window) < mapped_bytes_per_s(drive, 2 * window) < drive
    assert mapped_bytes_per_s(drive, 0) == inf


def test_mapped_file_on_one_drive_and_on_a_striped_volume() -> None:
    assert mapped_bytes_per_s(5.6e9, 128 << 10) == pytest.approx(1.79e9, rel=0.01)  # a third: a pause per 128 KiB
    assert mapped_bytes_per_s(2.65e9, 8 << 20) == pytest.approx(2.61e9, rel=0.01)


@pytest.mark.parametrize(
    ("asked", "got"),
    [((0.2, 0.8), (1 / 12, 11 / 12)), ((0.1, 0.9), (0, 1)), ((0.97, 0.03), (1, 0)), ((0, 0.5), (0, 0.5)),
     ((1, 0), (1, 0)), ((0, 0), (0, 0)), ((0.5, 0.5), (0.5, 0.5))],
)  # fmt: skip
def test_weights_by_whole_matrices_miss_the_percentages(asked: tuple[float, float], got: tuple[float, float]) -> None:
    found = by_matrices(Share(*asked), layer_shape(load_model("opt-30b")).matrices)
    assert (found.gpu, found.cpu) == pytest.approx(got)


@given(shares)
def test_weights_by_whole_matrices_keep_extremes_and_sum_to_one(share: Share) -> None:
    found = by_matrices(share, layer_shape(load_model("llama-2-70b")).matrices)
    assert found.gpu + found.cpu + found.disk == pytest.approx(1)
    for asked, got in ((share.gpu, found.gpu), (share.cpu, found.cpu), (share.disk, found.disk)):
        assert got == pytest.approx(asked) if asked in (0.0, 1.0) else 0 <= got <= 1


@pytest.mark.parametrize(("expands", "times", "copied"), [("never", 1, 0), ("repeated", 4, 8), ("always", 4, 8)])
def test_heads_of_kv_are_written_out_in_32_bits_for_each_head_of_the_queries(
    expands: str, times: int, copied: int
) -> None:
    grouped = replace(LAYER, kv_groups=4)
    chosen = policy(cpu_attention=True, expands_kv=expands)
    plain = [block.cpu for block in blocks(grouped, replace(chosen, expands_kv="never"), RATES, Job(4, 10, 3))]
    found = list(blocks(grouped, chosen, RATES, Job(4, 10, 3)))
    assert [block.cpu for block in found] == [times * kv for kv in plain]
    assert [block.copied for block in found] == [copied * kv for kv in plain]


def test_heads_that_are_not_repeated_are_written_out_only_where_always() -> None:
    for expands, there in (("never", False), ("repeated", False), ("always", True)):
        found = blocks(LAYER, policy(cpu_attention=True, expands_kv=expands), RATES, Job(4, 10, 3))
        assert any(block.copied for block in found) is there


# ---- bytes


def test_layer_int4_counts_a_scale_and_a_least_value_for_each_64_numbers() -> None:
    wide, narrow = (layer_shape(load_model("opt-30b"), dtype, dtype) for dtype in ("fp16", "int4"))
    assert narrow.weight_bytes == wide.params * 4.5 / 8
    assert narrow.kv_bytes == wide.kv_bytes / 2 * 4.5 / 8
    assert (narrow.kv_wide_bytes, narrow.wide_weight_bytes) == (wide.kv_bytes, wide.weight_bytes)
    rates = hardware_rates(load_hardware("t4"), 1e9, 1e9, 1e9, 1e9, 1e9)
    unpacking = rates.gpu_s(narrow, 4, 1, 100, 1.0) - rates.gpu_s(wide, 4, 1, 100, 1.0)
    assert unpacking == pytest.approx((wide.weight_bytes + 4 * 101 * wide.kv_bytes) / rates.dequantise)


@pytest.mark.parametrize("name", ["mixtral-8x7b", "gemma-3-27b"])
def test_layer_of_unequal_models_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"whole equal layers.*choose a model"):
        layer_shape(load_model(name))


@given(st.integers(0, 10**12), shares)
def test_split_any_amount_sums_to_it(amount: int, share: Share) -> None:
    parts = share.split(amount)
    assert sum(parts) == amount
    assert min(parts) >= 0
    for part, wanted in zip(parts, (share.gpu, share.cpu, share.disk), strict=True):
        assert abs(part - amount * wanted) <= 1 + 1e-6 * amount


# ---- memory


def test_memory_opt_30b_peaks_are_those_of_the_cost_model() -> None:
    layer = layer_shape(load_model("opt-30b"))
    chosen = BatchPolicy(Placement(Share(0.2, 0.8), CPU, CPU), 48, 3, cpu_attention=True)
    found = needs(layer, chosen, Job(144, 512, 32))
    h1, h2, heads, s, g, w = 7168, 28672, 56, 512, 48, layer.weight_bytes
    working = 8 * g * s * h1 + g * (2 * s * h1 + 2 * heads * s * s) + 2 * g * s * h1 + 4 * g * s * h1 + 2 * g * s * h2
    gpu = 0.2 * w * 48 + 2 * 0.8 * w + 2 * s * h1 * g + working + 2 * g * s * h1
    assert found["GPU"].total == pytest.approx(gpu)
    dram = 0.8 * w * 48 + 2 * s * h1 * 144 + 4 * 544 * h1 * 144 * 48 + 0.8 * w + 2 * s * h1 * g
    assert found["DRAM"].total == pytest.approx(dram)
    assert found["disk"].total == 0


def test_memory_too_small_tells_where_by_how_much_and_what_helps() -> None:
    layer = layer_shape(load_model("opt-30b"))
    chosen = BatchPolicy(Placement(Share(0.2, 0.8), CPU, CPU), 48, 3, cpu_attention=True)
    room = Room(16 << 30, 100e9, 0.0, 0.8)
    with pytest.raises(InfeasibleError) as caught:
        check_memory(layer, chosen, Job(144, 512, 32), room)
    told = str(caught.value)
    assert "18.8 GiB of GPU" in told and "12.8 GiB (its size x memory_slack 0.8): 5.97 GiB too much" in told
    assert "of DRAM" in told and "raise tiers.dram.capacity" in told
    assert "disk" not in told
    assert check_memory(layer, chosen, Job(144, 512, 32), Room(16 << 30, 208e9, 0.0, 1.2))


@given(policies, jobs, jobs)
def test_memory_more_never_needs_less(chosen: BatchPolicy, one: Job, other: Job) -> None:
    more = Job(*(max(a, b) for a, b in zip((one.sequences, one.prompt_tokens, one.output_tokens),
                                           (other.sequences, other.prompt_tokens, other.output_tokens),
                                           strict=True)))  # fmt: skip
    less, most = needs(LAYER, chosen, one), needs(LAYER, chosen, more)
    assert all(less[tier].total <= most[tier].total + 3 for tier in less)


def test_gpu_batches_sum_to_the_sequences() -> None:
    assert policy().gpu_batches(4) == [2, 2]
    assert policy().gpu_batches(3) == [2, 1]
    assert inf > sum(policy().gpu_batches(1)) == 1
    assert all(a >= b for a, b in pairwise(policy().gpu_batches(7)))
