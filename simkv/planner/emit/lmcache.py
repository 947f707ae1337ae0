"""LMCache under vLLM: vLLM's own flags, its connector, and LMCache's YAML file.

Read in LMCache 0.5.6 (``v1/config``: keys, types and defaults; ``v1/storage_backend``: sizes are GiB of each worker,
that is of each rank; chunks are named by Python's hashes, which processes share only with one ``PYTHONHASHSEED``, and
ranks surely only with a named algorithm: LMCache's issues 1739 and 2979) and vLLM 0.33.0 (``kv_connector/factory``:
``LMCacheConnectorV1``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isinf

from simkv.planner.emit.beyond import beyond, preset_of
from simkv.planner.emit.lines import Entry, Flag, Launch, argv, compact, number, rounded, script, yaml_text
from simkv.planner.emit.part import Part, endless
from simkv.planner.emit.title import title
from simkv.planner.emit.types import FOLDER, Emitted
from simkv.planner.emit.vllm import GIB, dtypes_missing, server_flags
from simkv.scenario.build import block_tokens, unit_blocks

POLICIES: Mapping[str, str] = {"lru": "LRU", "lfu": "LFU", "fifo": "FIFO"}
_LOADS: Mapping[str, str] = {"hold": "enable_async_loading", "overlap": "use_layerwise"}
"""Keys that change how a hit is loaded; neither: the worker loads before it runs the step."""


def emit_lmcache(part: Part) -> Emitted:
    """Return ``vllm serve`` with LMCache for each engine of one host, and LMCache's file."""
    flags = list(server_flags(part))
    used = part.offloads and not endless(part)
    if used:
        connector = {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}
        flags.append(Flag("--kv-transfer-config", compact(connector), "stores and loads KV by LMCache, in the worker"))
    missing = beyond(part, preset_of(part, "lmcache")) + dtypes_missing(part, "vLLM") + list(_beside(part))
    files = {_name(part, n): yaml_text(list(_entries(part, n))) for n in range(part.here)} if used else {}
    launches = [Launch(_environment(part, n, used), ("--port", str(8000 + n))) for n in range(part.here)]
    text = script(title(part, "vLLM 0.33.0 with LMCache 0.5.6", missing), ("vllm", "serve"), flags, launches, files)
    return Emitted("lmcache", argv(flags), text, files, missing)


def _name(part: Part, replica: int) -> str:
    """Engines of one host share a file unless each has a folder of its own on the SSD."""
    return f"lmcache-{replica}.yaml" if part.here > 1 and part.uses_ssd else "lmcache.yaml"


def _environment(part: Part, replica: int, used: bool) -> dict[str, str]:
    own = {"LMCACHE_CONFIG_FILE": _name(part, replica), "PYTHONHASHSEED": "0"}
    return part.gpus(replica) | (own if used else {})


def _entries(part: Part, replica: int) -> Iterator[Entry]:
    scenario, origin = part.resolved.scenario, part.origin
    tokens = unit_blocks(part.resolved) * block_tokens(part.resolved)
    yield Entry(("chunk_size",), tokens, f"tokens of what is stored and found as one ({origin('offload.unit_tokens')})")
    yield Entry(("local_cpu",), True, "keeps KV in DRAM")
    per = f" / ({part.here} engines x {part.ranks} ranks)" if part.here * part.ranks > 1 else ""
    why = f"GiB of DRAM for each rank: a host's {rounded(part.dram_bytes * part.here / GIB)}{per}"
    yield _size("max_local_cpu_size", part.dram_bytes_per_rank, f"{why} ({origin('tiers.dram.capacity')})")
    if part.uses_ssd and not isinf(part.ssd_bytes):
        own = f"{FOLDER}/{replica}/" if part.here > 1 else f"{FOLDER}/"
        yield Entry(("local_disk",), f"file://{own}", "the SSD's folder")
        why = f"GiB of SSD for each rank: a host's {rounded(part.ssd_bytes * part.here / GIB)}{per}"
        yield _size("max_local_disk_size", part.ssd_bytes_per_rank, f"{why} ({origin('tiers.ssd.capacity')})")
    policy = POLICIES.get(scenario.offload.eviction.policy, "LRU")
    if policy != "LRU":
        yield Entry(("cache_policy",), policy, f"who leaves first ({origin('offload.eviction.policy')})")
    if scenario.engine.store_outputs:
        yield Entry(("save_decode_cache",), True, f"generated tokens are stored too ({origin('engine.store_outputs')})")
    if part.ranks > 1:
        yield Entry(("pre_caching_hash_algorithm",), "sha256_cbor", "names chunks alike in every rank")
    if scenario.engine.load in _LOADS:
        yield Entry((_LOADS[scenario.engine.load],), True, f"engine.load {scenario.engine.load}")


def _size(key: str, size_bytes: float, why: str) -> Entry:
    return Entry((key,), float(number(size_bytes / GIB)), why)


def _beside(part: Part) -> Iterator[str]:
    tiers = part.resolved.scenario.tiers
    if tiers.dram.shared and part.here > 1 and part.offloads:
        yield (
            "tiers.dram.shared = true: an LMCache in each worker has its own part; one pool for all engines of a host "
            "is its server (lmcache server --l1-size-gb, connector LMCacheMPConnector)"
        )
    if part.uses_ssd and isinf(part.ssd_bytes):
        yield "tiers.ssd.capacity = inf: LMCache needs a size; give one"
