"""Stages of load, and documents whose questions are asked in one order."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.scenario.explain import to_yaml
from simkv.scenario.resolve import resolve_text
from simkv.workload.request import PRIVATE_STREAM_BASE, Request
from simkv.workload.synthetic import build

DOCUMENTS: dict[str, Any] = {
    "kind": "documents",
    "arrival": {"process": "constant", "rate": 1.0},
    "documents": {"count": 7, "tokens": 100, "questions": 3},
    "prompt_tokens": {"dist": "uniform", "low": 5, "high": 50},
    "output_tokens": 4,
}
STAGES = {
    "process": "stages",
    "stages": [{"rate": 5.0, "duration": 2.0}, {"rate": 10.0, "duration": 3.0}],
    "pause": 6.0,
}
SCENARIO = """
name: stages
model: llama-3.1-8b
hardware: a100-sxm4-80gb
workload:
  kind: documents
  arrival: {process: stages, stages: [{rate: 5 req/s, duration: 2s}], pause: 6s}
  documents: {count: 2, tokens: 100, questions: 3}
  prompt_tokens: 5
  output_tokens: 4
"""


def asked(request: Request) -> tuple[tuple[int, int, int], ...]:
    """Return the spans of the prompt: what is there before the answer."""
    return request.spans[:-1]


def serve(source: Any, lasts_s: float = 1.0) -> list[Request]:
    """Take a source through, each request lasting as long; return the requests in order of arrival."""
    waiting, seen = list(source.arrivals()), []
    while waiting:
        waiting.sort(key=lambda request: (request.arrival_s, request.id))
        request = waiting.pop(0)
        seen.append(request)
        waiting += source.after(request, request.arrival_s + lasts_s, True)
    return seen


@settings(max_examples=30, deadline=None)
@given(documents=st.integers(1, 12), questions=st.integers(1, 6), rounds=st.integers(1, 3), seed=st.integers(0, 50))
def test_each_question_is_asked_once_a_round_in_the_same_order(
    documents: int, questions: int, rounds: int, seed: int
) -> None:
    whole = documents * questions
    spec = {
        **DOCUMENTS,
        "documents": {"count": documents, "tokens": 100, "questions": questions},
        "requests": rounds * whole,
    }
    requests = list(build(spec, seed).arrivals())
    first = [asked(request) for request in requests[:whole]]
    assert len(set(first)) == whole
    assert Counter(request.group for request in requests[:whole]) == dict.fromkeys(range(documents), questions)
    for again in range(1, rounds):
        assert [asked(request) for request in requests[again * whole : (again + 1) * whole]] == first
    answers = [request.spans[-1][0] for request in requests]
    assert len(set(answers)) == len(answers) and min(answers) >= PRIVATE_STREAM_BASE
    for request in requests:
        assert sum(length for _, _, length in request.spans) == request.prompt_tokens + request.output_tokens


def test_questions_of_other_seeds_come_in_other_orders() -> None:
    orders = [[r.group for r in build({**DOCUMENTS, "requests": 21}, seed).arrivals()] for seed in (0, 1, 0)]
    assert orders[0] == orders[2] != orders[1]


def test_content_of_documents_and_questions_is_named() -> None:
    source = build({**DOCUMENTS, "requests": 1, "system_prompt": {"tokens": 10}}, 0)
    names = [source.content_name(stream, 0) for stream in (0, 1, 7, 8, 28)]  # type: ignore[attr-defined]
    assert names == [
        "shared prefix 0", "document 0", "document 6", "question 0 about document 0", "question 2 about document 6"
    ]  # fmt: skip


def test_stage_begins_a_pause_after_the_last_of_the_one_before_has_ended() -> None:
    requests = serve(build({**DOCUMENTS, "arrival": STAGES}, 0), lasts_s=9.0)
    stages = [[r for r in requests if r.cls == cls] for cls in ("stage-1", "stage-2")]
    assert [len(stage) for stage in stages] == [10, 30]
    assert [r.id for r in requests] == list(range(40))
    gap_s = stages[1][0].arrival_s - (stages[0][-1].arrival_s + 9.0 + 6.0)
    assert 0 < gap_s < 1.0, "one gap of the second stage's rate"


def test_stages_ask_documents_from_the_first_question_on() -> None:
    requests = serve(build({**DOCUMENTS, "arrival": STAGES}, 0))
    assert [asked(r) for r in requests[10:20]] == [asked(r) for r in requests[:10]]
    assert [asked(r) for r in requests[31:40]] == [asked(r) for r in requests[10:19]], "30 requests, 21 questions"
    answers = [r.spans[-1][0] for r in requests]
    assert len(set(answers)) == 40


def test_stages_of_plain_prompts_never_repeat_one() -> None:
    plain = {"kind": "plain", "arrival": STAGES, "prompt_tokens": 10, "output_tokens": 2}
    assert len({r.spans for r in serve(build(plain, 0))}) == 40


def test_requests_cut_stages_short() -> None:
    source = build({**DOCUMENTS, "arrival": STAGES, "requests": 15}, 0)
    assert source.expected_requests() == 15  # type: ignore[attr-defined]
    assert len(serve(source)) == 15


def test_rates_of_stages_hold_on_average() -> None:
    stages = {"process": "stages", "stages": [{"rate": 50.0, "duration": 100.0}]}
    last = list(islice(build({**DOCUMENTS, "arrival": stages}, 3).arrivals(), 5000))[-1]
    assert last.arrival_s == pytest.approx(100.0, rel=0.05)


@pytest.mark.parametrize(
    ("stage", "why"),
    [
        ({"rate": 1.0, "duration": 0.5}, "is less than one request"),
        ({"rate": 1e6, "duration": 10.0}, "is 10,000,000 requests"),
        ({"rate": 1e308, "duration": 1e10}, "is inf requests"),
    ],
)
def test_stage_without_or_with_too_many_requests_is_refused(stage: dict[str, float], why: str) -> None:
    with pytest.raises(InputError, match=why):
        build({**DOCUMENTS, "arrival": {"process": "stages", "stages": [stage]}}, 0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("workload.documents.popularity=1.0", "does nothing where each question is asked once"),
        ("workload.mix={a: 1.0}", "the stages are the classes"),
        ("run.warm_tiers=auto", "stages warm the tiers for each other"),
    ],
)
def test_what_does_not_go_with_stages_or_an_order_is_refused(change: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        resolve_text(SCENARIO, "stages.yaml", [change])


def test_resolved_stages_are_written_as_they_are_read() -> None:
    resolved = resolve_text(SCENARIO, "stages.yaml")
    again = resolve_text(to_yaml(resolved), "again.yaml")
    assert again.scenario.workload == resolved.scenario.workload
    assert again.scenario_hash == resolved.scenario_hash


def test_more_questions_than_fit_in_memory_are_refused() -> None:
    with pytest.raises(InputError, match="more than 1,000,000 questions"):
        build({**DOCUMENTS, "documents": {"count": 1001, "tokens": 10, "questions": 1000}, "requests": 1}, 0)
