"""Traces of every format, damaged, through everything that reads them; clients, fitted workloads and access logs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.asked import Command, Generator
from tests.fuzz.base import REPOSITORY
from tests.fuzz.damage import NUMBERS, Raw, broken, bytes_damaged, dumps, odd

_ROWS = 12
Rows = list[dict[str, Any]]

_SCENARIO = """\
name: s
model: llama-3.1-8b
hardware: h100-sxm5-80gb
workload: {{kind: {kind}, path: {path}{more}}}
tiers: {{dram: {{capacity: 20GiB}}}}
run: {{duration: {duration}, baselines: [{baselines}]}}
"""


# ---- good ones --------------------------------------------------------------------------------


def _mooncake(rng: Random) -> Rows:
    return [
        {"timestamp": 1000 * n, "input_length": 700 + 512 * n, "output_length": 20, "hash_ids": list(range(2 + n))}
        for n in range(_ROWS)
    ]


def _aiperf(rng: Random) -> Rows:
    return [
        {"session_id": f"s{n % 3}", "input_length": 300, "output_length": 20, "hash_ids": [n], "delay": 500.0}
        for n in range(_ROWS)
    ]


def _qwen(rng: Random) -> Rows:
    return [
        {
            "chat_id": n, "parent_chat_id": -1, "timestamp": n / 2, "input_length": 100 + n, "output_length": 9,
            "type": "text", "turn": 1, "hash_ids": list(range(-(-(100 + n) // 16))),
        } for n in range(_ROWS)
    ]  # fmt: skip


def _dynamo(rng: Random) -> Rows:
    return [
        {
            "timestamp": 1_700_000_000_000 + 1000 * n,
            "event": {
                "schema": "dynamo.request.trace.v1", "event_type": "request_end",
                "request": {
                    "request_received_ms": 1_700_000_000_000 + 900 * n, "input_tokens": 150, "output_tokens": 12,
                    "replay": {"trace_block_size": 64, "input_sequence_hashes": [2**64 - 1, 2**63 + n, n]},
                },
            },
        } for n in range(_ROWS)
    ]  # fmt: skip


def _lengths(rng: Random) -> Rows:
    if rng.random() < 0.3:
        return [
            {
                "arrival_time_ns": 10**9 * n, "input_toks": 40, "output_toks": 8, "input_tok_ids": list(range(40)),
                "output_tok_ids": [5] * 8,
            } for n in range(_ROWS)
        ]  # fmt: skip
    return [{"arrival_s": n, "prompt_tokens": 100 + n, "output_tokens": 20 + n} for n in range(_ROWS)]


def _own(rng: Random) -> Rows:
    head = {"simkv_trace": 1, "source_format": "mooncake", "block_tokens": 512, "classes": True}
    rows = [
        {
            "arrival_s": n / 2, "prompt_tokens": 100, "output_tokens": 20, "class": "", "session": n, "turn": 0,
            "spans": [[3, 0, 64], [-1, 0, 10], [5 + n, 0, 9]],
        } for n in range(_ROWS)
    ]  # fmt: skip
    return [head, *rows]


def _own_sessions(rng: Random) -> Rows:
    head = {"simkv_trace": 1, "source_format": "aiperf", "block_tokens": 512, "sessions": True}
    rows: Rows = []
    for session in range(4):
        for turn in range(3):
            row: dict[str, Any] = {
                "session": session, "turn": turn, "arrival_s": session + 2 * turn, "prompt_tokens": 100 * (turn + 1),
                "output_tokens": 20, "spans": [[session, 0, 100 * (turn + 1)]],
            }  # fmt: skip
            row |= {"start_s": float(session), "shares": False} if turn == 0 else {"after": [turn - 1], "pause_s": 1.0}
            rows.append(row)
    return [head, *rows]


def _log(rng: Random) -> Rows:
    return [
        {
            "arrival": n * 0.5, "prompt_tokens": 200, "output_tokens": 10, "session": f"u{n % 4}", "prefix_hash": "abc",
            "prefix_tokens": 50, "class": "",
        } for n in range(_ROWS)
    ]  # fmt: skip


def _azure(rng: Random) -> Rows:
    return [
        {"TIMESTAMP": f"2023-11-16 18:17:{n:02d}.9799600", "ContextTokens": 480, "GeneratedTokens": 10}
        for n in range(_ROWS)
    ]


def _burstgpt(rng: Random) -> Rows:
    return [
        {
            "Timestamp": n * 5, "Session ID": n % 3, "Elapsed time": 1.5, "Model": "GPT-4",
            "Request tokens": 100 + 50 * n, "Response tokens": 20, "Total tokens": 120 + 50 * n,
            "Log Type": "Conversation log",
        } for n in range(_ROWS)
    ]  # fmt: skip


JSONL: dict[str, Callable[[Random], Rows]] = {
    "mooncake": _mooncake, "aiperf": _aiperf, "qwen": _qwen, "dynamo": _dynamo, "lengths": _lengths, "simkv": _own,
    "simkv-sessions": _own_sessions, "log": _log,
}  # fmt: skip
CSV: dict[str, Callable[[Random], Rows]] = {"azure": _azure, "burstgpt": _burstgpt, "log": _log}


def _as_lines(rows: Rows) -> list[str]:
    return [dumps(row) for row in rows]


def _as_csv(rows: Rows) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [",".join(names), *(",".join(_cell(row.get(name, "")) for name in names) for row in rows)]


def _cell(value: Any) -> str:
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text


# ---- damaged ----------------------------------------------------------------------------------


def _row(rng: Random, rows: Rows) -> str:
    """Put something else into a row."""
    notes: list[str] = []
    at = rng.randrange(len(rows))
    rows[at] = broken(rng, rows[at], notes, 2)
    return f"row {at + 1}: {'; '.join(notes)}"


def _column(rng: Random, rows: Rows) -> str:
    """Put something into every row, or take a key away from all."""
    key = rng.choice([*rows[-1]])
    value = odd(rng)
    for row in rows:
        if rng.random() < 0.1:
            continue
        if value == "null":
            row.pop(key, None)
        else:
            row[key] = value
    return f"every {key}: {str(value)[:60]}"


def _times(rng: Random, rows: Rows) -> str:
    """Let times step back, or go far."""
    key = next((k for k in rows[-1] if "time" in k.lower() or "arrival" in k or k == "start_s"), "timestamp")
    how = rng.randrange(4)
    for number, row in enumerate(rows):
        if key in row:
            row[key] = Raw((str(1000 - 100 * number), str(-number), f"{number}e300", str(number * 10**14))[how])
    return f"times {how}"


def _many_ids(rng: Random, rows: Rows) -> str:
    count = rng.choice((1000, 200_000, 1_000_000))
    for key in ("hash_ids", "input_tok_ids"):
        if key in rows[-1]:
            rows[-1][key] = Raw("[" + ("7, " * count) + "8]") if rng.random() < 0.3 else Raw(str(list(range(count))))
            if rng.random() < 0.5:
                rows[-1]["input_length"] = count * 512
    return f"{count} ids"


def _mixed(rng: Random, rows: Rows) -> str:
    name = rng.choice([*JSONL])
    rows[rng.randrange(len(rows)) :] = JSONL[name](rng)[: rng.randrange(1, 8)]
    return f"rows of {name} in it"


ROWS = (_row, _row, _row, _row, _column, _times, _many_ids, _mixed)


def _line(rng: Random, lines: list[str]) -> str:
    """Damage a line as text."""
    at = rng.randrange(len(lines))
    line = lines[at]
    lines[at : at + 1] = rng.choice((
        [line[: rng.randrange(len(line) + 1)]], [line, line], [line + line], ["null"], ["[]"], [""], ["\ufeff" + line],
        [line + "\r"], [line, "x" * 100], ["\x00"], [line.replace('"', "'")], [line.replace("{", "{{")], ["{}"], ["5"],
        [line.replace(",", ";")], ["# a comment", line], [line.replace(":", ": [", 1)], [line + ","], [lines[0]],
        [line.replace(rng.choice("0123456789"), rng.choice(NUMBERS), 1)], [line.replace('"', '""', 1)], ["NaN"],
        ["\u2028"], [line.upper()], [line, '"unclosed'], [line + ",1,2,3"], ["[" * 5000], ['{"a":' * 5000],
        [f"[{line}]"],
    ))  # fmt: skip
    return f"line {at + 1}: {lines[at][:80]!r}"


def trace(rng: Random, notes: list[str]) -> tuple[str, bytes]:
    """Return a damaged trace with the name of its file."""
    csv = rng.random() < 0.3
    name = rng.choice([*(CSV if csv else JSONL)])
    rows = (CSV if csv else JSONL)[name](rng)
    notes.append(name)
    how = rng.random()
    if how < 0.6:
        notes += [rng.choice(ROWS)(rng, rows) for _ in range(rng.choice((1, 1, 2)))]
    lines = _as_csv(rows) if csv else _as_lines(rows)
    if 0.5 < how < 0.85:
        notes += [_line(rng, lines) for _ in range(rng.choice((1, 1, 2, 4)))]
    data = ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
    if how > 0.8:
        data = bytes_damaged(rng, data, notes)
    elif rng.random() < 0.1:
        data = gzip.compress(data)
    return f"trace.{'csv' if csv else 'jsonl'}{'.gz' if rng.random() < 0.1 else ''}", data


def agent_session(rng: Random, notes: list[str]) -> bytes:
    """Return a damaged file of an agent's session."""
    tree = json.loads((REPOSITORY / "scenarios" / "agent-sessions" / "review.json").read_text("utf-8"))
    tree["requests"] = tree["requests"][:4]
    tree = broken(rng, tree, notes)
    data = dumps(tree).encode("utf-8", "surrogatepass")
    return bytes_damaged(rng, data, notes) if rng.random() < 0.3 else data


