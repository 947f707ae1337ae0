"""Time integrals of an engine's state, kept up to date at its transitions."""

from __future__ import annotations


class Together:
    """How many requests run in all replicas at once, and the most that ever did."""

    __slots__ = ("most", "running")

    def __init__(self) -> None:
        self.running = 0
        self.most = 0

    def change(self, by: int) -> None:
        """Count ``by`` more running requests."""
        self.running += by
        if self.running > self.most:
            self.most = self.running


class Gauge:
    """Integrals over time of what one replica does."""

    __slots__ = ("busy", "busy_s", "held", "held_s", "hidden_s", "running", "running_time_s", "since_s", "together")

    def __init__(self, together: Together) -> None:
        self.together = together
        self.since_s = 0.0
        self.busy = False
        self.held = 0
        self.running = 0
        self.busy_s = 0.0
        self.held_s = 0.0
        self.hidden_s = 0.0
        self.running_time_s = 0.0

    def update(self, now: float) -> None:
        """Book the time since the last change; call before changing ``busy``, ``held`` or ``running``."""
        passed = now - self.since_s
        if passed > 0.0:
            self.since_s = now
            if self.busy:
                self.busy_s += passed
            if self.held:
                self.held_s += passed
                if self.busy:
                    self.hidden_s += passed
            self.running_time_s += passed * self.running

    def set_running(self, now: float, running: int) -> None:
        """Set the number of running requests."""
        if now > self.since_s:
            self.update(now)
        if running != self.running:
            self.together.change(running - self.running)
            self.running = running
