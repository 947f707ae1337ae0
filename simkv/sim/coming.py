"""Who comes while a step runs, and is first thought of when the step after next is decided.

An engine that schedules ahead decides a step while the one before it runs: vLLM's asynchronous scheduling (a queue of
two batches, ``step_with_batch_queue``), SGLang's and TensorRT-LLM's overlapped schedulers. At the end of step n it
decides step n + 2, and step n + 1 begins, which was decided when step n began. So a request that arrives (or whose load
ends) while step n runs takes part from step n + 2 on. An engine without work takes a request at once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from simkv.sim.live import Live

if TYPE_CHECKING:
    from simkv.sim.engine import Engine

NEVER = 1 << 62


class Coming:
    """Requests by the first step that can be decided with them, in the order in which they came."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.ahead = engine.config.async_scheduling
        self._due: deque[tuple[int, Live, bool]] = deque()
        """Step, request, and whether it has its place in the queue already."""
        self._deciding = False

    def __len__(self) -> int:
        return len(self._due)

    def add(self, live: Live, returns: bool) -> bool:
        """Keep ``live`` for the step after next where the next one is decided; False, keeping nothing, where it isn't.

        One that ``returns`` goes back to its place in the queue, any other behind whoever is there.
        """
        engine = self.engine
        if not self.ahead or not (self._deciding or engine.batch.size or engine.chunks):
            return False
        begins = engine.step + 1 if self._deciding else engine.next_step()
        self._due.append((begins + 1, live, returns))
        if not engine.chunks and not self._deciding:
            engine.cut(self.first_step())
        return True

    def first_step(self) -> int:
        """The first step in which somebody of these may take part though nothing else happens."""
        engine, scheduler = self.engine, self.engine.scheduler
        if len(engine.running) >= engine.config.max_num_seqs:
            return NEVER
        last = bool(scheduler.waiting) and not scheduler.by_priority
        return next((step for step, _, returns in self._due if returns or not last), NEVER)

    def decide(self, now: float, changed: bool) -> bool:
        """Decide the step that begins now with those who came in time for it, or with all where it has no work."""
        engine, schedule = self.engine, self.engine.scheduler.schedule
        if not self.ahead:
            return schedule(now, changed)
        self._deciding = True
        self._let_in(engine.step)
        changed = schedule(now, changed)
        while self._due and not (engine.batch.size or engine.chunks):
            self._let_in(NEVER)
            changed = schedule(now, changed)
        self._deciding = False
        return changed

    def _let_in(self, step: int) -> None:
        """Queue whoever may take part in ``step``."""
        scheduler = self.engine.scheduler
        while self._due and self._due[0][0] <= step:
            _, live, returns = self._due.popleft()
            scheduler.put_back(live) if returns else scheduler.push(live)
            scheduler.look_again |= scheduler.waiting[0][1] is live
