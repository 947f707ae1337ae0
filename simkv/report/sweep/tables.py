"""Every setting of a sweep as a table, what failed, and how it was obtained."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from math import prod

from simkv.errors import InputError
from simkv.report.document import Block, Cell, Code, Details, Facts, Note, Table, Text
from simkv.report.files import read_text
from simkv.report.folders import SweepFolder
from simkv.report.sweep.headline import where
from simkv.report.sweep.metrics import Named, capital, main, named
from simkv.results.quantity import MISSING, count
from simkv.sweeps.best import Front
from simkv.sweeps.leaves import HEADLINE
from simkv.sweeps.order import ordered
from simkv.sweeps.pareto import Objective
from simkv.sweeps.point import Ended
from simkv.sweeps.read import SCENARIO
from simkv.sweeps.result import SweepResult
from simkv.sweeps.settings import Setting
from simkv.sweeps.simulate import settings_of
from simkv.sweeps.table import cell

_FEW = 20
"""Settings that are shown at once, the best of more."""
_MOST = 2000
"""Settings that a report has; a sweep of more has its CSV."""
_TOLD = 5
"""Errors, and warnings, in words."""
_BOTTLENECK = "bottleneck"


def settings_table(result: SweepResult, found: Front) -> Iterator[Block]:
    """Yield the settings: all of them, or of many the best few and then all."""
    metrics = main(result, found.objectives, len(HEADLINE))
    if any(setting.text(_BOTTLENECK) for setting in result.settings):
        metrics = [*metrics, named(_BOTTLENECK)]
    if len(result.settings) <= _FEW:
        yield _table(result, result.settings, metrics, found, "settings")
        return
    kept = _best_first(result, found.objectives)[:_FEW]
    yield _table(result, kept, metrics, found, "", f"The best {_FEW} of {count(len(result.settings))} settings")
    whole = result.settings[:_MOST]
    blocks: list[Block] = [_table(result, whole, metrics, found, "settings")]
    if len(whole) < len(result.settings):
        blocks.insert(0, Text(f"The first {_MOST:,} of {len(result.settings):,}; points.csv in the folder has all."))
    yield Details(f"All {count(len(result.settings))} settings", blocks)


def _best_first(result: SweepResult, objectives: Sequence[Objective]) -> list[Setting]:
    """Return the settings by the first objective."""
    if not objectives:
        return result.settings
    minus = "-" if objectives[0].direction == "max" else ""
    return ordered(result.settings, (), result.metrics, f"{minus}{objectives[0].metric}")


def _table(
    result: SweepResult, shown: Sequence[Setting], metrics: Sequence[Named], found: Front, name: str, caption: str = ""
) -> Table:
    """Return settings as rows; a star: on the front."""
    on = {id(setting) for setting in found.settings} if found.objectives else set()
    states = any(not setting.found or len(setting.ended) > 1 for setting in result.settings)
    heads = ["", *result.axes, *(["seeds"] if states else []), *(capital(metric.head) for metric in metrics)]
    rows = []
    for setting in shown:
        row = [Cell("★" if id(setting) in on else "", "front" if id(setting) in on else "")]
        row += [Cell(setting.params[axis]) for axis in result.axes]
        row += [_state(setting)] if states else []
        row += [_value(setting, metric) for metric in metrics]
        rows.append(row)
    star = "★: on the Pareto front." if on else ""
    right = frozenset(range(1, len(heads)))
    return Table(heads, rows, name, ". ".join(text for text in (caption, star) if text), right)


def _state(setting: Setting) -> Cell:
    failed = len(setting.ended) - len(setting.found)
    text = f"{len(setting.found)}, {failed} failed" if failed else str(len(setting.found))
    return Cell(text, len(setting.found), "bad" if failed else "plain")


def _value(setting: Setting, metric: Named) -> Cell:
    mean = setting.mean(metric.name)
    return Cell(cell(setting, metric.name), mean.value if mean is not None else None)


def failures(result: SweepResult) -> Iterator[Block]:
    """Yield what failed: each error once in words, then every point."""
    by_message = result.failures
    if not by_message:
        return
    for message, ones in list(by_message.items())[:_TOLD]:
        more = f" (and {len(ones) - 1:,} more)" if len(ones) > 1 else ""
        yield Note("bad", f"{where(ones[0].point.params)}{more} failed: {message}", "failed")
    if len(by_message) > _TOLD:
        yield Note("bad", f"{len(by_message) - _TOLD:,} other errors stand in the table.", "failed")
    rows = [[*(Cell(one.point.params[axis]) for axis in result.axes), *_failed(one)] for ones in by_message.values()
            for one in ones]  # fmt: skip
    heads = [*result.axes, "seed", "attempts", "error"]
    table = Table(heads, rows, "failed", right=frozenset(range(len(result.axes) + 2)))
    yield Details(f"{len(rows):,} points that failed", [table])


def _failed(one: Ended) -> list[Cell]:
    message = one.failure.message if one.failure is not None else MISSING
    return [Cell(str(one.point.seed), one.point.seed), Cell(str(one.attempts), one.attempts), Cell(message)]


def warnings(result: SweepResult) -> Iterator[Note]:
    """Yield what runs warn of, each code once, with how many of them do."""
    done = [one.summary for one in result.ended if one.summary is not None]
    found: dict[str, dict[int, str]] = {}
    for run, summary in enumerate(done):
        for warning in summary.get("warnings") or ():
            found.setdefault(str(warning["code"]), {}).setdefault(run, str(warning["message"]))
    for code, messages in found.items():
        first, *others = dict.fromkeys(messages.values())
        more = "; the figures are of the first" if others else ""
        yield Note("warning", f"{first} ({len(messages):,} of {len(done):,} runs{more})", code)


def obtained(folder: SweepFolder) -> Iterator[Block]:
    """Yield how many points and runs there are, of which seeds, and the command that does it again."""
    result = folder.result
    failed = sum(map(len, result.failures.values()))
    points = len(result.ended) + result.pending
    counts = [(len(result.ended) - failed, "done"), (failed, "failed"), (result.pending, "not yet")]
    states = ", ".join(f"{number:,} {what}" for number, what in counts if number)
    seeds = list(dict.fromkeys(one.point.seed for one in result.ended))
    runs = len({one.point.key for one in result.ended if one.summary is not None})
    versions = dict.fromkeys(str(one.summary["simkv_version"]) for one in result.ended if one.summary is not None)
    rows = [
        ("Points", f"{points:,}: {states}" if states else f"{points:,}"),
        ("Runs", f"{runs:,}" + (": points that differ in what can't matter share one" if runs < points - failed
                                - result.pending else "")),
        ("Seeds", ", ".join(str(seed) for seed in seeds) or MISSING),
        ("simkv", ", ".join(versions) or MISSING),
    ]  # fmt: skip
    if result.elsewhere:
        rows.append(("Kept beside them", f"{result.elsewhere:,} runs of other grids, or of the scenario as it was"))
    yield Facts(rows)
    sample = len(result.settings) + result.pending // max(1, len(seeds))
    if sample < prod(len(values) for values in result.axes.values()):
        yield Text(
            f"It is a sample, and the folder doesn't keep of what: the same --grid options with --sample {sample} and "
            f"--out {folder.path} go on with it, or do it again."
        )
    else:
        yield Code(command(folder, len(seeds)), "Does it again, or goes on where it stopped")


def command(folder: SweepFolder, seeds: int) -> str:
    """Return the command that the points of a whole grid are of."""
    parts = ["simkv", "sweep", str(folder.path / SCENARIO)]
    for assignment in _assignments(folder):
        parts += ["--set", assignment]
    for name, values in folder.result.axes.items():
        parts += ["--grid", f"{name}={','.join(values)}"]
    parts += ["--replications", str(seeds)] if seeds else []
    return shlex.join([*parts, "--out", str(folder.path)])


def _assignments(folder: SweepFolder) -> list[str]:
    """Return what was set over the scenario, as its copy in the folder has it at its end."""
    try:
        return settings_of(read_text(folder.path / SCENARIO))
    except InputError:
        return []
