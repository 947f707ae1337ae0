"""What each column of the result folder's tables means: unit and sentence, as declared data."""

from __future__ import annotations

REQUEST_FIELDS: dict[str, tuple[str, str]] = {
    "id": ("", "Number of the request, in order of creation by the workload"),
    "session": ("", "Session that it belongs to; -1: none"),
    "turn": ("", "Turn within the session, from 0"),
    "replica": ("", "Replica that served it; -1: rejected before routing"),
    "rejected": ("", "It could never fit and was turned away"),
    "arrival_s": ("s", "When it arrived, in simulated time"),
    "scheduled_s": ("s", "Start of the first step that computed something of it; null if rejected"),
    "first_token_s": ("s", "When its first output token was there; null if rejected"),
    "finish_s": ("s", "When its last output token was there, or when it was rejected"),
    "prompt_tokens": ("tokens", "Length of the prompt"),
    "output_tokens": ("tokens", "Length of the output"),
    "hit_vram_tokens": ("tokens", "Prompt tokens found in VRAM at the first admission"),
    "hit_dram_tokens": ("tokens", "Prompt tokens that came from DRAM"),
    "hit_ssd_tokens": ("tokens", "Prompt tokens that came from SSD"),
    "recomputed_tokens": ("tokens", "Tokens computed again after a preemption"),
    "preemptions": ("", "How often it was thrown out of VRAM while running"),
    "queue_time_s": ("s", "Part of its time in the system: waiting for admission"),
    "load_dram_time_s": ("s", "Part: held for a load from DRAM"),
    "load_ssd_time_s": ("s", "Part: held for a load from SSD"),
    "prefill_time_s": ("s", "Part: from its first step to its first token"),
    "decode_time_s": ("s", "Part: decoding"),
    "recompute_time_s": ("s", "Part: computing again what a preemption threw away"),
    "preempted_time_s": ("s", "Part: waiting after a preemption"),
    "ceiling_tokens": ("tokens", "Prompt tokens that an infinite cache would have hit"),
    "class": ("", "Name of its request class (dictionary)"),
    "ttft_s": ("s", "first_token_s - arrival_s; null if rejected"),
    "tpot_s": ("s", "(finish_s - first_token_s) / (output_tokens - 1); null for a single token or if rejected"),
    "e2e_s": ("s", "finish_s - arrival_s"),
}
"""Columns of ``requests.parquet``, one row a request that ended, in the order in which they ended."""

TIMESERIES_FIELDS: dict[str, tuple[str, str]] = {
    "t_s": ("s", "Time of the sample"),
    "waiting": ("requests", "In a waiting queue"),
    "running": ("requests", "Running"),
    "held": ("requests", "Held for a load"),
    "vram_blocks": ("blocks", "VRAM blocks that requests hold"),
    "vram_cached_blocks": ("blocks", "VRAM blocks that only the cache holds"),
    "dram_blocks": ("blocks", "Blocks in DRAM"),
    "ssd_blocks": ("blocks", "Blocks on SSD"),
    "gpu_busy_s": ("s", "GPU busy so far"),
    "h2d_busy_s": ("s", "Host-to-device links busy so far"),
    "d2h_busy_s": ("s", "Device-to-host links busy so far"),
    "ssd_read_busy_s": ("s", "SSDs busy reading so far"),
    "ssd_write_busy_s": ("s", "SSDs busy writing so far"),
    "dram_bytes": ("B", "Bytes that crossed DRAM so far"),
    "h2d_bytes": ("B", "Bytes from host to device so far"),
    "d2h_bytes": ("B", "Bytes from device to host so far"),
    "ssd_read_bytes": ("B", "Bytes read from SSD so far"),
    "ssd_write_bytes": ("B", "Bytes written to SSD so far"),
    "finished": ("requests", "Finished so far"),
}
"""Columns of ``timeseries.parquet``: sums over replicas, one row a sample."""
