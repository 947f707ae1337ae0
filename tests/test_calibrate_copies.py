"""The drive and the lanes that move pieces: what arrives is what was sent, and the most urgent goes first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.calibrate.backend import Backend, open_backend
from simkv.calibrate.copies import CopyEngine
from simkv.calibrate.drive import ALIGNMENT, Drive, aligned, padded
from simkv.errors import InputError
from simkv.sim.fabric import DEMAND, NEXT_STEP
from tests.torch_here import torch_or_skip

torch = torch_or_skip()
PIECE, SLOTS, PLACES = 6000, 12, 40


@pytest.fixture(scope="module")
def backend() -> Backend:
    return open_backend("cpu")


class Rig:
    """A small engine with all tiers, and what each place holds."""

    def __init__(self, backend: Backend, drive: Any) -> None:
        self.hot = backend.device_memory(SLOTS * PIECE).view(SLOTS, PIECE)
        self.dram = backend.host_memory(PLACES * PIECE, False).view(PLACES, PIECE)
        self.drive = drive
        self.copies = CopyEngine(backend, self.hot, self.dram, drive, PIECE)


@pytest.fixture
def rig(backend: Backend, tmp_path: Path) -> Iterator[Rig]:
    with Drive(tmp_path, PLACES * padded(PIECE)) as drive:
        made = Rig(backend, drive)
        yield made
        made.copies.close()


class SlowDrive:
    """Takes 10 ms a read and notes the order."""

    def __init__(self) -> None:
        self.reads: list[int] = []

    def read(self, buffer: memoryview, offset: int) -> None:
        sleep(0.01)
        self.reads.append(offset // padded(PIECE))


# ---- the drive


@pytest.mark.parametrize("direct", [True, False])
def test_drive_what_was_written_is_read(backend: Backend, tmp_path: Path, direct: bool) -> None:
    memory, view = aligned(backend, 3 * ALIGNMENT)
    memory.copy_(torch.arange(len(memory)) % 251)
    other, into = aligned(backend, 3 * ALIGNMENT)
    with Drive(tmp_path, 8 * ALIGNMENT, direct) as drive:
        assert drive.direct == (not drive.why_not)
        drive.write(view, 2 * ALIGNMENT)
        drive.read(into, 2 * ALIGNMENT)
    assert torch.equal(memory, other)


def test_drive_open_leaves_no_name_behind(tmp_path: Path) -> None:
    with Drive(tmp_path, ALIGNMENT):
        assert list(tmp_path.iterdir()) == []


def test_drive_past_its_end_is_an_error(backend: Backend, tmp_path: Path) -> None:
    _, view = aligned(backend, ALIGNMENT)
    with Drive(tmp_path, ALIGNMENT) as drive, pytest.raises(OSError, match="ends at"):
        drive.read(view, ALIGNMENT)


@pytest.mark.parametrize(("name", "what"), [("absent", "no folder"), ("file", "not a folder")])
def test_drive_no_folder_says_so(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=f"--ssd-path.*{name}.*{what}"):
        Drive(tmp_path / name, ALIGNMENT)


def test_drive_without_room_says_how_much(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="MiB are free"):
        Drive(tmp_path, 1 << 60)


# ---- the lanes


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_copies_any_round_trip_keeps_every_byte(backend: Backend, tmp_path_factory: Any, data: st.DataObject) -> None:
    """Pieces go up from one tier, down to the other, up again elsewhere; drive and memory hold what they should."""
    number = data.draw(st.integers(1, SLOTS // 2))
    places = data.draw(st.lists(st.integers(0, PLACES - 1), min_size=number, max_size=number, unique=True))
    slots = data.draw(st.permutations(range(SLOTS)))
    seed = data.draw(st.integers(0, 1000))
    with Drive(tmp_path_factory.mktemp("drive"), PLACES * padded(PIECE), fill=False) as drive:
        rig = Rig(backend, drive)
        try:
            rig.dram.random_(0, 256, generator=torch.Generator().manual_seed(seed))
            first, second = slots[:number], slots[number : 2 * number]
            rig.copies.load("dram", places, first).wait()
            rig.copies.store("ssd", places, first).wait()
            rig.copies.load("ssd", places, second).wait()
            assert torch.equal(rig.hot[second], rig.dram[places])
            rig.dram.zero_()
            rig.copies.store("dram", places, second).wait()
            assert torch.equal(rig.hot[first], rig.dram[places])
        finally:
            rig.copies.close()


def test_copies_demand_overtakes_between_two_pieces(backend: Backend) -> None:
    drive = SlowDrive()
    rig = Rig(backend, drive)
    ahead = rig.copies.load("ssd", range(6), range(6), NEXT_STEP)
    sleep(0.025)
    needed = rig.copies.load("ssd", [30], [10], DEMAND)
    needed.wait()
    assert not ahead.is_through
    ahead.wait()
    rig.copies.close()
    assert sorted(drive.reads) == [0, 1, 2, 3, 4, 5, 30]
    assert 0 < drive.reads.index(30) < 6
    assert [place for place in drive.reads if place != 30] == [0, 1, 2, 3, 4, 5]


def test_copies_urged_goes_before_others(backend: Backend) -> None:
    drive = SlowDrive()
    rig = Rig(backend, drive)
    tickets = [rig.copies.load("ssd", [place], [place], NEXT_STEP) for place in range(5)]
    rig.copies.urge(tickets[4])
    tickets[4].wait()
    assert drive.reads.index(4) <= 1
    for ticket in tickets:
        ticket.wait()
    rig.copies.close()


def test_copies_demand_overtakes_after_another_was_urged(backend: Backend) -> None:
    drive = SlowDrive()
    rig = Rig(backend, drive)
    ahead = rig.copies.load("ssd", range(6), range(6), NEXT_STEP)
    other = rig.copies.load("dram", [0], [11])
    sleep(0.025)
    rig.copies.urge(other)
    rig.copies.load("ssd", [30], [10], DEMAND).wait()
    ahead.wait()
    rig.copies.close()
    assert 0 < drive.reads.index(30) < 6


def test_copies_calls_are_made_by_poll_on_its_thread(rig: Rig) -> None:
    calls: list[tuple[int, int]] = []
    for number in range(3):
        done = lambda n=number: calls.append((n, threading.get_ident()))  # noqa: E731
        rig.copies.load("dram", [number], [number], done=done).wait()
    assert calls == []
    rig.copies.poll()
    assert calls == [(number, threading.get_ident()) for number in range(3)]


def test_copies_fetch_leaves_the_pool_alone(rig: Rig) -> None:
    before = rig.hot.clone()
    ticket = rig.copies.fetch([3, 1, 2])
    ticket.wait()
    assert ticket.busy_s > 0.0
    assert torch.equal(rig.hot, before)


def test_copies_failed_drive_is_told_to_who_waits(backend: Backend) -> None:
    class Broken:
        def read(self, buffer: memoryview, offset: int) -> None:
            raise OSError("unplugged")

    rig = Rig(backend, Broken())
    with pytest.raises(OSError, match="unplugged"):
        rig.copies.load("ssd", [0], [0]).wait()
    rig.copies.close()


def test_copies_failed_reads_give_their_host_memory_back(backend: Backend) -> None:
    class BrokenOnce(SlowDrive):
        def read(self, buffer: memoryview, offset: int) -> None:
            super().read(buffer, offset)
            if len(self.reads) == 1:
                raise OSError("unplugged")

    rig = Rig(backend, BrokenOnce())
    with pytest.raises(OSError, match="unplugged"):
        rig.copies.load("ssd", range(SLOTS), range(SLOTS)).wait()
    again = threading.Thread(target=lambda: rig.copies.load("ssd", range(SLOTS), range(SLOTS)).wait(), daemon=True)
    again.start()
    again.join(10.0)
    assert not again.is_alive()
    rig.copies.close()


def test_copies_closed_end_their_threads(backend: Backend) -> None:
    before = threading.active_count()
    rig = Rig(backend, SlowDrive())
    assert threading.active_count() == before + 4
    rig.copies.close()
    assert threading.active_count() == before
