"""Figures that other tools measured: the shipped samples to the digit, traps by texts, no traceback for anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.calibrate.imports import Imported, merge, profile_of, read_figures
from simkv.catalog import load_hardware
from simkv.errors import InputError
from simkv.profile.load import read_profile, write_profile
from simkv.profile.machine import gpu_of
from simkv.profile.schema import Fit, LinkFit, Memory, Residual
from tests.imports_texts import (
    FIO_TEXT,
    NVBANDWIDTH,
    OLD_BANDWIDTH_TEST,
    OLD_FIO_TEXT,
    bandwidth_test,
    fio_job,
    fio_json,
    nvbandwidth_json,
    shmoo,
    swept,
)

MIB = 1 << 20
SAMPLES = "catalog/bandwidth_outputs"
Read = Callable[..., Imported]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a reader of a text that is written to a file first."""

    def of(text: str | bytes, name: str = "out.log", buffer_bytes: int | None = None) -> Imported:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_figures(path, buffer_bytes)

    return of


def link(fit: LinkFit | None) -> LinkFit:
    assert fit is not None
    return fit


def rate(fit: LinkFit | None) -> float:
    return link(fit).bytes_per_s


def refusal(read: Read, text: str | bytes, buffer_bytes: int | None = None) -> str:
    with pytest.raises(InputError) as error:
        read(text, buffer_bytes=buffer_bytes)
    return str(error.value)


# ---- the shipped samples, by hand


@pytest.mark.shared
def test_read_figures_nvbandwidth_of_superbenchmark_to_the_digit(shared: Path) -> None:
    got = read_figures(shared / SAMPLES / "superbenchmark_nvbandwidth_results.log")
    assert (got.tool, got.version, got.devices) == ("nvbandwidth", "v0.6", ("NVIDIA GH200 480GB",))
    assert rate(got.figures.h2d) == pytest.approx((323.36e9 + 312.11e9) / 2)
    assert rate(got.figures.d2h) == pytest.approx((295.15e9 + 312.11e9) / 2)
    assert got.figures.duplex_bytes_per_s == pytest.approx(176.92e9 + 187.26e9)
    assert "median of 6 values (269 GB/s to 412 GB/s)" in link(got.figures.h2d).note
    assert got.alternatives["h2d by copy kernel (SM), 512 MiB"] == pytest.approx(372.33e9)
    assert got.alternatives["d2h by copy kernel (SM), 512 MiB"] == pytest.approx(351.93e9)
    assert got.alternatives["h2d by copy engine, 512 MiB, all GPUs at once"] == pytest.approx(370.13e9)
    first = got.samples[0]
    assert (first.kind, first.at["bytes"], first.at["engine"]) == ("h2d", 512 * MIB, "ce")
    assert first.median_s == pytest.approx(512 * MIB / 369.36e9)
    assert any("772.58 ns" in note for note in got.notes)


@pytest.mark.shared
def test_read_figures_gpu_copy_of_superbenchmark_to_the_digit(shared: Path) -> None:
    got = read_figures(shared / SAMPLES / "superbenchmark_gpu_copy_bw_performance.log")
    assert got.tool == "gpu_copy"
    assert rate(got.figures.h2d) == pytest.approx((26.2387e9 + 26.2412e9) / 2)
    assert rate(got.figures.d2h) == pytest.approx((26.104e9 + 26.0804e9) / 2)
    assert got.figures.duplex_bytes_per_s == pytest.approx((49.4624e9 + 49.4429e9) / 2)
    assert got.figures.memory.copy_bytes_per_s == pytest.approx(657.332e9 + 656.673e9)
    assert got.alternatives["d2h by copy kernel (SM), 64.0 MiB"] == pytest.approx((6.40701e9 + 6.40865e9) / 2)
    assert any("64 MiB" in note for note in got.notes)


@pytest.mark.shared
def test_read_figures_fio_of_superbenchmark_to_the_digit(shared: Path) -> None:
    got = read_figures(shared / SAMPLES / "superbenchmark_disk_performance.log")
    assert (got.tool, got.version) == ("fio", "fio-3.16")
    assert rate(got.figures.ssd_read) == 348743777
    assert rate(got.figures.ssd_write) == 348450387
    reads = got.requests[0]
    assert (reads.block_bytes, reads.depth, reads.direct, reads.beside) == (4096, 64 * 4, True, True)
    assert reads.latency_s == pytest.approx(1446562.147113e-9)
    note = link(got.figures.ssd_read).note
    assert "alone it may be faster" in note and "4.00 KiB don't tell what pages of MiB reach" in note
    assert got.samples[0].median_s == pytest.approx(256 * 4096 / 348743777)


