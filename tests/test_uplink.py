"""GPUs that share a PCIe uplink: what a scenario says of it, who shares it, what it costs, how it is told."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError, LawError
from simkv.firstorder import _load_s
from simkv.results.summary import summarize
from simkv.scenario.build import link_config
from simkv.scenario.explain import explain, to_yaml
from simkv.scenario.resolve import resolve_text
from simkv.sim import fabric
from simkv.sim.config import SystemConfig
from simkv.sim.system import System
from simkv.workload.replay import FixedSource
from simkv.workload.request import Request
from tests.results_factory import make_context, make_run
from tests.sim_factory import BLOCK, BLOCK_BYTES, RATE, request, run, same, system_config, ttft

SCENARIO = """\
name: switch
model: llama-3.1-8b
hardware: h100-sxm5-80gb
workload: {kind: plain, requests: 5, arrival: {process: poisson, rate: 1 req/s}, prompt_tokens: 100, output_tokens: 9}
tiers:
  dram: {capacity: 20GiB}
"""
UPLINK = "link: {uplink: {bandwidth: 25 GB/s, gpus: 4}}\n"


# ---- the scenario


def test_uplink_absent_is_no_uplink_and_leaves_the_hash_alone() -> None:
    plain, null = resolve_text(SCENARIO), resolve_text(SCENARIO + "link: {uplink: null}\n")
    assert plain.scenario_hash == null.scenario_hash
    assert "uplink" not in to_yaml(plain)
    config = link_config(plain)
    assert (config.uplink_bytes_per_s, config.uplink_replicas) == (inf, 1)
    assert resolve_text(SCENARIO + UPLINK).scenario_hash != plain.scenario_hash


def test_uplink_is_explained_and_written_out_again() -> None:
    resolved = resolve_text(SCENARIO + UPLINK, assignments=["link.uplink.gpus=2"])
    rows = {row.path: (row.value, row.origin) for row in explain(resolved)}
    assert rows["link.uplink.bandwidth"] == ("25 GB/s", "scenario")
    assert rows["link.uplink.gpus"] == ("2", "--set")
    again = resolve_text(to_yaml(resolved))
    assert again.scenario.link == resolved.scenario.link and again.scenario_hash == resolved.scenario_hash


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("link: {uplink: {gpus: 2}}", 'link.uplink.bandwidth: is missing; add "bandwidth: 25 GB/s"'),
        ("link: {uplink: {bandwidth: 25 GB/s}}", 'link.uplink.gpus: is missing; add "gpus: 256"'),
        ("link: {uplink: {bandwidth: 25, gpus: 2}}", 'has no unit; write "25 GB/s" or "25 GiB/s"'),
        ("link: {uplink: {bandwidth: 25 GB/s, gpus: 0}}", "link.uplink.gpus = 0: too small; the least is 1"),
        ("link: {uplink: {bandwith: 25 GB/s, gpus: 2}}", 'unknown key; did you mean "bandwidth"?'),
        (
            "replicas: {tensor_parallel: 4}\nlink: {uplink: {bandwidth: 25 GB/s, gpus: 6}}",
            "s.yaml:8: link.uplink.gpus = 6: would cut a replica's ranks apart; "
            "with replicas.tensor_parallel 4 it can be 1, 2, 4, 8 or another multiple",
        ),
    ],
)
def test_uplink_error_names_place_value_and_mend(extra: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve_text(f"{SCENARIO}{extra}\n", "s.yaml")
    assert any(message in str(problem) for problem in caught.value.problems), str(caught.value)


@pytest.mark.parametrize(
    ("ranks", "gpus", "rate", "replicas"),
    [(1, 1, 25e9, 1), (1, 4, 25e9, 4), (2, 4, 25e9, 2), (4, 4, 25e9, 1), (4, 2, 50e9, 1), (8, 1, 200e9, 1)],
)
def test_uplink_replica_of_several_ranks_has_its_share_or_several(
    ranks: int, gpus: int, rate: float, replicas: int
) -> None:
    sets = [f"link.uplink.gpus={gpus}", f"replicas.tensor_parallel={ranks}", "engine.num_gpu_blocks=9000"]
    config = link_config(resolve_text(SCENARIO + UPLINK, assignments=sets))
    assert (config.uplink_bytes_per_s, config.uplink_replicas) == (rate, replicas)
    assert config.h2d_bytes_per_s == pytest.approx(55.6e9 * ranks)


# ---- the system


def reloads(replicas: int, apart_s: float = 0.0) -> list[Request]:
    """Each replica computes a prompt, pushes it out of VRAM and asks for it again at 100 s (or later, one by one)."""
    first = [same(k, 0.0, 5 * BLOCK, 1, k + 1) for k in range(replicas)]
    others = [request(replicas + k, 50.0, 24) for k in range(replicas)]
    return [
        *first,
        *others,
        *(same(2 * replicas + k, 100.0 + k * apart_s, 5 * BLOCK, 1, k + 1) for k in range(replicas)),
    ]


def behind(replicas: int, uplink_replicas: int, uplink: float = RATE, **changes: Any) -> SystemConfig:
    return system_config(
        num_gpu_blocks=6, dram_blocks=100, replicas=replicas, uplink_bytes_per_s=uplink,
        uplink_replicas=uplink_replicas, **changes,
    )  # fmt: skip


LOAD_S = 4 * BLOCK_BYTES / RATE


def test_two_replicas_loading_at_once_behind_one_uplink_take_twice_as_long_as_apart() -> None:
    together, apart = (ttft(run(behind(2, 2), reloads(2, s)))[4:] for s in (0.0, 10.0))
    assert together == pytest.approx([1.0 + 2 * LOAD_S] * 2)
    assert apart == pytest.approx([1.0 + LOAD_S] * 2)


@pytest.mark.parametrize(("sharing", "times"), [(1, [1, 1, 1, 1]), (2, [2, 2, 2, 2]), (3, [3, 3, 3, 1]), (4, [4] * 4)])
def test_replicas_share_uplinks_in_order_of_their_numbers(sharing: int, times: list[int]) -> None:
    data = run(behind(4, sharing), reloads(4))
    assert ttft(data)[8:] == pytest.approx([1.0 + n * LOAD_S for n in times])


def test_replicas_of_two_hosts_share_no_uplink() -> None:
    data = run(behind(2, 2, hosts=2), reloads(2))
    assert ttft(data)[4:] == pytest.approx([1.0 + LOAD_S] * 2)
    assert data.instances["uplink_h2d"] == 2


def test_uplink_wider_than_all_its_links_changes_no_time() -> None:
    wide, none = run(behind(2, 2, 2 * RATE), reloads(2)), run(behind(2, 2, inf), reloads(2))
    assert ttft(wide) == pytest.approx(ttft(none))
    assert "uplink_h2d" not in none.busy_s


def test_uplink_without_bandwidth_carries_nothing() -> None:
    data = run(behind(1, 1, 0.0), reloads(1))
    assert data.bytes["h2d"] == data.bytes["d2h"] == 0 and data.finished == 3


def test_uplink_busy_time_is_bytes_over_its_bandwidth() -> None:
    data = run(behind(4, 2), reloads(4))
    assert data.instances["uplink_h2d"] == data.instances["uplink_d2h"] == 2
    assert data.busy_s["uplink_h2d"] == pytest.approx(data.bytes["h2d"] / RATE) == pytest.approx(4 * LOAD_S)
    assert data.busy_s["h2d"] == pytest.approx(8 * LOAD_S)  # each link at half its rate for twice as long


def test_audit_sees_an_uplink_that_carries_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "fill", lambda wanted, caps: wanted)
    config = behind(2, 2, audit=True)
    system = System(config, FixedSource(reloads(2)))
    assert system.audit is not None
    system.audit.every = 1
    with pytest.raises(LawError, match=r"law L22 broken at .*, host 0, (h2d, h2d|d2h, d2h): "):
        system.run()


@given(st.floats(1.0, 1e6), st.floats(1.0, 1e6))
def test_first_order_load_is_of_the_narrower_of_link_and_uplink(link: float, uplink: float) -> None:
    load_s = _load_s(behind(1, 1, uplink, h2d=link), 4 * BLOCK, 0)
    assert load_s == pytest.approx(4 * BLOCK_BYTES / min(link, uplink))


# ---- the answer


def test_saturated_uplink_is_warned_of_and_named_beside_the_link() -> None:
    data = make_run(500)
    data.busy_s |= {"h2d": 0.99 * data.end_s, "uplink_h2d": 0.97 * data.end_s, "uplink_d2h": 0.1 * data.end_s}
    data.timeseries["h2d_busy_s"] = 0.99 * data.timeseries["t_s"]
    data.instances |= {"uplink_h2d": 1, "uplink_d2h": 1}
    summary: Any = summarize(data, make_context())
    assert summary["bottleneck"] == "h2d"
    assert "shared uplinks to the GPUs carry 97 % of what they can" in summary["bottleneck_because"]
    assert set(summary["utilization"]) == {"gpu", "h2d", "d2h", "dram", "ssd_read", "ssd_write"}
    messages = [w["message"] for w in summary["warnings"] if w["code"] == "saturated"]
    assert any(m.startswith("Shared uplinks to the GPUs are saturated: busy 97 %") for m in messages)


def test_uplink_with_room_is_not_named() -> None:
    data = make_run(500)
    data.busy_s |= {"h2d": 0.97 * data.end_s, "uplink_h2d": 0.5 * data.end_s, "uplink_d2h": 0.0}
    data.timeseries["h2d_busy_s"] = 0.97 * data.timeseries["t_s"]
    data.instances |= {"uplink_h2d": 1, "uplink_d2h": 1}
    summary: Any = summarize(data, make_context())
    assert "uplink" not in summary["bottleneck_because"]
    assert not any("uplink" in w["message"] for w in summary["warnings"])
