"""Pins of the board: levels, names, safe levels, exclusive use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from hal.boards.definition import BoardDefinition, BoardPin
from hal.errors import Fault
from hal.ports.digital import InputSettings, Line, OutputSettings
from hal.ports.hotplug import HotplugEvents
from hal.sim.bench.world import World
from hal.sim.faults import FaultPlan
from hal.sim.hardware import SimHardware
from hal.sim.hotplug import Hotplug
from schema.errors import ErrorKind, MachineError
from tests.unit.models.board.support import CHIP, Rig, entry, rig


async def test_an_output_is_driven_under_every_name_of_its_pin(autojump_clock: MockClock) -> None:
    async with rig() as r:
        for name, high in (("11", True), ("GPIO17", False), ("gpio17", True), (f"{CHIP}:17", False), ("pin 11", True)):
            await r.call("set_gpio", pin=name, high=high)
            assert r.level(17) is high
            assert await r.call("get_gpio", pin="11") is high
        assert (await r.call("get_status"))["pins"] == {"11 (GPIO17)": "output"}


async def test_outputs_are_low_when_the_board_stops_and_safe_high_ones_high(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    async with rig(entry(safe_high=["13"]), hardware=hardware) as r:
        await r.call("set_gpio", pin="11", high=True)
        await r.call("set_gpio", pin="13", high=False)
        assert (r.level(17), r.level(27)) == (True, False)
    assert (r.level(17), r.level(27)) == (False, True)
    assert not [output for output in hardware.lines.outputs() if output.owner]
    assert hardware.reservations.all() == {}


async def test_outputs_that_are_named_are_safe_from_the_start(autojump_clock: MockClock) -> None:
    levels: list[bool] = []
    hardware = SimHardware(World())
    pin = hardware.world.wiring.pin(CHIP, "27")
    pin.watchers.append(Recorder(lambda: levels.append(hardware.world.wiring.signal(pin).level(0))))
    async with rig(entry(safe_high=["13"], outputs=["11"]), hardware=hardware) as r:
        assert (await r.call("get_status"))["pins"] == {"13 (GPIO27)": "output", "11 (GPIO17)": "output"}
        await r.call("set_gpio", pin="13", high=False)
        await r.call("set_gpio", pin="11", high=True)
        assert levels == [True, False], "never low before the call"
    async with rig(entry(outputs=["11"], digital_interrupts=[{"name": "door", "pin": "GPIO17"}])) as r:
        assert "'door'" in r.reason()
    async with rig(entry(outputs=["99"])) as r:
        assert "99" in r.reason()


async def test_other_pins_are_left_alone_until_they_are_used(autojump_clock: MockClock) -> None:
    async with rig() as r:
        await r.call("set_pwm_frequency", pin="13", frequency_hz=100)
        await r.call("pwm", pin="13")
        assert (await r.call("get_status"))["pins"] == {"13 (GPIO27)": "closed"}
        assert not r.hardware.lines.outputs()


class Telling(SimHardware):
    """A computer whose hot-plug events come from the test."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.events = Hotplug()
        self.definition: BoardDefinition | None = None

    def hotplug(self) -> AbstractAsyncContextManager[HotplugEvents]:
        return self.events.listening()

    def board(self, name: str = "") -> BoardDefinition:
        return self.definition if self.definition is not None else super().board(name)


