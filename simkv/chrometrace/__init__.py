"""The events of a run as a Chrome trace, for ui.perfetto.dev and chrome://tracing."""

from simkv.chrometrace.file import Written, is_trace, write

__all__ = ["Written", "is_trace", "write"]
