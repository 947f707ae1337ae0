"""From samples to the figures of a profile; numpy and scipy, no torch.

Read ``profile.py`` first (all figures), then ``links.py`` (the robust line that most rests on, with ``robust.py``),
``compute.py``, ``rates.py``, ``memory.py``, ``contention.py``, ``host.py``; ``points.py`` takes the repeats of samples
together, ``residuals.py`` holds samples against the fit.
"""

from simkv.calibrate.fit.profile import fit_profile
from simkv.calibrate.fit.residuals import inversions, residual_rows

__all__ = ["fit_profile", "inversions", "residual_rows"]
