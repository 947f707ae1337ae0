"""What a reader must know of a fit: what wasn't known of the run, what doesn't match, how far the result carries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from simkv.planner.observed.parameters import FIGURES, Parameter
from simkv.planner.observed.types import Observed
from simkv.scenario.resolve import Resolved
from simkv.scenario.workload_schema import PlainWorkload

POOR = 0.25
"""Root mean square of relative errors above which a fit says nothing of the machine."""


def notes_of(
    observed: Observed, resolved: Resolved, answer: Mapping[str, Any], at_bounds: Sequence[Parameter]
) -> Iterator[str]:
    """Yield a sentence each."""
    assert resolved.gpu is not None and resolved.model is not None
    yield from _model(observed, resolved)
    if observed.rows is None:
        drawn = isinstance(resolved.scenario.workload, PlainWorkload)
        how = "drawn as the scenario's, scaled to" if drawn else "all alike:"
        yield (
            f"lengths are {how} the measured means ({observed.mean_prompt_tokens:.0f} and "
            f"{observed.mean_output_tokens:.0f} tokens): the file doesn't have those of each request"
        )
    if answer["rejected"]:
        yield f"{answer['rejected']} of the measured requests are too long for the scenario's configuration"
    for parameter in at_bounds:
        yield f"{FIGURES[parameter.name][0]} ends at its bound: something else than it makes the difference"
    yield "prompts are taken to share nothing: to a run whose prompts hit the cache this fit is too slow a machine"
    yield (
        f"all that is planned is planned on {resolved.gpu.name} as fitted; on other GPUs efficiencies change by the "
        "same factor and steps by the same seconds, which is assumed"
    )


def unexplained(error: float) -> Iterator[str]:
    """Yield a warning where ``error``, the root mean square of what is left after the fit, is large."""
    if error > POOR:
        yield (
            f"the run isn't explained: {100 * error:.0f} % is left after the fit. Don't plan from it before the "
            "scenario says what was measured: model, hardware, dtypes, parallelism, lengths, limits of the engine"
        )


def _model(observed: Observed, resolved: Resolved) -> Iterator[str]:
    """Yield a warning where the file names a model that isn't the scenario's."""
    model = resolved.model
    if not observed.model or model is None:
        return
    base = observed.model.rstrip("/").rsplit("/", 1)[-1].lower()
    if not any(base.startswith(name) or name.startswith(base) for name in (model.name, *model.aliases)):
        yield f"the run was of {observed.model}, the scenario is of {model.name}"
