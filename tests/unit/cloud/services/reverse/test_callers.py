"""Who may call a machine through the cloud, who may answer such calls, and what is recorded."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from grpclib.const import Status
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request

from cloud.domain.permissions import audit
from cloud.services.reverse.calls import PART, MachineCalls
from rpc.access.credential_types import LOCATION_SECRET
from rpc.client.channel import Channel
from rpc.status import STATUS_OF_KIND
from tests.unit.cloud.pages import browser
from tests.unit.cloud.replicas import operator_key
from tests.unit.cloud.services.reverse.site import DOMAIN, Site
from tests.unit.cloud.web.test_revocation_streams import CHANGES
from tests.unit.cloud.web.test_web_machine import machine_token
from tests.unit.rpc.echo import PATH, Stub
from tests.unit.rpc.test_calls import refused

SETTINGS = b"\0\0\0\4\0\0\0\0\0"  # an empty frame of HTTP/2


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
