"""What is said about a scenario that is wrong: file, line, path, value and mend, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from simkv.errors import InfeasibleError, InputError
from simkv.scenario.resolve import resolve, resolve_text
from tests.faults import SMALL as BASE
from tests.faults import complaints


def test_base_is_valid() -> None:
    assert resolve_text(BASE).scenario.name == "small"


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("slo: {ttft_p95: 2}", 's.yaml:12: slo.ttft_p95 = 2: has no unit; write "2s" or "2ms"'),
        ("link: {h2d: 25 GB}", 's.yaml:12: link.h2d = "25 GB": not a rate; write "25 GB/s"'),
        ("link: {h2d: nan GB/s}", 's.yaml:12: link.h2d = "nan GB/s": not a number; write it like "25 GB/s"'),
        ("link: {h2d: 1e-9 B/s}", 's.yaml:12: link.h2d = "1e-9 B/s": too small; the least is 1 B/s, or 0 for none'),
        ("link: {latency: -1us}", 's.yaml:12: link.latency = "-1us": negative; a time is zero or more'),
        (
            "engine: {max_num_seq: 8}",
            's.yaml:12: engine.max_num_seq: unknown key; did you mean "max_num_seqs"?',
        ),
        (
            "engine: {load: helt}",
            's.yaml:12: engine.load = "helt": not one of the choices; valid: hold, overlap, block',
        ),
        (
            "engine: {prefix_caching: yes}",
            's.yaml:12: engine.prefix_caching = "yes": not true or false; write true or false',
        ),
        (
            "engine: {version: 0.33}",
            's.yaml:12: engine.version = 0.33: not a text; write it in quotes, like "0.33"',
        ),
        (
            'engine: {version: "0.2"}',
            's.yaml:12: engine.version = "0.2": no defaults of that version of vLLM; one of "0.33", "0.19", "0.13" '
            "(in quotes), or leave it out for the newest",
        ),
        ("engine: {max_num_seqs: 0}", "s.yaml:12: engine.max_num_seqs = 0: too small; the least is 1"),
        (
            "engine: {max_num_seqs: 512, max_num_batched_tokens: 256}",
            "s.yaml:12: engine.max_num_batched_tokens = 256: below max_num_seqs, which engines refuse; raise it to 512 "
            "or lower engine.max_num_seqs",
        ),
        (
            "offload: {residency: 0.3, vram_budget: 0.4}",
            "s.yaml:12: offload.vram_budget = 0.4: residency says how much stays in VRAM too; give one of the two",
        ),
        (
            "offload: {eviction: {policy: lru, lambda: 0.5}}",
            "s.yaml:12: offload.eviction.lambda = 0.5: does nothing with policy lru; write policy: score, or leave "
            "lambda out",
        ),
        (
            "offload: {eviction: {policy: arc, count: lifetime}}",
            's.yaml:12: offload.eviction.count = "lifetime": does nothing with policy arc; write policy: score or '
            "lfu, or leave count out",
        ),
        (
            "offload: {eviction: {policy: lfu, half_life: 100}}",
            "s.yaml:12: offload.eviction.half_life = 100: does nothing unless count is decayed; write count: "
            "decayed, or leave half_life out",
        ),
        (
            "offload: {eviction: {policy: score, lambda: 1.5}}",
            "s.yaml:12: offload.eviction.lambda = 1.5: too large; the most that makes sense here is 1",
        ),
        (
            "offload: {prefetch: {window: 4}}",
            "s.yaml:12: offload.prefetch.window = 4: does nothing with policy none; write policy: queue, or leave "
            "window out",
        ),
        (
            "engine: {store_outputs: true}\noffload: {write: never}",
            "s.yaml:12: engine.store_outputs = true: does nothing with offload.write never; write a write_through "
            "policy, or leave store_outputs out",
        ),
        ("offload: lru", 's.yaml:12: offload = "lru": not a section; write its keys below it, indented, or like '
         "{key: value}"),
        (
            "slo: {tft_p95: 2s}",
            's.yaml:12: slo.tft_p95 = "2s": unknown target; did you mean "ttft_p95"?',
        ),
        (
            "classes: {chat: {priority: 1}}",
            "s.yaml:12: classes: no request is of these classes; give their shares in workload.mix",
        ),
        (
            "cost: {gpu_hour: 2, currency: dollars}",
            's.yaml:12: cost.currency = "dollars": not a currency; write its three letters, like "USD"',
        ),
        ("cost: {currency: USD}", 's.yaml:12: cost.gpu_hour: is missing; add "gpu_hour: 0.7"'),
        (
            "run: {baselines: [no_prefetches]}",
            's.yaml:12: run.baselines.0 = "no_prefetches": not one of the choices; did you mean "no_prefetch"? '
            "valid: no_offload, no_prefetch",
        ),
        ("run: {warm_up: maybe}", 's.yaml:12: run.warm_up = "maybe": not a time; write it like "20ms", or auto'),
        ("run: {replications: 5000}", "s.yaml:12: run.replications = 5000: too large; the most is 1000"),
        ("replicas: {count: 1, hosts: 2}", "s.yaml:12: replicas.hosts = 2: more hosts than replicas; the most is "
         "replicas.count, 1"),
        ("name: again", "s.yaml:12: name: is given twice (first on line 1); keep one of them"),
    ],
)  # fmt: skip
def test_wrong_key_is_told_with_line_value_and_mend(extra: str, message: str) -> None:
    assert complaints(BASE + extra + "\n") == [message]


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (
            "{kind: chat}",
            's.yaml:4: workload.kind = "chat": unknown kind; valid: plain, sessions, documents, '
            "batch, trace, clients, fitted",
        ),
        ("{}", 's.yaml:4: workload.kind: is missing; add "kind: plain"; valid: plain, sessions, documents, batch, '
         "trace, clients, fitted"),
        ("3", "s.yaml:4: workload = 3: not a section; write it like {kind: plain, ...}"),
        ("{kind: trace}", 's.yaml:4: workload.path: is missing; add "path: ..."'),
        (
            "{kind: batch, size: 4, prompt_tokens: {dist: lognormal, mean: 5}, output_tokens: 5}",
            "s.yaml:4: workload.prompt_tokens: neither sigma nor cv is given; give one of sigma, cv",
        ),
        (
            "{kind: batch, size: 4, prompt_tokens: {dist: uniform, low: 9, high: 5}, output_tokens: 5}",
            "s.yaml:4: workload.prompt_tokens: low is above high; swap them",
        ),
        (
            "{kind: batch, size: 4, prompt_tokens: 5, output_tokens: 5, mix: {a: 1}}",
            "s.yaml:4: workload.mix.a = 1: no such class; nothing goes here (see classes)",
        ),
        (
            "{kind: plain, arrival: {process: poisson, rate: 1}, prompt_tokens: 5, output_tokens: 5, requests: 1}",
            's.yaml:4: workload.arrival.rate = 1: has no unit; write "1 req/s" or "1 req/min"',
        ),
        (
            "{kind: plain, arrival: {process: poisson, rate: 0 req/s}, prompt_tokens: 5, output_tokens: 5, requests: 1}",  # noqa: E501
            's.yaml:4: workload.arrival.rate = "0 req/s": zero; it must be above zero',
        ),
        (
            "{kind: plain, arrival: {process: poisson, rate: 1 req/s}, prompt_tokens: 5, output_tokens: 5}",
            "s.yaml:4: workload: nothing ends this workload; give workload.requests or run.duration",
        ),
        (
            "{kind: sessions, arrival: {process: poisson, rate: 1 req/s}, turns: {dist: geometric, mean: 1Mi}, "
            "requests: 1, prompt_tokens: 5, output_tokens: 5}",
            's.yaml:4: workload.turns.mean = "1Mi": too many turns; the most is 10000',
        ),
        (
            "{kind: plain, arrival: {process: all_at_once}, prompt_tokens: 5, output_tokens: 5}",
            "s.yaml:4: workload: nothing ends this workload; give workload.requests",
        ),
    ],
)  # fmt: skip
def test_wrong_workload_is_told_at_its_key(workload: str, message: str) -> None:
    assert complaints(f"name: w\nmodel: llama-3.1-8b\nhardware: h100-sxm5-80gb\nworkload: {workload}\n") == [message]


def test_everything_wrong_is_told_at_once_in_the_order_of_the_file() -> None:
    told = complaints(
        'name: " a b"\nmodel: lama-3.1-8b\nhardware: h100\ntiers: {dram: {capacity: 200}}\nfoo: 1\n', "link.h2d=1 GB"
    )
    assert [line.split(": ")[0:2] for line in told[1:]] == [
        ["s.yaml", "workload"],
        ["s.yaml:1", 'name = " a b"'],
        ["s.yaml:2", 'model = "lama-3.1-8b"'],
        ["s.yaml:4", "tiers.dram.capacity = 200"],
        ["s.yaml:5", "foo"],
    ]
    assert told[0] == '--set: link.h2d = "1 GB": not a rate; write "1 GB/s"'
    assert "llama-3.1-8b" in told[3]


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("tiers.dram.capacity=200", '--set: tiers.dram.capacity = 200: has no unit; write "200GiB" or "200GB"'),
        (
            "tiers.dram.capcity=2GiB",
            '--set: tiers.dram.capcity: unknown key; did you mean "capacity"? valid: capacity, ratio, per_gpu, '
            "bandwidth, shared",
        ),
        (
            "tiers.drm.capacity=2GiB",
            '--set: tiers.drm: unknown key; did you mean "dram"? valid: dram, ssd, relation',
        ),
        ("tiers.dram", '--set: "tiers.dram" is not PATH=VALUE; write it like tiers.dram.capacity=400GiB'),
        ("=3", '--set: "=3" is not PATH=VALUE; write it like tiers.dram.capacity=400GiB'),
        ("a..b=3", '--set: "a..b=3" is not PATH=VALUE; write it like tiers.dram.capacity=400GiB'),
        ("model=gpt-9", "--set: model = \"gpt-9\": is not a model of the catalogue"),
        ("run.baselines=[no_offload", "--set run.baselines:"),
        ("link.chunk=infGiB", '--set: link.chunk = "infGiB": too large; the most is 1TiB'),
        ("workload.requests=null", "s.yaml:4: workload: nothing ends this workload"),
    ],
)  # fmt: skip
def test_wrong_assignment_is_told_as_the_command_lines(assignment: str, message: str) -> None:
    (told,) = complaints(BASE, assignment)
    assert told.startswith(message)


def test_model_that_does_not_fit_is_infeasible_and_says_by_how_much() -> None:
    with pytest.raises(InfeasibleError, match=r"misses [0-9.]+ GiB a GPU.*; fits with"):
        resolve_text(BASE, assignments=["model=llama-3.1-70b"])


def test_sequence_longer_than_the_logged_pool_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="24128 tokens too many; it fits with max_model_len 41408"):
        resolve_text(BASE, assignments=["engine.num_gpu_blocks=2588", "engine.max_model_len=65536"])


def test_inline_hardware_refuses_what_would_do_nothing() -> None:
    told = complaints(
        BASE, "hardware={step_time: 20ms, kv_tokens: 1000}", "engine.gpu_memory_utilization=0.8", "engine.kv_dtype=fp8"
    )
    assert told == [
        "--set: engine.gpu_memory_utilization = 0.8: does nothing on inline hardware; leave it out",
    ]


def test_inline_model_needs_inline_hardware() -> None:
    (told,) = complaints(BASE, "model={kv_bytes_per_token: 128KiB}")
    assert told.startswith("--set: model: a model without weights can't run on real hardware;")


def test_priority_under_fcfs_is_refused() -> None:
    content = BASE.replace("  requests: 10\n", "  requests: 10\n  mix: {chat: 0.5, bulk: 0.5}\n")
    (told,) = complaints(content + "classes: {chat: {}, bulk: {priority: 1}}\n")
    assert "classes.bulk.priority = 1: does nothing under fcfs; write" in told
    resolve_text(content + "classes: {chat: {}, bulk: {priority: 1}}\nengine: {scheduling: priority}\n")


def test_shares_that_do_not_sum_to_one_are_refused() -> None:
    content = BASE.replace("  requests: 10\n", "  requests: 10\n  mix: {chat: 0.5, bulk: 0.4}\n")
    (told,) = complaints(content + "classes: {chat: {}, bulk: {}}\n")
    assert told == "s.yaml:7: workload.mix: the shares sum to 0.9; they must sum to 1"


@pytest.mark.parametrize(
    "nasty", ["nan", ".inf", "-1", "1e308", '""', "[]", "{}", "'25 GB'", "9" * 40, "true", "\u202e"]
)
def test_any_key_with_a_nasty_value_gives_input_error_or_loads(nasty: str) -> None:
    lines = BASE.splitlines()
    for number, line in enumerate(lines):
        changed = [*lines]
        changed[number] = f"{line.split(':')[0]}: {nasty}"
        try:
            resolve_text("\n".join(changed))
        except InputError as error:
            assert all(p.what for p in error.problems)


def test_missing_file_of_a_workload_is_told_where_it_was_looked_for(tmp_path: Path) -> None:
    from simkv.scenario.build import workload_source

    file = tmp_path / "t.yaml"
    file.write_text("name: t\nmodel: llama-3.1-8b\nhardware: h100-sxm5-80gb\nworkload: {kind: trace, path: no.jsonl}\n")
    resolved = resolve(str(file))
    with pytest.raises(InputError, match=r'workload.path = "no.jsonl": no such file; looked in .* and the working'):
        workload_source(resolved, 0)


def test_exclusive_tiers_with_a_policy_that_copies_are_refused() -> None:
    with pytest.raises(InputError, match="write_through keeps copies, and the tiers are exclusive; with exclusive"):
        resolve_text(BASE, "s.yaml", ["tiers.relation=exclusive"])
    resolve_text(BASE, "s.yaml", ["tiers.relation=exclusive", "offload.write=write_back"])
