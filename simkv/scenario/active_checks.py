"""What doesn't go together under active offload, and what would do nothing with or without it."""

from __future__ import annotations

from collections.abc import Iterator

from simkv.model import ModelShape
from simkv.scenario.active_idle import ACTIVE_IDLE, BROUGHT, keeps_prefixes
from simkv.scenario.faults import Fault, Given
from simkv.scenario.offload_schema import ACTIVE_PREFETCH, DenseAccess, ReplayAccess
from simkv.scenario.schema import Scenario

_ACTIVE_ONLY = (
    ("offload", "staging_layers"), ("offload", "host_cost_per_block"), ("offload", "host_cost_per_step"),
    ("engine", "prefill"),
)  # fmt: skip


def active_check(s: Scenario, given: Given, model: ModelShape | None) -> Iterator[Fault]:
    """Yield every fault of a scenario with active offload, or with keys that only it gives a meaning.

    ``model``: None where it is given inline.
    """
    if not s.active:
        if not given(("offload", "residency")):  # else it says 1 itself, as the end of a grid does: a note tells
            yield from _without(s, given)
        return
    for check in (_residency, _tiers, _prefetch, _eviction, _reuse, _idle):
        yield from check(s, given)
    yield from _model(s, model)


def _model(s: Scenario, model: ModelShape | None) -> Iterator[Fault]:
    """Pieces are of one size, and there is one for every block and layer."""
    if model is not None and (model.windowed_attention or model.state):
        kind = model.attention_kind
        what = f"{model.name} ({kind}) has layers whose cache stops growing, which active offload can't split yet"
        mend = "choose a model of which every layer sees all tokens, or leave active offload out (residency 1)"
        yield Fault(("model",), what, mend)
    layers = model.layers if model is not None else 1
    if s.offload.layer_groups > layers:
        what = f"{model.name if model is not None else 'an inline model'} has {layers} layers to put into groups"
        yield Fault(("offload", "access", "layer_groups"), what, f"write {layers} or less")


def _meant(s: Scenario, given: Given, section: str, key: str) -> bool:
    """Say whether a key that is told is the scenario's own doing; a calibrated machine brings its costs anyway."""
    return (section, key) not in BROUGHT or given((section, key))


def _without(s: Scenario, given: Given) -> Iterator[Fault]:
    """Without active offload its keys do nothing."""
    mend = "write a residency below 1, a vram_budget or a sparse access pattern, or leave it out"
    what = "does nothing where running sequences keep all of their KV in VRAM"
    if s.offload.prefetch.policy in ACTIVE_PREFETCH:
        yield Fault(("offload", "prefetch", "policy"), what, "with prefix reuse alone write queue or none")
    for key in ("predictor", "accuracy", "lead", "beta", "demand"):
        if getattr(s.offload.prefetch, key) is not None:
            yield Fault(("offload", "prefetch", key), what, mend)
    if s.contention is not None and given(("contention",)):
        yield Fault(("contention",), what, mend)
    for section, key in _ACTIVE_ONLY:
        values = getattr(s, section)
        if getattr(values, key) != type(values).model_fields[key].default and _meant(s, given, section, key):
            yield Fault((section, key), what, mend)
    if s.offload.eviction.incoming is not None:
        yield Fault(("offload", "eviction", "incoming"), what, mend)
    if s.offload.write == "rewrite":
        yield Fault(("offload", "write"), what, "write write_through or write_back")


def _residency(s: Scenario, given: Given) -> Iterator[Fault]:
    offload = s.offload
    if offload.vram_budget is not None and given(("offload", "residency")):
        yield Fault(("offload", "vram_budget"), "residency says how much stays in VRAM too", "give one of the two")


def _tiers(s: Scenario, given: Given) -> Iterator[Fault]:
    offload, relation = s.offload, s.tiers.relation
    if not s.tiers.dram.exists and offload.residency < 1:
        mend = "give tiers.dram.capacity, like 200GiB (SSD is reached through it)"
        yield Fault(("tiers", "dram", "capacity"), "there is nothing below VRAM for the rest of the KV", mend)
    if s.engine.prefill == "ssd" and not s.tiers.ssd.capacity:
        mend = "give tiers.ssd.capacity, like 2TB, or write dram"
        yield Fault(("engine", "prefill"), "there is no SSD for the prompts' KV to lie in", mend)
    if offload.write in ("never", "write_through_selective"):
        mend = "write write_through (every full block) or write_back (what leaves VRAM)"
        yield Fault(("offload", "write"), f"{offload.write} leaves KV nowhere once it is out of VRAM", mend)
    if offload.write == "rewrite" and not isinstance(offload.access, DenseAccess):
        yield Fault(("offload", "write"), "rewrite is of dense access, where whole layers stream", "write write_back")
    if relation == "exclusive" and offload.layer_groups > 1:
        yield Fault(("tiers", "relation"), "a block is moved whole, and layer groups read it apart", "write copy")
    if offload.unit_tokens is not None and offload.unit_tokens != s.engine.block_tokens:
        mend = "leave it out"
        yield Fault(("offload", "unit_tokens"), "active offload moves (block, layer) pieces", mend)


