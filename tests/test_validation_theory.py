"""Closed forms, queues and replays asked as cases: they hold, and what is wrong with one of them is seen."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from simkv.errors import InputError
from simkv.formulas import cache, queueing
from simkv.validation.answer import answer_of
from simkv.validation.asks import answer, check, hits
from simkv.validation.asks.calc_forms import Calc
from simkv.validation.expected import expected_si
from simkv.validation.judge import tolerance_of, within
from simkv.validation.question import Question
from simkv.validation.read import Read, own_cases
from simkv.validation.study import study
from tests.article_program import totals
from tests.planner_factory import here
from tests.validation_factory import case_file, studied

QUEUE = {"system": "md1", "load": 0.3, "requests": 8000, "seed": 3}
TANDEM = {"system": "tandem", "ssd": 0.4, "link": 0.2, "requests": 6000, "seed": 9}
LRU = {"system": "lru", "items": 500, "exponent": 1.0, "capacity": 40, "references": 60_000, "seed": 1}
KV_SIZE = {"form": "kv-size", "model": "llama-2-7b", "tokens": 10}
ROWS = [[1, 2, 3], [1, 2, 4], [1, 5], [1, 2, 3]]
"""Blocks of four prompts of a small trace, the last of each partial."""


def asked(ask: str, section: dict[str, Any], *metrics: str, **more: Any) -> dict[str, float]:
    """Return the answer to one question."""
    return answer(Question("one", ask, section, tuple(more.pop("settings", {}).items()), metrics, **more)).metrics


def judged(tmp_path: Path, ask: str, section: dict[str, Any], *observations: dict[str, Any], **more: Any) -> list[Any]:
    """Return the rows of a case."""
    group = {"queue": "queueing", "hits": "hit_counts", "calc": "formulas"}[ask]
    return studied(
        case_file(tmp_path, {"id": "one", "group": group, ask: section, "observations": observations, **more})
    )


def own(group: str) -> list[Read]:
    """Return the cases of a group that come with simkv."""
    return [read for read in own_cases() if read.case.group == group]


# ---- queues -------------------------------------------------------------------------------------


def test_queue_beside_its_own_theory_holds(tmp_path: Path) -> None:
    [row] = judged(tmp_path, "queue", QUEUE, {"metric": "wait_s", "expected": "oracle"})
    assert row.expected == queueing.md1_wait_s(1.0, 0.3)
    assert 0.01 < tolerance_of(row) < 0.15
    assert within(row)
    [shown] = answer_of([row])["groups"][0]["cases"]
    assert shown["expected"] == row.expected and shown["tolerance"] == row.tolerance and shown["pass"]


def test_queue_judged_as_another_queue_falls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queueing, "md1_wait_s", queueing.mm1_wait_s)
    [row] = judged(tmp_path, "queue", QUEUE, {"metric": "wait_s", "expected": "oracle"})
    assert row.error == pytest.approx(-0.5, abs=0.1) and within(row) is False


def test_queue_that_another_found_otherwise_falls(tmp_path: Path) -> None:
    wrong = {"metric": "wait_s", "expected": queueing.mm1_wait_s(1.0, 0.3), "tolerance": 0.15}
    [row] = judged(tmp_path, "queue", QUEUE, wrong)
    assert within(row) is False


def test_queue_of_too_few_requests_says_that_it_tells_nothing() -> None:
    with pytest.raises(InputError, match=r"queue\.requests.*would tell; give more"):
        asked("queue", QUEUE | {"system": "mm1", "load": 0.9, "requests": 2000}, "wait_s")


@pytest.mark.parametrize(
    ("section", "metric"),
    [
        ({"system": "mmc", "load": 0.001, "servers": 1000}, "wait_s"),  # for which nobody waits, by theory too
        ({"system": "priority", "load": 0.5, "shares": [1.0, 1e-300]}, "wait_s_1"),
    ],
)
def test_queue_in_which_nobody_waits_is_unknown(section: dict[str, Any], metric: str) -> None:
    with pytest.raises(InputError, match=rf"queue\.requests: leave {metric} unknown"):
        asked("queue", section | {"requests": 1000}, metric)


def test_tandem_waits_as_the_slower_server_alone_in_either_order() -> None:
    ssd_slower = asked("queue", TANDEM, "wait_s", "ssd_wait_s")
    link_slower = asked("queue", TANDEM | {"ssd": 0.2, "link": 0.4}, "wait_s")
    assert ssd_slower["wait_s"] == pytest.approx(link_slower["wait_s"], rel=1e-3)
    assert ssd_slower["wait_s"] == pytest.approx(ssd_slower["ssd_wait_s"], rel=1e-3)  # the link's queue is empty
    assert ssd_slower["wait_s.expected"] == link_slower["wait_s.expected"] == queueing.md1_wait_s(1.0, 0.4)
    assert abs(link_slower["wait_s"] / link_slower["wait_s.expected"] - 1) < link_slower["wait_s.tolerance"]


def test_mm1_tells_what_arrivals_find() -> None:
    found = asked("queue", QUEUE | {"system": "mm1", "load": 0.3, "requests": 10_000}, "present_0", "present_1")
    assert found["present_0"] == pytest.approx(0.7, rel=found["present_0.tolerance"])
    assert found["present_1"] == pytest.approx(0.21, rel=found["present_1.tolerance"])


def test_two_lengths_follow_theory() -> None:
    lengths = {"system": "mg1", "load": 0.4, "requests": 12_000, "steps": [2, 6], "weights": [0.5, 0.5]}
    found = asked("queue", lengths, "wait_s")
    assert abs(found["wait_s"] / found["wait_s.expected"] - 1) < found["wait_s.tolerance"]


@pytest.mark.slow
def test_own_queues_hold() -> None:
    rows = study(own("queueing"), None, here())
    assert not [row.id for row in rows if not within(row)]
    assert {row.case.queue["system"] for row in rows if row.case.queue} == {
        "mm1", "md1", "mg1", "mmc", "priority", "tandem", "lru", "fifo",
    }  # fmt: skip


def test_lru_follows_che_by_replay_and_by_the_pool_of_runs_alike() -> None:
    replayed, pooled = (asked("queue", LRU | {"through": way}, "hit_rate") for way in ("replay", "pool"))
    assert replayed == pooled
    assert abs(replayed["hit_rate"] / replayed["hit_rate.expected"] - 1) < replayed["hit_rate.tolerance"]


def test_lru_judged_as_fifo_falls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    observed = {"metric": "hit_rate", "expected": "oracle"}
    assert within(judged(tmp_path, "queue", LRU, observed)[0])
    monkeypatch.setattr(cache, "lru_hit_rate", cache.fifo_hit_rate)
    assert within(judged(tmp_path, "queue", LRU, observed)[0]) is False


@pytest.mark.parametrize(
    ("ask", "group"), [("calc", "formulas"), ("hits", "hit_counts")]
)  # fmt: skip
def test_oracle_where_no_theory_is_asked_is_an_error(tmp_path: Path, ask: str, group: str) -> None:
    section = {"calc": KV_SIZE, "hits": {"trace": "x", "policy": "lru", "capacity_blocks": 1}}[ask]
    with pytest.raises(InputError, match="no theory"):
        judged(tmp_path, ask, section, {"metric": "bytes", "expected": "oracle"})


@pytest.mark.parametrize(
    ("section", "path"),
    [
        (QUEUE | {"system": "mm7"}, "queue.system"),
        (QUEUE | {"load": 1.0}, "queue.load"),
        (QUEUE | {"load": 1e-308}, "queue.load"),
        (QUEUE | {"load": float("nan")}, "queue.load"),
        (QUEUE | {"requests": 10}, "queue.requests"),
        (QUEUE | {"requests": 10**9}, "queue.requests"),
        (QUEUE | {"servers": 2}, "queue.servers"),
        (QUEUE | {"system": "priority", "shares": [0.5, 0.4]}, "queue.shares"),
        (QUEUE | {"system": "mg1", "steps": [1, 2], "weights": [1]}, "queue.weights"),
        (LRU | {"capacity": 500}, "queue.capacity"),
    ],
)
def test_queue_that_is_none_names_the_key(section: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as raised:
        check(Question("one", "queue", section, (), ("wait_s",)))
    assert [problem.path for problem in raised.value.problems] == [path]


@pytest.mark.parametrize("section", [QUEUE, LRU])
def test_check_of_a_queue_says_how_long_it_takes(section: dict[str, Any]) -> None:
    key = "references" if "references" in section else "requests"
    times = [check(Question("one", "queue", section | {key: count}, (), ())) for count in (2000, 4000)]
    assert 0 < times[0] < times[1] == pytest.approx(2 * times[0])


# ---- replays ------------------------------------------------------------------------------------


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Return a small trace in Mooncake's format."""
    path = tmp_path / "small.jsonl"
    rows = [
        {"timestamp": 1000 * at, "input_length": 512 * len(ids) - 100, "output_length": 5, "hash_ids": ids}
        for at, ids in enumerate(ROWS)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_hits_of_a_small_trace_are_counted_by_hand(trace: Path) -> None:
    section = {"trace": str(trace), "policy": "lru", "capacity_blocks": 3}
    # 1 2 3 | 1 2 4 | 1 5 | 1 2 3: both of 1 2, then 1, then 1
    assert asked("hits", section, "hits", "references", "infinite_hits", "requests") == {
        "hits": 4, "references": 11, "infinite_hits": 6, "requests": 4,
    }  # fmt: skip
    assert asked("hits", section | {"capacity_blocks": None, "capacity_tokens": 2047}, "hits") == {"hits": 4}
    assert asked("hits", section | {"policy": "belady"}, "hits")["hits"] >= 4
    assert asked("hits", section | {"capacity_blocks": 2}, "hit_rate") == {"hit_rate": 1 / 11}


def test_hits_of_whole_blocks_leave_partial_ones_out(trace: Path) -> None:
    found = asked("hits", {"trace": str(trace), "blocks": "full"}, "references", "infinite_hits", "distinct_blocks")
    assert found == {"references": 7, "infinite_hits": 5, "distinct_blocks": 2}


def test_hits_wrong_count_is_flagged(tmp_path: Path, trace: Path) -> None:
    section = {"trace": trace.name, "policy": "lru", "capacity_blocks": 3}
    right, wrong = judged(
        tmp_path, "hits", section,
        {"metric": "hits", "expected": 4}, {"metric": "hits", "expected": 5, "label": "one too many"},
    )  # fmt: skip
    assert within(right) and right.error == 0
    assert within(wrong) is False
    answered = answer_of([right, wrong])
    assert answered["summary"]["pass"] is False and answered["groups"][0]["summary"]["outside"] == 1


def test_hits_of_one_trace_are_read_once(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    load = hits.load
    monkeypatch.setattr(hits, "load", lambda *args: read.append(1) or load(*args))
    for capacity in (1, 2, 3):
        for policy in ("lru", "fifo", "arc"):
            asked("hits", {"trace": str(trace), "policy": policy, "capacity_blocks": capacity}, "hits")
    assert len(read) == 1
    trace.write_text(trace.read_text("utf-8").replace("[1, 5]", "[1, 1]"), "utf-8")
    asked("hits", {"trace": str(trace), "policy": "lru", "capacity_blocks": 1}, "hits")
    assert len(read) == 2


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"policy": "mru"}, "hits.policy"),
        ({"policy": None}, "hits.policy"),
        ({"capacity_blocks": None}, "hits.capacity_blocks"),
        ({"capacity_blocks": 0}, "hits.capacity_blocks"),
        ({"capacity_tokens": 512}, "hits.capacity_tokens"),
        ({"lambda": 0.5}, "hits.lambda"),
        ({"count": "lifetime"}, "hits.count"),
        ({"capacity_blocks": None, "capacity_tokens": 511}, "hits.capacity_tokens"),
        ({"trace": "gone.jsonl"}, "hits.trace"),
    ],
)
def test_hits_of_nothing_that_can_be_replayed_name_the_key(trace: Path, changes: dict[str, Any], path: str) -> None:
    section = {"trace": str(trace), "policy": "lru", "capacity_blocks": 3} | changes
    with pytest.raises(InputError) as raised:
        asked("hits", section, "hits")
    assert [problem.path for problem in raised.value.problems] == [path]


