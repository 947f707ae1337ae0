"""A small scenario to spoil, and what is said of one that is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simkv.errors import InputError
from simkv.scenario.resolve import Resolved, resolve_text

SMALL = """\
name: small
model: llama-3.1-8b
hardware: a100-sxm4-80gb
workload:
  kind: plain
  requests: 10
  arrival: {process: poisson, rate: 1 req/s}
  prompt_tokens: 100
  output_tokens: 10
tiers:
  dram: {capacity: 20GiB}
"""


def complaints(content: str, *assignments: str, use: Callable[[Resolved], object] = lambda resolved: None) -> list[str]:
    """Return the problems with scenario ``s.yaml``, found as it is resolved or as ``use`` is made of it."""
    with pytest.raises(InputError) as caught:
        use(resolve_text(content, "s.yaml", assignments))
    return [str(problem) for problem in caught.value.problems]
