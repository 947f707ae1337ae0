"""Scenarios on an instance: what it brings, what it refuses, and that eight GPUs share one host."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.catalog import load_instance
from simkv.cli import app
from simkv.errors import InputError
from simkv.hardware import Figure
from simkv.scenario.build import link_config, system_config
from simkv.scenario.explain import explain
from simkv.scenario.resolve import Resolved, resolve_text

SCENARIO = """\
name: rented
model: llama-3.1-8b
hardware: {hardware}
replicas: {{count: 8}}
engine: {{max_model_len: 8192}}
workload: {{kind: sessions, arrival: {{process: poisson, rate: 8 req/s}}, requests: 60, turns: 4,
  first_prompt_tokens: 2000, prompt_tokens: 100, output_tokens: 8, think_time: 1s}}
tiers: {{dram: {{capacity: 100GiB}}}}
"""


def resolved(hardware: str = "p5.48xlarge", *assignments: str) -> Resolved:
    return resolve_text(SCENARIO.format(hardware=hardware), "s.yaml", assignments)


def origins(found: Resolved) -> dict[str, tuple[str, str]]:
    return {row.path: (row.value, row.origin) for row in explain(found)}


def simkv(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def test_scenario_on_an_instance_takes_its_host_as_defaults() -> None:
    found = origins(resolved())
    assert found["link.h2d"] == ("25 GB/s", "instance p5.48xlarge, assumed")
    assert found["link.uplink.bandwidth"] == ("25 GB/s", "instance p5.48xlarge, assumed")
    assert found["link.uplink.gpus"] == ("2", "instance p5.48xlarge, assumed")
    assert found["tiers.dram.bandwidth"] == ("327.68 GB/s", "instance p5.48xlarge, assumed")
    assert found["tiers.ssd.read"] == ("18 GB/s", "instance p5.48xlarge, assumed")
    assert found["cost.gpu_hour"] == ("6.88", "instance p5.48xlarge, datasheet")
    assert found["cost.date"] == ("2026-08-26", "instance p5.48xlarge, datasheet")
    own = origins(resolved("p5en.48xlarge"))
    assert own["link.h2d"] == ("53 GB/s", "catalogue, assumed") and "link.uplink.gpus" not in own


def test_scenario_on_an_instance_gives_way_to_what_is_written() -> None:
    changed = ("link.h2d=10 GB/s", "link.uplink.gpus=4", "tiers.dram.bandwidth=1 TB/s", "cost.gpu_hour=2")
    found = resolved("p5.48xlarge", *changed)
    assert origins(found)["link.h2d"] == ("10 GB/s", "--set")
    link = link_config(found)
    assert (link.h2d_bytes_per_s, link.uplink_bytes_per_s, link.uplink_replicas) == (10e9, 25e9, 4)
    assert found.scenario.tiers.dram.bandwidth == 1e12
    cost = found.scenario.cost
    assert cost is not None and (cost.gpu_hour, cost.source, cost.date) == (2.0, "", None), "whose price it is not"


def test_scenario_in_another_currency_needs_a_price_of_its_own() -> None:
    with pytest.raises(InputError, match=r"cost\.gpu_hour: is missing"):
        resolved("p5.48xlarge", "cost.currency=EUR")
    kept = resolved("p5.48xlarge", "cost.dram_gib_hour=0.01").scenario.cost
    assert kept is not None and (kept.gpu_hour, kept.dram_gib_hour) == (6.88, 0.01)


def test_scenario_on_a_card_alone_knows_no_host() -> None:
    found = resolved("h100-sxm5-80gb")
    assert found.instance is None and found.scenario.cost is None and found.scenario.link.uplink is None
    assert found.scenario.tiers.dram.bandwidth == 160e9
    assert not any("instance" in origin for _, origin in origins(found).values())
    assert resolved().gpu is found.gpu


def test_scenario_hash_leaves_prices_of_cards_out() -> None:
    found = resolved("h100-sxm5-80gb")
    assert found.gpu is not None
    dear = found.gpu.with_figures(price_usd_per_hour_low=Figure(99.0, "USD/h", "a joke", "assumed"))
    assert replace(found, gpu=dear).scenario_hash == found.scenario_hash
    slow = found.gpu.with_figures(hbm_bytes_per_s=Figure(1e12, "B/s", "a joke", "assumed"))
    assert replace(found, gpu=slow).scenario_hash != found.scenario_hash


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["replicas.count=9"], r"replicas\.count = 9: 9 x 1 GPUs a host, .* has 8; the most is 8, or .*hosts: 2"),
        (["replicas.count=1", "replicas.tensor_parallel=3"],
         r"^--set: replicas.tensor_parallel = 3: doesn't divide the \d+ heads .*\d$"),
        (["replicas.tensor_parallel=16"], r"tensor_parallel = 16: .* has 8 GPUs a host; the most is 8"),
        (["replicas.count=5", "replicas.hosts=2", "replicas.tensor_parallel=4"],
         r"3 x 4 GPUs a host, .*the most is 4, or write replicas\.hosts: 3"),
        (["tiers.dram.capacity=3TiB"], r'dram\.capacity = "3TiB": more than a host of .*the most is 2TiB'),
        (["tiers.ssd.capacity=31TB"], r'ssd\.capacity = "31TB": more than a host of .*the most is 30\.4TB'),
        (["hardware=g2-standard-4", "replicas.count=1", "tiers.dram.capacity=8GiB", "tiers.ssd.capacity=1TB"],
         r"g2-standard-4 has no local SSD; leave it out"),
    ],
)  # fmt: skip
def test_scenario_asking_for_more_than_a_host_has_is_refused(assignments: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolved("p5.48xlarge", *assignments)


@pytest.mark.parametrize(
    ("count", "hosts", "ranks", "fits"), [(8, 1, 1, True), (16, 2, 1, True), (15, 2, 1, True), (2, 1, 4, True),
                                          (3, 1, 4, False), (17, 2, 1, False), (1, 1, 8, True)],
)  # fmt: skip
def test_scenario_replicas_fit_the_gpus_of_their_hosts(count: int, hosts: int, ranks: int, fits: bool) -> None:
    asked = (f"replicas.count={count}", f"replicas.hosts={hosts}", f"replicas.tensor_parallel={ranks}")
    if fits:
        assert resolved("p5.48xlarge", *asked).instance is load_instance("p5.48xlarge")
        return
    with pytest.raises(InputError, match=r"replicas\.count"):
        resolved("p5.48xlarge", *asked)


def test_scenario_with_idle_gpus_says_what_the_whole_is_rented_for() -> None:
    notes = dict(resolved("p5.48xlarge", "replicas.count=3").notes)
    assert "5 of 8 GPUs of p5.48xlarge are idle" in notes["idle_gpus"] and "55.04 USD an hour" in notes["idle_gpus"]
    assert "idle_gpus" not in dict(resolved().notes)
    assert "idle_gpus" not in dict(resolved("dgx-h100", "replicas.count=3").notes), "no price, no cost"


def test_eight_gpus_of_one_host_share_its_dram_and_ssd() -> None:
    config = system_config(resolved("dgx-a100", "tiers.ssd.capacity=10TB"))
    assert (config.replicas, config.hosts) == (8, 1)
    assert config.dram.capacity_bytes == 100 * 2**30
    assert config.dram.bandwidth_bytes_per_s == pytest.approx(0.8 * 16 * 25.6e9)
    assert config.ssd.read_bytes_per_s == pytest.approx(8 * 6.4e9)
    assert (config.link.uplink_bytes_per_s, config.link.uplink_replicas) == (25e9, 2)


def _run(tmp_path: Path, *assignments: str) -> dict[str, Any]:
    file = tmp_path / "rented.yaml"
    file.write_text(SCENARIO.format(hardware="p5.48xlarge"), "utf-8")
    sets = [part for assignment in assignments for part in ("--set", assignment)]
    result = simkv("run", str(file), "--json", "--out", str(tmp_path / "out"), *sets)
    assert result.exit_code == 0, result.stderr
    summary: dict[str, Any] = json.loads(result.stdout)
    return summary


def test_run_on_an_instance_prints_its_cost_and_finds_what_a_neighbour_stored(tmp_path: Path) -> None:
    one_pool = "tiers.dram.shared=true"
    together = _run(tmp_path, one_pool)
    apart = _run(tmp_path, one_pool, "replicas.hosts=8")
    assert together["requests"]["finished"] == 60
    assert together["cost"]["per_hour"] == pytest.approx(55.04) and "us-east-1" in together["cost"]["source"]
    assert math.isfinite(together["cost_per_million_output_tokens"])
    assert together["hit_rate"]["dram"] > 2 * apart["hit_rate"]["dram"], "turns go round robin: a host's DRAM is one"


def test_run_beyond_an_instance_ends_with_code_two(tmp_path: Path) -> None:
    file = tmp_path / "rented.yaml"
    file.write_text(SCENARIO.format(hardware="g6.12xlarge"), "utf-8")
    result = simkv("run", str(file))
    assert result.exit_code == 2
    assert result.stderr == (
        f"{file}:4: replicas.count = 8: 8 x 1 GPUs a host, and g6.12xlarge has 4; "
        "the most is 4, or write replicas.hosts: 2\n"
    )
