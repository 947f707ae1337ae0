"""A full house: as many decoding sequences of the workload's own length as there is room for, and nothing else.

Curves over p and β are about decode steps. A scenario's own arrivals would say as much about load; so its mean
request is taken, just before it ends, its prompt there already (``engine.prefill: vram``), on one replica. Where the
scenario has no active offload this is a what-if: the same machine, model and lengths with part of the KV in DRAM.
A log of accesses is of its own sequences: such a scenario stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from math import inf

from simkv.curves.setting import Setting
from simkv.formulas.concurrency import max_concurrency
from simkv.kvcache.access import make_pattern
from simkv.scenario.active_idle import ACTIVE_IDLE
from simkv.scenario.build import system_config
from simkv.sim.active.assembly import make_share
from simkv.sim.config import SystemConfig
from simkv.sweeps.simulate import Case
from simkv.units import exact

NONE, LAYER = "{policy: none}", "{policy: layer}"

_DENSE_OUTPUTS = 8
"""Tokens that each sequence decodes: all steps are alike."""
_SPARSE_OUTPUTS = 128
"""Residency is earned over the first of them."""
_ROOM = 1.02
"""DRAM of a what-if over what its sequences take."""
_PLENTY_BYTES = 1 << 50


class House:
    """Builds the cases of one scenario's full house; raises InputError and InfeasibleError where it can't have one."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        lengths, longest = setting.lengths, setting.scenario.engine.max_model_len
        self.end_tokens = min(lengths.prompt_tokens + lengths.output_tokens, longest or 1 << 60)
        outputs = _SPARSE_OUTPUTS if setting.kind == "sparse" else _DENSE_OUTPUTS
        self.outputs = max(1, min(outputs, lengths.output_tokens, self.end_tokens - 1))
        self.what_if = setting.kind == "reuse"
        self._any: SystemConfig | None = None
        self.dram_bytes = self._dram_bytes() if self.what_if else int(setting.scenario.tiers.dram.capacity)

    def case(self, residency: float | None, size: int, prefetch: str) -> Case:
        """Return ``size`` sequences that keep ``residency`` in VRAM (None: as the scenario says)."""
        if self.setting.kind == "replay":
            return self.setting.case(*self._policies(residency, prefetch))
        prompt = self.end_tokens - self.outputs
        batch = f"{{kind: batch, size: {size}, prompt_tokens: {prompt}, output_tokens: {self.outputs}}}"
        return self.setting.case(
            f"workload={batch}",
            "engine.prefill=vram",
            "engine.prefix_caching=false",
            "replicas.count=1",
            "replicas.hosts=1",
            "run.warm_up=0s",
            *self._idle(),
            *self._policies(residency, prefetch),
        )

    def _idle(self) -> Iterator[str]:
        """Yield what takes out of the scenario that a full house has no use for."""
        for path in (*ACTIVE_IDLE, ("run", "duration"), ("classes",)):
            replaced = self.what_if and path[0] == "offload"
            if self.setting.resolved.layers.given(path) and not replaced:
                yield f"{'.'.join(path)}=null"

    def _policies(self, residency: float | None, prefetch: str) -> Iterator[str]:
        offload = self.setting.scenario.offload
        if self.what_if:
            unit = "" if offload.unit_tokens is None else f", unit_tokens: {self.setting.scenario.engine.block_tokens}"
            yield (
                f"offload={{residency: {residency}, access: {{pattern: dense}}, eviction: {{policy: lru}}, "
                f"write: write_through, prefetch: {prefetch}{unit}}}"
            )
            bandwidth = exact(self.setting.scenario.tiers.dram.bandwidth or inf, "rate")
            yield f"tiers={{dram: {{capacity: {self.dram_bytes}B, bandwidth: {bandwidth}}}, relation: copy}}"
            return
        if residency is not None:
            yield f"offload.residency={residency}"
            if offload.vram_budget is not None:
                yield "offload.vram_budget=null"
        yield f"offload.prefetch={prefetch}"

    def _dram_bytes(self) -> int:
        """Return the DRAM of the what-if: what the scenario has, or what its sequences need, as far as it is there."""
        have, instance = int(self.setting.scenario.tiers.dram.capacity), self.setting.resolved.instance
        most = _PLENTY_BYTES if instance is None else instance.dram_bytes
        self.dram_bytes = max(have, most)
        ps = residencies(self.setting)
        config = self._config(ps[0])
        running = max(min(config.engine.max_num_seqs, self.c_max(p)) for p in ps)
        needed = int(_ROOM * running * self.sequence_bytes(config)) + config.engine.block_bytes
        return max(have, min(needed, most))

    def _config(self, residency: float) -> SystemConfig:
        """Return the system at ``residency``; nothing else of it depends on that."""
        if self._any is None:
            self._any = system_config(self.case(residency, 1, NONE).resolve(), self.setting.seeds[0])
        assert self._any.active is not None, "a full house runs under active offload"
        return replace(self._any, active=replace(self._any.active, residency=residency))

    def blocks(self, config: SystemConfig) -> int:
        """Return the blocks of a whole sequence at its end."""
        return -(-self.end_tokens // config.engine.block_tokens)

    def sequence_bytes(self, config: SystemConfig) -> int:
        """Return S_seq: the KV of a whole sequence at its end."""
        return self.blocks(config) * config.engine.block_bytes

    def c_max(self, residency: float) -> int:
        """Return the article's C_max at ``residency``, however many seats the engine has."""
        config = self._config(residency)
        free = config.engine.num_gpu_blocks * config.engine.block_bytes
        return max_concurrency(free, self.sequence_bytes(config), residency)

    def staged(self, residency: float) -> int:
        """Return how many sequences fit with whole blocks, staging buffers and seats."""
        config = self._config(residency)
        assert config.active is not None, "a full house runs under active offload"
        pattern = make_pattern(config.active.access, config.engine.block_tokens, config.active.groups, 0)
        taken = make_share(config, pattern).taken(self.blocks(config))
        return min(config.engine.num_gpu_blocks // max(1, taken), config.engine.max_num_seqs)

    @property
    def seats(self) -> int:
        """Sequences that the engine runs at once at most."""
        return int(self.setting.scenario.engine.max_num_seqs)

    def own_prefetch(self) -> str:
        """Return the scenario's prefetch where it is a schedule that an engine could follow, ``layer`` otherwise."""
        prefetch = self.setting.scenario.offload.prefetch
        if self.what_if or prefetch.policy not in ("layer", "next_step", "oracle"):
            return LAYER
        keys = ("policy", "predictor", "accuracy", "lead", "demand")
        return json.dumps({key: getattr(prefetch, key) for key in keys if getattr(prefetch, key) is not None})


def residencies(setting: Setting) -> list[float]:
    """Return p at every step, from the first above 0 to 1."""
    return [float(f"{k / setting.steps:.4g}") for k in range(1, setting.steps + 1)]
