"""One simulated serving system, from arrivals to columns."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict
from math import nan
from time import perf_counter
from typing import TYPE_CHECKING

from simkv.errors import InfeasibleError, InputError, Problem
from simkv.kvcache.pool import KVPool
from simkv.sim.active.measured import Measured
from simkv.sim.clock import ARRIVAL_RANK, Clock, Timer
from simkv.sim.config import ClassConfig, SystemConfig
from simkv.sim.engine import Engine
from simkv.sim.gauge import Together
from simkv.sim.ledger import Ledger
from simkv.sim.live import Live
from simkv.sim.mover import Mover
from simkv.sim.record.recording import Wanted
from simkv.sim.record.windows import Windows
from simkv.sim.recorder import Recorder
from simkv.sim.replica import ReplicaEngine, Surroundings
from simkv.sim.router import make_router
from simkv.sim.rundata import RunData, Warmed
from simkv.sim.sampler import Sampler
from simkv.sim.tiers import Host, ReplicaTiers
from simkv.workload.ceiling import Ceiling
from simkv.workload.handover import Handover
from simkv.workload.request import Request, Source, Storing

if TYPE_CHECKING:
    from simkv.sim.audit import Audit

MOST_TOKENS = 2**31 - 1
"""Of one request: what the columns of its record hold."""
STRETCH_EVENTS = 20_000
"""At most, processed between two reports of progress."""
_FIRST_EVENTS = 500
_STRETCH_S = 0.1
"""A stretch that took longer is followed by a shorter one: Ctrl-C waits for its end."""
EngineType = Callable[[Surroundings], ReplicaEngine]
"""What makes a replica's engine."""
Listener = Callable[[int, float], None]
"""Called now and then with (requests ended, simulated seconds)."""


