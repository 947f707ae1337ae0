"""What the sliders of a report are given: held to the closed forms of the scenario, and to what was simulated."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.formulas.kv_size import kv_bytes, kv_bytes_per_token
from simkv.formulas.overlap import feasible_beta, speedup
from simkv.report.document import Table, Widget
from simkv.report.sliders import sliders
from simkv.report.sliders.forms import segments
from simkv.report.sliders.ground import Scene, read_scene
from simkv.report.sliders.origins import origins
from simkv.scenario.build import cost, system_config
from simkv.scenario.explain import to_yaml
from simkv.scenario.resolve import Resolved, resolve, resolve_text
from tests.sliders_factory import DENSE, REUSE, SPARSE, WINDOWS, as_if_ran, ran

ROOT = Path(__file__).parents[1]
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"))
TOY = ROOT / "scenarios" / "article-toy.yaml"
MODELS = ["llama-2-7b", "llama-3.1-8b", "deepseek-v2-lite", "gemma-3-4b", "gpt-oss-20b", "mistral-7b-v0.1"]


def made(text: str, with_curves: bool = True) -> Widget:
    widget = sliders(*ran(text, with_curves))
    assert widget is not None
    return widget


def scene_of(text: str, with_curves: bool = True) -> Scene:
    scene = read_scene(*ran(text, with_curves))
    assert scene is not None
    return scene


def chart(widget: Widget, key: str) -> dict[str, Any]:
    return next(one for one in widget.data["charts"] if one["key"] == key)


def slider(widget: Widget, key: str) -> dict[str, Any]:
    return next(one for one in widget.data["sliders"] if one["key"] == key)


def compute_s(parts: list[list[float]], tokens: float) -> float:
    """T_c as the page reads it."""
    start, first_s, growth_s = [part for part in parts if part[0] <= tokens][-1]
    return first_s + growth_s * (tokens - start)


@cache
def shipped(path: Path) -> tuple[Resolved, Widget | None]:
    resolved = resolve(str(path))
    return resolved, sliders(as_if_ran(), to_yaml(resolved), None, str(path))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_sliders_of_every_shipped_scenario_have_its_figures(path: Path) -> None:
    resolved, widget = shipped(path)
    if widget is None:
        assert resolved.scenario.engine.placement is not None
        return
    config, forms, rest = system_config(resolved), widget.data["forms"], widget.data["rest"]
    assert rest["bandwidth"] == config.link.h2d_bytes_per_s
    assert rest["context"] == min(4096, config.engine.max_model_len)
    assert forms["free_bytes"] == config.engine.num_gpu_blocks * config.engine.block_bytes
    assert forms["seats"] == config.engine.max_num_seqs
    assert forms["piece_bytes"] == pytest.approx(config.engine.block_bytes / config.cost.layers)
    for sequences, parts in forms["steps"].items():
        tokens = rest["context"] if forms["most_tokens"] is None else min(rest["context"], forms["most_tokens"])
        expected = config.cost.decode(int(sequences), int(sequences) * tokens)[0]
        assert compute_s(parts, tokens) == pytest.approx(expected, rel=1e-12)
    assert json.loads(json.dumps(widget.data, allow_nan=False)) == widget.data


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_sliders_of_every_shipped_scenario_rest_inside_their_range(path: Path) -> None:
    _, widget = shipped(path)
    for one in widget.data["sliders"] if widget is not None else []:
        assert one["low"] <= one["value"] <= one["high"]
        assert one["low"] < one["high"]
        assert one["step"] > 0
        assert one["origin"]


def of_model(name: str) -> tuple[Resolved, Scene]:
    resolved = resolve_text(REUSE.replace("llama-3.1-8b", name))
    scene = read_scene(as_if_ran(), to_yaml(resolved), None)
    assert scene is not None
    return resolved, scene


@pytest.mark.parametrize("name", MODELS)
def test_sequence_bytes_of_every_kind_of_attention_grow_by_alpha(name: str) -> None:
    """Beyond the longest window each block more takes as many bytes as its tokens have in the layers that grow."""
    resolved, scene = of_model(name)
    forms, model = scene.forms, resolved.model
    assert model is not None
    block = forms.engine.block_tokens
    if forms.engine.side is None and not model.windowed_attention:
        for tokens in (block, 10 * block, 1000 * block):
            assert forms.sequence_bytes(tokens) == kv_bytes(model, tokens)
        return
    far = 1000 * block
    grown = forms.sequence_bytes(far + block) - forms.sequence_bytes(far)
    assert grown == forms.engine.block_bytes
    if model.full_attention and not model.state:
        assert grown == block * kv_bytes_per_token(model)
        assert forms.sequence_bytes(far) == pytest.approx(kv_bytes(model, far), rel=0.03)


def test_given_of_a_model_with_windows_says_from_where_on_it_is_linear() -> None:
    _, scene = of_model("gemma-3-4b")
    widget = sliders(as_if_ran(), to_yaml(scene.setting.resolved), None)
    assert widget is not None
    alpha = dict(widget.data["given"])["KV of a token, α"]
    assert "from 1," in alpha and "tokens on" in alpha
    assert any("can't be split" in note for note in widget.data["notes"])


@cache
def costs() -> list[Any]:
    small = str(ROOT / "scenarios" / "calibrated-small.yaml")
    return [cost(resolve(small)), *(cost(of_model(name)[0]) for name in ("gemma-3-4b", "llama-3.1-8b"))]


@given(st.integers(0, 2), st.integers(1, 60), st.integers(1, 9000))
def test_segments_of_any_cost_equal_its_decode(which: int, sequences: int, tokens: int) -> None:
    """Measured machines, windows and plain rooflines: T_c in the page is the simulator's."""
    one = costs()[which]
    found = compute_s(segments(one, sequences, 9000), tokens)
    assert found == pytest.approx(one.decode(sequences, sequences * tokens)[0], rel=1e-9)


