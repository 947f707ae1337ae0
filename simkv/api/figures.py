"""The figures of a report as pictures, made of a run that is in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkv.api.shown import Picture
from simkv.report.document import Block, Figure
from simkv.report.folders import RunFolder
from simkv.report.parts import walk
from simkv.report.run import active, hits, latency, overtime, parts
from simkv.results.result import RunResult

if TYPE_CHECKING:
    import pandas as pd

    from simkv.sim.record.recording import Recording

_BUILDERS: tuple[Callable[[RunFolder], list[Block]], ...] = (
    latency.blocks, parts.blocks, hits.blocks, overtime.blocks, active.blocks,
)  # fmt: skip


class InMemory(RunFolder):
    """A run as its folder would be read back; ``path``: where paths in its scenario start."""

    def __init__(self, result: RunResult, path: Path) -> None:
        super().__init__(path, result.summary)
        object.__setattr__(self, "_result", result)

    @property
    def _run(self) -> RunResult:
        found: RunResult = self.__dict__["_result"]
        return found

    @cached_property
    def requests(self) -> pd.DataFrame:
        """What ``requests.parquet`` would hold."""
        return self._run.requests

    @cached_property
    def timeseries(self) -> pd.DataFrame:
        """What ``timeseries.parquet`` would hold."""
        return self._run.timeseries

    @cached_property
    def resolved(self) -> str:
        """What ``scenario.resolved.yaml`` would hold."""
        return self._run.resolved

    @cached_property
    def recording(self) -> Recording | None:
        """What ``recording.json`` would hold."""
        return next((one for one in self._run.data.recordings if one.rule == "latest"), None)

    @cached_property
    def curves(self) -> Mapping[str, Any] | None:
        """None: curves are asked for by themselves (``simkv.curves_of``)."""
        return None


def of_run(result: RunResult, path: Path) -> dict[str, Picture]:
    """Return every figure that a report of the run would have, by name; ``path``: where its scenario's paths start."""
    folder = InMemory(result, path)
    blocks = (block for build in _BUILDERS for block in walk(build(folder)))
    return {one.name: picture(one) for one in blocks if isinstance(one, Figure)}


def picture(figure: Figure) -> Picture:
    """Return a report's figure as a picture with its data."""
    return Picture(figure.finding, figure.draw, figure.data, figure.note)
