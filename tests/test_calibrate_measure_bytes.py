"""What moves bytes: links, device memory, host memory, drives. Tiny sizes: what is measured, not how fast it is."""

from __future__ import annotations

import dataclasses
import gc
import os
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.torch_here import torch_or_skip

torch = torch_or_skip()

from simkv.calibrate import backend as timing  # noqa: E402
from simkv.calibrate.drive import Drive  # noqa: E402
from simkv.calibrate.measure import dram, links, memory, ssd, topology  # noqa: E402
from simkv.calibrate.measure.places import Places  # noqa: E402
from simkv.calibrate.task import Bench, Task  # noqa: E402
from simkv.catalog import load_model  # noqa: E402
from simkv.errors import InputError  # noqa: E402
from simkv.profile.schema import Sample  # noqa: E402

MIB = 1 << 20
KEYS = {
    "h2d": {"bytes", "pieces", "memory"},
    "d2h": {"bytes", "pieces", "memory"},
    "duplex": {"bytes", "pieces", "memory"},
    "h2d_buffer": {"buffer_bytes", "bytes", "memory"},
    "d2h_buffer": {"buffer_bytes", "bytes", "memory"},
    "device_copy": {"bytes"},
    "device_read": {"bytes"},
    "launch": set(),
    "dram_copy": {"bytes", "threads", "from_node", "to_node"},
    "ssd_read": {"bytes", "pieces", "depth", "direct"},
    "ssd_write": {"bytes", "pieces", "depth", "direct"},
}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    """A CPU, an empty folder, two repeats, and pools of a few MiB."""
    monkeypatch.setattr(timing, "FEWEST", 2)
    monkeypatch.setattr(timing, "MOST", 2)
    for module in (links, memory, dram):
        monkeypatch.setattr(module, "beyond_caches_bytes", lambda: 4 * MIB)
    monkeypatch.setattr(links, "free_host_bytes", lambda: 64 * MIB)
    monkeypatch.setattr(dram, "_BYTES_PER_THREAD", MIB)
    monkeypatch.setattr(ssd, "_QUICK", dataclasses.replace(ssd._QUICK, file_bytes=8 * MIB, most_bytes=2 * MIB))
    return Bench(timing.open_backend("cpu", threads=1), model=load_model("smollm2-135m"), quick=True, ssd_path=tmp_path)


def taken(tasks: Iterable[Task]) -> list[Sample]:
    return [sample for task in tasks for sample in task.run()]


@pytest.mark.parametrize(
    ("module", "kinds"),
    [
        (links, {"h2d", "d2h", "duplex"}),
        (memory, {"device_copy", "device_read", "launch"}),
        (dram, {"dram_copy"}),
        (ssd, {"ssd_read", "ssd_write"}),
    ],
)
def test_tasks_quick_yield_documented_kinds_and_keys(bench: Bench, module: Any, kinds: set[str]) -> None:
    tasks = list(module.tasks(bench))
    samples = taken(tasks)
    assert {sample.kind for sample in samples} == kinds
    assert all(sample.at.keys() == KEYS[sample.kind] for sample in samples)
    assert all(len(sample.seconds) == 2 for sample in samples)
    assert len({(s.kind, tuple(s.at.items())) for s in samples}) == len(samples)
    assert [s.kind for s in samples] == [task.key.split("/")[0] for task in tasks]


@pytest.mark.parametrize("quick", [True, False])
def test_tasks_asked_twice_have_the_same_unique_keys(bench: Bench, quick: bool) -> None:
    bench = dataclasses.replace(bench, quick=quick)

    def keys() -> list[str]:
        return [task.key for module in (links, memory, dram, ssd) for task in module.tasks(bench)]

    first = keys()
    assert len(set(first)) == len(first)
    assert keys() == first


