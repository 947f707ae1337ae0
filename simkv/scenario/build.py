"""From a resolved scenario to what the simulator runs: a system and a workload."""

from __future__ import annotations

import os
from dataclasses import replace
from math import inf
from typing import Any

from simkv.errors import InputError, Problem
from simkv.formulas.backends import with_backend
from simkv.formulas.interpolated import interpolated_step
from simkv.formulas.pages import NULL_PAGES, PageLayout, state_pages
from simkv.formulas.step import ConstantStep, step_cost
from simkv.scenario import calibrated, paging, placing
from simkv.scenario.active import active_config
from simkv.scenario.base import FileRef, plain
from simkv.scenario.offload_schema import ACTIVE_PREFETCH
from simkv.scenario.resolve import Resolved
from simkv.scenario.schema import Engine, InlineHardware, InlineModel, Scenario, Scorers, Uplink
from simkv.scenario.workload_schema import ClientsWorkload, FittedWorkload, TraceWorkload, Workload, spec
from simkv.sim.config import (
    ClassConfig,
    DramConfig,
    EngineConfig,
    LinkConfig,
    OffloadConfig,
    RememberedPrefixes,
    Scores,
    SideBlocks,
    SsdConfig,
    StepCost,
    SystemConfig,
    WindowPages,
)
from simkv.workload.request import Source


def system_config(resolved: Resolved, seed: int | None = None) -> SystemConfig:
    """Return the system that the scenario describes; ``seed`` (absent: the scenario's) is of what attention reads."""
    s = resolved.scenario
    dram, ssd = s.tiers.dram, s.tiers.ssd
    engine, step = engine_config(resolved), cost(resolved)
    config = SystemConfig(
        engine=engine,
        cost=step,
        replicas=s.replicas.count,
        hosts=s.replicas.hosts,
        router=s.replicas.router,
        link=link_config(resolved),
        dram=DramConfig(dram.capacity, dram.bandwidth, dram.shared),
        ssd=SsdConfig(ssd.capacity, ssd.read, ssd.write, ssd.latency, ssd.queue_depth, ssd.request_latency),
        offload=offload_config(resolved),
        active=active_config(resolved, engine.block_bytes, step.layers, s.run.seed if seed is None else seed),
        classes=tuple(
            ClassConfig(name, one.priority, one.vram_share, one.dram_share, one.retention)
            for name, one in s.classes.items()
        ),
        scores=router_scores(s, engine.num_gpu_blocks, s.run.seed if seed is None else seed),
        duration_s=s.run.duration,
    )
    if resolved.model is None or resolved.gpu is None or not placing.in_batches(s):
        return config
    return placing.batched(config, s, resolved.model, resolved.gpu)


