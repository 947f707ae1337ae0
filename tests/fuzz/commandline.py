"""Numbers and names on the command line, and files that are none."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from random import Random

from simkv.scenario.quantity import Quantity
from simkv.units import DimensionName
from tests.fuzz.asked import Command, Generator
from tests.fuzz.base import scenario_text, write_traces
from tests.fuzz.drawn import extreme

_NUMBERS = (
    "nan", "NaN", "inf", "-inf", "-1", "0", "-0.0", "0.5", "1", "2", "1e308", "1e309", "1e-308", "1e-400", "5e-324",
    "", " ",
    "x", "9" * 40, "9" * 4000, "9" * 100_000, "-" + "9" * 40, "1_000", "0x10", "1e", "1.2.3", "1,5", "\u0663",
    "\u00bd", "25 GB",
    "25 GB/s", "25GiB", "20ms", "1e10s", "1e21B", "1e22B", "1e18 GB/s", "2%", "100%", "101%", "1e-7%", "128Ki", "1Pi",
    "1e400 s",
    "+1", "--", "-h", "1" + "0" * 300, "0." + "0" * 300 + "1", "1e9", "1e12", "1099511627776", "1099511627777",
    "\u202e1",
    "null", "true", "[1]", "1e15", "3", "8", "64", "65", "1000000",
)  # fmt: skip
_MEASURE: dict[DimensionName, tuple[str, ...]] = {
    "size": ("--free", "--sequence", "--available", "--bytes"),
    "rate": ("--bandwidth", "--link-bandwidth", "--ssd-bandwidth"),
    "time": ("--t-vram", "--t-mem", "--compute", "--transfer"),
    "tokens": ("--tokens", "--context", "--prefill", "--span", "--max-num-batched-tokens"),
    "fraction": ("--p-hit", "--beta", "--residency", "--utilization", "--flops-efficiency"),
    "number": ("--link-price",),
}
"""What an option measures; all others count."""
_MODELS = (
    "llama-3.1-8b",
    "deepseek-v3",
    "gpt-oss-20b",
    "Llama-3.1-8B",
    "",
    "x",
    "/dev/zero",
    ".",
    "a\nb",
    "\u202e",
    "..",
)
_MACHINES = ("h100-sxm5-80gb", "a100-sxm4-80gb", "rtx-4090", "p5.48xlarge", "", "x", "/dev/zero", "\udcff", "..")
_CALC = {
    "kv-size": (("--model", "M"), ("--tokens", "N"), ("--batch", "N"), ("--tp", "N"), ("--kv-dtype", "D")),
    "concurrency": (
        ("--free", "N"), ("--sequence", "N"), ("--available", "N"), ("--residency", "N"), ("--model", "M"), ("--tp",
        "N"),
        ("--hardware", "H"), ("--tokens", "N"), ("--utilization", "N"), ("--max-num-seqs", "N"), ("--kv-dtype", "D"),
        ("--max-num-batched-tokens", "N"), ("--weight-dtype", "D"),
    ),
    "t-avg": (
        ("--tier", "T"), ("--tier", "T"), ("--p-hit", "N"), ("--t-vram", "N"), ("--t-mem", "N"), ("--model", "M"),
        ("--hardware", "H"), ("--block-tokens", "N"), ("--tp", "N"),
    ),
    "speedup": (("--compute", "N"), ("--transfer", "N"), ("--bytes", "N"), ("--bandwidth", "N"), ("--beta", "N"),
                ("--layers", "N")),
    "step": (("--model", "M"), ("--hardware", "H"), ("--batch", "N"), ("--context", "N"), ("--prefill", "N"), ("--tp",
    "N"),
             ("--weight-dtype", "D")),
    "break-even": (("--model", "M"), ("--hardware", "H"), ("--span", "N"), ("--link-price", "N"), ("--objective", "O"),
                   ("--flops-efficiency", "N"), ("--tp", "N"), ("--link-bandwidth", "N"), ("--ssd-bandwidth", "N")),
}  # fmt: skip
_WORDS = {
    "M": _MODELS, "H": _MACHINES, "D": ("fp8", "bf16", "int4", "x", "", "FP8"), "O": ("latency", "throughput", "x"),
    "T": ("vram=0.9:1us", "dram=0.1:1ms", "x", "vram=1:", "=:", "vram=nan:1us", "vram=0.5:inf", "vram=1:1e400s",
    "a=2:1s"),
}  # fmt: skip
_FITTING = {
    "--tokens": "4096", "--batch": "4", "--free": "40GB", "--sequence": "10GB", "--compute": "10ms",
    "--transfer": "5ms",
    "--context": "1000", "--span": "1000", "--p-hit": "0.5", "--t-vram": "1us", "--t-mem": "1ms", "--bytes": "1GB",
    "--bandwidth": "25 GB/s", "--available": "40GiB", "--model": "llama-3.1-8b", "--hardware": "h100-sxm5-80gb",
}  # fmt: skip
_NEEDED = {
    "kv-size": (("--model", "--tokens"),), "step": (("--model", "--hardware", "--batch", "--context"),),
    "concurrency": (("--free", "--sequence"), ("--model", "--hardware"), ("--model", "--available")),
    "t-avg": (("--p-hit", "--t-vram", "--t-mem"), ("--p-hit", "--model", "--hardware")),
    "speedup": (("--compute", "--transfer"), ("--compute", "--bytes", "--bandwidth")),
    "break-even": (("--model", "--hardware", "--span"),),
}  # fmt: skip


def _calc(rng: Random, folder: Path) -> Command:
    form = rng.choice(list(_CALC))
    given = {option: _FITTING[option] for option in rng.choice(_NEEDED[form])}
    for _ in range(rng.choice((1, 1, 2, 3))):
        option, kind = rng.choice(_CALC[form])
        measured = next((name for name, options in _MEASURE.items() if option in options), "count")
        if kind == "N" and rng.random() < 0.6:
            given[option] = str(extreme(rng, Quantity(measured)))
        else:
            given[option] = rng.choice(_WORDS.get(kind, _NUMBERS))
    if rng.random() < 0.05:
        given.pop(rng.choice(list(given)))
    args = [word for pair in given.items() for word in pair]
    return Command(("calc", form, *args, "--json"), json=True)


_ODD = (
    "empty.yaml", "fifo", "loop", "dangling", "folder", "/dev/zero", "/dev/null", "/dev/full", "/dev/stdin",
    "locked.yaml", "", " ",
    "\udcff.yaml", "a\nb.yaml", "x" * 300, "x/" * 3000, "s.yaml/", "s.yaml/x", "~", "-", "--", "s.yaml\u202e",
    "good.yaml",
    "/proc/self/mem", "/proc/self/environ", "socket", "link", "linked/s.yaml", "big.yaml", "sparse.yaml", "/", "..",
)  # fmt: skip
_VERBS = (
    ("run",), ("sweep",), ("plan",), ("curves",), ("validate", "--cases"), ("run", "--explain"), ("calc", "kv-size",
    "--tokens",
    "1", "--model"), ("hitrate",), ("trace", "inspect"), ("report",), ("sweep", "show"), ("init",),
)  # fmt: skip


def _odd_files(rng: Random, folder: Path) -> None:
    write_traces(folder)
    (folder / "s.yaml").write_text(scenario_text(rng))
    (folder / "good.yaml").write_text(scenario_text(rng))
    (folder / "empty.yaml").write_bytes(b"")
    (folder / "big.yaml").write_bytes(b"# " + b"x" * (10 << 20))
    (folder / "locked.yaml").write_text("a: 1")
    (folder / "locked.yaml").chmod(0)
    with (folder / "sparse.yaml").open("wb") as file:
        file.truncate(1 << 40)
    os.mkfifo(folder / "fifo")
    for name, target in (("loop", "loop"), ("dangling", "nowhere"), ("link", "s.yaml"), ("linked", ".")):
        (folder / name).symlink_to(target)
    (folder / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as opened:
        here = os.getcwd()
        os.chdir(folder)
        opened.bind("socket")
        os.chdir(here)


def _file(rng: Random, folder: Path) -> Command:
    """Name something that is no file of what the verb reads."""
    _odd_files(rng, folder)
    verb, odd = rng.choice(_VERBS), rng.choice(_ODD)
    if odd in ("good.yaml", "link", "linked/s.yaml") and verb[0] in ("sweep", "plan", "curves"):
        verb = ("run",)  # these take long
    if verb == ("init",):
        return Command(("init", *(() if rng.random() < 0.3 else (odd,))), keeps=True)
    return Command((*verb, odd), allowed=(0, 2, 3, 4) if verb[0] == "validate" else (0, 2, 3))


def _out(rng: Random, folder: Path) -> Command:
    """Write to places where nothing can be written, or where something is."""
    _odd_files(rng, folder)
    (folder / "good.yaml").write_text(
        f"name: {rng.choice(_NAMES)}\nmodel: llama-3.1-8b\nhardware: h100-sxm5-80gb\nrun: {{baselines: []}}\n"
        "workload: {kind: plain, requests: 3, arrival: {process: all_at_once}, prompt_tokens: 100, output_tokens: 5}\n"
    )
    out = rng.choice(("", " ", "s.yaml", "s.yaml/x", "fifo", "loop", "loop/x", "dangling", "folder", "link", "linked",
    "/dev/null",
                      "/dev/full", "/proc/x", "/sys/x", "x" * 300, "x/" * 3000, "a\nb", "\udcff", "..", ".", "/",
                      "new/er/est", "socket"))  # fmt: skip
    more = ("--out", out) if rng.random() < 0.7 else ()
    odd = rng.choice(
        ((), ("--seed", rng.choice(_NUMBERS)), ("--trace-out", rng.choice(("s.yaml", "fifo", "t.json", "", "/"))))
    )
    return Command(("run", "good.yaml", *more, *odd, *(("--json",) if rng.random() < 0.5 else ())), judge=_inside)


def _inside(outcome: object, folder: Path) -> str:
    """Hold that nothing was written outside of the folder by a scenario's name."""
    found = [path.name for path in folder.parent.iterdir() if path.name not in ("in", "stdin", "stdout", "stderr")]
    return f"{found[0]} lies outside" if found else ""


