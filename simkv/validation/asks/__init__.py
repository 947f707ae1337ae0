"""The ways to ask: each takes a question and returns its metrics by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from simkv.validation.asks.found import Found
from simkv.validation.question import Question

MODULES = {name: f"simkv.validation.asks.{name}" for name in ("scenario", "step", "calc", "hits", "queue")}


def answer(question: Question) -> Found:
    """Return the metrics that ``question`` wants, in SI, those of nothing with the reason.

    Raises InputError for a section or a metric that isn't one, InfeasibleError for a scenario that can't run.
    """
    ask: Callable[[Question], Found | dict[str, float]] = import_module(MODULES[question.ask]).answer
    found = ask(question)
    return found if isinstance(found, Found) else Found(found)


def check(question: Question) -> float:
    """Return about how many seconds the answer takes (0: not known, or not worth a word).

    Raises InputError for what is seen to be wrong with ``question`` before anything is computed. A module that answers
    may have such a ``check``; where it has none, answering tells.
    """
    module = import_module(MODULES[question.ask])
    return (module.check(question) or 0.0) if hasattr(module, "check") else 0.0


def check_keys(question: Question) -> None:
    """Raise InputError for what is seen to be wrong with ``question`` where its files aren't there."""
    module = import_module(MODULES[question.ask])
    if hasattr(module, "check_keys"):
        module.check_keys(question)
