"""The audit log: every change has an entry, in the same transaction, without secrets."""

from __future__ import annotations

import csv
import inspect
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.domain.organizations.first import create_owner
from cloud.domain.permissions import audit
from cloud.domain.permissions.access import Role
from cloud.domain.permissions.audit import AuditQuery, AuditRecord
from cloud.domain.permissions.rules import READABLE, allow
from cloud.server.memory import MemoryCloud
from cloud.services.common import messages as m
from cloud.services.common.base import Service, guarded
from cloud.services.target import SERVICES
from cloud.store.sql import Sql
from cloud.values.author import KEY, Author
from cloud.web.pages import audit as audit_page
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import post, signed_in
from tests.unit.cloud.web.test_web_fleet import key_at

SECRET = "hunter2-hunter2"
READS = {
    "bounding", "certificate", "check", "config", "data", "device", "explain", "export", "file", "get", "has", "is",
    "list", "location", "log", "needs", "overview", "page", "place", "report", "resolve", "retention", "search",
    "sequences", "stored", "tags", "streaming", "tabular", "tail", "binary", "wait", "answer", "call", "optional",
    "captured", "arrangement", "redeem", "preview", "firing", "keep", "named", "suggested",
}  # fmt: skip


async def entries(cloud: MemoryCloud, **expected: Any) -> list[AuditRecord]:
    return await cloud.cloud.store.read(
        lambda sql: audit.entries(sql, cloud.first.organization, AuditQuery(**expected))
    )


async def test_the_actions_in_the_log_are_named_once(cloud: MemoryCloud, part: str) -> None:
    first = cloud.first.organization

    async def actions(owner: str) -> list[str]:
        return await cloud.cloud.store.read(lambda sql: audit.actions(sql, owner))

    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "other", cloud.cloud.clock()))
    for name in ("b", "a"):
        await cloud.app("update_robot_part", id=part, name=name)
    assert (await cloud.app("get_robot_part", id=part))["part"]["name"] == "a"
    assert await actions(first) == ["new_robot", "update_robot_part"]
    assert await actions(other.organization) == []
    machine = (await cloud.app("get_robot_part", id=part))["part"]["robot"]
    await cloud.app("new_robot_part", robot_id=machine, part_name="arm")
    with pytest.raises(MachineError) as caught:
        await cloud.app("update_robot_part", id=part, name="arm")
    assert caught.value.kind is ErrorKind.EXISTS


def test_every_method_is_classified_as_change_or_read() -> None:
    for cls in SERVICES.values():
        for name, _ in inspect.getmembers(cls, inspect.isfunction):
            if not name.startswith("_") and not hasattr(Service, name):
                word = name.partition("_")[0]
                assert (word in READS) != audit.is_change(name), f"{cls.__name__}.{name}: neither or both"


async def test_a_change_is_recorded_with_author_action_and_name(cloud: MemoryCloud, machine: str) -> None:
    await cloud.app("update_robot", id=machine, name="plane")
    await cloud.app("delete_robot", id=machine)
    deleted, renamed, created = await entries(cloud)
    assert (created.action, created.subject, created.detail["called"]) == ("new_robot", cloud.first.location, "Test")
    assert (created.detail["name"], created.detail["made"]) == ("rover", machine)
    assert (renamed.action, renamed.subject, renamed.detail["called"], renamed.detail["name"]) == (
        "update_robot",
        machine,
        "rover",
        "plane",
    )
    assert (deleted.action, deleted.detail["called"]) == ("delete_robot", "plane")
    assert {item.author for item in (created, renamed, deleted)} == {Author(KEY, cloud.first.id)}
    assert created.name == "owner"
    assert created.happened < renamed.happened < deleted.happened


async def test_reads_and_failed_calls_are_not_recorded(cloud: MemoryCloud, machine: str) -> None:
    before = len(await entries(cloud))
    await cloud.app("get_robot", id=machine)
    await cloud.app("list_keys", org_id=cloud.first.organization)
    with pytest.raises(MachineError):
        await cloud.app("new_robot", name="rover", location=cloud.first.location)
    with pytest.raises(MachineError):
        await cloud.app("delete_robot", id="nothing")
    assert len(await entries(cloud)) == before


async def test_the_entry_is_in_the_transaction_of_the_change(cloud: MemoryCloud) -> None:
    """If either the change or its entry fails, both are rolled back."""

    class Broken(Service):
        @allow(READABLE)
        async def delete_everything(self, organization_id: str) -> None:
            def work(sql: Sql) -> None:
                sql.run("UPDATE organizations SET name = 'gone'")

            await self.change(work)

    service = guarded(Broken)(cloud.cloud, Author(KEY, cloud.first.id))
    original, audit.note = audit.note, _refuse
    try:
        with pytest.raises(MachineError):
            await service.delete_everything(cloud.first.organization)
    finally:
        audit.note = original
    assert (await cloud.app("get_organization", organization_id=cloud.first.organization))["name"] == "Test"
    await service.delete_everything(cloud.first.organization)
    assert [entry.action for entry in await entries(cloud)] == ["delete_everything"]


