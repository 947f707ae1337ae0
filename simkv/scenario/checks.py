"""Values of a scenario held against each other: what contradicts, and what would do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simkv.kvcache.eviction import COUNTING
from simkv.scenario.active_idle import active_idle_paths
from simkv.scenario.batch_checks import batch_faults, batch_idle_paths
from simkv.scenario.batch_schema import BATCH_PRESETS
from simkv.scenario.class_checks import class_faults
from simkv.scenario.faults import Fault, Given
from simkv.scenario.lower_checks import lower_faults
from simkv.scenario.offload_schema import Eviction
from simkv.scenario.problems import nearest
from simkv.scenario.schema import SLO_KEYS, InlineHardware, InlineModel, Scenario
from simkv.scenario.text import Path
from simkv.scenario.warm_checks import warm_faults
from simkv.scenario.workload_schema import (
    AllAtOnceArrival,
    BatchWorkload,
    ClientsWorkload,
    ReadyQueueArrival,
    StagesArrival,
    TraceWorkload,
)


def cross_check(scenario: Scenario, given: Given) -> Iterator[Fault]:
    """Yield everything that doesn't go together."""
    for check in (
        _bounds, _trace, _turns, _classes, _slo, _pool, _policies, lower_faults, _replicas, _abstract, batch_faults,
        class_faults, warm_faults,
    ):  # fmt: skip
        yield from check(scenario, given)


def _bounds(s: Scenario, given: Given) -> Iterator[Fault]:
    """Hold that the workload ends."""
    load = s.workload
    if isinstance(load, TraceWorkload | ClientsWorkload):
        return
    if isinstance(load, BatchWorkload) and load.interval is None:
        return
    if isinstance(getattr(load, "arrival", None), StagesArrival | ReadyQueueArrival):
        return
    endless_at_once = isinstance(getattr(load, "arrival", None), AllAtOnceArrival)
    if load.requests is None and (s.run.duration is None or endless_at_once):
        mend = "give workload.requests" + ("" if endless_at_once else " or run.duration")
        yield Fault(("workload",), "nothing ends this workload", mend)


def _formats_with(key: str) -> list[str]:
    """Return the formats of traces with which ``arrival`` or ``block_tokens`` means something."""
    from simkv.workload.readers import READERS
    from simkv.workload.readers.aiperf import AiperfReader
    from simkv.workload.readers.base import SessionReader

    takes = {"arrival": SessionReader, "block_tokens": AiperfReader}[key]
    return sorted(name for name, reader in READERS.items() if isinstance(reader, takes))


def _trace(s: Scenario, given: Given) -> Iterator[Fault]:
    load = s.workload
    if not isinstance(load, TraceWorkload) or load.format == "auto":
        return
    what = f"does nothing with format {load.format}"
    for key in ("arrival", "block_tokens"):
        if getattr(load, key) is not None and load.format not in (formats := _formats_with(key)):
            yield Fault(("workload", key), what, f"it is for format {' or '.join(formats)}; leave it out")
    for key in ("columns", "arrival_unit"):
        if getattr(load, key) is not None and load.format != "log":
            yield Fault(("workload", key), what, "write format: log, or leave it out")


MOST_TURNS = 10_000


def _turns(s: Scenario, given: Given) -> Iterator[Fault]:
    """Hold a session to a length that somebody could mean: a session is planned whole when it starts."""
    turns = getattr(s.workload, "turns", None)
    keys = ("value", "high", "mean", "median", "max")
    parameters: list[tuple[Path, Any]] = [(("workload", "turns", key), getattr(turns, key, None)) for key in keys]
    if isinstance(turns, int):
        parameters = [(("workload", "turns"), turns)]
    parameters += [(("workload", "turns", "values"), max(getattr(turns, "values", None) or (0,)))]
    for path, number in parameters:
        if number is not None and number > MOST_TURNS:
            yield Fault(path, "too many turns", f"the most is {MOST_TURNS}")
    arrival = getattr(s.workload, "arrival", None)
    if isinstance(arrival, ReadyQueueArrival) and getattr(s.workload, "think_time", None):
        what = "does nothing with arrival.process ready_queue, whose client sends what is ready"
        yield Fault(("workload", "think_time"), what, "leave it out, or write process: closed_loop")


