"""Which measurements a calibration takes, in which order: what others rest on first, what disturbs last."""

from __future__ import annotations

from dataclasses import replace

from simkv.calibrate.measure import attention, contention, dram, host, linear, links, memory, ssd, step
from simkv.calibrate.task import TURNS, Bench, Task

MEASURES = (host, links, memory, dram, linear, attention, step, ssd, contention)
"""The drive late: writes of before go on in it for a while, which nothing but contention's copies then feels."""
MODELS = {"cpu": "smollm2-135m", "cuda": "llama-3.1-8b"}
"""Whose shapes are computed where none is named."""


def turn(bench: Bench) -> tuple[Task, ...]:
    """Return every task for ``bench`` once, in order; of each key the first."""
    tasks: dict[str, Task] = {}
    for measure in MEASURES:
        for task in measure.tasks(bench):
            tasks.setdefault(task.key, task)
    return tuple(tasks.values())


def plan(bench: Bench) -> tuple[Task, ...]:
    """Return every task for ``bench`` as many times over as there are turns."""
    tasks = turn(bench)
    return tuple(replace(task, key=f"{task.key}@{number + 1}") for number in range(TURNS) for task in tasks)
