"""What can be chosen from: every combination of what varies, as one unit of it, and what each isn't possible for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from simkv import units
from simkv.errors import InfeasibleError, InputError, Problem, SimkvError
from simkv.planner.prices import check_names, one_currency, unit_price
from simkv.planner.types import Candidate, Unit
from simkv.scenario import load as loading
from simkv.scenario.as_measured import Measured
from simkv.scenario.batch_schema import BATCH_PRESETS
from simkv.scenario.plan_schema import Plan
from simkv.scenario.resolve import Resolved, replaced
from simkv.scenario.schema import MOST_MACHINES
from simkv.sweeps.axes import Axis, assignments, section_axes
from simkv.sweeps.names import short
from simkv.sweeps.simulate import Case, Written

MOST = 5_000
"""Combinations."""
LOAD_OF = ("workload", "run", "slo", "classes", "cost")
"""Sections that say what is asked and not what is chosen."""
COUNT, HOSTS = "replicas.count", "replicas.hosts"
AS_LOGGED = ("engine.num_gpu_blocks", "engine.kv_cache_tokens")
"""What an engine said of its KV pool: true of one machine, model and split alone."""
OTHER_POOL = ("hardware", "model", "replicas.tensor_parallel", "engine.kv_dtype", "engine.weight_dtype",
              "engine.gpu_memory_utilization", "engine.max_num_batched_tokens", "engine.max_num_seqs")  # fmt: skip
"""What changes it."""
OF_A_HOST = ("tiers.dram.capacity", "tiers.ssd.capacity", "replicas.tensor_parallel", COUNT, HOSTS)
"""What one machine may have and another not."""
_NUMBERS = f"write whole numbers from 1 to {MOST_MACHINES:,}"
_UNSAID = ("hardware", "engine.preset")
"""What a candidate's name has the value of alone."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate with what is known of it before anything runs."""

    candidate: Candidate
    resolved: Resolved
    """One unit of it."""
    units: int | None
    """How many there are, where ``vary`` says that; None: as many as it takes."""
    also: tuple[str, ...] = ()
    """Other combinations that come to the same."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A combination that can't be, and why."""

    name: str
    values: Mapping[str, str]
    reason: str
    faults: tuple[Problem, ...] = ()
    """What is wrong with its values themselves."""


@dataclass(frozen=True, slots=True)
class Space:
    """Everything that there is to choose from."""

    plan: Plan
    choices: tuple[Choice, ...]
    left_out: tuple[LeftOut, ...]
    currency: str
    """Empty: nothing has a price."""
    combinations: int = field(default=0)


def plan_of(written: Written) -> Plan:
    """Return the scenario's plan; raises InputError where it has none, or isn't valid."""
    plan = loading.load_text(written.text, written.file, written.assignments).scenario.plan
    if plan is None:
        mend = "write one, like plan: {vary: {instance: [p5.48xlarge, p4de.24xlarge], dram: [0GiB, 500GiB]}}"
        raise InputError(Problem("the scenario has no plan", mend, written.file, None, "plan"))
    return plan


def space(written: Written, measured: Measured | None = None) -> Space:
    """Return every combination of ``plan.vary`` that can be built, once, and the others with their reasons.

    ``measured``: how a measured run corrects the machines' figures.
    Raises InputError for a plan that names what no scenario has, too many combinations, or none that can be.
    """
    plan = plan_of(written)
    axes = section_axes(plan.vary, written.file, "plan.vary")
    combinations = _checked(axes, written.file)
    freed = _freed(written, axes)
    choices: dict[str, Choice] = {}
    left_out: list[LeftOut] = []
    for values in _combinations(axes):
        found = _choice(Case(written, measured=measured), plan, axes, values, freed)
        if isinstance(found, LeftOut):
            left_out.append(found)
            continue
        same = _sameness(found)
        first = choices.setdefault(same, found)
        if first is not found:
            choices[same] = replace(first, also=(*first.also, found.candidate.name))
    _no_slips(axes, choices.values(), left_out, written.file)
    if not choices:
        raise _nothing_can_be(left_out, written.file)
    kept = tuple(choices.values())
    check_names(kept[0].resolved, [name for one in kept for name in _names_of(one)])
    candidates = [one.candidate for one in kept]
    return Space(plan, kept, tuple(left_out), one_currency(candidates, written.file), combinations)


