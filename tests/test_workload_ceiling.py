"""The ceiling on hits against a reference that remembers every token."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.workload.ceiling import Ceiling
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Span
from simkv.workload.synthetic import build
from tests.spans import merged


def request(prompt: int, *spans: Span, session: int = -1) -> Request:
    total = sum(length for _, _, length in spans)
    return Request(0, 0.0, prompt, total - prompt, spans, session=session)


class EveryToken:
    """The reference: all prefixes seen, token by token."""

    def __init__(self) -> None:
        self.seen: set[tuple[tuple[int, int], ...]] = set()

    def add(self, r: Request) -> int:
        tokens = tuple((s, start + k) for s, start, length in r.spans for k in range(length))
        prefixes = [tokens[: k + 1] for k in range(len(tokens))]
        hit = sum(prefix in self.seen for prefix in prefixes[: r.prompt_tokens])
        self.seen.update(prefixes)
        return hit


spans_lists = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(1, 6)), min_size=1, max_size=4)
requests_lists = st.lists(st.tuples(spans_lists, st.integers(1, 20)), min_size=1, max_size=12)


@given(requests_lists, st.sampled_from([1, 2, 4]))
def test_ceiling_equals_a_reference_that_remembers_every_token(
    rows: list[tuple[list[Span], int]], block_tokens: int
) -> None:
    ceiling, uncapped, reference = Ceiling(block_tokens), Ceiling(block_tokens), EveryToken()
    for spans, prompt in rows:
        whole = merged(spans)
        r = request(min(prompt, sum(s[2] for s in whole)), *whole)
        leading = reference.add(r)
        assert uncapped.add_uncapped(r) == leading
        assert ceiling.add(r) == min(leading, r.prompt_tokens - 1) // block_tokens * block_tokens


def test_ceiling_of_a_repeated_prompt_leaves_a_token_to_compute() -> None:
    ceiling = Ceiling(16)
    assert [ceiling.add(request(64, (0, 0, 64))) for _ in range(2)] == [0, 48]
    assert ceiling.add(request(65, (0, 0, 65))) == 64


def test_ceiling_counts_outputs_as_seen() -> None:
    ceiling = Ceiling(16)
    ceiling.add(request(100, (5, 0, 300)))
    assert ceiling.add(request(400, (5, 0, 500))) == 288


def test_ceiling_partial_block_agrees_as_far_as_the_shorter_goes() -> None:
    ceiling = Ceiling(1)
    ceiling.add(request(700, (0, 0, 700)))
    assert ceiling.add(request(1024, (0, 0, 1024))) == 700
    assert ceiling.add(request(1024, (0, 0, 1024))) == 1023


def test_ceiling_of_a_session_keeps_one_run_each() -> None:
    spec: dict[str, Any] = {
        "kind": "sessions",
        "requests": 1000,
        "turns": 10,
        "arrival": {"process": "constant", "rate": 1.0},
        "prompt_tokens": 30,
        "output_tokens": 50,
        "system_prompt": {"tokens": 100},
    }
    source, ceiling = build(spec, 0), Ceiling(1)
    for first in source.arrivals():
        coming: tuple[Request, ...] = (first,)
        while coming:
            (turn,) = coming
            before = (100 if turn.session else 0) if turn.turn == 0 else turn.prompt_tokens - 30
            assert ceiling.add(turn) == before
            coming = source.after(turn, turn.arrival_s, True)
    assert len(ceiling) == 1 + 100


def test_ceiling_forgets_an_ended_session_and_keeps_what_is_shared() -> None:
    ceiling = Ceiling(1)
    turn = request(150, (0, 0, 100), (7, 0, 80))
    ceiling.add(turn)
    ceiling.forget(turn)
    assert len(ceiling) == 1
    assert ceiling.add(turn) == 100
    ceiling.forget(request(10, (9, 0, 20)))
    assert len(ceiling) == 2


def test_ceiling_forgets_every_branch_of_an_ended_session() -> None:
    ceiling = Ceiling(1)
    ceiling.add(request(100, (0, 0, 100), (PRIVATE_STREAM_BASE, 0, 5)))
    branches = [((7, 0, 80), (7, 200, 40)), ((7, 0, 60), (7, 500, 10)), ((7, 900, 30),), ((0, 0, 100), (7, 0, 20))]
    made = [request(60, *spans, (PRIVATE_STREAM_BASE + 1 + i, 0, 9)) for i, spans in enumerate(branches)]
    for one in made:
        ceiling.add(one)
    assert len(ceiling) == 1 + 5
    ceiling.forget(made[1])
    assert len(ceiling) == 1
    assert [ceiling.add(one) for one in made] == [0, 59, 0, 59]


def test_ceiling_does_not_remember_private_prompts() -> None:
    ceiling = Ceiling(16)
    tracemalloc.start()
    for i in range(10_000):
        assert ceiling.add(request(100, (0, 0, 50), (PRIVATE_STREAM_BASE + i, 0, 150))) == (48 if i else 0)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ceiling) == 1
    assert size < 10_000


@pytest.mark.parametrize("block_tokens", [1, 16, 512])
def test_ceiling_is_never_above_the_prompt(block_tokens: int) -> None:
    ceiling = Ceiling(block_tokens)
    ceiling.add(request(10, (3, 0, 5000)))
    assert ceiling.add(request(1, (3, 0, 5000))) == 0
