"""What a report says of one run: the answer first, then what it rests on."""

from simkv.report.run.sections import answered, sections

__all__ = ["answered", "sections"]