def _no_slips(axes: Sequence[Axis], choices: Iterable[Choice], left_out: Sequence[LeftOut], file: str) -> None:
    """Raise InputError for values that are none, with any machine: slips of the pen, not choices that can't be had."""
    possible = {(name, value) for one in choices for name, value in one.candidate.values.items()}
    slips: dict[tuple[str, str], Problem] = {}
    for one in left_out:
        for axis in axes:
            value = one.values[axis.name]
            said = [found for found in one.faults if found.path == axis.path and axis.path not in OF_A_HOST]
            if said and (axis.name, value) not in possible:
                slips.setdefault((axis.name, value), replace(said[0], file=file, path=f"plan.vary.{axis.name}"))
    if slips:
        raise InputError(list(slips.values()))


def _names_of(choice: Choice) -> tuple[str, ...]:
    gpu = choice.resolved.gpu
    return (choice.candidate.unit.name, *((gpu.name,) if gpu is not None else ()))


def _checked(axes: Sequence[Axis], file: str) -> int:
    """Return how many combinations there are; raises InputError for axes that are none of a plan."""
    problems = []
    for axis in axes:
        if axis.path.split(".")[0] in LOAD_OF:
            problems.append(axis.problem("says what is asked, which a plan doesn't choose", "vary it with simkv sweep"))
        elif axis.span is not None:
            problems.append(axis.problem("has no step", "write it like 100GiB:400GiB:100GiB, or list the values"))
        elif axis.path in (COUNT, HOSTS):
            wrong = (value for value in axis.values if _number(value) is None)
            what = f"is no number of {'replicas' if axis.path == COUNT else 'hosts'}"
            problems += [axis.problem(what, _NUMBERS, value) for value in wrong]
    if problems:
        raise InputError(problems)
    combinations = prod(len(axis.values) for axis in axes)
    if combinations > MOST:
        largest = max(axes, key=lambda axis: len(axis.values))
        what = f"makes {combinations:,} combinations, and the most is {MOST:,}"
        mend = f"take fewer values, first of all of {largest.name}, which has {len(largest.values):,}"
        raise InputError(Problem(what, mend, file, None, "plan.vary"))
    return combinations


def _combinations(axes: Sequence[Axis]) -> Iterator[dict[str, str]]:
    names = [axis.name for axis in axes]
    for values in product(*(axis.values for axis in axes)):
        yield dict(zip(names, values, strict=True))


def _freed(written: Written, axes: Sequence[Axis]) -> tuple[str, ...]:
    """Return what takes a logged KV pool out of the scenario, where what varies makes it another one."""
    if not any(axis.path in OTHER_POOL for axis in axes):
        return ()
    layers = loading.load_text(written.text, written.file, written.assignments).layers
    return tuple(f"{path}=null" for path in AS_LOGGED if layers.given(tuple(path.split("."))))


def _choice(
    base: Case, plan: Plan, axes: Sequence[Axis], values: dict[str, str], freed: Sequence[str]
) -> Choice | LeftOut:
    """Return one combination as one unit of it, or why it can't be."""
    counts = {axis.path: _number(values[axis.name]) for axis in axes if axis.path in (COUNT, HOSTS)}
    chosen = [axis for axis in axes if axis.path not in (COUNT, HOSTS)]
    settings = (*assignments(chosen, values), *freed)
    named = _named(axes, values, "")
    try:
        one = replace(base, assignments=(*settings, f"{COUNT}=1", f"{HOSTS}=1"))
        resolved = one.resolve()
        full = resolved.instance.gpus // resolved.scenario.replicas.tensor_parallel if resolved.instance else 1
        replicas, units = _counted(full, counts)
        case, resolved = _of_replicas(one, resolved, settings, replicas)
    except InfeasibleError as error:
        return LeftOut(named, values, f"does not fit: {error}")
    except InputError as error:
        return LeftOut(named, values, "; ".join(_said(found) for found in error.problems), tuple(error.problems))
    reason = _not_worth_trying(resolved, plan)
    if reason:
        return LeftOut(named, values, reason)
    unit = _unit(resolved, replicas)
    named = _named(axes, values, unit.name)
    return Choice(Candidate(named, values, case, unit), resolved, units)


