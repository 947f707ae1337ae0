"""A configuration in an engine's own words: flags or a config file, in its units, a comment a line.

Units are what goes wrong: a scenario's DRAM is a host's; vLLM is told GiB of one engine with all its ranks, SGLang
(GB), LMCache (GiB) and TensorRT-LLM (bytes) are told one rank's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from simkv.errors import unknown
from simkv.planner.emit.lmcache import emit_lmcache
from simkv.planner.emit.part import Part, part_of
from simkv.planner.emit.sglang import emit_sglang
from simkv.planner.emit.tensorrt_llm import emit_tensorrt_llm
from simkv.planner.emit.types import Emitted
from simkv.planner.emit.vllm import emit_vllm
from simkv.scenario.resolve import Resolved

__all__ = ["ENGINES", "Emitted", "emit"]

_EMIT: Mapping[str, Callable[[Part], Emitted]] = {
    "vllm": emit_vllm,
    "sglang": emit_sglang,
    "lmcache": emit_lmcache,
    "tensorrt-llm": emit_tensorrt_llm,
}
ENGINES = tuple(_EMIT)
"""What ``--emit`` takes."""


def emit(engine: str, resolved: Resolved) -> Emitted:
    """Return ``resolved`` in the words of ``engine``; what it can't be told is listed beside.

    Raises InputError for an unknown engine, listing those that there are, and for an abstract model or machine.
    """
    if engine not in _EMIT:
        raise unknown("engine", engine, ENGINES, "--emit")
    return _EMIT[engine](part_of(resolved, engine))
