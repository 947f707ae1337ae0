"""Reading a file of a gigabyte takes no more memory than reading a small one."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

GIGABYTE = 1_000_000_000
MOST_MIB = 100
ROWS_A_PIECE = 500
GAP_S = 0.25
OWN_BLOCKS = 10**15

READ = """
import sys
from simkv.workload.readers import open_trace
source = open_trace(sys.argv[1])
rows = tokens = 0
last_s = 0.0
for request in source.arrivals():
    rows += 1
    tokens += request.prompt_tokens + sum(length for _, _, length in request.spans)
    assert request.arrival_s >= last_s
    last_s = request.arrival_s
with open("/proc/self/status") as status:
    (peak_kib,) = [line.split()[1] for line in status if line.startswith("VmHWM")]
print(source.reader.name, rows, tokens, source.report.dropped, int(peak_kib) >> 10)
"""


def mooncake_rows(start: int) -> Iterator[tuple[str, int]]:
    """Rows of 1 to 8 KB: a shared head of blocks, then blocks of the row's own; and the tokens of each."""
    draw = random.Random(start)
    for k in range(start, start + ROWS_A_PIECE):
        shared, own = draw.randrange(1, 200), draw.randrange(80, 400)
        ids = [*range(shared), *range(OWN_BLOCKS + 500 * k, OWN_BLOCKS + 500 * k + own)]
        prompt, output = 512 * len(ids) - draw.randrange(512), draw.randrange(1, 2000)
        time_ms = int(1000 * GAP_S * k) - draw.choice((0, 0, 0, 20_000 if k > 100 else 0))
        yield (
            orjson.dumps(
                {"timestamp": time_ms, "input_length": prompt, "output_length": output, "hash_ids": ids}
            ).decode(),
            (2 * prompt + output),
        )


def log_rows(start: int) -> Iterator[tuple[str, int]]:
    """Rows of a CSV log that holds prompts too, with commas and line ends in quotes; and the tokens of each."""
    draw = random.Random(start)
    filler = ("tokens, and more of them; " * 8 + "\n") * 10
    for k in range(start, start + ROWS_A_PIECE):
        prompt, output = draw.randrange(1, 9000), draw.randrange(1, 900)
        head = draw.randrange(prompt)
        note = filler[: draw.randrange(1500, 2000)]
        yield f'{GAP_S * k},{prompt},{output},user{k % 5000},h{k % 50},{head},"{note}"', 2 * prompt + output


KINDS = {
    "mooncake": ("", mooncake_rows),
    "log": ("arrival,prompt_tokens,output_tokens,session,prefix_hash,prefix_tokens,text\n", log_rows),
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
@pytest.mark.parametrize("kind", KINDS)
def test_a_gigabyte_is_read_whole_in_bounded_memory(tmp_path: Path, kind: str) -> None:
    """A fresh process reads 1e9 bytes of distinct rows to the end, some of them out of order, and counts them.

    All rows and tokens come out, and the process's peak of resident memory, the interpreter
    included, stays below 100 MiB: a tenth of the file.
    """
    header, rows_from = KINDS[kind]
    path = tmp_path / f"large.{kind}"
    size = rows = tokens = 0
    try:
        with path.open("w", encoding="ascii", newline="") as file:
            size += file.write(header)
            while size < GIGABYTE:
                piece = list(rows_from(rows))
                size += file.write("".join(f"{text}\n" for text, _ in piece))
                rows += len(piece)
                tokens += sum(count for _, count in piece)
        assert path.stat().st_size >= GIGABYTE
        done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    finally:
        path.unlink(missing_ok=True)
    name, read_rows, read_tokens, dropped, peak_mib = done.stdout.split()
    assert (name, int(read_rows), int(read_tokens), int(dropped)) == (kind, rows, tokens, 0)
    assert int(peak_mib) < MOST_MIB