def test_tasks_of_a_real_machine_are_estimated_within_their_share_of_a_session(tmp_path: Path) -> None:
    backend = timing.open_backend("cpu", threads=1)
    for quick, most_s in ((True, 15.0), (False, 150.0)):
        bench = Bench(backend, model=load_model("smollm2-135m"), quick=quick)
        tasks = [task for module in (links, memory, dram) for task in module.tasks(bench)]
        extent = ssd._QUICK if quick else ssd._FULL
        points = [point for kind in ("ssd_read", "ssd_write") for point in ssd._points(kind, extent, 98304)]
        drive_s = sum(timing.repeats_take(point.once_s, bench.budget_s) for point in points)
        assert all(task.estimate_s > 0 for task in tasks)
        assert sum(task.estimate_s for task in tasks) + drive_s < most_s


def test_links_with_many_pieces_stay_within_the_most_bytes_of_one_transfer(bench: Bench) -> None:
    samples = taken(links.tasks(bench))
    moved = {(s.at["bytes"], s.at["pieces"]) for s in samples if s.kind == "h2d"}
    assert {(4096, 1), (4096, 4), (4096, 16), (4096, 64), (MIB, 1), (MIB, 4)} <= moved
    assert max(size * pieces for size, pieces in moved) <= 4 * MIB
    assert {s.at["memory"] for s in samples} == {"pageable"}


