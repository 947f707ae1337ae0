"""Axes of a sweep: names, ranges, what they bring along, what is refused; grids and samples of them."""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.scenario.resolve import resolve_text
from simkv.sweeps.axes import assignments, parse_axes, parse_axis, section_axes
from simkv.sweeps.check import check, some
from simkv.sweeps.grid import MOST, grid, sample, size
from simkv.sweeps.names import ALONG, SHORT, path_of
from simkv.sweeps.paths import all_paths, exists, quantity_at
from simkv.sweeps.simulate import Written

SCENARIOS = Path(__file__).parents[1] / "scenarios"


def written(name: str, *assigned: str) -> Written:
    file = SCENARIOS / f"{name}.yaml"
    return Written(file.read_text(), str(file), assigned)


def refused(*texts: str) -> str:
    """Return what is wrong with the axes, each problem with its place."""
    with pytest.raises(InputError) as caught:
        parse_axes(texts)
    for problem in caught.value.problems:
        assert problem.file == "--grid" and problem.mend
    return str(caught.value)


SPELLED = [
    ("p=0.1:1.0:0.1", ["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"]),
    ("p=10%:50%:20%", ["10%", "30%", "50%"]),
    ("beta=0,0.5,0.9", ["0", "0.5", "0.9"]),
    ("p = 1.0:0.25:-0.25", ["1", "0.75", "0.5", "0.25"]),
    ("p=0.3,0.5:0.7:0.1", ["0.3", "0.5", "0.6", "0.7"]),
    ("p=0.5:0.5:0.1", ["0.5"]),
    ("dram=100GiB:400GiB:100GiB", ["100GiB", "200GiB", "300GiB", "400GiB"]),
    ("dram=100:400:100GiB", ["100GiB", "200GiB", "300GiB", "400GiB"]),
    ("dram=512MiB:2GiB:512MiB", ["512MiB", "1024MiB", "1536MiB", "2048MiB"]),
    ("rate=1:3:1 req/s", ["1 req/s", "2 req/s", "3 req/s"]),
    ("rate=1 req / s:3:1 req/s", ["1 req/s", "2 req/s", "3 req/s"]),
    ("link.latency=10ms:50ms:20ms", ["10ms", "30ms", "50ms"]),
    ("link.latency=500us:2ms:0.5ms", ["500us", "1000us", "1500us", "2000us"]),
    ("engine.max_num_seqs=16:256:x2", ["16", "32", "64", "128", "256"]),
    ("engine.max_num_seqs=8:1:x0.5", ["8", "4", "2", "1"]),
    ("engine.max_num_seqs=2:10:x1.5", ["2", "3", "4", "7"]),
    ("engine.max_num_seqs=1_000:3_000:1_000", ["1000", "2000", "3000"]),
    ("engine.max_num_batched_tokens=1Ki:8Ki:x2", ["1Ki", "2Ki", "4Ki", "8Ki"]),
    ("offload.prefetch={policy: oracle},{policy: none}", ["{policy: oracle}", "{policy: none}"]),
    ("run.baselines=[],[no_offload, no_prefetch]", ["[]", "[no_offload, no_prefetch]"]),
    ("""engine.version="0.33","a, \\" b",'c, d'""", ['"0.33"', '"a, \\" b"', "'c, d'"]),
    ("hardware=a100-sxm4-80gb,h100-sxm5-80gb", ["a100-sxm4-80gb", "h100-sxm5-80gb"]),
    ("model=org/name:tag", ["org/name:tag"]),
]


@pytest.mark.parametrize(("text", "values"), SPELLED, ids=[text for text, _ in SPELLED])
def test_axis_spelled_in_any_way_has_its_values(text: str, values: list[str]) -> None:
    (axis,) = parse_axes([text])
    assert list(axis.values) == values


@pytest.mark.parametrize("name", SHORT)
def test_short_name_stands_for_a_path_of_scenarios(name: str) -> None:
    assert path_of(name) in all_paths()


