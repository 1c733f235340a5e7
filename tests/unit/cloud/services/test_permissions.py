"""Every call and every route with every kind of caller agrees with its rule.

The calls come from the table of services that the port serves, the routes from the application. The test changes
nothing: a transaction that writes is rolled back once the caller was let through to it.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute

from cloud.domain.alerts import rules, states, subjects
from cloud.domain.alerts.life import Level, Observed, Tick
from cloud.domain.data import datasets
from cloud.domain.organizations import saved_queries as saved
from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.permissions import audit
from cloud.domain.permissions.access import SHARED, ObjectKind, Role
from cloud.domain.permissions.calling import CALL_A_MACHINE
from cloud.domain.permissions.rules import STANDARD, AccessRule, machine
from cloud.domain.training.jobs import NewJob, submit
from cloud.server.memory import MemoryCloud
from cloud.services.agents.installation import InstallationService
from cloud.services.common.base import Cloud
from cloud.services.configurations.editing import Editor
from cloud.services.data import data_messages as m
from cloud.services.data.contents import UploadContents
from cloud.services.data.datasync import DataSyncService
from cloud.services.machines.fleet import FleetService
from cloud.services.organizations.changes import ChangeService
from cloud.services.organizations.roles import RoleService
from cloud.services.reverse.opening import connection_for
from cloud.services.target import CALLS as RULED_CALLS
from cloud.services.target import SERVICES
from cloud.store.sql import Sql
from cloud.values.author import KEY, LOCATION, PART, Author
from cloud.web.app import application
from cloud.web.permissions import ROUTES, guarded_routes, names_of
from rpc.api import table
from rpc.api.methods import methods_of
from rpc.carrier import Peer
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import START, Uploads
from tests.unit.cloud.pages import HOST, Browser

ROOT = Path(__file__).resolve().parents[4]
T = TypeVar("T")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHARED_CALLS: Final = {
    "Editor": Editor,
    "FleetService": FleetService,
    "RoleService": RoleService,
    "ChangeService": ChangeService,
    "InstallationService": InstallationService,
}
TABLES: Final[Mapping[str, Mapping[str, AccessRule]]] = {
    **RULED_CALLS,
    **{name: service.rules for name, service in SHARED_CALLS.items()},
}
CALLS: Final = [(service, name) for service, rules in TABLES.items() for name in rules]
OWN: Final = "of the caller's own organization, or its own marks"
UNASKED_CHANGES: Final = {
    "set_fleet_view": "a view of the caller's own",
    "add_binary_data_to_dataset_by_ids": "labelling is an operator's work",
    "add_tags_to_binary_data_by_ids": "labelling is an operator's work",
    "add_tags_to_binary_data_by_filter": "labelling is an operator's work",
    "remove_tags_from_binary_data_by_ids": "labelling is an operator's work",
    "remove_tags_from_binary_data_by_filter": "labelling is an operator's work",
    "remove_favorite_machine": OWN,
}
"""Changes that every logged-in caller may begin: they affect only objects at which the caller has a role."""


GLANCE: Final = 0.01  # seconds to run an endless stream that the caller may read
PATIENCE: Final = 20.0  # seconds within which a refusal must arrive


class Begun(Exception):
    """Raised when a caller was let through to a change."""


class Dry:
    """A store that rolls back every write by raising Begun at its end."""

    def __init__(self, store: Any) -> None:
        self._store = store

    async def read(self, work: Callable[[Sql], T]) -> T:
        result: T = await self._store.read(work)
        return result

    async def write(self, work: Callable[[Sql], T]) -> T:
        def undone(sql: Sql) -> T:
            work(sql)
            raise Begun

        content: T = await self._store.write(undone)
        return content


@dataclass
class World:
    memory: MemoryCloud
    cloud: Cloud  # its store is Dry
    ids: Mapping[ObjectKind, str]
    callers: Mapping[str, Author]
    shown: Mapping[str, str]  # the token of each caller

    def has(self, caller: str, of: ObjectKind) -> tuple[Role, bool]:
        """Return the caller's role at the object of this kind, and whether the object belongs to its organization."""
        if caller in ("machine", "machine by its location"):
            return (Role.MACHINE if of is ObjectKind.PART else Role.NONE), True
        shared = of in SHARED
        roles = {
            "owner": (Role.OWNER, True),
            "operator": (Role.OPERATOR, True),
            "guest owner": (Role.OWNER if shared else Role.NONE, False),
            "guest operator": (Role.OPERATOR if shared else Role.NONE, False),
        }
        return roles.get(caller, (Role.NONE, False))


