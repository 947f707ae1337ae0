"""What contradicts, or would do nothing, in what a scenario says of the lower tiers and of reading ahead from them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from simkv.scenario.faults import Fault, Given
from simkv.scenario.offload_schema import Prefetch
from simkv.scenario.presets import DRAM_MEASURES
from simkv.scenario.schema import Scenario

_AHEAD_OF = {
    "stop": ("queue", "arrival"),
    "min_tokens": ("arrival",),
    "in_flight": ("arrival",),
    "batch": ("arrival",),
}
"""Parameters of reading ahead, and the policies that have them."""
_NO_STORES = {"write_back": ("retry", "drop"), "never": ("retry", "drop", "part")}
"""By write policy: what ``when_full`` may not be, since nothing is stored that it would be about."""
_OF_TIMEOUT = ("timeout_base", "timeout_per_ki_token", "timeout_most")


def lower_faults(s: Scenario, given: Given) -> Iterator[Fault]:
    """Yield what doesn't go together; ``given``: whether the scenario or the command line gives a path."""
    yield from _units(s)
    yield from _full(s, given)
    yield from _sizes(given)
    for key in idle_ahead(s.offload.prefetch):
        if given(("offload", "prefetch", key)):
            yield _idle(s.offload.prefetch, key)


def _units(s: Scenario) -> Iterator[Fault]:
    unit, block = s.offload.unit_tokens, s.engine.block_tokens
    path = ("offload", "unit_tokens")
    if unit is None or unit == block:
        return
    if unit % block:
        above = -(-unit // block) * block
        mend = f"write {above - block} or {above}" if unit > block else f"write {block}, or leave it out"
        yield Fault(path, f"no multiple of engine.block_tokens, {block}", mend)
    elif s.offload.write == "write_back" or s.tiers.relation == "exclusive":
        mend = "leave it out, or write a write_through policy and tiers.relation: copy"
        yield Fault(path, "more than a block, and blocks move down one by one when they are evicted", mend)


def _full(s: Scenario, given: Given) -> Iterator[Fault]:
    offload = s.offload
    for key in idle_writing(s):
        if given(("offload", key)):
            yield Fault(
                ("offload", key),
                f"does nothing with offload.write {offload.write}",
                f"{_mend(s, key)}, or leave it out",
            )


def _mend(s: Scenario, key: str) -> str:
    if key == "write_back_blocks":
        return "write offload.write: write_back"
    return "write refuse or part" if s.offload.write == "write_back" else "write another policy for offload.write"


def idle_writing(s: Scenario) -> list[str]:
    """Return the keys of ``offload`` that mean nothing with its write policy: what was evicted isn't offered again."""
    offload = s.offload
    idle = ["when_full"] if offload.when_full in _NO_STORES.get(offload.write, ()) else []
    return [*idle, "write_back_blocks"] if offload.write != "write_back" and offload.write_back_blocks else idle


def is_moot(s: Scenario, path: str, allowed: Collection[object]) -> bool:
    """Say whether what an engine allows at ``path`` means nothing with the scenario's write policy."""
    if path == "offload.write_back_blocks":
        return s.offload.write != "write_back"
    return path == "offload.when_full" and set(allowed) <= set(_NO_STORES.get(s.offload.write, ()))


def _sizes(given: Given) -> Iterator[Fault]:
    first, *others = [key for key in DRAM_MEASURES if given(("tiers", "dram", key))] or [""]
    for key in others:
        yield Fault(("tiers", "dram", key), f"tiers.dram.{first} says how large it is", "give one of the two")


def idle_ahead(ahead: Prefetch) -> list[str]:
    """Return the parameters of reading ahead that mean nothing with its policy and stop."""
    idle = [key for key, policies in _AHEAD_OF.items() if ahead.policy not in policies]
    stops = ahead.stop == "timeout" and "stop" not in idle
    return idle if stops else [*idle, *_OF_TIMEOUT]


def _idle(ahead: Prefetch, key: str) -> Fault:
    needed = f"policy: {' or '.join(_AHEAD_OF.get(key, ('queue', 'arrival')))}"
    if key in _OF_TIMEOUT:
        needed += " with stop: timeout"
    what = f"does nothing with policy {ahead.policy}" + (f" and stop {ahead.stop}" if ahead.stop else "")
    return Fault(("offload", "prefetch", key), what, f"write {needed}, or leave {key} out")