def _options(rng: Random, notes: list[str]) -> list[str]:
    """Return options that some traces are asked with."""
    if rng.random() < 0.7:
        return []
    given = rng.choice((
        ("--format", "mooncake"), ("--format", "log"), ("--format", "simkv"), ("--format", "azure"), ("--format", "x"),
        ("--limit", "3"), ("--limit", "0"), ("--columns", "arrival=timestamp,prompt_tokens=input_length"),
        ("--columns", "arrival"), ("--columns", "session=session,arrival=arrival"), ("--arrival-unit", "ns"),
        ("--arrival-unit", "datetime"), ("--format", "lengths"),
    ))  # fmt: skip
    notes.append(" ".join(given))
    return list(given)


def _write(rng: Random, folder: Path, notes: list[str]) -> str:
    """Write a trace, a file or a folder, and return its name."""
    if rng.random() < 0.12:
        (folder / "agents").mkdir()
        for number in range(rng.choice((1, 2, 3))):
            (folder / "agents" / f"{number}.json").write_bytes(agent_session(rng, notes))
        return "agents"
    name, data = trace(rng, notes)
    (folder / name).write_bytes(data)
    return name


def _run(rng: Random, folder: Path) -> Command:
    notes: list[str] = []
    name = _write(rng, folder, notes)
    more = rng.choice(("", "", "", ", limit: 5", ", time_scale: 1e6", ", time_scale: 1e-9", ", format: mooncake"))
    return _scenario(folder, "trace", name, more, notes, rng)


