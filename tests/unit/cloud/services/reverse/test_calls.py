"""Calls to a machine through the cloud: with real connections on loopback between all three."""

from __future__ import annotations

import base64
import socket
from typing import Any

import httpcore
import pytest
import trio
import trio.testing
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.status_pb2 import Status as StatusMessage
from grpclib.const import Status
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request

from cloud.services.reverse.calls import PART
from rpc.limits import Limits
from tests.unit.cloud.replicas import operator_key
from tests.unit.cloud.services.reverse.site import DOMAIN, Site
from tests.unit.rpc.echo import PATH, Stub
from tests.unit.rpc.test_calls import refused
from tests.unit.rpc.web_calls import WebCalls


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