def _number(value: str) -> int | None:
    """Return a number of replicas or hosts; None: it is none."""
    try:
        found = units.parse(value, "count")
    except units.QuantityError:
        return None
    return int(found) if 1 <= found <= MOST_MACHINES else None


def _counted(full: int, counts: Mapping[str, int | None]) -> tuple[int, int | None]:
    """Return the replicas of a unit that can have ``full`` of them, and the number of units where that is given."""
    hosts, count = counts.get(HOSTS), counts.get(COUNT)
    if count is None:
        return full, hosts
    if hosts is None:
        hosts = -(-count // full)
    return min(full, -(-count // hosts)), hosts


def _of_replicas(one: Case, resolved: Resolved, settings: tuple[str, ...], replicas: int) -> tuple[Case, Resolved]:
    if replicas == 1:
        return one, resolved
    case = replace(one, assignments=(*settings, f"{COUNT}={replicas}", f"{HOSTS}=1"))
    return case, case.resolve()


def _unit(resolved: Resolved, replicas: int) -> Unit:
    ranks = resolved.scenario.replicas.tensor_parallel
    if resolved.instance is not None:
        name, gpus = resolved.instance.name, resolved.instance.gpus
    else:
        name, gpus = resolved.gpu.name if resolved.gpu is not None else "inline", ranks * replicas
    if resolved.profile is not None:
        name = resolved.profile.name
    return Unit(name, gpus, replicas, unit_price(resolved, name, gpus))


def _named(axes: Sequence[Axis], values: Mapping[str, str], machine: str) -> str:
    """Return the short name of a combination: the machine, and what else is chosen."""
    parts = [values[axis.name] for axis in axes if axis.path == "hardware"] or ([machine] if machine else [])
    for axis in axes:
        if axis.path != "hardware":
            value = values[axis.name]
            parts.append(value if axis.path in _UNSAID else f"{short(axis.path)} {value}")
    return " ".join(parts)


def _not_worth_trying(resolved: Resolved, plan: Plan) -> str:
    """Return why a combination that resolves isn't searched; empty: it is."""
    codes = ("unreachable",) if plan.beyond_engine else ("not_realisable", "unreachable")
    return "; ".join(sentence for code, sentence in resolved.notes if code in codes)


def _said(found: Problem) -> str:
    """Return a problem without its file, as a reason."""
    return str(replace(found, file="", line=None))


def _sameness(choice: Choice) -> str:
    """Return what two combinations share that are the same machine doing the same."""
    scenario = choice.resolved.scenario
    if scenario.engine.preset not in BATCH_PRESETS:  # whose name alone says what is simulated
        for key, value in (("preset", "vllm"), ("version", "")):
            scenario = replaced(scenario, ["engine", key], value)
    same = replace(choice.resolved, scenario=scenario).scenario_hash
    return f"{choice.candidate.unit.name} {choice.units} {same}"


def _nothing_can_be(left_out: Sequence[LeftOut], file: str) -> SimkvError:
    """Return the error that no combination can be built, with the first few reasons."""
    reasons = list(dict.fromkeys(one.reason for one in left_out))
    shown = "; ".join(f"{one.name}: {one.reason}" for one in left_out[:3])
    if all(reason.startswith("does not fit") for reason in reasons):
        return InfeasibleError(f"none of {len(left_out)} combinations of plan.vary fits: {shown}")
    mend = "take other values" + (
        ", or set plan.beyond_engine: true" if any("not realisable" in reason for reason in reasons) else ""
    )
    what = f"none of its {len(left_out)} combinations can be: {shown}"
    return InputError(Problem(what, mend, file, None, "plan.vary"))
