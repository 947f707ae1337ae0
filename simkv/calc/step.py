"""One forward step of an engine, term by term (formulas/step)."""

from __future__ import annotations

from simkv.calc.answer import Answer, Line
from simkv.calc.machine import kv_dtype_line, machine_lines, too_long, unfit
from simkv.formulas.step import Mode, Roofline, RooflineStep, step_cost
from simkv.hardware import Gpu
from simkv.model import ModelShape

FORMULA = """\
T = overhead + sequences x per_sequence + roofline(linear layers) + roofline(experts touched)
    + roofline(lm_head) + attention + all-reduce
roofline(F, W) = max(F / achieved FLOP/s, W / achieved bandwidth)"""


def step(
    model: ModelShape,
    gpu: Gpu,
    batch: int,
    context: int,
    prefill: int | None = None,
    tensor_parallel: int = 1,
    weight_dtype: str = "auto",
    kv_dtype: str = "auto",
    eager: bool = False,
) -> Answer:
    """Return the time of a decode step of ``batch`` sequences of ``context`` tokens each, and of a prefill.

    ``prefill``: tokens of a prompt computed alone, whole in one step. Raises InputError for a split that the
    heads don't allow, or an unknown dtype.
    """
    mode: Mode = "eager" if eager else "graphs"
    cost = step_cost(model, gpu, tensor_parallel, weight_dtype, kv_dtype, mode)
    decode_s, growth_s, _ = cost.decode(batch, batch * context)
    inputs = [
        *machine_lines(model, gpu, tensor_parallel, weight_dtype, mode),
        Line("batch", batch, "sequences decoding", "count"),
        Line("context_tokens", context, "context of each", "tokens"),
        kv_dtype_line(kv_dtype),
    ]
    terms = _decode_terms(cost, batch, context, decode_s)
    steps = _lines("decode", terms, decode_s)
    result = [
        Line("t_decode_s", decode_s, "T of a decode step", "time", "also the inter-token latency of each"),
        Line("decode_tokens_per_s", batch / decode_s, "tokens/s", "number", "of the whole batch"),
        Line("growth_s", growth_s, "longer each step by", "time", "each sequence reads one token more"),
    ]
    more: dict[str, object] = {"decode_terms_s": {name: seconds for name, seconds, _ in terms}}
    if prefill is not None:
        prefill_s = cost.mixed(0, 0, [(prefill, 0)], 1)
        inputs.append(Line("prefill_tokens", prefill, "prompt computed alone", "tokens", "in one step"))
        terms = _prefill_terms(cost, prefill, prefill_s)
        steps += _lines("prefill", terms, prefill_s)
        result.append(Line("t_prefill_s", prefill_s, "T of the prefill", "time"))
        result.append(Line("prefill_tokens_per_s", prefill / prefill_s, "tokens/s", "number", "of the prefill"))
        more["prefill_terms_s"] = {name: seconds for name, seconds, _ in terms}
    warnings = [*too_long(model, max(context, prefill or 0)), *unfit(model, gpu, tensor_parallel, weight_dtype)]
    return Answer("Time of a step", FORMULA, inputs, steps, result, more, warnings=warnings)


Terms = list[tuple[str, float, str]]
"""Name, seconds, and what bounds it."""


def _decode_terms(cost: RooflineStep, batch: int, context: int, total_s: float) -> Terms:
    without_s, _, _ = cost.decode(batch, 0)
    attention = ("attention", total_s - without_s, f"KV of {batch * context:,} tokens")
    return [*_common(cost, batch, batch, batch), attention]


def _prefill_terms(cost: RooflineStep, tokens: int, total_s: float) -> Terms:
    common = _common(cost, tokens, 1, 1)
    attention_s = total_s - sum(seconds for _, seconds, _ in common)
    return [*common, ("attention", attention_s, "each token with all before it")]


def _common(cost: RooflineStep, tokens: int, sequences: int, sampled: int) -> Terms:
    """Return every term but attention."""
    terms: Terms = [
        ("overhead", cost.overhead_s, f"{cost.layers} layers"),
        ("sequences", cost.sequence_s * sequences, "sampling, set-up and states of each"),
        ("linear", cost.linear.seconds(tokens), _bound(cost.linear, tokens)),
        ("lm_head", cost.head.seconds(sampled), _bound(cost.head, sampled)),
    ]
    if cost.experts is not None:
        terms.append(("experts", cost.experts.seconds(tokens), "the expected distinct ones"))
    all_reduce_s = cost.comm.seconds(tokens)
    return [*terms, ("all_reduce", all_reduce_s, "")] if all_reduce_s else terms


def _bound(product: Roofline, rows: int) -> str:
    by_flops = product.flops_s_per_row * rows >= product.seconds(rows)
    return "bound by arithmetic" if by_flops else "bound by reading weights"


def _lines(what: str, terms: Terms, total_s: float) -> list[Line]:
    return [Line("", s, f"{what}: {name}", "time", _remark(s / total_s, why)) for name, s, why in terms]


def _remark(part: float, why: str) -> str:
    return f"{100 * part:.3g} %{', ' if why else ''}{why}"
