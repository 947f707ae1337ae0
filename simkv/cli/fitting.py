"""How ``simkv trace fit`` says how well a fit describes its trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simkv import units
from simkv.cli.table import table
from simkv.workload.fitted import FittedModel


def render(model: FittedModel, comparison: dict[str, Any], out: Path) -> str:
    """Return the figures of the trace beside those of requests drawn from its fit."""
    held, of = len(model.requests.prompt_tokens), model.origin.requests
    windows = len(model.arrivals.rate_per_s)
    length = units.short(model.arrivals.window_s, "time")
    rates = f"{windows} windows of {length}" if windows > 1 else "one rate"
    rows = [
        (title, _shown(comparison["trace"], path, form), _shown(comparison["drawn"], path, form))
        for title, path, form in _ROWS
    ]
    ks = comparison["ks"]
    return "\n".join(
        [
            f"wrote {out}: {held:,} of {of:,} requests, arrivals by {rates}",
            "",
            table(("", "trace", "drawn anew"), [row for row in rows if row[1] != "-"], (1, 2)),
            "",
            f"Lengths, Kolmogorov-Smirnov distance: prompt {ks['prompt_tokens']:.3f}, output {ks['output_tokens']:.3f}",
            f"To use it: workload: {{kind: fitted, path: {out}, requests: {of}}}",
        ]
    )


_ROWS = (
    ("requests", ("requests",), ",.0f"),
    ("prompt tokens, mean", ("prompt_tokens", "mean"), ",.0f"),
    ("prompt tokens, p95", ("prompt_tokens", "p95"), ",.0f"),
    ("output tokens, mean", ("output_tokens", "mean"), ",.0f"),
    ("output tokens, p95", ("output_tokens", "p95"), ",.0f"),
    ("requests a second", ("arrivals", "rate_per_s"), ",.3g"),
    ("gaps, coefficient of variation", ("arrivals", "gap_cv"), ".2f"),
    ("arrivals in 1 s, variance / mean", ("arrivals", "counts", 0, "index_of_dispersion"), ".2f"),
    ("arrivals in 10 s, variance / mean", ("arrivals", "counts", 1, "index_of_dispersion"), ".2f"),
    ("arrivals in 60 s, variance / mean", ("arrivals", "counts", 2, "index_of_dispersion"), ".2f"),
    ("infinite cache, prompt tokens", ("infinite_cache", "token_hit_rate"), ".2%"),
    ("infinite cache, blocks", ("infinite_cache", "block_hit_rate"), ".2%"),
)


def _shown(figures: Any, path: tuple[str | int, ...], form: str) -> str:
    for key in path:
        figures = figures[key]
    return "-" if figures is None else format(figures, form)
