"""Boards, cameras, axes, switches, sound, gamepads and services on the simulated bench."""

from __future__ import annotations

import array
import io
import itertools
import struct

import pytest
import trio
from PIL import Image
from trio.testing import MockClock, wait_all_tasks_blocked

from engine.components.controls.board import Tick
from engine.components.controls.input_controller import Event, Subscription
from engine.components.media.audio import AudioInfo
from engine.components.motion.gripper import Grabbed
from schema.errors import ErrorKind, MachineError
from schema.names import ResourceName
from tests.unit.models.builtin.support import Bench

BOARD = {
    "analogs": [{"name": "battery", "pin": "A0", "quantity": "supply_v"}, {"name": "knob", "channel": 3}],
    "digital_interrupts": [{"name": "one", "pin": "5"}, {"name": "two", "pin": "6"}],
    "wires": [["1", "5"], ["2", "6"], ["12", "3"]],
}


async def test_ticks_of_several_interrupts_come_in_order(bench: Bench, autojump_clock: MockClock) -> None:
    board = await bench.add("board", "b", BOARD)
    begin = trio.current_time()
    ticks: list[Tick] = []

    async def listen() -> None:
        stream = board.stream_ticks(["two", "one"])
        try:
            while len(ticks) < 5:
                ticks.append(await anext(stream))
        finally:
            await stream.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await wait_all_tasks_blocked()
        await board.set_gpio("1", True)
        await trio.sleep(0.1)
        await board.set_gpio("2", True)
        await board.set_pwm_frequency("1", 10)
        await board.set_pwm("1", 0.5)
    seen = [(tick.pin_name, round(tick.time / 1e9 - begin, 6), tick.high) for tick in ticks]
    assert seen == [
        ("one", 0.0, True),
        ("two", 0.1, True),
        ("one", 0.15, False),
        ("one", 0.2, True),
        ("one", 0.25, False),
    ]
    assert await board.get_digital_interrupt_value("one") == 2
    assert not any(pin.watchers for pin in bench.world.wiring.pins("b") if pin.name not in ("5", "6"))


async def test_analogs_follow_the_bench_and_the_wires(bench: Bench, autojump_clock: MockClock) -> None:
    board = await bench.add("board", "b", BOARD)
    battery = await board.read_analog_reader("battery")
    assert battery.value * 16.0 / 1023 == pytest.approx(bench.world.volts(), abs=0.02)
    assert battery.max_range == pytest.approx(battery.step_size * 1023)
    await board.write_analog("12", 512)
    assert (await board.read_analog_reader("knob")).value == pytest.approx(512, abs=5)
    motor = await bench.add("motor", "m")
    await motor.set_power(1)
    assert (await board.read_analog_reader("battery")).value < battery.value


@pytest.mark.parametrize(
    ("method", "arguments", "kind"),
    [
        ("set_pwm", ("1", 1.5), ErrorKind.INVALID),
        ("set_pwm", ("1", float("nan")), ErrorKind.INVALID),
        ("set_pwm_frequency", ("1", -5), ErrorKind.INVALID),
        ("write_analog", ("1", 1024), ErrorKind.INVALID),
        ("read_analog_reader", ("nothing",), ErrorKind.NOT_FOUND),
        ("get_digital_interrupt_value", ("nothing",), ErrorKind.NOT_FOUND),
    ],
)
async def test_a_board_refuses_what_is_impossible(
    bench: Bench, autojump_clock: MockClock, method: str, arguments: tuple[object, ...], kind: ErrorKind
) -> None:
    board = await bench.add("board", "b", BOARD)
    with pytest.raises(MachineError) as caught:
        await getattr(board, method)(*arguments)
    assert caught.value.kind is kind


async def test_a_board_may_fail_on_purpose(autojump_clock: MockClock) -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            await Bench(nursery).add("board", "b", {"fail_new": True})
    assert "configured to fail" in str(caught.value.exceptions[0])


@pytest.mark.parametrize("size", [(1, 1), (10, 10), (3, 400)])
async def test_a_camera_has_any_size(bench: Bench, autojump_clock: MockClock, size: tuple[int, int]) -> None:
    camera = await bench.add("camera", "it", dict(zip(("width_px", "height_px"), size, strict=True)))
    for kind in ("board", "servo", "arm", "base", "gantry"):
        await bench.add(kind, kind)
    (image,) = (await camera.get_images()).images
    assert Image.open(io.BytesIO(image.image)).size == size
    assert (await camera.get_point_cloud()).point_cloud


