"""The client: arguments, results, errors, streams, and arguments from a command line."""

from contextlib import aclosing, asynccontextmanager
from datetime import timedelta

import msgspec
import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError, StreamTerminatedError

from engine.apis import BASES, base_of
from engine.components.controls.board import Board, Tick
from engine.components.media.audio_out import AudioOut
from engine.components.media.camera import Camera, Image, Images
from engine.components.motion.arm import Arm, BatchAck
from engine.components.motion.motor import Motor, Powered
from engine.components.sensing.encoder import Encoder, EncoderPosition, PositionType
from engine.components.sensing.sensor import Sensor
from rpc.api.arguments import parse_arguments
from rpc.api.client import ApiClient
from rpc.api.descriptions import describe
from rpc.api.memory import MemoryChannel
from rpc.api.server.router import ApiRouter
from schema.errors import ErrorKind, MachineError
from schema.names import API
from schema.space.geometry import Vector3

ARM = "rdk:component:arm"
AUDIO = "rdk:component:audio_out"
BASE = "rdk:component:base"
BOARD = "rdk:component:board"
MOTOR = "rdk:component:motor"


class Target:
    def __init__(self, result):
        self.result = result
        self.metadata = None

    @asynccontextmanager
    async def call(self, request):
        self.metadata = request.metadata
        yield self.result


def bare(cls, **methods):
    new_class = type(cls.__name__, (cls,), methods)
    return new_class.__new__(new_class)


def client_of(result, metadata=None):
    target = Target(result)
    return ApiClient(MemoryChannel(ApiRouter(target, bases=BASES)), metadata=metadata), target


async def test_metadata_goes_with_every_call():
    async def get_readings(self, *, extra=None):
        return {}

    client, target = client_of(bare(Sensor, get_readings=get_readings), {"viam-sid": "s"})
    await client.call("rdk:component:sensor", "t", "get_readings")
    assert target.metadata["viam-sid"] == "s"


async def test_results_of_the_base_class():
    async def get_position(self, position_type=PositionType.UNSPECIFIED, *, extra=None):
        return EncoderPosition(3.0, PositionType.ANGLE_DEGREES)

    async def get_readings(self, *, extra=None):
        return {"a": 1.5, "on": True}

    async def is_powered(self, *, extra=None):
        return Powered(True, 0.5)

    async def stop(self, *, extra=None):
        pass

    async def stream_ticks(self, pin_names, *, extra=None):
        yield Tick("a", 5, True)

    client, _ = client_of(bare(Encoder, get_position=get_position))
    position = await client.call_as(Encoder, "e", "get_position")
    assert position == EncoderPosition(3.0, PositionType.ANGLE_DEGREES)
    assert isinstance(position.position_type, PositionType)
    client, _ = client_of(bare(Sensor, get_readings=get_readings))
    assert await client.call_as(Sensor, "s", "get_readings") == {"a": 1.5, "on": True}
    client, _ = client_of(bare(Motor, is_powered=is_powered, stop=stop))
    assert await client.call_as(Motor, "m", "is_powered") == Powered(True, 0.5)
    assert await client.call_as(Motor, "m", "stop") is None
    client, _ = client_of(bare(Board, stream_ticks=stream_ticks))
    async with aclosing(client.stream_as(Board, "b", "stream_ticks", pin_names=["a"])) as ticks:
        assert [tick async for tick in ticks] == [Tick("a", 5, True)]


async def test_results_are_json_ready():
    async def get_images(self, filter_source_names=(), *, extra=None):
        return Images([Image(b"\xff\xd8", "image/jpeg", name) for name in filter_source_names])

    client, _ = client_of(bare(Camera, get_images=get_images))
    result = await client.call("rdk:component:camera", "c", "get_images", filter_source_names=["left"])
    assert msgspec.json.decode(msgspec.json.encode(result)) == {
        "images": [{"image": "/9g=", "mime_type": "image/jpeg", "source_name": "left"}],
        "response_metadata": {},
    }


