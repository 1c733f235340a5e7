from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from cloud.memory import MemoryCloud, open_cloud
from tests.postgresql import postgresql

__all__ = ["postgresql"]


class Clock:
    """A time of day that tests set."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(microseconds=1)  # two calls never meet the same moment
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


BOTH: Final = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
"""Of a test that is about what one of the databases does not take."""


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    """What `open_cloud` takes: SQLite, or PostgreSQL for tests that ask for it, and for all with
    MACHINE_CLOUD_TESTS=postgresql.
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
    """The id of a machine called `rover`."""
    return await cloud.app("new_robot", name="rover", location=cloud.first.location)


@pytest.fixture
async def part(cloud: MemoryCloud, machine: str) -> str:
    """The id of its main part."""
    return (await cloud.app("get_robot_parts", robot_id=machine))[0]["id"]
