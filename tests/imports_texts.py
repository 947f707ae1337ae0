"""Small outputs of measuring tools, written from the formats that their sources print."""

from __future__ import annotations

import json
from typing import Any

NVBANDWIDTH = """\
nvbandwidth Version: v0.8
Built from Git version: v0.8

CUDA Runtime Version: 12080
CUDA Driver Version: 12080
Driver Version: 570.10

Device 0: NVIDIA Example (00000000:01:00)
Device 1: NVIDIA Example (00000000:02:00)
Device 2: NVIDIA Example (00000000:03:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1         2
 0     25.00     26.00     11.00

SUM host_to_device_memcpy_ce 62.00

Running device_to_host_memcpy_ce.
memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)
           0         1         2
 0     27.00       N/A     28.00

SUM device_to_host_memcpy_ce 55.00

Running host_to_device_bidirectional_memcpy_ce.
memcpy CE CPU(row) <-> GPU(column) bandwidth (GB/s)
           0         1         2
 0     11.00     11.00     11.00

SUM host_to_device_bidirectional_memcpy_ce 33.00

Running device_to_host_bidirectional_memcpy_ce.
memcpy CE CPU(row) <-> GPU(column) bandwidth (GB/s)
           0         1         2
 0     25.00     25.00     25.00

SUM device_to_host_bidirectional_memcpy_ce 75.00

Running host_to_all_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1         2
 0      6.00      6.50      7.00

SUM host_to_all_memcpy_ce 19.50

Waived:
Running host_to_device_memcpy_sm.
memcpy SM CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1         2
 0     35.00     36.00     37.00

SUM host_to_device_memcpy_sm 108.00

Running host_to_device_bidirectional_memcpy_sm.
memcpy SM CPU(row) <-> GPU(column) bandwidth (GB/s)
           0         1         2
 0     31.00     31.00     31.00

SUM host_to_device_bidirectional_memcpy_sm 93.00
"""


def swept(mib: int, gb_per_s: float, engine: str = "sm") -> str:
    """Return a run with a chosen buffer, with the command line that the shell recorded."""
    name = f"host_to_device_memcpy_{engine}"
    return (
        f"$ ./nvbandwidth -b {mib} -t {name}\nnvbandwidth Version: v0.5\nRunning {name}.\n"
        f"memcpy {engine.upper()} CPU(row) -> GPU(column) bandwidth (GB/s)\n           0\n 0     {gb_per_s:.2f}\n"
    )


def nvbandwidth_json(**matrices: list[list[str]]) -> str:
    """Return ``nvbandwidth -j`` with a test a keyword."""
    tests: list[dict[str, Any]] = [
        {
            "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
            "bandwidth_matrix": matrix,
            "name": name,
            "status": "Passed",
            "sum": 0.0,
        }
        for name, matrix in matrices.items()
    ]
    tests.append({"name": "device_to_device_memcpy_read_ce", "status": "Waived"})
    devices = ["0: NVIDIA Example (00000000:01:00): (host)"]
    root = {"GPU Device list": devices, "CUDA Runtime Version": 12080, "testcases": tests, "version": "v0.8"}
    return json.dumps({"nvbandwidth": root}, indent=1)


def bandwidth_test(unit: str, up: str, down: str, memory: str = "PINNED", devices: int = 1) -> str:
    """Return what the sample of CUDA 5 and later prints."""
    parts = [
        f" {way} Bandwidth, {devices} Device(s)\n {memory} Memory Transfers\n"
        f"   Transfer Size (Bytes)\tBandwidth({unit})\n   32000000\t\t\t{rate}\n\n"
        for way, rate in (("Host to Device", up), ("Device to Host", down), ("Device to Device", "1000.0"))
    ]
    head = "[CUDA Bandwidth Test] - Starting...\nRunning on...\n\n Device 0: Example GPU\n Quick Mode\n\n"
    return head + "".join(parts) + "Result = PASS\n"


OLD_BANDWIDTH_TEST = """\
[bandwidthTest] starting...

Running on...

 Device 0: Example GPU
 Quick Mode

 Host to Device Bandwidth, 1 Device(s), Paged memory
   Transfer Size (Bytes)\tBandwidth(MB/s)
   33554432\t\t\t3000.0

 Device to Host Bandwidth, 1 Device(s), Pinned memory, direct access
   Transfer Size (Bytes)\tBandwidth(MB/s)
   33554432\t\t\t6000.0
"""