async def test_requests_of_a_stream_are_sent_while_replies_come():
    async def play_stream(self, audio_chunks, audio_info=None, *, extra=None):
        self.heard = (audio_info.codec, extra, [chunk async for chunk in audio_chunks])

    result = bare(AudioOut, play_stream=play_stream)
    client, _ = client_of(result)

    async def chunks():
        for i in range(40):
            yield b"%d" % i

    async with aclosing(chunks()) as items:
        await client.call(
            AUDIO, "speaker", "play_stream", audio_chunks=items, audio_info={"codec": "pcm16"}, extra={"a": 1}
        )
    assert result.heard == ("pcm16", {"a": 1.0}, [b"%d" % i for i in range(40)])


async def test_both_directions():
    async def move(self, batches, *, extra=None):
        async for batch in batches:
            yield BatchAck({"points": len(batch), "last": batch[-1].time.total_seconds()})

    client, _ = client_of(bare(Arm, move_through_joint_positions_streamed=move))
    send, receive = trio.open_memory_channel(1)
    acks = client.stream(ARM, "a", "move_through_joint_positions_streamed", batches=receive)
    async with aclosing(acks), send:
        for second in range(3):
            await send.send([{"time": timedelta(seconds=second), "positions": [1, 2]}])
            assert await anext(acks) == {"extra": {"points": 1.0, "last": second}}
        await send.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(acks)


async def test_leaving_a_stream_of_both_directions_leaves_nothing_behind(autojump_clock):
    async def move(self, batches, *, extra=None):
        async for _ in batches:
            yield BatchAck()

    client, _ = client_of(bare(Arm, move_through_joint_positions_streamed=move))

    async def endless():
        while True:
            yield [{"time": 0, "positions": []}]
            await trio.sleep(1)

    async with aclosing(endless()) as items:
        async with aclosing(client.stream(ARM, "a", "move_through_joint_positions_streamed", batches=items)) as acks:
            async for _ in acks:
                break


async def test_item_that_does_not_fit():
    async def play_stream(self, audio_chunks, audio_info=None, *, extra=None):
        async for _ in audio_chunks:
            pass

    client, _ = client_of(bare(AudioOut, play_stream=play_stream))
    with pytest.raises(MachineError, match="play_stream: expected bytes, got 3") as caught:
        await client.call(AUDIO, "speaker", "play_stream", audio_chunks=[b"a", 3])
    assert caught.value.kind is ErrorKind.INVALID


async def test_error_of_a_handler_that_does_not_wait_for_the_rest():
    async def play_stream(self, audio_chunks, audio_info=None, *, extra=None):
        raise MachineError("no speaker", kind=ErrorKind.PRECONDITION)

    client, _ = client_of(bare(AudioOut, play_stream=play_stream))
    with pytest.raises(MachineError, match="no speaker"):
        await client.call(AUDIO, "speaker", "play_stream", audio_chunks=[b"x"] * 100)


@pytest.mark.parametrize(
    ("api", "method", "arguments", "said"),
    [
        (MOTOR, "set_powr", {}, "has no method 'set_powr': did you mean 'set_power'?"),
        (MOTOR, "set_power", {"power": 1}, "set_power has no argument 'power': did you mean 'power_pct'?"),
        (MOTOR, "set_power", {"power_pct": "1"}, "set_power: power_pct: expected a number, got '1' (str)"),
        (MOTOR, "is_moving", {"x": 1}, "is_moving has no argument 'x': it takes no arguments"),
        (BASE, "set_power", {"linear": {"x": "1"}}, "set_power: linear.x: expected a number"),
        ("rdk:component:motr", "stop", {}, "is not a published API: did you mean 'rdk:component:motor'?"),
        (API("a", "b", "c"), "stop", {}, "a:b:c is not a published API"),
        (BOARD, "stream_ticks", {}, "stream_ticks returns a stream of results: use stream"),
    ],
)
async def test_mistakes_are_found_before_anything_is_sent(api, method, arguments, said):
    client = ApiClient(None)
    with pytest.raises(MachineError) as caught:
        await client.call(api, "x", method, **arguments)
    assert caught.value.kind is ErrorKind.INVALID
    assert said in str(caught.value)


