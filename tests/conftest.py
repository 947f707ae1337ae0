"""Settings for every test: runs are audited, and properties searched the same way on each run, without a clock."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.browser import browser, page  # noqa: F401

os.environ.setdefault("SIMKV_AUDIT", "1")  # commands and workers that a test starts inherit it
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of traces and published data beside the repository; CI fails without it, others skip."""
    if not SHARED.is_dir():
        missing = "the folder shared/ with traces and published data is not beside the repository"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return SHARED
