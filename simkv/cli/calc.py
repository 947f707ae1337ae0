"""``simkv calc``: closed forms worked out, with formula and units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from simkv.cli.given import ABOVE_ZERO, Form, chosen, dtype, measured, options_named, parser
from simkv.errors import InputError, Problem

if TYPE_CHECKING:
    from simkv.calc.answer import Answer
    from simkv.calc.average import Tier

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Work out a closed form: formula, inputs with units, answer."
)

_MODEL = "A model of the catalogue, or the path of a config.json."
_MACHINE = "An accelerator or an instance of the catalogue, or the path of a calibration profile."
ModelOption = Annotated[str, typer.Option("--model", metavar="NAME", help=_MODEL)]
HardwareOption = Annotated[str, typer.Option("--hardware", metavar="NAME", help=_MACHINE)]
SomeModel = Annotated[str | None, typer.Option("--model", metavar="NAME", help=_MODEL)]
SomeHardware = Annotated[str | None, typer.Option("--hardware", metavar="NAME", help=_MACHINE)]
Ranks = Annotated[int | None, measured("--tp", "count", "Tensor-parallel ranks [default: 1].", 1)]
KvDtype = Annotated[
    str | None,
    typer.Option("--kv-dtype", parser=dtype("--kv-dtype", caches=True), metavar="DTYPE",
                 help="fp16, bf16, fp8, int8, int4 [default: 16-bit]."),
]  # fmt: skip
WeightDtype = Annotated[
    str | None,
    typer.Option("--weight-dtype", parser=dtype("--weight-dtype"), metavar="DTYPE",
                 help="Of linear weights [default: as published]."),
]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help="Print JSON, in SI.")]


@app.command("kv-size")
def kv_size(
    model: ModelOption,
    tokens: Annotated[int, measured("--tokens", "tokens", "Length of a sequence.", 1)],
    batch: Annotated[int, measured("--batch", "count", "Sequences.", 1)] = 1,
    kv_dtype: KvDtype = None,
    tp: Ranks = None,
    as_json: Json = False,
) -> None:
    """Bytes of the KV cache: a token, all sequences, one rank."""
    from simkv.calc.kv_size import kv_size as of_model

    with options_named():
        answer = of_model(_model(model), tokens, batch, **_parameters({"--kv-dtype": kv_dtype, "--tp": tp}))
    _print(answer, as_json)


@app.command()
def concurrency(
    free: Annotated[float | None, measured("--free", "size", "VRAM left for KV.")] = None,
    sequence: Annotated[float | None, measured("--sequence", "size", "KV of one sequence.", 1)] = None,
    available: Annotated[
        float | None, measured("--available", "size", "What the engine logs as available for KV, of one GPU.")
    ] = None,
    residency: Annotated[
        float, measured("--residency", "fraction", "Share p of a sequence's KV that stays in VRAM.", ABOVE_ZERO)
    ] = 1.0,
    model: SomeModel = None,
    hardware: SomeHardware = None,
    tokens: Annotated[
        int | None, measured("--tokens", "tokens", "Length of a sequence [default: the model's longest].", 1)
    ] = None,
    tp: Ranks = None,
    utilization: Annotated[
        float | None, measured("--utilization", "fraction", "Engine's share of VRAM [default: 0.9].", ABOVE_ZERO)
    ] = None,
    max_num_seqs: Annotated[
        int | None, measured("--max-num-seqs", "count", "Seats; they cost memory [default: 256].", 1)
    ] = None,
    max_num_batched_tokens: Annotated[
        int | None, measured("--max-num-batched-tokens", "tokens", "Of one step [default: 8192].", 1)
    ] = None,
    weight_dtype: WeightDtype = None,
    kv_dtype: KvDtype = None,
    as_json: Json = False,
) -> None:
    """How many sequences fit at once: of --model on --hardware, in what is --available, or of plain sizes."""
    from simkv.calc.concurrency import concurrency, of_machine, of_pool

    paged = {
        "--tokens": tokens, "--tp": tp, "--max-num-batched-tokens": max_num_batched_tokens, "--kv-dtype": kv_dtype,
    }  # fmt: skip
    machine = {**paged, "--utilization": utilization, "--max-num-seqs": max_num_seqs, "--weight-dtype": weight_dtype}
    named = {"--free": free, "--sequence": sequence, "--model": model, "--available": available, "--hardware": hardware}
    plain, pool = Form(("--free", "--sequence")), Form(("--model", "--available"), tuple(paged))
    with options_named():
        form = chosen({**named, **machine}, plain, Form(("--model", "--hardware"), tuple(machine)), pool)
        if form is plain:
            assert free is not None and sequence is not None
            answer = concurrency(free, sequence, residency)
        elif form is pool:
            assert available is not None
            answer = of_pool(_model(model), available, residency=residency, **_parameters(paged))
        else:
            answer = of_machine(_model(model), _gpu(hardware), residency=residency, **_parameters(machine))
    _print(answer, as_json)


@app.command("t-avg")
def t_avg(
    tier: Annotated[
        list[str] | None,
        typer.Option("--tier", metavar="NAME=SHARE:TIME", help="A tier, like vram=0.9:1us; may be repeated."),
    ] = None,
    p_hit: Annotated[float | None, measured("--p-hit", "fraction", "Share of accesses that VRAM serves.")] = None,
    t_vram: Annotated[float | None, measured("--t-vram", "time", "An access to VRAM.")] = None,
    t_mem: Annotated[float | None, measured("--t-mem", "time", "An access to memory below.")] = None,
    model: SomeModel = None,
    hardware: SomeHardware = None,
    block_tokens: Annotated[
        int | None, measured("--block-tokens", "count", "Tokens of the block that is read [default: 16].", 1)
    ] = None,
    tp: Ranks = None,
    kv_dtype: KvDtype = None,
    as_json: Json = False,
) -> None:
    """Mean time of an access: --tier ...; --p-hit with --t-vram and --t-mem; or --p-hit of a model's blocks."""
    from simkv.calc.average import of_blocks, two_tiers
    from simkv.calc.average import t_avg as of_tiers

    block = {"--block-tokens": block_tokens, "--tp": tp, "--kv-dtype": kv_dtype}
    given = {"--tier": tier, "--p-hit": p_hit, "--t-vram": t_vram, "--t-mem": t_mem, "--model": model,
             "--hardware": hardware, **block}  # fmt: skip
    tiers, times = Form(("--tier",)), Form(("--p-hit", "--t-vram", "--t-mem"))
    with options_named():
        form = chosen(given, times, tiers, Form(("--p-hit", "--model", "--hardware"), tuple(block)))
        if form is tiers:
            answer = of_tiers([_tier(text) for text in tier or ()])
        elif form is times:
            assert p_hit is not None and t_vram is not None and t_mem is not None
            answer = two_tiers(p_hit, t_vram, t_mem)
        else:
            assert p_hit is not None
            answer = of_blocks(_model(model), _gpu(hardware), p_hit, **_parameters(block))
    _print(answer, as_json)


