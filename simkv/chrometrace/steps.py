"""GPU steps: one event a macro-step."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any

from simkv.chrometrace.events import Event, complete
from simkv.chrometrace.layout import Layout
from simkv.sim.record.recording import Recording

_WAITING = 0.1
"""A step that waits for more than this share of its time has the colour of waiting."""


def steps(recording: Recording, layout: Layout) -> Iterator[Event]:
    """Yield the steps of each replica in order of time, cut where the window begins and ends."""
    table = recording.steps
    columns = zip(*(table[name] for name in table), strict=True)
    for replica, begin_s, end_s, count, decodes, tokens, wait_s in columns:
        open_ended = isnan(end_s)
        last_s = recording.end_s if open_ended else end_s
        args: dict[str, Any] = {"steps": count, "decodes": decodes, "prefill_tokens": tokens}
        if count > 1:
            args["step_ms"] = round((end_s - begin_s) / count * 1e3, 3)
        if wait_s:
            args["wait_ms"] = round(wait_s * 1e3, 3)
        if open_ended or begin_s < recording.begin_s:
            args["cut"] = "it goes on beyond the window"
        yield complete(
            layout.steps(int(replica)),
            _name(int(count), int(decodes), int(tokens)),
            "step",
            max(begin_s, recording.begin_s),
            last_s,
            args,
            "thread_state_iowait" if wait_s > _WAITING * (last_s - begin_s) else _color(int(decodes), int(tokens)),
        )


def _name(count: int, decodes: int, tokens: int) -> str:
    """Return what a step does, short: ``decode ×37, batch 12`` or ``prefill 4,096 + decode 12``."""
    if not tokens:
        return f"decode ×{count}, batch {decodes}" if count > 1 else f"decode, batch {decodes}"
    return f"prefill {tokens:,} + decode {decodes}" if decodes else f"prefill {tokens:,}"


def _color(decodes: int, tokens: int) -> str:
    if not tokens:
        return "thread_state_running"
    return "rail_response" if decodes else "rail_load"
