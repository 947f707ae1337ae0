"""``docs/results.md`` from the declared metrics and columns, so that the page can't drift.

``python -m simkv.results.reference > docs/results.md`` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from simkv.results.columns import REQUEST_FIELDS, TIMESERIES_FIELDS
from simkv.results.metrics import KINDS, METRICS

_HEAD = """\
# What a run leaves behind

Written from `simkv/results/metrics.py` and `columns.py` by `python -m simkv.results.reference`.

A run writes one folder: `summary.json` (the figures below), `requests.parquet` (one flat record a
request), `timeseries.parquet` (samples over time), `scenario.resolved.yaml` (the scenario with
every default filled in); `simkv run` also writes `recording.json` (every event of a part of the
run). It is written under a temporary name and renamed; an older result of the same scenario is
replaced whole, anything else there is left alone and refused.

## `summary.json`

Times are seconds of simulated time. A metric whose needs the scenario doesn't meet is null.
Distributions have `mean`, `p50`, `p90`, `p95`, `p99`, `max` and `ci95`, the 95 % interval of the
mean by batch means: 20 batches in order of arrival (of inter-token intervals: 20 windows of equal
time); null where there are too few values. There are no timestamps, no wall times and no absolute
paths in it: the same scenario, seed and version give the same bytes.
"""

_WARNINGS = """\
## Warnings

| Code | When |
|---|---|
| `interrupted` | The run was stopped; only what had finished counts |
| `rejected` | Requests that can never fit were turned away |
| `not_stationary` | Waits rise over the whole of the arrivals, still do in the second half, and many are left waiting \
when arrivals end; a batch (arrivals in the first tenth of the run) never counts |
| `offload_hurts` | Mean TTFT or E2E is worse than without offload, beyond the interval and by 0.5 % or more |
| `saturated` | A link, a shared uplink, DRAM or SSD is busy for more than 95 % of the run, or while requests arrive |
| `cold_cache` | A tier below VRAM was written less than once over, and an infinite cache would have hit something |
| `stores_refused` | DRAM turned away more than one store batch in twenty requests, all it holds being pinned |
| `swaps_refused` | DRAM had no room for what some preempted requests held: they computed it again |
| `few_requests` | Latencies are of fewer than 100 requests: the high percentiles rest on a handful |
| `warm_up_too_long` | The warm-up given outlasts the arrivals, and was not applied |
| `not_realisable` | The scenario asks for what the engine can't do |
| `beta_clamped` | A given β was more than computing could hide, min(1, T_c / T_t), in some steps |
| `prefetch_idle` | Under sparse access prefetch fetched nothing, and reads were missing: it foresaw what was in VRAM |
| `empty_steps` | Decode steps in which attention reads nothing: the access log doesn't name them |
| `idle_gpus` | An instance is rented whole, and some of its GPUs do nothing |
| `unreachable` | SSD without DRAM, which everything passes through on its way there and back: it does nothing |
| `too_small` | A tier below VRAM has no room for a block, or for a unit of `offload.unit_tokens`: it does nothing |
| `budget_disagrees` | The engine's own KV pool is used, although the model doesn't fit by the estimate |
| `hybrid_prefix` | The model has windows or states: whether a prefix hit still finds its own is not modelled |
| `windows_not_freed` | No layer of the model sees all tokens: what has left a window is not freed |
| `hybrid_idle` | `engine.hybrid_kv_cache` is false, and the model has no windows |
| `trace_rows` | Rows of the trace were left out, moved or mended: how many, why, and where first |
"""


_RECORDING = """\
## `recording.json`

Every event of a bounded part of the run, for the block player: tables as objects of columns, nan as null, times in
seconds of simulated time, from `begin_s` to `end_s`. It changes nothing of the run. `simkv/sim/record/recording.py` has
the columns.

| Table | A row |
|---|---|
| `pools` | a tier's memory of one replica, host or class: its room in its own blocks, which below VRAM may be units \
of several of VRAM's; `left_out_blocks`, by its rows: what was there as the window began and no row tells, being the \
least recently used or of sequences that aren't followed |
| `steps` `transfers` `slices` | forward steps; transfers; when a lane served them |
| `blocks` | a run of blocks of one content (`labels`) is there, coming, here, used or gone, in one pool |
| `private` | how many blocks of a pool running requests hold without a name: full in part, being decoded, kept free |

Rows of `blocks` up to any time lead to what the pools hold then; with `private` that is what is used of their room.

- Blocks count from the beginning of the sequence that they are of. One is called by the content of its last token: of a
  session behind a shared prompt the first blocks are `shared prefix 3`, the others `session 12`, and the one in which
  the first ends and the second begins is the session's. Where the same content follows upon different ones the label
  says which (`document 5 after shared prefix 1`). In traces of hashed blocks it is the hash at which the run begins.
- `used` is a use as the eviction policy counts it: a prompt that finds the blocks, a load or a store that goes by them.
- When a block that is `there` was used last is known to within one interval of `timeseries.parquet`.
- Under active offload blocks are those of one request, which has them alone. Under sparse access one is in VRAM when
  all of its layer groups are, and `used` in each step that reads something of it. Under dense access all are in every
  step, which no row tells; what streams through are transfers. A transfer of 0 brings what came in several, layer by
  layer. Sequences are followed in the order in which they come, up to 8,192 blocks of a replica together.
- Where reads are taken in turn (`offload.eviction.incoming: candidate`), a block that has to go for its own load comes,
  is used and goes at the instant at which that is through.
"""


def reference() -> str:
    """Return the page as Markdown."""
    sections = [_HEAD]
    for kind, title in KINDS.items():
        rows = [(f"`{m.name}`", m.unit, m.shape, m.formula, m.needs) for m in METRICS.values() if m.kind == kind]
        sections.append(f"### {title}\n\n" + _table(("Key", "Unit", "Has", "What it is", "Needs"), rows))
    sections.append(_WARNINGS)
    sections.append("## `requests.parquet`\n\nOne row a request that ended, in the order in which they ended. The "
                    "parts of its time sum to `e2e_s`.\n\n" + _fields(REQUEST_FIELDS))  # fmt: skip
    sections.append("## `timeseries.parquet`\n\nSums over replicas; the interval between samples doubles as the run "
                    "grows.\n\n" + _fields(TIMESERIES_FIELDS))  # fmt: skip
    sections.append(_RECORDING)
    return "\n".join(sections)


def _fields(fields: Mapping[str, tuple[str, str]]) -> str:
    return _table(("Column", "Unit", "What it is"), [(f"`{name}`", *rest) for name, rest in fields.items()])


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(reference())
