"""Calls to a machine through the cloud: with real connections on loopback between all three."""

from __future__ import annotations

import base64
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpcore
import pytest
import trio
import trio.testing
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.status_pb2 import Status as StatusMessage
from grpclib.const import Status
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request

from cloud.domain.machines.machines import note_seen
from cloud.domain.permissions import audit
from cloud.server.memory import MemoryCloud
from cloud.services.reverse.calls import PART, MachineCalls
from cloud.work.reverse import Reverses
from rpc.access.auth import LOCATION_SECRET
from rpc.client.channel import Channel
from rpc.limits import Limits
from rpc.status import STATUS_OF_KIND
from tests.unit.cloud.pages import browser
from tests.unit.cloud.replicas import operator_key
from tests.unit.cloud.services.reverse.site import DOMAIN, Site, site
from tests.unit.cloud.web.test_revocation_streams import CHANGES
from tests.unit.cloud.web.test_web_machine import machine_token
from tests.unit.rpc.echo import PATH, Stub
from tests.unit.rpc.test_calls import refused
from tests.unit.rpc.web_calls import WebCalls

SETTINGS = b"\0\0\0\4\0\0\0\0\0"  # an empty frame of HTTP/2


@pytest.fixture
async def opened(cloud: MemoryCloud, tmp_path: Path) -> AsyncIterator[Site]:
    async with site(cloud, tmp_path) as open_site:
        yield open_site


async def every_kind(stub: Any, **options: Any) -> None:
    assert (await stub.Echo(Request(host="hello"), **options)).valid_host == "hello"
    assert [len(reply.valid_host) for reply in await stub.Many(Request(host="40,5"), **options)] == [5] * 40
    assert (await stub.Collect([Request(host="abc")] * 40, **options)).valid_host == "120"
    assert (await stub.Collect([], **options)).valid_host == "0"
    texts = [str(number) for number in range(40)]
    replies = await stub.Bidi([Request(host=text) for text in texts], **options)
    assert [reply.valid_host for reply in replies] == texts
    text = "x" * 3_000_000  # larger than every window
    assert (await stub.Echo(Request(host=text), **options)).valid_host == text


async def test_all_kinds_of_calls(opened: Site, part: str) -> None:
    machine = await opened.machine(part)
    async with opened.caller(part) as stub:
        await every_kind(stub)
    assert [(caller.entity, caller.kind) for caller in machine.callers] == [(opened.cloud.first.id, "api-key")]


async def test_all_kinds_of_calls_with_grpc_web(opened: Site, part: str) -> None:
    await opened.machine(part)
    port = int(opened.url.rpartition(":")[2])

    def connect() -> trio.SocketStream:
        plain = socket.create_connection(("127.0.0.1", port))
        plain.setblocking(False)
        return trio.SocketStream(trio.socket.from_stdlib_socket(plain))

    async with opened.caller(part) as stub, trio.open_nursery() as nursery:
        token = dict(await stub.channel.credential_headers())
        stub = Stub(WebCalls(nursery, connect, Limits()))
        await every_kind(stub, metadata={**token, PART: part})
        error = await refused(stub.Fail(Request(host="grpc"), metadata={**token, PART: part}))
        assert (error.status, error.message) == (Status.NOT_FOUND, "nö 100%\n")
        nursery.cancel_scope.cancel()


async def test_a_machine_sets_no_http_fields_for_browsers(opened: Site, part: str) -> None:
    machine = await opened.machine(part)

    async def answer(stream: Any) -> None:
        await stream.recv_message()
        fields = {
            "set-cookie": "session=stolen",
            "viam-smrn": "motor",
            "data-bin": b"1",
            "location": "https://evil.test",
        }
        await stream.send_initial_metadata(metadata=fields)
        await stream.send_message(stream._handler.reply_type(valid_host="x"))

    handlers = machine.core.router
    handlers[PATH + "Echo"] = handlers[PATH + "Echo"]._replace(func=answer)  # type: ignore[index]
    async with opened.caller(part) as stub:
        token = dict(await stub.channel.credential_headers())
        headers = {"content-type": "application/grpc-web+proto", PART: part, **token}
        async with httpcore.AsyncConnectionPool() as pool:
            url = f"{opened.url}{PATH}Echo"
            reply = await pool.request("POST", url, headers=list(headers.items()), content=b"\0\0\0\0\0")
    names = {name.decode() for name, _ in reply.headers}
    assert {"viam-smrn", "data-bin"} <= names
    assert not names & {"set-cookie", "location"}