@pytest.mark.shared
def test_read_figures_posted_snippets_is_refused_with_what_is_known(shared: Path) -> None:
    with pytest.raises(InputError, match=r"posted_snippets.md:1: isn't the output of a tool.*nvbandwidth.*fio"):
        read_figures(shared / SAMPLES / "posted_snippets.md")


@pytest.mark.shared
def test_profile_of_shipped_samples_is_written_read_and_is_an_accelerator(shared: Path, tmp_path: Path) -> None:
    figures = [read_figures(path) for path in sorted((shared / SAMPLES).glob("*.log"))]
    profile = profile_of(figures, "gh200-imported", "gh200-96gb")
    write_profile(profile, tmp_path / "imported.json")
    again = read_profile(tmp_path / "imported.json")
    assert again.device.kind == "imported" and again.device.name == "NVIDIA GH200 480GB"
    gpu = gpu_of(again)
    assert gpu.value("h2d_bytes_per_s") == pytest.approx(317.735e9)
    assert gpu.usable_bytes == load_hardware("gh200-96gb").usable_bytes
    assert gpu.hbm_bytes_per_s == load_hardware("gh200-96gb").hbm_bytes_per_s
    assert len(again.environment["imported"]) == 3
    assert "left aside superbenchmark_gpu_copy_bw_performance.log" in again.fit.notes[0]


# ---- nvbandwidth


def test_nvbandwidth_several_gpus_median_of_copy_engines_with_spread(read: Read) -> None:
    got = read(NVBANDWIDTH)
    assert rate(got.figures.h2d) == 25e9
    assert rate(got.figures.d2h) == 27.5e9, "N/A is no figure"
    assert "copy engine, buffers of 512 MiB, median of 3 GPUs (11.0 GB/s to 26.0 GB/s)" in link(got.figures.h2d).note
    assert "latency of a piece isn't measured" in link(got.figures.h2d).note
    assert got.alternatives["h2d by copy kernel (SM), 512 MiB"] == 36e9
    assert len(got.devices) == 3


def test_nvbandwidth_bidirectional_rows_are_halves_of_the_duplex_figure(read: Read) -> None:
    got = read(NVBANDWIDTH)
    assert got.figures.duplex_bytes_per_s == 36e9
    both = [s for s in got.samples if s.kind == "duplex" and s.at["engine"] == "ce"]
    assert [s.median_s for s in both] == pytest.approx([2 * 512 * MIB / 36e9] * 3)
    assert got.alternatives["duplex by copy kernel (SM), 512 MiB"] == 31e9, "SM rows are both directions already"


def test_nvbandwidth_one_bidirectional_row_alone_gives_no_duplex_figure(read: Read) -> None:
    got = read(NVBANDWIDTH[: NVBANDWIDTH.index("Running device_to_host_bidirectional_memcpy_ce")])
    assert got.figures.duplex_bytes_per_s is None
    assert any("is one direction of two" in note for note in got.notes)


def test_nvbandwidth_all_gpus_at_once_is_told_and_never_the_link(read: Read) -> None:
    got = read(NVBANDWIDTH)
    assert any("all 3 GPUs at once share 19.5 GB/s together, 6.50 GB/s each" in note for note in got.notes)
    assert all(s.median_s < 512 * MIB / 10e9 for s in got.samples if s.kind == "h2d")


def test_nvbandwidth_larger_buffers_fall_and_leave_the_link_as_it_was(read: Read) -> None:
    """Figures posted in nvbandwidth issue 42: SM copies of an A100, 512 MiB to 20 GiB."""
    posted = {512: 25.13, 1024: 25.13, 10240: 18.05, 20480: 16.50}
    fit = merge(Fit(), [read(swept(mib, gb), f"{mib}.txt") for mib, gb in posted.items()])
    assert fit.h2d_by_buffer == tuple((mib * MIB, pytest.approx(gb * 1e9)) for mib, gb in posted.items())
    assert rate(fit.h2d) == pytest.approx(25.13e9)
    assert link(fit.h2d).largest_bytes == 1024 * MIB