@app.command()
def speedup(
    compute: Annotated[float, measured("--compute", "time", "T_c of a step.")],
    transfer: Annotated[float | None, measured("--transfer", "time", "T_t of a step.")] = None,
    size: Annotated[float | None, measured("--bytes", "size", "What a step moves, instead of --transfer.")] = None,
    bandwidth: Annotated[float | None, measured("--bandwidth", "rate", "Over what it moves.", ABOVE_ZERO)] = None,
    beta: Annotated[
        float | None, measured("--beta", "fraction", "Hidden share of the transfer [default: the largest].")
    ] = None,
    layers: Annotated[int | None, measured("--layers", "count", "Adds T_step layer by layer.", 1)] = None,
    as_json: Json = False,
) -> None:
    """What hiding a share beta of the transfer behind computation gives, and what bounds it."""
    from simkv.calc.speedup import moving
    from simkv.calc.speedup import speedup as of_times

    moved = Form(("--bytes", "--bandwidth"))
    given = {"--transfer": transfer, "--bytes": size, "--bandwidth": bandwidth}
    with options_named():
        how = ""
        if chosen(given, Form(("--transfer",)), moved) is moved:
            assert size is not None and bandwidth is not None
            transfer, how = moving(size, bandwidth)
        assert transfer is not None
        answer = of_times(compute, transfer, beta, layers, how)
    _print(answer, as_json)


