"""The main metrics of a sweep in people's words: what they are called, which way is better, how they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from simkv.plots.labels import tick_time
from simkv.plots.sweep import Scale
from simkv.results.metrics import METRICS
from simkv.sweeps.leaves import HEADLINE
from simkv.sweeps.pareto import Objective
from simkv.sweeps.result import SweepResult
from simkv.sweeps.settings import Setting
from simkv.sweeps.table import shown

Better = Literal["min", "max", ""]


@dataclass(frozen=True, slots=True)
class Named:
    """A metric."""

    name: str
    """Dotted, as in ``points.csv``."""
    label: str
    better: Better

    @property
    def scale(self) -> Scale:
        """What an axis of it is called, and how its ticks read."""
        return Scale(capital(self.label), _tick(self.name))

    @property
    def head(self) -> str:
        """What a column of exact values is called."""
        unit = _unit(self.name)
        return f"{self.label} ({unit})" if unit and not self.label.endswith("/s") else self.label

    def text(self, setting: Setting) -> str:
        """Return what a setting has, with its interval where there are several seeds."""
        mean = setting.mean(self.name)
        assert mean is not None, "asked for of a setting that has it"
        return shown(self.name, mean)

    @property
    def best(self) -> str:
        """``the least TTFT p95``."""
        return f"the {'least' if self.better == 'min' else 'most'} {self.label}"


_KNOWN: Mapping[str, tuple[str, Better]] = {
    "p_hit": ("hit rate p_hit", "max"),
    "t_step_s": ("decode step", "min"),
    "itl_s.p95": ("ITL p95", "min"),
    "ttft_s.p95": ("TTFT p95", "min"),
    "output_tokens_per_s": ("output tokens/s", "max"),
    "hit_rate.miss": ("prompt tokens computed", "min"),
    "cost_per_million_output_tokens": ("cost of a million output tokens", "min"),
    "goodput_requests_per_s": ("goodput, requests/s", "max"),
    "slo_attainment.overall": ("requests within the SLO", "max"),
    "speedup.vs_no_offload": ("speedup against no offload", "max"),
    "concurrency.mean": ("requests at once", ""),
}


def named(name: str) -> Named:
    """Return a metric in people's words; those without any keep their own name."""
    label, better = _KNOWN.get(name, (name, ""))
    return Named(name, label, better)


def of_objective(objective: Objective) -> Named:
    """Return the metric of an objective."""
    return Named(objective.metric, named(objective.metric).label, objective.direction)


def main(result: SweepResult, objectives: Sequence[Objective], most: int) -> list[Named]:
    """Return the main metrics that differ between settings, at most ``most``, those of the objectives first."""
    first = [of_objective(objective) for objective in objectives]
    others = [named(name) for name in HEADLINE if name not in [one.name for one in first]]
    return [one for one in (*first, *others) if _differs(result, one.name)][:most]


def values(result: SweepResult, name: str) -> list[tuple[Setting, float]]:
    """Return the settings that have a number there, with its mean over seeds."""
    found = ((setting, setting.mean(name)) for setting in result.settings)
    return [(setting, mean.value) for setting, mean in found if mean is not None]


def _differs(result: SweepResult, name: str) -> bool:
    texts = {shown(name, mean) for setting in result.settings if (mean := setting.mean(name)) is not None}
    return len(texts) > 1


def capital(text: str) -> str:
    """Return ``text`` with its first letter large; names such as ``p_hit`` stay."""
    return text if "_" in text.split(" ")[0] else text[:1].upper() + text[1:]


def _unit(name: str) -> str:
    metric = METRICS.get(name.partition(".")[0])
    return "" if metric is None or metric.unit == "1" else metric.unit


def _tick(name: str) -> Callable[[float], str]:
    if _unit(name) == "s":
        return tick_time
    if name.partition(".")[0] in ("hit_rate", "slo_attainment"):
        return _percent
    return _plain


def _percent(value: float) -> str:
    return f"{100 * value:.4g} %"


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