async def test_an_idle_connection_makes_room_for_another_caller(
    opened: Site, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.services.reverse.opening.CONNECTIONS", 1)
    await opened.machine(part)
    other = await opened.cloud.cloud.store.write(lambda sql: operator_key(sql, opened.cloud))
    for key in (None, other, None):
        async with opened.caller(part, key) as stub:
            assert (await stub.Echo(Request(host="x"))).valid_host == "x"


async def test_a_machine_is_addressed_by_its_host_name(opened: Site, part: str) -> None:
    await opened.machine(part)
    for host in (f"rover-{part}.{DOMAIN}", part, f"Rover-{part}.{DOMAIN.upper()}"):
        async with opened.caller(part, host=host) as stub:
            assert (await stub.Echo(Request(host="hello"))).valid_host == "hello"


async def test_metadata_and_status_pass_unchanged(opened: Site, part: str) -> None:
    machine = await opened.machine(part)
    sent = {"word": "value", "data-bin": b"\0\1\xff"}
    async with opened.caller(part) as stub:
        await stub.Echo(Request(host="x"), metadata=sent)
        assert dict(machine.service.seen[0].metadata) == sent  # neither the token nor the id of the part
        assert machine.service.seen[0].identity.entity == opened.cloud.first.id
        error = await refused(stub.Fail(Request(host="grpc")))
        assert (error.status, error.message) == (Status.NOT_FOUND, "nö 100%\n")
        assert [detail.valid_host for detail in error.details] == ["detail"]
        async with stub.Fail.open() as stream:
            await stream.send_message(Request(host="trailing"), end=True)
            await stream.recv_initial_metadata()
            assert dict(stream.initial_metadata) == {"first": "1", "data-bin": b"\0\xff"}
            error = await refused(stream.recv_trailing_metadata())
            assert dict(stream.trailing_metadata) == {"last": "2"}
        assert (error.status, error.message) == (Status.DATA_LOSS, "lost")
        error = await refused(stub.Missing(Request()))
        assert (error.status, error.message) == (Status.UNIMPLEMENTED, f"no method {PATH}Missing")


async def test_details_of_a_type_that_the_cloud_does_not_know_pass(opened: Site, part: str) -> None:
    machine = await opened.machine(part)
    details = StatusMessage(code=5, details=[AnyMessage(type_url="type.test/unknown.Type", value=b"\1\2")])
    encoded = base64.b64encode(details.SerializeToString()).decode().rstrip("=")

    async def answer(stream: Any) -> None:
        await stream.recv_message()
        stream.send_status(Status.NOT_FOUND, [("grpc-message", "no"), ("grpc-status-details-bin", encoded)])

    handlers = machine.core.router
    handlers[PATH + "Echo"] = handlers[PATH + "Echo"]._replace(func=answer)  # type: ignore[index]
    async with opened.caller(part) as stub, stub.Echo.open() as stream:
        await stream.send_message(Request(), end=True)
        assert (await refused(stream.recv_message())).status is Status.NOT_FOUND
        assert dict(stream._response.trailer_fields)["grpc-status-details-bin"] == encoded
        await stream.cancel()


async def test_the_deadline_and_the_end_of_a_call_reach_the_machine(opened: Site, part: str) -> None:
    machine = await opened.machine(part)
    async with opened.caller(part) as stub:
        await stub.Echo(Request(host="x"), timeout=100)
        assert 90 < machine.service.seen[0].deadline.time_remaining() <= 100
        assert (await refused(stub.Hang(Request(), timeout=0.2))).status is Status.DEADLINE_EXCEEDED
        await machine.service.cancelled.wait()
        machine.service.started, machine.service.cancelled = trio.Event(), trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stub.Hang, Request())
            await machine.service.started.wait()
            nursery.cancel_scope.cancel()
        await machine.service.cancelled.wait()


