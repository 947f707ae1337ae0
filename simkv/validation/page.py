"""``docs/validation.md`` from what ``simkv validate --json`` prints; ``make validation-page`` writes it.

``python -m simkv.validation.page ANSWER.json > docs/validation.md``
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from simkv.validation.read import PAGE
from simkv.validation.words import (
    LEFT_OUT,
    LEFT_OUT_SAID,
    causes,
    differences,
    error,
    figure,
    group_line,
    left_out,
    mark,
    size,
    summary,
    target_line,
    verdict,
    warnings,
)

_HEAD = f"""\
# Predicted beside expected

Written from the answer of `simkv validate` by `make validation-page`. The cases, with their sources, are in
`simkv/data/validation/`; [{PAGE.removeprefix("docs/")}]({PAGE.removeprefix("docs/")}) says how to write more.

```sh
simkv validate --data DIR        # DIR: the folder of the traces that some cases need; without them they are skipped
simkv validate --only compute,tiered_serving
simkv validate --cases FILE      # measurements of your own
simkv validate --json            # all of it for programs
```

It exits with 0 where every target holds, with 4 where one is missed. An error is predicted / expected - 1; where shares
are compared (hit curves), their difference in percentage points (pp). *Fitted*: a constant of simkv was set with that
figure, so that it counts nowhere. *Outside*: further off than the case's own tolerance or, where it has none, than the
target of its group.
"""


def page(answer: Mapping[str, Any]) -> str:
    """Return the page of an answer."""
    parts = [_HEAD, _short(answer), _targets(answer), _misses(answer), _left_out(answer)]
    return "\n".join(part for part in (*parts, *(_group(group) for group in answer["groups"])) if part)


def _short(answer: Mapping[str, Any]) -> str:
    lines = "\n".join(summary(answer))
    return f"## In short\n\nBy simkv {answer['summary']['simkv_version']}:\n\n```text\n{lines}\n```\n"


def _targets(answer: Mapping[str, Any]) -> str:
    of_shares = differences(answer)
    lines = _list(target_line(target, of_shares) for target in answer["summary"]["targets"])
    kinds = [
        (kind["kind"], ", ".join(kind["groups"]), str(kind["judged"]), str(kind["fitted"]),
         *(size(kind[name], kind["difference"]) for name in ("median", "largest")), verdict(kind["pass"]))
        for kind in answer["summary"]["kinds"]
    ]  # fmt: skip
    head = ("Kind", "Group", "Judged", "Fitted", "Median error", "Largest", "At most 25 % or pp")
    return f"## Targets\n\n{lines}\nMeasurements by kind:\n\n{_table(head, kinds)}" if lines else ""


def _misses(answer: Mapping[str, Any]) -> str:
    lines = _list(f"{cause} ({'; '.join(ones)})" for cause, ones in causes(answer))
    return f"## What misses, and why\n\n{lines}" if lines else ""


def _left_out(answer: Mapping[str, Any]) -> str:
    rows = left_out(answer)
    return f"## With a GPU family left out\n\n{LEFT_OUT_SAID}.\n\n{_table(LEFT_OUT, rows)}" if rows else ""


def _group(group: Mapping[str, Any]) -> str:
    rows = [_row(row, group["difference"]) for row in group["cases"]]
    told = _table(("Case", "What", "Predicted", "Expected", "Error", ""), rows)
    below = "".join(
        f"\n{title}:\n\n{lines}"
        for title, lines in (("Warnings of the runs", _warned(group["cases"])), ("Sources", _sourced(group["cases"])))
        if lines
    )
    return f"## {group['title']} (`{group['name']}`)\n\n{_sentence(group_line(group))}\n\n{told}{below}"


def _row(row: Mapping[str, Any], of_shares: bool) -> tuple[str, ...]:
    figures = (figure(row, row["predicted"]), figure(row, row["expected"]))
    return (f"`{row['case']}`", row["label"], *figures, error(row["error"], of_shares), mark(row))


def _warned(rows: Iterable[Mapping[str, Any]]) -> str:
    return _by_case((said, f"`{case}`") for case, ones in groupby(rows, _case) for said in warnings(list(ones)))


def _sourced(rows: Iterable[Mapping[str, Any]]) -> str:
    return _by_case((row["source"], f"`{row['case']}`") for row in rows if row["source"])


def _by_case(said: Iterable[tuple[str, str]]) -> str:
    """Return a list of what is said, each once, with the cases of which it is."""
    found: dict[str, dict[str, None]] = {}
    for text, case in said:
        found.setdefault(text, {})[case] = None
    return _list(f"{text.rstrip('.')}: {', '.join(cases)}" for text, cases in found.items())


def _case(row: Mapping[str, Any]) -> str:
    return str(row["case"])


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _list(lines: Iterable[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _answer(paths: Sequence[str]) -> Any:
    import orjson

    return orjson.loads(Path(paths[0]).read_bytes() if paths else sys.stdin.buffer.read())


if __name__ == "__main__":
    sys.stdout.write(page(_answer(sys.argv[1:])))
