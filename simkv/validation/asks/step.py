"""The step-time model by itself: a prefill of some prompts, a decode of a batch, or one after the other.

Keys of the section:

- ``model``: a catalogue name, or the path of a Hugging Face config.json; ``hardware``: an accelerator's name
- ``tensor_parallel`` (1), ``weight_dtype``, ``kv_dtype`` (``auto``), ``mode`` (``graphs``, ``synchronous``, ``eager``,
  ``kernels``: see :func:`simkv.formulas.step.step_cost`)
- ``part``: ``whole`` (default), or ``linear``: the linear layers, experts included, with their overhead a layer, and
  neither attention, lm_head, what a step costs a sequence nor all-reduce
- ``figures``: figures of the accelerator that the case knows better, by name, in SI
- ``work.prefill``: ``sequences`` prompts (1) of ``tokens`` each, the first ``cached_tokens`` (0) of them cached, in
  steps of at most ``budget`` tokens (no limit)
- ``work.decode``: ``steps`` steps (1) of ``sequences`` sequences (1); ``context_tokens`` is what each has in the first

A prefill samples the first token of each prompt; that of a decode's steps are the others. Metrics: ``seconds`` (all),
``prefill_s``, ``decode_s``, ``step_s`` (mean step of the decode), ``output_tokens_per_s`` (sampled tokens over all
seconds), ``prompt_tokens_per_s`` (prompt tokens that aren't cached over ``prefill_s``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from simkv.catalog import load_hardware, load_model
from simkv.errors import InputError, Problem
from simkv.formulas.step import Mode, RooflineStep, step_cost
from simkv.hardware import Figure, Gpu
from simkv.scenario.base import Section, fault, locate
from simkv.scenario.quantity import Quantity
from simkv.validation.asks.section import section_of
from simkv.validation.question import Question

Count = Annotated[int, Field(strict=True, ge=1, le=100_000)]
MOST_TOKENS = 100_000_000
Tokens = Annotated[int, Quantity("tokens", most=MOST_TOKENS)]
SomeTokens = Annotated[int, Quantity("tokens", least=1, most=MOST_TOKENS)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
MOST_CHUNKS = 200_000


class Prefill(Section):
    """Prompts computed in order, as many tokens a step as the budget lets."""

    sequences: Count = 1
    tokens: SomeTokens
    cached_tokens: Tokens = 0
    budget: SomeTokens | None = None

    @model_validator(mode="after")
    def _something_to_compute(self) -> Self:
        if self.cached_tokens >= self.tokens:
            raise fault("not below tokens", "the last token is computed always", "cached_tokens")
        chunks = self.sequences * -(-(self.tokens - self.cached_tokens) // (self.budget or self.tokens))
        if chunks > MOST_CHUNKS:
            raise fault(f"makes {chunks:,} chunks of the prompts", f"the most is {MOST_CHUNKS:,}", "budget")
        return self


class Decode(Section):
    """Steps of one batch whose sequences grow by a token each."""

    sequences: Count = 1
    context_tokens: SomeTokens
    steps: Count = 1


class Work(Section):
    """What is computed; a prefill comes before a decode."""

    prefill: Prefill | None = None
    decode: Decode | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.prefill is None and self.decode is None:
            raise fault("has nothing to do", "add prefill, decode or both")
        return self


class Step(Section):
    """Which model on what does which work."""

    model: Annotated[str, Field(min_length=1, max_length=1000)]
    hardware: Annotated[str, Field(min_length=1, max_length=200)]
    tensor_parallel: Annotated[int, Field(strict=True, ge=1, le=64)] = 1
    weight_dtype: str = "auto"
    kv_dtype: str = "auto"
    mode: Mode = "graphs"
    part: Literal["whole", "linear"] = "whole"
    figures: dict[str, Positive] = Field(default_factory=dict)
    work: Work


class _Root(Section):
    step: Step


Tune = Callable[[Gpu], Gpu]
"""What lays other figures over an accelerator's."""