def _classes(s: Scenario, given: Given) -> Iterator[Fault]:
    mix = getattr(s.workload, "mix", None)
    if isinstance(s.workload, TraceWorkload):
        yield from _priorities(s)
        return
    if mix is not None and isinstance(getattr(s.workload, "arrival", None), StagesArrival):
        yield Fault(("workload", "mix"), "the stages are the classes", "leave it out, or give one rate")
        return
    if mix is None:
        if s.classes:
            yield Fault(("classes",), "no request is of these classes", "give their shares in workload.mix")
        return
    for name in mix:
        if name not in s.classes:
            yield Fault(("workload", "mix", name), "no such class", nearest(name, list(s.classes)) + " (see classes)")
    for name in s.classes:
        if name not in mix:
            yield Fault(("classes", name), "no request is of this class", f"give its share in workload.mix.{name}")
    if abs(sum(mix.values()) - 1) > 1e-6:
        yield Fault(("workload", "mix"), f"the shares sum to {sum(mix.values()):g}", "they must sum to 1")
    yield from _priorities(s)


def _priorities(s: Scenario) -> Iterator[Fault]:
    if s.engine.scheduling == "fcfs":
        for name in s.classes:
            if s.classes[name].priority != 0:
                mend = 'write "engine: {scheduling: priority}", or leave the priority out'
                yield Fault(("classes", name, "priority"), "does nothing under fcfs", mend)


def _slo(s: Scenario, given: Given) -> Iterator[Fault]:
    for key in s.slo:
        if key not in SLO_KEYS:
            yield Fault(("slo", key), "unknown target", nearest(key, SLO_KEYS))


def _pool(s: Scenario, given: Given) -> Iterator[Fault]:
    engine = s.engine
    if engine.num_gpu_blocks is not None and engine.kv_cache_tokens is not None:
        yield Fault(("engine", "kv_cache_tokens"), "num_gpu_blocks says the same", "give one of the two")
    if engine.kv_cache_tokens is not None and engine.kv_cache_tokens < 2 * engine.block_tokens:
        yield Fault(("engine", "kv_cache_tokens"), "less than two blocks", "give what the engine logged")
    if engine.max_num_batched_tokens < engine.max_num_seqs and engine.preset not in BATCH_PRESETS:
        mend = f"raise it to {engine.max_num_seqs} or lower engine.max_num_seqs"
        yield Fault(("engine", "max_num_batched_tokens"), "below max_num_seqs, which engines refuse", mend)


def _counts(eviction: Eviction) -> Iterator[Fault]:
    """Refuse a way to count uses that nobody goes by, and a half life without decay (or the other way round)."""
    place = ("offload", "eviction")
    if eviction.count is not None and eviction.policy not in COUNTING:
        mend = "write policy: score or lfu, or leave count out"
        yield Fault((*place, "count"), f"does nothing with policy {eviction.policy}", mend)
    if eviction.half_life is not None and eviction.count != "decayed":
        mend = "write count: decayed, or leave half_life out"
        yield Fault((*place, "half_life"), "does nothing unless count is decayed", mend)
    if eviction.count == "decayed" and eviction.half_life is None:
        yield Fault((*place, "half_life"), "is missing", "say after how many uses of anything a use counts half")


