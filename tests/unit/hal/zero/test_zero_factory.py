"""gpiozero devices on our ports, on the simulated computer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from gpiozero import LED, PWMLED, Button, Device, DigitalInputDevice, Motor, RotaryEncoder
from gpiozero.exc import GPIOPinInUse, PinInvalidPin, PinSetInput
from trio.testing import MockClock, wait_all_tasks_blocked

from hal.errors import Fault, HalError
from hal.ports.digital import Line, OutputSettings
from hal.sim.bench.world import World
from hal.sim.gpio.signal import HIGH, LOW, Square
from hal.sim.hardware import SimHardware
from hal.zero.factory import PortFactory

CHIP = "pinctrl-bcm2711"


class Bench:
    """A simulated Raspberry Pi 4 with a gpiozero factory."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.hardware = SimHardware(World())
        self.factory = PortFactory(self.hardware, nursery)

    def signal(self, offset: int) -> object:
        return self.hardware.world.wiring.signal(self.hardware.pin(Line(CHIP, offset)))

    def level(self, offset: int) -> bool:
        return bool(self.signal(offset).level(trio.current_time()))  # type: ignore[attr-defined]

    def drive(self, offset: int, high: bool | None) -> None:
        signal = None if high is None else HIGH if high else LOW
        self.hardware.world.wiring.set_drive(self.hardware.pin(Line(CHIP, offset)), signal, trio.current_time())

    async def settled(self) -> None:
        await self.factory.settled()
        await wait_all_tasks_blocked()


@pytest.fixture
async def bench(nursery: trio.Nursery) -> AsyncIterator[Bench]:
    bench = Bench(nursery)
    yield bench
    bench.factory.close()
    await bench.settled()


async def test_an_led_is_on_and_off(autojump_clock: MockClock, bench: Bench) -> None:
    with LED(17, pin_factory=bench.factory) as led:
        assert not led.is_lit
        led.on()
        assert led.is_lit
        await bench.settled()
        assert bench.level(17) is True, "what was asked before the line was open"
        led.off()
        assert bench.level(17) is False, "an open line is written at once"
        led.toggle()
        assert bench.level(17) is True
    await bench.settled()
    assert bench.level(17) is False
    assert not bench.hardware.world.wiring.driven(bench.hardware.pin(Line(CHIP, 17))), "as gpiozero leaves its pins"
    assert bench.hardware.reservations.all() == {}


async def test_a_device_that_is_active_low_is_never_on_by_itself(autojump_clock: MockClock, bench: Bench) -> None:
    levels = []

    class Witness:
        def settle(self, t: float) -> None: ...

        def changed(self, t: float) -> None:
            levels.append(bench.level(17))

    with LED("GPIO17", active_high=False, pin_factory=bench.factory) as led:
        bench.hardware.pin(Line(CHIP, 17)).watchers.append(Witness())
        await bench.settled()
        assert levels == [True]
        led.on()
        led.off()
    assert levels == [True, False, True]


async def test_a_button_tells_its_edges(autojump_clock: MockClock, bench: Bench) -> None:
    messages: list[str] = []
    with Button("BOARD16", hold_time=0.01, pin_factory=bench.factory) as button:
        button.when_pressed = lambda: messages.append("pressed")
        button.when_released = lambda: messages.append("released")
        assert not button.is_pressed
        await bench.settled()
        assert bench.level(23) is True, "pulled up"
        for high in (False, True, False):
            bench.drive(23, high)
            await wait_all_tasks_blocked()
            assert button.is_pressed is not high
        assert messages == ["pressed", "released", "pressed"]
        bench.drive(23, None)
    with pytest.raises(AttributeError):
        _ = button.pin.state


async def test_a_button_that_is_pressed_from_the_start_says_so(autojump_clock: MockClock, bench: Bench) -> None:
    messages: list[str] = []
    bench.hardware.world.wiring.set_short(bench.hardware.pin(Line(CHIP, 23)), LOW, 0.0)
    with Button(23, hold_time=0.01, pin_factory=bench.factory) as button:
        button.when_pressed = lambda: messages.append("pressed")
        assert not button.is_pressed, "not looked yet"
        await bench.settled()
        assert button.is_pressed
        assert messages == ["pressed"]


async def test_times_and_debouncing_are_of_the_runs_clock(autojump_clock: MockClock, bench: Bench) -> None:
    with DigitalInputDevice(23, pull_up=True, bounce_time=0.01, pin_factory=bench.factory) as button:
        await bench.settled()
        for high in (False, True, False, True):
            bench.drive(23, high)
            await trio.sleep(0.001)
        await trio.sleep(0.1)
        assert not button.is_active
        bench.drive(23, False)
        await trio.sleep(3)
        assert button.is_active
        assert button.active_time == pytest.approx(3, abs=0.02)


