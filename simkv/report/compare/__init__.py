"""Several runs side by side: what differs, by how much, and which of it is noise."""

from simkv.report.compare.sections import sections

__all__ = ["sections"]
