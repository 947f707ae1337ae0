"""What a client sends: ``chunk-N-dataset.json``, distributions of lengths over stretches of some hours.

``{"0": {"input_tokens": "{18: 0.017, 19: 0.108, ...}", "output_tokens": "{...}"}, "21600": ...}``:
by the second at which a stretch begins, a probability for each length, as the text of a Python
dict. Only these marginal distributions are published, so prompt and output are drawn
independently. Prompts with images, audio or video have ``text_tokens``, and for each medium how
many there are and the tokens of one: the prompt is all of them together, as the KV cache holds it.
"""

from __future__ import annotations

from bisect import bisect_right
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkv.errors import InputError, Problem
from simkv.workload.draws import picker
from simkv.workload.readers.faults import MAX_TOKENS
from simkv.workload.readers.files import excerpt
from simkv.workload.readers.jsonfile import parsed

Ints = NDArray[np.int64]
Pmf = tuple[Ints, NDArray[np.float64]]
"""Values, and the probability of each."""

MEDIA = ("image", "audio", "video")


class Dataset:
    """The lengths of one client over time; texts of distributions are parsed when first drawn from."""

    def __init__(self, path: Path) -> None:
        """Raises InputError where ``path`` is no such file, or no stretch says how long prompts and outputs are."""
        self._path = path
        stretches = _stretches(path)
        usable = {start_s: columns for start_s, columns in stretches.items() if not _is_empty(columns)}
        if not usable:
            raise InputError(Problem("has no distribution of lengths", "leave this client out", file=str(path)))
        for key, columns in usable.items():
            self._check_columns(key, columns)
        self._starts_s = sorted(usable)
        self._columns = [usable[start_s] for start_s in self._starts_s]
        self._parsed: dict[tuple[int, str], Pmf] = {}

    def draw(self, at_s: float, count: int, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        """Return ``count`` prompt and output lengths of the stretch that ``at_s`` is in.

        Before the first stretch it is the first one; one without distributions takes those before it.
        """
        k = max(0, bisect_right(self._starts_s, at_s) - 1)
        prompts = self._prompts(k, count, rng)
        outputs = self._values(k, "output_tokens", count, rng, low=1)
        return prompts.tolist(), outputs.tolist()

    def _prompts(self, k: int, count: int, rng: np.random.Generator) -> Ints:
        if "input_tokens" in self._columns[k]:
            return self._values(k, "input_tokens", count, rng, low=1)
        total = self._values(k, "text_tokens", count, rng)
        for medium in MEDIA:
            if f"{medium}_count" not in self._columns[k]:
                continue
            items = self._values(k, f"{medium}_count", count, rng)
            tokens = self._values(k, f"{medium}_tokens", int(items.sum()), rng)
            owners = np.repeat(np.arange(count), items)
            total = total + np.bincount(owners, weights=tokens, minlength=count).astype(np.int64)
        return np.maximum(total, 1)

    def _values(self, k: int, column: str, count: int, rng: np.random.Generator, low: int = 0) -> Ints:
        pmf = self._parsed.get((k, column))
        if pmf is None:
            pmf = self._parsed[k, column] = self._parse(k, column, low)
        return pmf[0][picker(pmf[1], rng)(count)] if count else np.zeros(0, dtype=np.int64)

    def _parse(self, k: int, column: str, low: int) -> Pmf:
        """Return the distribution in a cell; lengths below ``low`` are left out."""
        text = self._columns[k][column]
        try:
            pairs = [
                _pair(item) for item in text.strip().removeprefix("{").removesuffix("}").split(",") if item.strip()
            ]
        except ValueError as error:
            raise self._bad(self._starts_s[k], column, text, f"is no distribution: {error}") from None
        kept = [(value, share) for value, share in pairs if value >= low]
        if not sum(share for _, share in kept) > 0:
            what = "has no probability at all" if low == 0 else f"has no probability of {low} token or more"
            raise self._bad(self._starts_s[k], column, text, what)
        values, shares = zip(*kept, strict=True)
        return np.array(values, dtype=np.int64), np.array(shares, dtype=np.float64)

    def _check_columns(self, start_s: float, columns: dict[str, Any]) -> None:
        for column, text in columns.items():
            if not isinstance(text, str):
                raise self._bad(start_s, column, text, "is no text of a distribution")
        if "output_tokens" not in columns:
            raise self._bad(start_s, "output_tokens", None, "is missing")
        if "input_tokens" not in columns and "text_tokens" not in columns:
            what = "is missing, and so is text_tokens: the length of prompts isn't known"
            raise self._bad(start_s, "input_tokens", None, what)
        for medium in MEDIA:
            if (f"{medium}_count" in columns) != (f"{medium}_tokens" in columns):
                what = "needs both the count and the tokens of one"
                raise self._bad(start_s, f"{medium}_count", None, what)

    def _bad(self, start_s: float, column: str, value: Any, what: str) -> InputError:
        mend = 'write "{tokens: probability, ...}" for each of input_tokens (or text_tokens) and output_tokens'
        shown = "" if value is None else excerpt(value, 40)
        return InputError(Problem(what, mend, file=str(self._path), path=f"{start_s:g}.{column}", value=shown))


def _stretches(path: Path) -> dict[float, dict[str, Any]]:
    read = parsed(path, "get a whole copy of the file")
    mend = 'write {"0": {"input_tokens": "{...}", "output_tokens": "{...}"}, ...}, keys in seconds'
    if not isinstance(read, dict) or not all(isinstance(columns, dict) for columns in read.values()):
        raise InputError(Problem("is no dataset of a client", mend, file=str(path)))
    found = {}
    for key, columns in read.items():
        if not (key.isascii() and key.isdigit() and len(key) < 16):
            raise InputError(Problem("is no time in seconds", mend, file=str(path), path=excerpt(key)))
        found[float(key)] = columns
    return found


def _is_empty(columns: dict[str, Any]) -> bool:
    """Return whether a stretch has a column without any value, which stands for no requests then."""
    return any(isinstance(text, str) and text.strip() in ("", "{}") for text in columns.values())


def _pair(item: str) -> tuple[int, float]:
    """Return ``tokens: probability``; raises ValueError that says what is wrong."""
    key, colon, text = item.partition(":")
    if not colon:
        raise ValueError(f"{excerpt(item.strip(), 20)!r} has no colon")
    value, share = float(key), float(text)
    if not 0 <= value <= MAX_TOKENS or value != int(value):
        raise ValueError(f"{key.strip()} is no number of tokens")
    if not isfinite(share) or share < 0:
        raise ValueError(f"{text.strip()} is no probability")
    return int(value), share
