"""A loaded scenario with every value filled in, and where each came from."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from simkv import units
from simkv.errors import InfeasibleError, InputError, Problem
from simkv.formulas.memory import MemoryBudget, override_blocks
from simkv.formulas.pages import NULL_PAGES, PageLayout, check_caches
from simkv.formulas.weights import native_weight_dtype
from simkv.hardware import Gpu
from simkv.instances import Instance
from simkv.kvcache.eviction import DEFAULT_LAMBDA
from simkv.model import ModelShape
from simkv.profile.schema import Profile
from simkv.scenario import calibrated, paging, placing
from simkv.scenario import load as loading
from simkv.scenario.base import Section, plain
from simkv.scenario.batch_checks import idle_io_notes
from simkv.scenario.digests import client_digests, content_digest, digest
from simkv.scenario.leaves import written
from simkv.scenario.lower_checks import idle_ahead, idle_writing, is_moot
from simkv.scenario.machine import idle_gpus, limits
from simkv.scenario.offload_schema import ReplayAccess
from simkv.scenario.quantity import Quantity, quantity_of
from simkv.scenario.schema import InlineHardware, InlineModel, Scenario
from simkv.scenario.text import Path
from simkv.scenario.workload_schema import ClientsWorkload

S = TypeVar("S", bound=Section)

DEFAULT_WINDOW = 8
OF_BUDGET = "computed from the memory budget"
"""Where a number of KV blocks is from."""
LONGEST_ABSTRACT = 16 << 20
"""Tokens of the longest sequence on inline hardware under active offload."""
_SAID_OF_MODELS = ("name", "aliases", "source", "note")
"""What a model is called and where it is from: decides nothing."""


@dataclass(frozen=True)
class Resolved:
    """A scenario ready to run: ``scenario`` has a value for everything that matters."""

    scenario: Scenario
    layers: loading.Layers
    model: ModelShape | None
    """None: given inline (``scenario.model``)."""
    gpu: Gpu | None
    """None: given inline (``scenario.hardware``)."""
    budget: MemoryBudget | None
    """None on inline hardware, and where the estimate says no but the engine's own figure was given."""
    computed: Mapping[Path, str] = field(default_factory=dict)
    """What was filled in here, and from what."""
    notes: tuple[tuple[str, str], ...] = ()
    """``(code, sentence)`` to show with the answer."""
    instance: Instance | None = None
    """The whole machine, where the scenario names one."""
    profile: Profile | None = None
    """What was measured of it, where the scenario names a calibration profile."""

    def origin(self, path: Path) -> str:
        """Return where the value at ``path`` comes from: scenario, --set, preset, catalogue, default or computed."""
        return self.computed.get(path) or self.layers.origin(path)

    @cached_property
    def workload_hash(self) -> str | None:
        """SHA-256 of every value that decides which requests arrive but the seed, files by content.

        A log of what they read under active offload is such a file. None where the engine has a part in it
        (``run.warm_tiers``).
        """
        run, workload, access = self.scenario.run, self.scenario.workload, self.scenario.offload.access
        if run.warm_tiers:
            return None
        values = {"workload": plain(workload, content_digest), "duration": run.duration}
        if isinstance(workload, ClientsWorkload):
            values["workload"]["path"] = client_digests(workload.path)
        if isinstance(access, ReplayAccess):
            values["reads"] = content_digest(access.path)
        return digest(values)

    @cached_property
    def scenario_hash(self) -> str:
        """SHA-256 of every value that decides a run but its seed; files count by content, names not at all."""
        values = plain(self.scenario, content_digest)
        for key in ("name", "question", "sweep", "plan"):
            values.pop(key, None)
        for key in ("seed", "replications"):
            values["run"].pop(key)
        if isinstance(self.scenario.workload, ClientsWorkload):
            values["workload"]["path"] = client_digests(self.scenario.workload.path)
        if self.model is not None:
            values["model"] = {key: value for key, value in asdict(self.model).items() if key not in _SAID_OF_MODELS}
        if self.gpu is not None:
            figures = self.gpu.figures.items()
            values["hardware"] = {name: figure.value for name, figure in figures if not name.startswith("price_")}
        if self.profile is not None:
            values["calibration"] = calibrated.digest(self.profile)
        return digest(values)


def resolve(path: str, assignments: Sequence[str] = ()) -> Resolved:
    """Read, validate and fill in a scenario file.

    Raises InputError with everything that is wrong, InfeasibleError for a model that doesn't fit.
    """
    return fill_in(loading.load(path, assignments))


