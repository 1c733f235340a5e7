"""Fixtures of the tests of combined resources."""

from __future__ import annotations

import pytest
import trio

from tests.unit.models.builtin.support import Bench


@pytest.fixture
async def bench(nursery: trio.Nursery) -> Bench:
    """Provide a bench on the test's clock."""
    return Bench(nursery)
