"""The sections of a run's report, in order."""

from __future__ import annotations

from collections.abc import Callable

from simkv.report.document import Block, Section
from simkv.report.folders import RunFolder
from simkv.report.run import (
    active,
    answer,
    closed_form,
    cost,
    hits,
    latency,
    obtained,
    overtime,
    parts,
    question,
    resources,
)

Build = Callable[[RunFolder], list[Block]]

_SECTIONS: tuple[tuple[str, str, Build], ...] = (
    ("answer", "Answer", answer.blocks),
    ("question", "Question and assumptions", question.blocks),
    ("closed-form", "Closed form beside simulated", closed_form.blocks),
    ("latency", "Latency", latency.blocks),
    ("time-goes-to", "Where a request's time goes", parts.blocks),
    ("hit-rates", "Where prompt tokens come from", hits.blocks),
    ("over-time", "Over time", overtime.blocks),
    ("resources", "Resources", resources.blocks),
    ("active-offload", "Active offload", active.blocks),
    ("cost", "Cost", cost.blocks),
    ("obtained", "How this was obtained", obtained.blocks),
)


def answered(folder: RunFolder) -> Section:
    """Return the answer of the run in ``folder`` alone, the first of its sections."""
    key, title, build = _SECTIONS[0]
    return Section(key, title, build(folder))


def sections(folder: RunFolder) -> list[Section]:
    """Return what there is to say of the run in ``folder``; a section that would be empty isn't there.

    Raises InputError where a file of the folder doesn't read.
    """
    built = ((key, title, build(folder)) for key, title, build in _SECTIONS)
    return [Section(key, title, blocks) for key, title, blocks in built if blocks]