@pytest.mark.shared
def test_own_hit_counts_are_all_of_the_published_ones(shared: Path) -> None:
    with (shared / "published" / "hit_counts_conversation.csv").open() as rows:
        published = {
            (row["policy"], row["order"], int(row["capacity_blocks"])): int(row["hits"]) for row in csv.DictReader(rows)
        }
    found = {
        (read.case.hits["policy"], seen.set["order"], seen.set["capacity_blocks"]): seen.expected
        for read in own("hit_counts") if read.case.hits for seen in read.case.observations
    }  # fmt: skip
    assert found == published and len(found) == 84


@pytest.mark.shared
def test_own_hit_counts_of_lru_hold(shared: Path) -> None:
    mine = [read for read in own("hit_counts") if read.case.id.endswith(("conversation", "-lru"))]
    rows = study(mine, str(shared / "traces"), here())
    assert len(rows) == 16 and all(row.error == 0 for row in rows)


@pytest.mark.shared
def test_own_hit_curves_are_within_four_points(shared: Path) -> None:
    rows = study([read for read in own("hit_curves") if read.case.hits], str(shared / "traces"), here())
    assert rows and all(row.error is not None and within(row) for row in rows)


# ---- closed forms -------------------------------------------------------------------------------


def test_own_closed_forms_hold() -> None:
    rows = study([read for read in own("formulas") if read.case.calc], None, here())
    assert len(rows) > 40
    assert not [row.id for row in rows if not within(row)]