CALLERS: Final = (
    "stranger", "other machine", "machine", "machine by its location", "guest operator", "guest owner", "operator",
    "owner",
)  # fmt: skip


@pytest.fixture
async def world(cloud: MemoryCloud, machine: str, part: str) -> World:
    first, store = cloud.first, cloud.cloud.store
    guest = await store.write(lambda sql: create_owner(sql, "Guest", NOW))
    stranger = await store.write(lambda sql: create_owner(sql, "Stranger", NOW))
    operators = {
        owner: await store.write(
            lambda sql, owner=owner: create_key(sql, owner, "op", [Grant("operator", "organization", owner)], NOW)
        )
        for owner in (first.organization, guest.organization)
    }
    await cloud.app("share_location", location_id=first.location, organization_id=guest.organization)
    other = await cloud.app("new_robot", name="other", location=first.location)
    other_part = (await cloud.app("get_robot_parts", robot_id=other))[0]
    fragment = await cloud.app("create_fragment", name="arm", config={}, organization_id=first.organization)
    item = (await cloud.app("create_module", organization_id=first.organization, name="smooth"))["module_id"]
    secret = (await cloud.app("get_robot_part", id=part))["part"]["secret"]
    located = (await cloud.app("create_location_secret", location_id=first.location))["secrets"][0]["secret"]
    (file,) = [await Uploads(cloud, part).file(b"x")]
    dataset = await store.write(lambda sql: datasets.create(sql, first.organization, "set", START))
    query = await store.write(lambda sql: saved.create(sql, first.organization, "query", saved.SQL, "SELECT 1", START))
    task = NewJob(first.organization, dataset, "parts", "1")
    job = await store.write(lambda sql: submit(sql, task, Author(KEY, first.id), START))
    ids = {
        ObjectKind.JOB: job,
        ObjectKind.ORGANIZATION: first.organization,
        ObjectKind.LOCATION: first.location,
        ObjectKind.ROBOT: machine,
        ObjectKind.PART: part,
        ObjectKind.KEY: first.id,
        ObjectKind.FRAGMENT: fragment["id"],
        ObjectKind.ITEM: item,
        ObjectKind.FILE: file,
        ObjectKind.DATASET: dataset,
        ObjectKind.QUERY: query,
        ObjectKind.ALERT: await alert_at(cloud, part),
    }
    entries = {
        "owner": (KEY, first.id, first.key),
        "operator": (KEY, *operators[first.organization]),
        "guest owner": (KEY, guest.id, guest.key),
        "guest operator": (KEY, *operators[guest.organization]),
        "stranger": (KEY, stranger.id, stranger.key),
        "machine": (PART, part, secret),
        "machine by its location": (LOCATION, part, located),
        "other machine": (PART, other_part["id"], other_part["secret"]),
    }
    assert set(entries) == set(CALLERS)
    authors = {name: Author(kind, subject) for name, (kind, subject, _) in entries.items()}
    tokens = {
        name: await cloud.cloud.authenticator.sign_in(subject, kind, payload, peer=Peer())
        for name, (kind, subject, payload) in entries.items()
    }
    return World(cloud, replace(cloud.cloud, store=Dry(store)), ids, authors, tokens)


async def alert_at(cloud: MemoryCloud, part: str) -> str:
    """Let the built-in rule about offline machines fire at a part, and return the id of the alert."""

    def work(sql: Sql) -> str:
        record = rules.rule(sql, cloud.first.organization, "machine-offline")
        place = subjects.place_of(sql, part)
        assert place is not None
        events = [Observed(NOW, Level.BAD), Tick()]
        states.apply(sql, record, subjects.subject_at(place), events[:1], NOW)
        states.apply(sql, record, subjects.subject_at(place), events[1:], NOW + timedelta(hours=1))
        return states.open_alerts(sql, cloud.first.organization)[0].id

    return await cloud.cloud.store.write(work)


