"""Documents are parsed, changed and masked outside transactions, so that other organizations do not wait."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from cloud.server.memory import MemoryCloud
from cloud.services.configurations import configurations
from cloud.services.machines import machines
from cloud.services.organizations import organizations
from cloud.store.sqlite import SqliteHandle
from schema.errors import ErrorKind, MachineError

pytestmark = pytest.mark.usefixtures("_sqlite")


@pytest.fixture
def _sqlite(cloud: MemoryCloud) -> None:
    if not hasattr(cloud.cloud.store, "path"):
        pytest.skip("looks into SQLite's transactions")


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, set[bool]]]:
    """Record by function name whether calls happened inside a transaction."""
    values: dict[str, set[bool]] = {}
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
        (organizations, "metadata_text"),
    ):
        done = getattr(module, name)

        def noting(*args: Any, name: str = name, done: Callable[..., Any] = done, **more: Any) -> Any:
            values.setdefault(name, set()).add(inside[0])
            return done(*args, **more)

        monkeypatch.setattr(module, name, noting)
    return values


async def test_documents_are_processed_outside_transactions(
    cloud: MemoryCloud, part: str, noted: dict[str, set[bool]]
) -> None:
    change = {"path": "x", "value": 2}
    await cloud.app("update_robot_part", id=part, robot_config_json='{"x": 1, "password": "p"}')
    await cloud.app("get_robot_part", id=part)
    await cloud.app("create_robot_part_secret", part_id=part)
    await cloud.app("set_config_property", robot_part_id=part, property_changes=[change])
    await cloud.app("update_robot_part_metadata", id=part, data={"a": 1})
    assert noted == {key: {False} for key in ("shown", "shown_text", "changed", "decoded", "metadata_text")}


class Meanwhile:
    """Make another call right before each of the next `left` writes, by default a save."""

    def __init__(self, cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._cloud, self._part, self._write = cloud, part, cloud.cloud.store.write
        self.left, self._number, self._saving = 0, 0, False
        self.call: Callable[[], Awaitable[Any]] = self._save
        monkeypatch.setattr(cloud.cloud.store, "write", self)

    async def __call__(self, work: Any) -> Any:
        if self.left and not self._saving:
            self.left -= 1
            self._saving = True
            await self.call()
            self._saving = False
        return await self._write(work)

    async def _save(self) -> None:
        self._number += 1
        await self._cloud.app("update_robot_part", id=self._part, robot_config={"other": self._number})


async def test_a_property_is_set_in_a_concurrently_saved_document(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile(cloud, part, monkeypatch)
    meanwhile.left = 1
    change = {"path": "x", "value": 2}
    await cloud.app("set_config_property", robot_part_id=part, property_changes=[change])
    answer = await cloud.app("get_robot_part", id=part)
    assert json.loads(answer["config_json"]) == {"other": 1, "x": 2}


async def test_setting_a_property_gives_up_under_constant_saves(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile(cloud, part, monkeypatch)
    meanwhile.left = 1000
    with pytest.raises(MachineError, match="another caller saved the configuration") as caught:
        await cloud.app("set_config_property", robot_part_id=part, property_changes=[{"path": "x", "value": 2}])
    assert caught.value.kind is ErrorKind.PRECONDITION
    meanwhile.left = 0
    answer = await cloud.app("get_robot_part", id=part)
    assert "x" not in json.loads(answer["config_json"])


async def test_a_save_is_checked_outside_the_write_transaction(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, check = cloud.cloud.store.write, configurations.configurations.check_unmasked
    writing, seen = [False], list[bool]()

    async def noting_write(work: Any) -> Any:
        def noting(sql: Any) -> Any:
            writing[0] = True
            try:
                return work(sql)
            finally:
                writing[0] = False

        return await write(noting)

    def noting_check(*args: Any) -> None:
        seen.append(writing[0])
        check(*args)

    monkeypatch.setattr(cloud.cloud.store, "write", noting_write)
    monkeypatch.setattr(configurations.configurations, "check_unmasked", noting_check)
    await cloud.app("update_robot_part", id=part, robot_config={"x": 1})
    assert seen == [False]


async def test_a_save_replaces_a_concurrent_save(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile(cloud, part, monkeypatch)
    meanwhile.left = 2
    await cloud.app("update_robot_part", id=part, robot_config={"x": 1})
    history = await cloud.app("get_robot_part_history", id=part)
    assert [entry["old"]["robot_config"] for entry in history["history"]] == [{"other": 2}, {"other": 1}, {}]
    assert json.loads((await cloud.app("get_robot_part", id=part))["config_json"]) == {"x": 1}


async def test_a_save_succeeds_under_constant_saves(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile(cloud, part, monkeypatch)
    meanwhile.left = 1000
    await cloud.app("update_robot_part", id=part, robot_config={"x": 1})
    meanwhile.left = 0
    assert json.loads((await cloud.app("get_robot_part", id=part))["config_json"]) == {"x": 1}


async def test_a_save_based_on_a_revision_is_refused_after_a_concurrent_save(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    last_updated = (await cloud.app("get_robot_part", id=part))["part"]["last_updated"]
    meanwhile = Meanwhile(cloud, part, monkeypatch)
    meanwhile.left = 1
    with pytest.raises(MachineError, match="changed in the meantime") as caught:
        await cloud.app("update_robot_part", id=part, robot_config={"x": 1}, last_known_update=last_updated)
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert json.loads((await cloud.app("get_robot_part", id=part))["config_json"]) == {"other": 1}


async def test_a_concurrently_deleted_fragment_is_not_used(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fragment = await cloud.app(
        "create_fragment", name="shared", organization_id=cloud.first.organization, config={"a": 1}
    )
    meanwhile = Meanwhile(cloud, part, monkeypatch)
    meanwhile.call, meanwhile.left = partial(cloud.app, "delete_fragment", id=fragment["id"]), 1
    with pytest.raises(MachineError, match="there is no fragment") as caught:
        await cloud.app("update_robot_part", id=part, robot_config={"fragments": [fragment["id"]]})
    assert caught.value.kind is ErrorKind.INVALID
    assert json.loads((await cloud.app("get_robot_part", id=part))["config_json"]) == {}


async def test_a_caller_with_a_concurrently_deleted_key_saves_nothing(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    revoked = []

    def again(self: Any, sql: Any) -> None:
        revoked.append(True)
        raise MachineError("the key is void", kind=ErrorKind.UNAUTHENTICATED)

    monkeypatch.setattr(configurations.Configurations, "again", again)
    with pytest.raises(MachineError, match="the key is void"):
        await cloud.app("update_robot_part", id=part, robot_config={"x": 1})
    assert revoked == [True]
    monkeypatch.undo()
    assert json.loads((await cloud.app("get_robot_part", id=part))["config_json"]) == {}


async def test_a_saved_fragment_replaces_a_concurrent_save(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fragment = await cloud.app("create_fragment", name="f", organization_id=cloud.first.organization, config={"a": 1})
    meanwhile = Meanwhile(cloud, part, monkeypatch)
    meanwhile.call, meanwhile.left = partial(cloud.app, "update_fragment", id=fragment["id"], config={"other": 1}), 1
    saved = await cloud.app("update_fragment", id=fragment["id"], name="g", config={"x": 1})
    assert (saved["fragment"], saved["name"]) == ({"x": 1}, "g")
    history = (await cloud.app("get_fragment_history", id=fragment["id"]))["history"]
    assert [entry["old"]["fragment"] for entry in history[:2]] == [{"other": 1}, {"a": 1}]


async def test_a_fragment_does_not_use_a_concurrently_deleted_one(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = cloud.first.organization
    inner = await cloud.app("create_fragment", name="inner", organization_id=owner, config={"a": 1})
    meanwhile = Meanwhile(cloud, part, monkeypatch)
    meanwhile.call, meanwhile.left = partial(cloud.app, "delete_fragment", id=inner["id"]), 1
    with pytest.raises(MachineError, match="there is no fragment"):
        await cloud.app("create_fragment", name="outer", organization_id=owner, config={"fragments": [inner["id"]]})
    assert (await cloud.app("list_fragments", organization_id=owner))["fragments"] == []