_NAMES = (
    "x", "../x", "'../../x'", "/etc/x", "'a/b'", '"a\\nb"', '"\\0"', "..", "'.'", "'~'", "con", "x" * 300, "x" * 301,
    "''",
    '"\\u202ex"', "' '", "\U0001f600", "-x", "'*'", "\u00e9" * 150, "1", "true", "null", "'$HOME'", "'`id`'",
    '"\\x1b[31m"',
)  # fmt: skip


def _many(rng: Random, folder: Path) -> Command:
    """Give very many options, or very long ones."""
    (folder / "s.yaml").write_text(scenario_text(rng))
    write_traces(folder)
    n = rng.choice((1000, 5000, 40_000))
    args = rng.choice((
        ["--set", "run.seed=1"] * n, [word for i in range(n) for word in ("--set", f"a{i}=1")],
        [word for i in range(n) for word in ("--set", f"classes.c{i}.priority=1")], ["--set", "x=" + "[" * n],
        ["--set", "x=" + "[1," * n + "]" * n], ["--set", "offload.eviction.x" + ".y" * (n // 40) + "=1"],
        ["--set", "workload.turns={dist: empirical, values: [" + "1," * n + "1]}"], ["--set", "name=" + "x" * 2 * n],
        ["--json"] * n, [word for i in range(n) for word in ("--set", f"slo.ttft_p{i}=1s")], ["--set"] * n,
        ["--set", "question=" + "y" * 120_000], ["--set", "a=1" * 30_000],
    ))  # fmt: skip
    return Command(("run", "s.yaml", *args, "--out", "out"), out="out", holds="summary.json")


GENERATORS: dict[str, Generator] = {"calc": _calc, "file": _file, "out": _out, "many": _many}