class Broken:
    def __init__(self, error):
        self.error = error

    def request(self, *args, **kwargs):
        raise self.error


@pytest.mark.parametrize("error", [OSError("refused"), StreamTerminatedError("reset")])
async def test_lost_connection(error):
    with pytest.raises(MachineError, match="connection was lost") as caught:
        await ApiClient(Broken(error)).call(MOTOR, "left", "stop")
    assert caught.value.kind is ErrorKind.UNAVAILABLE


class Lost:
    """A stream whose connection is lost while it sends requests and awaits a reply; both directions raise the error."""

    def request(self, *args, **kwargs):
        return self

    async def __aenter__(self):
        self.gone = trio.Event()
        self.sent = 0
        return self

    async def __aexit__(self, *args):
        return None

    async def send_message(self, message):
        self.sent += 1
        if self.sent > 1:
            self.gone.set()
            raise GRPCError(Status.UNAVAILABLE, "the connection was lost")

    async def recv_message(self):
        with trio.CancelScope(shield=True):
            await self.gone.wait()
        raise GRPCError(Status.UNAVAILABLE, "the connection was lost")


async def test_lost_connection_while_requests_are_sent_is_one_error():
    with pytest.raises(MachineError, match="connection was lost") as caught:
        await ApiClient(Lost()).call(AUDIO, "speaker", "play_stream", audio_chunks=[b"x"] * 3)
    assert caught.value.kind is ErrorKind.UNAVAILABLE


@pytest.mark.parametrize(
    ("api", "method", "words", "expected"),
    [
        (MOTOR, "set_power", ["power_pct=0.5", 'extra={"a":1}'], {"power_pct": 0.5, "extra": {"a": 1}}),
        (MOTOR, "set_power", ["power_pct=-1"], {"power_pct": -1}),
        (BOARD, "set_gpio", ["pin=11", "high=yes"], {"pin": "11", "high": True}),
        (BOARD, "set_gpio", ["pin=a=b", "high=0"], {"pin": "a=b", "high": False}),
        (BOARD, "stream_ticks", ["pin_names=a, b"], {"pin_names": ["a", "b"]}),
        (BOARD, "stream_ticks", ['pin_names=["a,b"]'], {"pin_names": ["a,b"]}),
        (BOARD, "stream_ticks", ["pin_names="], {"pin_names": []}),
        (BOARD, "set_power_mode", ["power_mode=normal", "duration=2.5"], {"power_mode": "normal", "duration": 2.5}),
        (BOARD, "set_power_mode", ["power_mode=2"], {"power_mode": 2}),
        (BASE, "set_velocity", ['linear={"y":100}'], {"linear": {"y": 100}}),
        (ARM, "move_to_joint_positions", ["positions=1,2.5"], {"positions": [1, 2.5]}),
        (ARM, "move_to_joint_positions", ['positions={"values":[1]}'], {"positions": {"values": [1]}}),
        (ARM, "move_through_joint_positions", ["positions=[[1,2],[3,4]]"], {"positions": [[1, 2], [3, 4]]}),
        (AUDIO, "play", ["audio_data=/9g="], {"audio_data": b"\xff\xd8"}),
        ("viam.robot.v1.RobotService", "cancel_operation", ["id=7"], {"id": "7"}),
        (MOTOR, "stop", [], {}),
    ],
)
def test_arguments_of_a_command_line(api, method, words, expected):
    assert parse_arguments(api, method, words) == expected