def _scenario(folder: Path, kind: str, path: str, more: str, notes: list[str], rng: Random) -> Command:
    baselines = rng.choice(("", "", "no_offload"))
    text = _SCENARIO.format(kind=kind, path=path, more=more, duration="1 h", baselines=baselines)
    (folder / "s.yaml").write_text(text)
    args = ("run", "s.yaml", "--json", "--out", "out")
    return Command(args, out="out", holds="summary.json", json=True, notes=tuple(notes))


def _inspect(rng: Random, folder: Path) -> Command:
    notes: list[str] = []
    name = _write(rng, folder, notes)
    as_json = rng.random() < 0.8
    args = ("trace", "inspect", name, *_options(rng, notes), *(("--json",) if as_json else ()))
    return Command(args, json=as_json, notes=tuple(notes))


def _convert(rng: Random, folder: Path) -> Command:
    notes: list[str] = []
    name = _write(rng, folder, notes)
    scale = rng.choice(((), (), ("--time-scale", "1e300"), ("--time-scale", "nan"), ("--time-scale", "0.5")))
    args = ("trace", "convert", name, "--out", "made.jsonl", *_options(rng, notes), *scale)
    return Command(args, out="made.jsonl", notes=tuple(notes))


def _fit(rng: Random, folder: Path) -> Command:
    notes: list[str] = []
    name = _write(rng, folder, notes)
    args = ("trace", "fit", name, "--out", "made.json", "--json", *_options(rng, notes))
    return Command(args, out="made.json", json=True, notes=tuple(notes))


def _hitrate(rng: Random, folder: Path) -> Command:
    notes: list[str] = []
    name = _write(rng, folder, notes)
    more = rng.choice((
        (), (), ("--policy", "lru"), ("--capacity", "1,100"), ("--capacity", "-1"), ("--capacity", "1e400"),
        ("--model", "llama-3.1-8b", "--capacity", "1GiB"), ("--capacity", "99999999999999999999"), ("--lambda", "nan"),
        ("--block-tokens", "1"), ("--block-tokens", "0"), ("--policy", "x"), ("--order", "reverse"),
    ))  # fmt: skip
    args = ("hitrate", name, "--json", *_options(rng, notes), *more)
    return Command(args, json=True, notes=(*notes, " ".join(more)))