def test_own_figures_of_the_program_are_what_it_prints() -> None:
    given = {
        read.case.id: [expected_si(seen.expected) for seen in read.case.observations][:2]
        for read in own("formulas") if read.case.scenario
    }  # fmt: skip
    corrected = {"proper_lru": True, "keeps_step": True, "ssd_cost": 1.0}
    assert given == {
        "article-toy": list(totals()),
        "article-toy-lru": list(totals(**corrected)),
        "article-toy-corrected": list(totals(**corrected, stalls=True)),
    }


def test_calc_wrong_figure_is_flagged(tmp_path: Path) -> None:
    right, wrong = judged(
        tmp_path, "calc", KV_SIZE,
        {"metric": "bytes_per_token", "expected": "512 KiB/token"},
        {"metric": "bytes", "expected": "5.2 MB"},
    )  # fmt: skip
    assert within(right) and within(wrong) is False


@pytest.mark.parametrize(
    ("section", "metric", "value"),
    [
        ({"form": "concurrency", "free": "40 GB", "sequence": "10 GB"}, "c_max", 4),
        ({"form": "concurrency", "model": "llama-2-7b", "available": "16 GiB", "tokens": 1024}, "c_max", 31),
        ({"form": "t-avg", "p_hit": 0.5, "t_vram": "1ms", "t_mem": "3ms"}, "t_avg_s", 0.002),
        ({"form": "speedup", "compute": "1s", "bytes": "1 GB", "bandwidth": "1 GB/s"}, "speedup", 2),
        ({"form": "score", "last_use": [1, 2], "counts": [3, 1], "lambda": 0.25}, "scores.0", 0.75),
        (KV_SIZE, "kinds.0.layers", 32),
        (KV_SIZE, "inputs.tokens", 10),
    ],
)
def test_calc_forms_answer_by_the_key(section: dict[str, Any], metric: str, value: float) -> None:
    assert asked("calc", section, metric) == {metric: pytest.approx(value)}


