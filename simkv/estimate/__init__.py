"""What a run will take, told before it starts: about how many decisions, how long, how much memory."""

from simkv.estimate.load import Load, load_of
from simkv.estimate.run import LONG, MOST_S, TOLD_S, Estimate, check, check_length, estimate, spoken, told
from simkv.estimate.work import Work, work_of

__all__ = [
    "LONG", "MOST_S", "TOLD_S", "Estimate", "Load", "Work", "check", "check_length", "estimate", "load_of", "spoken",
    "told", "work_of",
]  # fmt: skip
