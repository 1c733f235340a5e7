"""The transactions of a service: where a rule is checked and where a call is recorded, on a small service."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

import pytest

from cloud.domain.permissions import audit
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.audit import AuditQuery
from cloud.domain.permissions.rules import allow, operator, owner
from cloud.server.memory import MemoryCloud
from cloud.services.common.base import Service, guarded
from cloud.store.sql import Sql
from cloud.values.author import KEY, Author
from schema.errors import ErrorKind, MachineError

ROOT = Path(__file__).parents[4]
INSIDE = operator(ObjectKind.ORGANIZATION, "organization", inside=True)
CHANGE = owner(ObjectKind.ORGANIZATION, "organization")


@guarded
class Inside(Service):
    @allow(INSIDE)
    async def early(self, organization: str) -> Any:
        return await self.read(name)

    @allow(INSIDE)
    async def early_write(self, organization: str) -> Any:
        return await self.write(name)

    @allow(INSIDE)
    async def checked(self, organization: str) -> Any:
        return await self.read_checked(name), await self.read(name), await self.write(name)

    @allow(INSIDE)
    async def checked_twice(self, organization: str) -> Any:
        return await self.write_checked(name), await self.read_checked(name)

    @allow(INSIDE)
    async def nothing(self, organization: str) -> None:
        pass


@guarded
class Changes(Service):
    @allow(CHANGE)
    async def set_by_write(self, organization: str) -> None:
        await self.write(name)

    @allow(CHANGE)
    async def set_twice(self, organization: str) -> None:
        for _ in range(2):
            await self.change(name)
        await self.write(name)  # the call is recorded

    @allow(CHANGE)
    async def set_nothing(self, organization: str) -> None:
        pass

    @allow(CHANGE)
    async def set_and_fail(self, organization: str) -> None:
        def fail(sql: Sql) -> None:
            raise MachineError("a reason")

        await self.change(fail)


def name(sql: Sql) -> str:
    row = sql.row("SELECT name FROM organizations")
    assert row is not None
    return str(row["name"])


async def recorded(cloud: MemoryCloud) -> list[str]:
    """Return the calls that the audit log has of this organization."""
    query = AuditQuery()
    entries = await cloud.cloud.store.read(lambda sql: audit.entries(sql, cloud.first.organization, query))
    return [entry.action for entry in entries]


def us(cloud: MemoryCloud) -> Author:
    return Author(KEY, cloud.first.id)


async def test_a_rule_inside_is_checked_by_the_first_transaction(cloud: MemoryCloud) -> None:
    service, stranger = Inside(cloud.cloud, us(cloud)), Inside(cloud.cloud, Author(KEY, "nobody"))
    assert len(set(await service.checked(cloud.first.organization))) == 1
    with pytest.raises(MachineError) as caught:
        await stranger.checked(cloud.first.organization)
    assert caught.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("early", "not checked yet"),
        ("early_write", "not checked yet"),
        ("checked_twice", "checked before"),
        ("nothing", "returned without a transaction"),
    ],
)
async def test_a_wrong_order_is_an_error(cloud: MemoryCloud, method: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        await getattr(Inside(cloud.cloud, us(cloud)), method)(cloud.first.organization)


async def test_a_change_is_recorded_once_with_its_first_transaction(cloud: MemoryCloud) -> None:
    await Changes(cloud.cloud, us(cloud)).set_twice(cloud.first.organization)
    await Changes(cloud.cloud, us(cloud)).set_nothing(cloud.first.organization)
    assert await recorded(cloud) == ["set_nothing", "set_twice"]


async def test_a_change_that_fails_or_would_not_be_recorded(cloud: MemoryCloud) -> None:
    with pytest.raises(RuntimeError, match="call `change` instead"):
        await Changes(cloud.cloud, us(cloud)).set_by_write(cloud.first.organization)
    with pytest.raises(MachineError, match="a reason"):
        await Changes(cloud.cloud, us(cloud)).set_and_fail(cloud.first.organization)
    assert await recorded(cloud) == []


class Unchecked(Changes):
    async def more(self) -> None:
        pass


async def test_methods_that_no_rule_checks_cannot_be_reached(cloud: MemoryCloud) -> None:
    class Static(Service):
        @staticmethod
        async def get(organization: str) -> None: ...

    class Property(Service):
        @property
        def get(self) -> str:
            return "secret"

    for cls in (Unchecked, Static, Property):
        with pytest.raises(TypeError, match=r"without a rule: (more|get)"):
            guarded(cls)
        with pytest.raises(TypeError, match=f"{cls.__name__} are not checked"):
            cls(cloud.cloud, Author(KEY, cloud.first.id))


def test_no_code_of_the_cloud_makes_a_service_that_is_not_guarded() -> None:
    guarded_by_name: dict[str, bool] = {}
    for path in (ROOT / "cloud" / "services").rglob("*.py"):
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, Service) and value.__module__ == module.__name__:
                guarded_by_name[name] = "rules" in vars(value)
    unguarded = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.func.id}"
        for path in (ROOT / "cloud").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and not guarded_by_name.get(node.func.id, True)
    ]
    assert len(guarded_by_name) > 30
    assert unguarded == []
