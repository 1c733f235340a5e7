"""Machine-wide services: every RPC of RobotService with dicts, with dataclasses and with the real class."""

import importlib.util
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from pathlib import Path

import pytest
from grpclib.const import Cardinality

from rpc.api.client import ApiClient
from rpc.api.convert.decode import field_reader, message_reader
from rpc.api.memory import MemoryChannel
from rpc.api.methods import methods_of
from rpc.api.server.adapter import serve_service
from rpc.api.server.router import ApiRouter
from rpc.api.table import SERVICES
from runtime.server.robot.service import RobotService
from schema.errors import ErrorKind, MachineError
from schema.names import API, ResourceName
from schema.space.geometry import Pose, PoseInFrame

ROBOT = "viam.robot.v1.RobotService"
METHODS = methods_of(SERVICES[ROBOT])


def load_samples():
    spec = importlib.util.spec_from_file_location("samples", Path(__file__).with_name("samples.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Samples


class Target:
    def __init__(self, result):
        self.result = result
        self.info = None

    @asynccontextmanager
    async def call(self, request):
        self.info = request
        yield self.result


def toy(method, results, seen):
    """Return a class with one method, which has no type hints."""

    async def unary(self, **arguments):
        await note(arguments)
        return results[0]

    async def streaming(self, **arguments):
        await note(arguments)
        for result in results:
            yield result

    async def note(arguments):
        if method.streamed is not None:
            items = arguments.pop(method.streamed.argument)
            seen["items"] = [item async for item in items]
        seen.update(arguments)

    return type("Toy", (), {method.name: streaming if method.server_streaming else unary})


@pytest.mark.parametrize("name", METHODS)
async def test_every_rpc_with_plain_values(name):
    method = METHODS[name]
    samples = load_samples()()
    reply, request = samples.message(method.reply), samples.message(method.request)
    read = field_reader(method.reply.fields[0]) if len(method.reply.fields) == 1 else message_reader(method.reply)
    seen = {}
    cls = toy(method, [read(reply)] if method.reply.fields else [None], seen)
    target = Target(cls())
    channel = MemoryChannel(ApiRouter(target, bases={}, services={ROBOT: cls}))
    cardinality = Cardinality((method.client_streaming, method.server_streaming))
    async with channel.request(method.path, cardinality, method.request_class, method.reply_class) as stream:
        await stream.send_message(request, end=True)
        assert await stream.recv_message() == reply
    assert target.info.api is None
    assert target.info.name == ""
    assert target.info.rpc == method.path
    expected = {key: field_reader(f)(request) for key, f in method.arguments.items()}
    present = {key for key, f in method.arguments.items() if not f.has_presence or request.HasField(key)}
    if method.streamed is not None:
        assert seen.pop("items") == [field_reader(method.item)(request)]
    assert seen == {key: value for key, value in expected.items() if key in present}


def test_the_real_class_fits():
    handlers = serve_service(ROBOT, RobotService, Target(None))
    assert f"/{ROBOT}/ResourceNames" in handlers
    assert f"/{ROBOT}/GetMachineStatus" in handlers
    assert f"/{ROBOT}/StreamStatus" not in handlers


class State(IntEnum):
    UNSPECIFIED = 0
    INITIALIZING = 1
    RUNNING = 2


@dataclass(frozen=True, slots=True)
class Status:
    name: ResourceName
    state: int
    last_updated: datetime
    error: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    revision: str
    last_updated: datetime | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    resources: tuple[Status, ...]
    config: Config
    state: State
    packages: list[dict] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    heartbeat_window: timedelta


LEFT = ResourceName(API("rdk", "component", "motor"), "left", ("arm",))
NOW = datetime(2026, 1, 31, 12, 0, 0, 250000, tzinfo=UTC)


class Toy:
    async def resource_names(self) -> list[ResourceName]:
        return [LEFT]

    async def resource_rpc_subtypes(self) -> list[dict]:
        return [{"subtype": LEFT.api, "proto_service": "viam.component.motor.v1.MotorService"}]

    async def get_machine_status(self) -> Machine:
        return Machine((Status(LEFT, 3, NOW),), Config("r1"), State.RUNNING, [{"name": "p", "state": "ready"}])

    async def start_session(self, resume: str) -> Session:
        return Session(resume or "new", timedelta(seconds=2))

    async def transform_pose(self, source: PoseInFrame, destination: str, supplemental_transforms=()) -> PoseInFrame:
        assert list(supplemental_transforms) == []
        return PoseInFrame(destination, source.pose)

    async def restart_module(self, module_id: str | None, module_name: str | None) -> None:
        raise MachineError(f"{module_id} {module_name}", kind=ErrorKind.NOT_FOUND)

    async def stop_all(self, extra: list[dict]) -> None:
        assert extra == [{"name": str(LEFT), "params": {"hard": True}}]

    async def get_cloud_metadata(self) -> dict:
        raise MachineError("not managed", kind=ErrorKind.PRECONDITION)


@pytest.fixture
def client():
    return ApiClient(MemoryChannel(ApiRouter(Target(Toy()), bases={}, services={ROBOT: Toy})))


async def test_resource_names(client):
    assert await client.call(ROBOT, "", "resource_names") == ["rdk:component:motor/arm:left"]
    assert await client.call(ROBOT, "", "resource_rpc_subtypes") == [
        {"subtype": "rdk:component:motor", "proto_service": "viam.component.motor.v1.MotorService"}
    ]


async def test_nested_dataclasses(client):
    status = await client.call(ROBOT, "", "get_machine_status")
    assert status["state"] == "RUNNING"
    assert status["config"] == {"revision": "r1"}
    (resource,) = status["resources"]
    assert resource["name"] == str(LEFT)
    assert resource["state"] == "READY"
    assert resource["last_updated"] == NOW
    assert status["packages"][0]["state"] == "READY"


async def test_times_poses_and_choices(client):
    assert await client.call(ROBOT, "", "start_session", resume="a") == {
        "id": "a",
        "heartbeat_window": timedelta(seconds=2),
    }
    moved = await client.call(
        ROBOT, "", "transform_pose", source=PoseInFrame("arm", Pose(1.0, 2.0, 3.0)), destination="world"
    )
    assert moved["reference_frame"] == "world"
    assert (moved["pose"]["x"], moved["pose"]["o_z"]) == (1.0, 1.0)
    with pytest.raises(MachineError, match="None camera") as caught:
        await client.call(ROBOT, "", "restart_module", module_name="camera")
    assert caught.value.kind is ErrorKind.NOT_FOUND
    await client.call(ROBOT, "", "stop_all", extra=[{"name": str(LEFT), "params": {"hard": True}}])


async def test_methods_that_the_class_lacks_are_unimplemented(client):
    for created in (
        client.call(ROBOT, "", "get_status"),
        client.call(ROBOT, "", "shutdown"),
        anext(client.stream(ROBOT, "", "stream_status")),
    ):
        with pytest.raises(MachineError) as caught:
            await created
        assert caught.value.kind is ErrorKind.UNSUPPORTED