def expected(world: World, rule: AccessRule, caller: str) -> ErrorKind | None:
    """Return the kind of refusal that the rules demand, or None if the caller is let through."""
    if rule.of is None:
        return None
    role, home = world.has(caller, rule.of)
    if role is Role.NONE:
        return ErrorKind.NOT_FOUND
    if rule.own_secret and caller == "machine by its location":
        return ErrorKind.PERMISSION
    if rule.role is Role.MACHINE:
        return None if role is Role.MACHINE or (role is Role.OWNER and home) else ErrorKind.PERMISSION
    return None if role >= rule.role and (home or not rule.home) else ErrorKind.PERMISSION


# ---- calls


def test_every_call_is_in_the_table() -> None:
    served = {
        (service, name)
        for service, cls in SERVICES.items()
        for name in methods_of(table.SERVICES[service])
        if hasattr(cls, name)
    }
    assert len(served) > 130
    assert [item for item in sorted(served) if item not in CALLS] == []
    unserved = {(service, name) for service, name in CALLS if service in SERVICES} - served
    assert unserved <= {
        ("machine.cloud.v1.AlertService", "firing"),
        ("machine.cloud.v1.AlertService", "list_own_silences"),
        ("machine.cloud.v1.AlertService", "overview"),
        ("machine.cloud.v1.FleetService", "suggested_paths"),
        ("machine.cloud.v1.TriggerService", "captured_methods"),
        ("machine.cloud.v1.TriggerService", "overview"),
        ("machine.cloud.v1.TriggerService", "place"),
        ("machine.cloud.v1.TriggerService", "stored_deliveries"),
        ("machine.cloud.v1.TriggerService", "stored_delivery"),
        ("machine.cloud.v1.ReleaseService", "upload_release_file"),
        ("machine.cloud.v1.ReleaseService", "get_release_import"),
        ("viam.app.data.v1.DataService", "file"),
        ("viam.app.data.v1.DataService", "page_of_readings"),
        ("viam.app.data.v1.DataService", "tabular_series"),
        ("viam.app.data.v1.DataService", "tabular_answer"),
        ("viam.app.data.v1.DataService", "tabular_fields"),
        ("viam.app.data.v1.DataService", "list_sql_queries"),
        ("viam.app.data.v1.DataService", "get_sql_query"),
        ("viam.app.data.v1.DataService", "create_sql_query"),
        ("viam.app.data.v1.DataService", "update_sql_query"),
        ("viam.app.data.v1.DataService", "tags_of_newest_files"),
        ("viam.app.data.v1.DataService", "retention"),
        ("viam.app.data.v1.DataService", "set_retention"),
        ("viam.app.v1.AppService", "list_deprecated_versions"),
    }, "used by pages and uploads only"


async def nothing() -> AsyncIterator[bytes]:
    for piece in ():
        yield piece


def arguments(method: Any, rule: AccessRule, subject: str) -> dict[str, Any]:
    """Return the subject and a placeholder for each other required argument; values are checked only after the role."""
    created: dict[str, Any] = {}
    for name, first in inspect.signature(method).parameters.items():
        kind = str(first.annotation)
        if name == "self" or (first.default is not first.empty and name != rule.field):
            continue
        if name == rule.field:
            created[name] = subject
        elif "AsyncIterator" in kind:
            created[name] = nothing()
        elif kind.startswith("Mapping"):
            created[name] = {}
        elif kind.startswith("Sequence"):
            created[name] = []
        elif kind == "int" or kind.startswith("int |"):
            created[name] = 1
        else:
            created[name] = "x"
    return created


