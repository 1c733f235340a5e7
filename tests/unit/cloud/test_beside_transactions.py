"""Parsing, changing and masking of documents happens beside transactions, for which other organizations wait."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cloud.memory import MemoryCloud
from cloud.services import configurations, machines, organizations
from cloud.store.sqlite import SqliteHandle
from schema.errors import ErrorKind, MachineError

pytestmark = pytest.mark.usefixtures("_sqlite")


@pytest.fixture
def _sqlite(cloud: MemoryCloud) -> None:
    if not hasattr(cloud.cloud.store, "path"):
        pytest.skip("looks into SQLite's transactions")


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, set[bool]]]:
    """Whether some functions were called in a transaction, by their names."""
    found: dict[str, set[bool]] = {}
    inside = [False]

    @contextmanager
    def transaction() -> Iterator[None]:
        inside[0] = True
        try:
            yield
        finally:
            inside[0] = False

    result = SqliteHandle.result

    def noting_result(self: SqliteHandle, work: Any) -> Any:
        with transaction():
            return result(self, work)

    monkeypatch.setattr(SqliteHandle, "result", noting_result)
    for module, name in (
        (machines, "shown"),
        (machines, "shown_text"),
        (configurations, "changed"),
        (configurations, "decoded"),
        (organizations, "kept_metadata"),
    ):
        done = getattr(module, name)

        def noting(*args: Any, name: str = name, done: Callable[..., Any] = done, **more: Any) -> Any:
            found.setdefault(name, set()).add(inside[0])
            return done(*args, **more)

        monkeypatch.setattr(module, name, noting)
    return found


async def test_documents_are_worked_on_beside_transactions(
    cloud: MemoryCloud, part: str, noted: dict[str, set[bool]]
) -> None:
    change = {"path": "x", "value": 2}
    await cloud.app("update_robot_part", id=part, robot_config_json='{"x": 1, "password": "p"}')
    await cloud.app("get_robot_part", id=part)
    await cloud.app("create_robot_part_secret", part_id=part)
    await cloud.app("set_config_property", robot_part_id=part, property_changes=[change])
    await cloud.app("update_robot_part_metadata", id=part, data={"a": 1})
    assert noted == {key: {False} for key in ("shown", "shown_text", "changed", "decoded", "kept_metadata")}


class Meanwhile:
    """Another save just before a write that follows, as often as there are some left."""

    def __init__(self, cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._cloud, self._part, self._write = cloud, part, cloud.cloud.store.write
        self.left, self._number, self._saving = 0, 0, False
        monkeypatch.setattr(cloud.cloud.store, "write", self)

    async def __call__(self, work: Any) -> Any:
        if self.left and not self._saving:
            self.left -= 1
            self._saving = True
            self._number += 1
            await self._cloud.app("update_robot_part", id=self._part, robot_config={"other": self._number})
            self._saving = False
        return await self._write(work)


async def test_a_property_is_set_in_what_others_saved_meanwhile(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile(cloud, part, monkeypatch)
    meanwhile.left = 1
    change = {"path": "x", "value": 2}
    await cloud.app("set_config_property", robot_part_id=part, property_changes=[change])
    found = await cloud.app("get_robot_part", id=part)
    assert json.loads(found["config_json"]) == {"other": 1, "x": 2}


async def test_a_property_is_not_set_while_others_save_again_and_again(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile(cloud, part, monkeypatch)
    meanwhile.left = 1000
    with pytest.raises(MachineError, match="others saved the configuration") as caught:
        await cloud.app("set_config_property", robot_part_id=part, property_changes=[{"path": "x", "value": 2}])
    assert caught.value.kind is ErrorKind.PRECONDITION
    meanwhile.left = 0
    found = await cloud.app("get_robot_part", id=part)
    assert "x" not in json.loads(found["config_json"])