async def test_the_end_of_a_callers_connection_ends_its_calls_on_the_machine(opened: Site, part: str) -> None:
    machine = await opened.machine(part)
    async with trio.open_nursery() as nursery:
        async with opened.caller(part) as stub:

            async def call() -> None:
                assert (await refused(stub.Hang(Request()))).status is Status.UNAVAILABLE

            nursery.start_soon(call)
            await machine.service.started.wait()
        await machine.service.cancelled.wait()


async def test_a_caller_that_does_not_read_slows_the_machine_down(opened: Site, part: str) -> None:
    machine = await opened.machine(part)
    sent = 0

    async def many(stream: Any) -> None:
        nonlocal sent
        reply = stream._handler.reply_type(valid_host="x" * 100_000)
        await stream.recv_message()
        for _ in range(200):
            await stream.send_message(reply)
            sent += 1

    async def stalled() -> None:
        before = -1
        while before != sent:
            before = sent
            await trio.sleep(0.2)  # longer than all that has been sent takes

    handlers = machine.core.router
    handlers[PATH + "Many"] = handlers[PATH + "Many"]._replace(func=many)  # type: ignore[index]
    async with opened.caller(part, limits=Limits(stream_window=70_000)) as stub, stub.Many.open() as stream:
        await stream.send_message(Request(), end=True)
        assert len((await stream.recv_message()).valid_host) == 100_000
        await stalled()
        assert sent < 100  # what the windows and the buffers of four sockets hold
        assert len([reply async for reply in stream]) == 199
    (reverse,) = opened.cloud.cloud.reverses._reverses.values()
    assert reverse.connection is not None
    async with opened.caller(part, limits=Limits(stream_window=70_000)) as stub:
        async with stub.Many.open() as stream:
            await stream.send_message(Request(), end=True)
            await stream.recv_message()
            await stalled()
            assert reverse.connection.budget.used > 0
        while reverse.connection.streams:
            await trio.testing.wait_all_tasks_blocked(0.01)
    assert reverse.connection.budget.used == 0, "what a caller leaves unread is freed"


# ---- failures


async def test_a_machine_that_vanishes_ends_its_calls(opened: Site, part: str) -> None:
    machine = await opened.machine(part)
    async with opened.caller(part) as stub, trio.open_nursery() as nursery:
        errors = []

        async def call() -> None:
            errors.append(await refused(stub.Hang(Request())))

        nursery.start_soon(call)
        await machine.service.started.wait()
        machine.serving[0].cancel()
        while not errors:
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert errors[0].status is Status.UNAVAILABLE
        assert (await stub.Echo(Request(host="again"))).valid_host == "again"
        assert len(machine.callers) == 2


async def test_a_machine_that_is_offline(opened: Site, part: str) -> None:
    async with opened.caller(part) as stub:
        error = await refused(stub.Echo(Request()))
    assert error.status is Status.UNAVAILABLE
    assert error.message == "machine rover-main is offline: start its machine-server, and check its network"


