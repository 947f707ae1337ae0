"""A real decode with KV in several tiers: its outputs are those of resident KV, its hits those of the simulator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simkv.calibrate.backend import open_backend
from simkv.calibrate.copies import CopyEngine
from simkv.calibrate.model import Decoder
from simkv.calibrate.task import Bench
from simkv.calibrate.verify.compare import Ground, prepared, real_run, verify
from simkv.calibrate.verify.pool import ColdStore
from simkv.calibrate.verify.text import verification_text
from simkv.calibrate.verify.workload import (
    NO_PREFETCH,
    PREDICTED,
    PREFETCH,
    RESIDENT,
    RUNS,
    Workload,
    choose,
    predicted,
)
from simkv.catalog import load_model
from simkv.errors import InputError
from simkv.profile.load import read_profile, write_profile
from tests.profile_factory import make_compute, make_profile
from tests.torch_here import torch_or_skip

torch = torch_or_skip()
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 256,
    "max_position_embeddings": 2048, "tie_word_embeddings": True, "torch_dtype": "float32", "hidden_act": "silu",
}  # fmt: skip
SHAPE = {"layers": 3, "hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 16, "intermediate": 96, "vocab": 256}


class Place:
    """A folder with a small model and a profile of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "config.json"
        self.config.write_text(json.dumps(CONFIG))
        self.profile = folder / "profile.json"
        write_profile(make_profile(compute=make_compute(model=str(self.config), shape=SHAPE)), self.profile)
        backend = open_backend("cpu", threads=1)
        self.bench = Bench(backend, load_model(str(self.config), str(self.config)), True, folder, 1 << 30)
        self.model = Decoder(backend, self.bench.model)

    def workload(self, **changes: Any) -> Workload:
        """Return a small one: new blocks begin, are written down, evicted and read again."""
        block_tokens = 8
        start = Workload(
            model=str(self.config), dtype="fp32", batch=2, block_tokens=block_tokens,
            piece_bytes=self.model.piece_bytes(block_tokens), layers=3, prompt_tokens=160, steps=40, dram_units=1,
            residency=0.6, stickiness=0.0, skew=0.0,
        )  # fmt: skip
        return replace(start, **changes)

    def runs(self, workload: Workload) -> dict[str, Any]:
        """Return one real run of each kind."""
        with prepared(self.bench, self.model, workload, self.profile) as ground:
            return {run: real_run(ground, run) for run in RUNS}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("verify"))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dram_units": 20},
        {"dram_units": 1000},
        {"residency": 0.3},
        {"batch": 1, "prompt_tokens": 161},
        {"steps": 5},
    ],
    ids=["drive", "both", "memory", "no_room", "odd", "short"],
)
def test_real_run_attention_outputs_are_bit_identical_whatever_is_offloaded(
    place: Place, changes: dict[str, Any]
) -> None:
    workload = place.workload(**changes)
    seen = place.runs(workload)
    assert len({one.digest for one in seen.values()}) == 1
    assert all(len(one.steps_s) == workload.steps for one in seen.values())
    for run in (RESIDENT, NO_PREFETCH, PREDICTED):
        said = predicted(workload, run, place.profile)
        assert seen[run].reads == seen[RESIDENT].reads
        if run != PREDICTED:  # prefetches may be late on a busy machine
            assert seen[run].hits / seen[run].reads == pytest.approx(said["p_hit"], abs=1e-9)
    assert seen[NO_PREFETCH].hits <= seen[PREFETCH].hits <= seen[RESIDENT].hits == seen[RESIDENT].reads