def test_forms_of_a_run_equal_its_summary() -> None:
    summary, scene = ran(SPARSE, False)[0], scene_of(SPARSE, False)
    forms, closed, rate = scene.forms, summary["closed_form"], scene.bytes_per_s
    assert scene.step_sequences == round(summary["concurrency"]["mean"])
    assert forms.piece.vram_s == closed["t_vram_s"]
    assert forms.memory_s(rate) == pytest.approx(closed["t_mem_s"], rel=1e-9)
    assert forms.access_s(summary["p_hit"], rate) == pytest.approx(closed["t_avg_s"], rel=1e-9)
    assert forms.compute_s(4, scene.context) == pytest.approx(closed["t_compute_s"], rel=0.01)
    p_hit = forms.p_hit(0.4)
    assert p_hit == pytest.approx(summary["p_resident"])
    assert forms.transfer_s(4, p_hit, scene.context, rate) == pytest.approx(closed["t_transfer_s"], rel=0.02)
    assert forms.c_max(0.4, scene.context) == scene.forms.free_bytes // (0.4 * forms.sequence_bytes(scene.context))


def test_line_at_rest_goes_through_the_simulated_points() -> None:
    scene, widget = scene_of(DENSE), made(DENSE)
    forms, rate = scene.forms, scene.bytes_per_s
    for point in chart(widget, "t_step")["points"]:
        compute = forms.compute_s(scene.step_sequences, scene.context)
        transfer = forms.transfer_s(scene.step_sequences, point["x"], scene.context, rate)
        if point["series"] == "on demand":
            assert point["y"] == pytest.approx(compute + transfer, rel=0.02)
        else:
            assert max(compute, transfer) * 0.98 <= point["y"] <= (compute + transfer) * 1.001
    for point in chart(widget, "t_avg")["points"]:
        assert point["y"] == pytest.approx(forms.access_s(point["x"], rate), rel=0.05)