@pytest.mark.parametrize("path", ALONG)
def test_what_a_path_brings_along_exists(path: str) -> None:
    along = ALONG[path]
    others = (*along.replaces, *(other for other, _ in (*along.implies, *along.only_with)))
    assert all(exists(other) for other in (path, *others))


WRONG = [
    (["offload.residancy=1"], 'did you mean "offload.residency"?'),
    (["P=1"], 'did you mean "p"?'),
    (["name=a,b"], "no run depends on it"),
    (["p=0.1:10s:0.1"], "is not a fraction"),
    (["p=0.1:1.5:0.1"], '"1.5" is too large'),
    (["rate=1:10:1"], '"1" has no unit'),
    (["dram=1GiB:10ms:1GiB"], '"10ms" is not a size'),
    (["dram=1GiB:10GiB:1s"], '"1s" is not a size'),
    (["p=1:0.1:0.1"], "its step leads away from its end, so that it is empty; swap the ends, or write the step -0.1"),
    (["p=0.1:1:-0.1"], "write the step 0.1"),
    (["p=0.1:1:0"], "its step is zero"),
    (["p=1:0.1"], "its end isn't above its begin"),
    (["engine.max_num_seqs=16:256:x1"], "a factor that isn't 1"),
    (["engine.max_num_seqs=16:256:x0.5"], "its factor leads away"),
    (["engine.max_num_seqs=1:10:0.5"], "its step is not a whole number"),
    (["link.latency=0s:1s:x2"], "ends above zero"),
    (["link.latency=0s:1s:log"], "begins at zero"),
    (["engine.max_num_batched_tokens=1:10000000:1"], "has 10,000,000 values; the most is 1,000,000"),
    (["link.latency=0s:1s:1e-999s"], "has over 10^15 values"),
    (["run.duration=1s:9e999s:1s"], "is too large"),
    (["p="], "nothing is behind '='"),
    (["p=0.1,,0.2"], "a value is empty"),
    (["p"], '"p" is not PATH=VALUES'),
    (["=1"], '"=1" is not PATH=VALUES'),
    (["p=0.5,0.1:1:0.1"], "p = \"0.5\": is there twice"),
    (["p=0.5,50%"], "p = \"50%\": is the same value as 0.5"),
    (["p=0.1:0.5,0.7"], "has no step, and other values stand beside it"),
    (["p=0.1", "p=0.2"], "is there twice"),
    (["p=0.1", "offload.residency=0.2"], "varies the same as p"),
    (["offload.prefetch={policy: none"], "isn't closed"),
    (["p=0.1:0.5:0.1:0.2"], "not a range"),
    (["p=a:0.5:0.1,0.1:b:0.1"], '"b" is not a number'),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "said"), WRONG, ids=[" ".join(texts) for texts, _ in WRONG])
def test_bad_axis_is_refused_with_a_mend(texts: list[str], said: str) -> None:
    assert said in refused(*texts)


def test_several_bad_axes_are_told_at_once() -> None:
    said = refused("q=1", "p=0.1", "dram=")
    assert "q" in said and "dram" in said and "--grid: p" not in said


def test_axes_of_a_section_name_its_file_and_path() -> None:
    axes = section_axes({"p": [0.1, 1], "dram": "1GiB:2GiB:1GiB", "engine.enforce_eager": [True, False]}, "a.yaml", "x")
    assert [axis.values for axis in axes] == [("0.1", "1"), ("1GiB", "2GiB"), ("true", "false")]
    with pytest.raises(InputError, match=r'^a.yaml: sweep.grid.p = "0:1:0": its step is zero'):
        section_axes({"p": "0:1:0"}, "a.yaml", "sweep.grid")
    with pytest.raises(InputError, match=r"^a.yaml: plan.vary.p: has no value"):
        section_axes({"p": []}, "a.yaml", "plan.vary")


