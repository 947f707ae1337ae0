"""Scenarios that are queues, and the waits of their runs beside what theory says."""

from __future__ import annotations

from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from simkv.formulas import queueing
from simkv.scenario.resolve import resolve_text
from simkv.sim.rundata import RunData
from simkv.simulation import run_scenario
from simkv.validation.asks.interval import beside
from simkv.validation.asks.queue_sections import Md1, Mg1, Mm1, Mmc, Priority, Tandem

RATE = 1.0
"""Requests a second."""
MEAN_STEPS = 1000
"""Of exponential services: a step is that much shorter, and so is what an arrival waits for its end."""
EQUAL_STEPS = 10
COUNTED = 3
"""How many states of M/M/1 are told: nobody there, one, two."""
BLOCK_TOKENS = 1000
POOL_BLOCKS = 40
"""What is on its way has room in VRAM and in DRAM, and what a session left is out of both when it comes back: after
so many seconds that five times as many sessions have come since."""
THINK_S = 5 * POOL_BLOCKS / RATE
TANDEM_STEP_S = 0.002
Columns = dict[str, NDArray[Any]]
Section = dict[str, Any]


def mm1(asked: Mm1) -> dict[str, float]:
    """Waits and states of M/M/1."""
    found = _served(asked.load / MEAN_STEPS, _geometric(), asked.requests, asked.seed)
    answer = beside("wait_s", _waits(found), queueing.mm1_wait_s(RATE, asked.load / RATE))
    arrivals, finishes = found["arrival_s"], np.sort(found["finish_s"])
    present = np.arange(arrivals.size) - np.searchsorted(finishes, arrivals)
    for count in range(COUNTED):  # arrivals find what time does
        oracle = queueing.mm1_present(RATE, asked.load / RATE, count)
        answer |= beside(f"present_{count}", present == count, oracle)
    return answer


def md1(asked: Md1) -> dict[str, float]:
    """Waits of M/D/1."""
    found = _served(asked.load / EQUAL_STEPS, EQUAL_STEPS, asked.requests, asked.seed)
    return beside("wait_s", _waits(found), queueing.md1_wait_s(RATE, asked.load / RATE))


def mg1(asked: Mg1) -> dict[str, float]:
    """Waits of M/G/1 (Pollaczek-Khinchine)."""
    in_steps = queueing.discrete(asked.steps, asked.weights)
    step_s = asked.load / RATE / in_steps.mean_s
    outputs = {"dist": "empirical", "values": asked.steps, "weights": asked.weights}
    service = queueing.discrete([step_s * count for count in asked.steps], asked.weights)
    found = _served(step_s, outputs, asked.requests, asked.seed)
    return beside("wait_s", _waits(found), queueing.mg1_wait_s(RATE, service))


def mmc(asked: Mmc) -> dict[str, float]:
    """Waits of M/M/c."""
    mean_s = asked.load * asked.servers / RATE
    found = _served(mean_s / MEAN_STEPS, _geometric(), asked.requests, asked.seed, {"max_num_seqs": asked.servers})
    return beside("wait_s", _waits(found), queueing.mmc_wait_s(RATE, mean_s, asked.servers))


def priority(asked: Priority) -> dict[str, float]:
    """Waits by class of M/M/1 with priorities that don't interrupt."""
    names = [f"c{number}" for number in range(len(asked.shares))]
    step_s = asked.load / RATE / MEAN_STEPS
    classes = {name: {"priority": number} for number, name in enumerate(names)}
    mix = dict(zip(names, asked.shares, strict=True))
    found = _served(step_s, _geometric(), asked.requests, asked.seed, {"scheduling": "priority"}, mix, classes)
    service = queueing.geometric(MEAN_STEPS, step_s)
    oracles = queueing.mg1_priority_waits_s([(RATE * share, service) for share in asked.shares])
    answer: dict[str, float] = {}
    for number, oracle in enumerate(oracles):
        answer |= beside(f"wait_s_{number}", _waits(found)[found["cls"] == number], oracle)
    return answer