def _policies(s: Scenario, given: Given) -> Iterator[Fault]:
    offload = s.offload
    if offload.eviction.lambda_ is not None and offload.eviction.policy != "score":
        mend = "write policy: score, or leave lambda out"
        yield Fault(("offload", "eviction", "lambda"), f"does nothing with policy {offload.eviction.policy}", mend)
    yield from _counts(offload.eviction)
    if offload.prefetch.window is not None and offload.prefetch.policy != "queue":
        mend = "write policy: queue, or leave window out"
        yield Fault(("offload", "prefetch", "window"), f"does nothing with policy {offload.prefetch.policy}", mend)
    if s.engine.store_outputs and given(("engine", "store_outputs")) and not offload.write.startswith("write_through"):
        mend = "write a write_through policy, or leave store_outputs out"
        yield Fault(("engine", "store_outputs"), f"does nothing with offload.write {offload.write}", mend)
    if s.engine.load != "hold" and s.engine.host_cost_per_load and given(("engine", "host_cost_per_load")):
        mend = "write load: hold, or leave it out"
        yield Fault(("engine", "host_cost_per_load"), f"does nothing with load: {s.engine.load}", mend)
    if s.tiers.relation == "exclusive" and offload.write.startswith("write_through"):
        other = "rewrite" if s.active else "never"
        mend = f"with exclusive tiers write write_back (a block moves down when it is evicted), or {other}"
        yield Fault(("offload", "write"), f"{offload.write} keeps copies, and the tiers are exclusive", mend)


def _replicas(s: Scenario, given: Given) -> Iterator[Fault]:
    if s.replicas.hosts > s.replicas.count:
        mend = f"the most is replicas.count, {s.replicas.count}"
        yield Fault(("replicas", "hosts"), "more hosts than replicas", mend)
    if s.replicas.scorers is not None and s.replicas.router != "scored":
        mend = "write router: scored, or leave it out"
        yield Fault(("replicas", "scorers"), f"does nothing with router {s.replicas.router}", mend)
    uplink, ranks = s.link.uplink, s.replicas.tensor_parallel
    if uplink is not None and uplink.gpus % ranks and ranks % uplink.gpus:
        fitting = ", ".join(str(n) for n in range(1, 2 * ranks + 1) if n % ranks == 0 or ranks % n == 0)
        mend = f"with replicas.tensor_parallel {ranks} it can be {fitting} or another multiple"
        yield Fault(("link", "uplink", "gpus"), "would cut a replica's ranks apart", mend)


_REAL_ONLY: tuple[Path, ...] = (
    ("engine", "gpu_memory_utilization"), ("engine", "num_gpu_blocks"), ("engine", "kv_cache_tokens"),
    ("engine", "weight_dtype"), ("engine", "enforce_eager"), ("engine", "hybrid_kv_cache"),
    ("engine", "attention_backend"), ("replicas", "tensor_parallel"),
)  # fmt: skip


def idle_paths(s: Scenario) -> tuple[Path, ...]:
    """Return the keys that mean nothing in this scenario: what describes real hardware on inline, and the like."""
    if s.engine.preset in BATCH_PRESETS:
        return batch_idle_paths(s)
    measured: tuple[Path, ...] = (("engine", "enforce_eager"),) if s.engine.attention_kernels is not None else ()
    budgeted: tuple[Path, ...] = (("offload", "residency"),) if s.offload.vram_budget is not None else ()
    return (*active_idle_paths(s), *_real_only(s), *measured, *budgeted)


def _real_only(s: Scenario) -> tuple[Path, ...]:
    if s.engine.preset in BATCH_PRESETS or not isinstance(s.hardware, InlineHardware):
        return ()
    return (*_REAL_ONLY, ("engine", "kv_dtype")) if isinstance(s.model, InlineModel) else _REAL_ONLY


def _abstract(s: Scenario, given: Given) -> Iterator[Fault]:
    if isinstance(s.model, InlineModel) and not isinstance(s.hardware, InlineHardware):
        mend = "give hardware inline too, like {step_time: 20ms, kv_tokens: 100000}, or a catalogue model"
        yield Fault(("model",), "a model without weights can't run on real hardware", mend)
    for path in _real_only(s):
        if given(path):
            yield Fault(path, "does nothing on inline hardware", "leave it out")
