"""The closed forms that stand beside a simulated answer, worked out for one scenario."""

from __future__ import annotations

from collections.abc import Mapping

from simkv.formulas.transfer import transfer_s
from simkv.results.window import finished, makespan_s
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
    if not len(served):
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


def concurrency_formula(config: SystemConfig, data: RunData) -> float | None:
    """C_max of all replicas: KV blocks over those of a mean request at its end, at most the seats.

    Windows and states count with what they take while it decodes.
    """
    served = finished(data)
    if not len(served):
        return None
    engine = config.engine
    tokens = data.requests["prompt_tokens"][served].mean() + data.requests["output_tokens"][served].mean()
    blocks = -(-float(tokens) // engine.block_tokens)
    if engine.side is not None:
        blocks += engine.side.decoding(round(tokens))
    return float(min(engine.num_gpu_blocks // blocks, engine.max_num_seqs) * config.replicas)


def _load_s(config: SystemConfig, below_tokens: float, ssd_tokens: float) -> float:
    """Time to bring hits below VRAM up an idle link, and those on SSD to DRAM before that."""
    engine, link, ssd = config.engine, config.link, config.ssd
    blocks, ssd_blocks = below_tokens / engine.block_tokens, ssd_tokens / engine.block_tokens
    size_bytes = blocks * engine.block_bytes
    up_s = max(
        transfer_s(size_bytes, link.h2d_bytes_per_s, blocks * link.descriptors_per_block, link.latency_s),
        transfer_s(size_bytes, link.uplink_bytes_per_s),
    )
    return up_s + transfer_s(ssd_blocks * engine.block_bytes, ssd.read_bytes_per_s, 1, ssd.latency_s)


def _tpot_s(config: SystemConfig, data: RunData, context: float) -> float:
    makespan = makespan_s(data)
    running = data.running_time_s / makespan / config.replicas if makespan > 0 else 1.0
    sequences = max(1, round(running))
    return config.cost.decode(sequences, max(1, round(sequences * context)))[0]
