"""Logs of sparse attention, and their replay: what is read, and what is wrong with those that can't be."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.errors import InputError, Problem
from simkv.kvcache import access
from simkv.kvcache.access import Replay, ReplayAccess, make_pattern
from simkv.workload import accesslog
from simkv.workload.accesslog import read_access_log

Log = dict[int, dict[int, tuple[list[int], list[int] | None]]]
"""Blocks and prefetched blocks by sequence and step."""


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write a log."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def fault(path: Path, text: str | bytes) -> Problem:
    """Return what is wrong with a log of ``text``."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InputError) as caught:
        read_access_log(path)
    (problem,) = caught.value.problems
    assert problem.file == str(path) and problem.what
    return problem


ids = st.lists(st.integers(0, 30), max_size=8, unique=True)
logs: st.SearchStrategy[Log] = st.dictionaries(
    st.integers(0, 5), st.dictionaries(st.integers(0, 40), st.tuples(ids, st.none() | ids), max_size=8), max_size=4
)


@settings(max_examples=60, deadline=None)
@given(logs, st.integers(1, 3), st.randoms(use_true_random=False))
def test_replay_gives_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, log: Log, groups: int, order: Any
) -> None:
    rows = [
        {"step": step, "sequence": sequence, "blocks": blocks} | ({} if fetched is None else {"prefetch": fetched})
        for sequence, steps in log.items()
        for step, (blocks, fetched) in sorted(steps.items())
    ]
    order.shuffle(rows)
    rows.sort(key=lambda row: row["step"])  # sequences mixed, each by rising steps
    if not rows:
        return
    pattern = make_pattern(Replay(written(tmp_path_factory.mktemp("log") / "a.jsonl", rows)), 16, groups, 0)
    for sequence in {row["sequence"] for row in rows}:
        opened = pattern.open(sequence, 31 * 16, 41)
        assert isinstance(opened, ReplayAccess)
        for step in [*range(45), 3, 1]:
            blocks, fetched = log[sequence].get(step, ([], None))
            assert opened.reads(step).tolist() == [b * groups + g for b in blocks for g in range(groups)]
            assert opened.prefetches(step).tolist() == [b * groups + g for b in fetched or () for g in range(groups)]
            assert len(opened.reads(step)) <= pattern.most_units(31 * 16 + step + 1)


def test_log_packed_with_a_byte_order_mark_blank_lines_and_other_keys_is_read(tmp_path: Path) -> None:
    text = (
        b'\xef\xbb\xbf{"step": 1, "sequence": 0, "blocks": [5, 3], "t": 0.5}\r\n\r\n{"step":9,"sequence":0,"blocks":[]}'
    )
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress(text))
    log = read_access_log(path)
    assert log.sequences[0].reads(1).tolist() == [5, 3]
    assert log.sequences[0].reads(9).tolist() == log.sequences[0].reads(0).tolist() == []
    assert log.most_blocks == 2 and not log.has_prefetch


def test_log_says_whether_anything_was_prefetched(tmp_path: Path) -> None:
    row = {"step": 0, "sequence": 0, "blocks": [0]}
    assert not read_access_log(written(tmp_path / "a", [row | {"prefetch": []}])).has_prefetch
    assert read_access_log(written(tmp_path / "b", [row | {"prefetch": [1]}])).has_prefetch


