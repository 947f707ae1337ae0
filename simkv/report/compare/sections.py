"""What is said of several runs beside each other; the first is what the others are held against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from simkv.report.compare.columns import Columns
from simkv.report.compare.figures import figures
from simkv.report.compare.metrics import Comparison, Row, compare
from simkv.report.compare.settings import differing, flat
from simkv.report.document import Block, Cell, Note, Section, Table, Text, Tone
from simkv.report.folders import RunFolder
from simkv.results.quantity import MISSING, change

HEADLINE = ("ttft_s.mean", "ttft_s.p95", "tpot_s.mean", "e2e_s.mean", "t_step_s", "output_tokens_per_s")
_MOST_HEADLINES = 3
_FELT = 0.01
"""Of a figure without an interval: the least change that is worth a word."""


def sections(folders: Sequence[RunFolder]) -> list[Section]:
    """Return what there is to say of two runs or more."""
    named = called(folders)
    reference, *others = named.values()
    comparisons = [compare(reference, other) for other in others]
    found = [
        Section("answer", "Answer", list(_answer(list(named), comparisons))),
        Section("what-differs", "What differs in the scenarios", list(_settings(named))),
        Section("side-by-side", "Side by side", list(figures(named, comparisons))),
        Section("differences", "Differences, and which of them are noise", list(_tables(list(named), comparisons))),
        Section("warnings", "Warnings", list(_warnings(named))),
        Section("which-runs", "Which runs these are", [_runs(named)]),
    ]
    return [section for section in found if section.blocks]


def called(folders: Sequence[RunFolder]) -> dict[str, Columns]:
    """Return the runs by what they are called: their folders' names, numbered where two are alike."""
    names: dict[str, Columns] = {}
    for folder in folders:
        base = folder.path.resolve().name or folder.name
        name, number = base, 2
        while name in names:
            name, number = f"{base} ({number})", number + 1
        names[name] = Columns(folder)
    return names


def _answer(names: Sequence[str], comparisons: Sequence[Comparison]) -> Iterator[Block]:
    for name, comparison in zip(names[1:], comparisons, strict=True):
        yield Text(headline(names[0], name, comparison), lead=True)
    for name, comparison in zip(names[1:], comparisons, strict=True):
        measured = [row for row in comparison.rows if row.difference.noise is not None]
        noise = [row for row in measured if row.difference.noise]
        if measured:
            yield Text(
                f"{name}: of {len(measured)} figures with an interval, {len(noise)} "
                + ("differs" if len(noise) == 1 else "differ")
                + " by no more than noise"
                + (f" ({_listed(row.label for row in noise)})" if noise else "")
                + f". {_basis(comparison)}"
            )
        yield from _cautions(names[0], name, comparison)
    yield Text(
        "Intervals are 95 %: without any cause, one difference in twenty would still look real. A figure of a whole run"
        " (throughput, cost) has no interval: more seeds (`simkv sweep --replications`) give one."
    )


def headline(first: str, name: str, comparison: Comparison) -> str:
    """Return the differences that matter most in a sentence with their intervals."""
    rows = {row.key: row for row in comparison.rows}
    shown = [rows[key] for key in HEADLINE if key in rows]
    real = [row for row in shown if row.difference.noise is False and row.difference.value]
    if not real:
        return f"Nothing tells {name} from {first}: no difference is larger than its noise."
    if comparison.same_requests is not None:
        real += [row for row in shown if row.single and abs(row.difference.relative or 0.0) >= _FELT]
    return f"{name} against {first}: {'; '.join(_said(row) for row in real[:_MOST_HEADLINES])}."


def _said(row: Row) -> str:
    one, other, half = row.difference.one, row.difference.other, row.difference.half
    text = f"{row.label} {row.show(other)} instead of {row.show(one)}"
    relative = row.difference.relative
    if relative is None:
        return text
    if half is None:
        return f"{text} ({change(relative)})"
    low, high = ((row.difference.value + sign * half) / abs(one) for sign in (-1, 1))
    return f"{text} ({change(relative)}; 95 %: {change(low)} to {change(high)})"