def tandem(asked: Tandem) -> dict[str, float]:
    """Waits of two deterministic servers in a row: reads from SSD, then the link."""
    ssd_s, link_s = asked.ssd / RATE, asked.link / RATE
    rows = _columns(_run(_tandem_scenario(ssd_s, link_s, asked.requests), asked.seed))
    loads = {name: column[rows["turn"] == 1] for name, column in rows.items()}
    wait_s = _waits(loads) - ssd_s - link_s
    slower_s = max(ssd_s, link_s)
    return beside("wait_s", wait_s, queueing.md1_wait_s(RATE, slower_s)) | beside(
        "ssd_wait_s", loads["load_ssd_time_s"] - ssd_s, queueing.md1_wait_s(RATE, ssd_s)
    )


def _geometric() -> Section:
    return {"dist": "geometric", "mean": MEAN_STEPS}


def _served(
    step_s: float, outputs: Any, requests: int, seed: int, engine: Section | None = None,
    mix: Section | None = None, classes: Section | None = None,
) -> Columns:  # fmt: skip
    """Return what became of requests of one prompt token at an engine whose every step takes ``step_s``."""
    workload = {"kind": "plain", "requests": requests, "prompt_tokens": 1, "output_tokens": outputs, **_poisson()}
    return _columns(
        _run(
            {
                "hardware": {"step_time": f"{step_s!r}s", "kv_tokens": 10**12},
                "engine": {"max_num_seqs": 1, "prefix_caching": False, **(engine or {})},
                "workload": workload | ({"mix": mix} if mix else {}),
                "classes": classes or {},
            },
            seed,
        )
    )


def _tandem_scenario(ssd_s: float, link_s: float, sessions: int) -> Section:
    """Sessions of two turns: a block each, which is on SSD alone when the second turn comes."""
    pool = POOL_BLOCKS * BLOCK_TOKENS
    free = "inf GB/s"
    return {
        "hardware": {"step_time": f"{TANDEM_STEP_S}s", "kv_tokens": pool},
        "engine": {"max_num_seqs": 1000, "block_tokens": BLOCK_TOKENS, "max_num_batched_tokens": 10**6},
        "workload": {
            "kind": "sessions", "requests": 2 * sessions, **_poisson(), "turns": 2, "think_time": f"{THINK_S}s",
            "first_prompt_tokens": BLOCK_TOKENS, "prompt_tokens": 1, "output_tokens": 1,
        },
        "tiers": {
            "dram": {"capacity": f"{pool}B", "bandwidth": free},
            "ssd": {"capacity": "1TB", "read": f"{BLOCK_TOKENS / ssd_s!r} B/s", "write": free, "latency": "0s"},
        },
        "link": {"h2d": f"{BLOCK_TOKENS / link_s!r} B/s", "d2h": free, "duplex": free, "latency": "0s"},
        "offload": {
            "eviction": {"policy": "lru"}, "write": "write_through", "prefetch": {"policy": "none"},
        },
    }  # fmt: skip


def _poisson() -> Section:
    return {"arrival": {"process": "poisson", "rate": f"{RATE} req/s"}}


def _run(scenario: Section, seed: int) -> RunData:
    about = {"name": "queue", "model": {"kv_bytes_per_token": "1B"}}
    whole = about | scenario | {"run": {"seed": seed, "warm_up": "0s", "baselines": []}}
    return run_scenario(resolve_text(yaml.safe_dump(whole), "queue.yaml")).data


def _columns(data: RunData) -> Columns:
    """Return the rows of requests in the order of their arrival."""
    order = np.lexsort((data.requests["id"], data.requests["arrival_s"]))
    return {name: column[order] for name, column in data.requests.items()}


def _waits(rows: Columns) -> NDArray[Any]:
    waits: NDArray[Any] = rows["scheduled_s"] - rows["arrival_s"]
    return waits
