"""A plan in a report: what to take, for what load, what else there was, what would move it, whether offload pays."""

from simkv.report.plan.build import sections

__all__ = ["sections"]
