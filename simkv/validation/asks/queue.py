"""A degenerate system beside what theory says of it (``formulas/queueing``, ``formulas/cache``).

``system`` says which; all but the caches are scenarios, run as any other: with a constant step, a pool that never
fills and prompts of one token, a request of n output tokens takes n steps, so the engine is a queue with
``max_num_seqs`` servers. One request arrives a second, at Poisson times; ``load`` is the busy share of each server.
Further keys: ``requests``, ``seed`` (0). ``wait_s`` is the mean time before service. A run's first tenth is left out.

- ``mm1``: geometric outputs of 1000 steps in the mean, as good as exponential. Also ``present_0``, ``present_1``,
  ``present_2``: the share of arrivals that find so many there
- ``md1``: outputs all alike
- ``mg1``: outputs of ``steps`` in proportion to ``weights``
- ``mmc``: geometric outputs, ``servers`` sequences at once
- ``priority``: one server, geometric outputs, a class for each of ``shares``, most urgent first, nobody interrupted
  (Cobham): ``wait_s_0``, ``wait_s_1``, ... by class
- ``tandem``: what a session left goes to SSD, and its next turn reads it back: SSD to DRAM, then over the link. Blocks
  are alike, so these are two deterministic servers in a row with the loads ``ssd`` and ``link``: all of the waiting is
  what the slower one alone would have, whichever comes first (H. D. Friedman, Reduction methods for tandem queuing
  systems, Operations Research 13(1), 1965). ``wait_s`` is of both, ``ssd_wait_s`` of the first, an M/D/1 queue
- ``lru``, ``fifo``: independent references to ``items`` with a Zipf law's ``exponent``, in a cache of ``capacity``
  items; ``references``, ``seed`` (0); ``through``: ``replay`` (as ``simkv hitrate`` counts) or ``pool`` (the prefix
  index that runs have; lru). ``hit_rate`` beside the approximation of Che (lru), or Fricker, Robert and Roberts (fifo)

Beside each metric stands what theory says, ``METRIC.expected``, and how far off the run may be, ``METRIC.tolerance``
(write ``expected: oracle``): half of its 99.9 % interval by batch means, which must be within 15 %; for ``hit_rate``
2 %, as the theory is an approximation there. A ``tolerance`` of the case goes before that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simkv.errors import InputError, Problem
from simkv.validation.asks import queue_caches, queue_runs
from simkv.validation.asks.interval import narrow
from simkv.validation.asks.queue_sections import Fifo, Lru, Queue, System
from simkv.validation.asks.section import section_of, wanted
from simkv.validation.question import Question

REQUEST_S, REFERENCE_S = 2e-5, 1e-6
"""What a request of a run, or a reference to a cache, takes on a core of today, roughly."""
_ANSWERS: dict[str, Callable[[Any], dict[str, float]]] = {
    "mm1": queue_runs.mm1,
    "md1": queue_runs.md1,
    "mg1": queue_runs.mg1,
    "mmc": queue_runs.mmc,
    "priority": queue_runs.priority,
    "tandem": queue_runs.tandem,
    "lru": queue_caches.lru,
    "fifo": queue_caches.fifo,
}


def answer(question: Question) -> dict[str, float]:
    """Return the metrics wanted, each with what theory expects of it. Raises InputError for a wrong section."""
    section = _section(question)
    return narrow(wanted(question, _ANSWERS[section.system](section)))


def check(question: Question) -> float:
    """Return about how many seconds the answer takes. Raises InputError for a section that isn't one."""
    section = _section(question)
    return section.references * REFERENCE_S if isinstance(section, Lru | Fifo) else section.requests * REQUEST_S


def _section(question: Question) -> System:
    if question.seeds > 1:
        raise InputError(Problem("does nothing for queue", "give more requests", path="seeds"))
    return section_of(question, Queue).queue
