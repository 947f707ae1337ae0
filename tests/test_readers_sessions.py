"""Recorded sessions: what each turn waits for, replay in a closed loop, and files that are odd."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.scenario.build import workload_source
from simkv.scenario.resolve import resolve, resolve_text
from simkv.simulation import run_scenario
from simkv.workload.inspect import inspect_requests
from simkv.workload.readers import ReadReport, SessionsSource, files, open_trace
from simkv.workload.readers.agent_sessions import MOST_NESTED, AgentSessionsReader
from simkv.workload.readers.plan import SessionPlan
from simkv.workload.request import PRIVATE_STREAM_BASE as P
from simkv.workload.request import Source
from simkv.workload.starts import session_starts
from simkv.workload.streams import Streams
from simkv.workload.writer import convert
from tests.serving import Served, serve, tens
from tests.sim_factory import column, run, run_system
from tests.sim_factory import system_config as machine

Write = Callable[..., Path]
Entry = dict[str, Any]


def asked(t: float, tokens: int = 640, out: int = 5, first: int = 1, **more: Any) -> Entry:
    """Return a request whose blocks are ``first``, ``first + 1``, ..."""
    ids = list(range(first, first + tokens // 64))
    return {"t": t, "type": "n", "model": "m", "in": tokens, "out": out, "hash_ids": ids, "api_time": 10.0, **more}


def agent(t: float, duration_s: float | None, *requests: Entry, **more: Any) -> Entry:
    """Return a subagent that ended at ``t``."""
    entry = {"t": t, "type": "subagent", "agent_id": "a", "status": "completed", "requests": list(requests), **more}
    return entry if duration_s is None else {**entry, "duration_ms": duration_s * 1000}


def session(*entries: Entry, **more: Any) -> dict[str, Any]:
    return {"id": "s", "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": list(entries), **more}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writer(*sessions: Any, name: str = "trace_{}.json") -> Path:
        """Write a file a session and return the file, or the folder where there are several."""
        folder = tmp_path / "sessions"
        folder.mkdir(exist_ok=True)
        for k, one in enumerate(sessions):
            (folder / name.format(k)).write_text(one if isinstance(one, str) else json.dumps(one))
        return folder if len(sessions) > 1 else folder / name.format(0)

    return writer


def plans(path: Path) -> list[SessionPlan]:
    return list(AgentSessionsReader().sessions(path, ReadReport()))


def plan(path: Path) -> list[tuple[tuple[int, ...], float]]:
    """Return of each turn what it waits for and its pause."""
    (only,) = plans(path)
    return [(turn.after, round(turn.pause_s, 6)) for turn in only.turns]


def complaint(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        list(open_trace(path, **options).reader.read(path, ReadReport()))
    return str(caught.value)


def notes(path: Path) -> dict[str, int]:
    report = ReadReport()
    list(AgentSessionsReader().read(path, report))
    return {note.code: note.count for note in report.notes.values()}


@contextmanager
def peak_memory() -> Iterator[Callable[[], int]]:
    """Trace what is allocated inside; the result says how much that was at most."""
    peak_bytes = 0
    tracemalloc.start()
    tracemalloc.reset_peak()
    before_bytes, _ = tracemalloc.get_traced_memory()
    try:
        yield lambda: peak_bytes
    finally:
        peak_bytes = tracemalloc.get_traced_memory()[1] - before_bytes
        tracemalloc.stop()


# ---- what no run can hold -----------------------------------------------------------------------


def test_session_whose_turn_waits_longer_than_any_run_is_refused(write: Write) -> None:
    path = write(session(asked(0.0), asked(2e5)))
    assert len(list(open_trace(path).arrivals())) == 1
    with pytest.raises(InputError, match=r"trace_0.json: a turn of session 0 would arrive after 1\.9999e\+10 s"):
        list(open_trace(path, time_scale=1e5).arrivals())


@pytest.mark.parametrize(("block_tokens", "most"), [(512, 2**53), (10**9, 2**62 // 10**9)])
def test_session_with_ids_that_no_span_can_hold_is_refused(
    write: Write, tmp_path: Path, block_tokens: int, most: int
) -> None:
    """Whatever is read can also be converted, and read again."""
    entry = {**asked(0.0), "in": block_tokens, "hash_ids": [most]}
    said = f"requests[0].hash_ids[0] = {most}: is a hash rather than a block number"
    assert said in complaint(write(session(entry, block_size=block_tokens)))
    path = write(session({**entry, "hash_ids": [most - 1]}, block_size=block_tokens))
    source, out = open_trace(path), tmp_path / "out.jsonl"
    assert convert(source, ReadReport(), out) == 1
    (request,) = open_trace(out).arrivals()
    assert request.spans[0][1:] == ((most - 1) * block_tokens, block_tokens)


@pytest.mark.parametrize("packed", [False, True])
def test_session_larger_than_the_most_is_refused_before_it_fills_the_memory(
    write: Write, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    path = write(session(asked(0.0)))
    text = path.read_bytes() + b" " * (32 << 20)
    path.write_bytes(gzip.compress(text) if packed else text)
    assert len(plans(path)) == 1
    monkeypatch.setattr(files, "MAX_WHOLE_BYTES", 1 << 18)
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 1 << 18)  # detection parses the first line, whatever it is
    with peak_memory() as peak_bytes:
        assert "is larger than 262,144 bytes; split it into files of one session each" in complaint(path)
    assert peak_bytes() < 24 << 20


def test_session_takes_no_more_memory_than_its_file(write: Write) -> None:
    path = write(session(asked(0.0)))
    with peak_memory() as peak_bytes:
        files.whole(path)
    assert peak_bytes() < 24 << 20


# ---- what a turn waits for ----------------------------------------------------------------------


def test_turns_follow_each_other_after_their_think_time(write: Write) -> None:
    path = write(session(asked(0.0, think_time=0.0), asked(15.0, think_time=4.5), asked(40.0, think_time=15.2)))
    assert plan(path) == [((), 0.0), ((0,), 4.5), ((1,), 15.2)]


def test_turn_without_think_time_pauses_for_what_is_left_of_the_gap(write: Write) -> None:
    path = write(session(asked(0.0), asked(15.0), asked(24.0, api_time=3.0), asked(26.5)))
    assert plan(path) == [((), 0.0), ((0,), 5.0), ((1,), 0.0), ((2,), 0.0)]
    assert notes(path) == {"no_think_time": 3}


def test_turn_behind_one_without_api_time_pauses_from_its_start(write: Write) -> None:
    """Its think_time counts from the last end that was known: 115 s, which the request between is part of."""
    rows = [asked(0.0, think_time=0.0), asked(60.0, think_time=50.0, api_time=None), asked(125.0, think_time=115.0)]
    path = write(session(*rows))
    assert plan(path) == [((), 0.0), ((0,), 50.0), ((1,), 65.0)]
    assert notes(path) == {"no_api_time": 1}


def test_subagent_runs_between_and_its_duration_is_not_counted_twice(write: Write) -> None:
    """The subagent starts 2 s after the answer at 10, at 12 (its own t is its end), and ends at 112 with an answer."""
    inner = [asked(0.0, think_time=0.0), asked(30.0, think_time=20.0), asked(90.0, think_time=50.0)]
    path = write(session(asked(0.0, think_time=0.0), agent(115.0, 103.0, *inner), asked(130.0, think_time=120.0)))
    assert plan(path) == [((), 0.0), ((0,), 2.0), ((1,), 20.0), ((2,), 50.0), ((0, 3), 18.0)]
    served = serve(open_trace(path), tens)
    assert served.starts() == [(0, 0.0), (1, 12.0), (2, 42.0), (3, 102.0), (4, 130.0)]


def test_subagents_side_by_side_run_side_by_side_and_are_all_waited_for(write: Write) -> None:
    rows = [
        asked(0.0),
        agent(200.0, 188.0, asked(0.0), asked(100.0)),
        agent(62.0, 50.0, asked(0.0)),
        asked(210.0),
    ]
    path = write(session(*rows))
    assert plan(path) == [((), 0.0), ((0,), 2.0), ((1,), 90.0), ((0,), 2.0), ((0, 2, 3), 88.0)]
    slow = serve(open_trace(path), lambda r: 1000.0 if r.id == 3 else 10.0)
    assert dict(slow.starts()) == {0: 0.0, 1: 12.0, 2: 112.0, 3: 12.0, 4: 1012.0 + 88.0}
    assert notes(path)["back"] == 1


def test_subagent_in_the_background_is_not_waited_for_until_it_had_ended(write: Write) -> None:
    rows = [asked(0.0), agent(500.0, 488.0, asked(0.0, api_time=400.0)), asked(20.0), asked(40.0), asked(600.0)]
    path = write(session(*rows))
    assert plan(path) == [((), 0.0), ((0,), 2.0), ((0,), 10.0), ((2,), 10.0), ((1, 3), 188.0)]


def test_requests_that_overlap_wait_for_what_the_earlier_one_waited_for(write: Write) -> None:
    path = write(session(asked(0.0), asked(20.0, api_time=30.0), asked(25.0), asked(27.0, api_time=40.0), asked(90.0)))
    assert plan(path) == [((), 0.0), ((0,), 10.0), ((0,), 15.0), ((0,), 17.0), ((1, 2, 3), 23.0)]


def test_requests_that_overlap_the_first_start_on_their_own(write: Write) -> None:
    path = write(session(asked(0.0, api_time=50.0), asked(5.0), asked(60.0)))
    assert plan(path) == [((), 0.0), ((), 5.0), ((0, 1), 10.0)]


def test_subagent_before_any_request_starts_the_session(write: Write) -> None:
    path = write(session(agent(30.0, 28.0, asked(0.0)), asked(40.0)))
    assert plan(path) == [((), 0.0), ((0,), 28.0)]


def test_subagents_nest(write: Write) -> None:
    inmost = agent(40.0, 20.0, asked(0.0))
    path = write(session(asked(0.0), agent(80.0, 68.0, asked(0.0), inmost, asked(50.0)), asked(100.0)))
    assert plan(path) == [((), 0.0), ((0,), 2.0), ((1,), 10.0), ((1, 2), 8.0 + 12.0), ((0, 3), 28.0)]
    (only,) = plans(path)
    assert [turn.request.arrival_s for turn in only.turns] == [0.0, 12.0, 32.0, 62.0, 100.0]


def test_subagent_times_may_count_from_the_sessions_start(write: Write) -> None:
    inner = [asked(112.0), asked(130.0)]
    path = write(session(asked(0.0), asked(90.0), agent(145.0, 33.0, *inner), asked(160.0)))
    assert plan(path) == [((), 0.0), ((0,), 80.0), ((1,), 12.0), ((2,), 8.0), ((1, 3), 20.0)]


def test_subagent_without_a_duration_starts_at_its_time(write: Write) -> None:
    path = write(session(asked(0.0), agent(12.0, None, asked(0.0)), asked(50.0)))
    assert plan(path) == [((), 0.0), ((0,), 2.0), ((0, 1), 28.0)]


def test_session_that_was_cut_starts_with_its_first_turn(write: Write) -> None:
    path = write(session(asked(500.0), asked(520.0)))
    assert plan(path) == [((), 0.0), ((0,), 10.0)]
    assert serve(open_trace(path), tens).starts() == [(0, 0.0), (1, 20.0)]


# ---- random sessions ----------------------------------------------------------------------------

EVEN = st.integers(1, 40).map(lambda n: 2.0 * n)
"""Times in even seconds: none is within the resolution of recorded times of another, unless equal."""


@dataclass
class Recorded:
    """A chain as it was recorded, and what its requests must come after."""

    entries: list[Entry]
    ends_s: float
    """When the last of it ended."""


def drawn_chain(draw: Any, base_s: float, own_s: float, depth: int) -> Recorded:
    """Record a chain from ``own_s`` on, in times that count from ``base_s``; its entries carry their truth."""
    entries: list[Entry] = []
    clock_s = own_s
    for _ in range(draw(st.integers(1, 3))):
        takes_s = draw(EVEN)
        entries.append(asked(clock_s - base_s, api_time=takes_s, truth=clock_s))
        clock_s += takes_s
        done_s = clock_s
        for _ in range(draw(st.integers(0, 2)) if depth else 0):
            starts_s = clock_s + draw(EVEN)
            inner = drawn_chain(draw, starts_s, starts_s, depth - 1)
            ended_s = inner.ends_s + draw(st.sampled_from([0.0, 2.0]))
            entries.append(agent(ended_s - base_s, ended_s - starts_s, *inner.entries))
            done_s = max(done_s, ended_s)
        clock_s = done_s + draw(EVEN)
    return Recorded(entries, done_s)


def flat(entries: list[Entry]) -> Iterator[Entry]:
    for entry in entries:
        if "in" in entry:
            yield entry
        else:
            yield from flat(entry["requests"])


@st.composite
def recordings(draw: Any) -> list[Entry]:
    return drawn_chain(draw, 0.0, 0.0, 2).entries


def written(path: Path, entries: list[Entry]) -> Path:
    path.write_text(json.dumps(session(*entries)))
    return path


@given(recordings())
def test_replay_at_the_recorded_speed_is_the_recording(tmp_path_factory: Any, entries: list[Entry]) -> None:
    path = written(tmp_path_factory.mktemp("s") / "a.json", entries)
    requests = list(flat(entries))
    served = serve(open_trace(path), lambda r: requests[r.id]["api_time"])
    assert served.starts() == [(k, round(entry["truth"], 6)) for k, entry in enumerate(requests)]


@given(recordings(), st.lists(st.floats(0.0, 300.0), min_size=40, max_size=40), st.floats(0.1, 3.0))
def test_replay_at_any_speed_keeps_the_order_and_the_pauses(
    tmp_path_factory: Any, entries: list[Entry], takes_s: list[float], scale: float
) -> None:
    path = written(tmp_path_factory.mktemp("s") / "a.json", entries)
    (only,) = plans(path)
    served = serve(open_trace(path, time_scale=scale), lambda r: takes_s[r.id % 40])
    requests = list(flat(entries))
    assert sorted(r.id for r in served.requests) == sorted(served.ends_s) == list(range(len(requests)))
    assert served.over == [0]
    starts = dict(served.starts())
    for k, turn in enumerate(only.turns):
        assert all(before < k for before in turn.after)
        ended_s = max((served.ends_s[before] for before in turn.after), default=0.0)
        assert starts[k] == pytest.approx(ended_s + turn.pause_s * scale, abs=2e-6)
    for k, entry in enumerate(requests):  # whatever had ended a pause before something is waited for, or by what is
        for before in only.turns[k].after:
            assert requests[before]["truth"] + requests[before]["api_time"] <= entry["truth"] + 1


@given(recordings())
def test_rejected_turns_lose_nothing_of_their_session(tmp_path_factory: Any, entries: list[Entry]) -> None:
    path = written(tmp_path_factory.mktemp("s") / "a.json", entries)
    served = serve(open_trace(path), tens, rejects=lambda r: r.id % 2 == 0)
    assert len(served.requests) == len(list(flat(entries)))
    assert served.over == [0]


# ---- content ------------------------------------------------------------------------------------


def test_content_ids_are_of_full_blocks_and_a_files_own(write: Write) -> None:
    first = asked(0.0, 150, hash_ids=[7, 8])
    second = asked(9.0, 200, hash_ids=[7, 8, 3])
    made = list(
        open_trace(write(session(first, second), session(second))).reader.read(
            write(session(first), session(second)), ReadReport()
        )
    )
    assert made[0].spans == ((1, 7 * 64, 128), (P, 0, 22 + 5))
    assert made[1].spans == ((2, 7 * 64, 128), (2, 3 * 64, 64), (P + 1, 0, 8 + 5))


def test_content_of_a_global_scope_is_shared_and_never_over(write: Write) -> None:
    path = write(session(asked(0.0), hash_id_scope="global"), session(asked(0.0), hash_id_scope="global"))
    source = open_trace(path)
    served = serve(source, tens)
    assert {r.spans[0] for r in served.requests} == {(0, 64, 640)}
    assert served.over == []


def test_content_without_a_scope_is_local_and_noted(write: Write) -> None:
    path = write({k: v for k, v in session(asked(0.0)).items() if k != "hash_id_scope"})
    assert plans(path)[0].turns[0].request.spans[0][0] == 1
    assert notes(path) == {"no_scope": 1}


def test_content_of_an_ended_session_is_forgotten(write: Write) -> None:
    path = write(*(session(asked(0.0), agent(60.0, 45.0, asked(0.0, first=50)), asked(80.0)) for _ in range(3)))
    system, data = run_system(machine(), open_trace(path))
    assert data.finished == 9
    assert len(system.ceiling) == 0


def test_request_without_output_is_kept_with_one_token(write: Write) -> None:
    path = write(session(asked(0.0, out=0), asked(20.0)))
    made = plans(path)[0].turns
    assert [turn.request.output_tokens for turn in made] == [1, 5]
    assert notes(path)["no_output"] == 1


def test_requests_are_flat_with_recorded_times_for_inspection(write: Write) -> None:
    rows = [asked(0.0), agent(60.0, 48.0, asked(0.0, first=90), asked(20.0, first=90)), asked(80.0)]
    path = write(session(*rows), session(asked(0.0)))
    report = ReadReport()
    made = list(AgentSessionsReader().read(path, report))
    assert [(r.id, r.session, r.turn, r.arrival_s) for r in made] == [
        (0, 0, 0, 0.0),
        (1, 0, 1, 12.0),
        (2, 0, 2, 32.0),
        (3, 0, 3, 80.0),
        (4, 1, 0, 0.0),
    ]
    assert report.block_tokens == 64
    assert all(sum(length for _, _, length in r.spans) == r.prompt_tokens + r.output_tokens for r in made)


# ---- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (asked(0.0, tokens=0), "requests[1].in = 0: is no tokens at all"),
        (asked(0.0, tokens=200, hash_ids=[1]), "requests[1].hash_ids = [1]: has 1 ids where in = 200 makes 4 blocks"),
        (asked(0.0, hash_ids="x"), 'requests[1].hash_ids = "x": is text, not a list'),
        (asked(-4.0), "requests[1].t = -4.0: is negative"),
        (asked(0.0, out=None), "requests[1].out = null: is null, not a number"),
        (asked(0.0, type="q"), 'requests[1].type = "q": is not known; write "n", or "s" where it streamed'),
        (asked(0.0, api_time="1"), 'requests[1].api_time = "1": is text, not a number'),
        (asked(0.0, think_time=-1), "requests[1].think_time = -1: is negative"),
        (5, "requests[1] = 5: is a number, not an object"),
        ({"t": 0.0, "type": "n", "out": 5}, "requests[1].in: is missing"),
        (agent(9.0, 5.0, {"t": 1.0}), "requests[1].requests[0].requests: is missing"),
        (agent(9.0, 5.0, asked(0.0, tokens=0)), "requests[1].requests[0].in = 0: is no tokens at all"),
        (agent(9.0, None, asked(0.0), duration_ms="9"), 'requests[1].duration_ms = "9": is text'),
        ({**agent(9.0, 5.0), "requests": 4}, "requests[1].requests = 4: is a number, not a list"),
    ],
)
def test_bad_entry_is_answered_with_file_place_value(write: Write, entry: Any, message: str) -> None:
    path = write(session(asked(0.0), entry))
    text = complaint(path)
    assert text.startswith(f"{path}: {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps(session(asked(0.0)))[:-20], "is not JSON: "),
        (json.dumps(session()), "requests = []: holds no request"),
        (json.dumps(session(agent(5.0, 3.0))), "holds no request"),
        (json.dumps(session(asked(0.0), block_size=0)), "block_size = 0: is no tokens at all"),
        (json.dumps({"block_size": 64, "hash_id_scope": "local"}), "requests: is missing"),
        (json.dumps(session(asked(0.0), hash_id_scope="cluster")), 'hash_id_scope = "cluster": is not known'),
    ],
)
def test_bad_file_is_answered(write: Write, text: str, message: str) -> None:
    assert message in complaint(write(text))


def test_bad_file_of_a_folder_is_named(write: Write) -> None:
    folder = write(session(asked(0.0)), session(asked(0.0, tokens=0)), "{")
    assert complaint(folder).startswith(f"{folder}/trace_1.json: requests[0].in = 0")


def test_bad_file_of_a_folder_stops_no_session_before_it(write: Write) -> None:
    folder = write(session(asked(0.0)), "{")
    assert len(serve(open_trace(folder, limit=1), tens).requests) == 1


def test_nesting_without_end_is_refused(write: Write) -> None:
    entry = asked(0.0)
    for _ in range(MOST_NESTED + 1):
        entry = agent(50.0, 40.0, entry)
    assert "is nested over 16 deep" in complaint(write(session(entry)))


def test_duplicate_sessions_are_two_and_noted(write: Write) -> None:
    folder = write(session(asked(0.0)), session(asked(0.0, tokens=128)), session(asked(0.0), id="other"))
    assert len(plans(folder)) == 3
    assert notes(folder) == {"duplicate": 1}


def test_sessions_of_two_block_sizes_are_refused(write: Write) -> None:
    folder = write(session(asked(0.0)), session(asked(0.0, 64, hash_ids=[1, 2, 3, 4]), block_size=16))
    assert "trace_1.json: block_size = 16: differs from the 64 of the sessions before" in complaint(folder)


def test_files_of_a_folder_are_taken_by_name_and_others_left_alone(write: Write) -> None:
    folder = write(*(session(asked(0.0, 64 * (k + 1))) for k in range(3)), name="{}.json")
    (folder / "README.md").write_text("no session")
    (folder / ".hidden.json").write_text("no session")
    (folder / "1.json").rename(folder / "9.json")
    (folder / "8.json.gz").write_bytes(gzip.compress(json.dumps(session(asked(0.0, 640))).encode()))
    assert [p.turns[0].request.prompt_tokens for p in plans(folder)] == [64, 192, 640, 128]


def test_folders_of_other_files_are_refused(tmp_path: Path) -> None:
    assert "is a folder, not a trace file; there is a.jsonl" in complaint(_with(tmp_path / "x", "a.jsonl", "{}"))
    mooncake = json.dumps({"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [0]})
    folder = _with(tmp_path / "y", "a.json", mooncake)
    assert "is a folder, not a trace file; there is a.json" in complaint(folder)
    assert "is a folder, not a trace file" in complaint(folder, format="mooncake")


def _with(folder: Path, name: str, text: str) -> Path:
    folder.mkdir()
    (folder / name).write_text(text)
    return folder


def test_sessions_are_recognised_however_they_are_laid_out(tmp_path: Path) -> None:
    pretty = _with(tmp_path / "x", "a.json", json.dumps(session(asked(0.0)), indent=2)) / "a.json"
    assert isinstance(open_trace(pretty), SessionsSource)


# ---- when sessions start ------------------------------------------------------------------------

TWO = session(asked(0.0, think_time=0.0), asked(15.0, think_time=5.0))


def starting(path: Path, arrival: dict[str, Any], seed: int = 0, **options: Any) -> SessionsSource:
    source = open_trace(path, starts=session_starts(arrival, Streams(seed), "workload.arrival"), **options)
    assert isinstance(source, SessionsSource)
    return source


def first_starts(served: Served) -> list[float]:
    return [start_s for i, start_s in served.starts() if i % 2 == 0]


def test_sessions_start_at_once_unless_told(write: Write) -> None:
    path = write(*[TWO] * 4)
    assert first_starts(serve(open_trace(path), tens)) == [0.0] * 4
    assert first_starts(serve(starting(path, {"process": "all_at_once"}), tens)) == [0.0] * 4


def test_sessions_start_at_the_times_of_a_process(write: Write) -> None:
    path = write(*[TWO] * 5)
    served = serve(starting(path, {"process": "constant", "rate": 0.1}), tens)
    assert first_starts(served) == [0.0, 10.0, 20.0, 30.0, 40.0]
    runs = [first_starts(serve(starting(path, {"process": "poisson", "rate": 0.1}, seed), tens)) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_sessions_of_users_follow_each_other(write: Write) -> None:
    """A session lasts 25 s here; a user then pauses for 3 s."""
    path = write(*[TWO] * 5)
    source = starting(path, {"process": "closed_loop", "users": 2, "think_time": 3.0})
    served = serve(source, tens)
    assert first_starts(served) == [0.0, 0.0, 28.0, 28.0, 56.0]
    assert sorted(served.over) == [0, 1, 2, 3, 4]


def test_sessions_of_more_users_than_there_are_sessions_all_start(write: Write) -> None:
    assert first_starts(serve(starting(write(*[TWO] * 3), {"process": "closed_loop", "users": 9}), tens)) == [0.0] * 3


def test_limit_counts_sessions(write: Write) -> None:
    path = write(*[TWO] * 5)
    for arrival in ({"process": "all_at_once"}, {"process": "closed_loop", "users": 1}):
        assert len(serve(starting(path, arrival, limit=3), tens).requests) == 6
    assert "workload.limit = 0" in complaint(path, limit=0)


def test_duration_lets_no_session_start_after_it(write: Write) -> None:
    path = write(*[TWO] * 9)
    served = serve(starting(path, {"process": "constant", "rate": 0.1}, duration_s=30.0), tens)
    assert first_starts(served) == [0.0, 10.0, 20.0]
    served = serve(starting(path, {"process": "closed_loop", "users": 1}, duration_s=70.0), tens)
    assert first_starts(served) == [0.0, 25.0, 50.0]


def test_time_scale_stretches_pauses_and_nothing_else(write: Write) -> None:
    path = write(TWO, TWO)
    served = serve(starting(path, {"process": "constant", "rate": 0.1}, time_scale=3.0), tens)
    assert served.starts() == [(0, 0.0), (1, 25.0), (2, 10.0), (3, 35.0)]


def test_source_starts_over_with_the_same_requests(write: Write) -> None:
    source = starting(write(TWO, TWO, TWO), {"process": "poisson", "rate": 0.05})
    assert serve(source, tens).starts() == serve(source, tens).starts()


def test_source_reads_a_session_when_it_starts(write: Write) -> None:
    folder = write(TWO, TWO, "{")
    source = starting(folder, {"process": "constant", "rate": 0.001})
    arrivals = source.arrivals()
    assert next(arrivals).session == 0
    assert source.report.kept <= 4
    next(arrivals)
    with pytest.raises(InputError, match=r"trace_2\.json"):
        list(arrivals)


def test_expected_requests_are_those_of_the_files(write: Write) -> None:
    source = open_trace(write(TWO, session(asked(0.0), agent(50.0, 30.0, asked(0.0))), TWO))
    assert isinstance(source, SessionsSource)
    assert source.expected_requests() == 6


def test_prompt_beyond_the_models_limit_is_turned_away_and_its_session_goes_on(write: Write) -> None:
    rows = [asked(0.0, 640), asked(50.0, 64_000), asked(90.0, 1280), asked(120.0, 1344)]
    data = run(machine(max_model_len=2000), open_trace(write(session(*rows), session(*rows))))
    assert (data.arrived, data.finished, data.rejected) == (8, 6, 2)
    assert column(data, "rejected") == [False, True, False, False] * 2


def test_system_runs_sessions_with_subagents_under_all_laws(write: Write) -> None:
    inner = [asked(0.0, 320, first=80), asked(20.0, 384, first=80)]
    rows = [asked(0.0), agent(60.0, 48.0, *inner), agent(50.0, 38.0, *inner), asked(80.0, 704), asked(99.0, 768)]
    folder = write(*(session(*rows) for _ in range(6)))
    data = run(machine(dram_blocks=500), starting(folder, {"process": "poisson", "rate": 0.01}))
    assert (data.arrived, data.finished) == (42, 42)
    assert sum(column(data, "hit_vram_tokens")) > 0


# ---- the public sessions ------------------------------------------------------------------------


@pytest.fixture
def public(shared: Path) -> Path:
    return shared / "traces/claude_code_sessions"


@pytest.mark.shared
def test_public_sessions_have_the_statistics_of_the_index(public: Path) -> None:
    report = ReadReport("agent-sessions")
    made = list(AgentSessionsReader().read(public, report))
    prompts, outputs = ([getattr(r, f"{key}_tokens") for r in made] for key in ("prompt", "output"))
    assert (len(made), len({r.session for r in made})) == (1_006, 43)
    assert [round(np.mean(prompts)), round(np.median(prompts)), np.percentile(prompts, 95, method="inverted_cdf")] == [
        98_133,
        97_896,
        165_087,
    ]
    assert [round(np.mean(outputs)), round(np.median(outputs))] == [503, 278]
    assert {note.code: note.count for note in report.notes.values()} == {
        "no_api_time": 112,
        "no_think_time": 21,
        "no_output": 1,
    }
    cache = inspect_requests(iter(made), report).answer()["infinite_cache"]
    assert round(cache["block_hit_rate"], 3) == round(cache["token_hit_rate"], 3) == 0.918


@pytest.mark.shared
def test_public_subagents_start_when_the_request_before_had_ended(public: Path) -> None:
    """Read as a start, the t of either subagent would lie behind the next request of the session."""
    (only,) = plans(public / "trace_0003.json")
    spawned = [k for k, turn in enumerate(only.turns) if k and turn.request.spans[0][1] == 36_622 * 64]
    firsts = [k for k in spawned if k - 1 not in spawned]
    assert [only.turns[k].after for k in firsts] == [(firsts[0] - 1,), (firsts[1] - 1,)]
    assert [only.turns[k].pause_s for k in firsts] == pytest.approx([0.942, 0.894], abs=1e-3)
    after = [next(k for k in range(first, 500) if k not in spawned) for first in firsts]
    assert [only.turns[k].after for k in after] == [(first - 1, k - 1) for first, k in zip(firsts, after, strict=True)]
    assert [only.turns[k].pause_s for k in after] == pytest.approx([153 - 130.492, 3069 - 3051.604], abs=1e-3)


@pytest.mark.shared
def test_public_sessions_replayed_as_recorded_take_as_long_as_recorded(public: Path) -> None:
    """Recorded times are whole seconds, so a session drifts by the rounding of its turns, a third of a second each."""
    for path in sorted(public.iterdir()):
        entries = list(flat(json.loads(path.read_text())["requests"]))
        if any(entry.get("api_time") is None for entry in entries):
            continue
        recorded_s = max(turn.request.arrival_s for turn in plans(path)[0].turns)
        served = serve(open_trace(path), lambda r, entries=entries: entries[r.id]["api_time"])
        drift_s = max(start_s for _, start_s in served.starts()) - recorded_s
        assert abs(drift_s) <= 1 + 0.35 * len(entries)


# ---- scenarios ----------------------------------------------------------------------------------

SCENARIO = """
name: s
model: {kv_bytes_per_token: 1KiB}
hardware: {step_time: 1s, kv_tokens: 100000}
workload: {kind: trace, path: %s, %s}
"""


def sourced(path: Path, more: str, seed: int = 0) -> Source:
    return workload_source(resolve_text(SCENARIO % (path, more)), seed)


def test_scenario_says_when_sessions_start(write: Write) -> None:
    path = write(*[TWO] * 4)
    assert first_starts(serve(sourced(path, "format: auto"), tens)) == [0.0] * 4
    constant = "arrival: {process: constant, rate: 6 req/min}, limit: 3, time_scale: 2"
    assert serve(sourced(path, constant), tens).starts() == [(0, 0), (1, 20), (2, 10), (3, 30), (4, 20), (5, 40)]
    users = "arrival: {process: closed_loop, users: 1, think_time: 1s}"
    assert first_starts(serve(sourced(path, users), tens)) == [0.0, 26.0, 52.0, 78.0]
    poisson = "arrival: {process: poisson, rate: 6 req/min}"
    runs = [first_starts(serve(sourced(path, poisson, seed), tens)) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            "format: mooncake, arrival: {process: all_at_once}",
            "does nothing with format mooncake; it is for format agent",
        ),
        (
            "format: agent-sessions, block_tokens: 64",
            "workload.block_tokens = 64: does nothing with format agent-sessions",
        ),
        (
            "block_tokens: 64",
            "workload.block_tokens: does nothing with format agent-sessions: the format says how large",
        ),
        ("format: agent-sessions, columns: {arrival: t}", "workload.columns: does nothing with format agent-sessions"),
        ("arrival: {process: poisson}", "workload.arrival.rate"),
    ],
)
def test_scenario_refuses_what_would_do_nothing(write: Write, more: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        sourced(write(TWO), more)
    assert message in str(caught.value)


def test_scenario_hash_is_of_what_a_folder_holds(write: Write) -> None:
    def digest() -> str:
        return resolve_text(SCENARIO % (folder, "format: auto")).scenario_hash

    folder = write(TWO, TWO)
    before = digest()
    assert digest() == before
    for other in ("README.md", ".DS_Store"):
        (folder / other).write_text("no session")
    assert digest() == before, "what isn't read doesn't count"
    (folder / "trace_1.json").write_text(json.dumps(session(asked(0.0))))
    assert digest() != before


def test_shipped_sessions_are_odd_in_every_way_and_all_served() -> None:
    resolved = resolve(str(Path(__file__).parents[1] / "scenarios/agent-sessions.yaml"))
    found = notes(Path(resolved.scenario.workload.path.path))  # type: ignore[union-attr]
    assert set(found) == {"back", "no_output", "no_api_time", "no_think_time"}
    summary = run_scenario(resolved).summary
    assert summary["requests"] == {"arrived": 193, "finished": 193, "rejected": 0, "live": 0}
    assert summary["hit_rate"]["dram"] > 0
    assert summary["baselines"]["no_offload"]["hit_rate"]["miss"] > summary["hit_rate"]["miss"]


@pytest.mark.shared
def test_shipped_scenario_runs_the_public_sessions(public: Path) -> None:
    file = str(Path(__file__).parents[1] / "scenarios/agent-sessions.yaml")
    summary = run_scenario(resolve(file, [f"workload.path={public}"])).summary
    counts = summary["requests"]
    assert counts["arrived"] == 1_006
    assert counts["finished"] + counts["rejected"] == 1_006
    (rejected,) = (w["message"] for w in summary["warnings"] if w["code"] == "rejected")
    assert f"{counts['rejected']} of 1,006 requests" in rejected
    assert summary["verdict"]["offload_helps"]
    assert 0.9 < summary["hit_rate"]["ceiling"] < 0.94
