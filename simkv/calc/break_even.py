"""Load a cached span, or compute it again? (formulas/breakeven)

What it takes is a span, what computes it and what loads it; who is better depends on the objective. *Latency*:
one request on an idle machine. *Throughput*: GPU seconds saved against link seconds spent.
"""

from __future__ import annotations

from dataclasses import dataclass

from simkv.calc.answer import Answer, Line, shown
from simkv.calc.machine import host_link, kv_dtype_line, machine_lines, ssd_read_bytes_per_s, too_long, unfit
from simkv.errors import InputError, Problem
from simkv.formulas.breakeven import mooncake_bytes_per_s, prefill_flops, throughput_gain_s
from simkv.formulas.kv_size import check_tensor_parallel, kv_bytes, vector_bytes
from simkv.formulas.step import flops_efficiency, peak_flops_per_s, step_cost
from simkv.formulas.weights import native_weight_dtype
from simkv.hardware import Gpu
from simkv.model import ModelShape

_TITLES: dict[str, str] = {
    "latency": "Load or recompute? Objective: latency of one request on an idle machine",
    "throughput": "Load or recompute? Objective: throughput (GPU seconds saved against link seconds spent)",
}
_FORMULAS: dict[str, str] = {
    "latency": "load wins where bandwidth > KV of the span / time to prefill it = alpha x prefill tokens/s",
    "throughput": "load wins where price x KV of the span / bandwidth < time to prefill it,\n"
    "price: what a second of the link is worth, relative to a second of the GPU",
}


@dataclass(frozen=True, slots=True)
class Machine:
    """What computes a span, and over what it would be loaded."""

    model: ModelShape
    gpu: Gpu
    tensor_parallel: int = 1
    weight_dtype: str = "auto"
    kv_dtype: str = "auto"
    flops_efficiency: float | None = None
    """Share of the peak that prefill achieves; None: the step model's terms."""
    link_bytes_per_s: float | None = None
    """Of one GPU; None: the instance's or the accelerator's."""
    ssd_bytes_per_s: float | None = None
    """Of the host; None: the instance's, or what scenarios assume."""

    @property
    def flops_per_s(self) -> float:
        """Achieved FLOP/s of all ranks."""
        return peak_flops_per_s(self.gpu, self._dtype) * self.efficiency * self.tensor_parallel

    @property
    def efficiency(self) -> float:
        """Share of the peak that linear layers achieve."""
        return flops_efficiency(self.gpu, self._dtype) if self.flops_efficiency is None else self.flops_efficiency

    @property
    def _dtype(self) -> str:
        return native_weight_dtype(self.model, self.weight_dtype)

    def prefill_s(self, span_tokens: int) -> float:
        """Time to compute the span alone, in one step."""
        if self.flops_efficiency is not None:
            return prefill_flops(self.model, span_tokens) / self.flops_per_s
        cost = step_cost(self.model, self.gpu, self.tensor_parallel, self.weight_dtype, self.kv_dtype)
        return cost.mixed(0, 0, [(span_tokens, 0)], 1)

    def span_bytes(self, span_tokens: int) -> int:
        """KV of the span, all ranks."""
        return kv_bytes(self.model, span_tokens, self.kv_dtype, self.tensor_parallel)

    def eq2_bytes_per_s(self, span_tokens: int) -> float | None:
        """Mooncake's bound; None for shapes that it has no letters for (MLA, windows, states)."""
        if len(self.model.attention) != 1 or self.model.mla or not self.model.uniform:
            return None
        (main,) = self.model.attention
        element_bytes = vector_bytes(main.head_dim, self.kv_dtype) / main.head_dim
        gqa = main.heads / main.kv_heads
        return mooncake_bytes_per_s(self.model.hidden, gqa, span_tokens, self.flops_per_s, element_bytes)

    def ways(self) -> dict[str, tuple[float, str]]:
        """Bandwidth of each way up and what it is: over the link; from SSD to DRAM first, and then over the link."""
        link, link_is = self.link_bytes_per_s, "as given"
        if link is None:
            figure = host_link(self.gpu)
            link, link_is = figure.value, figure.standing
        ssd, ssd_is = self.ssd_bytes_per_s, "as given"
        if ssd is None and "ssd_read_bytes_per_s" in self.gpu.figures:
            figure = self.gpu.figure("ssd_read_bytes_per_s")
            ssd, ssd_is = figure.value, figure.standing
        elif ssd is None:
            ssd, ssd_is = ssd_read_bytes_per_s(), "assumed"
        link *= self.tensor_parallel
        first = f"SSD to DRAM at {shown(ssd, 'rate')} first, {ssd_is}"
        return {"dram": (link, f"the link, {link_is}"), "ssd": (1 / (1 / link + 1 / ssd), first)}