async def test_a_wave(autojump_clock: MockClock, bench: Bench) -> None:
    with PWMLED(17, frequency=200, initial_value=0.25, pin_factory=bench.factory) as led:
        await bench.settled()
        assert isinstance(bench.signal(17), Square)
        assert (bench.signal(17).duty, bench.signal(17).frequency) == (0.25, 200)  # type: ignore[attr-defined]
        led.value = 0.75
        assert bench.signal(17).duty == 0.75  # type: ignore[attr-defined]
        led.frequency = 50
        assert bench.signal(17).frequency == 50  # type: ignore[attr-defined]
        assert led.value == 0.75
        led.value = 1
        assert bench.level(17) is True
        led.frequency = None
        await bench.settled()
        assert bench.level(17) is True
        led.value = 0
        assert bench.level(17) is False


async def test_several_pins_make_a_motor_and_an_encoder(autojump_clock: MockClock, bench: Bench) -> None:
    with Motor(5, 6, pwm=False, pin_factory=bench.factory) as motor:
        await bench.settled()
        motor.forward()
        assert (bench.level(5), bench.level(6)) == (True, False)
        motor.backward()
        assert (bench.level(5), bench.level(6)) == (False, True)
    with RotaryEncoder(20, 21, pin_factory=bench.factory, max_steps=100) as encoder:
        await bench.settled()
        for _ in range(3):
            for pin, high in ((20, False), (21, False), (20, True), (21, True)):
                bench.drive(pin, high)
                await wait_all_tasks_blocked()
        assert abs(encoder.steps) == 3


async def test_a_pin_has_one_device_and_wrong_ones_are_refused(autojump_clock: MockClock, bench: Bench) -> None:
    with LED(17, pin_factory=bench.factory):
        with pytest.raises(GPIOPinInUse):
            LED("GPIO17", pin_factory=bench.factory)
    for wrong in (99, "GPIO99", "J8:6", "BOARD1"):
        with pytest.raises(PinInvalidPin):
            bench.factory.pin(wrong)
    with Button(23, hold_time=0.01, pin_factory=bench.factory) as button, pytest.raises(PinSetInput):
        button.pin.state = 1
    assert bench.factory.pin(17) is bench.factory.pin("J8:11") is bench.factory.pin("BCM17")


async def test_an_error_of_the_hardware_ends_the_nursery(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    async with hardware.digital_output(Line(CHIP, 17), OutputSettings()):
        with pytest.raises(ExceptionGroup) as caught:
            await _light(hardware)
        assert isinstance(error := caught.value.exceptions[0], HalError)
        assert error.fault is Fault.BUSY


async def _light(hardware: SimHardware) -> None:
    async with trio.open_nursery() as nursery:
        factory = PortFactory(hardware, nursery)
        with LED(17, pin_factory=factory):
            await factory.settled()


async def test_leaving_the_nursery_leaves_outputs_as_they_were_made(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    async with trio.open_nursery() as nursery:
        factory = PortFactory(hardware, nursery)
        led = LED(17, pin_factory=factory)
        led.on()
        await factory.settled()
        nursery.cancel_scope.cancel()
    assert hardware.world.wiring.signal(hardware.pin(Line(CHIP, 17))).level(0) is False
    led.close()


async def test_threads_may_use_devices() -> None:
    """gpiozero blinks in a thread of its own, and users have theirs; hence the real clock."""
    hardware = SimHardware(World())
    pin = hardware.pin(Line(CHIP, 17))
    seen = []
    changed = trio.Event()

    class Witness:
        def settle(self, t: float) -> None: ...

        def changed(self, t: float) -> None:
            seen.append(hardware.world.wiring.signal(pin).level(t))
            if len(seen) > 6:
                changed.set()

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            factory = PortFactory(hardware, nursery)
            pin.watchers.append(Witness())

            def work() -> None:
                with LED(17, pin_factory=factory) as led:
                    led.blink(0.001, 0.001)
                    trio.from_thread.run(changed.wait)
                    led.on()
                    assert led.is_lit

            await trio.to_thread.run_sync(work)
            await factory.settled()
            nursery.cancel_scope.cancel()
    assert True in seen
    assert hardware.reservations.all() == {}


async def test_the_default_factory_may_be_ours(autojump_clock: MockClock, bench: Bench) -> None:
    Device.pin_factory = bench.factory
    try:
        with LED(17) as led:
            led.on()
            await bench.settled()
            assert bench.level(17) is True
    finally:
        Device.pin_factory = None
