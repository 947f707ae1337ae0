"""Trace readers, one file a format; ``open_trace`` is the way in.

Read ``base.py`` (the interface) first, then ``azure.py`` and ``mooncake.py`` for examples; ``csvrows.py``,
``jsonl.py`` and ``files.py`` hold what formats share; ``registry.py`` lists the formats. Formats of sessions
are replayed in a closed loop: ``plan.py``, then ``sessions_source.py`` and ``agent_sessions.py``.
"""

from simkv.workload.readers.base import TraceReader
from simkv.workload.readers.registry import READERS, open_trace
from simkv.workload.readers.report import ReadReport
from simkv.workload.readers.sessions_source import SessionsSource
from simkv.workload.readers.source import TraceSource

__all__ = ["READERS", "ReadReport", "SessionsSource", "TraceReader", "TraceSource", "open_trace"]
