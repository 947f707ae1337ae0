"""The closed forms that stand beside a simulated answer, worked out for one scenario."""

from __future__ import annotations

from collections.abc import Mapping

from simkv.formulas.latency import average_latency
from simkv.formulas.overlap import feasible_beta, fill_bubble, speedup, speedup_bounds, step_ideal, step_serial
from simkv.formulas.placement import Job, published, schedule_s
from simkv.formulas.transfer import transfer_s
from simkv.kvcache.access import make_pattern
from simkv.results.window import finished, makespan_s
from simkv.sim.active.assembly import make_share
from simkv.sim.active.config import ActiveConfig, PrefetchConfig
from simkv.sim.active.measured import Measured
from simkv.sim.batchmode.config import BatchConfig
from simkv.sim.config import SystemConfig
from simkv.sim.rundata import RunData


def first_order(config: SystemConfig, data: RunData) -> Mapping[str, float]:
    """Return the first-order answers by the name of the summary key that they stand beside.

    They take the mean request of the run: TTFT alone on an idle replica, without and with what the
    caches hit (loaded first, where it lay below VRAM); TPOT at the mean concurrency. Bandwidths in
    bytes/s, times in seconds.
    """
    token_bytes = config.engine.block_bytes // config.engine.block_tokens
    served = finished(data)
    if config.batch is not None and len(served):
        return {"kv_token_bytes": token_bytes} | _batch_order(config.batch, data)
    if not len(served):
        return {"kv_token_bytes": token_bytes}
    if config.active is not None and (config.active.sparse or config.active.prefill != "here"):
        return {"kv_token_bytes": token_bytes}
    prompt = float(data.requests["prompt_tokens"][served].mean())
    output = float(data.requests["output_tokens"][served].mean())
    vram, dram, ssd = (float(data.requests[f"hit_{tier}_tokens"][served].mean()) for tier in ("vram", "dram", "ssd"))
    computed = max(1, round(prompt - vram - dram - ssd))
    cost = config.cost
    alone_s = cost.mixed(0, 0, [(max(1, round(prompt)), 0)], 1)
    hit_s = cost.mixed(0, 0, [(computed, max(0, round(prompt) - computed))], 1)
    return {
        "kv_token_bytes": token_bytes,
        "ttft_s": _load_s(config, dram + ssd, ssd) + hit_s,
        "ttft_without_cache_s": alone_s,
        "tpot_s": _tpot_s(config, data, prompt + output / 2),
        "load_breakeven_bytes_per_s": token_bytes * prompt / alone_s,
    }


def _batch_order(batch: BatchConfig, data: RunData) -> dict[str, float]:
    """Batch mode, one full batch of the longest requests: FlexGen's closed form, and the schedule alone.

    The keys of the summary hold the schedule's, ``published_*`` FlexGen's.
    """
    served = finished(data)
    longest = [int(data.requests[name][served].max()) for name in ("prompt_tokens", "output_tokens")]
    job = Job(min(batch.policy.sequences, len(served)), *longest)
    first_s, total_s = schedule_s(batch.layer, batch.policy, batch.rates, job)
    theirs = published(batch.layer, batch.policy, batch.rates, job)
    between = max(1, job.output_tokens - 1)
    return {
        "ttft_s": first_s,
        "tpot_s": (total_s - first_s) / between,
        "e2e_s": total_s,
        "output_tokens_per_s": job.sequences * job.output_tokens / total_s,
        "published_ttft_s": theirs.prefill_s,
        "published_tpot_s": theirs.decode_s / between,
        "published_e2e_s": theirs.total_s,
        "published_output_tokens_per_s": theirs.tokens_per_s,
    }