def test_nvbandwidth_buffer_given_by_hand_wins_over_the_default(read: Read) -> None:
    assert link(read(NVBANDWIDTH, buffer_bytes=64 * MIB).figures.h2d).largest_bytes == 64 * MIB
    assert any("512 MiB, the tool's default" in note for note in read(NVBANDWIDTH).notes)


def test_nvbandwidth_json_is_read_as_text_is(read: Read) -> None:
    got = read("some warning\n" + nvbandwidth_json(host_to_device_memcpy_ce=[["25.5", "N/A", "0"]]))
    assert rate(got.figures.h2d) == 25.5e9
    assert (got.version, got.devices) == ("v0.8", ("NVIDIA Example",))


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (
            NVBANDWIDTH.replace(" 0     25.00     26.00     11.00", " 0     25.00     2x.00     11.00"),
            ":15: host_to_device",
        ),
        (NVBANDWIDTH.replace("     11.00\n\nSUM host_to_device_memcpy_ce", "  1.0 2.0\n"), "has 4 values"),
        (NVBANDWIDTH.replace("bandwidth (GB/s)", "bandwidth (GiB/s)"), "isn't in GB/s"),
        (NVBANDWIDTH.replace("25.00     26.00", "25.00e9   26.00"), "no believable bandwidth"),
        (NVBANDWIDTH[:300], "no figure in it that simkv takes"),
        (nvbandwidth_json()[:-40], "is not whole JSON"),
        ('{"nvbandwidth": {"error": "no device"}}', "holds an error instead of tests: no device"),
        (nvbandwidth_json(host_to_device_memcpy_ce=[["fast"]]), "a number was expected"),
    ],
)
def test_nvbandwidth_broken_output_is_refused_by_name(read: Read, broken: str, says: str) -> None:
    assert says in refusal(read, broken)


# ---- bandwidthTest


def test_bandwidth_test_gigabytes_are_1e9(read: Read) -> None:
    got = read(bandwidth_test("GB/s", "12.3", "13.2"))
    assert (rate(got.figures.h2d), rate(got.figures.d2h)) == pytest.approx((12.3e9, 13.2e9))
    assert got.figures.memory.copy_bytes_per_s == pytest.approx(1000e9), "reads and writes, as the tool counts"
    assert got.devices == ("Example GPU",)


def test_bandwidth_test_megabytes_are_1024000_bytes_since_cuda_5(read: Read) -> None:
    """Figures posted in gearshifft issue 82 (P100): they are the 12.4 and 13.2 GB/s that later versions print."""
    got = read(bandwidth_test("MB/s", "12150.7", "12890.6"))
    assert rate(got.figures.h2d) == pytest.approx(12150.7 * 1024e3)
    assert rate(got.figures.d2h) == pytest.approx(13.2e9, rel=1e-4)
    assert any("MB/s is 1.024e6 B/s" in note for note in got.notes)


def test_bandwidth_test_megabytes_of_old_versions_are_mebibytes_and_pageable_is_apart(read: Read) -> None:
    got = read(OLD_BANDWIDTH_TEST)
    assert got.figures.h2d is None
    assert rate(got.figures.h2d_pageable) == 3000 * MIB
    assert rate(got.figures.d2h) == 6000 * MIB


def test_bandwidth_test_pageable_memory_is_never_the_pinned_link(read: Read) -> None:
    got = read(bandwidth_test("GB/s", "6.1", "5.2", memory="PAGEABLE"))
    assert got.figures.h2d is None and rate(got.figures.h2d_pageable) == pytest.approx(6.1e9)
    assert {s.at["memory"] for s in got.samples if s.kind == "h2d"} == {"pageable"}


def test_bandwidth_test_several_devices_are_added_up_one_after_another(read: Read) -> None:
    assert rate(read(bandwidth_test("GB/s", "49.2", "52.8", devices=4)).figures.h2d) == pytest.approx(12.3e9)


