"""What scenarios may be called, and what their folders are called then."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.scenario.explain import to_yaml
from simkv.scenario.naming import TITLE, folder_name
from simkv.scenario.resolve import resolve
from tests.report_factory import HOSTILE, ROOT

CHATBOT = ROOT / "scenarios" / "chatbot.yaml"


def named(tmp_path: Path, name: str):
    """Return the chatbot as a scenario called ``name``, resolved from a file."""
    import yaml

    text = CHATBOT.read_text("utf-8").replace("name: chatbot\n", yaml.safe_dump({"name": name}, allow_unicode=True), 1)
    file = tmp_path / "scenario.yaml"
    file.write_text(text, "utf-8")
    return resolve(str(file), [])


@pytest.mark.parametrize("name", ["script", "breakout", "emoji", "long", "link", "math"])
def test_name_of_any_visible_text_is_taken_and_comes_back_from_the_resolved_scenario(tmp_path, name):
    found = named(tmp_path, HOSTILE[name].strip())
    assert found.scenario.name == HOSTILE[name]
    again = tmp_path / "again.yaml"
    again.write_text(to_yaml(found), "utf-8")
    assert resolve(str(again), []).scenario.name == HOSTILE[name]
    assert resolve(str(again), []).scenario_hash == found.scenario_hash


@pytest.mark.parametrize("name", [HOSTILE["lines"], HOSTILE["control"], HOSTILE["right_to_left"], " a", "a ", "a\nb"])
def test_name_with_what_cannot_be_seen_is_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"name = .*: not a name; use one line of text") as caught:
        named(tmp_path, name)
    assert str(caught.value).isprintable()


def test_name_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(InputError, match="the most is 300"):
        named(tmp_path, "n" * 301)


@pytest.mark.parametrize("title", ["chatbot", "a.b_c-1", "x" * 100])
def test_folder_of_a_plain_name_is_that_name(title):
    assert folder_name(title) == title


@given(st.text(max_size=300))
def test_folder_of_any_name_is_one_that_any_file_system_takes(title):
    folder = folder_name(title)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", folder)
    assert folder_name(title) == folder


def test_folders_of_names_that_differ_in_what_is_left_out_differ():
    assert len({folder_name(title) for title in ("a/b", "a b", "a?b", "../a b", "模型", "型模")}) == 6
    assert folder_name("../../etc/passwd").startswith("etc-passwd-")


def test_pattern_is_read_alike_by_python_for_other_programs():
    assert re.search(TITLE, "a b")
    assert not re.search(TITLE, "a\u202eb")
