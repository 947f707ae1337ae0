"""``simkv trace fetch`` against a server of our own: the right file or none, and what is said when it isn't."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

from simkv.catalog.traces import PublicTrace, list_public_traces, load_public_trace
from simkv.cli import app, fetching
from simkv.workload.fetch import cache_folder, fetch
from simkv.workload.readers import READERS, ReadReport

TRACE = b'{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 5}\n' * 5000
HASH = hashlib.sha256(TRACE).hexdigest()
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"


class _Answers(BaseHTTPRequestHandler):
    """Serves a trace whole, cut off, as a pointer, or not at all."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        if self.path.startswith("/whole"):
            self._send(TRACE)
        elif self.path == "/changed.jsonl":
            self._send(TRACE[:-1] + b" ")
        elif self.path == "/pointer.jsonl":
            self._send(POINTER)
        elif self.path == "/cut.jsonl":
            self._send(TRACE[:1000], len(TRACE))
        elif self.path == "/moved.jsonl":
            self.send_response(302)
            self.send_header("Location", "/whole.jsonl")
            self.end_headers()
        else:
            self.send_error(404)

    def _send(self, body: bytes, promised: int | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) if promised is None else promised))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own; no proxy between it and the server."""
    monkeypatch.setenv("SIMKV_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    _Answers.asked.clear()
    return tmp_path / "cache" / "traces"


def simkv(*args: str | Path) -> Any:
    return CliRunner().invoke(app, ["trace", "fetch", *map(str, args)])


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*")) if folder.exists() else []


def test_fetch_downloads_once_and_prints_where_it_is(server: str, cache: Path) -> None:
    result = simkv("--url", f"{server}/whole.jsonl", "--sha256", HASH)
    assert (result.exit_code, result.stdout) == (0, f"{cache / 'whole.jsonl'}\n")
    assert result.stderr.startswith("fetched: 278 KiB")
    assert (cache / "whole.jsonl").read_bytes() == TRACE
    again = simkv("--url", f"{server}/whole.jsonl", "--sha256", HASH.upper())
    assert again.stderr.startswith("there already")
    assert again.stdout == result.stdout
    assert _Answers.asked == ["/whole.jsonl"]


def test_fetch_follows_a_redirect(server: str, cache: Path) -> None:
    assert simkv("--url", f"{server}/moved.jsonl", "--sha256", HASH).exit_code == 0
    assert (cache / "moved.jsonl").read_bytes() == TRACE


def test_fetch_out_puts_it_there(server: str, cache: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    assert simkv("--url", f"{server}/whole.jsonl?raw=1", "--sha256", HASH, "--out", out).exit_code == 0
    assert left_behind(out) == ["whole.jsonl"]
    assert left_behind(cache) == []


def test_fetch_by_name_is_pinned_by_its_hash(server: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = load_public_trace("mooncake-conversation")
    ours = replace(real, url=f"{server}/whole.jsonl", sha256=HASH)

    def load(name: str) -> PublicTrace:
        return {"mooncake-conversation": ours}[name]

    monkeypatch.setattr(fetching, "load_public_trace", load)
    result = simkv("mooncake-conversation")
    assert result.stdout == f"{cache / 'mooncake-conversation.jsonl'}\n"
    assert "Apache-2.0, from kvcache-ai/Mooncake" in result.stderr
    assert (cache / "mooncake-conversation.jsonl").read_bytes() == TRACE


def test_fetch_json_names_file_and_hash(server: str, cache: Path) -> None:
    url = f"{server}/whole.jsonl"
    answer = json.loads(simkv("--url", url, "--sha256", HASH, "--json").stdout)
    assert answer == {"file": str(cache / "whole.jsonl"), "url": url, "sha256": HASH}


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("changed.jsonl", f"not {HASH}"),
        ("pointer.jsonl", "is a Git LFS pointer, not the data itself"),
        ("cut.jsonl", "the download broke off"),
        ("nowhere.jsonl", "the server answers 404 Not Found"),
    ],
)
def test_fetch_of_the_wrong_thing_says_what_it_is_and_leaves_nothing(
    server: str, cache: Path, file: str, said: str
) -> None:
    result = simkv("--url", f"{server}/{file}", "--sha256", HASH)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{server}/{file}: ")
    assert said in result.stderr
    assert left_behind(cache) == []


def test_fetch_without_a_network_says_where_the_file_would_go(cache: Path) -> None:
    result = simkv("--url", "http://127.0.0.1:1/a.jsonl", "--sha256", HASH)
    assert result.exit_code == 2
    assert "can't be reached: Connection refused" in result.stderr
    assert f"put it at {cache / 'a.jsonl'}" in result.stderr


def test_fetch_interrupted_leaves_nothing(server: str, cache: Path) -> None:
    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(f"{server}/whole.jsonl", HASH, cache / "whole.jsonl", stop)
    assert left_behind(cache) == []


def test_fetch_tells_how_far_it_has_come(server: str, cache: Path) -> None:
    told: list[float] = []
    assert fetch(f"{server}/whole.jsonl", HASH, cache / "whole.jsonl", told.append)
    assert told == sorted(told)
    assert told[-1] == 1
    assert len(told) > 3


def test_fetch_never_replaces_another_file(server: str, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "whole.jsonl").write_text("precious")
    result = simkv("--url", f"{server}/whole.jsonl", "--sha256", HASH)
    assert result.exit_code == 2
    assert "is there already with another content" in result.stderr
    assert (cache / "whole.jsonl").read_text() == "precious"
    assert _Answers.asked == []


def test_fetch_into_a_file_says_so(server: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    result = simkv("--url", f"{server}/whole.jsonl", "--sha256", HASH, "--out", tmp_path / "f")
    assert result.exit_code == 2
    assert "can't be written" in result.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "nothing to fetch; name one of mooncake-conversation"),
        (("moncake-conversation",), "nearest: mooncake-conversation"),
        (("azure-2023-conv", "--sha256", HASH), "a name and an address"),
        (("--url", "https://h/x"), "--sha256: is missing"),
        (("--sha256", HASH), "--url: is missing"),
        (("--url", "ftp://h/x", "--sha256", HASH), "is no address of a file"),
        (("--url", "https://h/", "--sha256", HASH), "is no address of a file"),
        (("--url", "https://h/x", "--sha256", "abc"), "is no SHA-256"),
    ],
)
def test_fetch_wrong_wish_is_refused_in_words(args: tuple[str, ...], said: str) -> None:
    result = simkv(*args)
    assert result.exit_code == 2
    assert said in result.stderr


def test_fetch_list_shows_every_trace_with_its_licence(cache: Path) -> None:
    shown = simkv("--list").stdout
    rows = json.loads(simkv("--list", "--json").stdout)
    assert [row["name"] for row in rows] == list_public_traces()
    for row in rows:
        assert row["name"] in shown and row["licence"] in shown
    assert str(cache) in shown
    assert {row["cached"] for row in rows} == {False}


def test_public_traces_are_pinned_by_commit_hash_and_a_format_that_is_read() -> None:
    for name in list_public_traces():
        trace = load_public_trace(name)
        assert len(trace.url.split("/")[5]) == 40, "a whole commit"
        assert len(trace.sha256) == 64
        assert trace.format in READERS
        assert trace.file_name.startswith(name + ".")


WHOLE = {
    "mooncake-conversation": "mooncake/conversation_trace.jsonl",
    "azure-2023-code": "azure/AzureLLMInferenceTrace_code.csv",
    "azure-2023-conv": "azure/AzureLLMInferenceTrace_conv.csv",
}


@pytest.mark.shared
def test_public_traces_are_what_the_registry_says(shared: Path) -> None:
    assert list(WHOLE) == list_public_traces()
    for name, file in WHOLE.items():
        trace, content = load_public_trace(name), (shared / "traces" / file).read_bytes()
        assert (trace.size_bytes, trace.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        reader = READERS[trace.format]
        assert sum(1 for _ in reader.read(shared / "traces" / file, ReadReport())) == trace.requests


def test_cache_folder_without_the_variable_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIMKV_CACHE")
    assert cache_folder().parts[-2:] == ("simkv", "traces")
