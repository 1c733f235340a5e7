"""Fixtures of the vision tests. Pictures are worked on in real threads: the clock is real, nothing waits for time."""

from __future__ import annotations

import pytest
import trio

from tests.unit.builtin.support import Bench


@pytest.fixture
async def bench(nursery: trio.Nursery) -> Bench:
    """A bench on the test's clock."""
    return Bench(nursery)
