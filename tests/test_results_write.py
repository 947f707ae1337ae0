"""The result folder: what is in it, what it refuses, and that it is whole or not there."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simkv import files
from simkv.errors import InputError
from simkv.results import write
from simkv.results.columns import REQUEST_FIELDS
from simkv.results.frames import ROW_GROUP
from simkv.results.result import RunResult
from simkv.results.summary import summarize
from simkv.results.write import check_out, write_result
from simkv.sim.rundata import TIMESERIES_COLUMNS
from tests.results_factory import make_context, make_result, make_run

FILES = ["requests.parquet", "scenario.resolved.yaml", "summary.json", "timeseries.parquet"]
ROOT = Path(__file__).parents[1]


def contents(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_write_result_writes_the_folder_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    result = make_result(300)
    write_result(result, tmp_path / "deep" / "chatbot")
    assert contents(tmp_path / "deep") == ["chatbot"]
    assert contents(tmp_path / "deep" / "chatbot") == FILES
    folder = tmp_path / "deep" / "chatbot"
    assert json.loads((folder / "summary.json").read_text("utf-8")) == result.summary
    assert (folder / "scenario.resolved.yaml").read_text("utf-8") == "name: chatbot\n"
    assert folder.stat().st_mode & 0o777 == 0o777 & ~files._umask()


def test_write_result_requests_hold_every_record_and_null_for_unknown(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    data = make_run(200, rejected=2, classes=("fast", "gründlich"))
    write_result(RunResult(summarize(data, make_context()), data, "", "chatbot", "h"), tmp_path / "r")
    table = pq.read_table(tmp_path / "r" / "requests.parquet")
    assert set(table.column_names) == set(REQUEST_FIELDS)
    assert table.num_rows == 202
    for name in ("id", "arrival_s", "hit_dram_tokens", "rejected"):
        assert table[name].to_pylist() == data.requests[name].tolist()
    assert set(table["class"].to_pylist()) == {"fast", "gründlich"}
    assert table["ttft_s"].to_pylist()[:2] == [None, None]
    assert table["scheduled_s"].null_count == 2
    ttft = data.requests["first_token_s"] - data.requests["arrival_s"]
    assert table["ttft_s"].to_pylist()[2:] == ttft[2:].tolist()
    assert pq.read_table(tmp_path / "r" / "timeseries.parquet").column_names == list(TIMESERIES_COLUMNS)


def test_write_result_of_many_row_groups_keeps_all_rows(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    data = make_run(2 * ROW_GROUP + 1)
    write_result(RunResult(summarize(data, make_context()), data, "", "chatbot", "h"), tmp_path / "r")
    table = pq.read_table(tmp_path / "r" / "requests.parquet", columns=["id", "e2e_s"])
    assert np.array_equal(table["id"].to_numpy(), data.requests["id"])
    assert np.array_equal(table["e2e_s"].to_numpy(), data.requests["finish_s"] - data.requests["arrival_s"])


def test_write_result_of_no_requests_writes_empty_tables(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    write_result(make_result(0), tmp_path / "r")
    assert pq.read_table(tmp_path / "r" / "requests.parquet").num_rows == 0


def test_write_result_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_result(make_result(500), tmp_path / name)
    for file in FILES:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_write_result_replaces_an_older_result_of_the_same_scenario_whole(tmp_path: Path) -> None:
    out = tmp_path / "chatbot"
    write_result(make_result(100), out)
    (out / "report.html").write_text("old")
    write_result(make_result(200), out)
    assert contents(out) == FILES and contents(tmp_path) == ["chatbot"]
    assert json.loads((out / "summary.json").read_text())["requests"]["finished"] == 200


def test_write_result_takes_an_empty_folder_and_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_result(make_result(50), tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and contents(tmp_path / "real") == FILES


@pytest.mark.parametrize("kind", ["foreign", "file", "other", "broken", "list", "loop", "below a file"])
def test_write_result_where_something_else_is_refuses_and_changes_nothing(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    if kind == "foreign":
        out.mkdir()
        (out / "thesis.tex").write_text("years of work")
    elif kind == "file":
        out.write_text("a file")
    elif kind == "other":
        write_result(make_result(50, scenario="another"), out)
    elif kind == "broken":
        out.mkdir()
        (out / "summary.json").write_text("{")
    elif kind == "list":
        out.mkdir()
        (out / "summary.json").write_text('["chatbot"]')
    elif kind == "loop":
        out.symlink_to(out)
    else:
        out.write_text("a file")
        out = out / "deeper"
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(InputError, match="pick another folder with --out") as refusal:
        write_result(make_result(50), out)
    assert str(out) in str(refusal.value)
    if kind == "other":
        assert "another" in str(refusal.value)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_check_out_says_before_the_run_what_write_would(tmp_path: Path) -> None:
    assert check_out(tmp_path / "new", "chatbot") == (tmp_path / "new").resolve()
    assert not (tmp_path / "new").exists()
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"thesis\.tex"):
        check_out(tmp_path, "chatbot")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_write_result_on_a_failing_disk_keeps_the_old_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    out = tmp_path / "chatbot"
    write_result(make_result(100), out)

    def fail(*_: Any) -> str:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(write, "summary_text", fail)
    with pytest.raises(InputError, match="can't write there"):
        write_result(make_result(200), out)
    assert contents(tmp_path) == ["chatbot"]
    assert json.loads((out / "summary.json").read_text())["requests"]["finished"] == 100


def test_write_result_on_a_full_device_refuses(tmp_path: Path) -> None:
    """Parquet's own writer meets the full disk: a limit on file size stands in for it."""
    code = (
        "import resource, signal, sys; from pathlib import Path; from tests.results_factory import make_result\n"
        "from simkv.results.write import write_result; from simkv.errors import InputError\n"
        "import pyarrow.parquet; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "result = make_result(20000); resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try: write_result(result, Path(sys.argv[1]))\n"
        "except InputError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "r")], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert "can't write there" in done.stdout
    assert contents(tmp_path) == []


def test_write_result_when_renaming_fails_puts_the_old_result_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "chatbot"
    write_result(make_result(100), out)
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if self.name.endswith(".part") and not Path(target).exists():
            raise OSError(errno.EIO, "Input/output error")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(InputError):
        write_result(make_result(200), out)
    assert contents(tmp_path) == ["chatbot"] and contents(out) == FILES


def test_write_result_by_two_runs_at_once_leaves_one_whole_result(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.results_factory import make_result\n"
        "from simkv.results.write import write_result\n"
        "result = make_result(50)\n"
        "for _ in range(40): write_result(result, Path(sys.argv[1]))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "chatbot")]
    runs = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], errors
    assert contents(tmp_path) == ["chatbot"] and contents(tmp_path / "chatbot") == FILES


def test_write_result_does_not_import_pandas(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.results_factory import make_result\n"
        "from simkv.results.write import write_result; write_result(make_result(50), Path(sys.argv[1]))\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "r")], check=True, cwd=ROOT)


def test_result_frames_are_the_tables(tmp_path: Path) -> None:
    import pandas as pd

    result = make_result(120)
    write_result(result, tmp_path / "r")
    frame = result.requests
    stored = pd.read_parquet(tmp_path / "r" / "requests.parquet")
    assert list(frame.columns) == list(stored.columns)
    assert frame["e2e_s"].equals(stored["e2e_s"])
    assert list(frame["class"].astype(str)) == list(stored["class"].astype(str))
    assert len(result.timeseries) == 201
