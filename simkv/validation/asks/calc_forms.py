"""What ``calc`` sections take, form by form, and how each is worked out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StrictBool, ValidationInfo, field_validator, model_validator

from simkv.calc.answer import Answer
from simkv.calc.average import Tier, of_blocks, t_avg, two_tiers
from simkv.calc.break_even import Machine, of_span
from simkv.calc.concurrency import concurrency, of_machine, of_pool
from simkv.calc.kv_size import kv_size
from simkv.calc.machine import load_gpu
from simkv.calc.speedup import moving, speedup
from simkv.calc.step import step
from simkv.catalog import load_model
from simkv.formulas.score import scores
from simkv.scenario.base import Discriminated, Section, fault, locate
from simkv.scenario.quantity import FractionAboveZero, Number, Quantity, Rate, Size, SmallCount, Time, TokensAboveZero

Text = Annotated[str, Field(min_length=1, max_length=1000)]
Fraction = Annotated[float, Quantity("fraction")]
Numbers = Annotated[list[Number], Field(min_length=1, max_length=1000)]
_RANKS = ("kv_dtype", "tensor_parallel")
_PAGED = (*_RANKS, "tokens", "max_num_batched_tokens")
_SEATS = ("utilization", "max_num_seqs", "weight_dtype")


def _written(name: str) -> str:
    """Return what a key is called in the file."""
    return name.rstrip("_")


class _Form(Section):
    """What all forms share: a value is given by one of some ways, and what the way doesn't look at is an error."""

    ways: ClassVar[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]
    """The keys that each way needs, and those that it also takes."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        names = [name for name in type(self).model_fields if name != "form" and getattr(self, name) is not None]
        needs, takes = max(self.ways, key=lambda way: sum(name in names for name in way[0]))
        for name in needs:
            if name not in names:
                ways = "; or ".join(", ".join(map(_written, way)) for way, _ in self.ways)
                raise fault("is missing", f"give {ways}", _written(name))
        for name in names:
            if name not in (*needs, *takes):
                raise fault(f"does nothing beside {', '.join(needs)}", "leave it out", name)
        return self

    def given(self, *names: str) -> dict[str, Any]:
        """Return those of its values that are there."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class _Modelled(_Form):
    """Mixin of what a model may have; its config.json is looked for from the case file's folder."""

    model: Text | None = None
    kv_dtype: Text | None = None
    tensor_parallel: SmallCount | None = None

    @field_validator("model")
    @classmethod
    def _from_the_folder(cls, name: str, info: ValidationInfo) -> str:
        folder = (info.context or {}).get("folder", "")
        return locate(name, folder).path if name.endswith(".json") else name


class KvSize(_Modelled):
    form: Literal["kv-size"]
    tokens: TokensAboveZero | None = None
    batch: SmallCount | None = None
    ways = ((("model", "tokens"), ("batch", *_RANKS)),)


class Concurrency(_Modelled):
    form: Literal["concurrency"]
    free: Size | None = None
    sequence: Annotated[float, Quantity("size", least=1)] | None = None
    available: Size | None = None
    hardware: Text | None = None
    residency: FractionAboveZero | None = None
    tokens: TokensAboveZero | None = None
    max_num_batched_tokens: TokensAboveZero | None = None
    utilization: FractionAboveZero | None = None
    max_num_seqs: SmallCount | None = None
    weight_dtype: Text | None = None
    ways = (
        (("free", "sequence"), ("residency",)),
        (("model", "available"), ("residency", *_PAGED)),
        (("model", "hardware"), ("residency", *_PAGED, *_SEATS)),
    )


class TierShare(Section):
    """A tier, the share of accesses that it serves, and what one takes."""

    name: Text
    share: Fraction
    time: Time


class TAvg(_Modelled):
    form: Literal["t-avg"]
    p_hit: Fraction | None = None
    t_vram: Time | None = None
    t_mem: Time | None = None
    tiers: Annotated[list[TierShare], Field(min_length=1, max_length=100)] | None = None
    hardware: Text | None = None
    block_tokens: SmallCount | None = None
    ways = (
        (("p_hit", "t_vram", "t_mem"), ()),
        (("tiers",), ()),
        (("p_hit", "model", "hardware"), ("block_tokens", *_RANKS)),
    )


class Speedup(_Form):
    form: Literal["speedup"]
    compute: Time | None = None
    transfer: Time | None = None
    bytes: Size | None = None
    bandwidth: Rate | None = None
    beta: Fraction | None = None
    layers: SmallCount | None = None
    ways = (
        (("compute", "transfer"), ("beta", "layers")),
        (("compute", "bytes", "bandwidth"), ("beta", "layers")),
    )