@pytest.mark.parametrize("kind", ["h2d", "d2h", "duplex"])
def test_link_transfer_moves_the_bytes_it_says(bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pools = links._Pools(bench.backend, MIB)
    pools.pageable.fill_(1)
    pools.hot.fill_(2)
    monkeypatch.setattr(timing, "WARM_UP", 0)
    links._transfer(bench, pools, links._Point(kind, "pageable", 64 << 10, 4))
    nbytes = 2 * 4 * (64 << 10)
    arrived = {"up": int((pools.hot == 1).sum()), "down": int((pools.pageable == 2).sum())}
    assert arrived["up"] == (nbytes if kind != "d2h" else 0)
    assert arrived["down"] == (nbytes if kind != "h2d" else 0)


def test_link_buffers_yield_both_directions_of_every_size_and_copy_all_bytes(bench: Bench) -> None:
    samples = list(links._buffers(bench, [8 * MIB, 16 * MIB], 8 * MIB))
    assert [(s.kind, s.at["buffer_bytes"]) for s in samples] == [
        (kind, size) for size in (8 * MIB, 16 * MIB) for kind in ("h2d_buffer", "d2h_buffer")
    ]
    assert all(s.at.keys() == KEYS[s.kind] and s.at["bytes"] == 8 * MIB for s in samples)
    host, device = (torch.full((4, 4 * MIB), fill, dtype=torch.uint8) for fill in (1, 2))
    links._spread("h2d_buffer", host, device[:2], Places(4, "places"))
    assert device.eq(1).all(dim=1).tolist() == [True, True, False, False]


def test_link_tasks_of_a_gpu_add_pinned_memory_and_large_buffers_that_fit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = dataclasses.replace(bench, backend=dataclasses.replace(bench.backend, kind="cuda"), quick=False)
    monkeypatch.setattr(links, "free_host_bytes", lambda: 40 << 30)
    monkeypatch.setattr(links, "free_device_bytes", lambda backend: 80 << 30)
    *transfers, buffers = links.tasks(gpu)
    assert {tuple(task.key.split("/")[:2]) for task in transfers} == {
        (kind, held) for kind in ("h2d", "d2h", "duplex") for held in ("pinned", "pageable")
    }
    assert buffers.key == "buffers/pinned"
    assert buffers.run.args[1] == [256 * MIB, 1 << 30, 4 << 30, 8 << 30]  # type: ignore[attr-defined]
    assert "buffers/pinned" not in [task.key for task in links.tasks(dataclasses.replace(gpu, quick=True))]


@given(slots=st.integers(1, 200), number=st.integers(1, 200))
def test_places_taken_are_different_and_come_back_late(slots: int, number: int) -> None:
    number = min(number, slots)
    places = Places(slots, "any")
    rounds = [places.take(number) for _ in range(slots // number)]
    seen = [place for one in rounds for place in one]
    assert len(set(seen)) == len(seen) == slots // number * number
    assert set(seen) <= set(range(slots))
    assert places.take(number) == rounds[0]


def test_dram_threads_stay_on_the_node_they_copy_to(bench: Bench) -> None:
    node, cpus = next(iter(topology.numa_nodes().items()))
    before = os.sched_getaffinity(0)
    with dram._pinned_threads(2, node) as pool:
        assert pool.submit(os.sched_getaffinity, 0).result() == cpus
    assert os.sched_getaffinity(0) == before


def test_dram_tasks_over_two_nodes_copy_from_the_far_one_by_as_many_threads(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dram, "numa_nodes", lambda: {0: frozenset(range(6)), 1: frozenset(range(6, 12))})
    full = [task.key for task in dram.tasks(dataclasses.replace(bench, quick=False))]
    assert full == [f"dram_copy/0to0/{n}" for n in (1, 2, 4, 6)] + ["dram_copy/1to0/6"]
    assert [task.key for task in dram.tasks(bench)] == [full[0], full[3], full[4]]


def test_numa_nodes_without_cpus_of_this_process_are_left_out(tmp_path: Path) -> None:
    mine = sorted(topology.allowed_cpus())
    for node, cpus in ((0, "9998-9999"), (3, ""), (10, ",".join(map(str, mine))), (2, str(mine[0]))):
        (tmp_path / f"node/node{node}").mkdir(parents=True)
        (tmp_path / f"node/node{node}/cpulist").write_text(cpus + "\n")
    assert list(topology.numa_nodes(tmp_path).items()) == [(2, {mine[0]}), (10, set(mine))]
    assert topology.numa_nodes(tmp_path / "none") == {0: set(mine)}


@pytest.mark.parametrize(("size", "pool"), [("32768K", 128 * MIB), ("105M", 420 * MIB), ("1K", 64 * MIB)])
def test_pool_beyond_caches_is_four_times_the_largest_cache(tmp_path: Path, size: str, pool: int) -> None:
    for index, text in enumerate(("32K", size)):
        (tmp_path / f"cpu/cpu0/cache/index{index}").mkdir(parents=True)
        (tmp_path / f"cpu/cpu0/cache/index{index}/size").write_text(text + "\n")
    assert topology.beyond_caches_bytes(tmp_path) == pool


def test_free_memory_in_a_container_is_what_its_limit_leaves(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:  4096 kB\nMemAvailable:   2048 kB\n")
    assert topology.free_host_bytes(tmp_path, tmp_path / "none") == 2 * MIB
    (tmp_path / "memory.max").write_text("3145728\n")
    (tmp_path / "memory.current").write_text("2097152\n")
    assert topology.free_host_bytes(tmp_path, tmp_path) == MIB
    (tmp_path / "memory.max").write_text("max\n")
    assert topology.free_host_bytes(tmp_path, tmp_path) == 2 * MIB


def test_sizes_where_memory_is_tight_still_fit_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_device_bytes", lambda backend: 20 * MIB)
    assert [s.at["bytes"] for s in taken(memory.tasks(bench)) if s.kind != "launch"] == [2 * MIB, 2 * MIB]
    monkeypatch.setattr(links, "free_host_bytes", lambda: 16 * MIB)
    assert links._Pools(bench.backend, 64 * MIB).nbytes == 2 * MIB


def test_ssd_without_a_folder_has_no_tasks(bench: Bench) -> None:
    assert list(ssd.tasks(dataclasses.replace(bench, ssd_path=None))) == []


def test_ssd_reads_all_come_before_writes_and_depth_one_has_many_pieces(bench: Bench) -> None:
    samples = taken(ssd.tasks(bench))
    kinds = [sample.kind for sample in samples]
    assert kinds == sorted(kinds)
    for kind in ("ssd_read", "ssd_write"):
        small = [s.at for s in samples if s.kind == kind and s.at["bytes"] == 16 << 10]
        assert [at["pieces"] for at in small if at["depth"] == 1] == [1, 4, 16, 64]
        assert {at["depth"] for at in small} == {1, 4, 16}
    assert all(s.at["bytes"] * s.at["pieces"] <= 2 * MIB for s in samples)  # type: ignore[operator]


def test_ssd_file_has_no_name_and_goes_with_the_tasks(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Drive] = []

    def open_drive(folder: Path, nbytes: int, **options: Any) -> Drive:
        made.append(Drive(folder, nbytes, **options))
        return made[-1]

    monkeypatch.setattr(ssd, "Drive", open_drive)
    tasks = list(ssd.tasks(bench))
    for task in tasks[:2]:
        list(task.run())
        assert bench.ssd_path is not None
        assert list(bench.ssd_path.iterdir()) == []
    assert [drive.nbytes for drive in made] == [4096, 8 * MIB]
    assert made[1]._fd >= 0
    del tasks, task
    gc.collect()
    assert made[1]._fd == -1


def test_ssd_interrupted_leaves_no_file_and_no_thread_behind(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    def interrupted(self: Drive, buffer: memoryview, offset: int) -> None:
        raise KeyboardInterrupt

    *_, deep = (task for task in ssd.tasks(bench) if task.key.startswith("ssd_read"))
    (single,) = (task for task in ssd.tasks(bench) if task.key == "ssd_read/16384x4/1")
    monkeypatch.setattr(Drive, "read", interrupted)
    for task in (single, deep):
        with pytest.raises(KeyboardInterrupt):
            list(task.run())
    assert bench.ssd_path is not None
    assert list(bench.ssd_path.iterdir()) == []
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("simkv")] == []


def test_ssd_without_direct_access_says_so_in_every_sample(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "O_DIRECT", 0)
    samples = taken(task for task in ssd.tasks(bench) if "/16384x4/" in task.key)
    assert [sample.at["direct"] for sample in samples] == [False, False]


def test_ssd_requests_reach_the_places_they_are_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int, int]] = []
    monkeypatch.setattr(timing, "WARM_UP", 0)
    for name in ("read", "write"):
        real = getattr(Drive, name)

        def spied(self: Drive, buffer: memoryview, offset: int, name: str = name, real: Any = real) -> None:
            asked.append((name, len(buffer), offset))
            real(self, buffer, offset)

        monkeypatch.setattr(Drive, name, spied)
    by_key = {task.key: task for task in ssd.tasks(bench)}
    list(by_key["ssd_read/65536x1/1"].run())
    for key, name in (
        ("ssd_read/65536x16/1", "read"),
        ("ssd_read/65536x16/4", "read"),
        ("ssd_write/65536x16/4", "write"),
    ):
        asked.clear()
        list(by_key[key].run())
        assert {one[:2] for one in asked} == {(name, 65536)}
        offsets = [offset for _, _, offset in asked]
        assert len(offsets) == len(set(offsets)) == 2 * 16
        assert all(offset % 65536 == 0 and offset + 65536 <= 8 * MIB for offset in offsets)


@pytest.mark.parametrize(
    ("place", "what"), [("gone", "no folder is there"), ("file", "not a folder"), ("locked", "can't be written")]
)
def test_ssd_folder_that_cannot_be_used_is_an_input_error(
    bench: Bench, tmp_path: Path, place: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "locked").mkdir()
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked" and real(path, mode))
    with pytest.raises(InputError, match=what) as caught:
        list(ssd.tasks(dataclasses.replace(bench, ssd_path=tmp_path / place)))
    (problem,) = caught.value.problems
    assert problem.path == "--ssd-path"
    assert problem.value == str(tmp_path / place)


def test_ssd_folder_too_full_names_what_is_free_and_what_must_be(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssd.shutil, "disk_usage", lambda folder: SimpleNamespace(free=79 * MIB))
    with pytest.raises(InputError, match="79 MiB are free, and 80 MiB must be"):
        list(ssd.tasks(bench))
    monkeypatch.setattr(ssd.shutil, "disk_usage", lambda folder: SimpleNamespace(free=85 * MIB))
    (first, *_) = ssd.tasks(bench)
    assert first.run.args[1].nbytes == 8 * MIB  # type: ignore[attr-defined]
