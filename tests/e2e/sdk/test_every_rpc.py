"""Every RPC of every component API through the SDK's generated stubs: answered, or refused for a listed reason."""

from __future__ import annotations

import asyncio
import importlib
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass
from grpclib import GRPCError, Status
from grpclib.client import ServiceMethod, StreamStreamMethod, StreamUnaryMethod, UnaryStreamMethod, UnaryUnaryMethod
from h2.exceptions import StreamClosedError
from viam.robot.client import RobotClient

from tests.e2e.sdk.test_components import play

# module of the generated code, stub, name of the resource in tests/e2e/sdk/machine.py
SERVICES = {
    "arm": ("arm.v1.arm", "ArmServiceStub", "arm"),
    "audio_in": ("audioin.v1.audioin", "AudioInServiceStub", "microphone"),
    "audio_out": ("audioout.v1.audioout", "AudioOutServiceStub", "speaker"),
    "base": ("base.v1.base", "BaseServiceStub", "base"),
    "board": ("board.v1.board", "BoardServiceStub", "board"),
    "button": ("button.v1.button", "ButtonServiceStub", "button"),
    "camera": ("camera.v1.camera", "CameraServiceStub", "camera"),
    "encoder": ("encoder.v1.encoder", "EncoderServiceStub", "encoder"),
    "gantry": ("gantry.v1.gantry", "GantryServiceStub", "gantry"),
    "generic": ("generic.v1.generic", "GenericServiceStub", "generic"),
    "gripper": ("gripper.v1.gripper", "GripperServiceStub", "gripper"),
    "input_controller": ("inputcontroller.v1.input_controller", "InputControllerServiceStub", "gamepad"),
    "motor": ("motor.v1.motor", "MotorServiceStub", "motor"),
    "movement_sensor": ("movementsensor.v1.movementsensor", "MovementSensorServiceStub", "gps"),
    "pose_tracker": ("posetracker.v1.pose_tracker", "PoseTrackerServiceStub", "tracker"),
    "power_sensor": ("powersensor.v1.powersensor", "PowerSensorServiceStub", "power"),
    "sensor": ("sensor.v1.sensor", "SensorServiceStub", "sensor"),
    "servo": ("servo.v1.servo", "ServoServiceStub", "servo"),
    "switch": ("switch.v1.switch", "SwitchServiceStub", "switch"),
}

# Arguments of calls for which an empty request is invalid.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "Arm.MoveToJointPositions": {"positions": {"values": [0.0] * 6}},
    "Arm.MoveThroughJointPositions": {"positions": [{"values": [0.0] * 6}]},
    "AudioIn.GetAudio": {"duration_seconds": 0.1, "codec": "pcm16"},
    "AudioOut.Play": {
        "audio_data": b"\0\0",
        "audio_info": {"codec": "pcm16", "sample_rate_hz": 8000, "num_channels": 1},
    },
    "Base.MoveStraight": {"distance_mm": 3, "mm_per_sec": 100.0},
    "Base.Spin": {"angle_deg": 1.0, "degs_per_sec": 90.0},
    "Board.SetGPIO": {"pin": "11"},
    "Board.GetGPIO": {"pin": "11"},
    "Board.PWM": {"pin": "11"},
    "Board.SetPWM": {"pin": "11"},
    "Board.PWMFrequency": {"pin": "11"},
    "Board.SetPWMFrequency": {"pin": "11", "frequency_hz": 100},
    "Board.ReadAnalogReader": {"analog_reader_name": "light"},
    "Board.WriteAnalog": {"pin": "1", "value": 1},
    "Board.GetDigitalInterruptValue": {"digital_interrupt_name": "in"},
    "Board.StreamTicks": {"pin_names": ["in"]},
    "Board.SetPowerMode": {"power_mode": 1},
    "Gantry.MoveToPosition": {"positions_mm": [1.0] * 3, "speeds_mm_per_sec": [100.0] * 3},
    "Gripper.GoToInputs": {"values": [0.0]},
    "InputController.TriggerEvent": {"event": {"event": "ButtonPress", "control": "ButtonStart", "value": 1.0}},
    "InputController.StreamEvents": {"events": [{"control": "ButtonStart", "events": ["AllEvents"]}]},
    "Motor.GoFor": {"rpm": 600.0, "revolutions": 0.01},
    "Motor.GoTo": {"rpm": 600.0},
    "Motor.SetRPM": {"rpm": 60.0},
}

# Calls that these fakes refuse because they do not implement them.
UNIMPLEMENTED = {
    "DoCommand",
    "Arm.Get3DModels",
    "Arm.SetManualMode",
    "Arm.GetManualMode",
}

# An empty first message is an error that must be reported; the arm's base is not a valid frame to move its hand to.
INVALID = {"AudioOut.PlayStream", "Arm.MoveThroughJointPositionsStreamed", "Arm.MoveToPosition"}


async def call(method: ServiceMethod[Any, Any], request: Any) -> None:
    """Make a call and wait for its end; end a stream after its first message or a quarter of a second."""
    if isinstance(method, UnaryUnaryMethod):
        await method(request, timeout=10)
    elif isinstance(method, StreamUnaryMethod):
        await method([request], timeout=10)
    else:
        assert isinstance(method, UnaryStreamMethod | StreamStreamMethod)
        async with method.open(timeout=10) as stream:
            await stream.send_message(request, end=True)
            try:
                async with asyncio.timeout(0.25):
                    await stream.recv_message()
            except TimeoutError:
                with suppress(StreamClosedError):  # the server has just ended it
                    await stream.cancel()


@pytest.mark.parametrize("api", SERVICES)
def test_every_rpc_is_answered(machine: str, api: str) -> None:
    module, stub_name, name = SERVICES[api]
    messages = importlib.import_module(f"viam.gen.component.{module}_pb2")
    stub_class = getattr(importlib.import_module(f"viam.gen.component.{module}_grpc"), stub_name)
    (service,) = messages.DESCRIPTOR.services_by_name.values()
    short = service.name.removesuffix("Service")
    refused: dict[str, Status] = {}

    async def script(robot: RobotClient) -> None:
        stub = stub_class(robot._channel)
        for rpc in service.methods:
            cls = GetMessageClass(rpc.input_type)
            key = next(
                (field for field in ("name", "board_name", "controller") if field in rpc.input_type.fields_by_name),
                None,
            )
            request = cls(**({key: name} if key else {}), **ARGUMENTS.get(f"{short}.{rpc.name}", {}))
            try:
                await call(getattr(stub, rpc.name), request)
            except GRPCError as error:
                refused[f"{short}.{rpc.name}"] = error.status if error.message else Status.UNKNOWN
        if hasattr(stub, "Stop"):
            await stub.Stop(GetMessageClass(service.methods_by_name["Stop"].input_type)(name=name))

    play(machine, script)
    allowed = {
        rpc: Status.UNIMPLEMENTED for rpc in refused if rpc in UNIMPLEMENTED or rpc.partition(".")[2] in UNIMPLEMENTED
    }
    allowed |= {rpc: Status.INVALID_ARGUMENT for rpc in refused if rpc in INVALID}
    assert refused == allowed
