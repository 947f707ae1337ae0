"""Many outcomes added up: inputs, exit codes and seconds of each generator, the slowest, and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.fuzz.driver import Judged

_SLOWEST = 5
_TOLD = 40


def render(judged: Sequence[Judged], wall_s: float) -> str:
    """Return the report as text."""
    return "\n".join([*_table(judged), "", *_slowest(judged), "", *_failures(judged), _last(judged, wall_s)])


def _table(judged: Sequence[Judged]) -> Iterator[str]:
    yield f"{'generator':<14}{'inputs':>8}{'exit codes':>44}{'seconds':>10}{'peak MiB':>10}{'failed':>8}"
    for name in sorted({one.generator for one in judged}):
        ones = [one for one in judged if one.generator == name]
        codes = Counter(one.ended or str(one.code) for one in ones)
        shown = " ".join(f"{code}:{count}" for code, count in sorted(codes.items()))
        peak = max(one.peak_bytes for one in ones) >> 20
        seconds, failed = sum(one.seconds for one in ones), sum(bool(one.fault) for one in ones)
        yield f"{name:<14}{len(ones):>8}{shown:>44}{seconds:>10.1f}{peak:>10}{failed:>8}"


def _slowest(judged: Sequence[Judged]) -> Iterator[str]:
    yield "slowest:"
    for one in sorted(judged, key=lambda one: -one.seconds)[:_SLOWEST]:
        yield f"  {one.seconds:6.2f} s  {again(one)}"


def _failures(judged: Sequence[Judged]) -> Iterator[str]:
    failed = [one for one in judged if one.fault]
    for one in failed[:_TOLD]:
        yield f"FAILED {again(one)}: {one.fault}"
    if len(failed) > _TOLD:
        yield f"and {len(failed) - _TOLD} more"


def _last(judged: Sequence[Judged], wall_s: float) -> str:
    failed = sum(bool(one.fault) for one in judged)
    return f"{len(judged):,} inputs in {wall_s:.0f} s ({len(judged) / max(wall_s, 1e-9):.1f}/s): {failed} failed"


def again(one: Judged) -> str:
    """Return the options that ask the same once more."""
    return f"--only {one.generator} --seed {one.seed} --inputs 1"
