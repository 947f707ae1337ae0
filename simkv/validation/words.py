"""An answer in words: what each figure reads like, a line a group, targets, misses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simkv.results.quantity import digits, seconds
from simkv.validation.expected import written

Row = Mapping[str, Any]
_LEFT = ("fitted", "case_left_out", "family_left_out")
LEFT_OUT = ("Family", "Cards", "Figures", "Fitted", "Case left out", "Family left out")
LEFT_OUT_SAID = (
    "Step times, as fitted, with each case left out of its family's fit, and with figures of the other families alone: "
    "median error / largest"
)
_MOST_WARNINGS, _MOST_LABELS = 5, 3
"""How many warnings a case has in words, and how many of its observations each is said to be about."""
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
    held, counts = found["targets"], [f"{found[name]} {name}" for name in STATES if found[name]]
    parts = [
        _counted(found["cases"], "case"),
        f"{_counted(found['observations'], 'observation')} ({', '.join(counts)})",
    ]
    return f"{', '.join(parts)}: {sum(one['pass'] for one in held)} of {_counted(len(held), 'target')} met."


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


def causes(answer: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return what misses by its cause: group and cause, and each observation with its error."""
    of_shares = differences(answer)
    found: dict[str, list[str]] = {}
    for miss in answer["summary"]["misses"]:
        off = "no prediction" if miss["error"] is None else error(miss["error"], of_shares[miss["group"]])
        cause = f"{miss['group']}: {miss['because'] or 'cause not known'}"
        found.setdefault(cause, []).append(f"{miss['id']} {off}")
    return list(found.items())


def left_out(answer: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the errors with a GPU family left out of the fit as rows under :data:`LEFT_OUT`; often none."""
    rows = answer["summary"]["leave_one_family_out"]
    return [
        (row["family"], row["cards"], str(row["observations"]), *(_sizes(row, what) for what in _LEFT)) for row in rows
    ]


def _sizes(row: Row, what: str) -> str:
    middle, largest = (100 * row[f"{of}_{what}"] for of in ("median", "largest"))
    return f"{middle:.1f} / {largest:.1f} %"


def warnings(rows: Sequence[Row]) -> list[str]:
    """Return what must be known of the runs behind a case, each once, with whom it is about unless that is all."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for said in dict.fromkeys(row["warnings"]):
            found.setdefault(said, []).append(row["label"])
    told = [said if len(of) == len(rows) else f"{_some(of)}: {said}" for said, of in found.items()]
    return told if len(told) <= _MOST_WARNINGS else [*told[: _MOST_WARNINGS - 1], f"{_more(told)} (--json has them)"]


def _more(told: Sequence[str]) -> str:
    return f"{len(told) - _MOST_WARNINGS + 1} more warnings"


def _some(labels: Sequence[str]) -> str:
    more = len(labels) - _MOST_LABELS
    return "; ".join(labels[:_MOST_LABELS]) + (f"; {more} more" if more > 0 else "")


def differences(answer: Mapping[str, Any]) -> dict[str, bool]:
    """Return by group whether errors are differences of shares."""
    return {group["name"]: group["difference"] for group in answer["groups"]}


def verdict(holds: bool | None) -> str:
    """Return whether a target holds, in a word."""
    return "not judged" if holds is None else "holds" if holds else "MISSED"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _signed(percent: float) -> str:
    if percent == 0:
        return "0"
    text = f"{percent:+.1f}" if abs(percent) >= 0.05 else digits(percent, 1)
    return text if text[0] in "+-" else f"+{text}"
