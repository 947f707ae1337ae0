"""One client's ready queue: how many are under way, in which order, and who waits for whom."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.workload.readyqueue import ReadyQueueSource
from simkv.workload.request import Request
from simkv.workload.synthetic import build

Served = list[tuple[Request, float]]
"""Requests in order of sending, each with its end."""


def source(users: int, turns: int, **arrival: Any) -> ReadyQueueSource:
    made = build(
        {
            "kind": "sessions",
            "turns": turns,
            "prompt_tokens": 8,
            "output_tokens": 1,
            "arrival": {"process": "ready_queue", "users": users, **arrival},
        },
        seed=7,
    )
    assert isinstance(made, ReadyQueueSource)
    return made


def serve(of: ReadyQueueSource, lasts: Any, refuse: Any = lambda request: False) -> Served:
    """Serve ``of`` with times that ``lasts`` gives; what ``refuse`` says is refused when it arrives."""
    served: Served = []
    due: list[tuple[float, int, Request]] = []

    def take(requests: Any) -> None:
        for request in requests:
            refused = refuse(request)
            end_s = request.arrival_s + (0.0 if refused else lasts(request))
            served.append((request, end_s))
            heappush(due, (end_s, request.id, request))

    take(of.arrivals())
    while due:
        now, _, request = heappop(due)
        take(of.after(request, now, not refuse(request)))
    return served


shapes = {
    "users": st.integers(1, 8),
    "turns": st.integers(1, 4),
    "most": st.integers(1, 5),
    "rate": st.sampled_from([None, 0.5, 16.0]),
    "order": st.sampled_from(["random", "fifo"]),
    "barrier": st.booleans(),
    "lengths": st.lists(st.floats(0.0, 5.0), min_size=4, max_size=4),
}


@given(**shapes)  # type: ignore[arg-type]
def test_ready_queue_keeps_its_bound_serves_everything_and_waits_for_rounds(
    users: int, turns: int, most: int, rate: float | None, order: str, barrier: bool, lengths: list[float]
) -> None:
    of = source(users, turns, max_parallel=most, rate=rate, order=order, round_barrier=barrier)
    served = serve(of, lambda request: lengths[request.id % 4])
    assert sorted((r.session, r.turn) for r, _ in served) == [(s, t) for s in range(users) for t in range(turns)]
    for request, _ in served:
        under_way = sum(other.arrival_s <= request.arrival_s < end_s for other, end_s in served)
        assert under_way <= most
        before = [end_s for other, end_s in served if other.session == request.session and other.turn < request.turn]
        assert all(end_s <= request.arrival_s for end_s in before)
        if barrier:
            assert all(end_s <= request.arrival_s for other, end_s in served if other.turn < request.turn)
    sent = [request.arrival_s for request, _ in served]
    assert sent == sorted(sent)
    assert all(request.prompt_tokens == 8 + 9 * request.turn for request, _ in served)


def test_ready_queue_is_the_same_each_time_and_follows_its_order() -> None:
    of = source(5, 2, max_parallel=2, rate=4.0, order="random")
    first = [(r.id, r.session, r.arrival_s) for r, _ in serve(of, lambda request: 1.0)]
    assert first == [(r.id, r.session, r.arrival_s) for r, _ in serve(of, lambda request: 1.0)]
    assert [session for _, session, _ in first[:5]] != list(range(5))
    in_turn = serve(source(5, 2, max_parallel=1, order="fifo", round_barrier=True), lambda request: 1.0)
    assert [request.session for request, _ in in_turn] == [*range(5), *range(5)]


def test_ready_queue_without_bound_sends_one_request_a_user_at_once() -> None:
    assert [r.arrival_s for r in source(4, 3).arrivals()] == [0.0] * 4


def test_ready_queue_pauses_after_each_request_as_its_rate_says() -> None:
    sent = [r.arrival_s for r, _ in serve(source(400, 1, rate=16.0), lambda request: 0.0)]
    assert sent[-1] / 399 == pytest.approx(1 / 16, rel=0.15)


def test_refused_turn_ends_its_session_and_holds_nobody_up() -> None:
    of = source(4, 3, max_parallel=2, round_barrier=True)
    served = serve(of, lambda request: 1.0, refuse=lambda request: request.session == 1 and request.turn == 1)
    assert max(r.turn for r, _ in served if r.session == 1) == 1
    assert sum(1 for _ in served) == 4 * 3 - 1


@pytest.mark.parametrize(("key", "value"), [("users", 0), ("max_parallel", 0), ("rate", 0.0), ("order", "lifo")])
def test_wrong_ready_queue_is_refused(key: str, value: object) -> None:
    with pytest.raises(InputError, match=f"arrival.{key}"):
        source(**{"users": 3, "turns": 1, key: value})  # type: ignore[arg-type]
