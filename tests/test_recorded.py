"""``recording.json``: what is written is read back as it was, and nothing that is damaged is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from math import isnan, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.results.recorded import RECORDING, from_json, to_json
from simkv.results.write import write_result
from simkv.scenario.resolve import resolve
from simkv.sim.record.recording import PLAYER, Recording
from simkv.simulation import run_scenario
from tests.results_factory import make_result

ROOT = Path(__file__).parents[1]
SHIPPED = {
    "chatbot": ("chatbot", ("workload.requests=1500",)),
    "agent-sessions": ("agent-sessions", ()),
    "long-context-active": ("long-context-active", ("workload.requests=4", "workload.output_tokens=60")),
    "article-toy": ("article-toy", ()),
    "flexgen": ("flexgen-opt-30b-t4", ("workload.size=48", "engine.gpu_batch_size=16")),
    "two classes": ("qos-two-classes", ("run.duration=60s",)),
}


@cache
def recording(name: str) -> Recording:
    file, assignments = SHIPPED[name]
    resolved = resolve(str(ROOT / "scenarios" / f"{file}.yaml"), [*assignments, "run.baselines=[]"])
    return run_scenario(resolved, record=(PLAYER,)).data.recordings[0]


@pytest.mark.parametrize("name", SHIPPED)
def test_recording_of_a_shipped_scenario_comes_back_as_it_was_and_is_small(name: str) -> None:
    before = recording(name)
    text = to_json(before)
    after = from_json(text)
    assert to_json(after) == text and len(text) < 1_000_000
    assert after.labels == tuple(before.labels) and after.whole == before.whole and after.rule == "latest"
    for table in ("steps", "transfers", "slices", "blocks", "private", "pools"):
        mine, theirs = getattr(before, table), getattr(after, table)
        assert list(mine) == list(theirs)
        assert all(_same(mine[column], theirs[column]) for column in mine), table


def _same(one: Any, other: Any) -> bool:
    pairs = zip(one, other, strict=True)
    return all(a == b or (isnan(a) and isnan(b)) for a, b in pairs)


def test_recording_is_one_line_and_has_null_for_what_is_not_known() -> None:
    before = recording("chatbot")
    steps = dict(before.steps) | {"end_s": (*before.steps["end_s"][:-1], nan)}
    text = to_json(replace(before, steps=steps))
    assert text.count(b"\n") == 1 and b"NaN" not in text
    assert json.loads(text)["steps"]["end_s"][-1] is None
    assert isnan(from_json(text).steps["end_s"][-1])


def damaged(**changes: Any) -> bytes:
    """Return a recording's text in which some values are others; a name with a dot is of a table's column."""
    found = json.loads(to_json(recording("article-toy")))
    for path, value in changes.items():
        *tables, name = path.split(".")
        part = found[tables[0]] if tables else found
        if value is None:
            del part[name]
        else:
            part[name] = value(part[name]) if callable(value) else value
    return json.dumps(found).encode()


def _first(value: Any) -> Any:
    return lambda column: [value, *column[1:]]


DAMAGES: dict[str, tuple[dict[str, Any], str]] = {
    "another format": ({"format": "simkv recording 0"}, "format"),
    "a table is missing": ({"blocks": None}, "blocks"),
    "a column is missing": ({"blocks.what": None}, "blocks.what"),
    "a table is a list": ({"steps": []}, "steps"),
    "a column is a word": ({"blocks.first": "all"}, "blocks.first"),
    "columns of unequal lengths": ({"transfers.bytes": lambda column: column[:-1]}, "transfers.bytes"),
    "a word for a number": ({"blocks.first": _first("0")}, "blocks.first[0]"),
    "true for a number": ({"blocks.first": _first(True)}, "blocks.first[0]"),
    "null for a number": ({"blocks.first": _first([])}, "blocks.first[0]"),
    "half a block": ({"blocks.first": _first(0.5)}, "blocks.first[0]"),
    "a block before the first": ({"blocks.first": _first(-1)}, "blocks.first[0]"),
    "a run that ends before it begins": ({"blocks.first": _first(99)}, "blocks.end[0]"),
    "a huge number": ({"blocks.end": _first(10**30)}, "blocks.end[0]"),
    "a number as huge as JSON has": ({"private.blocks": _first(2**64 - 1)}, "private.blocks[0]"),
    "a time that is no time": ({"blocks.t_s": _first(1e300)}, "blocks.t_s[0]"),
    "times out of order": ({"blocks.t_s": _first(280.0)}, "blocks.t_s[1]"),
    "a tier too many": ({"blocks.tier": _first(3)}, "blocks.tier[0]"),
    "a pool that isn't there": ({"blocks.pool": _first(7)}, "blocks.pool[0]"),
    "a pool twice": ({"pools.tier": [1, 1, 1]}, "pools.pool"),
    "a label too many": ({"blocks.label": _first(10**6)}, "blocks.label[0]"),
    "a lane before the first": ({"transfers.lane": _first(-1)}, "transfers.lane[0]"),
    "a purpose too many": ({"transfers.purpose": _first(99)}, "transfers.purpose[0]"),
    "blocks of no tokens": ({"pools.block_tokens": _first(0)}, "pools.block_tokens[0]"),
    "labels that are numbers": ({"labels": [1]}, "labels"),
    "a flag that is a word": ({"whole": "yes"}, "whole"),
    "an end before the beginning": ({"end_s": -1.0}, "end_s"),
    "no end": ({"end_s": []}, "end_s"),
    "another rule": ({"rule": "first"}, "rule"),
    "uses of nobody": ({"uses": lambda column: [*column, 1]}, "uses"),
    "left out of no pool": ({"left_out_blocks": []}, "left_out_blocks"),
}


@pytest.mark.parametrize("why", DAMAGES)
def test_damaged_recording_is_refused_and_says_where(why: str) -> None:
    changes, where = DAMAGES[why]
    with pytest.raises(InputError) as caught:
        from_json(damaged(**changes), "reports/x/recording.json")
    (problem,) = caught.value.problems
    assert problem.file == "reports/x/recording.json" and problem.path == where and problem.mend
    assert "damaged" in problem.what and len(str(problem)) < 400


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff\xfe", b"[]", b"null", b"1e999", b'{"format": NaN}', b"[" * 100_000, b'"\\ud800"']
)
def test_what_is_no_recording_is_refused(text: bytes) -> None:
    with pytest.raises(InputError):
        from_json(text)


def test_text_larger_than_any_recording_is_refused_unread() -> None:
    with pytest.raises(InputError, match="no recording has more"):
        from_json(b" " * ((64 << 20) + 1))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150)
@given(st.data())
def test_any_value_in_any_place_is_read_or_refused(data: st.DataObject) -> None:
    found = json.loads(to_json(recording("article-toy")))
    part: Any = found
    while isinstance(part, dict | list) and part and data.draw(st.booleans() if part is not found else st.just(True)):
        key = data.draw(st.sampled_from(sorted(part)) if isinstance(part, dict) else st.integers(0, len(part) - 1))
        parent, part = part, part[key]
    parent[key] = data.draw(JSON)
    try:
        text = json.dumps(found, allow_nan=False).encode()
    except ValueError:  # infinite: not in JSON
        return
    try:
        back = from_json(text)
    except InputError:
        return
    assert to_json(from_json(to_json(back))) == to_json(back)


def test_write_result_keeps_the_players_recording_alone(tmp_path: Path) -> None:
    result = make_result(50)
    write_result(result, tmp_path / "without")
    assert not (tmp_path / "without" / RECORDING).exists()
    kept, other = recording("article-toy"), replace(recording("chatbot"), rule="from_start")
    result = replace(result, data=replace(result.data, recordings=(other, kept)))
    write_result(result, tmp_path / "with")
    assert (tmp_path / "with" / RECORDING).read_bytes() == to_json(kept)


def test_recording_of_hostile_names_comes_back(tmp_path: Path) -> None:
    names = (
        '<script>alert("x")</script>',
        "\u202e\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        "'" * 300,
    )
    before = recording("article-toy")
    after = from_json(to_json(replace(before, labels=(*before.labels, *names))))
    assert after.labels == (*before.labels, *names)
