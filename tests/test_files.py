"""Files and folders written whole or not at all: full disks, killed writers, Ctrl-C, two at once, odd places."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from simkv import files
from simkv.errors import InputError
from simkv.files import alone_in, new_file, reason, replace_bytes, replace_files, replace_folder

ROOT = Path(__file__).parents[1]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder on a disk of 64 KiB; skips where nobody may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except OSError:
        pytest.skip("no mount here")
    if done.returncode:
        pytest.skip("nobody may mount a small disk here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def full(path: Path) -> None:
    path.write_bytes(b"half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fill(content: bytes, folder: Path) -> None:
    (folder / "a").write_bytes(content)


def test_replace_files_on_a_full_disk_keeps_all_of_the_old_and_leaves_nothing(small_disk: Path) -> None:
    replace_files(small_disk / "r", {"a": b"old a", "b": b"old b"})
    with pytest.raises(InputError, match=r"r/b: can't be written: no space is left on the disk; make room"):
        replace_files(small_disk / "r", {"a": b"new a", "b": bytes(1 << 20)})
    assert names(small_disk) == ["r"] and names(small_disk / "r") == ["a", "b"]
    assert (small_disk / "r" / "a").read_bytes() == b"old a"


def test_replace_folder_on_a_full_disk_keeps_the_old_whole(small_disk: Path) -> None:
    place = small_disk / "r"
    replace_folder(place, partial(fill, b"old"), lambda: None)
    with pytest.raises(OSError, match="No space left"):
        replace_folder(place, partial(fill, bytes(1 << 20)), lambda: None)
    assert names(small_disk) == ["r"] and (place / "a").read_bytes() == b"old"


def test_replace_files_that_fails_takes_away_the_folders_that_it_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no space is left"):
        replace_files(tmp_path / "deep" / "deeper", {"a": full})
    assert names(tmp_path) == []


def test_replace_files_takes_away_what_is_gone_and_makes_folders_below(tmp_path: Path) -> None:
    replace_files(tmp_path, {"old.svg": b"", "page.md": b"1"})
    replace_files(tmp_path, {"page.md": b"2", "pictures/new.svg": b"x"}, gone=["old.svg", "never.svg"])
    assert names(tmp_path) == ["page.md", "pictures"] and (tmp_path / "page.md").read_bytes() == b"2"


def test_drafts_of_killed_writers_go_when_the_place_is_written_next(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from simkv.files import replace_files\n"
        "replace_files(Path(sys.argv[1]), {'a': lambda path: os.kill(os.getpid(), signal.SIGKILL)})\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [name.endswith(".part") for name in names(tmp_path)] == [True]
    replace_files(tmp_path, {"a": b"whole"})
    assert names(tmp_path) == ["a"]


def test_drafts_of_living_writers_and_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / ".a.b.xyz123.part").mkdir()  # of a place "a.b"
    with new_file(tmp_path / "a") as draft:
        draft.write_bytes(b"first")
        replace_bytes(tmp_path / "a", b"second")
        assert draft.exists()
    assert names(tmp_path) == [".a.b.xyz123.part", "a"] and (tmp_path / "a").read_bytes() == b"first"


def test_a_draft_that_goes_while_old_ones_are_cleared_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / ".r.x1.part"
    other.mkdir()
    opened = os.open

    def open_late(path: Path | str, flags: int, **options: int) -> int:
        if Path(path) == other and other.exists():
            other.rmdir()  # its writer is done just now
        return opened(path, flags, **options)

    monkeypatch.setattr(files.os, "open", open_late)
    replace_bytes(tmp_path / "r", b"new")
    assert names(tmp_path) == ["r"] and (tmp_path / "r").read_bytes() == b"new"


def test_an_older_folder_comes_back_where_its_writer_was_killed_between_two_moves(tmp_path: Path) -> None:
    (tmp_path / ".r.xyz123.old").mkdir()
    (tmp_path / ".r.xyz123.old" / "summary.json").write_text("old")
    with pytest.raises(OSError, match="No space"):
        replace_folder(tmp_path / "r", lambda draft: full(draft / "a"), lambda: None)
    assert names(tmp_path) == ["r"] and (tmp_path / "r" / "summary.json").read_text() == "old"


def test_ctrl_c_while_writing_leaves_the_old_and_no_draft(tmp_path: Path) -> None:
    replace_bytes(tmp_path / "a", b"old")

    def interrupted(path: Path) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_files(tmp_path, {"a": interrupted})
    assert names(tmp_path) == ["a"] and (tmp_path / "a").read_bytes() == b"old"


def test_ctrl_c_while_folders_are_exchanged_waits_until_that_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "r"
    replace_folder(place, partial(fill, b"old"), lambda: None)
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        os.kill(os.getpid(), signal.SIGINT)
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        replace_folder(place, partial(fill, b"new"), lambda: None)
    assert names(tmp_path) == ["r"] and (place / "a").read_bytes() == b"new"


def test_two_writers_of_several_files_at_once_leave_those_of_one(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from simkv.files import replace_files\n"
        "who = sys.argv[2].encode()\n"
        "for _ in range(100): replace_files(Path(sys.argv[1]), {name: who for name in 'abc'})\n"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), who], cwd=ROOT) for who in ("one", "two")]
    assert [run.wait() for run in runs] == [0, 0]
    assert names(tmp_path) == ["a", "b", "c"] and len({(tmp_path / name).read_bytes() for name in "abc"}) == 1


def test_alone_in_gives_up_where_another_holds_a_folder_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PATIENCE_S", 0.1)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with alone_in(tmp_path):
            held.set()
            done.wait(10)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(10)
    try:
        with pytest.raises(InputError, match="another process is writing there"):
            replace_bytes(tmp_path / "a", b"")
    finally:
        done.set()
        other.join()


PLACES: dict[str, Callable[[Path], object]] = {
    "a folder is there": lambda path: path.mkdir(),
    "a device or a pipe is there": os.mkfifo,
}


@pytest.mark.parametrize("what", PLACES)
def test_replace_bytes_where_no_file_can_be_refuses_and_leaves_it(tmp_path: Path, what: str) -> None:
    PLACES[what](tmp_path / "a")
    with pytest.raises(InputError, match=what):
        replace_bytes(tmp_path / "a", b"x")
    assert names(tmp_path) == ["a"] and not (tmp_path / "a").is_file()


def test_replace_bytes_below_links_in_a_circle_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "a")
    with pytest.raises(InputError, match="something that is no folder is in its path"):
        replace_bytes(tmp_path / "a" / "b", b"x")


def test_replace_bytes_of_the_longest_name_works(tmp_path: Path) -> None:
    for name in ("n" * 255, "模" * 85):
        replace_bytes(tmp_path / name, b"x")
        assert (tmp_path / name).read_bytes() == b"x"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EFBIG, errno.EBUSY])
def test_reason_is_in_words(number: int) -> None:
    assert reason(OSError(number, "xyz")) != "xyz"
    assert reason(OSError(errno.EXDEV, "xyz")) == "xyz"


def test_a_read_only_disk_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated: whoever may do everything isn't kept from writing by permissions."""

    def read_only(*_: object, **__: object) -> str:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(files.tempfile, "mkdtemp", read_only)
    with pytest.raises(InputError, match="the file system is read-only; make room, or pick another folder"):
        replace_bytes(tmp_path / "a", b"x")
