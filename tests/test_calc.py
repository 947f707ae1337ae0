"""``simkv calc``: the article's figures, the laws of the closed forms, JSON keys, and what is said of bad options."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from simkv.calc import average, concurrency, speedup, step
from simkv.calc.answer import Answer, Line
from simkv.calc.break_even import Machine, of_span
from simkv.calc.machine import load_gpu
from simkv.catalog import load_hardware, load_instance, load_model
from simkv.cli import app
from simkv.errors import InputError
from simkv.formulas.step import step_cost
from simkv.model import ModelShape
from tests import shapes
from tests.readme import BLOCK, PAGES, run

MACHINE = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm5-80gb")
times = st.floats(1e-9, 1e3)


def simkv(*args: str) -> Any:
    return CliRunner().invoke(app, ["calc", *args])


def answer(*args: str) -> dict[str, Any]:
    """Return the JSON of a calculator that must succeed."""
    done = simkv(*args, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def shown(*args: str) -> str:
    done = simkv(*args)
    assert done.exit_code == 0, done.output
    return done.stdout


# ---- the article's figures


def test_concurrency_article_four_become_thirteen() -> None:
    found = answer("concurrency", "--free", "40GB", "--sequence", "10GB", "--residency", "0.3")
    assert (found["c_max"], found["c_max_resident"]) == (13, 4)
    assert found["inputs"] == {"free_bytes": 40e9, "sequence_bytes": 10e9, "residency": 0.3}
    assert answer("concurrency", "--free", "40GB", "--sequence", "10GB")["c_max"] == 4


def test_speedup_article_twenty_gigabytes_over_pcie_take_most_of_a_second() -> None:
    found = answer("speedup", "--compute", "1s", "--bytes", "20GB", "--bandwidth", "32 GB/s")
    assert found["inputs"]["transfer_s"] == 0.625
    assert found["speedup"] == found["s_max_article"] == 1.625 and found["binding"] == "article"


def test_t_avg_article_is_the_weighted_mean() -> None:
    two = answer("t-avg", "--p-hit", "0.9", "--t-vram", "1us", "--t-mem", "10us")
    assert two["t_avg_s"] == pytest.approx(1.9e-6)
    tiers = answer("t-avg", "--tier", "vram=90%:1us", "--tier", "dram=0.08:10us", "--tier", "ssd=0.02:1ms")
    assert tiers["t_avg_s"] == pytest.approx(0.9e-6 + 0.8e-6 + 20e-6)
    assert tiers["tiers"][1] == {"name": "dram", "share": 0.08, "time_s": 1e-5}


@pytest.mark.parametrize(("span", "practical", "eq2"), [("10_000", 4.9e9, 4.6e9), ("100_000", 1.9e9, 1.2e9)])
def test_break_even_llama_8b_on_an_h100_at_60_percent(span: str, practical: float, eq2: float) -> None:
    found = answer("break-even", *MACHINE, "--span", span, "--flops-efficiency", "0.6")
    assert found["break_even_bytes_per_s"] == pytest.approx(practical, rel=0.05)
    assert found["eq2_bytes_per_s"] == pytest.approx(eq2, rel=0.03)
    assert [way["better"] for way in found["ways"]] == ["load", "load"]


# ---- speedup


@given(times, times, st.floats(0, 1), st.integers(1, 200))
def test_speedup_keeps_its_bounds(compute_s: float, transfer_s: float, beta: float, layers: int) -> None:
    found = speedup.speedup(compute_s, transfer_s, beta, layers).to_json()
    near = 1 + 1e-9
    assert found["speedup"] * near >= 1
    assert found["speedup"] <= min(found["s_max_article"], found["s_max_overlap"], 2) * near
    assert found["speedup"] <= found["what_if"] * near and found["what_if"] <= found["s_max_article"] * near
    assert found["beta_feasible"] == min(beta, found["beta_max"])
    assert found["t_step_ideal_s"] <= found["t_step_s"] * near <= found["t_step_none_s"] * near * near
    assert found["t_step_ideal_s"] < found["t_step_pipelined_s"] <= found["t_step_none_s"] * near
    assert found["speedup"] == pytest.approx(found["t_step_none_s"] / found["t_step_s"])
    assert (found["binding"] == "article") == (transfer_s <= compute_s)
    assert bool(found["warnings"]) == (beta > found["beta_max"])


def test_speedup_without_beta_hides_all_that_can_be_hidden() -> None:
    found = answer("speedup", "--compute", "10ms", "--transfer", "20ms")
    assert found["speedup"] == found["s_max_overlap"] == 1.5 and found["beta_max"] == 0.5
    assert found["s_max_article"] == 3.0 and found["binding"] == "overlap"


def test_speedup_beta_beyond_one_step_is_clamped_and_warned_of_on_stderr() -> None:
    done = simkv("speedup", "--compute", "10ms", "--transfer", "20ms", "--beta", "0.9", "--json")
    found = json.loads(done.stdout)
    assert found["speedup"] == 1.5 and found["what_if"] == 2.5
    assert "warning: beta 0.9 can't be reached inside one step" in done.stderr


def test_speedup_of_nothing_moved_is_one() -> None:
    found = answer("speedup", "--compute", "10ms", "--transfer", "0s", "--beta", "0.9", "--layers", "4")
    assert found["speedup"] == 1.0 and found["t_step_pipelined_s"] == 0.01


# ---- T_avg


@given(st.lists(st.tuples(st.integers(1, 1000), times), min_size=1, max_size=6))
def test_t_avg_lies_between_the_fastest_and_the_slowest_tier(parts: list[tuple[int, float]]) -> None:
    total = sum(weight for weight, _ in parts)
    tiers = [average.Tier(str(n), weight / total, time_s) for n, (weight, time_s) in enumerate(parts)]
    found = average.t_avg(tiers).to_json()
    assert min(t.time_s for t in tiers) <= found["t_avg_s"] * (1 + 1e-9)
    assert found["t_avg_s"] <= max(t.time_s for t in tiers) * (1 + 1e-9)
    assert found["slowdown"] >= 1 - 1e-9


def test_t_avg_of_blocks_reads_them_from_memory_and_over_the_link() -> None:
    found = answer("t-avg", "--p-hit", "0.5", *MACHINE, "--block-tokens", "32", "--tp", "2", "--kv-dtype", "fp8")
    gpu, size = load_hardware("h100-sxm5-80gb"), 32 * 131072 / 2 / 2
    vram_s, memory_s = found["inputs"]["vram"], found["inputs"]["memory"]
    assert found["inputs"]["block_bytes"] == size
    assert vram_s == pytest.approx(size / (gpu.hbm_bytes_per_s * gpu.value("attention_bandwidth_efficiency")))
    assert memory_s == pytest.approx(3.5e-6 + size / gpu.value("h2d_bytes_per_s"))
    assert found["t_avg_s"] == pytest.approx((vram_s + memory_s) / 2)


# ---- concurrency


@given(st.floats(1e6, 1e12), st.floats(1e3, 1e12), st.floats(0.01, 1), st.floats(0.01, 1))
def test_concurrency_falls_with_residency_and_never_oversubscribes(
    free: float, sequence: float, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    found = [concurrency.concurrency(free, sequence, p).to_json()["c_max"] for p in (low, high)]
    assert found[0] >= found[1]
    for most, p in zip(found, (low, high), strict=True):
        assert most * p * sequence <= free * (1 + 1e-9) < (most + 1) * p * sequence * (1 + 2e-9)


def test_concurrency_of_a_machine_shows_its_budget_line_by_line() -> None:
    found = answer("concurrency", *MACHINE, "--tokens", "32Ki")
    lines = {row["line"]: row["bytes"] for row in found["budget"]}
    assert list(lines) == ["vram", "engine_share", "weights", "activations", "context", "cuda_graphs", "kv_cache"]
    parts = ("engine_share", "weights", "activations", "context", "cuda_graphs")
    assert sum(lines[name] for name in parts) == pytest.approx(lines["kv_cache"], rel=1e-6)
    assert found["sequence_bytes"] == 32768 * 131072
    assert found["c_max"] == found["free_bytes"] // found["sequence_bytes"] == 13
    text = shown("concurrency", *MACHINE, "--tokens", "32Ki")
    assert "weights" in text and "-16,060,522,496 B = -15.0 GiB" in text


def test_concurrency_length_counts_in_whole_blocks_and_defaults_to_the_longest() -> None:
    assert answer("concurrency", *MACHINE, "--tokens", "17")["sequence_bytes"] == 32 * 131072
    assert answer("concurrency", *MACHINE)["inputs"]["tokens"] == 131072


def test_concurrency_beyond_the_seats_says_so() -> None:
    assert "max_num_seqs 8 runs 8 of them" in shown("concurrency", *MACHINE, "--tokens", "4Ki", "--max-num-seqs", "8")
    done = simkv("concurrency", *MACHINE, "--tokens", "256Ki")
    assert "warning: 262,144 tokens are more than llama-3.1-8b's longest, 131,072" in done.stderr


def test_concurrency_model_that_does_not_fit_is_infeasible() -> None:
    done = simkv("concurrency", "--model", "llama-3.1-70b", "--hardware", "h100-sxm5-80gb")
    assert done.exit_code == 3 and "misses" in done.stderr


# ---- step


@pytest.mark.parametrize("model", ["llama-3.1-8b", "deepseek-v3", "qwen3-30b-a3b"])
@pytest.mark.parametrize("ranks", [1, 8])
def test_step_terms_sum_to_what_the_simulator_charges(model: str, ranks: int) -> None:
    if model == "qwen3-30b-a3b":
        ranks = min(ranks, 4)
    shape, gpu = load_model(model), load_hardware("h100-sxm5-80gb")
    found = step.step(shape, gpu, 32, 4096, 2000, ranks).to_json()
    cost = step_cost(shape, gpu, ranks)
    assert found["t_decode_s"] == cost.decode(32, 32 * 4096)[0]
    assert found["t_prefill_s"] == cost.mixed(0, 0, [(2000, 0)], 1)
    assert sum(found["decode_terms_s"].values()) == pytest.approx(found["t_decode_s"], rel=1e-9)
    assert sum(found["prefill_terms_s"].values()) == pytest.approx(found["t_prefill_s"], rel=1e-9)
    assert all(seconds > 0 for seconds in found["decode_terms_s"].values())
    assert ("all_reduce" in found["decode_terms_s"]) == (ranks > 1)
    assert ("experts" in found["decode_terms_s"]) == (shape.moe is not None)


@pytest.mark.parametrize("shape", [shapes.gpt_oss(24, 32), shapes.kimi_linear()], ids=lambda shape: shape.name)
def test_step_terms_of_windows_and_states_sum_too(shape: ModelShape) -> None:
    found = step.step(shape, load_hardware("h100-sxm5-80gb"), 32, 4096, 2000).to_json()
    assert sum(found["decode_terms_s"].values()) == pytest.approx(found["t_decode_s"], rel=1e-9)
    assert sum(found["prefill_terms_s"].values()) == pytest.approx(found["t_prefill_s"], rel=1e-9)
    assert found["prefill_terms_s"]["attention"] > 0


def test_step_eager_is_slower_and_fp8_faster() -> None:
    plain = answer("step", *MACHINE, "--batch", "8", "--context", "4Ki")
    assert "t_prefill_s" not in plain
    assert answer("step", *MACHINE, "--batch", "8", "--context", "4Ki", "--eager")["t_decode_s"] > plain["t_decode_s"]
    fp8 = answer("step", *MACHINE, "--batch", "8", "--context", "4Ki", "--weight-dtype", "fp8", "--kv-dtype", "fp8")
    assert fp8["t_decode_s"] < plain["t_decode_s"]
    assert fp8["decode_terms_s"]["attention"] == pytest.approx(plain["decode_terms_s"]["attention"] / 2)
    assert plain["decode_tokens_per_s"] == pytest.approx(8 / plain["t_decode_s"])


def test_step_says_what_bounds_each_product() -> None:
    text = shown("step", *MACHINE, "--batch", "8", "--context", "4Ki", "--prefill", "8Ki")
    rows = {line.split("  ")[1]: line for line in text.splitlines() if ": linear" in line}
    assert "bound by reading weights" in rows["decode: linear"]
    assert "bound by arithmetic" in rows["prefill: linear"]


# ---- break-even


@given(st.integers(1, 10**6), st.floats(0.05, 1), st.floats(1e6, 1e12))
def test_break_even_is_where_loading_and_computing_take_equally_long(span: int, efficiency: float, link: float) -> None:
    machine = Machine(
        load_model("llama-3.1-8b"), load_hardware("h100-sxm5-80gb"), 1, flops_efficiency=efficiency,
        link_bytes_per_s=link,
    )  # fmt: skip
    found = of_span(machine, span).to_json()
    assert found["span_bytes"] / found["break_even_bytes_per_s"] == pytest.approx(found["prefill_s"])
    dram, ssd = found["ways"]
    assert (dram["better"] == "load") == (dram["gain_s"] > 0)
    assume(not math.isclose(link, found["break_even_bytes_per_s"], rel_tol=1e-6))
    assert (dram["better"] == "load") == (link > found["break_even_bytes_per_s"])
    assert ssd["load_s"] == pytest.approx(dram["load_s"] + found["span_bytes"] / 7e9)


def test_break_even_throughput_prices_the_link_and_states_its_objective() -> None:
    args = ("break-even", *MACHINE, "--span", "10Ki", "--objective", "throughput")
    dear, free, plain = (answer(*args, "--link-price", price) for price in ("100", "0", "1"))
    assert dear["break_even_bytes_per_s"] == pytest.approx(100 * plain["break_even_bytes_per_s"])
    assert free["break_even_bytes_per_s"] == 0 and free["ways"][0]["better"] == "load"
    assert dear["ways"][0]["better"] == "recompute" and plain["ways"][0]["better"] == "load"
    assert answer(*args)["break_even_bytes_per_s"] == plain["break_even_bytes_per_s"]
    assert plain["objective"] == "throughput" and plain["span_tokens"] == 10240
    assert "Objective: throughput" in shown(*args)


def test_break_even_by_default_takes_the_step_model() -> None:
    found = answer("break-even", *MACHINE, "--span", "10Ki")
    cost = step_cost(load_model("llama-3.1-8b"), load_hardware("h100-sxm5-80gb"))
    assert found["prefill_s"] == cost.mixed(0, 0, [(10240, 0)], 1)


def test_break_even_two_ranks_load_over_two_links() -> None:
    one, two = (answer("break-even", *MACHINE, "--span", "10Ki", "--tp", str(n)) for n in (1, 2))
    assert two["ways"][0]["bytes_per_s"] == 2 * one["ways"][0]["bytes_per_s"]
    assert two["span_bytes"] == one["span_bytes"]


def test_break_even_slow_link_recomputes() -> None:
    found = answer("break-even", *MACHINE, "--span", "10Ki", "--link-bandwidth", "1 GB/s", "--ssd-bandwidth", "3 GB/s")
    assert [way["better"] for way in found["ways"]] == ["recompute", "recompute"]
    assert found["ways"][1]["bytes_per_s"] == pytest.approx(0.75e9)


def test_break_even_latents_have_no_eq2() -> None:
    args = ("break-even", "--model", "deepseek-v3", "--hardware", "h200-sxm5-141gb", "--span", "10Ki", "--tp", "8")
    assert answer(*args)["eq2_bytes_per_s"] is None
    assert "has no letters for this shape" in shown(*args)


# ---- all of them


EVERY = {
    "kv-size": ("--model", "llama-3.1-8b", "--tokens", "128Ki"),
    "concurrency": ("--free", "40GB", "--sequence", "10GB"),
    "t-avg": ("--p-hit", "0.9", "--t-vram", "1us", "--t-mem", "10us"),
    "speedup": ("--compute", "10ms", "--transfer", "20ms"),
    "step": (*MACHINE, "--batch", "8", "--context", "4Ki"),
    "break-even": (*MACHINE, "--span", "10Ki"),
}


@pytest.mark.parametrize("verb", EVERY)
def test_every_answer_has_formula_inputs_and_plain_json(verb: str) -> None:
    done = simkv(verb, *EVERY[verb], "--json")
    found = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert found["formula"] and found["inputs"] and found["notes"] == [] and found["warnings"] == []
    text = shown(verb, *EVERY[verb])
    assert found["formula"].split()[0] in text and "\ngiven\n" in text and "\nanswer\n" in text
    assert max(len(line) for line in text.splitlines()) <= 100
    assert done.stderr == ""


@pytest.mark.parametrize("block", list(BLOCK.finditer(PAGES[1].read_text("utf-8"))), ids=lambda block: block["command"])
def test_docs_page_shows_what_the_command_prints(block: re.Match[str]) -> None:
    assert block["output"] == run(block["command"]), "run: make readme"


def test_docs_page_shows_every_calculator() -> None:
    commands = [block["command"].split()[2] for block in BLOCK.finditer(PAGES[1].read_text("utf-8"))]
    assert set(commands) == set(EVERY)


@pytest.mark.parametrize("verb", [("step", "--batch", "1", "--context", "1Ki"), ("break-even", "--span", "1Ki")])
def test_machine_too_small_for_the_weights_is_warned_of(verb: tuple[str, ...]) -> None:
    args = ("--model", "deepseek-v3", "--hardware", "h100-sxm5-80gb")
    small, large = answer(*verb, *args), answer(*verb, *args, "--tp", "16")
    assert "deepseek-v3 doesn't fit on 1 x h100-sxm5-80gb: 6" in small["warnings"][0] and not large["warnings"]


def test_break_even_writes_large_rates_without_exponents() -> None:
    args = ("--model", "deepseek-v3", "--hardware", "h100-sxm5-80gb", "--tp", "16", "--span", "1Ki")
    assert "14,210 TFLOP/s" in shown("break-even", *args)


def test_help_names_every_calculator() -> None:
    assert all(f"  {verb} " in simkv("--help").stdout for verb in EVERY)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("concurrency", "--free", "40", "--sequence", "1GB"), '--free = "40": has no unit; write "40GiB" or "40GB"'),
        (("concurrency", "--free", "40GB"), "--sequence: is missing; give --free, --sequence; or --model, --hardware"),
        (("concurrency",), "--free: is missing; give --free, --sequence; or --model, --hardware"),
        (
            ("concurrency", "--free", "40GB", "--sequence", "1GB", "--tp", "2"),
            "--tp: does nothing with --free, --sequence; leave it out",
        ),
        (
            ("concurrency", "--free", "40GB", "--sequence", "1GB", "--residency", "0"),
            '--residency = "0": too small; it must be above zero',
        ),
        (("concurrency", *MACHINE, "--tp", "3"), "--tp = 3: doesn't divide the 32 heads of llama-3.1-8b; use one of 1"),
        (
            ("step", *MACHINE, "--batch", "1", "--context", "12k"),
            '--context = "12k": not a number of tokens; write "12Ki"',
        ),
        (
            ("step", *MACHINE, "--batch", "1", "--context", "1", "--kv-dtype", "fp7"),
            "--kv-dtype = fp7: no such format; use one of fp32, bf16, fp16, fp8, int8, int4, or auto",
        ),
        (
            ("step", "--model", "lama", "--hardware", "h100-sxm5-80gb", "--batch", "1", "--context", "1"),
            "--model = lama: ",
        ),
        (
            ("step", "--model", "llama-3.1-8b", "--hardware", "h10", "--batch", "1", "--context", "1"),
            "--hardware = h10: ",
        ),
        (("t-avg", "--tier", "vram"), '--tier = "vram": not a tier; write it like "vram=0.9:1us"'),
        (("t-avg", "--tier", "vram=1:1"), '--tier = "1": has no unit; write "1s" or "1ms"'),
        (("t-avg", "--tier", "a=0.5:1s", "--tier", "b=0.4:1s"), "--tier: the shares sum to 0.9; they must sum to 1"),
        (("t-avg", "--p-hit", "1.5", "--t-vram", "1s", "--t-mem", "1s"), '--p-hit = "1.5": too large'),
        (("speedup", "--compute", "1s"), "--transfer: is missing; give --transfer; or --bytes, --bandwidth"),
        (("speedup", "--compute", "0s", "--transfer", "0s"), "--compute: nothing is computed and nothing moved"),
        (("speedup", "--compute", "1s", "--transfer", "infs"), '--transfer = "infs": infinite; give a finite value'),
        (
            ("speedup", "--compute", "1s", "--transfer", "1s", "--bytes", "1GB"),
            "--bytes: does nothing with --transfer; leave it out",
        ),
        (("break-even", *MACHINE, "--span", "0"), '--span = "0": too small; the least is 1'),
        (
            ("break-even", *MACHINE, "--span", "1", "--objective", "cost"),
            "--objective = cost: no such objective; one of latency, throughput",
        ),
        (
            ("break-even", *MACHINE, "--span", "1", "--link-price", "2"),
            "--link-price: does nothing with the objective latency; write --objective throughput",
        ),
    ],
)
def test_bad_option_is_named_with_value_and_mend(args: tuple[str, ...], message: str) -> None:
    done = simkv(*args)
    assert done.exit_code == 2
    assert message in done.stderr and done.stdout == ""


def test_answer_infinite_figures_are_null_and_text_only_lines_are_left_out() -> None:
    lines = [Line("a", math.inf, "A", "time"), Line("", 1.0, "B", "number")]
    found = Answer("t", "f", lines, lines, [], {"rows": [{"x": math.inf}]}).to_json()
    assert found["a"] is None and "" not in found and found["rows"] == [{"x": None}]


def test_t_avg_of_no_tier_is_refused() -> None:
    with pytest.raises(InputError, match="no tier is given"):
        average.t_avg([])


def test_break_even_instance_brings_its_hosts_links_and_drives() -> None:
    host, card = load_gpu("p5.48xlarge"), load_gpu("h100-sxm5-80gb")
    model = load_model("llama-3.1-8b")
    instance = load_instance("p5.48xlarge")
    ways = of_span(Machine(model, host), 10_240).to_json()["ways"]
    assert ways[0]["bytes_per_s"] == instance.figure("h2d_bytes_per_s").value
    ssd, link = instance.figure("ssd_read_bytes_per_s").value, ways[0]["bytes_per_s"]
    assert ways[1]["bytes_per_s"] == pytest.approx(1 / (1 / ssd + 1 / link))
    assert of_span(Machine(model, card), 10_240).to_json()["ways"][0]["bytes_per_s"] > link


def test_concurrency_none_fits_is_infeasible_and_says_what_would() -> None:
    asked = ("--model", "llama-3.1-70b", "--hardware", "h100-sxm5-80gb", "--tokens", "128Ki")
    done = simkv("concurrency", *asked, "--tp", "2")
    assert done.exit_code == 3 and "one sequence of 131072 tokens" in done.stderr
    assert "tensor_parallel 4" in done.stderr
    assert answer("concurrency", *asked, "--tp", "4")["c_max"] >= 1


@pytest.mark.parametrize(
    ("asked", "tokens"),
    [
        (("--model", "llama-3.1-8b", "--available", "19.28GiB"), 157_936),
        (("--model", "qwen3-14b", "--available", "20.58GiB", "--tp", "2"), 269_744),
        (("--model", "qwen3.5-35b-a3b", "--available", "5.98GiB", "--kv-dtype", "fp8", "--tokens", "128Ki"), 567_978),
    ],
)
def test_concurrency_of_what_is_available_is_what_engines_log(asked: tuple[str, ...], tokens: int) -> None:
    """Logged by vLLM 0.15.1 on an A100, by 0.11.2 on two L40S (within 0.012 %), by 0.24 on an RTX 5090."""
    found = answer("concurrency", *asked)
    assert found["kv_cache_tokens"] == tokens
    assert found["c_max"] * found["sequence_bytes"] <= found["free_bytes"]


def test_concurrency_of_too_little_is_infeasible() -> None:
    done = simkv("concurrency", "--model", "llama-3.1-8b", "--available", "3MiB")
    assert done.exit_code == 3 and "no usable page of llama-3.1-8b's KV: one takes" in done.stderr
