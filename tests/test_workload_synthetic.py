"""Synthetic sources: spans, bounds, laziness, determinism and shared random numbers."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable
from itertools import islice, pairwise
from time import perf_counter
from typing import Any

import pytest

from simkv.errors import InputError
from simkv.workload.replay import FixedSource
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Source
from simkv.workload.synthetic import build
from tests import serving

PLAIN: dict[str, Any] = {
    "kind": "plain",
    "arrival": {"process": "poisson", "rate": 5.0},
    "prompt_tokens": {"dist": "lognormal", "mean": 1000, "cv": 1.0},
    "output_tokens": {"dist": "geometric", "mean": 200},
}
SESSIONS: dict[str, Any] = {
    "kind": "sessions",
    "arrival": {"process": "poisson", "rate": 1.0},
    "turns": {"dist": "geometric", "mean": 5},
    "think_time": {"dist": "exponential", "mean": 10.0},
    "prompt_tokens": {"dist": "uniform", "low": 20, "high": 200},
    "output_tokens": {"dist": "uniform", "low": 50, "high": 300},
    "system_prompt": {"tokens": 400, "variants": 3},
}
DOCUMENTS: dict[str, Any] = {
    "kind": "documents",
    "arrival": {"process": "poisson", "rate": 5.0},
    "prompt_tokens": 50,
    "output_tokens": 100,
    "documents": {"count": 20, "tokens": {"dist": "uniform", "low": 1000, "high": 5000}, "popularity": 1.0},
    "system_prompt": {"tokens": 30},
}
CLOSED = {"process": "closed_loop", "users": 8, "think_time": 2.0}


def serve(source: Source, service_s: Callable[[Request], float]) -> list[Request]:
    """Let every request take ``service_s``, all at once; return them in order of arrival."""
    return sorted(serving.serve(source, service_s).requests, key=lambda r: (r.arrival_s, r.id))


def quick(request: Request) -> float:
    return 0.001 * request.output_tokens


def uneven(request: Request) -> float:
    return 0.05 * request.prompt_tokens * (1 + request.id % 7)


def facts(request: Request) -> tuple[Any, ...]:
    return (request.prompt_tokens, request.output_tokens, request.spans, request.session, request.turn, request.cls)


def kinds() -> list[Any]:
    one = [PLAIN, SESSIONS, DOCUMENTS]
    looped = [{**spec, "arrival": CLOSED} for spec in one]
    batch = {"kind": "batch", "size": 10, "interval": 5.0, "prompt_tokens": 100, "output_tokens": 10}
    named = [*one, *looped, batch]
    return [pytest.param(spec, id=f"{spec['kind']}-{k}") for k, spec in enumerate(named)]


# ---- every kind ---------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", kinds())
def test_source_bounded_by_requests_yields_exactly_so_many(spec: dict[str, Any]) -> None:
    served = serve(build({**spec, "requests": 137}, 0), quick)
    assert sorted(r.id for r in served) == list(range(137))


@pytest.mark.parametrize("spec", kinds())
def test_source_bounded_by_duration_stays_below_it(spec: dict[str, Any]) -> None:
    served = serve(build(spec, 0, 60.0), quick)
    assert len(served) > 30
    assert all(0 <= r.arrival_s < 60 for r in served)
    assert len({r.id for r in served}) == len(served)


@pytest.mark.parametrize("spec", kinds())
def test_source_unbounded_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"workload\.requests: nothing bounds the workload; give"):
        build(spec, 0)


@pytest.mark.parametrize("spec", kinds())
def test_source_spans_cover_prompt_and_output_in_positive_merged_runs(spec: dict[str, Any]) -> None:
    for r in serve(build({**spec, "requests": 200}, 0), quick):
        assert sum(length for _, _, length in r.spans) == r.prompt_tokens + r.output_tokens
        assert all(length > 0 and start >= 0 for _, start, length in r.spans)
        assert len({stream for stream, _, _ in r.spans}) == len(r.spans)
        assert min(r.prompt_tokens, r.output_tokens) >= 1


@pytest.mark.parametrize("spec", kinds())
def test_source_yields_plain_python_numbers(spec: dict[str, Any]) -> None:
    for r in serve(build({**spec, "requests": 50}, 0), quick):
        assert type(r.arrival_s) is float
        whole = [r.id, r.prompt_tokens, r.output_tokens, r.session, r.turn, r.group, *(x for s in r.spans for x in s)]
        assert {type(x) for x in whole} == {int}


@pytest.mark.parametrize("spec", kinds())
def test_source_of_equal_seed_is_equal_and_starts_over(spec: dict[str, Any]) -> None:
    source = build({**spec, "requests": 100}, 3)
    runs = [serve(s, quick) for s in (source, source, build({**spec, "requests": 100}, 3))]
    one, two, three = ([(r.id, r.arrival_s, *facts(r)) for r in run] for run in runs)
    assert one == two == three


@pytest.mark.parametrize("spec", kinds()[:3])
def test_source_of_another_seed_differs(spec: dict[str, Any]) -> None:
    one, two = (serve(build({**spec, "requests": 20}, seed), quick) for seed in (0, 1))
    assert [r.arrival_s for r in one] != [r.arrival_s for r in two]


@pytest.mark.parametrize("spec", kinds())
def test_source_serves_the_same_requests_whatever_the_order_they_finish_in(spec: dict[str, Any]) -> None:
    one, two = (serve(build({**spec, "requests": 150}, 0), service) for service in (quick, uneven))
    assert {r.id: facts(r) for r in one} == {r.id: facts(r) for r in two}
    if spec.get("arrival") != CLOSED:
        assert [r.arrival_s for r in one if r.turn == 0] == [r.arrival_s for r in two if r.turn == 0]


@pytest.mark.parametrize("spec", kinds())
def test_source_is_lazy(spec: dict[str, Any]) -> None:
    started = perf_counter()
    ten = list(islice(build({**spec, "requests": 10**9}, 0).arrivals(), 8))
    assert len(ten) == 8
    assert perf_counter() - started < 0.5


@pytest.mark.parametrize("spec", [PLAIN, SESSIONS, DOCUMENTS], ids=lambda s: s["kind"])
def test_source_memory_does_not_grow_with_requests(spec: dict[str, Any]) -> None:
    def peak(requests: int) -> int:
        source = build({**spec, "requests": requests}, 0)
        tracemalloc.start()
        for request in source.arrivals():
            coming: tuple[Request, ...] = (request,)
            while coming:
                coming = source.after(coming[0], coming[0].arrival_s, True)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(30_000) < 1.1 * peak(10_000) + 20_000


# ---- named streams ------------------------------------------------------------------------------


def test_streams_another_purpose_leaves_the_others_as_they_were() -> None:
    plain = serve(build({**PLAIN, "requests": 500}, 0), quick)
    more = {**PLAIN, "requests": 500, "mix": {"a": 0.3, "b": 0.7}, "system_prompt": {"tokens": 100, "variants": 4}}
    both = serve(build(more, 0), quick)
    assert [(r.arrival_s, r.output_tokens, r.prompt_tokens + 100) for r in plain] == [
        (r.arrival_s, r.output_tokens, r.prompt_tokens) for r in both
    ]


def test_streams_another_output_length_leaves_prompts_and_arrivals() -> None:
    one, two = (
        serve(build({**PLAIN, "requests": 500, "output_tokens": o}, 0), quick) for o in (PLAIN["output_tokens"], 7)
    )
    assert [(r.arrival_s, r.prompt_tokens) for r in one] == [(r.arrival_s, r.prompt_tokens) for r in two]


def test_streams_more_requests_continue_fewer() -> None:
    few, many = (serve(build({**PLAIN, "requests": n}, 0), quick) for n in (100, 10_000))
    assert [(r.id, r.arrival_s, *facts(r)) for r in few] == [(r.id, r.arrival_s, *facts(r)) for r in many[:100]]


# ---- plain, batches, classes --------------------------------------------------------------------


def test_plain_prompts_are_private() -> None:
    streams = [r.spans[0][0] for r in serve(build({**PLAIN, "requests": 1000}, 0), quick)]
    assert len(set(streams)) == 1000
    assert min(streams) >= PRIVATE_STREAM_BASE


def test_plain_system_prompt_comes_on_top_and_is_shared_by_its_variant() -> None:
    spec = {**PLAIN, "requests": 3000, "prompt_tokens": 10, "system_prompt": {"tokens": 90, "variants": 3}}
    served = serve(build(spec, 0), quick)
    assert {r.prompt_tokens for r in served} == {100}
    heads = Counter(r.spans[0] for r in served)
    assert set(heads) == {(0, 0, 90), (1, 0, 90), (2, 0, 90)}
    assert min(heads.values()) > 900


def test_batch_without_interval_is_one_batch() -> None:
    spec = {"kind": "batch", "size": 6, "prompt_tokens": 100, "output_tokens": 10}
    assert [r.arrival_s for r in build(spec, 0).arrivals()] == [0.0] * 6


def test_all_at_once_needs_a_number_of_requests() -> None:
    spec = {**PLAIN, "arrival": {"process": "all_at_once"}}
    assert [r.arrival_s for r in build({**spec, "requests": 5}, 0).arrivals()] == [0.0] * 5
    with pytest.raises(InputError, match=r"give workload\.requests"):
        build(spec, 0, 60.0)


def test_classes_follow_their_shares_and_are_all_named() -> None:
    source = build({**PLAIN, "requests": 20_000, "mix": {"interactive": 3, "batch": 1}}, 0)
    counts = Counter(r.cls for r in source.arrivals())
    assert source.class_names == ("interactive", "batch")
    assert counts["interactive"] / 20_000 == pytest.approx(0.75, abs=0.01)


def test_classes_without_a_mix_are_one_without_a_name() -> None:
    source = build({**PLAIN, "requests": 5}, 0)
    assert source.class_names == ("",)
    assert {r.cls for r in source.arrivals()} == {""}


def test_classes_of_a_session_are_one() -> None:
    served = serve(build({**SESSIONS, "requests": 500, "mix": {"a": 1, "b": 1}}, 0), quick)
    by_session = {(r.session, r.cls) for r in served}
    assert len(by_session) == len({s for s, _ in by_session})
    assert {c for _, c in by_session} == {"a", "b"}


# ---- documents ----------------------------------------------------------------------------------


def test_documents_prompt_is_system_then_document_then_question() -> None:
    for r in serve(build({**DOCUMENTS, "requests": 100}, 0), quick):
        (system, document, own) = r.spans
        assert system == (0, 0, 30)
        assert document[:2] == (1 + r.group, 0)
        assert own[0] >= PRIVATE_STREAM_BASE
        assert own[2] == 50 + 100
        assert r.prompt_tokens == 30 + document[2] + 50


def test_documents_keep_their_length_and_are_popular_by_zipf() -> None:
    served = serve(build({**DOCUMENTS, "requests": 20_000}, 0), quick)
    assert len({(r.spans[1][0], r.spans[1][2]) for r in served}) == 20
    counts = Counter(r.group for r in served)
    harmonic = sum(1 / k for k in range(1, 21))
    assert [counts[d] / 20_000 for d in (0, 1, 9)] == pytest.approx(
        [1 / harmonic, 1 / 2 / harmonic, 1 / 10 / harmonic], rel=0.08
    )


@pytest.mark.parametrize("popularity", [0, 0.0, "uniform", None])
def test_documents_without_popularity_are_equally_popular(popularity: object) -> None:
    spec = {**DOCUMENTS, "requests": 20_000, "documents": {"count": 10, "tokens": 100, "popularity": popularity}}
    counts = Counter(r.group for r in serve(build(spec, 0), quick))
    assert min(counts.values()) / max(counts.values()) > 0.88


# ---- sessions -----------------------------------------------------------------------------------


def turns_of(served: list[Request]) -> dict[int, list[Request]]:
    found: dict[int, list[Request]] = {}
    for r in served:
        found.setdefault(r.session, []).append(r)
    return found


def test_sessions_prompt_is_the_whole_context_and_new_tokens() -> None:
    spec = {**SESSIONS, "requests": 4, "turns": 4, "prompt_tokens": 10, "output_tokens": 100}
    served = serve(build(spec, 0), quick)
    system = served[0].spans[0]
    assert [r.prompt_tokens for r in served] == [410, 520, 630, 740]
    assert [r.turn for r in served] == [0, 1, 2, 3]
    assert [r.spans for r in served] == [(system, (3, 0, n)) for n in (110, 220, 330, 440)]


def test_sessions_next_turn_arrives_a_think_time_after_the_end() -> None:
    spec = {**SESSIONS, "requests": 3, "turns": 3, "think_time": 7.5}
    one, two, three = serve(build(spec, 0), lambda r: 2.0)
    assert [two.arrival_s - one.arrival_s, three.arrival_s - two.arrival_s] == pytest.approx([9.5, 9.5])


def test_sessions_streams_collide_with_nothing() -> None:
    served = serve(build({**SESSIONS, "requests": 2000}, 0), quick)
    assert {r.spans[0][0] for r in served} == {0, 1, 2}
    own = {r.spans[1][0]: r.session for r in served}
    assert min(own) == 3
    assert len(set(own.values())) == len(own)
    assert max(own) < PRIVATE_STREAM_BASE


def test_sessions_have_the_turns_and_think_times_asked_for() -> None:
    sessions = turns_of(serve(build({**SESSIONS, "requests": 20_000}, 0), lambda r: 0.0))
    assert 20_000 / len(sessions) == pytest.approx(5, rel=0.03)
    pauses = [b.arrival_s - a.arrival_s for turns in sessions.values() for a, b in pairwise(turns)]
    assert sum(pauses) / len(pauses) == pytest.approx(10, rel=0.03)


def test_sessions_first_prompt_may_differ() -> None:
    served = serve(build({**SESSIONS, "requests": 300, "first_prompt_tokens": 5000}, 0), quick)
    usual = serve(build({**SESSIONS, "requests": 300}, 0), quick)
    assert {r.prompt_tokens for r in served if r.turn == 0} == {5400}
    assert [r.output_tokens for r in served] == [r.output_tokens for r in usual]


def test_sessions_end_before_they_outgrow_the_context() -> None:
    spec = {**SESSIONS, "requests": 3000, "turns": 50, "max_context": 3000}
    sessions = turns_of(serve(build(spec, 0), quick))
    assert all(r.prompt_tokens + r.output_tokens <= 3000 for turns in sessions.values() for r in turns)
    longest = [turns[-1].prompt_tokens + turns[-1].output_tokens for turns in list(sessions.values())[:-1]]
    assert min(longest) > 3000 - 500
    with pytest.raises(InputError, match=r"workload\.max_context = 400: leaves no room"):
        build({**spec, "max_context": 400}, 0)


def test_sessions_first_turn_always_comes_whatever_the_context() -> None:
    spec = {**SESSIONS, "requests": 5, "turns": 5, "prompt_tokens": 1000, "max_context": 900}
    assert [r.turn for r in serve(build(spec, 0), quick)] == [0] * 5


def test_sessions_rejected_turn_ends_its_session() -> None:
    source = build({**SESSIONS, "requests": 10, "turns": 10}, 0)
    first = next(source.arrivals())
    assert source.after(first, 5.0, False) == ()
    assert source.session_over(first)
    assert source.after(first, 5.0, True) == ()


def test_sessions_are_over_after_their_last_turn() -> None:
    source = build({**SESSIONS, "requests": 3, "turns": 3}, 0)
    turn = next(source.arrivals())
    over = []
    for _ in range(3):
        coming = source.after(turn, turn.arrival_s, True)
        over.append(source.session_over(turn))
        (turn,) = coming or (turn,)
    assert over == [False, False, True]


def test_sessions_of_a_closed_loop_are_over_although_another_follows() -> None:
    source = build({**SESSIONS, "requests": 4, "turns": 1, "arrival": {**CLOSED, "users": 1}}, 0)
    first = next(source.arrivals())
    (second,) = source.after(first, 1.0, True)
    assert second.session == 1
    assert source.session_over(first)
    assert not source.session_over(second)


def test_closed_loop_keeps_its_users_busy_and_never_more() -> None:
    served = serve(build({**PLAIN, "requests": 400, "arrival": CLOSED}, 0), lambda r: 3.0)
    assert [r.arrival_s for r in served[:9]] == [0.0] * 8 + [5.0]
    assert Counter(r.arrival_s for r in served) == {5.0 * k: 8 for k in range(50)}


def test_closed_loop_user_of_a_rejected_request_goes_on() -> None:
    source = build({**PLAIN, "requests": 400, "arrival": CLOSED}, 0)
    first = next(source.arrivals())
    (following,) = source.after(first, 1.0, False)
    assert (following.id, following.arrival_s) == (8, 3.0)


def test_closed_loop_of_sessions_starts_a_users_next_session_after_the_last_turn() -> None:
    spec = {**SESSIONS, "requests": 12, "turns": 2, "think_time": 1.0, "arrival": {**CLOSED, "users": 2}}
    served = serve(build(spec, 0), lambda r: 1.0)
    assert [r.arrival_s for r in served] == [0, 0, 2, 2, 5, 5, 7, 7, 10, 10, 12, 12]


def test_closed_loop_with_fewer_requests_than_users_sends_those() -> None:
    assert len(serve(build({**PLAIN, "requests": 3, "arrival": CLOSED}, 0), quick)) == 3


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "plan"}, "workload.kind = 'plan': is not known; did you mean 'plain'?"),
        ({"kind": None}, "workload.kind: is missing"),
        ({"requests": 0}, "workload.requests = 0: must be a finite number of at least 1"),
        ({"requests": 2.5}, "workload.requests = 2.5: must be a whole number"),
        ({"prompt_tokens": None}, "workload.prompt_tokens: is missing"),
        ({"arrival": None}, "workload.arrival: is missing"),
        ({"arrival": {"process": "closed_loop"}}, "workload.arrival.users: is missing"),
        ({"arrival": {"process": "gamma", "rate": 1.0}}, "workload.arrival.cv: is missing"),
        ({"mix": {"a": 0}}, "workload.mix = {'a': 0}: shares sum to zero"),
        ({"mix": {"a": -1}}, "workload.mix.a = -1: must be"),
        ({"system_prompt": {"variants": 2}}, "workload.system_prompt.tokens: is missing"),
        ({"kind": "documents"}, "workload.documents: is missing"),
        ({"kind": "sessions"}, "workload.turns: is missing"),
        ({"kind": "batch"}, "workload.size: is missing"),
    ],
)
def test_build_wrong_spec_is_refused_by_path_and_value(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        build({**PLAIN, "requests": 10, **change}, 0)
    assert message in str(caught.value)


# ---- fixed lists, speed -------------------------------------------------------------------------


def test_fixed_source_sorts_stably_and_names_its_classes() -> None:
    made = [Request(i, t, 1, 1, ((i, 0, 2),), cls=c) for i, (t, c) in enumerate([(2.0, "b"), (1.0, "a"), (1.0, "b")])]
    source = FixedSource(made)
    assert [r.id for r in source.arrivals()] == [1, 2, 0]
    assert source.class_names == ("a", "b")
    assert source.after(made[0], 5.0, True) == ()


@pytest.mark.speed
def test_plain_and_session_requests_cost_microseconds() -> None:
    def cost_s(spec: dict[str, Any]) -> float:
        source = build({**spec, "requests": 50_000}, 0)
        started = perf_counter()
        for request in source.arrivals():
            coming: tuple[Request, ...] = (request,)
            while coming:
                coming = source.after(coming[0], coming[0].arrival_s, True)
        return (perf_counter() - started) / 50_000

    assert min(cost_s(PLAIN) for _ in range(3)) < 4e-6
    assert min(cost_s(SESSIONS) for _ in range(3)) < 10e-6