def resolve_text(content: str, file: str = "scenario.yaml", assignments: Sequence[str] = ()) -> Resolved:
    """As :func:`resolve`, from a text; ``file`` names it in errors, and its folder is where paths start."""
    return fill_in(loading.load_text(content, file, assignments))


def fill_in(loaded: loading.Loaded) -> Resolved:
    """Return the scenario with what model, hardware and policies leave open filled in."""
    filler = _Filler(loaded)
    filler.policies()
    filler.dram_of_gpus()
    filler.pool()
    filler.dram_of_pools()
    filler.calibration()
    notes = (
        *filler.notes, *not_realisable(filler.scenario, loaded.layers), *unreachable(filler.scenario),
        *not_slowed(filler.scenario),
        *idle_gpus(filler.scenario, loaded.machine.instance),
    )  # fmt: skip
    return Resolved(
        filler.scenario, loaded.layers, loaded.model, loaded.machine.gpu, filler.budget, filler.computed, notes,
        loaded.machine.instance, loaded.machine.profile,
    )  # fmt: skip


class _Filler:
    """Fills in one group of values after the other."""

    def __init__(self, loaded: loading.Loaded) -> None:
        self.scenario = loaded.scenario
        self.computed: dict[Path, str] = {}
        self.notes: list[tuple[str, str]] = []
        self.budget: MemoryBudget | None = None
        self._layers = loaded.layers
        self._model = loaded.model
        self._gpu = loaded.machine.gpu
        self._instance = loaded.machine.instance
        self._profile = loaded.machine.profile
        if loaded.machine.path:
            self.scenario = replaced(self.scenario, ["hardware"], loaded.machine.path)

    def policies(self) -> None:
        """Fill in the parameters of the policies that have one."""
        offload = self.scenario.offload
        if offload.eviction.policy == "score" and offload.eviction.lambda_ is None:
            self._fill("offload.eviction.lambda_", DEFAULT_LAMBDA, loading.DEFAULT)
        if offload.prefetch.policy == "queue" and offload.prefetch.window is None:
            self._fill("offload.prefetch.window", DEFAULT_WINDOW, loading.DEFAULT)
        self._idle_policies()
        if self.scenario.link.descriptors_per_block == "auto":
            # Connectors keep the layers of a block side by side, one piece; MLA kernels can't read
            # that, so there each layer is a piece of its own (vllm PRs 27743 and 37090).
            layers = self._model.layers if self._model is not None and self._model.mla else 1
            self._fill("link.descriptors_per_block", layers, "computed from the model's KV layout")

    def _idle_policies(self) -> None:
        """Take out what a preset says of policies that the scenario doesn't have."""
        offload = self.scenario.offload
        for key in idle_ahead(offload.prefetch):
            if getattr(offload.prefetch, key) is not None:
                self._fill(f"offload.prefetch.{key}", None, "")
        for key in idle_writing(self.scenario):
            self._fill(f"offload.{key}", type(offload).model_fields[key].default, loading.DEFAULT)
        ahead_is_idle = isinstance(self.scenario.hardware, InlineHardware) or self.scenario.active
        if ahead_is_idle and not self._layers.given(("engine", "async_scheduling")):
            self._fill("engine.async_scheduling", None, "")
        for key in self._idle_host_costs():
            if not self._layers.given(("engine", key)):
                self._fill(f"engine.{key}", None, "")
        if self.scenario.engine.store_outputs and not offload.write.startswith("write_through"):
            self._fill("engine.store_outputs", False, loading.DEFAULT)

    def _idle_host_costs(self) -> tuple[str, ...]:
        """Return what the host does not do: no lower tier is asked, steps alone take time, or nobody is held."""
        s = self.scenario
        if isinstance(s.hardware, InlineHardware) or not s.tiers.dram.exists or s.active:
            return "host_cost_per_block", "host_cost_per_load"
        return ("host_cost_per_load",) if s.engine.load != "hold" and s.engine.host_cost_per_load else ()

    def pool(self) -> None:
        """Fill in dtypes, the longest sequence and the number of KV blocks."""
        if self._model is not None:
            check_caches(self._model, self._layers.file)
        if self._gpu is None or self._model is None:
            self._abstract_pool()
            return
        if placing.in_batches(self.scenario):
            self._placed_pool(self._model, self._gpu)
            return
        self._measured_dtypes()
        engine = self.scenario.engine
        if engine.weight_dtype == "auto":
            self._fill("engine.weight_dtype", native_weight_dtype(self._model, "auto"), self._of_model())
        if engine.kv_dtype == "auto":
            self._fill("engine.kv_dtype", "bf16", "computed: 16-bit whatever the weights")
        if engine.kv_cache_tokens is not None:
            pages = paging.pages_of_log(self.scenario, self._layout(), engine.kv_cache_tokens, self._longest())
            self._fill("engine.num_gpu_blocks", pages, "computed from kv_cache_tokens")
            self._fill("engine.kv_cache_tokens", None, "")
        self.notes.extend(paging.paging_notes(self.scenario, self._model))
        if self.scenario.engine.num_gpu_blocks is not None:
            self._logged_pool(self.scenario.engine.num_gpu_blocks)
        else:
            self._estimated_pool()

    def _measured_dtypes(self) -> None:
        """Fill in the dtype in which the machine was measured with this model."""
        for path, value, origin in calibrated.dtypes(self._profile, self.scenario, self._model):
            self._fill(path, value, origin)

    def calibration(self) -> None:
        """Fill in what a calibration profile says of the scenario's sizes, and note what it doesn't."""
        if self._profile is not None:
            rows, notes = calibrated.filled(self._profile, self.scenario, self._model, self._layers.origin)
            for path, value, origin in rows:
                self._fill(path, value, origin)
            self.notes += [*calibrated.notes(self._profile, self.scenario, self._model, self._layers.given), *notes]

    def _placed_pool(self, model: ModelShape, gpu: Gpu) -> None:
        """Batch mode: fill in the rates that its constants stand for, dtypes, and what weights leave for KV."""
        for path, value, origin in placing.filled(self.scenario, self._layers.given, model, self._of_model()):
            self._fill(path, value, origin)
        self.notes.extend(placing.placing_notes(self.scenario))
        self.notes.extend(idle_io_notes(self.scenario, self._layers.given))
        blocks = placing.gpu_blocks(self.scenario, model, gpu)
        self._fill("engine.num_gpu_blocks", blocks, "computed from what weights leave")

    def _abstract_pool(self) -> None:
        if not isinstance(self.scenario.hardware, InlineHardware) or self.scenario.engine.max_model_len is not None:
            return
        if self.scenario.active:
            self._fill("engine.max_model_len", LONGEST_ABSTRACT, "computed: active offload goes beyond the pool")
        else:
            self._fill("engine.max_model_len", self.scenario.hardware.kv_tokens, "computed from hardware.kv_tokens")

    def _estimated_pool(self) -> None:
        longest = self._longest()
        self.budget = self._estimate(None if self.scenario.active else longest)
        self._fill("engine.num_gpu_blocks", self.budget.num_gpu_blocks, OF_BUDGET)
        if self.scenario.engine.max_model_len is None:
            self._fill("engine.max_model_len", longest, self._of_model())

    def _logged_pool(self, blocks: int) -> None:
        """Take the engine's own figure, and keep the estimate beside it where there is one."""
        try:
            self.budget = override_blocks(self._estimate(None), blocks, "as given")
        except InfeasibleError as error:
            self.notes.append(("budget_disagrees", f"the engine's KV pool is used, although by the estimate {error}"))
        if self.scenario.active:
            if self.scenario.engine.max_model_len is None:
                self._fill("engine.max_model_len", self._longest(), self._of_model())
            return
        layout, longest = self._layout(), self._longest()
        tokens = paging.longest_in(self.scenario, layout, blocks, longest)
        if self.scenario.engine.max_model_len is None:
            self._fill("engine.max_model_len", tokens, "computed from model and KV pool")
        elif longest > tokens:
            unit = f"blocks of {layout.block_tokens}" if len(layout.groups) == 1 else "pages"
            raise InfeasibleError(
                f"one sequence of engine.max_model_len {longest} tokens doesn't fit {blocks} {unit}: "
                f"{longest - tokens} tokens too many; it fits with max_model_len {tokens}"
            )

    def dram_of_gpus(self) -> None:
        """Fill in the capacity of DRAM where it is so much for each GPU."""
        each = self.scenario.tiers.dram.per_gpu
        if each is not None:
            gpus = self.scenario.replicas.of_fullest_host * self.scenario.replicas.tensor_parallel
            self._dram("per_gpu", each * gpus, f"{gpus} x {units.short(each, 'size')}")

    def dram_of_pools(self) -> None:
        """Fill in the capacity of DRAM where it is so many times the KV pools in VRAM."""
        ratio = self.scenario.tiers.dram.ratio
        if ratio is not None:
            here = self.scenario.replicas.of_fullest_host
            self._dram("ratio", int(ratio * self._pool_bytes() * here), f"{ratio:g} x the VRAM pool")

    def _dram(self, key: str, capacity_bytes: float, measure: str) -> None:
        origin = f"computed: {measure} ({self._layers.origin(('tiers', 'dram', key))})"
        self._fill("tiers.dram.capacity", capacity_bytes, origin)
        for fault in limits(self.scenario, self._instance):
            mend = f"{fault.mend}; give tiers.dram.capacity ({measure} is {units.short(capacity_bytes, 'size')})"
            raise InputError(Problem(fault.what, mend, self._layers.file, None, f"tiers.dram.{key}"))
        self._fill(f"tiers.dram.{key}", None, "")

    def _pool_bytes(self) -> int:
        """Return the size of one replica's KV pool in VRAM, all ranks."""
        scenario = self.scenario
        if isinstance(scenario.hardware, InlineHardware):
            if isinstance(scenario.model, InlineModel):
                return int(scenario.hardware.kv_tokens * scenario.model.kv_bytes_per_token)
            assert self._model is not None
            return scenario.hardware.kv_tokens * paging.growth_bytes_of_token(scenario, self._model)
        assert self._model is not None and scenario.engine.num_gpu_blocks is not None
        layout = self._layout()
        blocks = (scenario.engine.num_gpu_blocks - NULL_PAGES) // layout.pages_per_block
        return blocks * layout.block_tokens * paging.growth_bytes_of_token(scenario, self._model)

    def _layout(self) -> PageLayout:
        assert self._model is not None
        return paging.layout_of(self.scenario, self._model)

    def _of_model(self) -> str:
        """Return where the model's own figures are from."""
        return "model's config.json" if self._model and os.path.exists(self._model.source) else "catalogue"

    def _longest(self) -> int:
        assert self._model is not None
        return self.scenario.engine.max_model_len or self._model.max_position_embeddings

    def _estimate(self, longest: int | None) -> MemoryBudget:
        assert self._model is not None and self._gpu is not None
        return paging.budget(self.scenario, self._model, self._gpu, longest)

    def _fill(self, dotted: str, value: object, origin: str) -> None:
        names = dotted.split(".")
        self.scenario = replaced(self.scenario, names, value)
        self.computed[tuple(name.rstrip("_") for name in names)] = origin


