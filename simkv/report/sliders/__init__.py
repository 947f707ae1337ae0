"""Live closed forms: sliders for p, β, λ, context and bandwidth, curves redrawn beside the simulated points."""

from simkv.report.sliders.widget import sliders

__all__ = ["sliders"]