def router_scores(scenario: Scenario, vram_blocks: int, seed: int) -> Scores | None:
    """Return the weights of router ``scored``; None for others."""
    if scenario.replicas.router != "scored":
        return None
    scorers = scenario.replicas.scorers or Scorers()
    prefixes = [one for one in (scorers.prefix, scorers.lower_prefix) if one is not None and one.weight]
    return Scores(
        scorers.queue, scorers.kv_usage, scorers.in_flight, scorers.cold,
        tuple(
            RememberedPrefixes(
                one.weight, one.block_tokens, one.most_tokens,
                vram_blocks if one.capacity is None else max(1, one.capacity // one.block_tokens),
            )
            for one in prefixes
        ),
        scorers.poll, seed,
    )  # fmt: skip


def engine_config(resolved: Resolved) -> EngineConfig:
    """Return one replica's engine."""
    engine = resolved.scenario.engine
    assert engine.max_model_len is not None, "resolved"
    layout = _layout(resolved)
    tokens = block_tokens(resolved)
    return EngineConfig(
        block_tokens=tokens,
        block_bytes=tokens * kv_bytes_of_token(resolved),
        num_gpu_blocks=usable_blocks(resolved, layout),
        max_num_seqs=engine.max_num_seqs,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        max_model_len=engine.max_model_len,
        scheduling=engine.scheduling,
        prefix_caching=engine.prefix_caching or finds_below(resolved.scenario),
        keeps_vram=engine.prefix_caching or not finds_below(resolved.scenario),
        reserve_full_prompt=engine.reserve_full_prompt,
        load=engine.load,
        store_outputs=engine.store_outputs,
        preemption=engine.preemption,
        side=side_blocks(layout, engine) if layout is not None else None,
        async_scheduling=bool(engine.async_scheduling),
        host_block_s=engine.host_cost_per_block or 0.0,
        host_load_s=engine.host_cost_per_load or 0.0,
    )


CONNECTORS = ("vllm", "vllm-tiering", "lmcache")
"""Presets of vLLM, whose connectors find blocks below VRAM whether or not VRAM itself keeps prefixes."""


def finds_below(scenario: Scenario) -> bool:
    """Say whether lower tiers are asked about prompts even where VRAM keeps nothing of them."""
    return scenario.engine.preset in CONNECTORS and scenario.tiers.dram.exists and not scenario.active


def side_blocks(layout: PageLayout, engine: Engine) -> SideBlocks | None:
    """Return what a sequence holds beside the blocks of its tokens; None where every layer's cache grows."""
    if not layout.bounded:
        return None
    batched, unbounded = engine.max_num_batched_tokens, 1 << 60
    windows = tuple(
        WindowPages(group.block_tokens, group.asked_pages(unbounded, 1, 0), group.asked_pages(unbounded, batched, 0))
        for group in layout.bounded
        if group.kind != "state"
    )
    states = (len(layout.bounded) - len(windows)) * state_pages(engine.prefix_caching)
    return SideBlocks(windows, states, layout.pages_per_block)


def block_tokens(resolved: Resolved) -> int:
    """Return the tokens of one block of the layers whose cache grows."""
    layout = _layout(resolved)
    return layout.block_tokens if layout is not None else resolved.scenario.engine.block_tokens


def _layout(resolved: Resolved) -> PageLayout | None:
    """Return how the pool of a real machine is cut; an abstract one counts tokens."""
    scenario = resolved.scenario
    if resolved.model is None or isinstance(scenario.hardware, InlineHardware) or placing.in_batches(scenario):
        return None
    return paging.layout_of(resolved.scenario, resolved.model)


def usable_blocks(resolved: Resolved, layout: PageLayout | None) -> int:
    """Return how many KV blocks requests can have; on real hardware vLLM keeps one to itself."""
    hardware, engine = resolved.scenario.hardware, resolved.scenario.engine
    if isinstance(hardware, InlineHardware):
        return max(1, hardware.kv_tokens // engine.block_tokens)
    assert engine.num_gpu_blocks is not None, "resolved"
    if layout is None:
        return engine.num_gpu_blocks
    return (engine.num_gpu_blocks - NULL_PAGES) // layout.pages_per_block


def kv_bytes_of_token(resolved: Resolved) -> int:
    """Return the bytes of one token's KV in the layers whose cache grows, all ranks."""
    s = resolved.scenario
    if isinstance(s.model, InlineModel):
        return int(s.model.kv_bytes_per_token)
    assert resolved.model is not None
    if placing.in_batches(s):
        return placing.kv_bytes_of_token(s.engine, resolved.model)
    return paging.growth_bytes_of_token(s, resolved.model)


def cost(resolved: Resolved) -> StepCost:
    """Return what a step of the engine takes."""
    s = resolved.scenario
    if isinstance(s.hardware, InlineHardware):
        return ConstantStep(s.hardware.step_time, resolved.model.layers if resolved.model is not None else 1)
    assert resolved.model is not None and resolved.gpu is not None
    mode: Any = "eager" if s.engine.enforce_eager else "graphs"
    gpu = with_backend(resolved.gpu, s.engine.attention_backend or "flash")
    roofline = step_cost(
        resolved.model, gpu, s.replicas.tensor_parallel, s.engine.weight_dtype, s.engine.kv_dtype, mode
    )
    profile = resolved.profile
    if profile is None or profile.fit.compute is None or not calibrated.step_times(profile, s, resolved.model):
        return roofline
    return interpolated_step(profile.fit.compute, roofline, s.engine.attention_kernels or "contiguous")


def link_config(resolved: Resolved) -> LinkConfig:
    """Return the host link of a replica: each rank moves its share over its own."""
    link, ranks = resolved.scenario.link, resolved.scenario.replicas.tensor_parallel
    assert isinstance(link.descriptors_per_block, int), "resolved"
    uplink_bytes_per_s, uplink_replicas = _uplink(link.uplink, ranks)
    return LinkConfig(
        h2d_bytes_per_s=link.h2d * ranks,
        d2h_bytes_per_s=link.d2h * ranks,
        duplex_bytes_per_s=link.duplex * ranks,
        latency_s=link.latency,
        descriptors_per_block=link.descriptors_per_block,
        chunk_bytes=int(link.chunk),
        uplink_bytes_per_s=uplink_bytes_per_s,
        uplink_replicas=uplink_replicas,
        setup_s=link.setup,
    )


def _uplink(uplink: Uplink | None, ranks: int) -> tuple[float, int]:
    """Return what a group of replicas has towards the host, a direction, and how many share it."""
    if uplink is None:
        return inf, 1
    whole = max(1, ranks // uplink.gpus)
    return uplink.bandwidth * whole, max(1, uplink.gpus // ranks)


def _reuse_prefetch(policy: str) -> Any:
    """Return the prefetch policy of prefix reuse; active offload has its own."""
    return "none" if policy in ACTIVE_PREFETCH else policy


def offload_config(resolved: Resolved) -> OffloadConfig:
    """Return the policies of the lower tiers."""
    offload = resolved.scenario.offload
    config = OffloadConfig(
        eviction=offload.eviction.policy,
        eviction_lambda=offload.eviction.lambda_,
        eviction_count=offload.eviction.count or "in_cache",
        eviction_half_life_uses=offload.eviction.half_life,
        write=offload.write,
        relation=resolved.scenario.tiers.relation,
        prefetch=_reuse_prefetch(offload.prefetch.policy),
        prefetch_window=offload.prefetch.window or 1,
        unit_blocks=unit_blocks(resolved),
        when_full=offload.when_full,
        whole_nodes=offload.eviction.unit == "node",
        write_back_blocks=offload.write_back_blocks,
    )
    ahead = offload.prefetch
    given: dict[str, Any] = {
        "prefetch_stop": ahead.stop,
        "timeout_base_s": ahead.timeout_base,
        "timeout_per_ki_token_s": ahead.timeout_per_ki_token,
        "timeout_most_s": ahead.timeout_most,
        "prefetch_min_tokens": ahead.min_tokens,
        "prefetch_in_flight": ahead.in_flight,
        "prefetch_batch_blocks": ahead.batch,
    }
    return replace(config, **{name: value for name, value in given.items() if value is not None})


def unit_blocks(resolved: Resolved) -> int:
    """Return how many blocks a unit of the lower tiers is; a block that was raised for a state may be more than one."""
    unit_tokens = resolved.scenario.offload.unit_tokens
    return -(-unit_tokens // block_tokens(resolved)) if unit_tokens is not None else 1


def workload_source(resolved: Resolved, seed: int) -> Source:
    """Return the workload; raises InputError for a trace that isn't there or doesn't read well.

    Under ``run.warm_tiers`` it is a :class:`Handover`, which lets its beginning pass untimed.
    """
    try:
        return _workload_source(resolved, seed)
    except InputError as error:
        file = resolved.layers.file
        raise InputError([found if found.file else replace(found, file=file) for found in error.problems]) from None


def _workload_source(resolved: Resolved, seed: int) -> Source:
    run, workload = resolved.scenario.run, resolved.scenario.workload
    if not run.warm_tiers:
        return _source(resolved, workload, seed, run.duration)
    bound: int | None = getattr(workload, "requests", None)
    endless = not isinstance(workload, TraceWorkload | ClientsWorkload)
    if endless:
        workload = workload.model_copy(update={"requests": _ENDLESS})
    original = _source(resolved, workload, seed, None)
    return _handover(resolved, original, bound if endless else None, endless)


_ENDLESS = 1 << 60
"""Requests; more than anybody asks a source for."""


def _handover(resolved: Resolved, original: Source, requests: int | None, endless: bool) -> Source:
    """Return ``original`` with its beginning untimed, and ``requests`` of it timed after that."""
    from simkv.sim.warm import AssumedService
    from simkv.workload.handover import Handover

    run = resolved.scenario.run
    assert run.warm_tiers is not None
    service = AssumedService(cost(resolved), resolved.scenario.engine.max_num_seqs, resolved.scenario.replicas.count)
    return Handover(original, run.warm_tiers, service, requests, endless, resolved.layers.file)


def _source(resolved: Resolved, workload: Workload, seed: int, duration_s: float | None) -> Source:
    if isinstance(workload, TraceWorkload):
        from simkv.workload.readers import open_trace
        from simkv.workload.starts import session_starts
        from simkv.workload.streams import Streams

        check_file(workload.path, "workload.path", resolved.layers.file, folder=True)
        source = open_trace(
            workload.path.path,
            workload.format,
            workload.time_scale,
            workload.limit,
            duration_s,
            workload.columns.by_role() if workload.columns is not None else None,
            workload.arrival_unit,
            workload.block_tokens,
            session_starts(plain(workload.arrival), Streams(seed), "workload.arrival") if workload.arrival else None,
        )
        if resolved.scenario.classes:
            _check_classes(tuple(resolved.scenario.classes), source.class_names, resolved.layers.file)
        return source
    if isinstance(workload, ClientsWorkload):
        from simkv.workload.clients import build_clients

        check_file(workload.path, "workload.path", resolved.layers.file, folder=True)
        return build_clients(spec(workload), seed, duration_s)
    if isinstance(workload, FittedWorkload):
        from simkv.workload.fitted import build_fitted

        check_file(workload.path, "workload.path", resolved.layers.file)
        return build_fitted(spec(workload), seed, duration_s)
    from simkv.workload.synthetic import build

    return build(spec(workload), seed, duration_s)


def _check_classes(configured: tuple[str, ...], found: tuple[str, ...], scenario_file: str) -> None:
    """Raise InputError where a trace has no request of a class that the scenario describes."""
    for name in configured:
        if name not in found:
            named = [other for other in found if other]
            mend = f"its classes are {', '.join(named[:8])}" if named else "name its column in workload.columns.class"
            raise InputError(
                Problem("no request of the trace is of this class", mend, scenario_file, None, f"classes.{name}")
            )


def check_file(ref: FileRef, path: str, scenario_file: str, *, folder: bool = False) -> None:
    """Raise InputError where ``ref`` is no file (or, with ``folder``, folder), saying where it was looked for."""
    if os.path.exists(ref.path) and (folder or not os.path.isdir(ref.path)):
        return
    what = "is a folder" if os.path.isdir(ref.path) else "no such file"
    beside = os.path.dirname(ref.path)
    places = f"looked in {beside} and the working directory" if beside else "looked in the working directory"
    mend = f"{places}; give it with --set {path}=FILE"
    raise InputError(Problem(what, mend, scenario_file, None, path, f'"{ref.given}"'))