@pytest.mark.parametrize(
    ("row", "path", "value", "what"),
    [
        ('{"sequence": 0, "blocks": []}', "step", "", "is missing"),
        ('{"step": 0, "seq": 0, "blocks": []}', "sequence", "", "is missing"),
        ('{"step": 0, "sequence": 0, "block": []}', "blocks", "", "is missing"),
        ('{"step": -1, "sequence": 0, "blocks": []}', "step", "-1", "is negative"),
        ('{"step": 1.0, "sequence": 0, "blocks": []}', "step", "1.0", "is not a whole number"),
        ('{"step": true, "sequence": 0, "blocks": []}', "step", "true", "is not a whole number"),
        ('{"step": null, "sequence": 0, "blocks": []}', "step", "null", "is not a whole number"),
        ('{"step": "3", "sequence": 0, "blocks": []}', "step", '"3"', "is not a whole number"),
        ('{"step": 2147483648, "sequence": 0, "blocks": []}', "step", "2147483648", "is more than"),
        ('{"step": 0, "sequence": 1e400, "blocks": []}', None, None, None),
        ('{"step": 0, "sequence": -3, "blocks": []}', "sequence", "-3", "is negative"),
        ('{"step": 0, "sequence": 0, "blocks": 3}', "blocks", "3", "is a number, not a list"),
        ('{"step": 0, "sequence": 0, "blocks": null}', "blocks", "null", "is null, not a list"),
        ('{"step": 0, "sequence": 0, "blocks": [0, -1]}', "blocks", "-1", "is negative"),
        ('{"step": 0, "sequence": 0, "blocks": [0, 1.5]}', "blocks", "1.5", "not a whole number"),
        ('{"step": 0, "sequence": 0, "blocks": [true]}', "blocks", "true", "not a whole number"),
        ('{"step": 0, "sequence": 0, "blocks": [[0]]}', "blocks", "[0]", "not a whole number"),
        ('{"step": 0, "sequence": 0, "blocks": [4294967296]}', "blocks", "4294967296", "is more than"),
        ('{"step": 0, "sequence": 0, "blocks": [7, 3, 7]}', "blocks", "7", "comes twice"),
        ('{"step": 0, "sequence": 0, "blocks": [], "prefetch": [2, 2]}', "prefetch", "2", "comes twice"),
        ('{"step": 0, "sequence": 0, "blocks": [], "prefetch": null}', "prefetch", "null", "is null, not a list"),
        ('{"step": 0, "sequence": 0, "blocks": [], "prefetched": []}', "prefetched", "[]", "no key of this format"),
        ('{"step": 0, "sequence": 0, "blocks": [NaN]}', None, None, "is not JSON"),
        ('{"step": 99999999999999999999999999, "sequence": 0, "blocks": []}', None, None, None),
        ('{"step": 0, "sequence": 0, "blocks": [0]', None, None, "is not JSON"),
        ("[0, 0, []]", None, None, "is a list, not an object"),
        ("step sequence blocks", None, None, "is not JSON"),
    ],
)
def test_log_of_a_wrong_row_names_line_key_value_and_mend(
    tmp_path: Path, row: str, path: str | None, value: str | None, what: str | None
) -> None:
    problem = fault(tmp_path / "log", '{"step": 0, "sequence": 9, "blocks": [0]}\n' + row + "\n")
    assert problem.line == 2 and problem.mend
    assert path is None or (problem.path, problem.value) == (path, value)
    assert what is None or what in problem.what


def test_log_of_steps_that_do_not_rise_names_the_line_before(tmp_path: Path) -> None:
    first = '{"step": 4, "sequence": 0, "blocks": [0]}\n{"step": 0, "sequence": 1, "blocks": [0]}\n'
    back = fault(tmp_path / "log", first + '{"step": 3, "sequence": 0, "blocks": [0]}\n')
    assert (back.line, back.path, back.value) == (3, "step", "3")
    assert back.what == "goes back: it was 4 for sequence 0 (line 1)"
    twice = fault(tmp_path / "log", first + '{"step": 4, "sequence": 0, "blocks": []}\n')
    assert twice.what == "comes twice for sequence 0 (line 1)"


@pytest.mark.parametrize(
    "text", [b"", b"\n\n", b"\xff\xfe{\0", b"PAR1", b"\0\0", gzip.compress(b"{}" * 9, mtime=0)[:-9]]
)
def test_log_that_is_no_text_is_refused(tmp_path: Path, text: bytes) -> None:
    fault(tmp_path / "log", text)