class StepTime(_Modelled):
    form: Literal["step"]
    hardware: Text | None = None
    batch: SmallCount | None = None
    context: Annotated[int, Quantity("tokens", most=1 << 24)] | None = None
    prefill: TokensAboveZero | None = None
    weight_dtype: Text | None = None
    eager: StrictBool | None = None
    ways = ((("model", "hardware", "batch", "context"), ("prefill", "weight_dtype", "eager", *_RANKS)),)


class BreakEven(_Modelled):
    form: Literal["break-even"]
    hardware: Text | None = None
    span: TokensAboveZero | None = None
    objective: Literal["latency", "throughput"] | None = None
    link_price: Number | None = None
    flops_efficiency: FractionAboveZero | None = None
    weight_dtype: Text | None = None
    link_bandwidth: Rate | None = None
    ssd_bandwidth: Rate | None = None
    ways = ((
        ("model", "hardware", "span"),
        ("objective", "link_price", "flops_efficiency", "weight_dtype", "link_bandwidth", "ssd_bandwidth", *_RANKS),
    ),)  # fmt: skip


class Score(_Form):
    form: Literal["score"]
    last_use: Numbers | None = None
    counts: Numbers | None = None
    lambda_: Fraction | None = Field(default=None, alias="lambda")
    ways = ((("last_use", "counts", "lambda_"), ()),)


Form = Annotated[KvSize | Concurrency | TAvg | Speedup | StepTime | BreakEven | Score, Discriminated("form")]


class Calc(Section):
    """The section by its name."""

    calc: Form


def worked(form: Any) -> Mapping[str, Any]:
    """Return the figures of a form as plain data in SI. Raises InputError for what makes no sense."""
    if isinstance(form, Score):
        return {"scores": scores(form.last_use or (), form.counts or (), form.lambda_ or 0.0)}
    answer: Answer = _ANSWERS[form.form](form)
    return answer.to_json()


def _kv_size(form: KvSize) -> Answer:
    return kv_size(_model(form), form.tokens or 0, **form.given("batch", *_RANKS))


def _concurrency(form: Concurrency) -> Answer:
    residency = form.residency or 1.0
    if form.free is not None and form.sequence is not None:
        return concurrency(form.free, form.sequence, residency)
    if form.available is not None:
        return of_pool(_model(form), form.available, residency=residency, **form.given(*_PAGED))
    return of_machine(_model(form), _gpu(form), residency=residency, **form.given(*_PAGED, *_SEATS))


def _t_avg(form: TAvg) -> Answer:
    if form.tiers is not None:
        return t_avg([Tier(tier.name, tier.share, tier.time) for tier in form.tiers])
    assert form.p_hit is not None
    if form.t_vram is not None and form.t_mem is not None:
        return two_tiers(form.p_hit, form.t_vram, form.t_mem)
    return of_blocks(_model(form), _gpu(form), form.p_hit, **form.given("block_tokens", *_RANKS))


def _speedup(form: Speedup) -> Answer:
    assert form.compute is not None
    if form.transfer is not None:
        return speedup(form.compute, form.transfer, form.beta, form.layers)
    assert form.bytes is not None and form.bandwidth is not None
    return speedup(form.compute, moving(form.bytes, form.bandwidth)[0], form.beta, form.layers)


def _step(form: StepTime) -> Answer:
    assert form.batch is not None and form.context is not None
    more = form.given("prefill", "weight_dtype", "eager", *_RANKS)
    return step(_model(form), _gpu(form), form.batch, form.context, **more)


def _break_even(form: BreakEven) -> Answer:
    assert form.span is not None
    rates: dict[str, Any] = {"link_bytes_per_s": form.link_bandwidth, "ssd_bytes_per_s": form.ssd_bandwidth}
    machine = Machine(_model(form), _gpu(form), **form.given("flops_efficiency", "weight_dtype", *_RANKS),
                      **rates)  # fmt: skip
    return of_span(machine, form.span, form.objective or "latency", form.link_price)


def _model(form: _Modelled) -> Any:
    return load_model(form.model or "")


def _gpu(form: Concurrency | TAvg | StepTime | BreakEven) -> Any:
    return load_gpu(form.hardware or "")


_ANSWERS: Mapping[str, Any] = {
    "kv-size": _kv_size,
    "concurrency": _concurrency,
    "t-avg": _t_avg,
    "speedup": _speedup,
    "step": _step,
    "break-even": _break_even,
}
