"""Which rows there are: a group for each replica and each host, one for requests, one for the charts."""

from __future__ import annotations

from collections.abc import Iterator

from simkv.chrometrace.events import Event, Thread, process, thread_name
from simkv.sim.record.recording import Recording

_LANES = {
    "h2d": "DRAM to VRAM (h2d)",
    "d2h": "VRAM to DRAM (d2h)",
    "ssd_read": "SSD read",
    "ssd_write": "SSD write",
    "cpu": "attention on the CPU (reads DRAM)",
}
_STEPS = 1
_FIRST_LANE = 2


class Layout:
    """The rows of one recording's trace. Groups are numbered from 1: replicas, hosts, requests, charts."""

    def __init__(self, recording: Recording, replicas: int) -> None:
        groups = [name.rsplit(" ", 1)[0] for name in recording.lanes]
        self._groups = list(dict.fromkeys([f"replica {number}" for number in range(replicas)] + groups))
        self._lanes = [
            (Thread(1 + self._groups.index(group), _FIRST_LANE + number), name.rsplit(" ", 1)[1])
            for number, (group, name) in enumerate(zip(groups, recording.lanes, strict=True))
        ]
        self._replicas = replicas
        self.requests = Thread(len(self._groups) + 1, 1)
        self.charts = len(self._groups) + 2

    def steps(self, replica: int) -> Thread:
        """Return the row of a replica's steps."""
        return Thread(1 + replica, _STEPS)

    def lane(self, number: int) -> Thread:
        """Return the row of a lane."""
        return self._lanes[number][0]

    def names(self) -> Iterator[Event]:
        """Name all groups and rows."""
        for place, name in enumerate([*self._groups, "requests", "all replicas together"]):
            yield from process(1 + place, name, place)
        for replica in range(self._replicas):
            yield from thread_name(self.steps(replica), "GPU steps")
        for thread, lane in self._lanes:
            yield from thread_name(thread, _LANES.get(lane, lane))
        yield from thread_name(self.requests, "requests")