def test_calc_of_a_model_on_a_machine_answers() -> None:
    on = {"model": "llama-3.1-8b", "hardware": "h100-sxm5-80gb"}
    for section, metric in (
        ({"form": "step", **on, "batch": 1, "context": "1Ki", "prefill": 64}, "t_prefill_s"),
        ({"form": "break-even", **on, "span": 1000}, "ways.0.load_s"),
        ({"form": "t-avg", **on, "p_hit": 0.9}, "t_avg_s"),
        ({"form": "concurrency", **on, "tokens": "8Ki"}, "c_max"),
    ):
        assert asked("calc", section, metric)[metric] > 0


def test_calc_config_file_is_found_from_the_cases_folder(tmp_path: Path) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100,
        "max_position_embeddings": 512, "torch_dtype": "float16",
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    section = {"form": "kv-size", "model": "config.json", "tokens": 1}
    assert asked("calc", section, "bytes", folder=str(tmp_path)) == {"bytes": 2 * 2 * 2 * 16 * 2}


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ({"form": "kv"}, "calc.form"),
        ({"form": "kv-size", "tokens": 3}, "calc.model"),
        (KV_SIZE | {"tokens": 0}, "calc.tokens"),
        (KV_SIZE | {"hardware": "a10"}, "calc.hardware"),
        ({"form": "concurrency", "free": 3, "sequence": "1 GB"}, "calc.free"),
        ({"form": "concurrency", "free": "3 GB", "sequence": "1 GB", "model": "opt-30b"}, "calc.model"),
        ({"form": "score", "last_use": [1], "counts": [1]}, "calc.lambda"),
        ({"form": "speedup", "compute": "1s", "transfer": "1s", "beta": 2}, "calc.beta"),
    ],
)
def test_calc_that_is_none_names_the_key(section: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as raised:
        check(Question("one", "calc", section, (), ("bytes",)))
    assert [problem.path for problem in raised.value.problems] == [path]


@pytest.mark.parametrize("metric", ["bites", "formula", "kinds", "kinds.7.layers", "kinds.x", "bytes.more", "kinds.-1"])
def test_calc_metric_that_is_no_number_says_what_there_is(metric: str) -> None:
    with pytest.raises(InputError) as raised:
        asked("calc", KV_SIZE, metric)
    assert raised.value.problems[0].path == "metric" and raised.value.problems[0].mend


def test_calc_sections_are_those_that_the_docs_list() -> None:
    forms = Calc.model_json_schema()["$defs"]
    assert {"KvSize", "Concurrency", "TAvg", "Speedup", "StepTime", "BreakEven", "Score"} <= set(forms)