def _prefetch(s: Scenario, given: Given) -> Iterator[Fault]:
    prefetch = s.offload.prefetch
    policy, path = prefetch.policy, ("offload", "prefetch")
    if policy not in (*ACTIVE_PREFETCH, "none"):
        mend = f"write one of {', '.join(ACTIVE_PREFETCH)}, or none"
        yield Fault((*path, "policy"), f"{policy} looks at waiting requests: does nothing for running sequences", mend)
    takes = {"predictor": ("next_step",), "accuracy": ("next_step",), "lead": ("next_step", "oracle"),
             "beta": ("fixed_overlap",)}  # fmt: skip
    for key, policies in takes.items():
        if getattr(prefetch, key) is not None and policy not in policies:
            mend = f"write policy: {' or '.join(policies)}, or leave {key} out"
            yield Fault((*path, key), f"does nothing with policy {policy}", mend)
    if policy == "fixed_overlap" and prefetch.beta is None:
        yield Fault((*path, "beta"), "is missing", "write the share of transfers that computing hides, like 0.5")
    if prefetch.predictor is not None and prefetch.accuracy is not None:
        yield Fault((*path, "accuracy"), "predictor says how the next reads are guessed too", "give one of the two")
    dense = isinstance(s.offload.access, DenseAccess)
    if dense:
        for key in ("predictor", "accuracy", "lead"):
            if getattr(prefetch, key) is not None:
                what = "does nothing under dense access, where every block is read in every step"
                yield Fault((*path, key), what, "leave it out")
    if prefetch.predictor == "replay" and not isinstance(s.offload.access, ReplayAccess):
        yield Fault((*path, "predictor"), "there is no log to take it from", "write access: {pattern: replay, ...}")
    if s.offload.staging_layers == 1 and (policy == "layer" or (dense and policy in ("next_step", "oracle"))):
        what = "with one buffer, that of the layer at work, nothing can be brought ahead of it"
        yield Fault(("offload", "staging_layers"), what, "write 2 or more, or prefetch.policy: none")
    if prefetch.demand is not None and policy in ("none", "fixed_overlap"):
        yield Fault((*path, "demand"), f"does nothing with policy {policy}", "leave it out")


def _eviction(s: Scenario, given: Given) -> Iterator[Fault]:
    offload, path = s.offload, ("offload", "eviction")
    if offload.eviction.incoming != "candidate":
        return
    if not isinstance(offload.access, ReplayAccess) or offload.eviction.policy != "lru":
        mend = "write policy: lru and access: {pattern: replay, ...}, or leave it out"
        yield Fault((*path, "incoming"), "candidate needs an order of access, and lru", mend)
    prefetch = offload.prefetch
    fits = prefetch.policy == "none" or (
        prefetch.policy == "next_step" and prefetch.predictor == "replay" and prefetch.demand == "overlaps"
    )
    if not fits:
        mend = "write prefetch: {policy: next_step, predictor: replay, demand: overlaps}, or policy: none"
        yield Fault(("offload", "prefetch"), "with eviction.incoming candidate blocks come in one at a time", mend)


def _reuse(s: Scenario, given: Given) -> Iterator[Fault]:
    if s.engine.prefix_caching and given(("engine", "prefix_caching")) and not keeps_prefixes(s):
        mend = "write prefix_caching: false, or offload.write: write_through with tiers.relation: copy"
        what = "finished sequences leave nothing to be found where not every full block is written to DRAM"
        yield Fault(("engine", "prefix_caching"), what, mend)


def _idle(s: Scenario, given: Given) -> Iterator[Fault]:
    """Keys of prefix reuse that mean nothing to running sequences."""
    for path, instead in ACTIVE_IDLE.items():
        if given(path):
            yield Fault(path, f"does nothing under active offload: {instead}", "leave it out")