@app.command()
def step(
    model: ModelOption,
    hardware: HardwareOption,
    batch: Annotated[int, measured("--batch", "count", "Sequences that decode.", 1)],
    context: Annotated[int, measured("--context", "tokens", "Tokens of each, prompt and output so far.")],
    prefill: Annotated[int | None, measured("--prefill", "tokens", "Adds the time of such a prompt.", 1)] = None,
    tp: Ranks = None,
    weight_dtype: WeightDtype = None,
    kv_dtype: KvDtype = None,
    eager: Annotated[bool, typer.Option("--eager", help="Without captured graphs.")] = False,
    as_json: Json = False,
) -> None:
    """Time of a decode step, and of a prefill, term by term."""
    from simkv.calc.step import step as of_batch

    more = {"--prefill": prefill, "--tp": tp, "--weight-dtype": weight_dtype, "--kv-dtype": kv_dtype}
    with options_named():
        answer = of_batch(_model(model), _gpu(hardware), batch, context, eager=eager, **_parameters(more))
    _print(answer, as_json)


@app.command("break-even")
def break_even(
    model: ModelOption,
    hardware: HardwareOption,
    span: Annotated[int, measured("--span", "tokens", "Cached tokens to load or compute again.", 1)],
    objective: Annotated[
        str, typer.Option("--objective", metavar="latency|throughput", help="What is to be made better.")
    ] = "latency",
    link_price: Annotated[
        float | None,
        measured("--link-price", "number", "throughput: worth of a link second in GPU seconds [default: 1]."),
    ] = None,
    flops_efficiency: Annotated[
        float | None,
        measured("--flops-efficiency", "fraction", "Of the peak, in prefill [default: the step model].", ABOVE_ZERO),
    ] = None,
    tp: Ranks = None,
    weight_dtype: WeightDtype = None,
    kv_dtype: KvDtype = None,
    link_bandwidth: Annotated[
        float | None, measured("--link-bandwidth", "rate", "Of one GPU [default: the catalogue's].", ABOVE_ZERO)
    ] = None,
    ssd_bandwidth: Annotated[
        float | None,
        measured("--ssd-bandwidth", "rate", "SSD reads of the host [default: a scenario's].", ABOVE_ZERO),
    ] = None,
    as_json: Json = False,
) -> None:
    """The bandwidth above which loading a span beats computing it again."""
    from simkv.calc.break_even import Machine, of_span

    more = {"--tp": tp, "--weight-dtype": weight_dtype, "--kv-dtype": kv_dtype, "--flops-efficiency": flops_efficiency,
            "--link-bandwidth": link_bandwidth, "--ssd-bandwidth": ssd_bandwidth}  # fmt: skip
    with options_named():
        machine = Machine(_model(model), _gpu(hardware), **_parameters(more))
        answer = of_span(machine, span, objective, link_price)
    _print(answer, as_json)


_PARAMETERS = {
    "--tp": "tensor_parallel",
    "--link-bandwidth": "link_bytes_per_s",
    "--ssd-bandwidth": "ssd_bytes_per_s",
}


def _parameters(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are given, by the names of the parameters that they are."""
    named = {_PARAMETERS.get(name, name.lstrip("-").replace("-", "_")): value for name, value in options.items()}
    return {name: value for name, value in named.items() if value is not None}


def _model(name: str | None) -> Any:
    from simkv.catalog import load_model

    assert name is not None
    return load_model(name)


def _gpu(name: str | None) -> Any:
    from simkv.calc.machine import load_gpu

    assert name is not None
    return load_gpu(name)


def _tier(text: str) -> Tier:
    from simkv import units
    from simkv.calc.average import Tier

    name, _, rest = text.partition("=")
    share, colon, time = rest.partition(":")
    if not name or not colon:
        raise InputError(Problem("not a tier", 'write it like "vram=0.9:1us"', path="--tier", value=units.shown(text)))
    return Tier(name, parser("--tier", "fraction")(share), parser("--tier", "time")(time))


def _print(answer: Answer, as_json: bool) -> None:
    for warning in answer.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if as_json:
        import json

        typer.echo(json.dumps(answer.to_json(), indent=2))
    else:
        typer.echo(answer.text())