async def outcome(world: World, service: str, name: str, caller: str) -> ErrorKind | str:
    """Return the kind of the refusal, "begun" if the call reached a change, or "answered"."""
    rule = TABLES[service][name]
    cls = {**SERVICES, **SHARED_CALLS}[service]
    method = getattr(cls(world.cloud, world.callers[caller]), name)
    passed = arguments(method, rule, world.ids[rule.of] if rule.of is not None else "")
    try:
        if inspect.isasyncgenfunction(method):
            with trio.move_on_after(PATIENCE if expected(world, rule, caller) is not None else GLANCE):
                async with aclosing(method(**passed)) as items:
                    await anext(items)
        else:
            await method(**passed)
    except Begun:
        return "begun"
    except StopAsyncIteration:
        return "answered"
    except MachineError as error:
        return error.kind
    except (TypeError, AttributeError, ValueError, KeyError):
        return "answered"  # the call passed the guard and failed on a placeholder
    return "answered"


REFUSALS: Final = (ErrorKind.NOT_FOUND, ErrorKind.PERMISSION, ErrorKind.UNAUTHENTICATED)


async def test_every_call_follows_the_table_of_permissions(world: World) -> None:
    wrong, walked = [], 0
    for service, name in CALLS:
        rule = TABLES[service][name]
        for caller in CALLERS if rule.of is not None else ():
            kind, refused = await outcome(world, service, name, caller), expected(world, rule, caller)
            walked += 1
            if refused is not None and kind is not refused:
                wrong.append(f"{name} as {caller}: {kind}, not {refused}")
            if refused is None and kind in (ErrorKind.PERMISSION, ErrorKind.UNAUTHENTICATED):
                wrong.append(f"{name} as {caller}: {kind}, though the table lets it through")
    assert wrong == []
    assert walked > 700


async def test_changes_without_a_role_in_the_table_are_refused_before_they_begin(world: World) -> None:
    begun = {
        name
        for service, name in CALLS
        if TABLES[service][name].of is None and audit.is_change(name)
        for caller in CALLERS
        if caller not in ("owner", "guest owner", "stranger") and await outcome(world, service, name, caller) == "begun"
    }
    assert begun <= set(UNASKED_CHANGES), begun - set(UNASKED_CHANGES)


async def test_calls_without_a_key_are_refused_except_public_calls(cloud: MemoryCloud) -> None:
    standard = {path[1:].partition("/")[0] for path in STANDARD}
    assert {*RULED_CALLS, *standard} == set(cloud.router.names())
    paths = [item.path for service in RULED_CALLS for item in methods_of(table.SERVICES[service]).values()]
    refused = set()
    for path in (*paths, *STANDARD):
        try:
            cloud.cloud.authenticator.authorize(path, {})
        except GRPCError as error:
            refused.update({path} if error.status is Status.UNAUTHENTICATED else ())
    served = {path for path in STANDARD if cloud.router.get(path) is not None}
    assert served == set(STANDARD)
    assert {*paths, *STANDARD} - refused == {path for path, rule in STANDARD.items() if rule.public}


async def test_calls_without_a_key_are_refused(world: World) -> None:
    with pytest.raises(MachineError, match="needs a key") as caught:
        await world.cloud.authenticator.confirmed(None)
    assert caught.value.kind is ErrorKind.UNAUTHENTICATED


@pytest.mark.parametrize("name", sorted(DataSyncService.rules))
async def test_only_machines_and_owners_of_their_organization_upload(world: World, name: str) -> None:
    part = world.ids[ObjectKind.PART]
    metadata = m.UploadMetadata(part, "rdk:component:sensor", "s", "Readings", m.DataType.TABULAR_SENSOR)
    for caller in CALLERS:
        service = SERVICES["viam.app.datasync.v1.DataSyncService"](world.cloud, world.callers[caller])
        entry: dict[str, Any] = {
            "data_capture_upload": {
                "metadata": metadata,
                "sensor_contents": UploadContents(readings=[(None, None, '{"a":1}')]),
            },
            "streaming_data_capture_upload": {"upload_metadata": metadata, "pieces": nothing()},
            "file_upload": {"part_id": part, "contents": nothing()},
        }[name]
        refused = expected(world, machine("part_id"), caller)
        try:
            await getattr(service, name)(**entry)
            kind: ErrorKind | None = None
        except Begun:
            kind = None
        except MachineError as error:
            kind = error.kind
        assert kind is refused, caller


