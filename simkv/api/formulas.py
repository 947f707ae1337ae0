"""Closed forms with figures put in: what ``simkv calc`` prints, as values.

Quantities are texts with a unit (``"20 GB"``, ``"32 GB/s"``, ``"10 ms"``) or numbers in SI; models and machines are
names of the catalogue, the path of a ``config.json``, of a calibration profile. All raise InputError for what makes no
sense, and InfeasibleError where not even one sequence fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from simkv.api.given import Quantity, arguments_named, si
from simkv.errors import InputError, Problem

if TYPE_CHECKING:
    from simkv.calc.answer import Answer


class Formula(Mapping[str, Any]):
    """A closed form worked out: a mapping of its figures in SI, whose text shows formula, inputs, steps and answer."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        told = answer.to_json()
        self._figures = {**told["inputs"], **{key: value for key, value in told.items() if key not in _TOLD}}

    @property
    def formula(self) -> str:
        """The equation."""
        return self._answer.formula

    @property
    def notes(self) -> list[str]:
        """What belongs to the answer, in sentences."""
        return list(self._answer.notes)

    @property
    def warnings(self) -> list[str]:
        """What is odd about the figures put in."""
        return list(self._answer.warnings)

    def __getitem__(self, key: str) -> Any:
        return self._figures[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)

    def __repr__(self) -> str:
        return "\n".join([self._answer.text(), *(f"warning: {text}" for text in self.warnings)])


_TOLD = ("formula", "inputs", "notes", "warnings")


def kv_size(
    model: str, tokens: Quantity, *, batch: int = 1, kv_dtype: str = "auto", tensor_parallel: int = 1
) -> Formula:
    """Return the bytes of the KV cache of ``batch`` sequences of ``tokens`` (``"128k"``): ``bytes_per_token bytes``."""
    from simkv.calc.kv_size import kv_size as of_model

    with arguments_named():
        return Formula(of_model(_model(model), _whole(tokens, "tokens"), batch, kv_dtype, tensor_parallel))


def concurrency(free: Quantity, sequence: Quantity, residency: float = 1.0) -> Formula:
    """Return how many sequences fit at once: ``c_max`` of ``free`` VRAM and sequences of so many bytes."""
    from simkv.calc.concurrency import concurrency as of_sizes

    with arguments_named():
        return Formula(of_sizes(si(free, "size", "free"), si(sequence, "size", "sequence"), residency))


def concurrency_of(
    model: str,
    hardware: str,
    tokens: Quantity | None = None,
    residency: float = 1.0,
    *,
    tensor_parallel: int = 1,
    utilization: float = 0.9,
    weight_dtype: str = "auto",
    kv_dtype: str = "auto",
) -> Formula:
    """Return ``c_max`` of sequences of ``tokens`` (None: the model's longest) of a model on a machine."""
    from simkv.calc.concurrency import of_machine

    length = None if tokens is None else _whole(tokens, "tokens")
    with arguments_named():
        return Formula(of_machine(_model(model), _gpu(hardware), length, residency, tensor_parallel, utilization,
                                  weight_dtype, kv_dtype))  # fmt: skip


def t_avg(p_hit: float, t_vram: Quantity, t_mem: Quantity) -> Formula:
    """Return the mean time of an access, ``t_avg_s``, of which a share ``p_hit`` is in VRAM."""
    from simkv.calc.average import two_tiers

    with arguments_named():
        return Formula(two_tiers(p_hit, si(t_vram, "time", "t_vram"), si(t_mem, "time", "t_mem")))


def t_avg_of(
    model: str, hardware: str, p_hit: float, *, block_tokens: int = 16, tensor_parallel: int = 1, kv_dtype: str = "auto"
) -> Formula:
    """Return ``t_avg_s`` of reading one block of a model's KV, from the card's memory or over its link."""
    from simkv.calc.average import of_blocks

    with arguments_named():
        return Formula(of_blocks(_model(model), _gpu(hardware), p_hit, block_tokens, tensor_parallel, kv_dtype))


def speedup(
    compute: Quantity,
    transfer: Quantity | None = None,
    *,
    size: Quantity | None = None,
    bandwidth: Quantity | None = None,
    beta: float | None = None,
    layers: int | None = None,
) -> Formula:
    """Return what hiding a share ``beta`` of the transfer gives (None: the largest that can be hidden): ``speedup``.

    What is moved is a time, ``transfer``, or a ``size`` over a ``bandwidth``.
    """
    from simkv.calc.speedup import moving
    from simkv.calc.speedup import speedup as of_times

    if (transfer is None) == (size is None or bandwidth is None):
        raise InputError(Problem("give either transfer, or size and bandwidth", "leave out the other", path="transfer"))
    with arguments_named():
        moved = ""
        if transfer is None:
            assert size is not None and bandwidth is not None
            transfer, moved = moving(si(size, "size", "size"), si(bandwidth, "rate", "bandwidth"))
        times = si(compute, "time", "compute"), si(transfer, "time", "transfer")
        return Formula(of_times(*times, beta, layers, moved))


def step_time(
    model: str,
    hardware: str,
    batch: int,
    context: Quantity,
    *,
    prefill: Quantity | None = None,
    tensor_parallel: int = 1,
    weight_dtype: str = "auto",
    kv_dtype: str = "auto",
    eager: bool = False,
) -> Formula:
    """Return the time of a decode step, term by term (``t_decode_s``), and of a ``prefill`` of so many tokens."""
    from simkv.calc.step import step

    prompt = None if prefill is None else _whole(prefill, "prefill")
    with arguments_named():
        return Formula(step(_model(model), _gpu(hardware), batch, _whole(context, "context"), prompt, tensor_parallel,
                            weight_dtype, kv_dtype, eager))  # fmt: skip


def break_even(
    model: str,
    hardware: str,
    span: Quantity,
    *,
    objective: Literal["latency", "throughput"] = "latency",
    tensor_parallel: int = 1,
    weight_dtype: str = "auto",
    kv_dtype: str = "auto",
) -> Formula:
    """Return the bandwidth above which loading a cached span beats computing it again."""
    from simkv.calc.break_even import Machine, of_span

    with arguments_named():
        machine = Machine(_model(model), _gpu(hardware), tensor_parallel, weight_dtype, kv_dtype)
        return Formula(of_span(machine, _whole(span, "span"), objective, None))


def scores(last_use: Sequence[float], counts: Sequence[float], lam: float) -> list[float]:
    """Return score = λ recency + (1 - λ) frequency of each block, both as ranks from 0 to 1; the lowest goes first."""
    from simkv.formulas.score import scores as of_ranks

    with arguments_named():
        return of_ranks(last_use, counts, lam)


def _whole(value: Quantity, name: str) -> int:
    """Return a number of tokens, at least one."""
    found = si(value, "tokens", name)
    if found < 1 or found != int(found):
        raise InputError(Problem("is no number of tokens", "give a whole number above 0", path=name, value=str(value)))
    return int(found)


def _model(name: str) -> Any:
    from simkv.catalog import load_model

    return load_model(name)


def _gpu(name: str) -> Any:
    from simkv.calc.machine import load_gpu

    return load_gpu(name)
