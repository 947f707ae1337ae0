"""The closed forms that stand beside a simulated answer, worked out for one scenario."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simkv.scenario import build
from simkv.scenario.resolve import Resolved
from simkv.sim.config import SystemConfig
from simkv.sim.rundata import RunData


def first_order(resolved: Resolved, config: SystemConfig, data: RunData) -> Mapping[str, float]:
    """Return the first-order answers by the name of the summary key that they stand beside.

    They take the mean request of the run: TTFT alone on an idle replica, without and with what the
    caches hit; TPOT at the mean concurrency; C_max over the replicas (design formulas of
    :mod:`simkv.formulas`). Bandwidths in bytes/s, times in seconds.
    """
    served = ~data.requests["rejected"].astype(bool)
    if not served.any():
        return {"kv_token_bytes": build.kv_bytes_of_token(resolved)}
    prompt = float(data.requests["prompt_tokens"][served].mean())
    output = float(data.requests["output_tokens"][served].mean())
    computed = max(1, round(prompt - _hit_tokens(data, served)))
    cost = config.cost
    alone_s = cost.mixed(0, 0, [(max(1, round(prompt)), 0)], 1)
    hit_s = cost.mixed(0, 0, [(computed, max(0, round(prompt) - computed))], 1)
    return {
        "kv_token_bytes": build.kv_bytes_of_token(resolved),
        "ttft_s": hit_s,
        "ttft_without_cache_s": alone_s,
        "tpot_s": _tpot_s(config, data, prompt + output / 2),
        "load_breakeven_bytes_per_s": build.kv_bytes_of_token(resolved) * prompt / alone_s,
    }


def concurrency_formula(config: SystemConfig, data: RunData) -> float | None:
    """C_max of all replicas: KV blocks over the blocks of a mean request at its end, at most the seats."""
    served = ~data.requests["rejected"].astype(bool)
    if not served.any():
        return None
    engine = config.engine
    tokens = data.requests["prompt_tokens"][served].mean() + data.requests["output_tokens"][served].mean()
    blocks = -(-float(tokens) // engine.block_tokens)
    return float(min(engine.num_gpu_blocks // blocks, engine.max_num_seqs) * config.replicas)


def _hit_tokens(data: RunData, served: np.ndarray) -> float:
    columns = ("hit_vram_tokens", "hit_dram_tokens", "hit_ssd_tokens")
    return float(sum(data.requests[name][served].mean() for name in columns))


def _tpot_s(config: SystemConfig, data: RunData, context: float) -> float:
    running = data.running_time_s / data.end_s / config.replicas if data.end_s > 0 else 1.0
    sequences = max(1, round(running))
    return config.cost.decode(sequences, max(1, round(sequences * context)))[0]
