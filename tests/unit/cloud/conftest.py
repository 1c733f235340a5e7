from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from cloud.server.memory import MemoryCloud, open_cloud
from tests.postgresql import postgresql

__all__ = ["postgresql"]


class Clock:
    """A wall clock that tests set."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(microseconds=1)  # two calls never return the same time
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


BOTH: Final = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
"""Run a test on both databases, for limits that only one of them has."""


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    """Return the argument of `open_cloud`: PostgreSQL for tests that request it, and for all tests with
    MACHINE_CLOUD_TESTS=postgresql; SQLite otherwise.
    """
    if "postgresql" not in (getattr(request, "param", ""), os.environ.get("MACHINE_CLOUD_TESTS")):
        return ""
    url: str = request.getfixturevalue("postgresql").fresh()
    return url


@pytest.fixture
async def cloud(clock: Clock, database: str) -> AsyncIterator[MemoryCloud]:
    async with open_cloud(clock, database) as opened:
        yield opened


@pytest.fixture
async def machine(cloud: MemoryCloud) -> str:
    """Create a machine named `rover` and return its id."""
    return await cloud.app("new_robot", name="rover", location=cloud.first.location)


@pytest.fixture
async def part(cloud: MemoryCloud, machine: str) -> str:
    """Return the id of the main part of `machine`."""
    return (await cloud.app("get_robot_parts", robot_id=machine))[0]["id"]
