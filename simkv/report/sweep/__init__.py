"""A sweep in a report: what is best, what moves it, every setting, what nothing beats."""

from simkv.report.sweep.build import sections

__all__ = ["sections"]