@pytest.mark.parametrize(
    ("api", "method", "words", "said"),
    [
        (
            MOTOR,
            "set_power",
            ["power_pct"],
            "'power_pct' is not an argument: write key=value; set_power takes power_pct",
        ),
        (MOTOR, "set_power", ["0.5"], "set_power takes power_pct (number), extra (mapping)"),
        (MOTOR, "set_power", ["power=1"], "has no argument 'power': did you mean 'power_pct'?"),
        (MOTOR, "set_power", ["power_pct=fast"], "power_pct: 'fast' is not a number: it takes number"),
        (MOTOR, "set_power", ["power_pct=1", "power_pct=2"], "power_pct is specified twice"),
        (MOTOR, "set_power", ["extra={a}"], "extra: '{a}' is not JSON: it takes mapping"),
        (MOTOR, "set_power", [f"extra={'[' * 5000}"], "is not JSON: it takes mapping"),
        (MOTOR, "set_power", ["extra=[1]"], "extra: expected a mapping, got [1]"),
        (BOARD, "set_gpio", ["high=maybe"], "high: 'maybe' is not true or false"),
        (BOARD, "set_power_mode", ["power_mode=fast"], "expected one of UNSPECIFIED, NORMAL, OFFLINE_DEEP, got 'fast'"),
        ("rdk:component:servo", "move", ["angle_deg=1.5"], "angle_deg: expected a whole number, got 1.5"),
        (AUDIO, "play", ["audio_data=%"], "audio_data: '%' is not base64: it takes bytes"),
        (MOTOR, "is_moving", ["x=1"], "is_moving takes no arguments"),
    ],
)
def test_mistakes_on_a_command_line(api, method, words, said):
    with pytest.raises(MachineError) as caught:
        parse_arguments(api, method, words)
    assert caught.value.kind is ErrorKind.INVALID
    assert said in str(caught.value)


async def test_parsed_methods_can_be_called():
    async def set_velocity(self, linear, angular, *, extra=None):
        self.seen = (linear, angular, extra)

    result = bare(base_of(API.parse(BASE)), set_velocity=set_velocity)
    client, _ = client_of(result)
    arguments = parse_arguments(BASE, "set_velocity", ['linear={"y":100}', 'extra={"a":null}'])
    await client.call(BASE, "b", "set_velocity", **arguments)
    assert result.seen == (Vector3(y=100.0), Vector3(), {"a": None})


def test_description():
    motor = API.parse(MOTOR)
    methods = {info.name: info for info in describe(motor, base_of(motor))}
    info = methods["set_power"]
    assert info.doc.startswith("Apply power: -1")
    assert [(a.name, a.type, a.required, a.schema) for a in info.arguments] == [
        ("power_pct", "number", True, {"type": "number"}),
        ("extra", "mapping", False, {"type": "object"}),
    ]
    assert (info.returns, info.monitored, info.deprecated) == ("nothing", True, False)
    assert methods["is_powered"].returns == "{is_on, power_pct}"
    assert methods["is_powered"].result == "Powered"
    assert not methods["stop"].monitored
    arm = {info.name: info for info in describe(ARM)}
    assert arm["get_joint_positions"].returns == "list of number"
    assert arm["move_to_joint_positions"].arguments[0].schema == {"type": "array", "items": {"type": "number"}}
    assert arm["move_through_joint_positions_streamed"].returns == "stream of BatchAck {extra}"
    board = {info.name: info for info in describe(BOARD)}
    mode = board["set_power_mode"].arguments[0]
    assert mode.schema == {"enum": ["UNSPECIFIED", "NORMAL", "OFFLINE_DEEP"]}
    assert {info.name for info in describe("viam.service.sensors.v1.SensorsService") if info.deprecated} >= {
        "get_sensors"
    }


def test_descriptions_are_json_ready():
    for api in BASES:
        msgspec.json.encode(describe(api, base_of(api)))