async def test_the_camera_sees_the_bench_work(bench: Bench, autojump_clock: MockClock) -> None:
    camera = await bench.add("camera", "it", {"width_px": 320, "height_px": 240, "format": "png"})
    still = await bench.add("camera", "still", {"width_px": 64, "height_px": 48, "animated": False})
    board = await bench.add("board", "b")
    servo = await bench.add("servo", "s")
    await bench.add("arm", "a")
    await bench.add("base", "r")
    await bench.add("switch", "w")
    await bench.add("gantry", "g")
    await board.set_gpio("1", False)

    async def look() -> bytes:
        (image,) = (await camera.get_images()).images
        assert image.mime_type == "image/png"
        return image.image

    first, first_still = await look(), (await still.get_images()).images[0].image
    assert Image.open(io.BytesIO(first)).size == (320, 240)
    assert first_still.startswith(b"\xff\xd8")
    assert await look() == first
    await board.set_gpio("1", True)
    lit = await look()
    assert lit != first
    await servo.move(120)
    assert await look() != lit
    assert (await still.get_images()).images[0].image == first_still


async def test_a_point_cloud_fits_the_lens(bench: Bench, autojump_clock: MockClock) -> None:
    camera = await bench.add("camera", "it", {"width_px": 320, "height_px": 240})
    header, _, body = (await camera.get_point_cloud()).point_cloud.partition(b"DATA binary\n")
    count = int(header.split(b"POINTS ")[1].split()[0])
    assert len(body) == 16 * count > 0
    lens = (await camera.get_properties()).intrinsic_parameters
    assert lens is not None
    for x, y, z, _ in struct.iter_unpack("<fffI", body):
        assert 0 <= x / z * lens.focal_x_px + lens.center_x_px + 1e-3 < lens.width_px
        assert 0 <= y / z * lens.focal_y_px + lens.center_y_px + 1e-3 < lens.height_px


async def test_a_servo_takes_its_time_and_knows_its_range(bench: Bench, autojump_clock: MockClock) -> None:
    servo = await bench.add("servo", "it", {"max_angle_deg": 270.0, "starting_position_deg": 90.0})
    assert await servo.get_position() == 90
    begin = trio.current_time()
    await servo.move(270)
    assert trio.current_time() - begin == pytest.approx(0.3)
    with pytest.raises(MachineError, match="use 0 to 270"):
        await servo.move(271)


async def test_a_gripper_holds_what_lies_between_its_jaws(bench: Bench, autojump_clock: MockClock) -> None:
    empty = await bench.add("gripper", "empty")
    full = await bench.add("gripper", "full", {"object_mm": 30.0})
    assert await empty.grab() == Grabbed(False)
    assert await full.grab() == Grabbed(True)
    assert (await full.is_holding_something()).is_holding_something
    assert await full.get_current_inputs() == [30.0]
    with pytest.raises(MachineError, match="out of reach"):
        await full.go_to_inputs([10.0])
    await full.open()
    assert not (await full.is_holding_something()).is_holding_something


async def test_a_gantry_moves_each_axis_at_its_speed(bench: Bench, autojump_clock: MockClock) -> None:
    gantry = await bench.add("gantry", "it", {"lengths_mm": [600.0, 400.0]})
    begin = trio.current_time()
    await gantry.move_to_position([600.0, 100.0], [200.0, 100.0])
    assert trio.current_time() - begin == pytest.approx(3)
    assert await gantry.get_position() == [600.0, 100.0]
    for bad in (([700.0, 0.0], ()), ([1.0], ()), ([1.0, 1.0], [0.0, 1.0])):
        with pytest.raises(MachineError) as caught:
            await gantry.move_to_position(*bad)
        assert caught.value.kind is ErrorKind.INVALID
    assert await gantry.home()
    assert await gantry.get_position() == [0.0, 0.0]
    model = (await gantry.get_kinematics()).model
    assert model is not None
    assert [joint.limits.max for joint in model.joints if joint.limits] == [600.0, 400.0]


async def test_a_switch_and_a_button_remember(bench: Bench, autojump_clock: MockClock) -> None:
    switch = await bench.add("switch", "s", {"labels": ["off", "low", "high"], "initial_position": 2})
    assert await switch.get_position() == 2
    assert (await switch.get_number_of_positions()).number_of_positions == 3
    await switch.set_position(1)
    assert await switch.get_position() == 1
    with pytest.raises(MachineError, match="use 0 to 2"):
        await switch.set_position(3)
    button = await bench.add("button", "b")
    await button.push()
    await button.push()
    assert await button.get_status() == {"pushes": 2}


