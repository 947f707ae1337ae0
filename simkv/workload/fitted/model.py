"""What a fit holds, and its file: one JSON object of plain lists.

Arrivals come in batches (of one, mostly; traces with coarse clocks have more), whose gaps are
gamma distributed with a coefficient of variation a window of time, at a rate a window of time;
after the last window the first follows. Requests are whole rows of the trace, drawn together:
prompt, output, how many leading tokens of the prompt had been seen before (``shared_tokens``), and
how many requests ago they were last (``rank_distance``, 0 where nothing is shared).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from simkv.errors import InputError, Problem
from simkv.workload.readers.faults import LATEST_S, MAX_TOKENS
from simkv.workload.readers.jsonfile import parsed

VERSION = 1
MARK = "simkv_workload"
MOST_WINDOWS = 1000
MOST_ROWS = 1_000_000
MAX_CV = 1000.0
LEAST_WINDOW_S = 1e-6
SLOWEST_PER_S = 1e-9


@dataclass(frozen=True, slots=True)
class Origin:
    """The trace that was fitted: its format, how many requests it had, over how long, in blocks of what."""

    format: str
    requests: int
    span_s: float
    block_tokens: int | None


@dataclass(frozen=True, slots=True)
class FittedArrivals:
    """Rates (requests a second) and burstiness by window; ``batch_shares[k]``: share of batches of k + 1 requests."""

    window_s: float
    rate_per_s: list[float]
    gap_cv: list[float]
    batch_shares: list[float]

    @property
    def mean_per_s(self) -> float:
        """Mean rate."""
        return sum(self.rate_per_s) / len(self.rate_per_s)

    @property
    def mean_batch(self) -> float:
        """Mean number of requests that arrive together."""
        return sum(size * share for size, share in enumerate(self.batch_shares, 1)) / sum(self.batch_shares)


@dataclass(frozen=True, slots=True)
class FittedRequests:
    """Rows of the trace (all, or a sample), one list a column."""

    prompt_tokens: list[int]
    output_tokens: list[int]
    shared_tokens: list[int]
    rank_distance: list[int]


@dataclass(frozen=True, slots=True)
class FittedModel:
    """A workload fitted from a trace."""

    origin: Origin
    arrivals: FittedArrivals
    requests: FittedRequests


def save(model: FittedModel, file: BinaryIO) -> None:
    """Write ``model`` to ``file`` as JSON."""
    file.write(orjson.dumps({MARK: VERSION, **asdict(model)}, option=orjson.OPT_APPEND_NEWLINE))


def load(path: Path) -> FittedModel:
    """Return the fit in ``path``; raises InputError that names the part that is wrong."""
    read = parsed(path, "get a whole copy of the file, or fit the trace again")
    if not isinstance(read, dict) or MARK not in read:
        raise InputError(Problem("is no fitted workload", "make one with 'simkv trace fit TRACE'", file=str(path)))
    if read[MARK] != VERSION:
        what = f"is of version {read[MARK]!r}; this simkv reads version {VERSION}"
        raise InputError(Problem(what, "fit the trace again", file=str(path), path=MARK))
    return _Checked(path, read).model()


class _Checked:
    """Takes checked parts from a file that was read."""

    def __init__(self, path: Path, read: dict[str, Any]) -> None:
        self._path = path
        self._read = read

    def model(self) -> FittedModel:
        arrivals = FittedArrivals(
            window_s=self._number("arrivals.window_s", above=LEAST_WINDOW_S, highest=LATEST_S),
            rate_per_s=self._numbers("arrivals.rate_per_s", most=MOST_WINDOWS),
            gap_cv=self._numbers("arrivals.gap_cv", most=MOST_WINDOWS, highest=MAX_CV),
            batch_shares=self._numbers("arrivals.batch_shares", most=MOST_ROWS),
        )
        self._same_length("arrivals.gap_cv", arrivals.gap_cv, "rate_per_s", arrivals.rate_per_s)
        if arrivals.mean_per_s < SLOWEST_PER_S:
            raise self._bad("arrivals.rate_per_s", f"is below {SLOWEST_PER_S:g} on average: nothing would ever arrive")
        if sum(arrivals.batch_shares) < 1e-9:
            raise self._bad("arrivals.batch_shares", "sums to zero: nothing would ever arrive")
        return FittedModel(self._origin(), arrivals, self._requests())

    def _origin(self) -> Origin:
        name, block_tokens = self._get("origin.format"), self._get("origin.block_tokens", None)
        if not isinstance(name, str):
            raise self._bad("origin.format", "is no text")
        if block_tokens is not None:
            block_tokens = int(self._number("origin.block_tokens", above=0))
        return Origin(name, int(self._number("origin.requests")), self._number("origin.span_s"), block_tokens)

    def _requests(self) -> FittedRequests:
        columns = {
            key: self._whole(f"requests.{key}", low)
            for key, low in (("prompt_tokens", 1), ("output_tokens", 1), ("shared_tokens", 0), ("rank_distance", 0))
        }
        found = FittedRequests(**columns)
        for key, values in columns.items():
            self._same_length(f"requests.{key}", values, "prompt_tokens", found.prompt_tokens)
        rows = zip(found.prompt_tokens, found.shared_tokens, found.rank_distance, strict=True)
        for k, (prompt, shared, distance) in enumerate(rows):
            if shared > prompt:
                raise self._bad(f"requests.shared_tokens[{k}]", f"{shared:,} is more than the prompt's {prompt:,}")
            if (shared > 0) != (distance > 0):
                raise self._bad(
                    f"requests.rank_distance[{k}]", "must be above 0 where tokens are shared, and only there"
                )
        return found

    def _get(self, path: str, *default: Any) -> Any:
        part, key = path.split(".")
        section = self._read.get(part)
        if not isinstance(section, dict) or (key not in section and not default):
            raise self._bad(path, "is missing")
        return section.get(key, *default)

    def _number(self, path: str, above: float | None = None, highest: float = inf) -> float:
        value = self._get(path)
        if _is_number(value) and value > highest:
            raise self._bad(path, f"is above {highest:g}")
        if not _is_number(value) or value < 0 or (above is not None and value <= above):
            raise self._bad(path, "is no finite number " + ("of at least 0" if above is None else f"above {above:g}"))
        return float(value)

    def _numbers(self, path: str, most: int, highest: float = 1e12) -> list[float]:
        values = self._list(path, most)
        for k, value in enumerate(values):
            if not _is_number(value) or not 0 <= value <= highest:
                raise self._bad(f"{path}[{k}]", f"is no number from 0 to {highest:g}")
        return [float(value) for value in values]

    def _whole(self, path: str, low: int) -> list[int]:
        values = self._list(path, MOST_ROWS)
        for k, value in enumerate(values):
            if type(value) is not int or not low <= value <= MAX_TOKENS:
                raise self._bad(f"{path}[{k}]", f"is no whole number from {low} up")
        return values

    def _list(self, path: str, most: int) -> list[Any]:
        values = self._get(path)
        if not isinstance(values, list) or not 0 < len(values) <= most:
            raise self._bad(path, f"is no list of 1 to {most:,} values")
        return values

    def _same_length(self, path: str, values: list[Any], other: str, others: list[Any]) -> None:
        if len(values) != len(others):
            raise self._bad(path, f"has {len(values):,} values where {other} has {len(others):,}")

    def _bad(self, path: str, what: str) -> InputError:
        return InputError(Problem(what, "fit the trace again", file=str(self._path), path=path))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