def of_span(machine: Machine, span_tokens: int, objective: str = "latency", link_price: float | None = None) -> Answer:
    """Return the bandwidth above which loading the span is better, and whether the machine's own ways are.

    ``link_price`` (throughput; None: 1): what a second of the link is worth relative to a second of the GPU.
    Raises InputError for an objective or a dtype that isn't one, or a split that the heads don't allow.
    """
    _check(machine, objective, link_price)
    size, prefill_s = machine.span_bytes(span_tokens), machine.prefill_s(span_tokens)
    price = 1.0 if link_price is None else link_price
    needed = price * size / prefill_s
    eq2 = machine.eq2_bytes_per_s(span_tokens)
    of_peak = f"{100 * machine.efficiency:.3g} % of the peak"
    steps = [
        Line("span_bytes", size, "KV of the span", "size", f"{size / span_tokens:,.0f} B a token"),
        Line("flops_per_s", machine.flops_per_s, "achieved, linear layers", "flops", of_peak),
        Line("prefill_s", prefill_s, "time to prefill it", "time", _source(machine)),
        Line("prefill_tokens_per_s", span_tokens / prefill_s, "prefill tokens/s", "number"),
    ]
    ways, lines = _ways(machine, size, prefill_s, price)
    result = [
        Line("break_even_bytes_per_s", needed, "load wins above", "rate"),
        Line("eq2_bytes_per_s", eq2, "Mooncake FAST'25, Eq. 2", "rate", _eq2_note(eq2)),
        *lines,
    ]
    return Answer(
        _TITLES[objective], _FORMULAS[objective], _inputs(machine, span_tokens, objective, price), steps, result,
        {"objective": objective, "span_tokens": span_tokens, "ways": ways},
        warnings=[
            *too_long(machine.model, span_tokens),
            *unfit(machine.model, machine.gpu, machine.tensor_parallel, machine.weight_dtype),
        ],
    )  # fmt: skip


def _check(machine: Machine, objective: str, link_price: float | None) -> None:
    if objective not in _TITLES:
        raise InputError(
            Problem("no such objective", f"one of {', '.join(_TITLES)}", path="objective", value=objective)
        )
    if objective == "latency" and link_price is not None:
        mend = "write --objective throughput, or leave it out"
        raise InputError(Problem("does nothing with the objective latency", mend, path="link_price"))
    check_tensor_parallel(machine.model, machine.tensor_parallel)


def _inputs(machine: Machine, span_tokens: int, objective: str, link_price: float) -> list[Line]:
    inputs = [
        *machine_lines(machine.model, machine.gpu, machine.tensor_parallel, machine.weight_dtype),
        Line("span_tokens", span_tokens, "span", "tokens"),
        kv_dtype_line(machine.kv_dtype),
    ]
    if objective == "throughput":
        inputs.append(Line("link_price", link_price, "price of a link second", "number", "of a GPU second"))
    return inputs


def _ways(machine: Machine, size: int, prefill_s: float, price: float) -> tuple[list[dict[str, object]], list[Line]]:
    """Return what each way up gives, as rows and as lines."""
    rows: list[dict[str, object]] = []
    lines = []
    times = "" if price == 1 else f" x {price:g}"
    for name, (rate, how) in machine.ways().items():
        load_s = size / rate
        gain_s = throughput_gain_s(size, rate, prefill_s, price)
        better = "load" if gain_s > 0 else "recompute"
        rows.append({"from": name, "bytes_per_s": rate, "load_s": load_s, "gain_s": gain_s, "better": better})
        note = f"{better}: {shown(load_s, 'time')}{times} against {shown(prefill_s, 'time')} ({how})"
        lines.append(Line("", rate, f"from {name.upper()}", "rate", note))
    return rows, lines


def _source(machine: Machine) -> str:
    if machine.flops_efficiency is not None:
        return "FLOPs of linear layers and causal attention at that rate"
    return "the step model: overhead, linear layers, attention"


def _eq2_note(eq2: float | None) -> str:
    if eq2 is None:
        return "has no letters for this shape (MLA, windows or states)"
    return "counts every token against the whole span, and one shape of MLP"