class System:
    """Hosts, replicas and a router, fed by a source."""

    def __init__(
        self,
        config: SystemConfig,
        source: Source,
        engine_type: EngineType | None = None,
        record: Sequence[Wanted] = (),
    ) -> None:
        """``engine_type``: makes the replicas' engines, where the one that ``config`` asks for isn't meant.

        ``record``: of which windows every event is to be kept.
        """
        if config.replicas < 1 or config.engine.num_gpu_blocks < 1:
            raise InfeasibleError("no room for a single KV block: nothing can be served")
        self.config = config
        self.source = source
        self.clock = Clock()
        self.recorder = Recorder()
        self.classes = _classes(config.classes, source.class_names)
        self.class_names = tuple(one.name for one in self.classes)
        self._number = {name: number for number, name in enumerate(self.class_names)}
        self.together = Together()
        self._make_engine = engine_type or _engine_type(config)
        self.hosts: list[Host] = []
        self.engines: list[ReplicaEngine] = []
        self.ledgers: list[Ledger] = []
        hosts = min(config.hosts, config.replicas)
        for number in range(hosts):
            self._add_host(config.replicas // hosts + (number < config.replicas % hosts))
        self.route = make_router(config.router, self.engines, config.scores)
        self.ceiling = Ceiling(config.engine.block_tokens)
        self.arrived = self.finished = self.rejected = 0
        self.fixed_until_s = 0.0
        self.last_ended_s = 0.0
        self._busy_s: dict[str, float] = {}
        """Busy seconds when the system was last empty: write-downs may go on after the last request."""
        self.warmed = _warmed(self, source)
        self.audit = _audit(self) if config.audited else None
        self.sampler = Sampler(self, config.sample_s)
        self._stretch_events = min(_FIRST_EVENTS, STRETCH_EVENTS)
        self.windows = Windows(self, record) if record else None

    def _add_host(self, replicas: int) -> None:
        host = Host(self.clock, self.config, replicas, self.classes)
        ledger = Ledger(len(self.hosts), min(self.config.hosts, self.config.replicas))
        self.hosts.append(host)
        self.ledgers.append(ledger)
        for local in range(replicas):
            tiers = ReplicaTiers(self.config, host, local)
            mover = Mover(tiers, ledger, self.config.offload)
            number = len(self.engines)
            self.engines.append(self._make_engine(Surroundings(
                self.clock, self.config, number, tiers, mover, self.recorder, self.together, self._finished
            )))  # fmt: skip

    # ---- running

    def run(self, progress: Listener | None = None) -> RunData:
        """Run to the end (or to Ctrl-C) and return what was recorded."""
        begun = perf_counter()
        interrupted = False
        clock = self.clock
        clock.process(self._arrivals())
        try:
            if progress is not None:
                progress(0, clock.now)
            while self._drain():
                if progress is not None:
                    progress(self.finished + self.rejected, clock.now)
        except KeyboardInterrupt:
            interrupted = True
        if self.audit is not None and not interrupted:
            self.audit.finish()
        return self._collect(interrupted, perf_counter() - begun)

    def _drain(self) -> bool:
        """Process a stretch of events, and fit the next to what it took; True while there are more."""
        begun = perf_counter()
        more = (self.clock if self.audit is None else self.audit).drain(self._stretch_events)
        events, fast = self._stretch_events, perf_counter() - begun < _STRETCH_S
        self._stretch_events = min(STRETCH_EVENTS, events * 2 if fast else events // 2 + 1)
        return more

    def _arrivals(self) -> Generator[Timer, None, None]:
        """The SimPy process of the open arrivals."""
        clock = self.clock
        until = self.config.duration_s
        for request in self.source.arrivals():
            if until is not None and request.arrival_s >= until:
                break
            if request.arrival_s > clock._now:
                yield clock.until(request.arrival_s, ARRIVAL_RANK)
            self.fixed_until_s = request.arrival_s
            self._arrive(request)

    def _follow(self, timer: Timer) -> None:
        self._arrive(timer.payload)

    def _arrive(self, request: Request) -> None:
        if not self.arrived:
            self._begin()
        self.arrived += 1
        if request.prompt_tokens + request.output_tokens > MOST_TOKENS:
            what = f"a request of {request.prompt_tokens + request.output_tokens:,} tokens"
            raise InputError(Problem(what, f"the most is {MOST_TOKENS:,}: shorten prompts or outputs", path="workload"))
        live = self.enter(request)
        if not self.can_ever_fit(request):
            self._reject(live)
            return
        live.ceiling = self.ceiling.add(request)
        self.route(live).enqueue(live)

    def _begin(self) -> None:
        """The first request is about to arrive: nothing is to be seen before."""
        if self.windows is not None:
            self.windows.start(self.clock._now, self.sampler.interval_s)
        self.sampler.start(self.clock._now)

    def enter(self, request: Request) -> Live:
        """Return ``request`` as one that has just arrived."""
        cls = self._number[request.cls]
        return Live(request, cls, self.classes[cls].priority, self.clock._now)

    def can_ever_fit(self, request: Request) -> bool:
        """Whether ``request`` could be served if nobody else were here."""
        tokens = request.prompt_tokens + request.output_tokens
        return tokens <= self.config.engine.max_model_len and self.engines[0].can_ever_fit(request)

    # ---- endings

    def _reject(self, live: Live) -> None:
        self.rejected += 1
        self._record(live, -1, rejected=True)
        self._ask_what_follows(live.request, finished=False)

    def _finished(self, live: Live, replica: int) -> None:
        self.finished += 1
        self._record(live, replica, rejected=False)
        self._ask_what_follows(live.request, finished=True)

    def _ask_what_follows(self, request: Request, finished: bool) -> None:
        now = self.clock._now
        self.last_ended_s = now
        if self.arrived == self.finished + self.rejected:
            for engine in self.engines:
                engine.gauge.update(now)
            self._busy_s = self.busy_s(now)
        followers = self.source.after(request, now, finished)
        if request.session >= 0 and self.source.session_over(request):
            self.ceiling.forget(request)
        until = self.config.duration_s
        for follower in followers:
            if until is None or follower.arrival_s < until:
                self.clock.at(max(now, follower.arrival_s), ARRIVAL_RANK, self._follow, follower)

    def _record(self, live: Live, replica: int, rejected: bool) -> None:
        request, now = live.request, self.clock._now
        row = (
            request.id,
            request.session,
            request.turn,
            live.cls,
            replica,
            rejected,
            request.arrival_s,
            nan if rejected else live.scheduled_s,
            nan if rejected else live.first_token_s,
            now,
            request.prompt_tokens,
            request.output_tokens,
            max(0, live.hit_vram),
            live.hit_dram,
            live.hit_ssd,
            live.recomputed,
            live.preemptions,
            *live.parts,
            live.ceiling,
        )
        self.recorder.request(row, now - request.arrival_s)

    # ---- collecting

    def _collect(self, interrupted: bool, wall_s: float) -> RunData:
        now = self.clock._now if interrupted else self.last_ended_s
        for engine in self.engines:
            engine.gauge.update(now)
        self.sampler.finish()
        mean_used = self.sampler.mean_used()
        recorder = self.recorder
        gauges = [engine.gauge for engine in self.engines]
        movers = [engine.mover for engine in self.engines]
        block_bytes = self.config.engine.block_bytes
        fetched = sum(mover.prefetched_blocks for mover in movers) * block_bytes
        used = sum(mover.used_blocks for mover in movers) * block_bytes
        requests = recorder.requests.finish()
        return RunData(
            class_names=self.class_names,
            requests=requests,
            steps=recorder.steps.finish(),
            gaps=recorder.gaps.finish(),  # type: ignore[arg-type]
            timeseries=recorder.samples.finish(),  # type: ignore[arg-type]
            arrived=self.arrived,
            finished=self.finished,
            rejected=self.rejected,
            live=self.arrived - self.finished - self.rejected,
            end_s=now,
            interrupted=interrupted,
            busy_s=self.busy_s(now) if interrupted else self._busy_s or self.busy_s(now),
            instances=self._instances(),
            bytes=self.moved_bytes(),
            tier_capacity_blocks=self.tier_capacity_blocks(),
            tier_written_blocks=self.tier_written_blocks(),
            tier_mean_used=mean_used,
            preemptions=sum(engine.preemptions for engine in self.engines),
            recomputed_tokens=int(requests["recomputed_tokens"].sum()),
            refused_stores=sum(ledger.refused_stores for ledger in self.ledgers),
            running_time_s=sum(gauge.running_time_s for gauge in gauges),
            running_max=self.together.most,
            load_held_s=sum(gauge.held_s for gauge in gauges),
            load_hidden_s=sum(gauge.hidden_s for gauge in gauges),
            load_waits=sum(engine.load_waits for engine in self.engines),
            steps_total=sum(engine.step for engine in self.engines),
            macro_steps=sum(engine.macro_steps for engine in self.engines),
            events=self.clock.count_events(),
            fixed_until_s=self.fixed_until_s,
            prefetch={"loaded_bytes": fetched, "used_bytes": used, "wasted_bytes": fetched - used},
            active=self._measured(),
            swap=self._swaps(),
            warmed=self.warmed,
            wall_s=wall_s,
            recordings=self.windows.finish(now) if self.windows is not None else (),
        )

    def _measured(self) -> Measured | None:
        """Return what active offload measured, all replicas together; None without it."""
        if self.config.active is None:
            return None
        total = Measured()
        for engine in self.engines:
            steps = engine.measured()
            assert steps is not None
            total.add(steps)
        return total

    def busy_s(self, now: float) -> dict[str, float]:
        """Busy seconds up to ``now`` by resource, summed over instances."""
        engines, hosts = self.engines, self.hosts
        moved = self.moved_bytes()
        rate, uplink_rate = self.config.dram.bandwidth_bytes_per_s, self.config.link.uplink_bytes_per_s
        return {
            "gpu": sum(engine.gauge.busy_s for engine in engines),
            "h2d": sum(engine.tiers.h2d.busy_until(now) for engine in engines),
            "d2h": sum(engine.tiers.d2h.busy_until(now) for engine in engines),
            "dram": moved["dram"] / rate if rate > 0 else 0.0,
            "ssd_read": sum(host.ssd_read.busy_until(now) for host in hosts),
            "ssd_write": sum(host.ssd_write.busy_until(now) for host in hosts),
        } | {name: moved[name.removeprefix("uplink_")] / uplink_rate for name in self._uplinks()}

    def moved_bytes(self) -> dict[str, int]:
        """Bytes delivered by resource; DRAM counts every transfer that passes through it."""
        h2d = sum(engine.tiers.h2d.delivered_bytes for engine in self.engines)
        d2h = sum(engine.tiers.d2h.delivered_bytes for engine in self.engines)
        read = sum(host.ssd_read.delivered_bytes for host in self.hosts)
        write = sum(host.ssd_write.delivered_bytes for host in self.hosts)
        attended = sum(lane.delivered_bytes for host in self.hosts for lane in host.fabric.readers)
        dram = h2d + d2h + read + write + attended
        return {"h2d": h2d, "d2h": d2h, "dram": dram, "ssd_read": read, "ssd_write": write}

    def _instances(self) -> dict[str, int]:
        replicas, hosts = dict.fromkeys(("gpu", "h2d", "d2h"), len(self.engines)), len(self.hosts)
        return replicas | {"dram": hosts, "ssd_read": hosts, "ssd_write": hosts} | self._uplinks()

    def _uplinks(self) -> dict[str, int]:
        """How many uplinks there are in each direction; nothing where there are none, or none that carry anything."""
        both = sum(len(host.fabric.uplinks) for host in self.hosts)
        if not both or not self.config.link.uplink_bytes_per_s:
            return {}
        return {"uplink_h2d": both // 2, "uplink_d2h": both // 2}

    def _swaps(self) -> dict[str, int]:
        if self.config.engine.preemption == "recompute":
            return {}
        counts = [asdict(ledger.swaps) for ledger in self.ledgers]
        return {name: sum(each[name] for each in counts) for name in counts[0]}

    def pools(self) -> dict[str, list[KVPool]]:
        """Every pool by tier."""
        return {
            "vram": [engine.pool for engine in self.engines],
            "dram": [pool for host in self.hosts for pool in host.dram],
            "ssd": [host.ssd for host in self.hosts if host.ssd is not None],
        }

    def tier_capacity_blocks(self) -> dict[str, int]:
        """Blocks that there are by tier."""
        return {
            tier: sum(pool.capacity_blocks for pool in pools) * self._unit_blocks(tier)
            for tier, pools in self.pools().items()
        }

    def tier_written_blocks(self) -> dict[str, int]:
        """Blocks ever written by tier."""
        return {
            tier: sum(pool.written_blocks for pool in pools) * self._unit_blocks(tier)
            for tier, pools in self.pools().items()
        }

    def _unit_blocks(self, tier: str) -> int:
        """Return how many blocks a unit of ``tier`` is."""
        return 1 if tier == "vram" else self.config.offload.unit_blocks


def _audit(system: System) -> Audit:
    """Return what looks at ``system`` while it runs; it knows every kind of engine, so it too is imported on demand."""
    from simkv.sim.audit import Audit

    return Audit(system)


def _warmed(system: System, source: Source) -> Warmed | None:
    """Let what went before the run pass untimed, None where nothing did; as the audit, imported on demand."""
    if isinstance(source, Handover):
        from simkv.sim.warm import warm

        return warm(system, source)
    if isinstance(source, Storing) and next(source.stored(), None) is not None:
        from simkv.sim.warm import store

        return store(system, source)
    return None


def _engine_type(config: SystemConfig) -> EngineType:
    """Return what serves a replica; a kind is only imported where it is used."""
    if config.active is not None:
        from simkv.sim.active.engine import ActiveEngine

        return ActiveEngine
    if config.batch is not None:
        from simkv.sim.batchmode.engine import BatchEngine

        return BatchEngine
    return Engine


def _classes(configured: tuple[ClassConfig, ...], used: tuple[str, ...]) -> tuple[ClassConfig, ...]:
    """Return every class in the order of their numbers; one that the workload uses and nobody configured is plain."""
    classes = {one.name: one for one in configured}
    return tuple(classes.get(name, ClassConfig(name)) for name in dict.fromkeys([*classes, *used]))
