"""The methods of every component API through the unmodified official Python SDK."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from grpclib import GRPCError, Status
from PIL import Image
from viam.components.arm import Arm
from viam.components.audio_in import AudioIn
from viam.components.audio_out import AudioOut
from viam.components.base import Base
from viam.components.board import Board
from viam.components.button import Button
from viam.components.camera import Camera
from viam.components.encoder import Encoder
from viam.components.gantry import Gantry
from viam.components.generic import Generic
from viam.components.gripper import Gripper
from viam.components.input import Control, Controller, Event, EventType
from viam.components.motor import Motor
from viam.components.movement_sensor import MovementSensor
from viam.components.pose_tracker import PoseTracker
from viam.components.power_sensor import PowerSensor
from viam.components.sensor import Sensor
from viam.components.servo import Servo
from viam.components.switch import Switch
from viam.proto.common import AudioInfo, Pose, Vector3
from viam.proto.component.arm import JointPositions
from viam.proto.component.board import PowerMode
from viam.proto.component.encoder import PositionType
from viam.robot.client import RobotClient
from viam.services.discovery import DiscoveryClient
from viam.services.generic import Generic as GenericService

from tests.e2e.sdk.client import plaintext

Script = Callable[[RobotClient], Awaitable[None]]


def play(address: str, script: Script) -> None:
    """Connect with the SDK, run one script, disconnect; within one minute."""

    async def main() -> None:
        async with asyncio.timeout(60):
            robot = await RobotClient.at_address(address, plaintext())
            try:
                await script(robot)
            finally:
                await robot.close()

    asyncio.run(main())


async def refused(status: Status, call: Awaitable[Any]) -> GRPCError:
    with pytest.raises(GRPCError) as caught:
        await call
    assert caught.value.status is status
    assert caught.value.message
    return caught.value


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Repeat a check until it is true; the SDK has no event for it. play() limits the time."""
    while not await condition():
        await asyncio.sleep(0.01)