@given(
    low=st.integers(-50, 50), steps=st.integers(0, 60), step=st.integers(1, 40), rest=st.integers(0, 39),
    places=st.integers(0, 6), down=st.booleans(),
)  # fmt: skip
def test_decimal_range_has_exactly_its_values(
    low: int, steps: int, step: int, rest: int, places: int, down: bool
) -> None:
    scale = 10**places
    each = Fraction(-step if down else step, scale)
    first = Fraction(low + (100 if not down else 5000), scale)
    last = first + steps * each + (Fraction(min(rest, step - 1), scale) * (-1 if down else 1))
    axis = parse_axis(f"{float(first)!r}:{float(last)!r}:{float(each)!r}", "cost.gpu_hour")
    assert [Fraction(value) for value in axis.values] == [first + number * each for number in range(steps + 1)]


@given(st.integers(1, 1000), st.integers(2, 9), st.integers(0, 8))
def test_geometric_range_of_whole_factor_has_exactly_its_values(low: int, factor: int, steps: int) -> None:
    high = low * factor**steps
    axis = parse_axis(f"{low}B:{high}B:x{factor}", "dram")
    assert [int(value[:-1]) for value in axis.values] == [low * factor**number for number in range(steps + 1)]


NOISE = st.one_of(
    st.text(max_size=60),
    st.text("0123456789.:,xe-+GiBs/%_ \n\"'[]{}\\", max_size=60),
    st.from_regex(r"[0-9.e+-]{1,8}[a-zA-Z/ ]{0,4}:[0-9.e+-]{1,8}[a-zA-Z/ ]{0,4}(:x?[0-9.e+-]{1,6}[a-zA-Z/]{0,4})?"),
)


@given(st.sampled_from([*SHORT, "engine.max_num_seqs", "offload.prefetch", "slo.a", "cost.gpu_hour", ""]), NOISE)
@example("p", "1e999:1e-999:x1e999")
@example("p", "1__0,0.5")
@example("p", "0:1:1e-400")
@example("engine.max_num_seqs", "1:2:x1.0000000000000000001")
@example("dram", "1e20B:1e21B:x1.5")
def test_any_text_gives_an_axis_or_an_input_error(name: str, noise: str) -> None:
    try:
        axis = parse_axis(noise, name)
    except InputError as error:
        assert all(len(str(problem)) < 2000 for problem in error.problems)
        return
    assert axis.span is not None or axis.values
    if quantity_at(axis.path) is None:
        assert axis.span is None


@given(NOISE)
def test_any_option_gives_axes_or_an_input_error(noise: str) -> None:
    try:
        parse_axes([noise, f"p={noise}"])
    except InputError as error:
        assert error.problems


ENDLESS = {"plain": "x" * 300_000, "brackets": "[" * 300_000, "backslashes": '"' + "\\" * 300_000,
           "colons": "0.1:" * 100_000, "commas": "1," * 200_000, "quotes": '"",' * 100_000}  # fmt: skip


@pytest.mark.parametrize("kind", ENDLESS)
def test_endless_text_is_answered_soon(kind: str) -> None:
    began = time.monotonic()
    for option in (ENDLESS[kind], f"{ENDLESS[kind]}=1", f"p={ENDLESS[kind]}"):
        try:
            parse_axes([option])
        except InputError as error:
            assert len(str(error)) < 2000
    assert time.monotonic() - began < 10


# ---- over a scenario --------------------------------------------------------------------------


def test_check_over_active_scenario_brings_policies_along() -> None:
    axes = check(written("long-context-active"), parse_axes(["p=0.1:1.0:0.1", "beta=0,0.5,0.9", "lambda=0.5,0.8"]))
    point = {"p": "1", "beta": "0.9", "lambda": "0.8"}
    assert assignments(axes, point) == (
        "offload.prefetch.policy=fixed_overlap", "offload.eviction.policy=score", "offload.residency=1",
        "offload.prefetch.beta=0.9", "offload.eviction.lambda=0.8",
    )  # fmt: skip


TOY = "offload.prefetch={policy: next_step, accuracy: 0.9, lead: 2}"