def _refuse(*_: Any) -> None:
    raise MachineError("the disk is full", kind=ErrorKind.EXHAUSTED)


async def test_changes_by_pages_are_recorded_like_calls(cloud: MemoryCloud, machine: str) -> None:
    person = await signed_in(cloud)
    await post(person, f"/machines/{machine}/rename", name="boat")
    (newest, *_) = await entries(cloud)
    assert (newest.action, newest.detail["name"]) == ("update_robot", "boat")


async def test_the_audit_log_contains_no_secrets(cloud: MemoryCloud, part: str) -> None:
    document = {"components": [], "modules": [{"name": "m", "env": {"PASSWORD": SECRET}}]}
    await cloud.app("update_robot_part", id=part, name="", robot_config_json=json.dumps(document))
    await cloud.app("update_robot_part", id=part, name="", robot_config=document)
    changes = [{"path": "modules.0.env.TOKEN", "value": SECRET}]
    await cloud.app("set_config_property", robot_part_id=part, property_changes=changes)
    await cloud.app("update_organization_metadata", organization_id=cloud.first.organization, data={"pin": SECRET})
    created = await key_at(cloud, "organization", cloud.first.organization)
    rotated = await cloud.app("rotate_key", id=created[0])
    await cloud.app("rename_key", id=created[0], name=f"postgres://user:{SECRET}@host/db")
    secrets = await cloud.cloud.store.read(
        lambda sql: [row["secret"] for row in sql.rows("SELECT * FROM part_secrets")]
    )
    text = json.dumps(await cloud.cloud.store.read(lambda sql: [dict(row) for row in sql.rows("SELECT * FROM audit")]))
    for secret in (SECRET, created[1], rotated["key"], *secrets):
        assert secret not in text
    assert "modules.0.env.TOKEN" in text  # the path is logged, the value is not
    assert created[0] in text


async def test_changes_of_roles_are_described(cloud: MemoryCloud, machine: str) -> None:
    await key_at(cloud, "robot", machine)
    (newest, *_) = await entries(cloud)
    assert newest.action == "create_key"
    assert newest.detail["authorizations"] == [
        {"authorization_id": "robot_operator", "resource_type": "robot", "resource_id": machine}
    ]


async def test_entries_are_found_by_author_action_time_and_text(cloud: MemoryCloud, clock: Clock, machine: str) -> None:
    key = await key_at(cloud, "organization", cloud.first.organization, "owner")
    clock.now += timedelta(hours=1)
    later = clock.now
    from cloud.server.memory import APP

    await cloud.client(key[0]).call(APP, "", "new_robot", name="Drone_1", location=cloud.first.location)
    for expected, count in (
        ({"author": key[0]}, 1),
        ({"author": cloud.first.id}, 2),
        ({"action": "new_robot"}, 2),
        ({"text": "drone_"}, 1),
        ({"text": "dronex"}, 0),
        ({"text": "%"}, 0),
        ({"start": later}, 1),
        ({"end": later}, 2),
        ({"limit": 1}, 1),
        ({"before": 0}, 0),
    ):
        assert len(await entries(cloud, **expected)) == count, expected  # type: ignore[arg-type]


async def test_entries_belong_to_the_organization_that_was_changed(cloud: MemoryCloud) -> None:
    from cloud.server.memory import APP

    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    await cloud.client(other.id).call(APP, "", "new_robot", name="theirs", location=other.location)
    assert await entries(cloud) == []
    theirs = await cloud.cloud.store.read(lambda sql: audit.entries(sql, other.organization, AuditQuery()))
    assert [item.action for item in theirs] == ["new_robot"]


# ---- page


async def test_the_page_shows_changes_to_owners_only(cloud: MemoryCloud, machine: str) -> None:
    person = await signed_in(cloud)
    page = (await person.get("/audit")).text
    for text in ("new machine", "rover", "location Test", ">owner<"):
        assert text in page
    for role, kind, subject in (
        ("operator", "organization", cloud.first.organization),
        ("owner", "location", cloud.first.location),
    ):
        guard = await signed_in(cloud, await key_at(cloud, kind, subject, role))
        assert (await guard.get("/audit")).status == 403


async def test_rows_lead_to_the_object_and_to_the_difference(cloud: MemoryCloud, part: str) -> None:
    await cloud.app("update_robot_part", id=part, name="", robot_config_json='{"components": []}')
    fragment = (await cloud.app("create_fragment", name="gone", organization_id=cloud.first.organization))["id"]
    await cloud.app("delete_fragment", id=fragment)
    page = (await (await signed_in(cloud)).get("/audit")).text
    assert f'href="/machines/{part}"' in page
    assert f'<a href="/machines/{part}/history?from=1&amp;to=2#comparison">See the difference</a>' in page
    assert f'href="/fragments/{fragment}"' not in page  # it is deleted: there is no page
    assert f'title="{fragment}"' in page  # the whole id, of which the row shows the beginning
    assert f"{fragment[:8]}…" in page


