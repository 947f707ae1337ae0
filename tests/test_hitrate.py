"""References of traces, hit rates over capacity, and the command that shows them."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.catalog import load_model
from simkv.cli import app
from simkv.errors import InputError
from simkv.hitrate import CHOICES, Capacities, Rules, collect, load, study
from simkv.hitrate.capacities import halvings
from simkv.hitrate.counting import Job, counted
from simkv.kvcache.eviction import COUNT_MODES, POLICIES
from simkv.kvcache.replay import Order, flatten
from simkv.workload.readers import ReadReport, open_trace
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Spans
from tests.readme import BLOCK, ROOT, run

ROWS = [[0, 1, 2, 3], [0, 1, 4], [0, 1, 2, 3, 5], [6], [0, 1, 4, 7]]
TRACE = "conversation_trace.jsonl"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A Mooncake trace of five prompts, the last block of each partial."""
    path = tmp_path / "tiny.jsonl"
    lines = [
        {"timestamp": 100 * k, "input_length": 512 * len(ids) - 100, "output_length": 7, "hash_ids": ids}
        for k, ids in enumerate(ROWS)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def request(number: int, spans: Spans, prompt: int) -> Request:
    return Request(number, float(number), prompt, 1, spans)


def simkv(*args: str) -> Any:
    return CliRunner().invoke(app, ["hitrate", *args])


def same_pattern(a: list[int], b: list[int]) -> bool:
    """Whether two lists of references repeat their blocks at the same places."""
    return len(a) == len(b) and len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


class TestReferences:
    @pytest.mark.parametrize("order", ["forward", "reverse"])
    def test_load_hashed_blocks_are_those_of_the_file(self, trace: Path, order: Order) -> None:
        source = open_trace(trace)
        references = load(source, ReadReport(), order)
        assert same_pattern(references.blocks.tolist(), flatten(ROWS, order))
        assert (references.requests, references.distinct_blocks, references.block_tokens) == (5, 8, 512)
        assert references.tokens.sum() == references.prompt_tokens == sum(512 * len(ids) - 100 for ids in ROWS)

    def test_load_limit_takes_the_first_requests(self, trace: Path) -> None:
        assert load(open_trace(trace), ReadReport(), limit=2).blocks.size == 7

    def test_collect_sessions_full_blocks_only(self) -> None:
        turns = [request(0, ((1, 0, 40),), 39), request(1, ((1, 0, 70),), 65), request(2, ((2, 0, 40),), 33)]
        references = collect(turns, ReadReport("own"), block_tokens=16)
        assert same_pattern(references.blocks.tolist(), [0, 1, 0, 1, 2, 3, 4, 5])
        assert set(references.tokens.tolist()) == {16}

    def test_collect_block_over_two_streams_is_equal_where_both_parts_are(self) -> None:
        """A head of 10 tokens, then a conversation: its first block of 16 holds some of both."""
        turns = [
            request(0, ((1, 0, 10), (5, 10, 30)), 40),
            request(1, ((1, 0, 10), (5, 10, 40)), 50),
            request(2, ((1, 0, 10), (6, 10, 30)), 40),
        ]
        references = collect(turns, ReadReport("own"), block_tokens=16)
        assert same_pattern(references.blocks.tolist(), [0, 1, 0, 1, 2, 3, 4])

    def test_collect_private_tail_is_no_reference(self) -> None:
        turns = [request(0, ((1, 0, 32), (PRIVATE_STREAM_BASE, 0, 64)), 90)]
        assert collect(turns, ReadReport("own"), block_tokens=16).blocks.size == 2

    def test_collect_nothing_shared_is_refused(self) -> None:
        with pytest.raises(InputError, match="says nothing of content"):
            collect([request(0, ((PRIVATE_STREAM_BASE, 0, 64),), 60)], ReadReport("log"))

    def test_collect_blocks_larger_than_all_prompts_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"no full block.*--block-tokens"):
            collect([request(0, ((1, 0, 64),), 60)], ReadReport("log"), block_tokens=128)

    def test_collect_more_than_memory_would_hold_is_refused_on_the_way(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("simkv.hitrate.references.MOST_REFERENCES", 7)
        turns = (request(k, ((1, 0, 64),), 64) for k in range(10**9))
        with pytest.raises(
            InputError, match=r"first 2 requests make more than 7 .*--limit, or larger .*--block-tokens"
        ):
            collect(turns, ReadReport("own"), block_tokens=16)

    def test_load_other_blocks_than_the_traces_own_are_refused(self, trace: Path) -> None:
        with pytest.raises(InputError, match="blocks of 512 tokens; leave it out"):
            load(open_trace(trace), ReadReport(), block_tokens=16)


class TestCapacities:
    def test_blocks_sizes_of_a_model_are_whole_blocks(self) -> None:
        capacities = Capacities(("80GiB", "100", "1TiB"), load_model("llama-3.1-8b"))
        assert capacities.block_bytes(512) == 64 << 20
        assert capacities.blocks(512, 10**6) == [100, 1280, 16384]

    @pytest.mark.parametrize(
        "text, said",
        [
            ("80GiB", "--model"),
            ("0", "no block"),
            ("", "no number"),
            ("many", "no number"),
            ("1.5", "no number"),
            ("99999999999999999999", "too large"),
            ("\u0661\u0662", "not a count"),
        ],
    )
    def test_blocks_without_a_model_refuses_what_is_no_count(self, text: str, said: str) -> None:
        with pytest.raises(InputError, match=f"--capacity.*{said}"):
            Capacities((text,)).blocks(512, 100)

    @pytest.mark.parametrize(
        "text, said", [("80", "^$"), ("1kB", "no block"), ("infGiB", "infinite"), ("8 Gb", "bits")]
    )
    def test_blocks_with_a_model_refuses_what_holds_none(self, text: str, said: str) -> None:
        capacities = Capacities((text,), load_model("llama-3.1-8b"))
        if said == "^$":
            assert capacities.blocks(512, 100) == [80]
            return
        with pytest.raises(InputError, match=said):
            capacities.blocks(512, 100)

    def test_halvings_are_round_rising_and_below_all(self) -> None:
        assert halvings(182_790) == [2900, 5700, 11000, 23000, 46000, 91000]
        assert halvings(1) == [1] and halvings(3) == [1, 2]


class TestStudy:
    def test_study_every_policy_lies_between_nothing_and_belady(self, trace: Path) -> None:
        answer = study(load(open_trace(trace), ReadReport()), rules=Rules(0.7))
        bound = {row["capacity_blocks"]: row["hits"] for row in answer["rows"] if row["policy"] == "belady"}
        assert {row["policy"] for row in answer["rows"]} == set(CHOICES)
        for row in answer["rows"]:
            assert 0 <= row["hits"] <= bound[row["capacity_blocks"]] <= answer["infinite_hits"] == 9

    def test_study_priority_is_lru_where_all_are_alike(self) -> None:
        blocks = [block for row in ROWS * 3 for block in row]
        for capacity in range(1, 9):
            jobs = [Job("lru", capacity), Job("priority", capacity)]
            assert len({Rules().hits(blocks, job) for job in jobs}) == 1

    def test_counted_on_processes_is_the_same(self, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        blocks = load(open_trace(trace), ReadReport()).blocks
        jobs = [Job(name, capacity) for name in CHOICES for capacity in (2, 4)]
        here = counted(blocks, jobs, Rules(0.7), lambda share: None, 1)
        monkeypatch.setattr("simkv.hitrate.counting._WORTH_IT", 0)
        shares: list[float] = []
        assert counted(blocks, jobs, Rules(0.7), shares.append, 2) == here
        assert shares == sorted(shares) and shares[-1] == 1.0

    def test_study_nothing_comes_twice_has_no_knee(self) -> None:
        turns = [request(k, ((k, 0, 32),), 32) for k in range(3)]
        answer = study(collect(turns, ReadReport("own"), block_tokens=16), ("lru",))
        assert answer["infinite_hits"] == 0 and answer["lru_curve"] == []
        assert answer["knee"]["hits"] == 0 and answer["rows"][0]["share_of_ceiling"] is None


class TestCommand:
    def test_json_has_the_fixed_keys(self, trace: Path) -> None:
        answer = json.loads(simkv(str(trace), "--policy", "lru,arc", "--capacity", "2,4", "--json").stdout)
        assert (answer["references"], answer["infinite_hits"]) == (17, 9)
        rows = [(row["policy"], row["order"], row["capacity_blocks"]) for row in answer["rows"]]
        assert rows == [(name, "forward", capacity) for name in ("lru", "arc", "belady") for capacity in (2, 4)]
        assert all(isinstance(row["hits"], int) for row in answer["rows"])

    def test_reverse_order_is_said_in_every_row(self, trace: Path) -> None:
        answer = json.loads(simkv(str(trace), "--order", "reverse", "--json").stdout)
        assert {row["order"] for row in answer["rows"]} == {"reverse"}

    def test_table_states_the_answer_first(self, trace: Path) -> None:
        shown = simkv(str(trace), "--model", "llama-3.1-8b", "--capacity", "1GiB").stdout.splitlines()
        assert shown[0] == "LRU reaches 90% of the ceiling at 7 blocks (448 MiB)."
        assert shown[1].startswith("The ceiling: 9 of 17 references hit")
        assert shown[-1].split()[:2] == ["no", "limit"]

    def test_table_says_where_what_gains_most_falls_behind(self, tmp_path: Path) -> None:
        """A hot block among scans, which lfu keeps; then two that alternate beside it."""
        path = tmp_path / "shifts.jsonl"
        ids = [0] * 30 + [one for k in range(12) for one in (0, 100 + 3 * k, 101 + 3 * k, 102 + 3 * k)] + [7, 8] * 20
        lines = [
            {"timestamp": k, "input_length": 512, "output_length": 1, "hash_ids": [one]} for k, one in enumerate(ids)
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        shown = simkv(str(path), "--policy", "lru,lfu", "--capacity", "2,3").stdout.splitlines()
        assert shown[0] == "LRU reaches 90% of the ceiling at 4 blocks."
        assert (
            shown[2] == "lfu gains most on LRU, at 3 blocks: 66.95% against 57.63%; at 2 it has 34.75% against 57.63%."
        )
        assert simkv(str(path), "--policy", "lru,lfu", "--capacity", "1").stdout.count("gains most") == 0
        assert simkv(str(path), "--policy", "lru,lfu", "--capacity", "3").stdout.splitlines()[2].endswith("57.63%.")

    def test_csv_holds_the_rows(self, trace: Path, tmp_path: Path) -> None:
        path = tmp_path / "rows.csv"
        answer = json.loads(simkv(str(trace), "--csv", str(path), "--json").stdout)
        with path.open() as file:
            rows = list(csv.DictReader(file))
        assert [int(row["hits"]) for row in rows] == [row["hits"] for row in answer["rows"]]
        assert simkv(str(trace), "--csv", str(path)).exit_code == 2
        assert simkv(str(trace), "--csv", str(path), "--force").exit_code == 0

    @pytest.mark.parametrize("ending, mark", [("png", b"\x89PNG"), ("svg", b"<?xml")])
    def test_plot_is_a_picture_and_the_same_again(self, trace: Path, tmp_path: Path, ending: str, mark: bytes) -> None:
        path = tmp_path / f"curve.{ending}"
        assert simkv(str(trace), "--plot", str(path)).exit_code == 0
        first = path.read_bytes()
        simkv(str(trace), "--plot", str(path), "--force")
        assert first.startswith(mark) and path.read_bytes() == first
        if ending == "svg":
            assert all(word in first.decode() for word in ("LRU reaches 90% of the ceiling", "block references"))

    @pytest.mark.parametrize(
        "options, said",
        [
            (["--policy", "arcc"], "did you mean arc?"),
            (["--order", "backward"], "--order"),
            (["--capacity", "8GiB"], "--model"),
            (["--kv-dtype", "fp8"], "--model"),
            (["--lambda", "0.5", "--policy", "lru"], "--lambda: does nothing without policy score"),
            (["--count", "ever"], "in_cache, lifetime, decayed"),
            (["--count", "decayed"], "--half-life: is missing"),
            (["--half-life", "10"], "--half-life: does nothing"),
            (["--plot", "curve.gif"], ".png or .svg"),
            (["--csv", "rows.png", "--plot", "./rows.png"], "--plot = rows.png: is the file of --csv itself"),
            (["--block-tokens", "16"], "blocks of 512 tokens"),
        ],
    )
    def test_option_that_makes_no_sense_is_refused(self, trace: Path, options: list[str], said: str) -> None:
        result = simkv(str(trace), *options)
        assert result.exit_code == 2 and said in result.stderr

    def test_rows_do_not_replace_the_trace(self, trace: Path) -> None:
        before = trace.read_bytes()
        result = simkv(str(trace), "--csv", str(trace.parent / "." / trace.name), "--force")
        assert result.exit_code == 2 and "is the trace itself; give another name" in result.stderr
        assert trace.read_bytes() == before

    def test_trace_without_content_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "azure.csv"
        path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n")
        result = simkv(str(path))
        assert result.exit_code == 2
        assert str(path) in result.stderr and "says nothing of content" in result.stderr

    def test_counts_other_than_in_cache_change_lfu(self, tmp_path: Path) -> None:
        """What a block that comes back is worth: its uses since, all of them, or the late ones."""
        path = tmp_path / "counts.jsonl"
        blocks = [1, 1, 1, 1, 2, 2, 3, 2, 3, 4, 1, 3, 4, 2, 3, 4, 3, 4, 1, 5, 3, 4, 1] * 3
        rows = [
            {"timestamp": k, "input_length": 512, "output_length": 1, "hash_ids": [block]}
            for k, block in enumerate(blocks)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        hits = {}
        for count in ("in_cache", "lifetime", "decayed"):
            half_life = ["--half-life", "2"] if count == "decayed" else []
            told = simkv(str(path), "--policy", "lfu", "--capacity", "2", "--json", "--count", count, *half_life).stdout
            hits[count] = next(row["hits"] for row in json.loads(told)["rows"] if row["policy"] == "lfu")
        assert len(set(hits.values())) == 3, hits

    def test_session_file_is_taken_at_recorded_times(self, tmp_path: Path) -> None:
        """Requests of two sessions that run at once are interleaved."""
        folder = tmp_path / "sessions"
        folder.mkdir()
        for name, base in (("a", 0), ("b", 10)):
            entries = [
                {"t": t, "type": "n", "in": 64 * n, "out": 1, "hash_ids": [base + k for k in range(n)], "api_time": 1}
                for n, t in ((1, 0 if name == "a" else 5), (2, 10 if name == "a" else 15))
            ]
            text = {"id": name, "block_size": 64, "hash_id_scope": "global", "requests": entries}
            (folder / f"{name}.json").write_text(json.dumps(text))
        answer = json.loads(simkv(str(folder), "--policy", "lru", "--capacity", "1,2", "--json").stdout)
        hits = {row["capacity_blocks"]: row["hits"] for row in answer["rows"] if row["policy"] == "lru"}
        assert hits == {1: 0, 2: 1}  # session by session it would be {1: 2, 2: 2}


@pytest.mark.shared
@pytest.mark.parametrize("order", ["forward", "reverse"])
def test_study_conversation_equals_the_published_counts(shared: Path, order: Order) -> None:
    """From the file through the reader and LRU's curve; the other policies are in test_hit_counts."""
    with (shared / "published" / "hit_counts_conversation.csv").open() as rows:
        published = {
            (row["policy"], int(row["capacity_blocks"])): int(row["hits"])
            for row in csv.DictReader(rows)
            if row["order"] == order and row["policy"] in ("lru", "belady")
        }
    texts = tuple(str(capacity) for capacity in sorted({capacity for _, capacity in published}))
    source = open_trace(shared / "traces" / "mooncake" / TRACE)
    answer = study(load(source, ReadReport(), order), ("lru",), Capacities(texts), processes=1)
    assert {(row["policy"], row["capacity_blocks"]): row["hits"] for row in answer["rows"]} == published
    assert (answer["references"], answer["infinite_hits"]) == (288_500, 105_710)


PAGE = (ROOT / "docs" / "eviction.md").read_text("utf-8")


@pytest.mark.parametrize("block", list(BLOCK.finditer(PAGE)), ids=lambda block: block["command"])
def test_page_output_equals_that_of_a_run(block: re.Match[str]) -> None:
    assert block["output"] == run(block["command"]), "run: make readme"


def test_page_names_every_policy_and_count() -> None:
    for name in (*POLICIES, *COUNT_MODES):
        assert f"`{name}`" in PAGE


@pytest.mark.shared
def test_page_conversation_table_equals_the_published_counts(shared: Path) -> None:
    with (shared / "published" / "hit_counts_conversation.csv").open() as rows:
        published = {
            (row["policy"], row["capacity_blocks"]): int(row["hits"])
            for row in csv.DictReader(rows)
            if row["order"] == "forward"
        }
    found = re.findall(r"^\| `(\w+)` \|((?: [\d,]+ \|){6})$", PAGE, re.MULTILINE)
    assert len(found) == 7
    for policy, cells in found:
        counts = [int(cell.replace(",", "")) for cell in re.findall(r"[\d,]+", cells)]
        capacities = ("1000", "5000", "10000", "30000", "50000", "100000")
        assert counts == [published[policy, capacity] for capacity in capacities]


@pytest.mark.shared
@pytest.mark.speed
def test_command_lru_curve_of_the_conversation_trace_is_quick(shared: Path) -> None:
    words = [sys.executable, "-m", "simkv", "hitrate", str(shared / "traces" / "mooncake" / TRACE), "--policy", "lru"]

    def once() -> float:
        before = os.times()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(once() for _ in range(2)) < 2.0  # of a core: whoever else is at work doesn't count
