"""Curves in a report: closed forms as lines, simulated points on them, and what can be read off."""

from simkv.report.curves.build import TITLE, sections
from simkv.report.curves.study import curves_for

__all__ = ["TITLE", "curves_for", "sections"]