async def test_calls_to_a_machine_follow_the_rule(world: World) -> None:
    part = world.ids[ObjectKind.PART]
    for caller in CALLERS:
        refused = expected(world, CALL_A_MACHINE, caller)
        if caller == "machine by its location":
            refused = None
        with pytest.raises(MachineError) as caught:
            await connection_for(world.cloud, world.callers[caller], part)
        assert caught.value.kind is (refused or ErrorKind.UNAVAILABLE), caller  # the machine is offline
        assert ("is offline" in str(caught.value)) == (refused is None)


# ---- routes


def requests_of(world: World, routes: Sequence[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Yield the entry of the table and a path for each route."""
    for route in routes:
        for name in names_of(route):
            rule = ROUTES[name]
            assert isinstance(route, Route | WebSocketRoute)
            path = route.path
            subject = world.ids[rule.of] if rule.of is not None else "x"
            if rule.of is not None and "{" + rule.field not in path:
                path += f"?{rule.field}={subject}"
            while "{" in path:
                field = path.partition("{")[2].partition("}")[0]
                value = subject if field.partition(":")[0] == rule.field else "x"
                path = path.replace("{" + field + "}", value)
            yield name, path


async def ask(app: Any, name: str, path: str, token: str, *, refused: bool) -> int:
    """Return the status of the answer. For an accepted WebSocket, return the code with which it was closed, or 101 if
    it stayed open."""
    browser = Browser(app, host=HOST)
    method = name.partition(" ")[0]
    headers = {"origin": f"http://{HOST}", "content-type": "application/x-www-form-urlencoded"}
    headers |= {"authorization": f"Bearer {token}"} if token else {}
    if method != "WS":
        try:
            return (await browser.send(method, path, headers, b"")).status
        except Begun:
            return 200
    code = 101
    try:
        with trio.move_on_after(PATIENCE if refused else GLANCE):
            async with browser.live(path, headers) as page:
                if page.first["type"] != "websocket.accept":
                    code = int(page.first["status"])
                else:
                    message = await page.message()
                    code = message["code"] if message["type"] == "websocket.close" else 101
    except* Begun:
        pass
    return code


async def test_every_route_follows_the_table_of_permissions(world: World) -> None:
    statuses = {
        ErrorKind.NOT_FOUND: {404, 4404},
        ErrorKind.PERMISSION: {403, 4403},
    }
    app = application(world.cloud, loopback=True)
    wrong, walked = [], 0
    for name, path in requests_of(world, app._app.routes):
        rule = ROUTES[name]
        status = await ask(app, name, path, "", refused=not rule.public)
        if (status == 401) is rule.public and "signed link" not in rule.note:
            wrong.append(f"{name} without credentials: {status}")
        for caller in CALLERS if rule.of is not None else ():
            refused = expected(world, rule, caller)
            status = await ask(app, name, path, world.shown[caller], refused=refused is not None)
            walked += 1
            if refused is not None and status not in statuses[refused]:
                wrong.append(f"{name} as {caller}: {status}, not {refused}")
            if refused is None and rule.of is not None and status in (401, 403, 4401, 4403):
                wrong.append(f"{name} as {caller}: {status}, though the table lets it through")
    assert wrong == []
    assert walked > 200


async def test_a_route_without_an_entry_is_refused_when_the_cloud_starts(cloud: MemoryCloud) -> None:
    async def page(request: Any) -> PlainTextResponse:
        return PlainTextResponse("secret")

    routes = list(application(cloud.cloud, loopback=True)._app.routes)
    with pytest.raises(TypeError, match="GET /new"):
        guarded_routes(cloud.cloud, [*routes, Route("/new", page)])
    with pytest.raises(TypeError, match="POST /machines"):
        guarded_routes(cloud.cloud, [route for route in routes if getattr(route, "path", "") != "/machines"])


def test_the_page_of_roles_is_current() -> None:
    path = ROOT / "tools" / "gen_role_table.py"
    spec = importlib.util.spec_from_file_location("gen_role_table", path)
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    text = generator.page()
    assert generator.PAGE.read_text() == text, "run make generate"
    for name in ROUTES:
        assert f"| `{name}` |" in text