def test_beta_over_another_prefetch_policy_takes_its_keys_out() -> None:
    base = written("long-context-active")
    text = base.text.replace(
        "prefetch: {policy: fixed_overlap, beta: 0.5}", TOY.replace("offload.", "").replace("=", ": ")
    )
    assert text != base.text
    here = Written(text, base.file)
    axes = check(here, parse_axes(["beta=0,0.5"]))
    resolved = resolve_text(text, base.file, assignments(axes, {"beta": "0.5"}))
    prefetch = resolved.scenario.offload.prefetch
    assert (prefetch.policy, prefetch.beta, prefetch.accuracy, prefetch.lead) == ("fixed_overlap", 0.5, None, None)


def test_beta_beside_set_of_another_policy_is_refused_and_nothing_dropped() -> None:
    base = written("long-context-active")
    text = base.text.replace("{policy: fixed_overlap, beta: 0.5}", "{policy: none}")
    with pytest.raises(InputError, match=r'--grid: beta = "0": does nothing with policy oracle'):
        check(Written(text, base.file, ("offload.prefetch.policy=oracle",)), parse_axes(["lambda=0.5", "beta=0,0.5"]))


def test_axis_that_set_gives_too_is_refused() -> None:
    with pytest.raises(InputError, match=r"--grid: p: is given by --set offload.residency too"):
        check(written("chatbot", "offload.residency=0.5"), parse_axes(["p=0.1,0.2"]))


def test_dram_axis_over_a_ratio_replaces_it() -> None:
    base = written("chatbot")
    text = base.text.replace("dram: {capacity: 200GiB, bandwidth: 160 GB/s}", "dram: {ratio: 2}")
    assert text != base.text
    axes = check(Written(text, base.file), parse_axes(["dram=100GiB,200GiB"]))
    resolved = resolve_text(text, base.file, assignments(axes, {"dram": "100GiB"}))
    assert resolved.scenario.tiers.dram.capacity == 100 << 30 and resolved.scenario.tiers.dram.ratio is None


def test_p_axis_over_a_budget_replaces_it() -> None:
    base = written("long-context-active")
    text = base.text.replace("residency: 0.3", "vram_budget: 0.4")
    axes = check(Written(text, base.file), parse_axes(["p=0.5,1"]))
    for p in ("0.5", "1"):
        offload = resolve_text(text, base.file, assignments(axes, {"p": p})).scenario.offload
        assert offload.vram_budget is None and offload.residency == float(p)


POLICIES = [
    ("offload.prefetch.policy=oracle,next_step,fixed_overlap,none", "beta", [None, None, 0.5, None]),
    ("offload.eviction.policy=lru,score,arc", "lambda_", [None, 0.7, None]),
]


@pytest.mark.parametrize(("text", "key", "kept"), POLICIES, ids=["prefetch", "eviction"])
def test_policy_axis_keeps_parameters_where_they_mean_something(text: str, key: str, kept: list[float | None]) -> None:
    here = written("long-context-active")
    axes = check(here, parse_axes([text]))
    section = axes[0].path.split(".")[1]
    found = [resolve_text(here.text, here.file, assignments(axes, point)).scenario.offload for point in grid(axes)]
    assert [getattr(getattr(offload, section), key) for offload in found] == kept


def test_axis_of_which_every_value_fails_is_refused() -> None:
    with pytest.raises(InputError, match=r"--grid: preset = \"flexgen\": .* preset flexgen"):
        check(written("chatbot"), parse_axes(["preset=flexgen,zero-inference", "p=0.5,1"]))
    check(written("chatbot"), parse_axes(["preset=flexgen,vllm", "p=0.5,1"]))


def test_p_and_budget_as_axes_are_left_to_complain() -> None:
    with pytest.raises(InputError, match="residency says how much stays in VRAM too"):
        check(written("long-context-active"), parse_axes(["p=0.5,1", "offload.vram_budget=0.2,0.4"]))