def test_log_that_is_cut_off_asks_for_the_whole(tmp_path: Path) -> None:
    assert fault(tmp_path / "log", gzip.compress(b"{}" * 9, mtime=0)[:-9]).mend == "get a whole copy of the file"


def test_log_with_old_line_ends_is_refused(tmp_path: Path) -> None:
    row = '{"step": 0, "sequence": 0, "blocks": [0]}\r{"step": 1, "sequence": 0, "blocks": [0]}\r'
    assert "is not JSON" in fault(tmp_path / "log", row).what


def test_log_of_too_many_ids_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accesslog, "MOST_IDS", 5)
    rows = [{"step": i, "sequence": 0, "blocks": [0, 1], "prefetch": [2]} for i in range(2)]
    problem = fault(tmp_path / "log", "".join(json.dumps(row) + "\n" for row in rows))
    assert problem.line == 2 and "block ids" in problem.what


def test_replay_of_a_request_that_the_log_lacks_is_refused(tmp_path: Path) -> None:
    log = written(tmp_path / "log", [{"step": 0, "sequence": 0, "blocks": [0]}])
    pattern = make_pattern(Replay(log), 16, 1, 0)
    with pytest.raises(InputError, match="no request of that number") as caught:
        pattern.open(1, 100, 5)
    assert (caught.value.problems[0].file, caught.value.problems[0].value) == (str(log), "1")
    assert pattern.open(1, 100, 1).reads(0).tolist() == []


def test_replay_of_blocks_that_the_request_does_not_have_yet_names_the_line(tmp_path: Path) -> None:
    """100 tokens and the one of step 11 fill 7 blocks; with that of step 12 there are 8."""
    rows = [{"step": step, "sequence": 0, "blocks": [0, 6]} for step in (0, 11)]
    late = {"step": 12, "sequence": 0, "blocks": [7], "prefetch": [7]}
    make_pattern(Replay(written(tmp_path / "log", [*rows, late])), 16, 2, 0).open(0, 100, 20)
    for key in ("blocks", "prefetch"):
        early = {"step": 11, "sequence": 0, "blocks": [0], key: [7, 3]}
        pattern = make_pattern(Replay(written(tmp_path / "log", [rows[0], early, late])), 16, 2, 0)
        with pytest.raises(InputError, match="past the 7 blocks of 16 tokens at step 11") as caught:
            pattern.open(0, 100, 20)
        problem = caught.value.problems[0]
        assert (problem.line, problem.path, problem.value) == (2, key, "7")


def test_replay_of_steps_that_the_request_does_not_come_to_names_the_line(tmp_path: Path) -> None:
    rows = [{"step": step, "sequence": 0, "blocks": [0]} for step in (0, 4, 5)]
    pattern = make_pattern(Replay(written(tmp_path / "log", rows)), 16, 1, 0)
    pattern.open(0, 100, 6)
    with pytest.raises(InputError, match="past the last step") as caught:
        pattern.open(0, 100, 5)
    assert (caught.value.problems[0].line, caught.value.problems[0].value) == (3, "5")


def test_replay_says_what_it_is(tmp_path: Path) -> None:
    log = written(tmp_path / "log", [{"step": 0, "sequence": 0, "blocks": [4, 0]}])
    pattern = make_pattern(Replay(log), 16, 3, 0)
    assert (pattern.sparse, pattern.groups, pattern.most_units(1000), pattern.most_units(16)) == (True, 3, 6, 3)


def test_log_is_read_once_and_again_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "log", [{"step": 0, "sequence": 0, "blocks": [1]}])
    reads = []
    monkeypatch.setattr(access, "read_access_log", lambda path: reads.append(path) or read_access_log(path))

    def first() -> list[int]:
        pattern = make_pattern(Replay(path), 16, 1, 0)
        return pattern.open(0, 64, 2).reads(0).tolist()

    assert [first(), first(), len(reads)] == [[1], [1], 1]
    written(path, [{"step": 0, "sequence": 0, "blocks": [2, 3]}])
    assert [first(), len(reads)] == [[2, 3], 2]
