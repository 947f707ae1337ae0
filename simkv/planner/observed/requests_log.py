"""A log of requests, one JSON object a line, as LLMServingSim's bench writes it beside a vLLM run.

``queued_ts``, ``scheduled_ts``, ``first_token_ts`` and ``last_token_ts`` are seconds of the engine's monotonic clock;
``arrival_time`` is civil time. A request arrives here when it is queued, so that all times are of one clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from simkv.planner.observed.fields import Fields
from simkv.planner.observed.types import A_PART, MOST_REQUESTS, Observed, Rows, figures_of

TOOL = "a log of requests"
_TIMES = ("queued_ts", "first_token_ts", "last_token_ts")
_ORDER = "give rows in which queued_ts <= first_token_ts <= last_token_ts"


def is_log(values: Mapping[str, object]) -> bool:
    """Return whether an object is a row of a log."""
    return "first_token_ts" in values and "output_toks" in values


def read_log(rows: Iterable[Fields]) -> Observed:
    """Return the run that rows are of; raises InputError with the line of what is wrong.

    Rows are taken one by one, so that no more than the numbers of a long log are kept.
    """
    found: list[tuple[float, float, float, int, int]] = []
    for fields in rows:
        if len(found) == MOST_REQUESTS:
            fields.refuse(f"the log has more than {MOST_REQUESTS:,} requests", mend=A_PART)
        found.append(_row(fields))
    found.sort()
    first_s = found[0][0]
    prompts, outputs = tuple(row[3] for row in found), tuple(row[4] for row in found)
    duration_s = max(row[2] for row in found) - first_s
    if duration_s <= 0:
        fields.refuse("is when everything ended, too", "queued_ts", _ORDER)
    ttft_s, e2e_s = [row[1] - row[0] for row in found], [row[2] - row[0] for row in found]
    spread_s = found[-1][0] - first_s
    return Observed(
        fields.file,
        TOOL,
        "",
        len(found),
        figures_of(ttft_s, e2e_s, outputs, duration_s),
        sum(prompts),
        sum(outputs),
        duration_s,
        (len(found) - 1) / spread_s if spread_s else float("inf"),
        rows=Rows(prompts, outputs, tuple(row[0] - first_s for row in found)),
    )


def _row(fields: Fields) -> tuple[float, float, float, int, int]:
    queued_s, first_s, last_s = (fields.number(key) for key in _TIMES)
    if not queued_s <= first_s <= last_s:
        key = "first_token_ts" if first_s < queued_s else "last_token_ts"
        fields.refuse("is before what it follows", key, _ORDER)
    return queued_s, first_s, last_s, fields.count("input_toks"), fields.count("output_toks")
