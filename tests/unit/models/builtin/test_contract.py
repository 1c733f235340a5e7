"""Every simulated model keeps its API's contract: it needs no attributes, answers every method, leaves no trace."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine import components
from engine.components.controls.board import PowerMode
from engine.components.controls.input_controller import Event, Subscription
from engine.components.motion.arm import TrajectoryPoint
from engine.geometry.spatial import Transform
from engine.registry import Registry
from engine.resource import Actuator, Component, Resource, Service, Unsupported
from engine.services.mlmodel import FlatTensor, FlatTensors
from hal.errors import Fault, HalError
from hal.sim.bench.axes import SimAxes
from hal.sim.faults import FaultPlan
from models import BUILTIN
from schema.errors import MachineError
from schema.names import API, Model
from schema.space.geometry import Vector3
from tests.unit.models.builtin.support import Bench

FAKES = sorted(api for api, model in BUILTIN if model == "rdk:builtin:fake")
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "rdk:component:board": {
        "analogs": [{"name": "a", "pin": "9"}],
        "digital_interrupts": [{"name": "i", "pin": "7"}],
    },
}


async def _batches() -> AsyncIterator[list[TrajectoryPoint]]:
    yield [TrajectoryPoint(timedelta(seconds=1), [0.0, 10.0, 60.0, 0.0, 60.0, 0.0])]


async def _chunks() -> AsyncIterator[bytes]:
    yield b"\0" * 320


# Arguments of methods that require some, by API subtype and method.
ARGUMENTS: dict[tuple[str, str], tuple[Any, ...]] = {
    ("arm", "move_to_joint_positions"): ([0.0, 0.0, 10.0, 0.0, 10.0, 0.0],),
    ("arm", "move_through_joint_positions"): ([[0.0, 0.0, 10.0, 0.0, 10.0, 0.0]],),
    ("arm", "move_through_joint_positions_streamed"): (_batches,),
    ("arm", "move_to_position"): (Transform(translation=(200.0, 100.0, 500.0)).pose(),),
    ("arm", "set_manual_mode"): (True,),
    ("audio_in", "get_audio"): (0.1,),
    ("audio_out", "play"): (b"\0" * 320,),
    ("audio_out", "play_stream"): (_chunks,),
    ("base", "move_straight"): (100, 100.0),
    ("base", "spin"): (90.0, 45.0),
    ("base", "set_power"): (Vector3(0, 0.5, 0), Vector3()),
    ("base", "set_velocity"): (Vector3(0, 50, 0), Vector3(0, 0, 5)),
    ("board", "set_gpio"): ("1", True),
    ("board", "get_gpio"): ("1",),
    ("board", "pwm"): ("1",),
    ("board", "set_pwm"): ("1", 0.5),
    ("board", "pwm_frequency"): ("1",),
    ("board", "set_pwm_frequency"): ("1", 100),
    ("board", "read_analog_reader"): ("a",),
    ("board", "write_analog"): ("9", 12),
    ("board", "get_digital_interrupt_value"): ("i",),
    ("board", "stream_ticks"): (["i"],),
    ("board", "set_power_mode"): (PowerMode.NORMAL,),
    ("gantry", "move_to_position"): ([1.0, 2.0, 3.0],),
    ("gripper", "go_to_inputs"): ([10.0],),
    ("input_controller", "stream_events"): ([Subscription("AbsoluteX", ["AllEvents"])],),
    ("input_controller", "trigger_event"): (Event(None, "ButtonPress", "ButtonStart", 1.0),),
    ("motor", "set_power"): (0.5,),
    ("motor", "go_for"): (60.0, 1.0),
    ("motor", "go_to"): (60.0, 1.0),
    ("motor", "set_rpm"): (60.0,),
    ("motor", "reset_zero_position"): (0.0,),
    ("servo", "move"): (90,),
    ("switch", "set_position"): (1,),
    ("sensors", "get_readings"): ([],),
    ("mlmodel", "infer"): (FlatTensors({"image": FlatTensor((1, 1, 1, 3), uint8_tensor=b"123")}),),
}
UNSUPPORTED = {
    ("arm", "set_manual_mode"),
    ("sensors", "do_command"),
}
REMEMBERS = {"rdk:service:motion", "rdk:service:navigation"}
"""Services whose calls need what others have saved: test_fake_services.py, and tests/unit/models/navigation."""


def methods(base: type[Resource]) -> list[str]:
    """Return the methods of the API and those common to all resources of its kind."""
    own = {name for cls in base.__mro__ for name in vars(cls) if callable(getattr(base, name)) and name[0] != "_"}
    return sorted(own - {"run", "dependency", "reserve", "identify", "Config", "API"})


def base_of(cls: type[Resource]) -> type[Resource]:
    """Return the base class of the API that a model implements."""
    return next(c for c in cls.__mro__ if c.__module__.startswith(("engine.components.", "engine.services.")))


async def call(resource: Resource, method: str) -> None:
    """Call one method with the arguments of the table; of a stream, take one item."""
    arguments = [
        argument() if inspect.isasyncgenfunction(argument) else argument
        for argument in ARGUMENTS.get((resource.API.subtype, method), ({},) if method == "do_command" else ())
    ]
    answer = getattr(resource, method)(*arguments)
    try:
        with trio.move_on_after(5):
            if isinstance(answer, AsyncGenerator):
                await anext(answer)
            else:
                await answer
    finally:
        for generator in (answer, *arguments):
            if isinstance(generator, AsyncGenerator):
                await generator.aclose()


def test_every_component_api_has_a_fake() -> None:
    files = {path.stem for path in Path(components.__path__[0]).rglob("*.py")}
    apis = files - {"__init__", "audio", "image_format", "kinematics", "older_cameras"}
    assert {f"rdk:component:{api}" for api in apis} <= set(FAKES)


@pytest.mark.parametrize("api", FAKES)
async def test_starts_from_nothing_and_leaves_nothing(bench: Bench, autojump_clock: MockClock, api: str) -> None:
    resource = await bench.add(api)
    assert isinstance(resource, Component if ":component:" in api else Service)
    await bench.remove(resource)
    assert bench.world.devices() == []


@pytest.mark.parametrize("api", [api for api in FAKES if api not in REMEMBERS])
async def test_every_method_answers(bench: Bench, autojump_clock: MockClock, api: str) -> None:
    resource = await bench.add(api, attributes=ATTRIBUTES.get(api))
    subtype = resource.API.subtype
    for method in methods(base_of(type(resource))):
        try:
            await call(resource, method)
        except Unsupported:
            assert (subtype, method) in UNSUPPORTED, method
        else:
            assert (subtype, method) not in UNSUPPORTED, method


@pytest.mark.parametrize("api", [api for api in FAKES if api.startswith("rdk:component:")])
async def test_an_injected_fault_strikes_every_own_method(bench: Bench, autojump_clock: MockClock, api: str) -> None:
    resource = await bench.add(api, attributes=ATTRIBUTES.get(api))
    own = [m for m in vars(base_of(type(resource))) if m in methods(base_of(type(resource)))] or ["do_command"]
    for method in own:
        bench.world.faults.inject("it", FaultPlan(Fault.GONE))
        with pytest.raises((HalError, Unsupported), match=r"gone|cannot"):
            await call(resource, method)
        bench.world.faults.clear("it")


def is_actuator(api: str) -> bool:
    return issubclass(Registry(BUILTIN).find(API.parse(api), Model.parse("fake")), Actuator)


MOTIONS = {
    "arm": ("move_to_joint_positions", ([90.0, 0.0, 0.0, 0.0, 0.0, 0.0],)),
    "base": ("move_straight", (1000, 100.0)),
    "gantry": ("move_to_position", ([500.0, 500.0, 500.0],)),
    "gripper": ("grab", ()),
    "motor": ("go_for", (60.0, 10.0)),
    "servo": ("move", (180,)),
}


@pytest.mark.parametrize("api", [api for api in FAKES if is_actuator(api) and api.rpartition(":")[2] in MOTIONS])
async def test_stopping_ends_a_motion_and_is_idempotent(bench: Bench, autojump_clock: MockClock, api: str) -> None:
    resource = await bench.add(api)
    for _ in range(2):
        await resource.stop()
    assert not await resource.is_moving()
    method, arguments = MOTIONS[resource.API.subtype]
    ended = trio.Event()

    async def move() -> None:
        with pytest.raises(MachineError, match="has replaced"):
            await getattr(resource, method)(*arguments)
        ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(move)
        await trio.sleep(0.1)
        assert await resource.is_moving()
        await resource.stop()
        assert ended.is_set()
    await trio.sleep(1)  # a shaft coasts
    assert not await resource.is_moving()
    await resource.stop()


@pytest.mark.parametrize("api", [api for api in FAKES if is_actuator(api) and api.rpartition(":")[2] in MOTIONS])
async def test_cancelling_a_motion_stops_it(bench: Bench, autojump_clock: MockClock, api: str) -> None:
    resource = await bench.add(api)
    method, arguments = MOTIONS[resource.API.subtype]
    with trio.move_on_after(0.1) as scope:
        await getattr(resource, method)(*arguments)
    assert scope.cancelled_caught
    await trio.sleep(1)
    assert not await resource.is_moving()


async def test_two_of_one_kind_and_name_are_refused(bench: Bench, autojump_clock: MockClock) -> None:
    await bench.add("servo", "one")
    await bench.add("motor", "one")
    other = bench.world.find(SimAxes, "one")
    assert other is not None
    with pytest.raises(HalError, match="already has"), bench.world.holding(SimAxes("one", "servo", [0.0])):
        pass
    assert bench.world.find(SimAxes, "one") is other