def replaced(section: S, names: Sequence[str], value: object) -> S:
    """Return ``section`` with the field that ``names`` lead to changed."""
    first, *rest = names
    if rest:
        value = replaced(getattr(section, first), rest, value)
    return section.model_copy(update={first: value})


def not_realisable(scenario: Scenario, layers: loading.Layers) -> list[tuple[str, str]]:
    """Return a note for each value that the preset's engine can't be told."""
    if isinstance(scenario.hardware, InlineHardware):
        return []
    notes = []
    preset = layers.preset
    for dotted, allowed in preset.has.items():
        value, quantity = _at(scenario, dotted)
        if value not in allowed and not is_moot(scenario, dotted, allowed):
            choices = ", ".join(_shown(a, quantity) for a in allowed)
            given = f"{dotted} = {_shown(value, quantity)}"
            has = "it has no such tier" if list(map(repr, allowed)) == ["0"] else f"it can be {choices}"
            sentence = f"{given}: not realisable in {preset.name} {preset.version} ({has})"
            notes.append(("not_realisable", sentence))
    return notes


def unreachable(scenario: Scenario) -> list[tuple[str, str]]:
    """Return a note for an SSD that nothing can get to: everything passes through DRAM on its way there and back."""
    dram = scenario.tiers.dram
    if not scenario.tiers.ssd.capacity or (dram.capacity and dram.bandwidth):
        return []
    key = "bandwidth" if dram.capacity else "capacity"
    return [("unreachable", f"tiers.ssd does nothing: SSD is reached through DRAM, and tiers.dram.{key} is 0")]


def not_slowed(scenario: Scenario) -> list[tuple[str, str]]:
    """Return a note where the machine's contention means nothing: steps are told apart by layer in active offload."""
    if scenario.contention is None or scenario.active:
        return []
    sentence = "contention does nothing: copies and computation slow each other under active offload alone"
    return [("contention_idle", sentence)]


def _at(section: Any, dotted: str) -> tuple[Any, Quantity | None]:
    *outer, last = dotted.split(".")
    for name in outer:
        section = getattr(section, name)
    return getattr(section, last), quantity_of(type(section).model_fields[last])


def _shown(value: Any, quantity: Quantity | None) -> str:
    if value is None:
        return "absent"
    text = written(value, quantity)
    return str(text).lower() if isinstance(text, bool) else str(text)