def test_bandwidth_test_shmoo_tells_latency_and_bandwidth(read: Read) -> None:
    got = link(read(shmoo(5e-6, 12.4e9)).figures.h2d)
    assert got.bytes_per_s == pytest.approx(12.4e9, rel=0.01)
    assert got.latency_s == pytest.approx(5e-6, rel=0.1)
    assert (got.smallest_bytes, got.largest_bytes, got.residual.points) == (20_000, 64_000_000, 8)
    assert got.residual.largest < 0.05
    assert "latency of a piece from 5 small sizes" in got.note


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (bandwidth_test("GB/s", "fast", "13.2"), ":10:"),
        (bandwidth_test("Gb/s", "12.3", "13.2"), "a unit that bandwidthTest doesn't print"),
        (bandwidth_test("GB/s", "12.3", "13.2", devices=0), "on no device"),
        (shmoo(5e-6, 12.4e9)[:200], "isn't a whole line of bandwidthTest --csv"),
        ("[CUDA Bandwidth Test] - Starting...\nRunning on...\nResult = FAIL\n", "the tool says that it failed"),
    ],
)
def test_bandwidth_test_broken_output_is_refused_by_line(read: Read, broken: str, says: str) -> None:
    assert says in refusal(read, broken)


def test_bandwidth_test_size_given_by_hand_is_refused(read: Read) -> None:
    assert "prints the size of each transfer" in refusal(read, bandwidth_test("GB/s", "1", "1"), buffer_bytes=MIB)


# ---- gpu_copy


def test_gpu_copy_far_numa_node_is_told_and_the_near_one_taken(read: Read) -> None:
    got = read("cpu_to_gpu0_by_dma_under_numa0 12.15\ncpu_to_gpu0_by_dma_under_numa1 3.78\n")
    assert rate(got.figures.h2d) == pytest.approx(12.15e9)
    assert any("far NUMA node is 3.21 times slower" in note for note in got.notes)
    assert [s.at["node"] for s in got.samples] == [0, 1]


def test_gpu_copy_copies_between_gpus_alone_are_refused(read: Read) -> None:
    assert "no figure in it that simkv takes" in refusal(read, "gpu0_to_gpu1_write_by_sm 258.4\n")


def test_gpu_copy_line_cut_off_is_refused_with_its_number(read: Read) -> None:
    assert ":2: " in refusal(read, "cpu_to_gpu0_by_dma_under_numa0 12.15\ncpu_to_gpu1_by_dma_under_numa0\n")


# ---- fio


def test_fio_text_mebibytes_aren_t_megabytes_and_jobs_multiply_depth(read: Read) -> None:
    """6137 MiB/s: posted in s3fs-fuse issue 2079."""
    got = read(FIO_TEXT)
    assert rate(got.figures.ssd_read) == 6137 * MIB
    only = got.requests[0]
    assert (only.block_bytes, only.depth, only.ioengine, only.direct) == (2 * MIB, 32, "libaio", None)
    assert only.latency_s == pytest.approx(10.42e-3)
    assert "whether past the page cache isn't told" in link(got.figures.ssd_read).note


def test_fio_text_command_line_tells_direct_and_the_drive(read: Read) -> None:
    got = read("$ fio --name=seqread --direct=1 --filename=/dev/nvme1n1\n" + FIO_TEXT)
    assert (got.requests[0].direct, got.requests[0].drive) == (True, "/dev/nvme1n1")


def test_fio_text_of_version_2_counts_by_1024_and_sync_has_one_request_a_job(read: Read) -> None:
    got = read(OLD_FIO_TEXT)
    assert rate(got.figures.ssd_write) == 910222 * 1024
    assert (got.requests[0].depth, got.requests[0].block_bytes) == (1, 4096)


@pytest.mark.parametrize(
    ("told", "bytes_per_s"),
    [
        ("BW=772Mi (809M)", 772 * MIB), ("BW=1.5GiB/s (1.61GB/s)", 1.5 * 1024 * MIB), ("BW=809MB/s (772MiB/s)", 809e6),
        ("BW=44.8KiB/s (45.9kB/s)", 44.8 * 1024), ("BW=8000Mbit/s (7629Mibit/s)", 1e9),
    ],
)  # fmt: skip
def test_fio_text_every_unit_is_its_own(read: Read, told: str, bytes_per_s: float) -> None:
    got = read(FIO_TEXT.replace("BW=6137MiB/s (6435MB/s)", told))
    assert rate(got.figures.ssd_read) == pytest.approx(bytes_per_s)