async def test_a_save_without_a_change_and_a_fragment_name_their_revisions(cloud: MemoryCloud, part: str) -> None:
    for text in ('{"components": []}', '{"components": []}'):
        await cloud.app("update_robot_part", id=part, name="", robot_config_json=text)
    fragment = (await cloud.app("create_fragment", name="wheels", organization_id=cloud.first.organization))["id"]
    await cloud.app("update_fragment", id=fragment, name="", fragment_config_json='{"components": []}')
    revisions = [entry.detail.get("revision") for entry in await entries(cloud) if entry.action.startswith("update")]
    assert revisions == [2, None, 2]  # newest first: the fragment, the equal configuration, the changed one
    page = (await (await signed_in(cloud)).get("/audit")).text
    assert f"/fragments/{fragment}/history?from=1&amp;to=2#comparison" in page


async def test_all_matching_entries_as_a_file(cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_page, "EXPORTED", 2)
    for name in ("a", "=b", "c"):
        await cloud.app("create_location", organization_id=cloud.first.organization, name=name)
    await cloud.app("new_robot", name="rover", location=cloud.first.location)
    person = await signed_in(cloud)
    reply = await person.get("/audit.csv?action=create_location")
    assert reply.headers["content-disposition"] == 'attachment; filename="audit.csv"'
    header, *lines = csv.reader(io.StringIO(reply.text))
    assert tuple(header) == audit_page.COLUMNS
    assert [json.loads(line[-1])["name"] for line in lines] == ["c", "=b", "a"]
    assert {tuple(line[1:5]) for line in lines} == {("key", cloud.first.id, "owner", "create_location")}
    operator = await signed_in(cloud, await key_at(cloud, "organization", cloud.first.organization, "operator"))
    assert (await operator.get("/audit.csv")).status == 403
    assert (await person.get("/audit.csv?before=x")).status == 400


async def test_the_page_filters_and_pages(cloud: MemoryCloud) -> None:
    person = await signed_in(cloud)
    for number in range(audit.PAGE + 3):
        await cloud.app("new_robot", name=f"m{number:03}", location=cloud.first.location)
    first = (await person.get("/audit?action=new_robot")).text
    assert "m102" in first
    assert "m002" not in first
    older = first.partition("Older changes")[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
    second = (await person.get(older)).text
    assert "m002" in second
    assert "m003" not in second
    assert "m102" not in second
    assert (await person.get("/audit?before=x")).status == 400
    assert "No changes match" in (await person.get("/audit?text=nothing-like-it")).text


# ---- arguments in entries


def test_arguments_in_entries() -> None:
    result = audit.loggable(
        {
            "name": "n",
            "password": "p",
            "api_key": "k",
            "number": 3,
            "yes": True,
            "no": None,
            "empty": "",
            "when": datetime(2026, 1, 1, tzinfo=UTC),
            "data": {"a": 1},
            "document": '{"a": 1}',
            "robot_config_json": "x",
            "blob": b"123",
            "ids": ["a", "b"],
            "many": ["x"] * 50,
            "long": "y" * 500,
            "role": Role.OWNER,
            "change": m.ConfigPropertyChange("a.b", "secret"),
        }
    )
    assert result == {
        "name": "n",
        "password": "***",
        "api_key": "***",
        "number": 3,
        "yes": True,
        "when": "2026-01-01T00:00:00+00:00",
        "data": "…",
        "document": "…",
        "robot_config_json": "…",
        "blob": "…",
        "ids": ["a", "b"],
        "many": ["x"] * 20 + ["…"],
        "long": "y" * 200 + "…",
        "role": "owner",
        "change": {"path": "a.b"},
    }


@given(
    st.recursive(st.none() | st.integers() | st.text() | st.binary(), lambda inner: st.lists(inner) | st.tuples(inner))
)
def test_any_argument_can_be_recorded(value: Any) -> None:
    json.dumps(audit.loggable({"value": value}))
    assert isinstance(audit.created_id(value), str)


def test_a_created_key_is_never_recorded() -> None:
    from cloud.values.names import new_id, new_location_id, new_secret

    for _ in range(50):
        subject = new_id()
        assert audit.created_id((subject, new_secret())) == subject
        assert audit.created_id(new_secret()) == ""
        assert audit.created_id(new_location_id())
        assert audit.created_id(m.NewKey(subject, new_secret())) == subject


async def test_many_labels_in_a_row_are_one_entry(cloud: MemoryCloud, clock: Clock) -> None:
    first = cloud.first

    async def label(author: str, dataset: str) -> None:
        now = clock()
        await cloud.cloud.store.write(
            lambda sql: audit.note(
                sql, first.organization, Author(KEY, author), "set_annotations", dataset, {"called": "d"}, now
            )
        )

    for _ in range(50):
        await label("a", "one")
        await label("b", "one")
        clock.now += timedelta(minutes=9)
    await label("a", "other")
    clock.now += timedelta(minutes=11)
    await label("a", "one")
    results = await entries(cloud, action="set_annotations")
    assert [(each.author.name, each.subject, each.detail.get("times", 1)) for each in results] == [
        ("a", "one", 1),
        ("a", "other", 1),
        ("b", "one", 50),
        ("a", "one", 50),
    ]
    assert all(each.detail["called"] == "d" for each in results)