# ---- files of other kinds of workloads --------------------------------------------------------


def _fitted(rng: Random, folder: Path) -> Command:
    notes: list[str] = []
    tree = {
        "simkv_workload": 1,
        "origin": {"format": "mooncake", "requests": 12, "span_s": 11.0, "block_tokens": 512},
        "arrivals": {"window_s": 5.0, "rate_per_s": [1.0, 2.0], "gap_cv": [1.0, 0.5], "batch_shares": [0.9, 0.1]},
        "requests": {
            "prompt_tokens": [100, 200, 300], "output_tokens": [10, 20, 30], "shared_tokens": [0, 64, 0],
            "rank_distance": [0, 1, 0],
        },
    }  # fmt: skip
    data = dumps(broken(rng, tree, notes)).encode("utf-8", "surrogatepass")
    if rng.random() < 0.25:
        data = bytes_damaged(rng, data, notes)
    (folder / "w.json").write_bytes(data)
    return _scenario(folder, "fitted", "w.json", ", requests: 20", notes, rng)


def _clients(rng: Random, folder: Path) -> Command:
    notes: list[str] = []
    (folder / "clients").mkdir()
    lines = [f"{600 * n},0.05,1.2,{rng.choice(('Gamma', 'Weibull', ''))},0.8,3.0" for n in range(3)]
    tree = {
        str(600 * n): {"input_tokens": "{18: 0.5, 19: 0.5}", "output_tokens": "{5: 0.25, 7: 0.75}"} for n in range(2)
    }
    if rng.random() < 0.5:
        notes.append(_clients_line(rng, lines))
    else:
        tree = broken(rng, tree, notes)
        if rng.random() < 0.3:
            inner = rng.choice(
                ("{18: nan}", "{1e9: 1}", "{18: -1}", "{", "[]", "{18: 1e308, 19: 1e308}", "__import__('os')")
            )
            tree["0"] = {"input_tokens": inner, "output_tokens": "{5: 1}"}
            notes.append(inner)
    files = {
        "chunk-0-trace.csv": "\n".join(lines).encode(),
        "chunk-0-dataset.json": dumps(tree).encode("utf-8", "replace"),
    }
    for name, data in files.items():
        content = bytes_damaged(rng, data, notes) if rng.random() < 0.15 else data
        if rng.random() < 0.97:
            (folder / "clients" / name).write_bytes(content)
    return _scenario(folder, "clients", "clients", rng.choice(("", ", rate_scale: 10")), notes, rng)


def _clients_line(rng: Random, lines: list[str]) -> str:
    at = rng.randrange(len(lines))
    cells = lines[at].split(",")
    cells[rng.randrange(len(cells))] = rng.choice((*NUMBERS, "x", "", "Gamma", "nan"))
    lines[at] = ",".join(cells)
    if rng.random() < 0.2:
        lines[at : at + 1] = [lines[at]] * rng.choice((0, 2)) + [lines[at][: rng.randrange(20)]]
    return lines[min(at, len(lines) - 1)]


def _access(rng: Random, folder: Path) -> Command:
    """Damage the log of what attention reads."""
    notes: list[str] = []
    text = (REPOSITORY / "scenarios" / "article-toy.access.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()[:60]]
    how = rng.random()
    if how < 0.6:
        notes += [_row(rng, rows) for _ in range(rng.choice((1, 1, 2)))]
    lines = _as_lines(rows)
    if 0.5 < how < 0.8:
        notes.append(_line(rng, lines))
    data = ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
    if how > 0.8:
        data = bytes_damaged(rng, data, notes)
    (folder / "a.jsonl").write_bytes(data)
    base = (REPOSITORY / "scenarios" / "article-toy.yaml").read_text("utf-8")
    (folder / "s.yaml").write_text(base.replace("article-toy.access.jsonl", "a.jsonl"))
    args = ("run", "s.yaml", "--json", "--out", "out")
    return Command(args, out="out", holds="summary.json", json=True, notes=tuple(notes))


GENERATORS: dict[str, Generator] = {
    "trace-run": _run, "trace-inspect": _inspect, "trace-convert": _convert, "trace-fit": _fit,
    "trace-hitrate": _hitrate, "fitted": _fitted, "clients": _clients, "access": _access,
}  # fmt: skip