@pytest.mark.parametrize(
    ("told", "block_bytes"),
    [("4096B", 4096), ("64.0KiB", 65536), ("65.5kB", 65536), ("4K", 4096), ("1M", MIB), ("1000kB", 1_000_000)],
)
def test_fio_text_block_is_as_the_job_s_line_has_it(read: Read, told: str, block_bytes: int) -> None:
    got = read(FIO_TEXT.replace("2048KiB-2048KiB", f"{told}-{told}"))
    assert got.requests[0].block_bytes == block_bytes


def test_fio_text_block_of_a_range_or_untold_is_the_mean(read: Read) -> None:
    assert read(FIO_TEXT.replace("(R) 2048KiB-", "(R) 4KiB-")).requests[0].block_bytes == 2 * MIB
    assert read(FIO_TEXT[FIO_TEXT.index("seqread: (groupid") :]).requests[0].block_bytes == 2 * MIB


def test_fio_json_lone_requests_give_the_setup_and_large_ones_the_bandwidth(read: Read) -> None:
    got = read(
        fio_json(
            fio_job(bs=4096, iodepth=1, bw_bytes=50_000_000, latency_ns=81_000.0, group=0),
            fio_job(bs=4096, iodepth=32, bw_bytes=1_000_000_000, group=1),
            fio_job(bs=MIB, iodepth=32, bw_bytes=6_000_000_000, group=2),
        )
    )
    fit = link(got.figures.ssd_read)
    assert fit.bytes_per_s == 6e9
    assert fit.latency_s == pytest.approx(4096 / 1e9 - 4096 / 6e9)
    assert fit.setup_s == pytest.approx(81e-6 - 4096 / 1e9)
    assert "setup 76.9 µs from requests one at a time" in fit.note


def test_fio_json_jobs_of_one_report_each_are_added_up(read: Read) -> None:
    got = read(fio_json(*[fio_job(bs=MIB, iodepth=8, numjobs=3, bw_bytes=10**9) for _ in range(3)]))
    assert rate(got.figures.ssd_read) == 3e9
    assert (got.requests[0].depth, got.requests[0].beside) == (24, False)


def test_fio_json_pure_direct_requests_win_over_mixed_and_buffered_ones(read: Read) -> None:
    mixed = fio_job(bs=MIB, group=0, rw="randrw", bw_bytes=9 * 10**8)
    mixed["write"] = fio_job("write", bs=MIB, bw_bytes=8 * 10**8)["write"]
    cached = fio_job(bs=MIB, group=1, bw_bytes=20 * 10**9, direct=0, ioengine="libaio", name="cached")
    got = read(fio_json(mixed, cached, fio_job(bs=MIB, group=2, bw_bytes=3 * 10**9)))
    assert rate(got.figures.ssd_read) == 3e9
    assert rate(got.figures.ssd_write) == 8e8
    assert any(note.startswith("cached: libaio without O_DIRECT runs one request after another") for note in got.notes)


def test_fio_json_bw_without_bw_bytes_is_kibibytes(read: Read) -> None:
    job = fio_job(bs=4096, bw_bytes=1_024_000)
    del job["read"]["bw_bytes"]
    assert rate(read(fio_json(job)).figures.ssd_read) == 1_024_000


def test_fio_json_block_is_what_was_carried_where_options_mislead(read: Read) -> None:
    assert read(fio_json(fio_job(bs="1048576", carried=1_000_000))).requests[0].block_bytes == MIB
    assert read(fio_json(fio_job(bs="1048576", carried=500_000))).requests[0].block_bytes == 500_000


def test_fio_json_among_other_output_is_found(read: Read) -> None:
    whole = "fio: something to note\n" + fio_json(fio_job(bs=MIB)) + "\n\njob: (groupid=0, jobs=1): err= 0: pid=1\n"
    assert rate(read(whole).figures.ssd_read) == 1e9


