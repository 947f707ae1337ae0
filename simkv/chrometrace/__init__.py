"""The events of a run as a Chrome trace, for ui.perfetto.dev and chrome://tracing."""

from simkv.chrometrace.write import Written, write

__all__ = ["Written", "write"]
