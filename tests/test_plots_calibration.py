"""The figure of a calibration: a panel for whatever was measured, whose title says what was found."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from simkv.calibrate.fit import fit_profile, residual_rows
from simkv.errors import InputError
from simkv.plots.calibration import calibration, draw
from simkv.profile.schema import Device, Profile, Sample
from tests.calibrate_factory import MODEL, Machine


def profile_of(samples: list[Sample]) -> Profile:
    device = Device(kind="cuda", name="a made-up card", memory_bytes=8e9)
    fit = fit_profile(samples, MODEL, "bf16")
    return Profile(name="made-up", device=device, environment={}, samples=tuple(samples), fit=fit)


def drawn(profile: Profile, form: str = "svg") -> bytes:
    file = io.BytesIO()
    calibration(profile, residual_rows(profile.samples, profile.fit), file, form)
    return file.getvalue()


def panels(picture: bytes) -> int:
    return picture.count(b'<g id="axes_')


def test_figure_of_a_whole_machine_says_what_was_found() -> None:
    picture = drawn(profile_of(Machine(noise=0.0).all()))
    text = picture.decode("utf-8")
    assert panels(picture) == 6
    assert "made-up: a made-up card" in text
    assert "H2D: 11.0 GB/s + 3.00 µs a piece + 20.0 µs once, residual 0.0%" in text
    assert "SSD reads: 2.50 GB/s + 90.0 µs a piece, residual 0.0%" in text
    assert "reads, 1 at a time" in text and "reads, 16 at a time (not fitted)" in text
    assert "and takes 1.50 times as long in blocks" in text
    assert "Steps: 400 µs beyond their parts," in text


def test_figure_of_a_drive_alone_has_one_panel_and_the_same_bytes_each_time() -> None:
    profile = profile_of(list(Machine().requests("ssd_read")))
    assert panels(drawn(profile)) == 1
    assert drawn(profile) == drawn(profile)


def test_figure_is_written_in_the_form_of_its_ending(tmp_path: Path) -> None:
    machine = Machine()
    profile = profile_of(list(machine.copies("h2d", machine.h2d, "pageable")))
    draw(profile, residual_rows(profile.samples, profile.fit), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_figure_of_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png or \.svg"):
        draw(profile_of(list(Machine().host())), [], tmp_path / "a.pdf")


def test_figure_of_nothing_that_is_drawn_is_refused() -> None:
    with pytest.raises(InputError, match="made-up has no copies, requests or times"):
        drawn(profile_of(list(Machine().host())))


def test_figure_of_figures_without_samples_draws_their_lines() -> None:
    """Imported figures have none."""
    profile = profile_of(list(Machine().requests("ssd_read")))
    picture = drawn(profile.model_copy(update={"samples": ()})).decode("utf-8")
    assert "<!-- reads -->" in picture, "the line has the label that its samples would have"
