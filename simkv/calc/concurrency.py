"""C_max: how many sequences fit at once (formulas/concurrency, formulas/memory)."""

from __future__ import annotations

from math import ceil

from simkv.calc.answer import Answer, Line
from simkv.calc.machine import too_long
from simkv.formulas.concurrency import max_concurrency
from simkv.formulas.kv_size import kv_dtype_or_default
from simkv.formulas.memory import NULL_BLOCKS, MemoryBudget, kv_budget
from simkv.formulas.pages import state_pages
from simkv.formulas.weights import native_weight_dtype
from simkv.hardware import Gpu
from simkv.model import ModelShape

FORMULA = "C_max = floor((M_VRAM - M_model) / (p S_seq))"


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
    pages = budget.layout.held_pages(length, 1, state_pages(prefix_caching=True))
    sequence_bytes = pages * budget.block_bytes
    free_bytes = (budget.num_gpu_blocks - NULL_BLOCKS) * budget.block_bytes
    inputs = [
        Line("model", model.name, "model", "text", f"{native_weight_dtype(model, weight_dtype)} weights"),
        Line("hardware", gpu.name, "hardware", "text", f"{tensor_parallel} GPU{'s' * (tensor_parallel > 1)}"),
        Line("tokens", length, "tokens of a sequence, T", "tokens", "" if tokens else "the model's longest"),
        Line("kv_dtype", kv_dtype_or_default(kv_dtype), "KV dtype", "text"),
    ]
    steps = [
        *_budget_lines(budget),
        Line("free_bytes", free_bytes, "usable pool, all ranks", "size", "less the block the engine keeps to itself"),
        Line("sequence_bytes", sequence_bytes, "KV of a sequence, S_seq", "size", _paged(budget, pages)),
    ]
    answer = _answer(inputs, steps, free_bytes, sequence_bytes, residency)
    table = [{"line": name, "bytes": size, "note": why} for name, size, why in budget.lines]
    most = int(answer.result[0].value or 0)
    return Answer(
        answer.title, FORMULA, answer.inputs, answer.steps, answer.result, {"budget": table},
        _seats(most, max_num_seqs), too_long(model, length),
    )  # fmt: skip


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


def _paged(budget: MemoryBudget, pages: int) -> str:
    groups = budget.layout.groups
    if len(groups) == 1 and groups[0].kind == "full":
        return f"{pages:,} blocks of {budget.layout.block_tokens} tokens"
    return f"{pages:,} pages of {budget.block_bytes:,} B, those of windows and states included"


def _seats(most: int, max_num_seqs: int) -> list[str]:
    if most <= max_num_seqs:
        return []
    return [f"An engine with max_num_seqs {max_num_seqs} runs {max_num_seqs} of them at once."]
