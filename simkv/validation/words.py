"""An answer in words: what each figure reads like, a line a group, targets, misses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simkv.results.quantity import digits, seconds
from simkv.validation.expected import written

Row = Mapping[str, Any]
STATES = ("judged", "fitted", "skipped", "failed")


def figure(row: Row, value: float | None) -> str:
    """Return a value of a row in the unit that the expected one is written in."""
    if value is None:
        return "-"
    if row["unit"] is None and row["metric"].rpartition(".")[0].endswith("_s") and "relative to" not in row["label"]:
        return seconds(value)
    return written(value, row["unit"] or "")


def error(value: float | None, difference: bool = False) -> str:
    """Return an error with its sign: ``+3.1 %``, ``-1.2 pp`` where it is a difference of shares."""
    if value is None:
        return "-"
    return f"{_signed(100 * value)} {'pp' if difference else '%'}"


def size(value: float | None, difference: bool = False) -> str:
    """Return the size of an error: ``3.1 %``."""
    return error(value, difference).lstrip("+") if value is not None else "-"


def limit_of(value: float, difference: bool = False) -> str:
    """Return what an error may be: ``10 %``."""
    return f"{100 * value:.3g} {'pp' if difference else '%'}" if value else "0"


def mark(row: Row) -> str:
    """Return what is said beside a row: fitted, outside its tolerance, skipped, failed."""
    if row["status"] != "judged":
        return str(row["status"])
    parts = [word for word, said in (("fitted", row["fitted"]), ("outside", row["pass"] is False)) if said]
    return ", ".join(parts)


def summary(answer: Mapping[str, Any]) -> list[str]:
    """Return a line a group, one of all, in columns."""
    names = [group["name"] for group in answer["groups"]]
    room = max(map(len, names), default=0)
    return [*(f"{group['name']:<{room}}  {group_line(group)}" for group in answer["groups"]), last_line(answer)]


def last_line(answer: Mapping[str, Any]) -> str:
    """Return how much was judged, and how many targets hold."""
    found = answer["summary"]
    missed, held = sum(not target["pass"] for target in found["targets"]), len(found["targets"])
    counts = ", ".join(f"{found[name]} {name}" for name in STATES if found[name])
    said = f"{missed} of {held} targets missed" if missed else f"all {held} targets hold"
    return f"{found['cases']} cases, {found['observations']} observations ({counts}): {said}."


def group_line(group: Mapping[str, Any]) -> str:
    """Return what came of a group in one line."""
    found = group["summary"]
    parts = [f"{found[name]} {name}" for name in STATES if found[name]]
    of = f"{', '.join(parts) or 'nothing'}"
    if found["pass"] is None:
        return f"{of}: nothing to judge by"
    return f"{of}; {_result(group)}: {verdict(found['pass'])}"


def _result(group: Mapping[str, Any]) -> str:
    found, of_shares = group["summary"], group["difference"]
    largest = f"largest error {size(found['largest'], of_shares)}"
    if found["target"] is None:
        outside = found["outside"]
        return f"{largest}, {f'{outside} outside' if outside else 'all within'} their tolerance"
    middle, limit = size(found["median"], of_shares), limit_of(found["target"], of_shares)
    return f"median error {middle}, at most {limit}; {largest}"


def target_line(target: Mapping[str, Any], differences: Mapping[str, bool]) -> str:
    """Return a target with its value; ``differences``: whether errors of a group are differences of shares."""
    of_shares, cases = differences.get(target["group"] or "", False), target["of"] == "cases"
    value = f"{target['value']:.0f}" if cases else size(target["value"], of_shares)
    limit = f"{target['limit']:.0f}" if cases else limit_of(target["limit"], of_shares)
    worst = f" ({target['worst']})" if target["worst"] else ""
    name = f"{target['group']}: {target['name']}" if cases else target["name"]
    return f"{name}{worst} {value}, at most {limit}: {verdict(target['pass'])}"


def miss_line(miss: Mapping[str, Any], differences: Mapping[str, bool]) -> str:
    """Return what misses, by how much, and why as far as it is known."""
    of_shares = differences[miss["group"]]
    limit = f", at most {limit_of(miss['limit'], of_shares)}" if miss["limit"] is not None else ""
    off = f"{error(miss['error'], of_shares)}{limit}" if miss["error"] is not None else "no prediction"
    return f"{miss['id']}: {off}; {miss['because'] or 'cause not known'}"


def differences(answer: Mapping[str, Any]) -> dict[str, bool]:
    """Return by group whether errors are differences of shares."""
    return {group["name"]: group["difference"] for group in answer["groups"]}


def verdict(holds: bool | None) -> str:
    """Return whether a target holds, in a word."""
    return "not judged" if holds is None else "holds" if holds else "MISSED"


def _signed(percent: float) -> str:
    if percent == 0:
        return "0"
    text = f"{percent:+.1f}" if abs(percent) >= 0.05 else digits(percent, 1)
    return text if text[0] in "+-" else f"+{text}"
