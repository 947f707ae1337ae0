"""Scenario files as text: what is read, and what is done with things that aren't scenarios."""

from __future__ import annotations

from pathlib import Path

import pytest

from simkv.errors import InputError
from simkv.scenario import text


def read(content: bytes, folder: Path) -> text.Tree:
    file = folder / "s.yaml"
    file.write_bytes(content)
    return text.read_file(str(file))


def test_parse_tree_remembers_lines() -> None:
    tree = text.parse("a: 1\nb:\n  c: x\n  d: [1, {e: 2}]\n", "s.yaml")
    assert tree.values == {"a": 1, "b": {"c": "x", "d": [1, {"e": 2}]}}
    assert tree.lines["b", "c"] == 3
    assert tree.lines["b", "d", "1", "e"] == 4
    assert tree.line_of(("b", "absent", "deeper")) == 2
    assert tree.line_of(("nothing",)) is None


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True), ("null", None), ("~", None), ("", None), ("7", 7), ("-1", -1), ("1_000", 1000), ("1e3", 1000.0),
        ("0.30", 0.3), ("on", "on"), ("yes", "yes"), ("1:30", "1:30"), ("0x10", "0x10"), ("2026-05-01", "2026-05-01"),
        ("'7'", "7"), ('"true"', "true"), ("25 GB/s", "25 GB/s"),
    ],
)  # fmt: skip
def test_parse_scalar_is_what_it_looks_like(written: str, value: object) -> None:
    parsed = text.parse(f"a: {written}", "s.yaml").values["a"]
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; `simkv init` writes a scenario to start from"),
        (b"# only a comment\n", "is empty; `simkv init` writes a scenario to start from"),
        (b"- a\n- b\n", '1: holds a list, not sections; start with lines such as "name: chatbot"'),
        (b"42", '1: holds a single value, not sections; start with lines such as "name: chatbot"'),
        (b"a: [1, 2", "not valid YAML: while parsing a flow sequence did not find expected ',' or ']'"),
        (b"a: b: c", "1: not valid YAML: mapping values are not allowed in this context"),
        (b"\t", "1: not valid YAML: "),
        (b"a: 1\n---\nb: 2\n", '2: holds more than one document; remove what follows "---"'),
        (b"\xff\xfea\x00:\x00", "is UTF-16; save it as UTF-8"),
        (b"a: 1\nb: \xff\xfe\n", "2: is not UTF-8 text; save it as UTF-8"),
        (b"\x7fELF\x02\x01\x00\x00", "not valid YAML: unacceptable character"),
        (b"a: \x00", "not valid YAML: unacceptable character"),
        (b"PK\x03\x04\x14\x00\x08\x08", "not valid YAML: unacceptable character"),
        (b"[" * 3000, "not valid YAML: "),
        (b"a: " + b"[" * 500, "1: is nested too deeply; the deepest that makes sense is 16 levels"),
        (b"a: 1\n" + b"# padding\n" * 150_000, "is longer than 1 MiB; a scenario is a few dozen lines of YAML"),
        (b"a: [" + b"1," * 60_000 + b"]", "1: has too many values; the most is 50000"),
        (b"%YAML 9.9\n---\na: 1", "1: not valid YAML: found incompatible YAML document"),
    ],
)
def test_read_no_scenario_says_what_it_is(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(content, tmp_path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        ("a: 1\nb: 2\na: 3\n", ["s.yaml:3: a: is given twice (first on line 1); keep one of them"]),
        (
            "a: {b: 1}\na: {b: 1}\n",
            ["s.yaml:2: a: is given twice (first on line 1); keep one of them"],
        ),
        ("a: &x 1\nb: *x\n", ["s.yaml:2: b: *x: aliases aren't supported; write the value out"]),
        ("a: &x [*x]\n", ["s.yaml:1: a.0: *x: aliases aren't supported; write the value out"]),
        ("a: !!binary aGk=\n", ["s.yaml:1: a: the tag tag:yaml.org,2002:binary isn't supported; remove it"]),
        (
            'a: !!python/object/apply:os.system ["true"]\n',
            ["s.yaml:1: a: the tag tag:yaml.org,2002:python/object/apply:os.system isn't supported; remove it"],
        ),
        ("? [a, b]\n: 1\n", ["s.yaml:1: a key must be plain text; write it like name: value"]),
    ],
)
def test_parse_faults_are_collected_with_their_lines(content: str, problems: list[str]) -> None:
    assert [str(p) for p in text.parse(content, "s.yaml").problems] == problems


def test_parse_alias_bomb_stays_small() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    assert len(text.parse(bomb, "s.yaml").problems) == 16


def test_read_byte_order_mark_and_crlf_are_fine(tmp_path: Path) -> None:
    assert read(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n", tmp_path).values == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere.yaml", "nowhere.yaml: can't be read: No such file or directory; `simkv catalog scenarios` lists"),
        (".", ".: is a folder; name a scenario file in it"),
        ("a\0b", "'a\\x00b': can't be read: embedded null byte"),
    ],
)
def test_read_missing_file_says_why(path: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        text.read_file(path)
    assert message in str(caught.value)
