"""What can be moved: each slider's unit, value at rest, range, step, and where the value came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import floor, log10
from typing import Any

from simkv.kvcache.eviction import DEFAULT_LAMBDA
from simkv.report.sliders.ground import Scene
from simkv.report.sliders.points import run_lambda

_TIMES = 16
"""How far bandwidth goes to either side."""
_TOKENS = 64
"""The same of context, where the model allows for it."""
_LEAST_P = 0.05
_RATES = ("B/s", "kB/s", "MB/s", "GB/s", "TB/s")


@dataclass(frozen=True)
class Slider:
    """One thing that moves; ``value``, ``low``, ``high`` and ``step`` are in SI units."""

    key: str
    label: str
    unit: str
    value: float
    low: float
    high: float
    step: float
    origin: str
    per_unit: float = 1.0
    """SI units in one of ``unit``."""
    log: bool = False
    """Equal ways are equal factors."""

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def every_slider(scene: Scene, origins: Mapping[str, str]) -> list[Slider]:
    """Return all that closed forms depend on."""
    return [_p(scene, origins), _beta(scene), _lambda(scene, origins), _context(scene), _bandwidth(scene, origins)]


def felt(sliders: Sequence[Slider], scene: Scene, shown: set[str]) -> list[Slider]:
    """Return those that some chart of ``shown`` feels."""
    steps = shown & {"t_step", "speedup"}
    lengthless = scene.forms.reads.always_bytes is not None and scene.setting.inline
    feeling = {
        "p": shown - {"lambda"},
        "beta": steps,
        "lambda": shown & {"lambda"},
        "context": shown & {"concurrency"} if lengthless else steps | shown & {"concurrency"},
        "bandwidth": shown & {"t_avg"} | steps,
    }
    return [one for one in sliders if feeling[one.key]]


def _p(scene: Scene, origins: Mapping[str, str]) -> Slider:
    if scene.what_if:
        origin = "what-if: the scenario keeps all KV in VRAM, p = 1"
    elif scene.setting.shares_budget:
        origin = "what offload.vram_budget is of the KV that ran at once"
    else:
        origin = _named("offload.residency", origins)
    return Slider("p", "p, resident share", "", scene.p, min(_LEAST_P, scene.p), 1.0, 0.01, origin)


def _beta(scene: Scene) -> Slider:
    value, origin = 0.0, "no prefetch ran"
    if scene.summary["beta"] is not None:
        value, origin = float(scene.summary["beta"]), "as the run measured it"
    elif scene.setting.scenario.offload.prefetch.beta is not None:
        value, origin = float(scene.setting.scenario.offload.prefetch.beta), "offload.prefetch.beta"
    elif "speedup" in scene.curves and scene.curves["speedup"]["marks"]["best"] is not None:
        best = scene.curves["speedup"]["marks"]["best"]
        value, origin = float(best["beta"]), f"what schedule {best['name']} hid"
    return Slider("beta", "β, hidden transfers", "", value, 0.0, 1.0, 0.01, origin)


def _lambda(scene: Scene, origins: Mapping[str, str]) -> Slider:
    own, eviction = run_lambda(scene), scene.setting.scenario.offload.eviction
    if own is None:
        return Slider("lambda", "λ, weight of recency", "", DEFAULT_LAMBDA, 0, 1, 0.01, "default of policy score")
    path = "offload.eviction.lambda" if eviction.policy == "score" else "offload.eviction.policy"
    origin = _named(path, origins) if eviction.policy == "score" else f"eviction policy {eviction.policy}"
    return Slider("lambda", "λ, weight of recency", "", own, 0.0, 1.0, 0.01, origin)


def _context(scene: Scene) -> Slider:
    own, longest = scene.context, scene.config.engine.max_model_len
    lengths = scene.setting.lengths
    origin = f"the mean request: {lengths.prompt_tokens:,} prompt and {lengths.output_tokens:,} output tokens"
    low, high = max(1, own // _TOKENS), max(own, min(longest, own * _TOKENS))
    return Slider("context", "Context", "tokens", own, low, high, 1, origin, log=True)


def _bandwidth(scene: Scene, origins: Mapping[str, str]) -> Slider:
    own = scene.bytes_per_s
    power = min(len(_RATES) - 1, max(0, floor(log10(own) / 3)))
    per_unit = 1000.0**power
    origin = _named("link.h2d", origins)
    ranks = scene.setting.scenario.replicas.tensor_parallel
    if ranks > 1:
        origin = f"{origin}, times {ranks} GPUs"
    step = 10.0 ** (floor(log10(own)) - 2)
    low, high = own / _TIMES, own * _TIMES
    return Slider("bandwidth", "Bandwidth to GPU", _RATES[power], own, low, high, step, origin, per_unit, log=True)


def _named(path: str, origins: Mapping[str, str]) -> str:
    return f"{path}: {origins[path]}" if path in origins else path