async def test_sound_is_a_tone_in_real_time(bench: Bench, autojump_clock: MockClock) -> None:
    microphone = await bench.add("audio_in", "m", {"tone_hz": 1000.0})
    begin = trio.current_time()
    heard = [response async for response in microphone.get_audio(0.25, request_id="r")]
    assert trio.current_time() - begin == pytest.approx(0.25)
    assert [response.audio.sequence for response in heard] == [0, 1, 2]
    assert {response.request_id for response in heard} == {"r"}
    samples = array.array("h", b"".join(response.audio.audio_data for response in heard))
    assert len(samples) == 4000
    crossings = sum(a < 0 <= b for a, b in itertools.pairwise(samples))
    assert crossings == pytest.approx(250, abs=1)
    for first, other in itertools.pairwise(heard):
        assert first.audio.end_timestamp_nanoseconds == other.audio.start_timestamp_nanoseconds
    speaker = await bench.add("audio_out", "s")
    await speaker.play(b"".join(response.audio.audio_data for response in heard), AudioInfo("pcm16", 16000, 1))
    assert trio.current_time() - begin == pytest.approx(0.5)
    assert (await speaker.get_status())["played_seconds"] == pytest.approx(0.25)
    with pytest.raises(MachineError, match="mp3"):
        await speaker.play(b"", AudioInfo("mp3"))


async def test_events_reach_their_subscribers(bench: Bench, autojump_clock: MockClock) -> None:
    pad = await bench.add("input_controller", "p", {"event_value": 0.7, "update_rate_ms": 500})
    seen: list[Event] = []

    async def listen() -> None:
        stream = pad.stream_events([Subscription("AbsoluteX", ["PositionChangeAbs"]), Subscription("ButtonStart", ["ButtonChange"])])  # fmt: skip # noqa: E501
        try:
            while len(seen) < 3:
                seen.append(await anext(stream))
        finally:
            await stream.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.sleep(0.1)
        await pad.trigger_event(Event(None, "ButtonPress", "ButtonStart", 1.0))
        await pad.trigger_event(Event(None, "PositionChangeRel", "AbsoluteX", 1.0))  # there is no subscriber
    assert [(e.control, e.event, e.value) for e in seen] == [
        ("ButtonStart", "ButtonPress", 1.0),
        ("AbsoluteX", "PositionChangeAbs", 0.7),
        ("AbsoluteX", "PositionChangeAbs", 0.7),
    ]
    assert {e.control: e.event for e in await pad.get_events()} == {
        "AbsoluteX": "PositionChangeAbs",
        "ButtonStart": "ButtonPress",
    }
    assert pad._listeners == set()
    with pytest.raises(MachineError, match="no control"):
        await pad.trigger_event(Event(None, "ButtonPress", "ButtonEast", 1.0))


async def test_the_fake_sensor_reads_as_clients_expect(bench: Bench, autojump_clock: MockClock) -> None:
    assert await (await bench.add("sensor", "s")).get_readings() == {"a": 1, "b": 2, "c": 3}
    other = await bench.add("sensor", "t", {"readings": {"x": True}, "quantities": ["temperature_c"]})
    readings = await other.get_readings()
    assert list(readings) == ["x", "temperature_c"]
    assert readings["temperature_c"] == pytest.approx(21, abs=0.5)


async def test_the_sensors_service_reads_its_sensors(bench: Bench, autojump_clock: MockClock) -> None:
    await bench.add("sensor", "s")
    await bench.add("power_sensor", "p")
    service = await bench.add("rdk:service:sensors", "all", {"sensors": ["s", "p"]})
    names = await service.get_sensors()
    assert [name.name for name in names] == ["p", "s"]
    readings = await service.get_readings(names)
    assert readings[1].readings == {"a": 1, "b": 2, "c": 3}
    with pytest.raises(MachineError, match="not a sensor") as caught:
        await service.get_readings([ResourceName(names[0].api, "missing")])
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_discovered_entries_name_models_that_exist(bench: Bench, autojump_clock: MockClock) -> None:
    from models import BUILTIN

    for api in ("board", "motor", "encoder", "base", "servo", "arm", "switch", "button", "gantry", "gripper"):
        await bench.add(api, api)
    finder = await bench.add("rdk:service:discovery")
    resources = await finder.discover_resources()
    assert {entry.name for entry in resources} >= {"board", "motor", "arm", "gripper"}
    assert all((entry.api, entry.model) in BUILTIN for entry in resources)


async def test_echoes_echo(bench: Bench, autojump_clock: MockClock) -> None:
    for api in ("rdk:component:generic", "rdk:service:generic", "sensor", "motor", "board"):
        echo = await bench.add(api)
        assert await echo.do_command({"say": ["it"]}) == {"say": ["it"]}
