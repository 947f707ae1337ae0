"""The file of kept answers: what it keeps, who may open it, and what it says where it can't be used."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.jobs.job import Failure
from simkv.jobs.store import LAYOUT, Point, Store

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "kept.sqlite"


def test_store_new_folder_is_made_with_the_layout(path: Path) -> None:
    with Store(path) as store:
        assert store.get("a") is None
        assert store.attempts("a") == 0
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (LAYOUT,)


def test_store_life_of_a_key_is_told(path: Path) -> None:
    with Store(path) as store:
        store.begin("a", "the first")
        begun = store.get("a")
        assert begun is not None
        assert (begun.status, begun.label, begun.attempts, begun.answer) == ("begun", "the first", 1, None)
        store.failed("a", Failure("InputError", "wrong"), 0.5)
        failed = store.get("a")
        assert failed is not None
        assert (failed.status, failed.failure, failed.wall_s) == ("failed", Failure("InputError", "wrong"), 0.5)
        store.begin("a", "the first")
        store.done("a", {"x": [1, 2.5, None, "ä"]}, 1.25)
    with Store(path) as store:
        done = store.get("a")
        assert done is not None
        assert (done.status, done.attempts, done.failure, done.wall_s) == ("done", 2, None, 1.25)
        assert done.answer == {"x": [1, 2.5, None, "ä"]}
        assert store.finished() == {"a"}


@given(answer=st.dictionaries(st.text(), PLAIN, max_size=4))
def test_store_any_plain_answer_comes_back_equal(
    answer: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Store(tmp_path_factory.mktemp("s") / "kept.sqlite") as store:
        store.done("a", answer, 0.0)
        kept = store.get("a")
    assert kept is not None
    assert kept.answer == answer


def test_store_not_a_number_is_kept_as_null(path: Path) -> None:
    with Store(path) as store:
        store.done("a", {"x": float("nan"), "y": float("inf")}, 0.0)
        kept = store.get("a")
    assert kept is not None
    assert kept.answer == {"x": None, "y": None}


def test_store_meta_is_replaced_and_read(path: Path) -> None:
    with Store(path) as store:
        store.put("axes", [{"name": "p"}])
        store.put("axes", [{"name": "beta"}])
        assert store.get_meta("axes") == [{"name": "beta"}]
        assert store.get_meta("absent") is None
        assert store.get_meta("absent", {}) == {}


def test_store_points_come_in_order_each_once_with_what_is_kept(path: Path) -> None:
    count = 450  # more than two pages
    with Store(path) as store:
        store.put_points(
            (count - n, json.dumps({"p": n}), seed, f"{n}-{seed}") for n in range(count) for seed in (1, 0)
        )
        store.begin("3-0")
        store.done("3-0", {"v": 3}, 0.1)
        points = list(store.points())
    assert [(p.position, p.seed) for p in points] == [(n + 1, seed) for n in range(count) for seed in (0, 1)]
    assert {p.key: p.kept.answer for p in points if p.kept is not None} == {"3-0": {"v": 3}}


def test_store_points_put_again_move_and_others_stay(path: Path) -> None:
    with Store(path) as store:
        store.put_points([(0, "{}", 0, "a"), (1, "[]", 0, "b")])
        store.put_points([(7, "{}", 0, "a")])
        assert list(store.points()) == [Point(1, "[]", 0, "b", None), Point(7, "{}", 0, "a", None)]


def test_store_in_use_second_writer_is_refused_with_process_and_mend(path: Path) -> None:
    with Store(path), pytest.raises(InputError, match=rf"kept\.sqlite: it is in use by process {os.getpid()}; .*--out"):
        Store(path)
    Store(path).close()


def test_store_writer_killed_frees_it_and_keeps_what_was_committed(path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from simkv.jobs.store import Store\n"
        "s = Store(Path(sys.argv[1])); s.begin('a'); s.done('a', {'x': 1}, 0.1); s.begin('b')\n"
        "s._file.execute('BEGIN IMMEDIATE'); s._file.execute(\"UPDATE results SET answer = 'half'\")\n"
        "s._file.execute('PRAGMA cache_spill = 1'); print('ready', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        with pytest.raises(InputError, match=f"in use by process {writer.pid}"):
            Store(path)
        with Store.read(path) as reader:
            assert reader.finished() == {"a"}
        writer.send_signal(signal.SIGKILL)
    with Store.read(path) as reader:
        assert reader.finished() == {"a"}
    with Store(path) as store:
        kept = store.get("a")
        assert kept is not None
        assert kept.answer == {"x": 1}
        assert store.get("b") is not None


def test_store_half_written_commit_is_undone_by_a_reader(path: Path) -> None:
    """A writer killed while its pages are on their way leaves them in the log: a copy of that moment is opened."""
    moment = path.parent / "moment"
    with Store(path) as store:
        store.done("a", {"x": 1}, 0.0)
        moment.mkdir()
        store._file.execute("PRAGMA cache_size = 1")
        store._file.execute("BEGIN IMMEDIATE")
        store._file.executemany(
            "INSERT INTO results (key, label, status, attempts, answer) VALUES (?, '', 'done', 1, ?)",
            [(f"k{n}", "x" * 5000) for n in range(200)],
        )
        for part in path.parent.glob(f"{path.name}*"):
            (moment / part.name).write_bytes(part.read_bytes())
        store._file.execute("ROLLBACK")
    assert sum(part.stat().st_size for part in moment.iterdir()) > 1_000_000
    with Store.read(moment / path.name) as reader:
        assert reader.finished() == {"a"}


def test_store_closed_leaves_one_file_beside_its_lock(path: Path) -> None:
    with Store(path) as store:
        store.done("a", {"x": 1}, 0.0)
    assert sorted(part.name for part in path.parent.iterdir()) == [path.name, f"{path.name}.lock"]


def test_store_read_while_written_sees_each_commit(path: Path) -> None:
    with Store(path) as store, Store.read(path) as reader:
        for n in range(20):
            store.begin(str(n))
            store.done(str(n), {"n": n}, 0.0)
            assert len(reader.finished()) == n + 1


def test_store_written_between_two_points_of_a_reader_waits_for_nobody(path: Path) -> None:
    with Store(path) as store, Store.read(path) as reader:
        store.put_points([(n, str(n), 0, str(n)) for n in range(300)])
        points = reader.points()
        next(points)
        store.done("299", {"late": 1}, 0.0)
        assert [p.kept.answer for p in points if p.kept is not None] == [{"late": 1}]


def test_store_read_refuses_to_write(path: Path) -> None:
    Store(path).close()
    with Store.read(path) as reader, pytest.raises(InputError, match="read-only"):
        reader.begin("a")


def test_store_read_absent_or_empty_says_that_nothing_is_kept(path: Path) -> None:
    with pytest.raises(InputError, match=r"kept\.sqlite: there are no kept answers; run the sweep first"):
        Store.read(path)
    path.parent.mkdir()
    path.touch()
    with pytest.raises(InputError, match="no kept answers"):
        Store.read(path)
    Store(path).close()
    Store.read(path).close()


@pytest.mark.parametrize("opened", [Store, Store.read])
def test_store_other_file_is_refused_and_left_alone(path: Path, opened: type[Store]) -> None:
    path.parent.mkdir()
    path.write_bytes(b"a,b,c\n" * 500)
    with pytest.raises(InputError, match=r"kept\.sqlite: it is no file of kept answers; move it away"):
        opened(path)
    assert path.read_bytes() == b"a,b,c\n" * 500


def test_store_database_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(InputError, match="no file of kept answers"):
        Store(path)


def test_store_newer_layout_is_refused_with_both_versions(path: Path) -> None:
    Store(path).close()
    file = sqlite3.connect(path)
    file.execute(f"PRAGMA user_version = {LAYOUT + 1}")
    file.close()
    with pytest.raises(InputError, match=rf"newer simkv wrote it \(layout {LAYOUT + 1}, this one knows {LAYOUT}\)"):
        Store(path)


def test_store_damaged_file_is_told(path: Path) -> None:
    with Store(path) as store:
        for n in range(50):
            store.done(str(n), {"x": "y" * 2000}, 0.0)
    data = bytearray(path.read_bytes())
    data[4096 : len(data)] = b"\xff" * (len(data) - 4096)
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="damaged"), Store(path) as store:
        store.finished()


def test_store_full_disk_is_told_and_what_was_kept_stays(path: Path) -> None:
    with Store(path) as store:
        store.done("a", {"x": 1}, 0.0)
        pages = store._file.execute("PRAGMA page_count").fetchone()[0]
        store._file.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(InputError, match=r"kept\.sqlite: no space is left on the disk; make room"):
            store.done("b", {"x": "y" * 100_000}, 0.0)
        assert store.finished() == {"a"}
        store._file.execute("PRAGMA max_page_count = 100000")
        store.done("b", {"x": "y" * 100_000}, 0.0)
        assert store.finished() == {"a", "b"}


def test_store_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(InputError, match=r"kept\.sqlite: it can't be made: .*; pick another folder with --out"):
        Store(tmp_path / "out" / "kept.sqlite")


def test_store_path_that_is_a_folder_is_told(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(InputError, match="can't be opened or made there"):
        Store(path)


@pytest.mark.parametrize("name", ["a b?.sqlite", "per%20cent#.sqlite", "ä&mode=ro.sqlite"])
def test_store_odd_names_are_names(tmp_path: Path, name: str) -> None:
    with Store(tmp_path / name) as store:
        store.done("a", {}, 0.0)
    assert (tmp_path / name).is_file()


def test_store_name_that_is_no_text_is_kept_readable(path: Path) -> None:
    with Store(path) as store:
        store.begin("a", "b\udcff")
        store.failed("a", Failure("InputError", "b\udcff.csv: is missing"), 0.0)
        kept = store.get("a")
    assert kept is not None
    assert (kept.label, kept.failure) == ("b?", Failure("InputError", "b?.csv: is missing"))


def test_store_answer_that_json_cannot_hold_raises_and_keeps_nothing(path: Path) -> None:
    with Store(path) as store:
        with pytest.raises(TypeError):
            store.done("a", {"x": object()}, 0.0)
        assert store.get("a") is None


def test_store_taken_away_while_written_is_told(path: Path) -> None:
    with Store(path) as store:
        store.done("a", {}, 1.0)
        for entry in path.parent.iterdir():
            if entry.name != f"{path.name}.lock":
                entry.unlink()
        with pytest.raises(InputError, match="it was taken away while it was being written; leave it there"):
            store.done("b", {}, 1.0)


def test_store_whose_schema_is_no_text_is_told(path: Path) -> None:
    with Store(path) as store:
        store.put("name", 1)
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA writable_schema = ON")
        file.execute("UPDATE sqlite_schema SET sql = 'x', name = CAST(X'b5b5' AS TEXT) WHERE name = 'results'")
    with pytest.raises(InputError, match="damaged; move it away"):
        Store.read(path)


@pytest.mark.parametrize(
    "harm", ["DROP TABLE meta", "UPDATE meta SET value = '{'", "UPDATE results SET answer = '{', label = 'meta'"]
)
def test_store_table_or_answer_damaged_is_told_with_the_mend(path: Path, harm: str) -> None:
    with Store(path) as store:
        store.put("meta", 1)
        store.done("a", {}, 1.0)
    with sqlite3.connect(path) as file:
        file.execute(harm)
    file.close()
    with Store.read(path) as store, pytest.raises(InputError, match="it is damaged; move it away and run it again"):
        assert store.get("a") is not None
        store.get_meta("meta")
