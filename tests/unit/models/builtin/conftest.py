"""Fixtures of the built-in models' tests."""

from __future__ import annotations

import pytest
import trio

from tests.unit.models.builtin.support import Bench


@pytest.fixture
async def bench(nursery: trio.Nursery) -> Bench:
    """Provide a bench on the test's clock: virtual if the test asks for `autojump_clock`, else real."""
    return Bench(nursery)
