"""Hit rates of a trace over capacity, policy by policy, without time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from simkv.api.given import StrPath, arguments_named, listed, plain
from simkv.api.progress import Progress, silent

if TYPE_CHECKING:
    import pandas as pd

    from simkv.hitrate import Capacities


def hit_rates(
    trace: StrPath,
    policies: Sequence[str] | None = None,
    capacities: Sequence[int | str] = (),
    *,
    order: Literal["forward", "reverse"] = "forward",
    model: str | None = None,
    kv_dtype: str = "auto",
    block_tokens: int | None = None,
    lam: float | None = None,
    format: str | None = None,
    limit: int | None = None,
    jobs: int | None = 1,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Return how often blocks of ``trace`` are found, one row a policy and capacity.

    ``policies``: lru, arc, ... (None: all; Belady's bound is always among them). ``capacities``: blocks of the trace,
    or with ``model`` sizes of its KV: ``"80GiB"`` (none: halvings of what the trace has). ``order``: how a prompt
    touches its blocks. ``lam``: of the policy score. ``limit``: the first so many requests. ``jobs``: processes (None:
    one a core). ``DataFrame.attrs`` has the ceiling (``infinite_hit_rate``), the knee and whatever else
    ``simkv hitrate --json`` tells. Raises InputError for a trace without shared content, an unknown policy, and
    capacities that make no sense.
    """
    import pandas as pd

    from simkv.hitrate import CHOICES, Rules, load, study
    from simkv.kvcache.eviction import DEFAULT_LAMBDA
    from simkv.workload.readers import ReadReport, open_trace

    tell = progress or silent
    names = CHOICES if policies is None else listed(policies)
    with arguments_named():
        sizes = _capacities(capacities, model, kv_dtype)
        source = open_trace(Path(trace), format)
        references = load(source, ReadReport(source.reader.name), order, block_tokens, limit)
        rules = Rules(DEFAULT_LAMBDA if lam is None else lam)
        answer = study(references, names, sizes, rules, lambda share: tell(share, "replaying"), jobs)
    frame = pd.DataFrame(answer.pop("rows"))
    frame.attrs.update(answer)
    return frame


def _capacities(capacities: Sequence[int | str], model: str | None, kv_dtype: str) -> Capacities:
    from simkv.catalog import load_model
    from simkv.hitrate import Capacities

    texts = tuple(str(one) for one in plain(capacities))
    return Capacities(texts) if model is None else Capacities(texts, load_model(model), kv_dtype)