def test_real_run_wrong_piece_changes_the_outputs(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: another block's pieces are loaded."""
    workload = place.workload()
    right = place.runs(workload)[NO_PREFETCH].digest
    at = ColdStore.place

    def wrong(self: ColdStore, tier: str, unit: int, layer: int) -> int:
        return at(self, tier, unit ^ 1 if tier == "ssd" else unit, layer)

    with prepared(place.bench, place.model, workload, place.profile) as ground:
        monkeypatch.setattr(ColdStore, "place", wrong)
        assert real_run(ground, NO_PREFETCH).digest != right


def test_real_run_lost_write_changes_the_outputs(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: what was computed isn't written down, and comes back as it was before."""
    workload = place.workload()
    right = place.runs(workload)[NO_PREFETCH].digest
    store, nobodys = CopyEngine.store, (workload.units - 1) * workload.layers

    def elsewhere(self: CopyEngine, tier: str, places: Any, *given: Any, **named: Any) -> Any:
        return store(self, tier, [nobodys] * len(places) if tier == "ssd" else places, *given, **named)

    with prepared(place.bench, place.model, workload, place.profile) as ground:
        monkeypatch.setattr(CopyEngine, "store", elsewhere)
        assert real_run(ground, NO_PREFETCH).digest != right


@pytest.fixture(scope="module")
def verification(place: Place) -> Iterator[Any]:
    seen: list[tuple[float, str]] = []
    yield verify(place.profile, place.bench, lambda share, doing: seen.append((share, doing))).verification
    assert [share for share, _ in seen] == sorted(share for share, _ in seen)


def test_verify_names_its_runs_and_keeps_what_it_saw(place: Place, verification: Any) -> None:
    runs = {one.name: one for one in verification.runs}
    assert {RESIDENT, NO_PREFETCH, PREFETCH} <= set(runs)
    assert verification.bit_identical
    assert runs[NO_PREFETCH].p_hit.measured == pytest.approx(runs[NO_PREFETCH].p_hit.predicted, abs=1e-9)
    assert runs[PREFETCH].speedup is not None and runs[NO_PREFETCH].speedup is None
    assert len(runs[PREFETCH].t_step_s.repeats) == 8
    step = runs[NO_PREFETCH].t_step_s
    assert min(step.repeats) * 0.5 < step.measured < max(step.repeats) * 1.5
    assert step.error == pytest.approx(step.predicted / step.measured - 1)
    profile = read_profile(place.profile)
    kept = place.folder / "kept.json"
    write_profile(profile.model_copy(update={"verification": verification}), kept)
    again = read_profile(kept).verification
    assert again is not None and [one.name for one in again.runs] == [one.name for one in verification.runs]


def test_verify_text_shows_errors_and_identity(verification: Any) -> None:
    text = verification_text(verification)
    assert "bit-identical" in text and "T_step" in text and "prefetch_heavy_hitters" in text
    assert "NOT" in verification_text(verification.model_copy(update={"bit_identical": False}))


def test_verify_on_a_cpu_without_a_drive_says_so(place: Place) -> None:
    with pytest.raises(InputError, match="--ssd-path"):
        verify(place.profile, replace(place.bench, ssd_path=None), lambda share, doing: None)


def test_choose_without_paged_times_says_so(place: Place) -> None:
    profile = make_profile(compute=make_compute(paged=None))
    with pytest.raises(InputError, match="block table"):
        choose(profile, place.profile, place.bench.model, place.model.piece_bytes, True, True)


def test_choose_takes_transfers_that_prefetch_can_hide(tmp_path: Path) -> None:
    path = tmp_path / "cpu.json"
    profile = make_profile()
    write_profile(profile, path)
    workload = choose(profile, path, load_model("smollm2-135m"), lambda tokens: 1536 * tokens, True, True)
    slow, fast = (predicted(workload, run, path) for run in (NO_PREFETCH, PREFETCH))
    assert 0.3 <= slow["t_transfer_s"] / slow["t_compute_s"] <= 1.5
    assert slow["t_step_s"] / fast["t_step_s"] > 1.1


def test_ground_is_gone_afterwards(place: Place) -> None:
    before = sorted(place.folder.iterdir())
    with prepared(place.bench, place.model, place.workload(), place.profile) as ground:
        assert isinstance(ground, Ground)
    assert sorted(place.folder.iterdir()) == before