def test_transfer_of_sparse_access_is_that_of_the_simulated_speedup() -> None:
    scene, curves = scene_of(SPARSE), ran(SPARSE)[2]
    assert curves is not None
    marks, forms = curves["curves"]["speedup"]["marks"], scene.forms
    found = forms.transfer_s(scene.speedup_sequences, forms.p_hit(scene.p), scene.context, scene.bytes_per_s)
    assert found == pytest.approx(marks["t_transfer_s"], rel=1e-9)
    assert forms.compute_s(scene.speedup_sequences, scene.context) == pytest.approx(marks["t_compute_s"], rel=1e-3)


def test_points_are_the_rows_of_the_curves() -> None:
    summary, _, curves = ran(SPARSE)
    assert curves is not None
    widget, rows = made(SPARSE), curves["curves"]
    speeds = [row for row in rows["speedup"]["rows"] if row["series"] != "closed form"]
    assert [(p["x"], p["y"]) for p in chart(widget, "speedup")["points"]] == [(r["beta"], r["speedup"]) for r in speeds]
    rates = [row for row in rows["lambda"]["rows"] if row["series"] == "score"]
    found = chart(widget, "lambda")["points"]
    assert [(p["x"], p["y"]) for p in found] == [(row["lambda"], row["hit_rate"]) for row in rates]
    fits = [row for row in rows["concurrency"]["rows"] if row["series"] == "simulated"]
    assert [(p["x"], p["y"]) for p in chart(widget, "concurrency")["points"]] == [
        (r["residency"], r["running_max"]) for r in fits
    ]
    assert chart(widget, "speedup")["run"]["y"] == summary["speedup"]["measured"]
    run = chart(widget, "t_step")["run"]
    assert (run["x"], run["y"]) == (summary["p_resident"], summary["t_step_s"])
    assert chart(widget, "lambda")["run"]["x"] == 0.7


def test_points_of_several_seeds_have_the_intervals_of_the_curves() -> None:
    summary, resolved, curves = ran(SPARSE)
    wider = copy.deepcopy(curves)
    assert wider is not None
    for row in wider["curves"]["t_avg"]["rows"]:
        if row["series"] == "on demand":
            row |= {"p_hit_low": row["p_hit"] - 0.01, "p_hit_high": row["p_hit"] + 0.02}
            row |= {"step_ratio_low": 0.9 * row["step_ratio"], "step_ratio_high": 1.2 * row["step_ratio"]}
    widget = sliders(summary, resolved, wider)
    assert widget is not None
    points = [point for point in chart(widget, "t_step")["points"] if point["series"] == "on demand"]
    assert points
    for point in points:
        assert (point["x_low"], point["x_high"]) == (point["x"] - 0.01, point["x"] + 0.02)
        assert (point["y_low"], point["y_high"]) == pytest.approx((0.9 * point["y"], 1.2 * point["y"]))


def test_run_of_more_sequences_than_the_line_says_so() -> None:
    summary, resolved, curves = ran(SPARSE)
    busy = summary | {"concurrency": summary["concurrency"] | {"mean": 7.2}}
    widget = sliders(busy, resolved, curves)
    assert widget is not None
    assert chart(widget, "t_step")["run"]["series"] == "this run, 7 sequences"
    assert chart(widget, "t_avg")["run"]["series"] == "this run"


def test_table_instead_has_the_closed_forms_at_rest() -> None:
    scene, widget = scene_of(DENSE), made(DENSE)
    table = widget.instead[0]
    assert isinstance(table, Table)
    values = {row[0].text: row[2].exact for row in table.rows}
    forms, rest = scene.forms, widget.data["rest"]
    compute = forms.compute_s(scene.speedup_sequences, rest["context"])
    transfer = forms.transfer_s(scene.speedup_sequences, 0.5, rest["context"], rest["bandwidth"])
    beta = min(rest["beta"], feasible_beta(compute, transfer))
    assert values["S = (T_c + T_t) / (T_c + (1 - β) T_t)"] == speedup(compute, transfer, beta)
    assert values["β at most min(1, T_c / T_t)"] == feasible_beta(compute, transfer)
    assert values["T_avg = p_hit T_vram + (1 - p_hit) T_mem"] == forms.access_s(0.5, rest["bandwidth"])
    assert values["C_max = floor((M_VRAM - M_model) / (p S_seq))"] == forms.c_max(0.5, rest["context"])


