"""One file of another tool's figures: which tool wrote it is told by what it says, not by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from simkv.calibrate.imports.bandwidth_test import is_bandwidth_test, read_bandwidth_test
from simkv.calibrate.imports.drives import drive_figures, named_rates, request_remarks, request_samples
from simkv.calibrate.imports.fio import is_fio_json, read_fio_json
from simkv.calibrate.imports.fio_text import is_fio_text, read_fio_text
from simkv.calibrate.imports.gpu_copy import is_gpu_copy, read_gpu_copy
from simkv.calibrate.imports.imported import Imported, Parsed
from simkv.calibrate.imports.links import alternatives, copy_samples, link_figures, remarks
from simkv.calibrate.imports.nvbandwidth import is_nvbandwidth, read_nvbandwidth
from simkv.calibrate.imports.text import Text, read_text
from simkv.profile.schema import Fit


@dataclass(frozen=True, slots=True)
class Format:
    """One format: how it is told, and read."""

    called: str
    is_it: Callable[[Text], bool]
    read: Callable[[Text, int | None], Parsed]
    needs: str
    """What to run for figures that simkv takes."""


FORMATS: tuple[Format, ...] = (
    Format("fio --output-format=json", is_fio_json, read_fio_json, "run a job that reads or writes"),
    Format("nvbandwidth, text or -j", is_nvbandwidth, read_nvbandwidth, "run nvbandwidth -t host_to_device_memcpy_ce"),
    Format("fio's normal output", is_fio_text, read_fio_text, "give all that fio printed, or --output-format=json"),
    Format("bandwidthTest, text or --csv", is_bandwidth_test, read_bandwidth_test, "run bandwidthTest --htod --dtoh"),
    Format("gpu_copy of superbenchmark", is_gpu_copy, read_gpu_copy, "run gpu_copy --htod --dtoh --dma_copy"),
)
"""Tried in this order."""


def read_figures(path: Path, buffer_bytes: int | None = None) -> Imported:
    """Return the figures that another tool wrote to ``path``, as text or JSON.

    ``buffer_bytes``: of the tool's copies, where it doesn't print that (nvbandwidth, gpu_copy). Raises
    :class:`InputError` with file and line for anything that isn't whole output of a known tool.
    """
    text = read_text(path)
    which = next((one for one in FORMATS if one.is_it(text)), None)
    if which is None:
        known = "; ".join(one.called for one in FORMATS)
        text.refuse("isn't the output of a tool that is known here", f"known are: {known}", _first_line(text))
    parsed = which.read(text, buffer_bytes)
    if not parsed.copies and not parsed.requests:
        why = f" ({parsed.notes[0]})" if parsed.notes else ""
        text.refuse(f"{which.called}: there is no figure in it that simkv takes{why}", which.needs)
    try:
        return imported(parsed, text.file)
    except ValidationError as error:
        first = error.errors()[0]
        text.refuse(f"makes no sense as figures: {first['msg']}", "check it", path=".".join(map(str, first["loc"])))


def imported(parsed: Parsed, source: str) -> Imported:
    """Return what a reader found, with the samples and figures that are made of it."""
    copies, requests = parsed.copies, parsed.requests
    return Imported(
        source=source,
        tool=parsed.tool,
        version=parsed.version,
        devices=parsed.devices,
        samples=(*copy_samples(copies, parsed.tool), *request_samples(requests)),
        figures=Fit.model_validate(link_figures(copies, parsed.tool) | drive_figures(requests)),
        alternatives=alternatives(copies) | named_rates(requests),
        notes=(*parsed.notes, *remarks(copies), *request_remarks(requests)),
        copies=copies,
        requests=requests,
    )


def _first_line(text: Text) -> int:
    return next(n for n, line in enumerate(text.lines, 1) if line.strip())
