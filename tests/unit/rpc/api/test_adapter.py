"""The adapter's errors, cancellation and order of calls."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError

from engine.components.controls.board import Board, Tick
from engine.components.motion.motor import Motor, Powered
from engine.components.sensing.sensor import Sensor
from rpc.api.client import ApiClient
from rpc.api.memory import MemoryChannel
from rpc.api.messages import load
from rpc.api.server.adapter import serve_api, serve_service
from rpc.api.server.router import ApiRouter
from schema.errors import ErrorKind, MachineError
from schema.names import API

MOTOR = API("rdk", "component", "motor")
BOARD = API("rdk", "component", "board")


class Target:
    def __init__(self, result):
        self.result = result
        self.log = []

    @asynccontextmanager
    async def call(self, request):
        self.log.append(f"enter {request.method} {request.name}")
        try:
            yield self.result
        finally:
            self.log.append("leave")


def bare(cls, **methods):
    """Return an instance of a driver class without running its constructor."""
    new_class = type(cls.__name__, (cls,), methods)
    return new_class.__new__(new_class)


def motor(**methods):
    return channel_to(MOTOR, Motor, bare(Motor, **methods))


def channel_to(api, base, result):
    return MemoryChannel(ApiRouter(Target(result), bases={api: base}))


async def failure(client, *args, **kwargs):
    with pytest.raises(MachineError) as caught:
        await client.call(*args, **kwargs)
    return caught.value


async def test_base_method_is_unimplemented_and_says_whose():
    error = await failure(ApiClient(motor()), MOTOR, "left", "set_power", power_pct=1)
    assert error.kind is ErrorKind.UNSUPPORTED
    assert str(error) == "rdk:component:motor/left (Motor) does not implement set_power"


async def test_model_of_a_driver_is_named():
    error = await failure(ApiClient(motor(MODEL="acme:demo:m")), MOTOR, "left", "set_rpm", rpm=1)
    assert str(error) == "rdk:component:motor/left (acme:demo:m) does not implement set_rpm"


async def test_reason_of_not_implemented_is_kept():
    async def go_for(self, **arguments):
        raise NotImplementedError("no encoder is configured")

    error = await failure(ApiClient(motor(go_for=go_for)), MOTOR, "left", "go_for", rpm=1, revolutions=1)
    assert error.kind is ErrorKind.UNSUPPORTED
    assert "no encoder is configured" in str(error)


async def test_object_without_the_method_is_unimplemented():
    error = await failure(ApiClient(channel_to(MOTOR, Motor, object())), MOTOR, "left", "set_power", power_pct=1)
    assert error.kind is ErrorKind.UNSUPPORTED


async def test_attribute_error_inside_a_driver_is_a_bug():
    async def set_power(self, **arguments):
        return self.missing

    with pytest.raises(AttributeError):
        await ApiClient(motor(set_power=set_power)).call(MOTOR, "left", "set_power", power_pct=1)


@pytest.mark.parametrize("kind", list(ErrorKind))
async def test_kind_of_a_machine_error_survives(kind):
    async def set_power(self, **arguments):
        raise MachineError("the message", kind=kind, remedy="the remedy")

    error = await failure(ApiClient(motor(set_power=set_power)), MOTOR, "left", "set_power", power_pct=1)
    assert error.kind is kind
    assert str(error) == "the message: the remedy"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("1.5", "expected a number, got '1.5' (str)"),
        (None, "expected a number, got None"),
        (True, "expected a number, got True (bool)"),
        ({"position": 1.5}, "expected a number, got {'position': 1.5} (dict)"),
    ],
)
async def test_result_that_does_not_fit_is_the_drivers_bug(result, said):
    async def get_position(self, *, extra=None):
        return result

    error = await failure(ApiClient(motor(get_position=get_position)), MOTOR, "left", "get_position")
    assert error.kind is ErrorKind.INTERNAL
    assert str(error) == (
        f"rdk:component:motor/left (Motor) returned a result from get_position that its API does not allow: {said}"
    )


async def test_path_of_a_nested_misfit():
    async def is_powered(self, *, extra=None):
        return Powered(is_on=True, power_pct="half")

    error = await failure(ApiClient(motor(is_powered=is_powered)), MOTOR, "left", "is_powered")
    assert "power_pct: expected a number, got 'half' (str)" in str(error)


async def test_mapping_is_as_good_as_the_dataclass():
    async def is_powered(self, *, extra=None):
        return {"is_on": True, "power_pct": 0.25}

    client = ApiClient(motor(is_powered=is_powered))
    assert await client.call(MOTOR, "left", "is_powered") == {"is_on": True, "power_pct": 0.25}


async def test_reading_that_holds_itself():
    async def get_readings(self, *, extra=None):
        readings = {}
        readings["again"] = readings
        return readings

    sensor = API("rdk", "component", "sensor")
    channel = channel_to(sensor, Sensor, bare(Sensor, get_readings=get_readings))
    error = await failure(ApiClient(channel), sensor, "s", "get_readings")
    assert error.kind is ErrorKind.INTERNAL
    assert "does not contain itself" in str(error)


async def test_unknown_enum_value_is_the_callers_mistake():
    board = load("component.board.v1.board_pb2")
    request = board.SetPowerModeRequest(name="pi", power_mode=77)
    channel = channel_to(BOARD, Board, bare(Board))
    async with channel.request(
        "/viam.component.board.v1.BoardService/SetPowerMode",
        Cardinality.UNARY_UNARY,
        board.SetPowerModeRequest,
        board.SetPowerModeResponse,
    ) as stream:
        await stream.send_message(request, end=True)
        with pytest.raises(GRPCError) as caught:
            await stream.recv_message()
    assert caught.value.status is Status.INVALID_ARGUMENT
    assert caught.value.message == "power_mode: expected one of UNSPECIFIED, NORMAL, OFFLINE_DEEP, got 77 (int)"


async def test_no_request_at_all():
    board = load("component.board.v1.board_pb2")
    async with channel_to(BOARD, Board, bare(Board)).request(
        "/viam.component.board.v1.BoardService/SetGPIO", Cardinality.UNARY_UNARY, board.SetGPIORequest, None
    ) as stream:
        await stream.end()
        with pytest.raises(GRPCError) as caught:
            await stream.recv_message()
    assert caught.value.status is Status.INVALID_ARGUMENT


async def test_extra_is_absent_empty_or_given():
    seen = []

    async def get_position(self, *, extra="default"):
        seen.append(extra)
        return 1.0

    client = ApiClient(motor(get_position=get_position))
    await client.call(MOTOR, "left", "get_position")
    await client.call(MOTOR, "left", "get_position", extra={})
    await client.call(MOTOR, "left", "get_position", extra={"a": [1, None]})
    assert seen == [None, {}, {"a": [1.0, None]}]


class Ticking(Board):
    """Yields one tick, waits, and records that it was closed."""

    def __init__(self):
        self.closed = trio.Event()

    async def stream_ticks(self, pin_names, *, extra=None):
        try:
            yield Tick("a", 1, True)
            await trio.sleep_forever()
        finally:
            self.closed.set()


async def test_stream_is_closed_when_the_client_leaves(autojump_clock):
    ticking = Ticking()
    target = Target(ticking)
    client = ApiClient(MemoryChannel(ApiRouter(target, bases={BOARD: Board})))
    ticks = client.stream(BOARD, "pi", "stream_ticks", pin_names=["a"])
    assert await anext(ticks) == {"pin_name": "a", "time": 1, "high": True}
    assert not ticking.closed.is_set()
    await ticks.aclose()
    assert ticking.closed.is_set()
    assert target.log == ["enter stream_ticks pi", "leave"]


async def test_generator_suspended_at_its_yield_is_closed_before_the_target_is_left():
    order = []

    class FixedBoard(Board):
        def __init__(self):
            """Skip the constructor of the base class."""

        async def stream_ticks(self, pin_names, *, extra=None):
            try:
                while True:
                    yield Tick("a", 1, True)
            finally:
                order.append("closed")

    class Noting(Target):
        @asynccontextmanager
        async def call(self, request):
            try:
                yield self.result
            finally:
                order.append("left")

    client = ApiClient(MemoryChannel(ApiRouter(Noting(FixedBoard()), bases={BOARD: Board})))
    ticks = client.stream(BOARD, "pi", "stream_ticks", pin_names=["a"])
    await anext(ticks)
    await trio.testing.wait_all_tasks_blocked()  # the handler blocks because the client does not read
    await ticks.aclose()
    assert order == ["closed", "left"]


async def test_error_in_a_stream_comes_after_what_was_sent():
    async def stream_ticks(self, pin_names, *, extra=None):
        yield Tick("a", 1, True)
        raise MachineError("the line is gone", kind=ErrorKind.UNAVAILABLE)

    client = ApiClient(channel_to(BOARD, Board, bare(Board, stream_ticks=stream_ticks)))
    ticks = client.stream(BOARD, "pi", "stream_ticks", pin_names=[])
    assert (await anext(ticks))["pin_name"] == "a"
    with pytest.raises(MachineError, match="the line is gone"):
        await anext(ticks)


async def test_base_stream_is_unimplemented():
    client = ApiClient(channel_to(BOARD, Board, bare(Board)))
    with pytest.raises(MachineError, match="does not implement stream_ticks") as caught:
        await anext(client.stream(BOARD, "pi", "stream_ticks", pin_names=[]))
    assert caught.value.kind is ErrorKind.UNSUPPORTED


async def test_coroutine_instead_of_a_generator_is_named():
    async def stream_ticks(self, pin_names, *, extra=None):
        return [Tick("a", 1, True)]

    client = ApiClient(channel_to(BOARD, Board, bare(Board, stream_ticks=stream_ticks)))
    with pytest.raises(MachineError, match="expected an async generator") as caught:
        await anext(client.stream(BOARD, "pi", "stream_ticks", pin_names=[]))
    assert caught.value.kind is ErrorKind.INTERNAL


AUDIO = API("rdk", "component", "audio_out")


async def test_second_beginning_of_a_stream_is_refused():
    from engine.components.media.audio_out import AudioOut

    async def play_stream(self, audio_chunks, audio_info=None, *, extra=None):
        async for _ in audio_chunks:
            pass

    pb = load("component.audioout.v1.audioout_pb2")
    channel = channel_to(AUDIO, AudioOut, bare(AudioOut, play_stream=play_stream))
    begin = pb.PlayStreamRequest(init=pb.PlayStreamInit(name="speaker"))
    path = "/viam.component.audioout.v1.AudioOutService/PlayStream"
    for requests, said in (
        ([begin, begin], "the stream was started a second time"),
        ([pb.PlayStreamRequest(audio_chunk=pb.PlayStreamChunk(audio_data=b"x"))], "expected init in the first request"),
    ):
        async with channel.request(
            path, Cardinality.STREAM_UNARY, pb.PlayStreamRequest, pb.PlayStreamResponse
        ) as stream:
            for request in requests:
                await stream.send_message(request)
            await stream.end()
            with pytest.raises(GRPCError) as caught:
                await stream.recv_message()
        assert caught.value.status is Status.INVALID_ARGUMENT
        assert said in caught.value.message


def test_class_that_does_not_fit_is_refused_with_every_reason():
    class Wrong:
        async def set_power(self, power_pct: str, *, extra: Mapping | None = None) -> None: ...

        async def go_for(self, rpm: float, turns: int, *, extra: Mapping | None = None) -> None: ...

        async def get_position(self, extra: Mapping | None = None) -> Sequence[float]: ...

        def stop(self) -> AsyncIterator[int]: ...

    with pytest.raises(TypeError) as caught:
        serve_api(MOTOR, Wrong, Target(None))
    text = str(caught.value)
    for part in (
        "Wrong.set_power: power_pct must be number",
        "Wrong.go_for: the request has no turns",
        "Wrong.go_for: has no argument revolutions",
        "Wrong.get_position: extra must be keyword-only",
        "Wrong.get_position: result must be number",
        "Wrong.stop: has no argument extra",
    ):
        assert part in text


def test_stream_of_the_wrong_items_is_refused():
    class Wrong:
        def stream_ticks(
            self, pin_names: Sequence[int], *, extra: Mapping | None = None
        ) -> AsyncGenerator[str, None]: ...

    with pytest.raises(TypeError) as caught:
        serve_api(BOARD, Wrong, Target(None))
    assert "pin_names.* must be text" in str(caught.value)
    assert "result must be a class with the fields of StreamTicksResponse" in str(caught.value)


def test_unknown_services():
    with pytest.raises(MachineError, match="acme:component:x is not a published API"):
        serve_api(API("acme", "component", "x"), Motor, Target(None))
    with pytest.raises(MachineError, match="not a published service"):
        serve_service("acme.v1.Service", Motor, Target(None))


async def test_replies_are_serialized_in_the_worker_of_the_target():
    """Replies are built and serialized outside the event loop's step that sends them."""
    results = []

    class Offloading(Target):
        async def offload(self, stream, path, what, function):
            results.append(function())
            return results[-1]

    async def is_powered(self, **arguments):
        return Powered(True, 0.5)

    target = Offloading(bare(Motor, is_powered=is_powered))
    channel = MemoryChannel(ApiRouter(target, bases={MOTOR: Motor}))
    assert await ApiClient(channel).call(MOTOR, "left", "is_powered") == {"is_on": True, "power_pct": 0.5}
    _, (message, encoded) = results
    assert encoded == message.SerializeToString()