def test_fio_json_plus_with_bins_is_read_as_json(read: Read) -> None:
    job = fio_job(bs=MIB, iodepth=1, latency_ns=2e5)
    job["read"]["clat_ns"] = {"mean": 1.9e5, "bins": {"190000": 10, "191000": 3}}
    assert read(fio_json(job)).requests[0].latency_s == pytest.approx(2e-4)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (fio_json(fio_job(bs=MIB))[:-30], "is not whole JSON"),
        (fio_json(fio_job(bs=MIB, error=28, name="full")), "full ended with error 28"),
        (fio_json(fio_job(bs=MIB, iodepth="deep")), "jobs[0].iodepth = deep: isn't a count"),
        (fio_json(fio_job(bs=MIB, bw_bytes=-1)), "jobs[0].read.bw_bytes"),
        (fio_json(), "no figure in it that simkv takes"),
        ('{"fio version": "fio-3.36", "jobs": 5}', "there is no list of jobs"),
        (FIO_TEXT.replace("MiB/s (6435MB/s)(", "parsec/s ("), "in a unit that fio doesn't print"),
        (FIO_TEXT.replace("err= 0", "err= 5"), "ended with error 5"),
        ("3;fio-3.16;job;0;0;100;200\n", "run fio --output-format=json"),
        (FIO_TEXT[FIO_TEXT.index("Run status") :].replace("   READ", "fio-3.28\n   READ"), "give all that fio printed"),
    ],
)
def test_fio_broken_output_is_refused_with_the_mend(read: Read, broken: str, says: str) -> None:
    assert says in refusal(read, broken)


# ---- files that are none


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"\x00\x01\x02", ":1: is not text"),
        ("nvbandwidth Version: v0.8".encode("utf-16"), "is UTF-16"),
        (b"ok\n\xff\xfe\n", ":2: is not UTF-8"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "run git lfs pull"),
        (b"\x1f\x8b\x08\x00", "is compressed"),
        (b"hello\n", "isn't the output of a tool that is known here"),
        (b'{"nvbandwidth":' + b"[" * 100_000, "JSON"),
        (b'{"fio version": ' + b"9" * 5000 + b"}", "JSON"),
    ],
)
def test_read_figures_of_what_is_no_output_is_refused(read: Read, data: bytes, says: str) -> None:
    assert says in refusal(read, data)


def test_read_figures_of_no_file_a_folder_and_a_giant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, says in ((tmp_path, "is a folder"), (tmp_path / "none", "No such file"), (Path("a\0b"), "can't be read")):
        with pytest.raises(InputError, match=says):
            read_figures(path)
    monkeypatch.setattr("simkv.calibrate.imports.text.MAX_BYTES", 1 << 20)
    (tmp_path / "giant").write_bytes(b"x" * (1 << 20) + b"x")
    with pytest.raises(InputError, match="is longer than 1 MiB"):
        read_figures(tmp_path / "giant")


# ---- into a fit


def measured_link(bytes_per_s: float) -> LinkFit:
    return LinkFit(
        setup_s=1e-5, latency_s=1e-6, bytes_per_s=bytes_per_s, smallest_bytes=4096, largest_bytes=MIB,
        residual=Residual(points=9, median=0.01, largest=0.05), note="measured",
    )  # fmt: skip


def test_merge_measured_figures_win_and_absent_ones_are_filled(read: Read) -> None:
    fit = merge(Fit(h2d=measured_link(20e9), memory=Memory(read_bytes_per_s=1e12)), [read(NVBANDWIDTH, "nv.txt")])
    assert link(fit.h2d).note == "measured" and rate(fit.d2h) == 27.5e9
    assert fit.memory.read_bytes_per_s == 1e12
    assert any(note == "d2h: imported from nv.txt (nvbandwidth)" for note in fit.notes)
    assert not any(note.startswith("h2d:") for note in fit.notes)


def test_merge_copy_engines_win_over_kernels_of_a_tool_named_before(read: Read) -> None:
    kernels = read(swept(512, 35.0), "sm.txt")
    engines = read(bandwidth_test("GB/s", "55.0", "54.0"), "ce.txt")
    fit = merge(Fit(), [kernels, engines])
    assert rate(fit.h2d) == pytest.approx(55e9)
    assert "h2d: imported from ce.txt (bandwidthTest); left aside sm.txt (nvbandwidth)" in fit.notes


