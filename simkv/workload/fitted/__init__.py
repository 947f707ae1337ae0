"""Workloads fitted from a trace: what a trace is like, drawn anew for as long as one wants.

Read ``model.py`` (what a fit holds) first, then ``fit.py`` (trace to fit) and ``source.py`` (fit
to requests); ``goodness.py`` holds the two against each other.
"""

from simkv.workload.fitted.fit import fit
from simkv.workload.fitted.model import FittedModel, load, save
from simkv.workload.fitted.source import FittedSource, build_fitted

__all__ = ["FittedModel", "FittedSource", "build_fitted", "fit", "load", "save"]