def test_section_axis_is_set_before_its_part() -> None:
    texts = ["offload.prefetch.window=4,8", "offload.prefetch={policy: queue},{policy: none}"]
    axes = check(written("chatbot"), parse_axes(texts))
    point = {"offload.prefetch.window": "8", "offload.prefetch": "{policy: queue}"}
    resolved = resolve_text(written("chatbot").text, "chatbot.yaml", assignments(axes, point))
    assert resolved.scenario.offload.prefetch.window == 8


REFUSED = [
    (["dram=0GiB,25GB/s"], r'--grid: dram = "25GB/s": not a size; write "25GB"'),
    (["p=0.5,1.5"], r'--grid: p = "1.5": too large'),
    (["users=1,2"], r'--grid: users = "1": unknown key'),
    (["instance=h100-sxm5-80gb,h900"], r'--grid: instance = "h900":'),
    (["beta=0,0.5"], r'--grid: beta = "0": offload.prefetch.policy: does nothing where'),
    (["offload.prefetch={policy: oracel}"], r"offload.prefetch.policy: not one of the choices"),
    (["p=0.1:1.0:0.1", "engine.block_tokens=16,0"], r'--grid: engine.block_tokens = "0": too small'),
]


@pytest.mark.parametrize(("texts", "said"), REFUSED, ids=[" ".join(texts) for texts, _ in REFUSED])
def test_check_of_a_value_that_no_point_can_take_is_refused(texts: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        check(written("chatbot"), parse_axes(texts))
    assert all(problem.file == "--grid" for problem in caught.value.problems)


@pytest.mark.parametrize(
    "texts", [["p=0.3,1", "beta=0.5"], ["dram=0GiB,1GiB", "p=0.3,1"], ["p=0.3,1", "dram=0GiB,1GiB"]]
)
def test_check_of_a_value_that_some_point_can_take_passes(texts: list[str]) -> None:
    check(written("chatbot"), parse_axes(texts))


def test_check_over_a_scenario_that_an_axis_completes_passes() -> None:
    base = written("chatbot")
    text = base.text.replace("rate: 20 req/min", "cv: 2").replace("process: poisson", "process: gamma")
    here = Written(text, base.file)
    check(here, parse_axes(["rate=1 req/s,2 req/s"]))
    with pytest.raises(InputError, match=r"workload.arrival.rate: is missing"):
        check(here, parse_axes(["p=0.5,1"]))


def test_check_of_many_values_is_quick() -> None:
    began = time.monotonic()
    check(
        written("chatbot"),
        parse_axes(["p=0.0001:1:0.0001", "dram=1GiB:400GiB:1GiB", "tiers.dram.bandwidth=1 GB/s:2 GB/s"]),
    )
    assert time.monotonic() - began < 20


def test_some_values_of_a_long_axis_include_both_ends() -> None:
    (axis,) = parse_axes(["engine.max_num_seqs=1:1000:1"])
    chosen = some(axis, 5)
    assert chosen[0] == "1" and chosen[-1] == "1000" and len(set(chosen)) == 5


VALUES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["0", "1", "null", "true", "inf", "nan", "1e308", "-1", "0_", "1__0", "[]", "[1, 2]", "{}", "'x'",
                     "{policy: none}", "{a: {b: c}}", "{a: b, a: c}", "*a", "&a 1", "!!x", "~", "a\0b", ".json",
                     "1GiB", "2 GB/s", "1s", "16:256:x2", "0.1:1:0.3", "0:1"]),
)  # fmt: skip


@settings(max_examples=150)
@given(
    st.sampled_from(["chatbot", "long-context-active", "flexgen-opt-30b-t4"]),
    st.lists(st.tuples(st.sampled_from([*SHORT, *all_paths()]), VALUES), min_size=1, max_size=3),
    st.lists(
        st.sampled_from(["offload.residency=0.5", "tiers.dram.ratio=2", "x", "a=b", "offload={}", "="]), max_size=1
    ),
)
@example("chatbot", [("p", "0_")], [])
def test_any_values_over_a_scenario_are_checked_or_refused(
    name: str, options: list[tuple[str, str]], assigned: list[str]
) -> None:
    try:
        here = written(name, *assigned)
        axes = check(here, parse_axes([f"{path}={value}" for path, value in options]))
    except InputError as error:
        assert error.problems
        return
    assert [axis.path for axis in axes] == [path_of(path) for path, _ in options]


