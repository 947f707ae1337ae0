"""Results of ``vllm bench serve`` and of ``sglang.bench_serving``: one object a run, its latencies in milliseconds.

Sources: vLLM 0.33.0, ``benchmarks/serve`` (``--save-result``; with ``--save-detailed`` a list a request, in seconds,
``start_times`` by a clock of its own); SGLang 0.5.23, ``benchmark/serving`` (an object a line for each run; lists with
``--output-details``). Both name p50 ``median``; vLLM calls E2E ``e2el``, SGLang ``e2e_latency``.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from simkv.errors import InputError, Problem
from simkv.planner.observed.fields import Fields
from simkv.planner.observed.types import A_PART, MOST_REQUESTS, STATISTICS, Observed, Rows, figures_of

VLLM, SGLANG = "vllm bench serve", "sglang.bench_serving"
_METRICS: Mapping[str, Mapping[str, str]] = {
    VLLM: {"ttft_s": "ttft", "tpot_s": "tpot", "itl_s": "itl", "e2e_s": "e2el"},
    SGLANG: {"ttft_s": "ttft", "tpot_s": "tpot", "itl_s": "itl", "e2e_s": "e2e_latency"},
}
_NAMES = {"mean": "mean", "p50": "median"} | {name: name for name in STATISTICS if name != "p50"}
LEAST_BURSTINESS = 0.01
_COMPARED_ITL = ("mean",)
"""Of ITL the mean alone: percentiles are of gaps between chunks of text, which may hold several tokens."""


def tool_of(values: Mapping[str, object]) -> str | None:
    """Return which benchmark wrote an object; None: neither."""
    if "total_output_tokens" not in values or "duration" not in values:
        return None
    return SGLANG if "mean_e2e_latency_ms" in values or "sharegpt_output_len" in values else VLLM


def read_run(fields: Fields, tool: str) -> Observed:
    """Return one run; raises InputError for a missing or wrong value."""
    requests = fields.count("completed")
    if requests > MOST_REQUESTS:
        fields.refuse(f"is more than {MOST_REQUESTS:,}", "completed", A_PART)
    duration_s = fields.above_zero("duration")
    prompt_tokens, output_tokens = fields.count("total_input_tokens"), fields.count("total_output_tokens")
    rows, details, notes = _details(fields, duration_s)
    figures = {**_latencies(fields, tool), **details}
    figures["output_tokens_per_s"] = output_tokens / duration_s
    figures["requests_per_s"] = requests / duration_s
    if not any(key.endswith(".mean") for key in figures):
        fields.refuse("is missing: the file has no latency at all", f"mean_{_METRICS[tool]['ttft_s']}_ms")
    if rows is not None:
        requests = len(rows.output_tokens)
        prompt_tokens, output_tokens = sum(rows.prompt_tokens), sum(rows.output_tokens)
    return Observed(
        fields.file,
        tool,
        fields.text("model_id"),
        requests,
        figures,
        prompt_tokens,
        output_tokens,
        duration_s,
        *_traffic(fields, requests / duration_s),
        rows=rows,
        notes=tuple(notes),
    )


def _latencies(fields: Fields, tool: str) -> dict[str, float]:
    """Return what the file sums up; metrics without an answer are zero there, and left out."""
    found = {}
    for metric, own in _METRICS[tool].items():
        for statistic, prefix in _NAMES.items():
            key = f"{prefix}_{own}_ms"
            if key in fields and (metric != "itl_s" or statistic in _COMPARED_ITL):
                value = fields.number(key) / 1e3
                if value:
                    found[f"{metric}.{statistic}"] = value
    return found


def _traffic(fields: Fields, served_per_s: float) -> tuple[float, float, int | None]:
    """Return the rate of sending, its burstiness and the bound on what is in flight."""
    rate = fields.values.get("request_rate")
    if rate is None or rate == "trace":
        per_s = served_per_s
    elif rate == "inf" or rate == inf:
        per_s = inf
    else:
        per_s = fields.above_zero("request_rate")
    burstiness = fields.above_zero("burstiness") if "burstiness" in fields else 1.0
    if burstiness < LEAST_BURSTINESS:
        fields.refuse(f"is below {LEAST_BURSTINESS:g}: all but a few come at once", "burstiness")
    return per_s, burstiness, fields.count("max_concurrency") if "max_concurrency" in fields else None


def _details(fields: Fields, duration_s: float) -> tuple[Rows | None, dict[str, float], list[str]]:
    """Return the requests one by one and what they come to, where the file has them; failed ones are left out."""
    if not {"input_lens", "output_lens", "ttfts", "itls"} <= fields.values.keys():
        return None, {}, []
    outputs = fields.numbers("output_lens")
    if len(outputs) > MOST_REQUESTS:
        what = f"is of more than {MOST_REQUESTS:,} requests"
        raise InputError(Problem(what, A_PART, fields.file, fields.line, "output_lens"))
    prompts, ttfts = fields.numbers("input_lens", len(outputs)), fields.numbers("ttfts", len(outputs))
    gaps = fields.lists("itls", len(outputs))
    starts = fields.numbers("start_times", len(outputs)) if "start_times" in fields else None
    served = [n for n, tokens in enumerate(outputs) if tokens >= 1 and prompts[n] >= 1 and ttfts[n] > 0]
    if not served:
        fields.refuse("holds no request that was served", "ttfts", "give a run in which requests were served")
    if starts is not None:
        served.sort(key=lambda n: starts[n])
    rows = Rows(
        tuple(int(prompts[n]) for n in served),
        tuple(int(outputs[n]) for n in served),
        tuple(starts[n] - starts[served[0]] for n in served) if starts is not None else None,
    )
    figures = figures_of(
        [ttfts[n] for n in served], [ttfts[n] + sum(gaps[n]) for n in served], rows.output_tokens, duration_s
    )
    lost = len(outputs) - len(served)
    return rows, figures, [f"{lost} of {len(outputs)} requests failed and are left out"] if lost else []