def test_merge_the_same_measurement_twice_takes_the_file_given_first(read: Read) -> None:
    first, second = read(swept(512, 25.0, "ce"), "a.txt"), read(swept(512, 30.0, "ce"), "b.txt")
    assert rate(merge(Fit(), [first, second]).h2d) == 25e9
    assert rate(merge(Fit(), [second, first]).h2d) == 30e9
    assert "left aside b.txt" in merge(Fit(), [first, second]).notes[0]


def test_merge_drives_aren_t_mixed(read: Read) -> None:
    fast = read(fio_json(fio_job(bs=MIB, bw_bytes=7 * 10**9), filename="/dev/nvme0n1"), "fast.json")
    slow = read(fio_json(fio_job(bs=4096, bw_bytes=10**8), filename="/dev/sda"), "slow.json")
    fit = merge(Fit(), [fast, slow])
    assert (rate(fit.ssd_read), link(fit.ssd_read).smallest_bytes) == (7e9, MIB)
    assert "left aside slow.json" in fit.notes[0]


def test_merge_nothing_leaves_the_fit_as_it_is() -> None:
    assert merge(Fit(h2d=measured_link(1e9)), []) == Fit(h2d=measured_link(1e9))


def test_profile_of_without_a_card_or_figures_is_refused(read: Read) -> None:
    with pytest.raises(InputError, match="no-such-card"):
        profile_of([read(NVBANDWIDTH)], "x", "no-such-card")
    with pytest.raises(InputError, match="name the card"):
        profile_of([read(NVBANDWIDTH)], "x", None)
    with pytest.raises(InputError, match="nothing to import"):
        profile_of([], "x", "h100-sxm5-80gb")


# ---- anything at all

WHOLE = (
    NVBANDWIDTH,
    nvbandwidth_json(host_to_device_memcpy_ce=[["25.5", "26.5"]]),
    bandwidth_test("MB/s", "12150.7", "12890.6"),
    OLD_BANDWIDTH_TEST,
    shmoo(5e-6, 12.4e9),
    "cpu_to_gpu0_by_dma_under_numa0 26.2387\ncpu_and_gpu0_by_dma_under_numa0 49.4\n",
    FIO_TEXT,
    OLD_FIO_TEXT,
    fio_json(fio_job(bs=MIB, iodepth=4), fio_job("write", bs=4096)),
)
JUNK = st.sampled_from(
    ["", "0", "-1", "nan", "1e999", "9" * 400, "Infinity", "null", "[]", "{}", '"', ": ", "\r", "\x1b[1m", "٣", "N/A"]
)


EDIT = st.tuples(st.integers(0, 10**6), st.integers(0, 12), JUNK)
STARTS = [b"", b"fio-3.1\n", b"[CUDA Bandwidth Test]", b'{"fio version": ']


def either(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    try:
        got = read_figures(path)
    except InputError as error:
        assert str(path) in str(error)
        return
    profile = profile_of([got], "fuzzed", "h100-sxm5-80gb")
    assert json.loads(profile.model_dump_json(by_alias=True))["device"]["kind"] == "imported"


@given(text=st.sampled_from(WHOLE), edits=st.lists(EDIT, max_size=6))
def test_read_figures_of_mutated_output_reads_or_refuses(
    tmp_path_factory: pytest.TempPathFactory, text: str, edits: list[tuple[int, int, str]]
) -> None:
    for at, cut, junk in edits:
        at %= len(text) + 1
        text = text[:at] + junk + text[at + cut :]
    either(tmp_path_factory.getbasetemp() / "mutated", text.encode())


@given(text=st.sampled_from(WHOLE), seed=st.randoms(use_true_random=False), keep=st.integers(1, 40))
def test_read_figures_of_shuffled_lines_reads_or_refuses(
    tmp_path_factory: pytest.TempPathFactory, text: str, seed: object, keep: int
) -> None:
    lines = text.splitlines(keepends=True)
    seed.shuffle(lines)  # type: ignore[attr-defined]
    either(tmp_path_factory.getbasetemp() / "shuffled", "".join(lines[:keep]).encode())


@given(
    start=st.sampled_from(STARTS),
    data=st.binary(max_size=200),
)
def test_read_figures_of_random_bytes_reads_or_refuses(
    tmp_path_factory: pytest.TempPathFactory, start: bytes, data: bytes
) -> None:
    either(tmp_path_factory.getbasetemp() / "random", start + data)