# ---- grids and samples ------------------------------------------------------------------------


def test_grid_goes_through_the_last_axis_fastest() -> None:
    axes = parse_axes(["p=0.1,0.2", "beta=0,0.5,0.9"])
    points = list(grid(axes))
    assert size(axes) == len(points) == 6
    assert points[:4] == [{"p": "0.1", "beta": b} for b in ("0", "0.5", "0.9")] + [{"p": "0.2", "beta": "0"}]


def test_grid_of_decimal_ranges_has_each_combination_once() -> None:
    points = list(grid(parse_axes(["p=0.1:1.0:0.1", "beta=0,0.5,0.9", "lambda=0.5,0.8"])))
    assert len({tuple(point.values()) for point in points}) == 60


def test_grid_of_ten_million_points_is_refused_at_once() -> None:
    axes = parse_axes(["p=0.001:1:0.001", "beta=0.01:1:0.01", "lambda=0.01:1:0.01"])
    began = time.monotonic()
    with pytest.raises(InputError, match=r"p, beta, lambda: has 10,000,000 points .*--sample N"):
        grid(axes)
    assert time.monotonic() - began < 1


def test_grid_of_an_axis_without_step_is_refused() -> None:
    with pytest.raises(InputError, match=r"--grid: p: has no step.*--sample N"):
        grid(parse_axes(["p=0.1:1.0"]))


def test_sample_keeps_to_its_axes_and_repeats_itself() -> None:
    axes = parse_axes(["p=0.1:0.9", "engine.max_num_seqs=16:512:log", "dram=1GiB:4GiB:x2", "link.latency=1us:1ms"])
    drawn = sample(axes, 64, seed=3)
    assert drawn == sample(axes, 64, seed=3) and drawn != sample(axes, 64, seed=4)
    assert len(drawn.points) == 64 and not drawn.notes
    for point in drawn.points:
        assert 0.1 <= float(point["p"]) <= 0.9 and len(point["p"]) <= 6
        assert 16 <= int(point["engine.max_num_seqs"]) <= 512
        assert 1 <= float(point["link.latency"].removesuffix("us")) <= 1000
    by_dram = [sum(point["dram"] == f"{one}GiB" for point in drawn.points) for one in (1, 2, 4)]
    assert sum(by_dram) == 64 and max(by_dram) - min(by_dram) <= 2
    below = sum(int(point["engine.max_num_seqs"]) < 90 for point in drawn.points)
    assert 28 <= below <= 36  # half of them are below the geometric mean


def test_sample_of_no_power_of_two_says_so_and_has_that_many() -> None:
    drawn = sample(parse_axes(["p=0.1:1.0"]), 100)
    assert len(drawn.points) == 100 and "64 or 128 points, rather than 100" in drawn.notes[0]


def test_sample_of_equal_points_has_each_once() -> None:
    drawn = sample(parse_axes(["engine.max_num_seqs=1:4", "p=0.5,0.7"]), 64)
    assert len(drawn.points) == len({tuple(point.items()) for point in drawn.points}) == 8
    assert "56 of 64 points came out equal" in drawn.notes[0]


def test_sample_beyond_the_grid_is_the_grid() -> None:
    axes = parse_axes(["p=0.1,0.2", "beta=0,0.5"])
    drawn = sample(axes, 1000)
    assert list(drawn.points) == list(grid(axes)) and "all of them" in drawn.notes[0]


@pytest.mark.parametrize("n", [0, -1, MOST + 1])
def test_sample_of_too_many_or_none_is_refused(n: int) -> None:
    with pytest.raises(InputError, match="--sample"):
        sample(parse_axes(["p=0.1:1.0"]), n)