def _basis(comparison: Comparison) -> str:
    if comparison.same_requests is None:
        return "Not the same requests: the runs are compared as independent samples."
    return f"Compared request by request, over the {comparison.same_requests:,} that both finished after warm-up."


def _cautions(first: str, name: str, comparison: Comparison) -> Iterator[Block]:
    one, other = comparison.one.folder.summary, comparison.other.folder.summary
    if one.get("simkv_version") != other.get("simkv_version"):
        yield Note("warning", f"{name} is of simkv {other.get('simkv_version')}, {first} of {one.get('simkv_version')}:"
                   " some of the difference may be simkv's own.", "versions_differ")  # fmt: skip
    if one.get("scenario_hash") == other.get("scenario_hash") and one.get("seed") == other.get("seed"):
        yield Note("warning", f"{name} and {first} are of the same scenario and seed: they can't differ.", "same_run")


def _settings(named: Mapping[str, Columns]) -> Iterator[Block]:
    found = differing({name: flat(run.folder) for name, run in named.items()})
    if not found:
        yield Text("Nothing but, perhaps, names and seeds.")
        return
    rows = [[Cell(path), *(Cell(values[name] or MISSING) for name in named)] for path, values in found]
    yield Table(["value", *named], rows, "settings")


def _tables(names: Sequence[str], comparisons: Sequence[Comparison]) -> Iterator[Block]:
    for name, comparison in zip(names[1:], comparisons, strict=True):
        rows = [_row(row) for row in comparison.rows]
        table = "differences" if len(comparisons) == 1 else f"differences-{names.index(name)}"
        yield Table(
            ["figure", names[0], name, "difference", "95 % interval", "relative", "what it is"],
            rows, table, f"{name} against {names[0]}", right=frozenset(range(1, 6)),
        )  # fmt: skip


def _row(row: Row) -> list[Cell]:
    difference = row.difference
    low, high = (
        (None, None)
        if difference.half is None
        else (difference.value - difference.half, difference.value + difference.half)
    )
    interval = MISSING if low is None else f"{_signed(row, low)} to {_signed(row, high)}"
    relative = difference.relative
    word, tone = judged(row)
    return [
        Cell(row.label),
        Cell(row.show(difference.one), difference.one),
        Cell(row.show(difference.other), difference.other),
        Cell(_signed(row, difference.value), difference.value),
        Cell(interval, None if low is None else f"{low!r} {high!r}"),
        Cell(MISSING if relative is None else change(relative), relative),
        Cell(word, tone=tone),
    ]


def judged(row: Row) -> tuple[str, Tone]:
    """Return what a difference is in a word or two."""
    if not row.difference.value:
        return "none", "plain"
    if row.difference.noise:
        return "noise", "plain"
    if row.difference.noise is None:
        return ("one figure a run" if row.single else "too few values to say"), "plain"
    if row.improves is None:
        return "real", "plain"
    return ("real, better", "good") if row.improves else ("real, worse", "bad")


def _signed(row: Row, value: float | None) -> str:
    if value is None:
        return MISSING
    shown = row.show(abs(value)).replace(" %", " points")
    return f"{'-' if value < 0 else '+'}{shown}" if value else "0"


def _warnings(named: Mapping[str, Columns]) -> Iterator[Block]:
    for name, run in named.items():
        for warning in run.folder.summary.get("warnings") or ():
            yield Note("warning", f"{name}: {warning['message']}", str(warning["code"]))


def _runs(named: Mapping[str, Columns]) -> Table:
    rows = [
        [Cell(name), Cell(run.folder.name), Cell(str(run.folder.summary.get("scenario_hash"))[:12]),
         Cell(str(run.folder.summary.get("seed"))), Cell(str(run.folder.summary.get("simkv_version"))),
         Cell(str(run.folder.path))]
        for name, run in named.items()
    ]  # fmt: skip
    return Table(["run", "scenario", "hash", "seed", "simkv", "folder"], rows, "runs")


def _listed(labels: Iterator[str]) -> str:
    found = list(labels)
    return ", ".join(found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")