def test_sliders_without_active_offload_are_a_what_if() -> None:
    widget = made(REUSE, False)
    assert slider(widget, "p")["value"] == 0.5
    assert "what-if" in slider(widget, "p")["origin"]
    assert widget.data["notes"][0].startswith("A what-if")
    assert chart(widget, "concurrency")["run"]["x"] == 1.0
    assert chart(widget, "t_step")["run"] is None


def test_sliders_without_curves_say_that_lambda_has_no_points() -> None:
    widget = made(REUSE, False)
    assert "lambda" not in [one["key"] for one in widget.data["sliders"]]
    assert [title for title, _ in widget.data["left_out"]] == ["Hit rate over λ"]
    assert "simkv curves" in widget.data["left_out"][0][1]


def test_sliders_of_dense_access_leave_lambda_out_with_the_reason_of_curves() -> None:
    reasons = dict(made(DENSE).data["left_out"])
    assert list(reasons) == ["Hit rate over λ"]
    assert "pinned" in reasons["Hit rate over λ"]


def test_sliders_of_windows_have_lines_and_no_points() -> None:
    widget = made(WINDOWS)
    assert chart(widget, "t_step")["points"] == []
    assert chart(widget, "lambda")["points"]
    assert widget.data["forms"]["side"]["windows"]


def test_sliders_of_the_toy_scale_what_was_simulated() -> None:
    case = ran(TOY.read_text("utf-8"), True, str(TOY))
    widget, scene = sliders(*case), read_scene(*case)
    assert widget is not None and scene is not None and case[2] is not None
    assert [one["key"] for one in widget.data["charts"]] == ["t_step", "speedup"]
    assert [title for title, _ in widget.data["left_out"]] == ["T_avg over p_hit", "C_max over p", "Hit rate over λ"]
    assert "context" not in [one["key"] for one in widget.data["sliders"]]
    marks, forms = case[2]["curves"]["speedup"]["marks"], scene.forms
    found = forms.transfer_s(1, case[0]["p_resident"], scene.context, scene.bytes_per_s)
    assert found == pytest.approx(marks["t_transfer_s"], rel=1e-9)


def test_sliders_of_a_shared_budget_have_no_c_max() -> None:
    text = SPARSE.replace("residency: 0.4", "vram_budget: 0.01").replace("sparse", "budget")
    widget, scene = made(text, False), scene_of(text, False)
    assert "C_max over p" in dict(widget.data["left_out"])
    budget = system_config(scene.setting.resolved).active
    assert budget is not None and budget.budget_blocks is not None
    assert scene.p == min(1.0, budget.budget_blocks / (scene.run_sequences * scene.forms.blocks(scene.context)))


def test_sliders_of_nothing_served_are_none() -> None:
    _, text, _ = ran(REUSE, False)
    assert sliders(as_if_ran() | {"requests": {"finished": 0}}, text, None) is None


def test_sliders_of_a_scenario_whose_machine_is_gone_say_so() -> None:
    _, text, _ = ran(REUSE, False)
    with pytest.raises(InputError, match="nowhere"):
        sliders(as_if_ran(), text.replace("hardware: a100-sxm4-80gb", "hardware: nowhere/x.json"), None)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_origins_are_the_remarks_behind_values(path: Path) -> None:
    resolved = resolve(str(path))
    found = origins(to_yaml(resolved))
    assert found["replicas.count"] == resolved.origin(("replicas", "count"))
    assert found["model" if "model" in found else "model.kv_bytes_per_token"] == "scenario"
    if resolved.scenario.link.h2d and "link.h2d" in found:
        assert found["link.h2d"] == resolved.origin(("link", "h2d"))