class Recorder:
    """Call a function at each change of a pin."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def settle(self, t: float) -> None:
        pass

    def changed(self, t: float) -> None:
        self._call()


async def test_an_input_is_read(autojump_clock: MockClock) -> None:
    async with rig() as r:
        assert await r.call("get_gpio", pin="16") is False
        r.drive(23, True)
        assert await r.call("get_gpio", pin="16") is True
        assert (await r.call("get_status"))["pins"] == {"16 (GPIO23)": "input"}
        r.drive(23, False)
        await r.call("set_gpio", pin="16", high=True)
        assert (await r.call("get_status"))["pins"] == {"16 (GPIO23)": "output"}


@pytest.mark.parametrize(
    ("pin", "kind", "words"),
    [
        ("41", ErrorKind.NOT_FOUND, "40 = GPIO21"),
        ("GPIO28", ErrorKind.NOT_FOUND, "GPIO2"),
        ("6", ErrorKind.INVALID, "ground"),
        ("", ErrorKind.NOT_FOUND, "did you mean"),
    ],
)
async def test_a_wrong_pin_is_refused_with_near_ones(
    autojump_clock: MockClock, pin: str, kind: ErrorKind, words: str
) -> None:
    async with rig() as r:
        for method, more in (("set_gpio", {"high": True}), ("get_gpio", {}), ("pwm", {}), ("set_pwm_frequency", {})):
            with pytest.raises(MachineError, match=words) as caught:
                await r.call(method, pin=pin, **more)
            assert caught.value.kind is kind


async def test_names_of_the_configuration(autojump_clock: MockClock) -> None:
    async with rig(entry(pins={"pump": "11", "valve": f"{CHIP}:22"}, safe_high=["pump"])) as r:
        await r.call("set_gpio", pin="pump", high=False)
        await r.call("set_gpio", pin="valve", high=True)
        assert (r.level(17), r.level(22)) == (False, True)
    assert (r.level(17), r.level(22)) == (True, False)


async def test_a_wrong_name_in_the_configuration_is_the_boards_reason(autojump_clock: MockClock) -> None:
    async with rig(entry(pins={"pump": "GPIO99"})) as r:
        assert r.state() == "unhealthy"
        assert "GPIO99" in r.reason()
    async with rig(entry(board="rapsberry-pi-4")) as r:
        assert "raspberry-pi-4" in r.reason()


async def test_identify_is_the_same_for_every_name(autojump_clock: MockClock) -> None:
    async with rig(entry(pins={"pump": "11"}, digital_interrupts=[{"name": "door", "pin": "13"}])) as r:
        board = r.memory.machine.roster.find("board").resource
        names = {board.identify(name) for name in ("11", "GPIO17", "bcm17", "pump", f"{CHIP}:17")}
        assert names == {f"{CHIP} line 17"}
        assert board.identify("door") == board.identify("13") == f"{CHIP} line 27"
        with pytest.raises(MachineError, match="did you mean"):
            board.identify("99")


async def test_two_boards_cannot_have_one_line(autojump_clock: MockClock) -> None:
    async with rig(entry("one"), entry("two")) as r:
        await r.call("set_gpio", "one", pin="11", high=True)
        with pytest.raises(MachineError, match=r"wanted by rdk:component:board/two .* used by rdk:component:board/one"):
            await r.call("set_gpio", "two", pin="GPIO17", high=False)
        assert r.level(17) is True
        await r.call("set_gpio", "two", pin="13", high=True)
    async with rig(
        entry("one", digital_interrupts=[{"name": "a", "pin": "11"}]),
        entry("two", digital_interrupts=[{"name": "b", "pin": "GPIO17"}]),
    ) as r:
        states = {name: r.state(name) for name in ("one", "two")}
        assert sorted(states.values()) == ["ready", "unhealthy"]
        loser = next(name for name, state in states.items() if state == "unhealthy")
        assert "board/one" in r.reason(loser)
        assert "board/two" in r.reason(loser)


async def test_a_line_of_another_program_is_busy_and_can_be_had_later(autojump_clock: MockClock) -> None:
    async with rig() as r:
        async with r.hardware.digital_output(Line(CHIP, 17), OutputSettings()):
            with pytest.raises(MachineError) as caught:
                await r.call("set_gpio", pin="11", high=True)
            assert caught.value.kind is ErrorKind.PRECONDITION
        await r.call("set_gpio", pin="11", high=True)
        assert r.level(17) is True
        assert r.state() == "ready"


async def test_permission_names_the_group(autojump_clock: MockClock) -> None:
    async with rig() as r:
        r.hardware.faults.inject(f"{CHIP} line 17", FaultPlan(Fault.PERMISSION))
        with pytest.raises(MachineError, match="group gpio") as caught:
            await r.call("set_gpio", pin="11", high=True)
        assert caught.value.kind is ErrorKind.PERMISSION
        assert r.state() == "ready"


async def test_a_call_that_is_cancelled_leaves_the_pin_usable(autojump_clock: MockClock) -> None:
    async with rig() as r:
        for attempt in range(40):
            scope = trio.CancelScope()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_call_in, scope, r, ("set_gpio", "set_pwm")[attempt % 2])
                for _ in range(attempt // 2):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        await r.call("set_gpio", pin="11", high=True)
        assert r.level(17) is True
        await r.call("set_gpio", pin="11", high=False)
        assert r.level(17) is False
    assert r.hardware.reservations.all() == {}


async def _call_in(scope: trio.CancelScope, r: Rig, method: str) -> None:
    with scope:
        await r.call(method, pin="11", **({"high": True} if method == "set_gpio" else {"duty_cycle_pct": 0.5}))


async def test_many_uses_at_once_end_in_one_of_them(autojump_clock: MockClock) -> None:
    async with rig() as r:
        async with trio.open_nursery() as nursery:
            for turn in range(10):
                nursery.start_soon(lambda: r.call("set_gpio", pin="11", high=True))
                nursery.start_soon(lambda: r.call("set_pwm", pin="GPIO17", duty_cycle_pct=0.5))
                nursery.start_soon(lambda: r.call("get_gpio", pin="11"))
                del turn
        assert (await r.call("get_status"))["pins"].keys() == {"11 (GPIO17)"}
        await r.call("set_gpio", pin="11", high=True)
        assert r.level(17) is True
        assert r.state() == "ready"


async def test_a_chip_that_vanishes_ends_the_board_and_comes_back(autojump_clock: MockClock) -> None:
    async with rig() as r:
        await r.call("set_gpio", pin="11", high=True)
        r.hardware.lines.unplug(CHIP)
        with pytest.raises(MachineError) as caught:
            await r.call("get_gpio", pin="11")
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        await wait_all_tasks_blocked()
        assert r.state() == "unhealthy"
        assert CHIP in r.reason()
        r.hardware.lines.plug(CHIP)
        await trio.sleep(60)
        assert r.state() == "ready"
        await r.call("set_gpio", pin="11", high=True)
        assert r.level(17) is True


async def _load(board: Any, errors: list[MachineError], method: str, *arguments: object) -> None:
    while len(errors) < 40:
        try:
            await getattr(board, method)(*arguments)
        except MachineError as error:
            errors.append(error)
        await trio.lowlevel.checkpoint()


async def test_calls_during_the_end_of_the_board_are_asked_to_retry(autojump_clock: MockClock) -> None:
    """A call during the end of the board fails with UNAVAILABLE, whatever it is doing."""
    for turns in range(12):
        async with rig() as r:
            await r.call("set_gpio", pin="11", high=True)
            board = r.memory.machine.roster.find("board").resource
            errors: list[MachineError] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_load, board, errors, "set_gpio", "11", True)
                nursery.start_soon(_load, board, errors, "get_gpio", "13")
                nursery.start_soon(_load, board, errors, "set_pwm", "15", 0.5)
                nursery.start_soon(_load, board, errors, "pwm", "11")
                for _ in range(turns):
                    await trio.lowlevel.checkpoint()
                r.hardware.lines.unplug(CHIP)
            assert {error.kind for error in errors} == {ErrorKind.UNAVAILABLE}


async def test_a_chip_that_vanishes_is_noticed_without_a_call(autojump_clock: MockClock) -> None:
    hardware = Telling(World())
    async with rig(hardware=hardware) as r:
        await r.call("get_gpio", pin="11")
        hardware.events.removed("spi", "something else")
        await wait_all_tasks_blocked()
        assert r.state() == "ready"
        r.hardware.lines.unplug(CHIP)
        hardware.events.removed("gpio", "gpiochip0")
        await wait_all_tasks_blocked()
        assert r.state() == "unhealthy"


async def test_a_chip_that_comes_under_another_name_is_found(autojump_clock: MockClock) -> None:
    hardware = Telling(World())

    def definition_of(chip: str) -> BoardDefinition:
        return BoardDefinition("generic", "computer", pins=(BoardPin(("LAMP",), Line(chip, 3)),))

    def level(chip: str) -> bool:
        return hardware.world.wiring.signal(hardware.pin(Line(chip, 3))).level(0)

    hardware.definition = definition_of("gpiochip0")
    async with rig(hardware=hardware) as r:
        hardware.definition = definition_of("gpiochip1")
        hardware.events.added("gpio", "gpiochip1")
        await wait_all_tasks_blocked()
        await r.call("set_gpio", pin="LAMP", high=True)
        assert (level("gpiochip0"), level("gpiochip1")) == (False, True)
        assert r.state() == "ready"


async def test_errors_say_what_a_board_does_not_support(autojump_clock: MockClock) -> None:
    async with rig() as r:
        for method, arguments in (("write_analog", {"pin": "11", "value": 1}), ("set_power_mode", {"power_mode": 2})):
            with pytest.raises(MachineError) as caught:
                await r.call(method, **arguments)
            assert caught.value.kind is ErrorKind.UNSUPPORTED
            assert caught.value.message


async def test_a_line_is_as_it_is_when_it_is_only_read(autojump_clock: MockClock) -> None:
    async with rig() as r:
        async with r.hardware.digital_input(Line(CHIP, 17), InputSettings(bias="up")):
            pass
        assert await r.call("get_gpio", pin="11") is True, "the resistor of before is left as it is"