def test_motor(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        motor = Motor.from_robot(robot, "motor")
        assert (await motor.get_properties()).position_reporting
        await motor.reset_zero_position(0)
        await motor.set_power(0.5)
        powered, power = await motor.is_powered()
        assert powered
        assert power == pytest.approx(0.5)
        assert await motor.is_moving()

        async def turned() -> bool:
            return await motor.get_position() > 0.05

        await until(turned)
        await motor.stop()
        assert not await motor.is_moving()
        assert await motor.is_powered() == (False, 0.0)
        await motor.reset_zero_position(0)
        await motor.go_for(600, 1)
        assert await motor.get_position() == pytest.approx(1, abs=0.05)
        await motor.go_to(600, -0.5)
        assert await motor.get_position() == pytest.approx(-0.5, abs=0.05)
        await motor.set_rpm(300)
        assert await motor.is_moving()
        await motor.stop()

    play(machine, script)


def test_a_motor_moves_its_encoder(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        motor, encoder = Motor.from_robot(robot, "motor"), Encoder.from_robot(robot, "encoder")
        assert (await encoder.get_properties()).ticks_count_supported
        await encoder.reset_position()
        await motor.go_for(600, 2)
        ticks, kind = await encoder.get_position(PositionType.POSITION_TYPE_TICKS_COUNT)
        assert kind == PositionType.POSITION_TYPE_TICKS_COUNT
        assert ticks == pytest.approx(200, abs=10)

    play(machine, script)


def test_a_cancelled_go_for_stops_the_motor(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        motor = Motor.from_robot(robot, "motor")
        with pytest.raises((GRPCError, asyncio.TimeoutError)):
            await motor.go_for(60, 1000, timeout=0.2)

        async def still() -> bool:
            return not await motor.is_moving()

        await until(still)

    play(machine, script)


def test_board(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        board = Board.from_robot(robot, "board")
        out, wired = await board.gpio_pin_by_name("11"), await board.gpio_pin_by_name("13")
        for high in (True, False):
            await out.set(high)
            assert await out.get() is high
            assert await wired.get() is high, "a wire joins the output to the input"
        await out.set_pwm(0.25)
        assert await out.get_pwm() == pytest.approx(0.25)
        await out.set_pwm_frequency(1000)
        assert await out.get_pwm_frequency() == 1000
        await out.set_pwm(0)
        light = await board.analog_by_name("light")
        value = await light.read()
        assert value.step_size > 0
        assert value.min_range <= value.max_range
        await refused(Status.NOT_FOUND, (await board.analog_by_name("nothing")).read())
        await (await board.analog_by_name("1")).write(3)
        await board.set_power_mode(PowerMode.POWER_MODE_NORMAL, timedelta(seconds=1))

    play(machine, script)


def test_stream_ticks(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        board = Board.from_robot(robot, "board")
        out = await board.gpio_pin_by_name("11")
        await out.set(False)
        interrupt = await board.digital_interrupt_by_name("in")
        before = await interrupt.value()
        ticks: AsyncIterator[Any] = await board.stream_ticks([interrupt])
        seen: list[tuple[str, bool]] = []

        async def listen() -> None:
            async for tick in ticks:
                seen.append((tick.pin_name, tick.high))
                if len(seen) == 4:
                    return

        listening = asyncio.create_task(listen())
        high = True
        while not listening.done():  # the stream opens after the call returns: continue until four edges arrived
            await out.set(high)
            high = not high
            await asyncio.sleep(0.005)
        await listening
        assert {name for name, _ in seen} == {"in"}
        assert [level for _, level in seen] in ([True, False] * 2, [False, True] * 2)
        assert await interrupt.value() >= before + 2

    play(machine, script)


def test_base_moves_by_its_wheels(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        base, left, right = (
            Base.from_robot(robot, "base"),
            Motor.from_robot(robot, "left"),
            Motor.from_robot(robot, "right"),
        )
        properties = await base.get_properties()
        assert properties.width_meters == pytest.approx(0.2)
        assert properties.wheel_circumference_meters == pytest.approx(0.3)
        await left.reset_zero_position(0)
        await right.reset_zero_position(0)
        await base.move_straight(distance=300, velocity=1500)
        assert await left.get_position() == pytest.approx(1, abs=0.1)
        assert await right.get_position() == pytest.approx(1, abs=0.1)
        await base.spin(angle=90, velocity=720)
        await base.set_power(Vector3(y=0.5), Vector3())
        assert await base.is_moving()
        await base.stop()
        assert not await base.is_moving()
        await base.set_velocity(Vector3(y=100), Vector3(z=10))
        await base.stop()

    play(machine, script)


def test_arm(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        arm = Arm.from_robot(robot, "arm")
        joints = list((await arm.get_joint_positions()).values)
        target = [5.0] * len(joints)
        await arm.move_to_joint_positions(JointPositions(values=target))
        assert list((await arm.get_joint_positions()).values) == pytest.approx(target, abs=0.5)
        here = await arm.get_end_position()
        await arm.move_to_joint_positions(JointPositions(values=joints))
        await arm.move_to_position(here)
        there = await arm.get_end_position()
        assert (there.x, there.y, there.z) == pytest.approx((here.x, here.y, here.z), abs=2.0)
        await arm.move_through_joint_positions([JointPositions(values=target), JointPositions(values=joints)])
        assert not await arm.is_moving()
        await arm.stop()
        kinematics = await arm.get_kinematics()
        assert kinematics[1]
        assert isinstance(await arm.get_geometries(), list)
        await refused(Status.INVALID_ARGUMENT, arm.move_to_joint_positions(JointPositions(values=[1.0])))
        with pytest.raises(GRPCError):
            await arm.move_to_position(Pose(x=1e7))

    play(machine, script)


def test_camera(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        camera = Camera.from_robot(robot, "camera")
        images, metadata = await camera.get_images()
        assert metadata.captured_at.seconds > 0
        picture = Image.open(io.BytesIO(images[0].data))
        assert picture.size == (160, 120)
        properties = await camera.get_properties()
        assert properties.intrinsic_parameters.width_px == 160
        cloud, mime = await camera.get_point_cloud()
        assert mime == "pointcloud/pcd"
        assert cloud.startswith((b"VERSION", b"#"))

    play(machine, script)


def test_servo_switch_button_gripper(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        servo = Servo.from_robot(robot, "servo")
        await servo.move(45)
        assert await servo.get_position() == 45
        await servo.stop()
        assert not await servo.is_moving()
        switch = Switch.from_robot(robot, "switch")
        assert await switch.get_number_of_positions() == (3, ["off", "low", "high"])
        await switch.set_position(2)
        assert await switch.get_position() == 2
        await refused(Status.INVALID_ARGUMENT, switch.set_position(3))
        await Button.from_robot(robot, "button").push()
        gripper = Gripper.from_robot(robot, "gripper")
        await gripper.open()
        assert isinstance(await gripper.grab(), bool)
        await gripper.is_holding_something()
        assert not await gripper.is_moving()
        await gripper.stop()

    play(machine, script)


def test_gantry(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        gantry = Gantry.from_robot(robot, "gantry")
        lengths = await gantry.get_lengths()
        assert await gantry.home()
        goal = [length / 4 for length in lengths]
        await gantry.move_to_position(goal, [1000.0] * len(goal))
        assert await gantry.get_position() == pytest.approx(goal, abs=1)
        await gantry.stop()
        assert not await gantry.is_moving()

    play(machine, script)


def test_sensors(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        assert await Sensor.from_robot(robot, "sensor").get_readings() == {"a": 1.0, "b": 2.0, "c": 3.0}
        power = PowerSensor.from_robot(robot, "power")
        volts, is_ac = await power.get_voltage()
        amperes, _ = await power.get_current()
        assert not is_ac
        assert await power.get_power() == pytest.approx(volts * amperes, rel=0.2)
        assert "volts" in await power.get_readings()
        gps = MovementSensor.from_robot(robot, "gps")
        properties = await gps.get_properties()
        if properties.position_supported:
            point, _altitude = await gps.get_position()
            assert -90 <= point.latitude <= 90
        if properties.compass_heading_supported:
            assert 0 <= await gps.get_compass_heading() < 360
        if properties.linear_velocity_supported:
            await gps.get_linear_velocity()
        if properties.angular_velocity_supported:
            await gps.get_angular_velocity()
        if properties.linear_acceleration_supported:
            await gps.get_linear_acceleration()
        if properties.orientation_supported:
            await gps.get_orientation()
        await gps.get_accuracy()
        assert await gps.get_readings()
        assert isinstance(await PoseTracker.from_robot(robot, "tracker").get_poses([]), dict)

    play(machine, script)


def test_audio(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        microphone = AudioIn.from_robot(robot, "microphone")
        properties = await microphone.get_properties()
        stream = await microphone.get_audio(properties.supported_codecs[0], 0.2, 0)
        assert sum([len(chunk.audio.audio_data) async for chunk in stream]) > 0
        speaker = AudioOut.from_robot(robot, "speaker")
        codec = (await speaker.get_properties()).supported_codecs[0]
        info = AudioInfo(codec=codec, sample_rate_hz=16000, num_channels=1)
        await speaker.play(b"\0\0" * 160, info)

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(3):
                yield b"\0\0" * 160

        await speaker.play_stream(info, chunks())

    play(machine, script)


def test_input_controller(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        gamepad = Controller.from_robot(robot, "gamepad")
        controls = await gamepad.get_controls()
        assert Control.ABSOLUTE_X in controls
        events = await gamepad.get_events()
        assert set(events) <= set(controls)
        heard = asyncio.Event()
        gamepad.register_control_callback(Control.BUTTON_START, [EventType.BUTTON_PRESS], lambda event: heard.set())
        while not heard.is_set():  # the stream of events opens in the background
            await gamepad.trigger_event(Event(0.0, EventType.BUTTON_PRESS, Control.BUTTON_START, 1.0))
            await asyncio.sleep(0.01)

    play(machine, script)


def test_generic_and_services(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        command = {"text": "hello", "number": 1.5, "list": [True, "x", {"a": "b"}]}
        assert await Generic.from_robot(robot, "generic").do_command(command) == command
        assert await GenericService.from_robot(robot, "notes").do_command(command) == command
        resources = await DiscoveryClient.from_robot(robot, "discovery").discover_resources()
        assert all(entry.name and entry.api for entry in resources)

    play(machine, script)


NAMED: list[tuple[Any, str]] = [
    (Arm, "arm"),
    (AudioIn, "microphone"),
    (AudioOut, "speaker"),
    (Base, "base"),
    (Board, "board"),
    (Button, "button"),
    (Camera, "camera"),
    (Encoder, "encoder"),
    (Gantry, "gantry"),
    (Generic, "generic"),
    (Gripper, "gripper"),
    (Controller, "gamepad"),
    (Motor, "motor"),
    (MovementSensor, "gps"),
    (PoseTracker, "tracker"),
    (PowerSensor, "power"),
    (Sensor, "sensor"),
    (Servo, "servo"),
    (Switch, "switch"),
]


@pytest.mark.parametrize(("api", "name"), NAMED, ids=[name for _, name in NAMED])
def test_every_component_has_status_commands_and_geometries(machine: str, api: Any, name: str) -> None:
    async def script(robot: RobotClient) -> None:
        resource = api.from_robot(robot, name)
        assert isinstance(await resource.get_status(), dict)
        try:
            await resource.do_command({"command": "nothing"})
            status = Status.OK
        except GRPCError as error:
            status = error.status
        assert status in (Status.OK, Status.UNIMPLEMENTED, Status.INVALID_ARGUMENT)
        if hasattr(resource, "get_geometries") and api not in (Button, PowerSensor, Switch):
            assert isinstance(list(await resource.get_geometries()), list)

    play(machine, script)