def concurrency_formula(config: SystemConfig, data: RunData) -> float | None:
    """C_max of all replicas: KV blocks over those of a mean request at its end, at most the seats.

    Windows and states count with what they take while it decodes.
    """
    served = finished(data)
    if not len(served):
        return None
    engine = config.engine
    if config.batch is not None:
        return float(config.batch.policy.sequences * config.replicas)
    tokens = data.requests["prompt_tokens"][served].mean() + data.requests["output_tokens"][served].mean()
    blocks = -(-float(tokens) // engine.block_tokens)
    if config.active is not None:
        return _resident_sequences(config, config.active, blocks)
    if engine.side is not None:
        blocks += engine.side.decoding(round(tokens))
    return float(min(engine.num_gpu_blocks // blocks, engine.max_num_seqs) * config.replicas)


def _resident_sequences(config: SystemConfig, active: ActiveConfig, blocks: float) -> float:
    """The article's C_max = floor(M / (p S)) of all replicas, at most the seats; all of them where p is 0."""
    engine = config.engine
    kept = active.residency * blocks if active.budget_blocks is None else 0.0
    seats = engine.max_num_seqs
    fitting = min(seats, int(engine.num_gpu_blocks / kept + 1e-9)) if kept else seats
    return float(fitting * config.replicas)


def _staged_sequences(config: SystemConfig, active: ActiveConfig, data: RunData) -> float | None:
    """How many mean requests fit at their end with whole blocks and staging buffers; None where all share a budget."""
    served = finished(data)
    if active.budget_blocks is not None or not len(served):
        return None
    engine = config.engine
    pattern = make_pattern(active.access, engine.block_tokens, active.groups, active.seed)
    share = make_share(config, pattern)
    tokens = data.requests["prompt_tokens"][served].mean() + data.requests["output_tokens"][served].mean()
    taken = share.taken(share.total(round(float(tokens))))
    return float(min(engine.num_gpu_blocks // taken, engine.max_num_seqs) * config.replicas)


def _load_s(config: SystemConfig, below_tokens: float, ssd_tokens: float) -> float:
    """Time to bring hits below VRAM up an idle link, and those on SSD to DRAM before that."""
    engine, link, ssd = config.engine, config.link, config.ssd
    blocks, ssd_blocks = below_tokens / engine.block_tokens, ssd_tokens / engine.block_tokens
    size_bytes = blocks * engine.block_bytes
    up_s = max(
        transfer_s(size_bytes, link.h2d_bytes_per_s, blocks * link.descriptors_per_block, link.latency_s, link.setup_s),
        transfer_s(size_bytes, link.uplink_bytes_per_s),
    )
    units = ssd_blocks / config.offload.unit_blocks
    read_s = transfer_s(
        ssd_blocks * engine.block_bytes, ssd.read_bytes_per_s, units, ssd.request_latency_s, ssd.latency_s
    )
    return up_s + read_s


def _tpot_s(config: SystemConfig, data: RunData, context: float) -> float:
    makespan = makespan_s(data)
    running = data.running_time_s / makespan / config.replicas if makespan > 0 else 1.0
    sequences = max(1, round(running))
    return config.cost.decode(sequences, max(1, round(sequences * context)))[0]


def active_first_order(config: SystemConfig, data: RunData) -> dict[str, float]:
    """Return the closed forms of active offload at what the run measured of its inputs.

    ``t_step_s``: the article's max(T_c, T_t) with prefetch, T_c + T_t without, T_t being bytes over bandwidth;
    ``t_avg_s``: p_hit T_vram + (1 - p_hit) T_mem for one (block, layer); ``speedup``: S(β) at the measured β, cut
    to what is feasible, and its two bounds; ``beta_feasible``: min(1, T_c / T_t).
    """
    active, measured = config.active, data.active
    if active is None or measured is None or not measured.steps or not measured.reads:
        return {}
    compute_s = measured.compute_s / measured.steps
    needed_s = measured.needed_s / measured.steps
    bare_s = needed_s * (1 - measured.descriptors_s / measured.service_s) if measured.service_s > 0 else 0.0
    p_hit = min(1.0, measured.hits / measured.reads)
    found = {
        "t_step_s": _step_s(active.prefetch, compute_s, bare_s),
        "t_compute_s": compute_s,
        "t_transfer_s": bare_s,
        "t_vram_s": active.read_s,
        "t_mem_s": active.read_s + _piece_s(config, measured),
        "bubble_s": fill_bubble(compute_s, bare_s, active.layers) if active.prefetch.policy == "layer" else 0.0,
        "beta_feasible": feasible_beta(compute_s, bare_s),
    }
    staged = _staged_sequences(config, active, data)
    if staged is not None:
        found["concurrency_with_staging"] = staged
    found["t_avg_s"] = average_latency(p_hit, active.read_s, found["t_mem_s"])
    if measured.carried_s > 0 and active.prefetch.policy != "none":
        beta = max(0.0, min(feasible_beta(compute_s, needed_s), 1 - measured.exposed_s / measured.carried_s))
        bounds = speedup_bounds(compute_s, needed_s)
        found |= {"speedup": speedup(compute_s, needed_s, beta), "speedup_most": bounds.value}
        found["speedup_most_article"] = bounds.article
    return found


def _step_s(prefetch: PrefetchConfig, compute_s: float, moving_s: float) -> float:
    if prefetch.policy == "none":
        return step_serial(compute_s, moving_s)
    if prefetch.policy == "fixed_overlap":
        beta = min(prefetch.beta, feasible_beta(compute_s, moving_s))
        return compute_s + (1 - beta) * moving_s
    return step_ideal(compute_s, moving_s)


def _piece_s(config: SystemConfig, measured: Measured) -> float:
    """Time to bring one (block, layer) up alone, over where the run's loads came from."""
    assert config.active is not None
    nbytes = config.engine.block_bytes / config.active.layers
    link, ssd, loads = config.link, config.ssd, measured.loads_dram + measured.loads_ssd
    up_s = transfer_s(nbytes, link.h2d_bytes_per_s, 1, link.latency_s, link.setup_s)
    if not loads or not measured.loads_ssd:
        return up_s
    read_s = transfer_s(nbytes, ssd.read_bytes_per_s, 1, ssd.request_latency_s, ssd.latency_s)
    return up_s + read_s * measured.loads_ssd / loads
