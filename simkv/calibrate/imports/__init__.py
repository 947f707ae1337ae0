"""Figures that other tools measured, read from what they print: nvbandwidth, bandwidthTest, gpu_copy, fio.

Start with :func:`read_figures` (one file), :func:`merge` (into a measured fit) and :func:`profile_of` (a
machine of which nothing else is known). Each format is a file; ``links`` and ``drives`` make figures of what they read.
"""

from __future__ import annotations

from simkv.calibrate.imports.imported import Imported
from simkv.calibrate.imports.merging import merge, profile_of, told
from simkv.calibrate.imports.reading import read_figures

__all__ = ["Imported", "merge", "profile_of", "read_figures", "told"]
