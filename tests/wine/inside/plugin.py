"""What tests/conftest.py provides, as far as it works on Windows: a plugin for pytest there."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, settings
from trio.testing import MockClock

settings.register_profile(
    "wine", deadline=None, derandomize=True, max_examples=30, suppress_health_check=list(HealthCheck)
)
settings.load_profile("wine")


@pytest.fixture
def autojump_clock(monkeypatch: pytest.MonkeyPatch) -> MockClock:
    """Return a virtual clock that jumps when every task waits."""
    monkeypatch.setattr("support.worker.CLOSING_LIMIT", math.inf)
    return MockClock(autojump_threshold=0)
