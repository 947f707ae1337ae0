"""A question's section with its settings over it, checked."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, TypeVar

from pydantic import ValidationError

from simkv.errors import InputError, Problem
from simkv.scenario.base import Section
from simkv.scenario.overrides import put
from simkv.scenario.problems import problems_of
from simkv.validation.question import Question

S = TypeVar("S", bound=Section)


def section_of(question: Question, root: type[S]) -> S:
    """Return the section as ``root``, whose one key is what is asked, has it: files first, then settings over it.

    Relative paths start from the question's folder. Raises InputError naming every fault.
    """
    tree: dict[str, Any] = {question.ask: deepcopy(question.section)}
    for name, value in (*question.files, *question.settings):
        put(tree, (question.ask, *name.split(".")), deepcopy(value))
    try:
        return root.model_validate(tree, context={"folder": question.folder})
    except ValidationError as error:
        raise InputError(problems_of(error, tree, root, lambda at: (f"case {question.case}", None))) from None


def wanted(question: Question, found: dict[str, float]) -> dict[str, float]:
    """Return what is wanted of ``found``, with what stands beside it (``NAME.expected``, ``NAME.tolerance``).

    Raises InputError for a metric that isn't there.
    """
    for name in question.metrics:
        if name not in found:
            raise InputError(
                Problem("is no metric of this answer", f"it has {', '.join(found)}", path="metric", value=name)
            )
    names = (f"{name}{end}" for name in question.metrics for end in ("", ".expected", ".tolerance"))
    return {name: found[name] for name in names if name in found}
