"""The events of a run as Chrome trace events, for Perfetto and chrome://tracing."""