async def test_a_machine_that_does_not_open_a_connection(
    opened: Site, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.work.reverse.WAIT", 0.2)
    machine = await opened.machine(part)
    machine.source.answer_calls(lambda message: None)
    async with opened.caller(part) as stub:
        errors = []

        async def call() -> None:
            errors.append(await refused(stub.Echo(Request())))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(call)
        assert {error.status for error in errors} == {Status.UNAVAILABLE}
        assert {error.message for error in errors} == {
            "machine rover-main did not open a connection for the call within 0.2 s: "
            "try again; if it persists, see the log of its machine-server"
        }
        machine.source.answer_calls(machine.calls.requested)
        assert (await stub.Echo(Request(host="now"))).valid_host == "now"


async def test_a_connection_closes_after_its_clients(opened: Site, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.work.reverse.LINGER", 0.1)
    machine = await opened.machine(part)
    async with opened.caller(part) as staying:
        await staying.Echo(Request(host="x"))
        async with opened.caller(part) as leaving:
            await leaving.Echo(Request(host="x"))
        await trio.sleep(0.3)  # the other client is still connected, though it makes no calls
        assert len(machine.core._connections) == 1
    while machine.core._connections:
        await trio.testing.wait_all_tasks_blocked(0.01)
    assert len(machine.callers) == 1
    assert not opened.cloud.cloud.reverses._reverses


async def test_a_call_waits_for_a_machine_that_reconnects(opened: Site, part: str) -> None:
    cloud = opened.cloud.cloud
    await cloud.store.write(lambda sql: note_seen(sql, part, cloud.clock()))  # it was here a moment ago
    async with opened.caller(part) as stub, trio.open_nursery() as nursery:
        replies = []

        async def call() -> None:
            replies.append(await stub.Echo(Request(host="x")))

        nursery.start_soon(call)
        while not cloud.reverses.awaited(part):
            await trio.testing.wait_all_tasks_blocked(0.01)
        machine = await opened.machine(part)
    assert [reply.valid_host for reply in replies] == ["x"]
    assert len(machine.callers) == 1


async def test_callers_that_begin_together_share_a_connection(opened: Site, part: str) -> None:
    machine = await opened.machine(part)
    async with opened.caller(part) as first, opened.caller(part) as second, trio.open_nursery() as nursery:
        for stub in (first, second) * 5:
            nursery.start_soon(stub.Echo, Request(host="x"))
    assert len(machine.callers) == 1
    other = await opened.cloud.cloud.store.write(lambda sql: operator_key(sql, opened.cloud))
    async with opened.caller(part, other) as stub:
        await stub.Echo(Request(host="x"))
    assert [caller.entity for caller in machine.callers] == [opened.cloud.first.id, other[0]]


async def test_an_idle_connection_is_closed(opened: Site, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.web.api.serve.IDLE", 0.1)
    machine = await opened.machine(part)
    async with opened.caller(part) as stub:
        for count in (1, 2):
            await stub.Echo(Request(host="x"))
            assert len(machine.callers) == count
            while opened.cloud.cloud.reverses._reverses:
                await trio.testing.wait_all_tasks_blocked(0.01)
    assert not machine.core._connections


async def test_the_limits_of_calls(opened: Site, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.services.reverse.calls.CALLS_OF_KEY", 1)
    monkeypatch.setattr("cloud.services.reverse.opening.CONNECTIONS", 1)
    machine = await opened.machine(part)
    other = await opened.cloud.cloud.store.write(lambda sql: operator_key(sql, opened.cloud))
    async with opened.caller(part) as stub, opened.caller(part, other) as second, trio.open_nursery() as nursery:
        nursery.start_soon(stub.Hang, Request())
        await machine.service.started.wait()
        assert (await refused(stub.Echo(Request()))).status is Status.RESOURCE_EXHAUSTED
        error = await refused(second.Echo(Request()))
        assert error.status is Status.RESOURCE_EXHAUSTED
        assert "1 callers are connected" in (error.message or "")
        nursery.cancel_scope.cancel()


async def test_a_request_that_is_too_large(cloud: MemoryCloud, part: str, tmp_path: Path) -> None:
    limits = type(cloud.cloud.limits)(message=100_000)
    async with site(cloud, tmp_path, limits=limits) as opened:
        await opened.machine(part)
        async with opened.caller(part) as stub:
            assert (await stub.Echo(Request(host="x" * 90_000))).valid_host == "x" * 90_000
            for call in (stub.Collect([Request(host="x" * 100_001)]), stub.Many(Request(host="1,100001"))):
                assert (await refused(call)).status is Status.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("addressed", [True, False], ids=["with an address", "without"])
async def test_a_machine_that_is_connected_to_another_replica(
    cloud: MemoryCloud, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, addressed: bool
) -> None:
    monkeypatch.setattr("cloud.work.reverse.WAIT", 10.0 if addressed else 0.3)
    other = MemoryCloud(replace(cloud.cloud, reverses=Reverses()), cloud.first)
    async with site(cloud, tmp_path) as near, site(other, tmp_path, replica=addressed) as far:
        await near.machine(part)
        await cloud.cloud.store.write(lambda sql: note_seen(sql, part, cloud.cloud.clock(), {}))
        async with far.caller(part) as stub:
            if addressed:
                assert (await stub.Echo(Request(host="x"))).valid_host == "x"
            else:
                assert (await refused(stub.Echo(Request()))).status is Status.UNAVAILABLE


# ---- who may call


async def test_a_caller_without_credentials(opened: Site, part: str) -> None:
    await opened.machine(part)
    async with Channel(opened.url, headers=((PART, part),)) as channel:
        for path in (PATH + "Echo", "/grpc.health.v1.Health/Check"):
            call = channel.request(path, Stub(channel).Echo._cardinality, Request, Request)

            async def send(call: Any = call) -> None:
                async with call as stream:
                    await stream.send_message(Request(), end=True)
                    await stream.recv_message()

            assert (await refused(send())).status is Status.UNAUTHENTICATED


async def test_signalling_and_reflection_at_a_machine(opened: Site, part: str) -> None:
    calls = MachineCalls(opened.cloud.cloud)
    for path, routed in (
        ("/proto.rpc.webrtc.v1.SignalingService/Call", False),  # answered by the cloud, with its own limits
        ("/proto.rpc.v1.AuthService/Authenticate", True),
        ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", True),
    ):
        assert (calls.route({":path": path, PART: part}) is not None) is routed
        assert calls.route({":path": path, ":authority": "cloud.test"}) is None


async def test_secrets_of_machines(opened: Site, part: str) -> None:
    cloud = opened.cloud
    await opened.machine(part)
    neighbour = await cloud.app("new_robot", name="neighbour", location=cloud.first.location)
    other = (await cloud.app("get_robot_parts", robot_id=neighbour))[0]["id"]
    location = await cloud.app("create_location_secret", location_id=cloud.first.location)
    secret = location["secrets"][0]["secret"]
    for entity, value, kind, expected in (
        (part, await opened.secret_of(part), "robot-secret", Status.PERMISSION_DENIED),
        (other, await opened.secret_of(other), "robot-secret", Status.NOT_FOUND),
        (other, secret, LOCATION_SECRET, Status.NOT_FOUND),
        (part, secret, LOCATION_SECRET, None),
        (f"rover-{part}.{DOMAIN}", secret, LOCATION_SECRET, None),
    ):
        async with opened.caller(part, (entity, value), kind=kind) as stub:
            if expected is None:
                assert (await stub.Echo(Request(host="x"))).valid_host == "x"
            else:
                assert (await refused(stub.Echo(Request()))).status is expected


@pytest.mark.parametrize("change", ["deleted", "without role"])
async def test_calls_end_when_their_caller_may_no_longer_call(opened: Site, part: str, change: str) -> None:
    do, kind = CHANGES[change]
    cloud = opened.cloud
    machine = await opened.machine(part)
    key = await cloud.cloud.store.write(lambda sql: operator_key(sql, cloud))
    async with opened.caller(part, key) as stub, opened.caller(part) as owner, trio.open_nursery() as nursery:
        errors = []

        async def call() -> None:
            errors.append(await refused(stub.Hang(Request())))

        nursery.start_soon(call)
        await machine.service.started.wait()
        async with owner.Bidi.open() as stream:
            await stream.send_message(Request(host="1"))
            await stream.recv_message()
            await do(cloud, key[0])
            await machine.service.cancelled.wait()
            while not errors:
                await trio.testing.wait_all_tasks_blocked(0.01)
            await stream.send_message(Request(host="2"), end=True)  # the calls of others continue
            assert (await stream.recv_message()).valid_host == "2"
        assert errors[0].status is STATUS_OF_KIND[kind]
        assert (await refused(stub.Echo(Request()))).status is errors[0].status


async def test_calls_are_recorded_once_for_each_method(opened: Site, part: str) -> None:
    cloud = opened.cloud
    await opened.machine(part)
    async with opened.caller(part) as stub:
        for _ in range(3):
            await stub.Echo(Request(host="secret"))
        await stub.Collect([])
    query = audit.AuditQuery(action="call_machine")
    entries = await cloud.cloud.store.read(lambda sql: audit.entries(sql, cloud.first.organization, query))
    assert [(entry.author.name, entry.subject, entry.detail["method"]) for entry in entries] == [
        (cloud.first.id, part, PATH + "Collect"),
        (cloud.first.id, part, PATH + "Echo"),
    ]
    assert "secret" not in str(entries)


# ---- the connection of the machine


@pytest.mark.parametrize("raw", [b"HTTP/1.1 400 Bad Request\r\n\r\n", SETTINGS, bytes(1000)])
async def test_a_machine_that_does_not_speak_http2(opened: Site, part: str, raw: bytes) -> None:
    machine = await opened.machine(part)
    machine.raw = raw
    async with opened.caller(part) as stub:
        silent = raw == SETTINGS  # valid, but nothing follows; the others end the connection
        error = await refused(stub.Hang(Request(), timeout=0.5 if silent else None))
        assert error.status is (Status.DEADLINE_EXCEEDED if silent else Status.UNAVAILABLE)
        machine.raw = b""
        for reverse in opened.cloud.cloud.reverses._reverses.values():
            if reverse.connection is not None:
                reverse.connection.close()
        assert (await stub.Echo(Request(host="x"))).valid_host == "x"


async def test_a_machine_signs_in_again_if_its_token_is_refused(opened: Site, part: str) -> None:
    machine = await opened.machine(part)
    machine.calls._token = (("authorization", "Bearer outdated"),)
    async with opened.caller(part) as stub:
        assert (await stub.Echo(Request(host="x"))).valid_host == "x"
    assert machine.calls._token != (("authorization", "Bearer outdated"),)


async def test_the_calls_of_a_machine_end_with_its_secret(opened: Site, part: str) -> None:
    machine = await opened.machine(part)
    async with opened.caller(part) as stub, trio.open_nursery() as nursery:
        errors = []

        async def call() -> None:
            errors.append(await refused(stub.Hang(Request())))

        nursery.start_soon(call)
        await machine.service.started.wait()
        both = (await opened.cloud.app("create_robot_part_secret", part_id=part))["secrets"]
        await opened.cloud.app("delete_robot_part_secret", part_id=part, secret_id=both[-1]["id"])
    assert errors[0].status is Status.UNAVAILABLE


async def test_only_the_machine_opens_its_connections(opened: Site, part: str) -> None:
    cloud = opened.cloud
    machine = await opened.machine(part)
    neighbour = await cloud.app("new_robot", name="neighbour", location=cloud.first.location)
    other = (await cloud.app("get_robot_parts", robot_id=neighbour))[0]["id"]
    requests: list[str] = []
    machine.source.answer_calls(lambda message: requests.append(message["id"]))
    async with opened.caller(part) as stub, trio.open_nursery() as nursery:
        nursery.start_soon(stub.Echo, Request(host="x"))
        while not requests:
            await trio.testing.wait_all_tasks_blocked(0.01)
        request = requests[0]
        for token, subject, id_, status in (
            (await machine_token(cloud, other), part, request, 404),
            (await machine_token(cloud, other), other, request, 404),
            (await machine_token(cloud, part), part, "guess", 404),
            ("", part, request, 401),
        ):
            headers = {"authorization": f"Bearer {token}"} if token else {}
            async with browser(cloud).live(f"/machine/v1/serve?part={subject}&request={id_}", headers) as page:
                assert page.first["status"] == status
                await page.message()
        machine.calls.requested({"id": request, "caller": {"type": "api-key", "id": "x"}})  # it is still valid
