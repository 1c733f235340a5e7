"""Every API that the official Python SDK can implement in a module, called through the machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import trio
from viam.robot.client import RobotClient

from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.e2e.modules.support import ROBOT, component, machine, program, until_ready
from tests.e2e.sdk.client import plaintext
from tests.e2e.server.process import Server

COMPONENTS = (
    "arm", "audio_in", "audio_out", "base", "board", "button", "camera", "encoder", "gantry", "generic", "gripper",
    "input_controller", "motor", "movement_sensor", "pose_tracker", "power_sensor", "sensor", "servo", "switch",
)  # fmt: skip
SERVICES = ("discovery", "mlmodel", "motion", "navigation", "slam", "vision", "world_state_store")
NAMES = (*COMPONENTS, *SERVICES, "generic_service", "gizmo")


def document(folder: Path) -> dict[str, Any]:
    return {
        "modules": [{"name": "every", "executable_path": program(folder, fixture="every_api.py")}],
        "components": [
            *(component(name, f"rdk:component:{name}", f"acme:every:{name}") for name in COMPONENTS),
            component("gizmo", "acme:component:gizmo", "acme:every:gizmo"),
        ],
        "services": [
            *(component(name, f"rdk:service:{name}", f"acme:every:{name}") for name in SERVICES),
            component("generic_service", "rdk:service:generic", "acme:every:generic_service"),
        ],
    }


@pytest.fixture
async def every(tmp_path: Path) -> AsyncIterator[tuple[Server, ApiClient]]:
    async with machine(tmp_path, document(tmp_path)) as (server, client):
        await until_ready(client, *NAMES)
        yield server, client


async def test_methods_and_streams_of_every_component(every: tuple[Server, ApiClient]) -> None:
    _, client = every

    async def call(name: str, method: str, **arguments: Any) -> Any:
        return await client.call(f"rdk:component:{name}", name, method, **arguments)

    async def first(name: str, method: str, count: int, **arguments: Any) -> list[Any]:
        results: list[Any] = []
        async with aclosing(client.stream(f"rdk:component:{name}", name, method, **arguments)) as items:
            async for item in items:
                results.append(item)
                if len(results) == count:
                    break
        return results

    await call("arm", "move_to_joint_positions", positions=[10.0, 20.0])
    assert await call("arm", "get_joint_positions") == {"values": [10.0, 20.0]}
    assert (await call("arm", "get_end_position"))["x"] == 10
    audio = await first("audio_in", "get_audio", 3, codec="pcm16", duration_seconds=1, previous_timestamp_nanoseconds=0)
    assert [element["audio"]["sequence"] for element in audio] == [0, 1, 2]
    await call("audio_out", "play", audio_data=b"12345")
    assert await call("audio_out", "do_command", command={}) == {"played": 5}
    await call("base", "set_power", linear={"x": 0, "y": 1, "z": 0}, angular={"x": 0, "y": 0, "z": 0})
    assert await call("base", "is_moving") is True
    await call("board", "set_gpio", pin="7", high=True)
    assert await call("board", "get_gpio", pin="7") is True
    assert await call("board", "get_digital_interrupt_value", digital_interrupt_name="i") == 7
    ticks = await first("board", "stream_ticks", 3, pin_names=["i"])
    assert [tick["high"] for tick in ticks] == [True, False, True]
    await call("button", "push")
    assert await call("button", "do_command", command={}) == {"pushed": 1}
    assert (await call("camera", "get_images"))["images"][0]["image"] == b"\xff\xd8\xff\xd9"
    assert (await call("encoder", "get_position"))["value"] == 12
    assert await call("gantry", "get_position") == [100.0]
    assert await call("generic", "do_command", command={"x": [1]}) == {"echo": {"x": [1]}}
    assert (await call("gripper", "grab"))["success"] is True
    assert len(await call("input_controller", "get_controls")) == 1
    control = {"control": "AbsoluteX", "events": ["PositionChangeAbs"]}
    events = await first("input_controller", "stream_events", 2, events=[control])
    assert [event["value"] for event in events] == [0.75, 0.75]
    await call("motor", "set_power", power_pct=0.5)
    assert await call("motor", "is_powered") == {"is_on": True, "power_pct": 0.5}
    assert (await call("movement_sensor", "get_position"))["coordinate"]["latitude"] == 50.5
    poses = await call("pose_tracker", "get_poses", body_names=["body"])
    assert poses["body"]["pose"]["x"] == 1
    assert (await call("power_sensor", "get_voltage"))["volts"] == 12.5
    assert (await call("sensor", "get_readings"))["b"] == [True, "x", None]
    assert await call("servo", "get_position") == 90
    assert (await call("switch", "get_number_of_positions"))["number_of_positions"] == 2
    with pytest.raises(MachineError) as caught:
        await call("servo", "move", angle_deg=10)
    assert caught.value.kind in (ErrorKind.INTERNAL, ErrorKind.UNSUPPORTED)
    await client.call(ROBOT, "", "stop_all")
    assert await call("base", "is_moving") is False
    assert (await call("motor", "is_powered"))["is_on"] is False


async def test_services_including_those_without_a_class_in_the_machine(every: tuple[Server, ApiClient]) -> None:
    _, client = every

    async def call(name: str, method: str, **arguments: Any) -> Any:
        api = "generic" if name == "generic_service" else name
        return await client.call(f"rdk:service:{api}", name, method, **arguments)

    assert (await call("discovery", "discover_resources"))[0]["name"] == "found"
    assert await call("generic_service", "do_command", command={"a": 1}) == {"service": {"a": 1}}
    assert (await call("mlmodel", "metadata"))["name"] == "small"
    assert await call("motion", "do_command", command={"a": True}) == {"motion": {"a": True}}
    assert (await call("navigation", "get_location", location_name="here"))["name"] == "here"
    assert (await call("slam", "get_position"))["x"] == 3
    chunks = [item async for item in client.stream("rdk:service:slam", "slam", "get_point_cloud_map")]
    assert chunks == [b"one", b"two", b"three"]
    answer = await call("vision", "get_detections_from_camera", camera_name="eye")
    assert answer[0]["class_name"] == "eye"
    assert await call("world_state_store", "list_uuids") == [b"one", b"two"]
    subtypes = await client.call(ROBOT, "", "resource_rpc_subtypes")
    services = {subtype["proto_service"] for subtype in subtypes}
    assert {"acme.component.gizmo.v1.GizmoService", "viam.service.slam.v1.SLAMService"} <= services


def with_sdk(address: str, script: Callable[[RobotClient, Any], Awaitable[None]]) -> None:
    """Run a script with the official client, in which the API is registered as in its documentation."""
    from tests.e2e.modules.fixtures import gizmo_api

    async def main() -> None:
        async with asyncio.timeout(60):
            robot = await RobotClient.at_address(address, plaintext())
            try:
                await script(robot, gizmo_api)
            finally:
                await robot.close()

    asyncio.run(main())


async def test_an_api_defined_by_a_module(every: tuple[Server, ApiClient]) -> None:
    server, _ = every

    async def script(robot: RobotClient, gizmo_api: Any) -> None:
        from grpclib import GRPCError, Status
        from grpclib.client import Channel
        from grpclib.reflection.v1.reflection_grpc import ServerReflectionStub
        from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest

        gizmo = robot.get_component(gizmo_api.Gizmo.get_resource_name("gizmo"))
        assert await gizmo.do_one("this", 3) == ("gizmo heard this", 6)
        assert await gizmo.many("x", 4) == [0, 2, 4, 6]
        assert await gizmo.sum_of([1, 2, 3]) == ("gizmo heard 1 2 3", 12)
        assert await gizmo.each([1, 2, 3]) == [2, 4, 6]
        assert await gizmo.do_command({"a": [1, "b"]}) == {"gizmo": {"a": [1, "b"]}}
        with pytest.raises(GRPCError) as refused:
            await gizmo.do_one("refuse", 1)
        assert (refused.value.status, refused.value.message) == (Status.FAILED_PRECONDITION, "the gizmo is open")
        with pytest.raises(TimeoutError):
            await gizmo.client.DoOne(gizmo_api.DoOneRequest(name="gizmo", arg="slow"), timeout=0.3)
        with pytest.raises(GRPCError) as absent:
            await gizmo.client.DoOne(gizmo_api.DoOneRequest(name="gadget"))
        assert absent.value.status is Status.NOT_FOUND
        async with gizmo.client.DoOne.open(metadata={"x-ask": "why", "x-raw-bin": b"\x01"}) as stream:
            await stream.send_message(gizmo_api.DoOneRequest(name="gizmo", arg="y"), end=True)
            assert (await stream.recv_message()).said == "gizmo heard y"
            await stream.recv_trailing_metadata()
            assert stream.initial_metadata["x-answer"] == "heard why"
            assert stream.trailing_metadata["x-end"] == "over"
            assert stream.trailing_metadata["x-bytes-bin"] == b"\x00\xff"
        host, _, port = server.address.rpartition(":")
        channel = Channel(host, int(port))
        try:
            reflection = ServerReflectionStub(channel)
            listed, described = await reflection.ServerReflectionInfo(
                [
                    ServerReflectionRequest(list_services=""),
                    ServerReflectionRequest(file_containing_symbol=gizmo_api.SERVICE),
                ]
            )
            assert gizmo_api.SERVICE in {item.name for item in listed.list_services_response.service}
            (file,) = described.file_descriptor_response.file_descriptor_proto
            assert b"GizmoService" in file
        finally:
            channel.close()

    await trio.to_thread.run_sync(with_sdk, server.address, script)


async def test_calls_explain_that_the_module_is_not_running(every: tuple[Server, ApiClient]) -> None:
    server, client = every

    async def script(robot: RobotClient, gizmo_api: Any) -> None:
        import os
        import signal

        import psutil
        from grpclib import GRPCError, Status

        gizmo = robot.get_component(gizmo_api.Gizmo.get_resource_name("gizmo"))
        (child,) = psutil.Process(server.process.pid).children()
        call = asyncio.ensure_future(gizmo.do_one("slow", 1))
        await asyncio.sleep(0.3)
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(GRPCError) as cut:
            await call
        assert cut.value.status is Status.UNAVAILABLE
        with pytest.raises(GRPCError) as away:
            await gizmo.do_one("this", 1)
        assert away.value.status is Status.UNAVAILABLE
        assert "every" in away.value.message or "gizmo" in away.value.message

    await trio.to_thread.run_sync(with_sdk, server.address, script)
    await until_ready(client, *NAMES)
