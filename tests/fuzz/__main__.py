"""``python -m tests.fuzz``: hostile inputs from seeds, each generator in turn; exit code 1 where one failed."""

from __future__ import annotations

import argparse
import os
import sys
import time

if __name__ == "__main__":
    for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(_name, "1")
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

import multiprocessing
from types import ModuleType
from typing import Any

from tests.fuzz import cases, commandline, configs, driver, grids, outputs, results, scenarios, traces
from tests.fuzz.asked import Generator
from tests.fuzz.report import again, render

MODULES: tuple[ModuleType, ...] = (scenarios, grids, configs, cases, commandline, traces, results, outputs)
GENERATORS: dict[str, Generator] = {name: found for module in MODULES for name, found in module.GENERATORS.items()}


def main() -> int:
    """Ask all inputs, print the report, return the exit code."""
    options = _options()
    names = options.only.split(",") if options.only else list(GENERATORS)
    unknown = [name for name in names if name not in GENERATORS]
    if unknown:
        print(f"no such generator: {', '.join(unknown)}; there are {', '.join(GENERATORS)}", file=sys.stderr)
        return 2
    inputs = [(names[i % len(names)], options.seed + i // len(names)) for i in range(options.inputs)]
    driver.preload()
    began = time.monotonic()
    judged = _serial(inputs, options) if options.jobs == 1 else _parallel(inputs, options)
    print(render(judged, time.monotonic() - began))
    return int(any(one.fault for one in judged))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1000, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first; each input takes the next")
    parser.add_argument("--only", default="", metavar="NAME,...", help=", ".join(GENERATORS))
    parser.add_argument("--limit", type=float, default=driver.LIMIT_S, metavar="SECONDS", help="of each input")
    parser.add_argument("--show", action="store_true", help="print each command and what it answered")
    return parser.parse_args()


def _asked(name: str, seed: int, options: argparse.Namespace) -> driver.Judged:
    try:
        judged = driver.ask(name, GENERATORS[name], seed, options.show, options.limit)
    except Exception as error:  # of the generator: nothing was asked, and the others go on
        judged = driver.Judged(name, seed, -1, "", 0.0, 0, f"its generator failed: {error!r}")
    if judged.fault:
        print(f"failed: {again(judged)}: {judged.fault}", file=sys.stderr, flush=True)
    return judged


def _serial(inputs: list[tuple[str, int]], options: argparse.Namespace) -> list[driver.Judged]:
    return [_asked(name, seed, options) for name, seed in inputs]


def _parallel(inputs: list[tuple[str, int]], options: argparse.Namespace) -> list[driver.Judged]:
    """Ask in several processes, each its own share of the inputs."""
    context = multiprocessing.get_context("fork")
    answers: Any = context.SimpleQueue()

    def work(number: int) -> None:
        for name, seed in inputs[number :: options.jobs]:
            answers.put(_asked(name, seed, options))

    workers = [context.Process(target=work, args=(number,)) for number in range(options.jobs)]
    for worker in workers:
        worker.start()
    judged = [answers.get() for _ in inputs]
    for worker in workers:
        worker.join()
    return sorted(judged, key=lambda one: (one.seed, one.generator))


if __name__ == "__main__":
    sys.exit(main())
