"""Places where nothing, or not all, can be written: what was there before stays, and nothing half written."""

from __future__ import annotations

import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.fuzz.asked import Command, Generator, Outcome
from tests.fuzz.base import REPOSITORY
from tests.fuzz.results import made
from tests.fuzz.traces import JSONL

_NAME = "place"


def _limit(size: int) -> Callable[[], None]:
    """Return what lets no file become larger than ``size``: what a full disk looks like to whoever writes."""

    def apply() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return apply


def _nothing(folder: Path) -> None:
    return None


def _file(folder: Path) -> None:
    (folder / _NAME).write_text("years of work")


def _foreign(folder: Path) -> None:
    (folder / _NAME).mkdir()
    (folder / _NAME / "thesis.tex").write_text("years of work")


def _empty(folder: Path) -> None:
    (folder / _NAME).mkdir()


def _loop(folder: Path) -> None:
    (folder / _NAME).symlink_to(folder / "other")
    (folder / "other").symlink_to(folder / _NAME)


def _dangling(folder: Path) -> None:
    (folder / _NAME).symlink_to(folder / "nowhere")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / _NAME)


def _pipe_inside(folder: Path) -> None:
    (folder / _NAME).mkdir()
    os.mkfifo(folder / _NAME / "summary.json")


def _older(folder: Path) -> None:
    shutil.copytree(made("run"), folder / _NAME)


THERE: tuple[Callable[[Path], None], ...] = (
    _nothing, _file, _foreign, _empty, _loop, _dangling, _pipe, _pipe_inside, _older,
)  # fmt: skip
WHERE = (
    _NAME, _NAME, _NAME, _NAME, f"{_NAME}/deeper", f"missing/deep/{_NAME}", f"{_NAME}/", f"./{_NAME}/../{_NAME}",
    "n" * 255, "n" * 300, "\u6a21\u578b" * 60, "/proc/self/out", "/sys/out", "a\nb", "\u202e", "-", "a:b",
    "d" * 200 + "/" + "e" * 200,
)  # fmt: skip


def _snapshot(folder: Path) -> dict[str, bytes | str]:
    """Return everything in ``folder`` by name."""
    found: dict[str, bytes | str] = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            plain = not path.is_symlink() and path.is_file()
            found[str(path.relative_to(folder))] = path.read_bytes() if plain else "there"
    return found


def _unchanged(before: dict[str, bytes | str]) -> Callable[[Outcome, Path], str]:
    """Return what judges that after a failure everything is as it was."""

    def judge(outcome: Outcome, folder: Path) -> str:
        if outcome.code == 0:
            return ""
        after = _snapshot(folder)
        lost = [name for name in before if after.get(name) != before[name]]
        new = [name for name in after if name not in before]
        return f"changed by a failure: {(lost + new)[:5]}" if lost or new else ""

    return judge


def _commands(rng: Random, folder: Path, out: str) -> tuple[str, ...]:
    shutil.copy(REPOSITORY / "scenarios" / "article-maas.yaml", folder / "s.yaml")
    rows = JSONL["mooncake"](rng)
    (folder / "t.jsonl").write_text("".join(f"{row}\n".replace("'", '"') for row in rows))
    few = ("--set", "workload.requests=8", "--set", "workload.output_tokens=20", "--set", "run.baselines=[]")
    kind = rng.randrange(7)
    if kind >= 5:
        shutil.copytree(made("run"), folder / "d")
    return (
        ("run", "s.yaml", *few, "--out", out),
        ("run", "s.yaml", *few, "--out", "o", "--trace-out", out),
        ("trace", "convert", "t.jsonl", "--out", out, *rng.choice(((), ("--force",)))),
        ("trace", "fit", "t.jsonl", "--out", out, *rng.choice(((), ("--force",)))),
        ("hitrate", "t.jsonl", rng.choice(("--csv", "--plot")), f"{out}.{rng.choice(('svg', 'png'))}"),
        ("report", "d", "--no-curves", "--out", out, "--format", rng.choice(("html", "md", "html,md"))),
        ("report", "d", "--no-curves", "--format", "md,html"),
    )[kind]


def _output(rng: Random, folder: Path) -> Command:
    """Write to an odd place, some with no room."""
    there = rng.choice(THERE)
    there(folder)
    args = _commands(rng, folder, rng.choice(WHERE))
    full = rng.random() < 0.35
    size = rng.choice((4096, 8192, 20_000, 100_000)) if full else 0
    before = _snapshot(folder)
    notes = (there.__name__, f"files of at most {size}" if full else "")
    judge = _unchanged(before) if args[:1] != ("run",) or "--trace-out" not in args else None
    return Command(args, keeps=True, in_child=_limit(size) if full else None, judge=judge, notes=notes)


GENERATORS: dict[str, Generator] = {"output": _output}
