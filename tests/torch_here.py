"""Torch for tests of calibration: CI fails without it, others skip."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import pytest


def torch_or_skip() -> Any:
    """Return the module torch; call it at the top of a test file, whose tests all skip (under CI: fail) without it."""
    if importlib.util.find_spec("torch") is None:
        missing = "torch is not installed: pip install 'simkv[torch]'"
        if os.environ.get("CI") == "true":
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing, allow_module_level=True)
    import torch

    return torch
