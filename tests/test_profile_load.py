"""Calibration profiles as files: what is refused, and what comes back of what was written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.profile.load import LARGEST_BYTES, read_profile, write_profile
from simkv.profile.schema import Points, Profile, Sample
from tests.profile_factory import make_compute, make_link, make_profile


@pytest.fixture
def tree(tmp_path: Path) -> dict[str, Any]:
    write_profile(make_profile(), tmp_path / "good.json")
    read: dict[str, Any] = json.loads((tmp_path / "good.json").read_text())
    return read


def wrong(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_profile(path)
    assert all(str(path) in one.file for one in caught.value.problems)
    assert all(one.mend for one in caught.value.problems)
    return str(caught.value)


def changed(tree: dict[str, Any], where: str, value: Any) -> dict[str, Any]:
    *outer, last = where.split(".")
    at: Any = tree
    for part in outer:
        at = at[int(part)] if part.isdigit() else at[part]
    at[int(last) if last.isdigit() else last] = value
    return tree


BYTES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "zeros": (b"\0" * 4096, "is empty"),
    "binary": (bytes(range(256)), "not UTF-8"),
    "utf-16": ('{"schema": 1}'.encode("utf-16"), "not UTF-8"),
    "truncated": (b'{"schema": "simkv-calibration-1", "name": "a', "cut off"),
    "open": (b'{"schema": "simkv-calibration-1", "fit": {', "cut off"),
    "text": (b"hardware: rtx-4090\n", "not JSON"),
    "list": (b"[1, 2]", "not a JSON object"),
    "null": (b"null", "not a JSON object"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
    "deep": (b"[" * 200_000, "nested too deeply"),
    "deep environment": (
        b'{"schema": "simkv-calibration-1", "environment": ' + b'{"a":' * 600 + b"1" + b"}" * 600 + b"}", "not JSON"
    ),
    "digits": (b'{"schema": ' + b"9" * 5000 + b"}", "not JSON"),
    "twice": (b'{"schema": "simkv-calibration-1", "name": "a", "name": "b"}', "name: the key is there twice"),
    "no schema": (b'{"name": "a"}', "schema: is missing"),
    "other schema": (b'{"schema": "simkv-calibration-2"}', 'schema = "simkv-calibration-2": calibrated by a newer'),
    "a result": (b'{"schema": 3, "ttft": 1}', "simkv calibrate"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BYTES)
def test_read_file_that_is_no_profile_says_so(kind: str, tmp_path: Path) -> None:
    content, said = BYTES[kind]
    (tmp_path / "p.json").write_bytes(content)
    assert said in wrong(tmp_path / "p.json")


def test_read_missing_file_folder_and_pipe_are_refused(tmp_path: Path) -> None:
    assert "no such file" in wrong(tmp_path / "none.json")
    assert "is a folder" in wrong(tmp_path)
    os.mkfifo(tmp_path / "pipe.json")
    assert "not a regular file" in wrong(tmp_path / "pipe.json")


def test_read_file_of_more_than_64_mib_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "p.json").open("wb") as file:
        file.truncate(LARGEST_BYTES + 1)
    assert "more than 64 MiB" in wrong(tmp_path / "p.json")


def test_read_unreadable_name_is_refused() -> None:
    with pytest.raises(InputError, match="can't be read"):
        read_profile("a\0b.json")


FAULTS: tuple[tuple[str, Any, str], ...] = (
    ("fit.h2d.bytes_per_s", 0, "fit.h2d.bytes_per_s = 0: too small; the least is 1"),
    ("fit.h2d.bytes_per_s", -5e9, "fit.h2d.bytes_per_s = -5000000000.0: too small"),
    ("fit.h2d.bytes_per_s", 1e30, "fit.h2d.bytes_per_s = 1e+30: too large; the most is 1e+18"),
    ("fit.h2d.bytes_per_s", "6e9", 'fit.h2d.bytes_per_s = "6e9"'),
    ("fit.h2d.bytes_per_s", True, "fit.h2d.bytes_per_s = true"),
    ("fit.h2d.setup_s", -1e-6, "fit.h2d.setup_s = -1e-06: too small; the least is 0"),
    ("fit.h2d.smallest_bytes", 1e9, "fit.h2d: smallest_bytes is more than largest_bytes"),
    ("fit.h2d.speed", 1, "fit.h2d.speed = 1: unknown key"),
    ("colour", "red", 'colour = "red": unknown key'),
    ("fit.compute.linear", [[1, 1e-3], [1, 2e-3]], "fit.compute.linear: x doesn't rise: 1 follows 1"),
    ("fit.compute.linear", [[8, 1e-3], [4, 2e-3]], "fit.compute.linear: x doesn't rise: 4 follows 8"),
    ("fit.compute.linear", [], "fit.compute.linear: "),
    ("fit.compute.linear.1.1", 1e-300, "fit.compute.linear[1][1] = 1e-300: too small; the least is 1e-12"),
    ("fit.compute.linear.1.1", 1e12, "fit.compute.linear[1][1] = 1000000000000.0: too large"),
    ("fit.compute.linear.1.0", 0, "fit.compute.linear[1][0] = 0: too small; the least is 1"),
    ("fit.compute.linear.1.1", -1.0, "fit.compute.linear[1][1] = -1.0: too small"),
    ("fit.compute.linear.1", [1, 2, 3], "fit.compute.linear[1]"),
    ("fit.compute.decode.1.batch", 1, "fit.compute.decode: batch 1 follows 1"),
    ("fit.compute.prefill", [[1e-320, 1e-3], [2e-320, 1.0]], "fit.compute.prefill[0][0] = 1e-320: too small"),
    ("fit.compute.decode.2.batch", 10**400, "fit.compute.decode[2].batch = 1000"),
    ("name", "a\n\x1b[31m", "name: nothing that can be printed"),
    ("name", "", "name: nothing that can be printed"),
    ("fit.compute.shape", {"layers": 2}, "fit.compute.shape: not the shape of a model"),
    ("fit.compute.shape.layers", 0, "fit.compute.shape.layers = 0: too small"),
    ("fit.compute.shape.layers", 1.5, "fit.compute.shape.layers = 1.5"),
    ("fit.compute.dtype", "int4", 'fit.compute.dtype = "int4"'),
    ("fit.contention.compute_during", {"nvlink": 1.5}, "fit.contention.compute_during.nvlink"),
    ("fit.contention.compute_during.h2d", 0.5, "fit.contention.compute_during.h2d = 0.5: too small; the least is 1"),
    ("fit.contention.after_wait", 0.5, "fit.contention.after_wait = 0.5: too small; the least is 1"),
    ("samples.0.seconds", [], "samples[0].seconds"),
    ("samples.0.seconds.1", None, "samples[0].seconds[1] = null"),
    ("samples.0.at.bytes", [1], "samples[0].at.bytes = [1]"),
    ("samples", None, "samples = null"),
    ("device.kind", "tpu", 'device.kind = "tpu"'),
    ("device.memory_bytes", 0, "device.memory_bytes = 0: too small"),
    ("name", "x" * 3000, "name: "),
    ("verification", [], "verification = []"),
)  # fmt: skip


@pytest.mark.parametrize(("where", "value", "said"), FAULTS, ids=[f"{w}-{v!s:.12}" for w, v, _ in FAULTS])
def test_read_faulty_value_names_path_value_and_mend(
    where: str, value: Any, said: str, tree: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "p.json").write_text(json.dumps(changed(tree, where, value)))
    assert said in wrong(tmp_path / "p.json")


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("where", ["fit.h2d.bytes_per_s", "samples.0.at.bytes", "environment.torch"])
def test_read_number_that_is_not_finite_is_refused(
    where: str, literal: str, tree: dict[str, Any], tmp_path: Path
) -> None:
    text = json.dumps(changed(tree, where, "HERE")).replace('"HERE"', literal)
    (tmp_path / "p.json").write_text(text)
    path = where.replace(".0", "[0]")
    said = wrong(tmp_path / "p.json")
    assert f"{path} = " in said
    assert "not a finite number" in said


def test_read_many_faults_reports_ten_and_counts_the_rest(tree: dict[str, Any], tmp_path: Path) -> None:
    tree["samples"] = [{"kind": "h2d", "at": {}, "seconds": [-1.0]}] * 40
    tree["device"].pop("name")
    (tmp_path / "p.json").write_text(json.dumps(tree))
    with pytest.raises(InputError) as caught:
        read_profile(tmp_path / "p.json")
    assert len(caught.value.problems) == 11
    assert "and 31 more" in str(caught.value)
    assert "device.name: is missing" in str(caught.value)


def test_read_byte_order_mark_is_no_fault(tree: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "p.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(tree).encode())
    assert read_profile(tmp_path / "p.json").name == "test-cpu"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(junk=st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
), key=st.sampled_from(
    ["name", "device", "environment", "samples", "fit", "verification", "fit.compute", "fit.h2d", "fit.memory",
     "fit.compute.decode", "fit.compute.decode.0", "fit.contention", "fit.host", "samples.0", "samples.0.at"]
))  # fmt: skip
def test_read_any_junk_in_any_place_reads_or_is_refused(
    junk: Any, key: str, tree: dict[str, Any], tmp_path: Path
) -> None:
    text = json.dumps(changed(json.loads(json.dumps(tree)), key, junk))
    (tmp_path / "p.json").write_text(text)
    try:
        read_profile(tmp_path / "p.json")
    except InputError as error:
        assert str(tmp_path) in str(error)


def points() -> st.SearchStrategy[Any]:
    xs = st.lists(st.integers(1, 1 << 40), min_size=1, max_size=6, unique=True).map(sorted)
    ys = st.floats(1e-9, 1e5)
    return xs.flatmap(lambda x: st.tuples(*(st.tuples(st.just(float(one)), ys) for one in x)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    linear=points(), head=points(), rate=st.floats(1.0, 1e18), repeats=st.lists(st.floats(1e-9, 1e5), min_size=1),
    name=st.text(st.characters(blacklist_categories=("Cc", "Cf", "Cn", "Co", "Cs", "Z")), min_size=1, max_size=20),
    environment=st.dictionaries(st.text(st.characters(blacklist_categories=("Cs",)), max_size=8), st.integers()),
)  # fmt: skip
def test_write_then_read_gives_the_profile_back_to_six_digits(
    linear: Points, head: Points, rate: float, repeats: list[float], name: str, environment: dict[str, int],
    tmp_path: Path,
) -> None:  # fmt: skip
    profile = make_profile(
        name=name, environment=environment, compute=make_compute(linear=linear, head=head), h2d=make_link(rate),
        samples=(Sample(kind="linear", at={"tokens": 1, "direct": True, "memory": "pinned"}, seconds=tuple(repeats)),),
    )  # fmt: skip
    write_profile(profile, tmp_path / "a.json")
    back = read_profile(tmp_path / "a.json")
    write_profile(back, tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert read_profile(tmp_path / "b.json") == back
    assert (back.name, back.environment, back.samples[0].at) == (name, environment, profile.samples[0].at)
    assert back.fit.compute is not None
    assert [x for x, _ in back.fit.compute.linear] == [x for x, _ in linear]
    assert [y for _, y in back.fit.compute.linear] == pytest.approx([y for _, y in linear], rel=5e-6)
    assert back.samples[0].seconds == pytest.approx(repeats, rel=5e-6)


def test_write_keeps_lists_of_numbers_on_a_line_and_the_schema_first(tmp_path: Path) -> None:
    sample = Sample(kind="head", at={"tokens": 1}, seconds=tuple(1e-3 + n * 1.23456789e-6 for n in range(60)))
    write_profile(make_profile(samples=(sample,)), tmp_path / "p.json")
    lines = (tmp_path / "p.json").read_text("utf-8").splitlines()
    assert lines[1] == '  "schema": "simkv-calibration-1",'
    (seconds,) = [line for line in lines if "0.00100123" in line]
    assert seconds.count(",") >= 59
    assert lines[-1] == "}"


def test_write_failing_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.json"
    write_profile(make_profile(), path)
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match="no space is left"):
        write_profile(make_profile(name="other"), path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["p.json"]


UNWRITABLE: dict[str, Callable[[], Profile]] = {
    "nan": lambda: make_profile(environment={"date": float("nan")}),
    "points that fall together": lambda: make_profile(compute=make_compute(linear=((1.0000001, 1.0), (1.0000002, 2)))),
}


@pytest.mark.parametrize("kind", UNWRITABLE)
def test_write_profile_that_could_not_be_read_is_refused(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        write_profile(UNWRITABLE[kind](), tmp_path / "p.json")
    assert list(tmp_path.iterdir()) == []


def test_write_over_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder"):
        write_profile(make_profile(), tmp_path)