def shmoo(latency_s: float, bytes_per_s: float, direction: str = "H2D-Pinned") -> str:
    """Return ``bandwidthTest --mode=shmoo --csv`` of a link, as exact as the tool prints it."""
    lines = ["[CUDA Bandwidth Test] - Starting...", " Shmoo Mode", "", "....."]
    for size in (20_000, 50_000, 100_000, 400_000, 1_000_000, 16_000_000, 32_000_000, 64_000_000):
        seconds = latency_s + size / bytes_per_s
        rate = f"Bandwidth = {size / seconds / 1e9:.1f} GB/s, Time = {seconds:.5f} s"
        lines.append(f"bandwidthTest-{direction}, {rate}, Size = {size} bytes, NumDevsUsed = 1")
    return "\n".join([*lines, "Result = PASS", ""])


FIO_TEXT = """\
seqread: (g=0): rw=randread, bs=(R) 2048KiB-2048KiB, (W) 2048KiB-2048KiB, (T) 4KiB-4KiB, ioengine=libaio, iodepth=2
...
fio-3.28
Starting 16 processes

seqread: (groupid=0, jobs=16): err= 0: pid=100: Mon Jan  5 15:15:17 2015
  read: IOPS=3068, BW=6137MiB/s (6435MB/s)(360GiB/60010msec)
    slat (usec): min=2, max=1510, avg= 6.77, stdev= 3.29
    clat (msec): min=1, max=28, avg=10.40, stdev= 6.33
     lat (msec): min=1, max=28, avg=10.42, stdev= 6.33
    clat percentiles (usec):
     |  1.00th=[  872], 99.99th=[ 6062]
   bw (  MiB/s): min= 5048, max=7113, per=99.88%, avg=6130.44, stdev=40.50, samples=960
   iops        : min= 2512, max=3387, avg=3065.06, stdev=33.12, samples=960
  lat (msec)   : 2=1.01%, 20=98.99%
  cpu          : usr=0.68%, sys=3.44%, ctx=15563500, majf=0, minf=491
  IO depths    : 1=0.1%, 2=100.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=0.0%, >=64=0.0%

Run status group 0 (all jobs):
   READ: bw=6137MiB/s (6435MB/s), 6137MiB/s-6137MiB/s (6435MB/s-6435MB/s), io=360GiB (386GB), run=60010-60010msec
"""

OLD_FIO_TEXT = """\
random-write: (g=0): rw=randwrite, bs=4K-4K/4K-4K/4K-4K, ioengine=sync, iodepth=32
fio-2.1.3
Starting 1 process

random-write: (groupid=0, jobs=1): err= 0: pid=8378: Mon Jan 5 15:15:17 2015
  write: io=131072KB, bw=910222KB/s, iops=227555 , runt= 144msec
    clat (usec): min=2 , max=33 , avg= 2.82, stdev= 0.80
     lat (usec): min=2 , max=33 , avg= 2.90, stdev= 0.79
  cpu          : usr=17.48%, sys=81.82%, ctx=16, majf=0, minf=24
"""


def fio_job(way: str = "read", bw_bytes: int = 10**9, latency_ns: float = 0.0, **options: Any) -> dict[str, Any]:
    """Return an entry of fio's ``jobs``: keywords are its options; ``group``, ``name`` and ``error`` are its own."""
    group, name = options.pop("group", 0), options.pop("name", "job")
    error, block = options.pop("error", 0), options.pop("carried", None) or int(str(options.get("bs", 4096)))
    side = {
        "io_bytes": 1000 * block, "io_kbytes": 1000 * block // 1024, "bw_bytes": bw_bytes, "bw": bw_bytes // 1024,
        "total_ios": 1000, "lat_ns": {"min": 0, "max": 0, "mean": latency_ns, "stddev": 0.0},
    }  # fmt: skip
    none = {"io_bytes": 0, "io_kbytes": 0, "bw_bytes": 0, "bw": 0, "total_ios": 0}
    told = {key: str(value) for key, value in ({"rw": f"rand{way}"} | options).items()}
    return {
        "jobname": name,
        "groupid": group,
        "error": error,
        "job options": told,
        "read": none,
        "write": none,
        way: side,
    }


def fio_json(*jobs: dict[str, Any], **options: Any) -> str:
    """Return ``fio --output-format=json``."""
    shared = {"direct": "1", "ioengine": "io_uring", "filename": "/dev/nvme0n1"} | options
    return json.dumps({"fio version": "fio-3.36", "global options": shared, "jobs": list(jobs)}, indent=2)
