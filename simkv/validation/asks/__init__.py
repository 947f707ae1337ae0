"""The ways to ask: each takes a question and returns its metrics by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from simkv.validation.question import Question

Answers = dict[str, float]
MODULES = {name: f"simkv.validation.asks.{name}" for name in ("scenario", "step", "calc", "hits", "queue")}


def answer(question: Question) -> Answers:
    """Return the metrics that ``question`` wants, in SI.

    Raises InputError for a section or a metric that isn't one, InfeasibleError for a scenario that can't run.
    """
    ask: Callable[[Question], Answers] = import_module(MODULES[question.ask]).answer
    return ask(question)


def check(question: Question) -> float:
    """Return about how many seconds the answer takes (0: not known, or not worth a word).

    Raises InputError for what is seen to be wrong with ``question`` before anything is computed. A module that answers
    may have such a ``check``; where it has none, answering tells.
    """
    module = import_module(MODULES[question.ask])
    return (module.check(question) or 0.0) if hasattr(module, "check") else 0.0
