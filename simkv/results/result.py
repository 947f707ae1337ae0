"""One finished run as a value: its summary, its columns, its baselines, and the scenario it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simkv.sim.rundata import RunData

if TYPE_CHECKING:
    import pandas as pd


@dataclass(slots=True)
class RunResult:
    """What ``simkv.run`` returns and ``write_result`` writes."""

    summary: dict[str, Any]
    data: RunData
    resolved: str
    """The resolved scenario as YAML text."""
    name: str
    hash: str
    baselines: dict[str, RunData] = field(default_factory=dict)

    @property
    def requests(self) -> pd.DataFrame:
        """One row a request, the columns of ``requests.parquet`` (imports pandas)."""
        from simkv.results.frames import request_frame

        return request_frame(self.data)

    @property
    def timeseries(self) -> pd.DataFrame:
        """One row a sample, the columns of ``timeseries.parquet`` (imports pandas)."""
        import pandas as pd

        return pd.DataFrame(dict(self.data.timeseries))
