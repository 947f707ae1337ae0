"""How ``simkv validate`` shows its answer: a table a group, then targets, misses, and a last line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from textwrap import wrap
from typing import Any

from simkv.cli.guard import printable
from simkv.cli.table import table
from simkv.validation.words import (
    LEFT_OUT,
    LEFT_OUT_SAID,
    causes,
    differences,
    error,
    figure,
    group_line,
    last_line,
    left_out,
    mark,
    target_line,
    warnings,
)

_WIDTH = 100
_NAME = 50
_HEAD = ("case", "predicted", "expected", "error", "")
_RIGHT = (1, 2, 3)
_HEAD_LINES = 2
_SHARE, _FAST = re.compile(r"(\d) (?=%|pp\b)"), "\N{NO-BREAK SPACE}"


def render(answer: Mapping[str, Any]) -> str:
    """Return an answer as text, at most about 100 columns wide."""
    blocks = [_group(group) for group in answer["groups"]]
    blocks += [block for block in (_targets(answer), _misses(answer), _left_out(answer), last_line(answer)) if block]
    return "\n\n".join(blocks)


def _group(group: Mapping[str, Any]) -> str:
    cases = [list(ones) for _, ones in groupby(group["cases"], _case)]
    title = f"{group['title']} ({group['name']})"
    return "\n".join(
        [title, "=" * len(title), *_table(cases, group["difference"]), *_reasons(group), *_wrapped(group_line(group))]
    )


def _table(cases: Sequence[Sequence[Mapping[str, Any]]], of_shares: bool) -> Iterator[str]:
    """Yield the lines of the table of a group, the warnings of each case below its own."""
    blocks = [list(_lines(rows, of_shares)) for rows in cases]
    lines = iter(table(_HEAD, [line for block in blocks for line in block], _RIGHT).split("\n"))
    yield from islice(lines, _HEAD_LINES)
    for rows, block in zip(cases, blocks, strict=True):
        yield from islice(lines, len(block))
        for said in warnings(rows):
            yield from _wrapped(f"! {said}", "  ")


def _case(row: Mapping[str, Any]) -> str:
    return str(row["case"])


def _lines(rows: Sequence[Mapping[str, Any]], of_shares: bool) -> Iterator[list[str]]:
    """Yield the lines of one case: its observations below its name, or all in one line."""
    if len(rows) == 1:
        yield _line(f"{rows[0]['case']}: {rows[0]['label']}", rows[0], of_shares)
        return
    yield [_short(rows[0]["case"]), "", "", "", ""]
    for row in rows:
        yield _line(f"  {row['label']}", row, of_shares)


def _line(name: str, row: Mapping[str, Any], of_shares: bool) -> list[str]:
    figures = (figure(row, row["predicted"]), figure(row, row["expected"]))
    return [_short(name), *figures, error(row["error"], of_shares), mark(row)]


def _short(text: str) -> str:
    """Return ``text`` without its middle where it is long: both ends tell observations apart."""
    text = printable(text)
    half = (_NAME - 1) // 2
    return text if len(text) <= _NAME else f"{text[:half]}…{text[-half:]}"


def _reasons(group: Mapping[str, Any]) -> Iterator[str]:
    """Yield why cases are skipped, each reason once."""
    why = dict.fromkeys(row["skipped"] for row in group["cases"] if row["skipped"])
    for reason in why:
        yield from _wrapped(f"skipped: {reason}")


def _targets(answer: Mapping[str, Any]) -> str:
    of_shares = differences(answer)
    lines = [line for target in answer["summary"]["targets"] for line in _wrapped(target_line(target, of_shares), "  ")]
    return "\n".join(["Targets", *lines]) if lines else ""


def _misses(answer: Mapping[str, Any]) -> str:
    lines: list[str] = []
    for cause, ones in causes(answer):
        lines += [*_wrapped(f"{cause}:", "  "), *_wrapped("; ".join(ones), "    ")]
    return "\n".join(["What misses", *lines]) if lines else ""


def _left_out(answer: Mapping[str, Any]) -> str:
    rows = left_out(answer)
    return "\n".join([*_wrapped(LEFT_OUT_SAID), table(LEFT_OUT, rows, (2, 3, 4, 5))]) if rows else ""


def _wrapped(text: str, indent: str = "") -> list[str]:
    """Return ``text`` in lines, none of which ends between a number and its percent."""
    kept = _SHARE.sub(f"\\1{_FAST}", printable(text))
    lines = wrap(kept, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)
    return [line.replace(_FAST, " ") for line in lines]
