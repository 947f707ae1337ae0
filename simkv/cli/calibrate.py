"""``simkv calibrate``: measure this machine, fit what was measured, check the model against a real run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simkv.cli import measuring
from simkv.cli.given import Form, chosen, measured

if TYPE_CHECKING:
    from simkv.calibrate.imports import Imported
    from simkv.calibrate.task import Bench
    from simkv.profile.schema import Profile

_MEASURING = (
    "--device",
    "--quick",
    "--verify",
    "--ssd-path",
    "--model",
    "--dtype",
    "--threads",
    "--hot-pool",
    "--fresh",
)
_ANY = ("--name", "--out", "--base", "--no-plot", "--json")
_MEASURE = Form((), _MEASURING + _ANY)
_IMPORT = Form(("--import", "--base"), _ANY)
_BOTH = Form(("--device", "--import"), _MEASURING + _ANY)
_VERIFY = Form(("--verify-only",), ("--ssd-path", "--json"))


def calibrate(
    device: Annotated[
        str | None, typer.Option(metavar="KIND", help="cuda or cpu [default: cuda where torch finds one].")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A minute or two: fewer sizes, fewer repeats.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Then decode with KV in several tiers, beside its prediction.")
    ] = False,
    ssd_path: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder on the drive to measure [default: no drive].")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whose shapes are computed [default: smollm2-135m, on a GPU llama-3.1-8b]."),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(metavar="DTYPE", help="fp32, bf16 or fp16 [default: fp32, on a GPU bf16].")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=4096, help="Cores that compute on a CPU [default: all but one]."),
    ] = None,
    hot_pool: Annotated[
        float | None, measured("--hot-pool", "size", "CPU: pool that stands for VRAM [default: 2GiB].")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The profile [default: calibration/NAME.json].")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the profile is called [default: as the device].")
    ] = None,
    imports: Annotated[
        list[Path] | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Take figures of nvbandwidth, bandwidthTest, gpu_copy or fio; may be repeated. "
            "Without --device nothing is measured, and --base stands for the rest.",
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="CARD", help="Card of the catalogue that stands in for what isn't measured.")
    ] = None,
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Draw samples and fit beside the profile.")] = True,
    fresh: Annotated[bool, typer.Option("--fresh", help="Don't go on where an interrupted call ended.")] = False,
    verify_only: Annotated[
        Path | None, typer.Option("--verify-only", metavar="FILE", help="Only verify this machine's profile FILE.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the profile to stdout and nothing else.")] = False,
) -> None:
    """Measure what this machine does, for scenarios: hardware: calibration/NAME.json."""
    given = {
        "--device": device, "--quick": quick or None, "--verify": verify or None, "--ssd-path": ssd_path,
        "--model": model, "--dtype": dtype, "--threads": threads, "--hot-pool": hot_pool, "--fresh": fresh or None,
        "--name": name, "--out": out, "--import": imports, "--base": base, "--no-plot": None if plot else True,
        "--json": as_json or None, "--verify-only": verify_only,
    }  # fmt: skip
    importing = (_BOTH,) if device is not None else (_IMPORT, _BOTH)
    form = chosen(given, *((_VERIFY,) if verify_only is not None else importing if imports else (_MEASURE,)))
    measuring.check_name(name)
    measuring.check_base(base)
    if form is _VERIFY:
        assert verify_only is not None
        from simkv.calibrate.opening import check_verifiable

        bench = measuring.bench_of(verify_only, ssd_path)
        check_verifiable(bench, "--verify-only")
        profile = measuring.verified(verify_only, bench)
        written = _written(profile, verify_only, verify_only.with_suffix(".png").exists())
    elif form is _IMPORT:
        profile, written = _imported(imports or [], _Place(name, out, base, plot))
    else:
        from simkv.calibrate.opening import kind_of, open_bench

        bench = open_bench(
            kind_of(device), quick=quick, ssd_path=ssd_path, model=model, dtype=dtype, threads=threads,
            hot_pool=hot_pool,
        )  # fmt: skip
        profile, written = _measured(bench, imports or [], _Place(name, out, base, plot), fresh, verify)
    _print(profile, written, as_json)


@dataclass(frozen=True)
class _Place:
    """What a profile is called, where it goes, what stands behind it, and whether it is drawn."""

    name: str | None
    out: Path | None
    base: str | None
    plot: bool

    def named(self, device: str) -> tuple[str, Path]:
        """Return name and file, by default as the device is called. Raises :class:`InputError` for another's file."""
        from simkv.calibrate.assemble import slug

        name = self.name or slug(device)
        out = self.out or Path("calibration") / f"{slug(name)}.json"
        measuring.check_out(out)
        return name, out


def _measured(
    bench: Bench, imports: list[Path], place: _Place, fresh: bool, verify: bool
) -> tuple[Profile, list[Path]]:
    """Measure, write, verify: the profile is there before the verification runs."""
    from simkv.calibrate.assemble import assemble
    from simkv.calibrate.environment import device_name, environment, link_in_use
    from simkv.calibrate.opening import check_verifiable

    if verify:
        check_verifiable(bench)
    figures = _figures(imports)
    name, out = place.named(device_name(bench.backend))
    machine = environment(bench.backend, bench.ssd_path)
    taken, partial = measuring.measure(bench, out, machine, fresh)
    profile = assemble(name, bench, taken, machine | link_in_use(bench.backend), place.base)
    if figures:
        from simkv.calibrate.imports import merge, told

        more = {
            "fit": merge(profile.fit, figures),
            "environment": profile.environment | {"imported": [*map(told, figures)]},
        }
        profile = profile.model_copy(update=more)
    written = _written(profile, out, place.plot)
    partial.remove()
    if verify:
        profile = measuring.verified(out, bench)
        written = _written(profile, out, place.plot)  # measured again in part, and drawn as it is now
    return profile, written


def _imported(imports: list[Path], place: _Place) -> tuple[Profile, list[Path]]:
    from simkv.calibrate.imports import profile_of

    assert place.base is not None
    figures = _figures(imports)
    name, out = place.named(imports[0].stem)
    profile = profile_of(figures, name, place.base)
    return profile, _written(profile, out, place.plot)


def _figures(imports: list[Path]) -> list[Imported]:
    if not imports:
        return []
    from simkv.calibrate.imports import read_figures

    return [read_figures(path) for path in imports]


def _written(profile: Profile, out: Path, plot: bool) -> list[Path]:
    """Write ``profile`` and, if asked, a picture of what can be drawn; return the files."""
    from simkv.profile.load import write_profile

    write_profile(profile, out)
    if not plot:
        return [out]
    from simkv.calibrate.fit import residual_rows
    from simkv.errors import InputError
    from simkv.plots.calibration import draw

    picture = out.with_suffix(".png")
    try:
        draw(profile, residual_rows(profile.samples, profile.fit), picture)
    except InputError as error:
        typer.echo(f"no picture: {error}", err=True)
        return [out]
    return [out, picture]


def _print(profile: Profile, written: list[Path], as_json: bool) -> None:
    if as_json:
        typer.echo(written[0].read_text("utf-8"), nl=False)
        return
    from simkv.cli.calibrated import render

    typer.echo(render(profile, written))
    if profile.verification is not None:
        from simkv.calibrate.verify import verification_text

        typer.echo("\n" + verification_text(profile.verification))
