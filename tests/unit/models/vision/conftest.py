"""Fixtures of the vision tests. The clock is real because images are processed in threads; no test waits for time."""

from __future__ import annotations

import pytest
import trio

from tests.unit.models.builtin.support import Bench


@pytest.fixture
async def bench(nursery: trio.Nursery) -> Bench:
    """Provide a bench on the test's clock."""
    return Bench(nursery)
