from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from cloud.server.memory import MemoryCloud, open_cloud
from tests.postgresql import postgresql
from tests.unit.cloud import statements

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


@pytest.fixture(scope="session", autouse=True)
def captured_statements() -> Iterator[statements.Capture]:
    """Capture the statements of all tests for test_plans.py, which runs last."""
    with pytest.MonkeyPatch.context() as patch:
        yield statements.installed(patch.setattr)


@pytest.fixture
def whole_folder(request: pytest.FixtureRequest) -> bool:
    """Return whether all tests of this folder run: then they execute every statement of the cloud."""
    option, here = request.config.option, Path(__file__).parent
    selected = {item.path for item in request.session.items}
    return selected >= set(here.rglob("test_*.py")) and not (option.keyword or option.markexpr)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run test_plans.py last: it judges the statements of all tests before it."""
    items.sort(key=lambda item: item.path.name == "test_plans.py")
