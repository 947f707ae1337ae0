"""What a unit can't do better than: the most load by GPU time alone, the least time to a first and to a next token.

Each is optimistic: every prompt finds everything that may have been there before, nobody waits, copies are free, and
weights are read once a step for as many sequences as the engine takes. A step of ``n`` tokens, ``b`` of them decoding,
takes no less than

    rows(n) + attention,    and no less than    base(b) + attention

where ``rows`` is everything but attention and ``base`` what decoding ``b`` sequences without context takes; both fall
a token as there are more, so over a request

    GPU time >= max((rest + output) * rows(N) / N,  (output - 1) * base(B) / B) + attention of its own tokens

with N = ``max_num_batched_tokens`` and B = ``max_num_seqs``. The two are not added: one step does both.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean, pstdev

from simkv.formulas.step import ConstantStep, RooflineStep
from simkv.planner.offered import Offered, Turn
from simkv.planner.types import Slo
from simkv.results.slo import split_key
from simkv.scenario.build import cost, engine_config
from simkv.scenario.resolve import Resolved
from simkv.sim.config import EngineConfig, StepCost

SURE = 4.0
"""Standard errors by which the sample's mean may be above that of what is simulated."""
SLACK = 1.25
"""A run that ends may carry this much more than one that doesn't: what still waits at its end is served later."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one unit."""

    load: float
    """The most, times the scenario's own; ``inf``: not known (a closed loop, step times of a calibration)."""
    ttft_s: float
    itl_s: float
    """Between two tokens of a request, hence of its mean too."""

    def misses(self, slo: Slo) -> dict[str, tuple[float, float]]:
        """Return targets that no load can hold: ``(bound, limit)``."""
        least = {"ttft": self.ttft_s, "itl": self.itl_s, "tpot": self.itl_s}
        found = {}
        for prefix, targets in (("", slo.targets), *((f"{name}.", of) for name, of in slo.classes.items())):
            for key, limit in targets.items():
                bound = least.get(split_key(key)[0], 0.0)
                if bound > limit:
                    found[prefix + key] = (bound, limit)
        return found


def bounds(resolved: Resolved, load_one: Offered) -> Bounds:
    """Return the bounds of one unit; none (``inf``, 0) under active offload and for static batches."""
    scenario = resolved.scenario
    step = cost(resolved)
    if scenario.active or scenario.engine.placement is not None or not isinstance(step, RooflineStep | ConstantStep):
        return Bounds(inf, 0.0, 0.0)
    engine = engine_config(resolved)
    shortest = _shortest(load_one)
    return Bounds(
        load=_most_load(step, engine, load_one, scenario.replicas.count),
        ttft_s=_ttft_s(step, engine, shortest),
        itl_s=step.decode(1, shortest.prompt_tokens)[0],
    )


def _shortest(load_one: Offered) -> Turn:
    """Return what no request is below in anything."""
    sample = load_one.sample
    return Turn(
        min(turn.prompt_tokens for turn in sample),
        min(turn.output_tokens for turn in sample),
        min(turn.rest_tokens for turn in sample),
    )


def _most_load(step: RooflineStep | ConstantStep, engine: EngineConfig, load_one: Offered, replicas: int) -> float:
    if load_one.requests_per_s is None:
        return inf
    each_s = [request_s(step, engine, turn) for turn in load_one.sample]
    mean_s = fmean(each_s)
    sure_s = mean_s - SURE * pstdev(each_s) * sqrt(load_one.turns / len(each_s))
    return SLACK * replicas / (load_one.requests_per_s * sure_s) if sure_s > 0 else inf


def request_s(step: RooflineStep | ConstantStep, engine: EngineConfig, turn: Turn) -> float:
    """Return the least GPU time that a request can take of one replica."""
    most, sequences = engine.max_num_batched_tokens, engine.max_num_seqs
    by_rows = (turn.rest_tokens + turn.output_tokens - 1) * rows_s(step, most) / most
    by_steps = (turn.output_tokens - 1) * step.decode(sequences, 0)[0] / sequences
    return max(by_rows, by_steps) + attention_s(step, turn)


def rows_s(step: RooflineStep | ConstantStep, tokens: int) -> float:
    """Return the least time of a step of ``tokens`` rows, attention and sampling left out."""
    if isinstance(step, ConstantStep):
        return step.step_s
    experts = step.experts.seconds(tokens) if step.experts is not None else 0.0
    return step.overhead_s + step.linear.seconds(tokens) + experts + step.comm.seconds(tokens)


def attention_s(step: StepCost, turn: Turn) -> float:
    """Return the least time of attention of all of a request's tokens; layers with a window are left out."""
    if not isinstance(step, RooflineStep):
        return 0.0
    before, new, outputs = turn.prompt_tokens - turn.rest_tokens, turn.rest_tokens, turn.output_tokens - 1
    pairs = new * before + new * (new + 1) / 2
    read = outputs * turn.prompt_tokens + outputs * (outputs + 1) / 2
    return step.pair_s * pairs + step.kv_s * read


def _ttft_s(step: RooflineStep | ConstantStep, engine: EngineConfig, turn: Turn) -> float:
    """Return the least time to the first token on an idle engine."""
    most, rest = engine.max_num_batched_tokens, turn.rest_tokens
    chunks = -(-rest // most)
    pairs = rest * (turn.prompt_tokens - rest) + rest * (rest + 1) / 2
    attention = step.pair_s * pairs if isinstance(step, RooflineStep) else 0.0
    return max(chunks * rows_s(step, 1), rest * rows_s(step, most) / most) + attention
