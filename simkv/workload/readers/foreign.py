"""Formats that are known by sight but not read: an error that names them helps more than "unknown"."""

from __future__ import annotations

_LOOK_BYTES = 4096
_FORMATS: tuple[tuple[str, tuple[bytes, ...]], ...] = (
    ("an aibrix trace, several requests a row (JSONL)", (b'"requests"', b'"Prompt Length"')),
    ("a measured run of LLMServingSim, not its workload (JSONL)", (b'"first_token_ts"', b'"input_toks"')),
    ("a Vidur file of lengths without arrivals (CSV)", (b"num_prefill_tokens", b"num_decode_tokens")),
    ("ServeGen's lengths of a client (JSON, its place is workload.kind: clients)", (b'_tokens": "{',)),
    ("ServeGen's rates of a client (CSV, its place is workload.kind: clients)", (b",Weibull,0.",)),
    ("ServeGen's rates of a client (CSV, its place is workload.kind: clients)", (b",Gamma,",)),
    ("a Tair KV cache trace (JSONL)", (b'"query_type"', b'"block_mask"')),
    ("a log of prompt texts (JSONL)", (b'"time"', b'"text"')),
    ("an OpenTelemetry trace (JSON)", (b'"trace_id"', b'"span')),
    ("an LMBenchmark agent plan (JSONL)", (b'"round_id"', b'"agent_id"')),
    ("an inference-perf configuration (JSON)", (b'"input_sequence_length"', b'"output_sequence_length"')),
    ("a fitted workload (its place is workload.kind: fitted)", (b'{"simkv_workload"',)),
    ("a YAML file", (b"\nworkload:", b"\nmodel:")),
)


def looks_like(start: bytes) -> str:
    """Return what a file that begins with ``start`` looks like, with its article; "" where nothing fits."""
    first = start[:_LOOK_BYTES]
    for label, marks in _FORMATS:
        if all(mark in first for mark in marks):
            return label
    return ""
