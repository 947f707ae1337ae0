"""Other parts in the place of the simulated ones: what a real executor does to an active engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simkv.sim.active.assembly import Parts, assemble
from simkv.sim.active.engine import ActiveEngine
from simkv.sim.active.pipeline import StepRunner
from simkv.sim.active.traffic import Pieces, Traffic
from simkv.sim.config import SystemConfig
from simkv.sim.replica import Surroundings
from simkv.sim.rundata import RunData
from simkv.sim.system import System
from simkv.workload.replay import FixedSource
from tests.active_factory import active_config, decoding


class ThreeSeconds(StepRunner):
    """Every step takes three seconds, whatever it has to do."""

    def launch(self) -> None:
        """Wait for the end."""
        self.busy(True)
        self.after(3.0, self.finish)


class Counting(Traffic):
    """Counts what it brings up."""

    asked = 0

    def up(self, pieces: Pieces, priority: int, done, errand=None):  # type: ignore[no-untyped-def]
        """Bring ``pieces`` up."""
        type(self).asked += len(pieces)
        return super().up(pieces, priority, done, errand)


class OtherEngine(ActiveEngine):
    """An engine with parts of its own."""

    def _assemble(self, around: Surroundings) -> Parts:
        args = around.clock, around.config, around.tiers, self.gauge, around.mover.ledger
        return assemble(*args, make_traffic=Counting, make_runner=ThreeSeconds)


def run(config: SystemConfig, engine_type: type[ActiveEngine] | None = None) -> RunData:
    """Run one decoding request."""
    return System(config, FixedSource([decoding(output=5)]), engine_type).run()


def test_engine_type_given_serves_the_replicas_with_its_own_parts() -> None:
    found = run(replace(active_config(), audit=False), OtherEngine).active  # three seconds of nothing break law L38
    assert found is not None
    assert found.step_s == pytest.approx(3.0 * found.steps)
    assert found.steps == 4


def test_traffic_of_ones_own_sees_every_piece_that_comes_up() -> None:
    class Runs(ActiveEngine):
        def _assemble(self, around: Surroundings) -> Parts:
            args = around.clock, around.config, around.tiers, self.gauge, around.mover.ledger
            return assemble(*args, make_traffic=Counting)

    Counting.asked = 0
    found = run(active_config(), Runs).active
    assert found is not None
    assert Counting.asked == found.loads_dram + found.loads_ssd > 0


def test_engine_type_left_out_is_the_configurations() -> None:
    plain, given = run(active_config()), run(active_config(), ActiveEngine)
    assert plain.active == given.active
    assert plain.events == given.events
