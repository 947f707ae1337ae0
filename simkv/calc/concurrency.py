"""C_max: how many sequences fit at once (formulas/concurrency, formulas/memory)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from simkv.calc.answer import Answer, Line, shown
from simkv.calc.machine import kv_dtype_line, machine_lines, too_long
from simkv.errors import InfeasibleError
from simkv.formulas.concurrency import max_concurrency
from simkv.formulas.memory import MemoryBudget, kv_budget
from simkv.formulas.pages import NULL_PAGES, PageLayout, page_layout, printed_tokens, state_pages
from simkv.hardware import Gpu
from simkv.model import ModelShape

FORMULA = "C_max = floor((M_VRAM - M_model) / (p S_seq))"
_STATE_PAGES = state_pages(prefix_caching=True)


def concurrency(free_bytes: float, sequence_bytes: float, residency: float = 1.0) -> Answer:
    """Return C_max of plain figures. Raises InputError for a residency outside (0, 1] or a sequence of nothing."""
    inputs = [
        Line("free_bytes", free_bytes, "free VRAM, M_VRAM - M_model", "size"),
        Line("sequence_bytes", sequence_bytes, "KV of a sequence, S_seq", "size"),
    ]
    return _answer(inputs, [], free_bytes, sequence_bytes, residency)


def of_machine(
    model: ModelShape,
    gpu: Gpu,
    tokens: int | None = None,
    residency: float = 1.0,
    tensor_parallel: int = 1,
    utilization: float = 0.9,
    weight_dtype: str = "auto",
    kv_dtype: str = "auto",
    block_tokens: int = 16,
    max_num_seqs: int = 256,
    max_num_batched_tokens: int = 8192,
) -> Answer:
    """Return C_max of sequences of ``tokens`` (None: the model's longest) in what the memory budget leaves for KV.

    Raises InfeasibleError where not even one fits, with what would make it, InputError for a split or a share that
    makes no sense.
    """
    length = tokens or model.max_position_embeddings
    budget = kv_budget(
        model, gpu, tensor_parallel, utilization, weight_dtype, kv_dtype, block_tokens, max_num_seqs,
        max_num_batched_tokens, max_model_len=ceil(residency * length),
    )  # fmt: skip
    inputs = [
        *machine_lines(model, gpu, tensor_parallel, weight_dtype),
        *_asked(tokens, length, kv_dtype),
    ]
    pool = _Pool(budget.layout, budget.num_gpu_blocks, budget.block_bytes, length, max_num_batched_tokens)
    answer = _answer(inputs, [*_budget_lines(budget), *pool.lines()], pool.free_bytes, pool.sequence_bytes, residency)
    table = [{"line": name, "bytes": size, "note": why} for name, size, why in budget.lines]
    most = int(answer.result[0].value or 0)
    return replace(
        answer, more={"budget": table}, notes=_seats(most, max_num_seqs), warnings=too_long(model, length)
    )  # fmt: skip


def of_pool(
    model: ModelShape,
    available_bytes: float,
    tokens: int | None = None,
    residency: float = 1.0,
    tensor_parallel: int = 1,
    kv_dtype: str = "auto",
    block_tokens: int = 16,
    max_num_batched_tokens: int = 8192,
) -> Answer:
    """Return C_max in ``available_bytes`` of each GPU: what an engine logs as available for its KV cache.

    Raises InfeasibleError for a pool without a usable page, InputError for a split that the heads don't allow.
    """
    layout = page_layout(model, kv_dtype, tensor_parallel, block_tokens)
    length = tokens or model.max_position_embeddings
    pages = layout.pages(int(available_bytes))
    if pages <= NULL_PAGES:
        page, room = shown(float(layout.page_bytes), "size"), shown(float(available_bytes), "size")
        raise InfeasibleError(f"{room} a GPU leave no usable page of {model.name}'s KV: one takes {page}")
    inputs = [
        Line("model", model.name, "model", "text"),
        Line("available_bytes", float(available_bytes), "available for KV, a GPU", "size"),
        Line("tensor_parallel", tensor_parallel, "ranks", "count"),
        *_asked(tokens, length, kv_dtype),
    ]
    pool = _Pool(layout, pages, layout.page_bytes * tensor_parallel, length, max_num_batched_tokens)
    answer = _answer(inputs, pool.lines(), pool.free_bytes, pool.sequence_bytes, residency)
    return replace(answer, warnings=too_long(model, length))


@dataclass(frozen=True, slots=True)
class _Pool:
    """A pool cut into pages, and a sequence of ``length`` tokens in it."""

    layout: PageLayout
    pages: int
    page_bytes: int
    """All ranks."""
    length: int
    batched_tokens: int

    @property
    def held_pages(self) -> int:
        return self.layout.held_pages(self.length, 1, _STATE_PAGES)

    @property
    def sequence_bytes(self) -> int:
        return self.held_pages * self.page_bytes

    @property
    def free_bytes(self) -> int:
        return (self.pages - NULL_PAGES) * self.page_bytes

    @property
    def uniform(self) -> bool:
        return len(self.layout.groups) == 1 and self.layout.groups[0].kind == "full"

    def lines(self) -> list[Line]:
        less, held = "less the block the engine keeps to itself", self._held()
        return [
            Line("num_gpu_blocks", self.pages, "blocks of the pool", "count", "as the engine counts"),
            *self._logged(),
            Line("free_bytes", self.free_bytes, "usable pool, all ranks", "size", less),
            Line("sequence_bytes", self.sequence_bytes, "KV of a sequence, S_seq", "size", held),
        ]

    def _logged(self) -> list[Line]:
        """What the engine prints as "GPU KV cache size"."""
        if self.uniform:
            tokens = self.pages * self.layout.block_tokens
            return [Line("kv_cache_tokens", tokens, "GPU KV cache size", "tokens", "as vLLM logs it")]
        arguments = self.layout, self.pages, self.length, self.batched_tokens, _STATE_PAGES
        now, before = printed_tokens(*arguments), printed_tokens(*arguments, "groups")
        return [
            Line("kv_cache_tokens", now, "GPU KV cache size", "tokens", "as vLLM logs it from 0.21 on, for this T"),
            Line("kv_cache_tokens_before_0_21", before, "the same, before", "tokens", "pages dealt to all groups"),
        ]

    def _held(self) -> str:
        if self.uniform:
            return f"{self.held_pages:,} blocks of {self.layout.block_tokens} tokens"
        return f"{self.held_pages:,} pages of {self.page_bytes:,} B, those of windows and states included"


def _asked(tokens: int | None, length: int, kv_dtype: str) -> list[Line]:
    return [
        Line("tokens", length, "tokens of a sequence, T", "tokens", "" if tokens else "the model's longest"),
        kv_dtype_line(kv_dtype),
    ]


def _answer(
    inputs: list[Line],
    steps: list[Line],
    free_bytes: float,
    sequence_bytes: float,
    residency: float,
) -> Answer:
    most = max_concurrency(free_bytes, sequence_bytes, residency)
    inputs.append(Line("residency", residency, "resident share, p", "fraction"))
    steps.append(Line("resident_bytes", residency * sequence_bytes, "resident of a sequence, p S_seq", "size"))
    result = [Line("c_max", most, "C_max", "count", "sequences at once")]
    if residency < 1:
        whole = max_concurrency(free_bytes, sequence_bytes)
        result.append(Line("c_max_resident", whole, "with all KV resident", "count", "p = 1"))
    return Answer("C_max: sequences that fit at once", FORMULA, inputs, steps, result)


def _budget_lines(budget: MemoryBudget) -> list[Line]:
    return [Line("", float(size), name.replace("_", " "), "size", why) for name, size, why in budget.lines]


def _seats(most: int, max_num_seqs: int) -> list[str]:
    if most <= max_num_seqs:
        return []
    return [f"An engine with max_num_seqs {max_num_seqs} runs {max_num_seqs} of them at once."]
