"""A closed form with figures put in: the answers of ``simkv calc``, in SI.

``form`` says which; the other keys are called as the options of that command, quantities are written with their units:

- ``kv-size``: ``model tokens``; may have ``batch kv_dtype tensor_parallel``
- ``concurrency``: ``free sequence``, or ``model hardware``, or ``model available``; may have ``residency``, and with a
  model ``tokens kv_dtype tensor_parallel utilization max_num_seqs max_num_batched_tokens weight_dtype``
- ``t-avg``: ``p_hit t_vram t_mem``, or ``tiers``, a list of ``{name, share, time}``, or ``p_hit model hardware``, which
  may have ``block_tokens kv_dtype tensor_parallel``
- ``speedup``: ``compute transfer``, or ``compute bytes bandwidth``; may have ``beta layers``
- ``step``: ``model hardware batch context``; may have ``prefill tensor_parallel weight_dtype kv_dtype eager``
- ``break-even``: ``model hardware span``; may have ``objective link_price flops_efficiency tensor_parallel weight_dtype
  kv_dtype link_bandwidth ssd_bandwidth``
- ``score``: ``last_use counts`` (lists, an entry a block) and ``lambda``

A metric is a key of what ``simkv calc FORM --json`` prints, dotted where it lies inside: ``bytes_per_token``,
``inputs.transfer_s``, ``kinds.0.layers``, ``decode_terms_s.attention``; of ``score`` it is ``scores.0``, ``scores.1``
and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simkv.errors import InputError, Problem
from simkv.validation.asks.calc_forms import Calc, worked
from simkv.validation.asks.section import section_of
from simkv.validation.question import Question


def answer(question: Question) -> dict[str, float]:
    """Return the figures wanted. Raises InputError for a wrong section, or what is no figure of the answer."""
    found = worked(_section(question))
    return {name: _figure(found, name) for name in question.metrics}


def check(question: Question) -> None:
    """Raise InputError for a section that isn't one."""
    _section(question)


def _section(question: Question) -> Any:
    return section_of(question, Calc).calc


def _figure(found: Mapping[str, Any], name: str) -> float:
    value: Any = found
    for part in name.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif _is_place(value, part):
            value = value[int(part)]
        else:
            raise InputError(_no_figure(name, value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(_no_figure(name, value))
    return float(value)


def _is_place(value: Any, part: str) -> bool:
    return isinstance(value, list) and part.isdecimal() and len(part) < 10 and int(part) < len(value)


def _no_figure(name: str, inside: Any) -> Problem:
    here: Sequence[Any] = list(inside) if isinstance(inside, Mapping) else []
    if isinstance(inside, list):
        here = range(len(inside))
    mend = f"here are {', '.join(map(str, here))}" if here else "take another"
    return Problem("is no number of this answer", mend, path="metric", value=name)