def answer(question: Question) -> dict[str, float]:
    """Return the metrics wanted. Raises InputError for a section that isn't one, and for an unknown metric."""
    return metrics_of(step_of(question), question.metrics, question.folder)


def check(question: Question) -> None:
    """Raise InputError for a section that isn't one, an unknown model, machine or figure, and an unknown metric."""
    answer(question)


def step_of(question: Question) -> Step:
    """Return the section of ``question`` with its settings; raises InputError naming every fault."""
    return section_of(question, _Root).step


def metrics_of(asked: Step, names: tuple[str, ...], folder: str = "", tune: Tune = lambda gpu: gpu) -> dict[str, float]:
    """Return metrics by name; ``tune`` changes the accelerator before the section's own figures are laid over it."""
    cost = _cost(asked, folder, tune)
    whole = asked.part == "whole"
    prefill_s = sum(_prefill_steps(asked.work.prefill, cost, whole)) if asked.work.prefill else 0.0
    decode_s = _decode_s(asked.work.decode, cost, whole) if asked.work.decode else 0.0
    found = _metrics(asked.work, prefill_s, decode_s)
    for name in names:
        if name not in found:
            mend = f"this work has {', '.join(found)}"
            raise InputError(Problem("is no figure of these steps", mend, path="metric", value=name))
    return {name: found[name] for name in names}


def _metrics(work: Work, prefill_s: float, decode_s: float) -> dict[str, float]:
    found = {"seconds": prefill_s + decode_s}
    sampled = 0
    if (prefill := work.prefill) is not None:
        sampled += prefill.sequences
        computed = prefill.sequences * (prefill.tokens - prefill.cached_tokens)
        found |= {"prefill_s": prefill_s, "prompt_tokens_per_s": computed / prefill_s}
    if (decode := work.decode) is not None:
        sampled += decode.sequences * decode.steps
        found |= {"decode_s": decode_s, "step_s": decode_s / decode.steps}
    return found | {"output_tokens_per_s": sampled / (prefill_s + decode_s)}


def _cost(asked: Step, folder: str, tune: Tune) -> RooflineStep:
    model = load_model(asked.model, locate(asked.model, folder).path if folder else None)
    gpu = tune(load_hardware(asked.hardware))
    changed = {
        name: Figure(value, gpu.figure(name).unit, "the case", "assumed") for name, value in asked.figures.items()
    }
    return step_cost(
        model, gpu.with_figures(**changed), asked.tensor_parallel, asked.weight_dtype, asked.kv_dtype, asked.mode
    )


def _prefill_steps(asked: Prefill, cost: RooflineStep, whole: bool) -> Iterator[float]:
    for chunks, sampled in batches_of(asked):
        yield cost.mixed(0, 0, chunks, sampled) if whole else cost.linear_s(sum(new for new, _ in chunks))


def batches_of(asked: Prefill) -> Iterator[tuple[list[tuple[int, int]], int]]:
    """Yield each step's chunks of ``(new tokens, tokens before)``, and how many prompts end in it."""
    room = budget = asked.budget or asked.sequences * asked.tokens
    chunks: list[tuple[int, int]] = []
    sampled = 0
    for _ in range(asked.sequences):
        done = asked.cached_tokens
        while done < asked.tokens:
            new = min(room, asked.tokens - done)
            chunks.append((new, done))
            done, room = done + new, room - new
            sampled += done == asked.tokens
            if not room:
                yield chunks, sampled
                chunks, sampled, room = [], 0, budget
    if chunks:
        yield chunks, sampled


def _decode_s(asked: Decode, cost: RooflineStep, whole: bool) -> float:
    if not whole:
        return asked.steps * cost.linear_s(asked.sequences)
    total, left, context = 0.0, asked.steps, asked.context_tokens
    while left:
        first_s, growth_s, holds = cost.decode(asked.sequences, asked.sequences * context)
        steps = min(left, holds)
        total += steps * first_s + growth_s * (steps * (steps - 1) / 2)
        left, context = left - steps, context + steps
    return total
