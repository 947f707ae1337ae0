"""Every figure of a summary as declared data: name, unit, formula, and what it needs.

``summary.json``, ``docs/results.md`` and the tests follow this table: a key that is not in it
does not exist. A metric whose needs a scenario doesn't meet is null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["identity", "count", "latency", "rate", "share", "resource", "active", "answer"]

KINDS: dict[Kind, str] = {
    "identity": "Which run this is",
    "count": "Counts and totals (the whole run, never trimmed)",
    "latency": "Latencies (finished requests that arrived after the warm-up)",
    "rate": "Rates and targets",
    "share": "Where prompt tokens and time come from",
    "resource": "Resources",
    "active": "Active offload (null without it)",
    "answer": "What follows",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """One top-level key of ``summary.json``."""

    name: str
    kind: Kind
    unit: str
    shape: str
    """Keys below the metric; empty for a plain value."""
    formula: str
    needs: str = ""


_DISTRIBUTION = "mean, p50, p90, p95, p99, max, ci95"
_TIERS = "vram, dram, ssd"
_RESOURCES = "gpu, h2d, d2h, dram, ssd_read, ssd_write"

_TABLE: tuple[Metric, ...] = (
    Metric("schema_version", "identity", "", "", "Version of this layout"),
    Metric("simkv_version", "identity", "", "", "Version of simkv"),
    Metric("scenario", "identity", "", "", "Name of the scenario"),
    Metric("question", "identity", "", "", "What the scenario asks", "a question in the scenario"),
    Metric("scenario_hash", "identity", "", "", "Hash of the resolved scenario"),
    Metric("seed", "identity", "", "", "Seed of all random streams"),
    Metric("requests", "count", "requests", "arrived, finished, rejected, live",
           "arrived = finished + rejected + live; live ones were in flight when the run was interrupted"),
    Metric("warm_tiers", "count", "", "requests, time_s, settled, written",
           "What passed through the tiers untimed before the run, and in which time of the workload; whether longer "
           "would have changed nothing relevant (null: a time was asked for, or a recording's first half); `written`: "
           "blocks written into each tier / capacity", "`run.warm_tiers`"),
    Metric("prompt_tokens", "count", "tokens", "", "Sum of prompt lengths of the finished"),
    Metric("output_tokens", "count", "tokens", "", "Sum of output lengths of the finished"),
    Metric("makespan_s", "count", "s", "", "Last end - first arrival"),
    Metric("warm_up_s", "latency", "s", "",
           "Arrivals in this time after the first one are left out of the latencies: "
           "`run.warm_up`, or the later of the MSER-5 cuts of TTFT and E2E"),
    Metric("ttft_s", "latency", "s", _DISTRIBUTION, "first token - arrival"),
    Metric("itl_s", "latency", "s", _DISTRIBUTION,
           "Time between two successive tokens of a request, every interval of every request counted "
           "once, from the end of the warm-up on (percentiles to 0.05 %)", "more than one output token"),
    Metric("tpot_s", "latency", "s", _DISTRIBUTION,
           "(finish - first token) / (output tokens - 1), a request's own mean", "more than one output token"),
    Metric("e2e_s", "latency", "s", _DISTRIBUTION, "finish - arrival"),
    Metric("queue_s", "latency", "s", _DISTRIBUTION,
           "Time in the waiting queue before the first admission, loads not counted"),
    Metric("time_breakdown_s", "latency", "s",
           "queue, load_dram, load_ssd, prefill, decode, recompute, preempted",
           "Mean time a request spent in each part; the parts sum to e2e_s.mean"),
    Metric("load_wait_s", "latency", "s", "",
           "Mean time that a request which loaded from a lower tier was held for it", "a load"),
    Metric("load_hidden", "latency", "1", "",
           "Share of the time with some request held for a load in which its GPU worked for others", "a load"),
    Metric("requests_per_s", "rate", "1/s", "", "finished / makespan"),
    Metric("output_tokens_per_s", "rate", "tokens/s", "", "output_tokens / makespan"),
    Metric("goodput_requests_per_s", "rate", "1/s", "",
           "Finished requests that met their own limits (TTFT, own mean TPOT, E2E) / makespan", "an SLO"),
    Metric("slo_attainment", "rate", "1", "overall, classes, targets",
           "Share of the requests in the window that met their own limits (a rejected one did not); "
           "`targets`: each limit on a percentile or mean with its value and whether it holds", "an SLO"),
    Metric("cost_per_million_output_tokens", "rate", "currency", "",
           "(gpus gpu_hour + GiB dram_gib_hour + TiB ssd_tib_hour) / (3600 output_tokens_per_s) x 1e6",
           "`cost` in the scenario"),
    Metric("cost", "rate", "currency/h", "per_hour, currency, source",
           "What the machine costs an hour", "`cost` in the scenario"),
    Metric("hit_rate", "share", "1", "vram, dram, ssd, miss, ceiling",
           "Prompt tokens of the finished by the tier that served them at the first admission, over all of their "
           "prompt tokens; vram + dram + ssd + miss = 1; `ceiling`: what an infinite cache would have hit"),
    Metric("preemptions", "count", "times", "", "Requests thrown out of VRAM while running"),
    Metric("recomputed_tokens", "count", "tokens", "", "Tokens computed again after a preemption"),
    Metric("swap", "count", "", "requests, refused, out_bytes, in_bytes",
           "Preemptions whose blocks were kept in DRAM, those for which it had no room (they computed again), and what "
           "was written down and loaded for them", "`engine.preemption: swap`"),
    Metric("concurrency", "resource", "requests", "formula, mean, max",
           "Running requests: closed form; integral over time / makespan; largest"),
    Metric("kv_usage", "resource", "1", f"{_TIERS}, each mean and max",
           "Blocks held (by requests or as cache) / capacity: over time, and the largest sample", "the tier"),
    Metric("bytes", "resource", "B", "h2d, d2h, dram, ssd_read, ssd_write", "Bytes moved", "the resource"),
    Metric("utilization", "resource", "1", _RESOURCES, "busy time / (instances x makespan)", "the resource"),
    Metric("bottleneck", "resource", "", "",
           "What binds: one of the resources, `vram` (room for KV), `max_num_seqs` (seats); null where nothing is near "
           "its limit"),
    Metric("bottleneck_because", "resource", "", "", "Why that one, with its figures"),
    Metric("speedup", "answer", "1", "formula, measured, vs_no_offload",
           "`vs_no_offload`: mean E2E without offload / mean E2E, same requests; `formula`, `measured`: "
           "active offload with prefetch against without", "the baseline"),
    Metric("p_hit", "active", "1", "",
           "(block, layer) reads that are resident when needed / all", "active offload"),
    Metric("p_resident", "active", "1", "",
           "(block, layer) reads that are resident as the step begins / all: prefetches under way don't count",
           "active offload"),
    Metric("t_avg_s", "active", "s", "formula, service, queued, exposed",
           "Mean time of one (block, layer) read", "active offload"),
    Metric("t_step_s", "active", "s", "", "Mean time of a decode step", "active offload"),
    Metric("t_compute_s", "active", "s", "", "Its compute, undisturbed", "active offload"),
    Metric("t_wait_s", "active", "s", "loads, writes, cpu, contention",
           "What it waits for: needed loads, write-backs, managing blocks, computing slowed by copies or after waits; "
           "t_step_s = t_compute_s + their sum",
           "active offload"),
    Metric("t_transfer_s", "active", "s", "", "Its needed transfers", "active offload"),
    Metric("beta", "active", "1", "",
           "1 - (time the GPU idles for a needed transfer while the link carries needed ones) / "
           "(time the link carries needed ones)", "active offload"),
    Metric("prefetch", "active", "",
           "accuracy, coverage, timeliness, loaded_bytes, wasted_bytes, wasted_link_s, demand_delayed_s",
           "accuracy = bytes prefetched and then used / bytes prefetched; coverage = used / (used + loaded on demand); "
           "timeliness = here when needed / used; link time of wasted ones; time demand loads queued",
           "a prefetcher that loaded something"),
    Metric("classes", "answer", "", "one a class: requests, ttft_s, tpot_s, e2e_s, queue_s",
           "The latencies of each request class", "two classes or more"),
    Metric("closed_form", "answer", "", "", "First-order answers, by the key that they stand beside"),
    Metric("baselines", "answer", "", "one a baseline",
           "The same scenario and random numbers with one thing changed: main metrics, and `difference` "
           "(this run - baseline over the same requests: mean, ci95, relative)", "`run.baselines`"),
    Metric("verdict", "answer", "", "offload_helps, because",
           "Whether offloading helps here: true, false, or null where that can't be said; and why"),
    Metric("warnings", "answer", "", "a list of code, message", "What to know before using the figures"),
    Metric("notes", "answer", "", "a list", "What the model leaves out here"),
)  # fmt: skip

METRICS: dict[str, Metric] = {metric.name: metric for metric in _TABLE}
"""In the order of ``summary.json``."""

SCHEMA_VERSION = 1
