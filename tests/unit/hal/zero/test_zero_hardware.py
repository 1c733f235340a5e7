"""Our ports on gpiozero's own mock factory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio
from gpiozero import LED, Device
from gpiozero.pins.mock import MockFactory, MockPWMPin

from hal.errors import Fault, HalError
from hal.ports.digital import InputSettings, Line, OutputSettings
from hal.ports.pwm import PwmChannel
from hal.zero.hardware import CHIP, ZeroHardware
from hal.zero.lines import EDGE_BUFFER
from runtime.server.memory import open_machine


@pytest.fixture
def factory() -> Iterator[Any]:
    factory = MockFactory()
    yield factory
    factory.reset()


@pytest.fixture
def hardware(factory: Any) -> ZeroHardware:
    return ZeroHardware(factory)


SEVENTEEN = Line(CHIP, 17)


async def test_an_output_and_its_safe_level(hardware: ZeroHardware, factory: Any) -> None:
    pin = factory.pin("GPIO17")
    async with hardware.digital_output(SEVENTEEN, OutputSettings(safe=True)) as output:
        assert pin.function == "output"
        assert (pin.state, output.read()) == (True, True)
        output.write(False)
        assert (pin.state, output.read()) == (False, False)
    assert pin.state is True
    async with hardware.digital_output(SEVENTEEN, OutputSettings(active_low=True)) as output:
        assert (pin.state, output.read()) == (True, False)
        output.write(True)
        assert (pin.state, output.read()) == (False, True)
    assert pin.state is True


async def test_an_input_with_its_resistor(hardware: ZeroHardware, factory: Any) -> None:
    pin = factory.pin(17)
    for bias, pull, level in (("up", "up", True), ("down", "down", False), ("none", "floating", False)):
        async with hardware.digital_input(SEVENTEEN, InputSettings(bias)) as source:  # type: ignore[arg-type]
            assert (pin.function, pin.pull, source.read()) == ("input", pull, level)
    async with hardware.digital_input(SEVENTEEN, InputSettings(active_low=True)) as source:
        pin.drive_high()
        assert source.read() is False
    with pytest.raises(HalError, match="pull") as caught:
        async with hardware.digital_input(Line(CHIP, 2), InputSettings("down")):
            pass
    assert caught.value.fault is Fault.UNSUPPORTED


async def test_a_pin_has_one_owner(hardware: ZeroHardware, factory: Any) -> None:
    async with hardware.digital_output(SEVENTEEN, OutputSettings()):
        for manager in (hardware.digital_output(SEVENTEEN, OutputSettings()), hardware.pwm(SEVENTEEN)):
            with pytest.raises(HalError, match="machine-server's GPIO17") as caught:
                await manager.__aenter__()
            assert caught.value.fault is Fault.BUSY
        with pytest.raises(Exception, match="already in use"):
            LED(17, pin_factory=factory)
    with LED(17, pin_factory=factory):
        with pytest.raises(HalError, match="LED") as caught:
            await hardware.digital_input(SEVENTEEN, InputSettings()).__aenter__()
        assert caught.value.fault is Fault.BUSY
    async with hardware.digital_input(SEVENTEEN, InputSettings()):
        pass


@pytest.mark.parametrize("line", [Line(CHIP, 99), Line("gpiochip0", 17)])
async def test_a_wrong_line_is_refused(hardware: ZeroHardware, line: Line) -> None:
    with pytest.raises(HalError) as caught:
        await hardware.digital_input(line, InputSettings()).__aenter__()
    assert caught.value.fault is Fault.GONE


async def test_open_drain_is_refused(hardware: ZeroHardware) -> None:
    with pytest.raises(HalError, match="open drain"):
        await hardware.digital_output(SEVENTEEN, OutputSettings(drive="open_drain")).__aenter__()


async def test_edges_from_another_thread(hardware: ZeroHardware, factory: Any) -> None:
    pin = factory.pin(17)

    def press() -> None:
        for _ in range(3):
            pin.drive_high()
            pin.drive_low()

    async with hardware.digital_input(SEVENTEEN, InputSettings("down", active_low=True)) as source:
        async with source.edges() as edges, source.edges() as more:
            before = trio.current_time()
            await trio.to_thread.run_sync(press)
            got = [await anext(aiter(edges)) for _ in range(6)]
            assert [edge.high for edge in got] == [False, True] * 3
            assert [edge.time for edge in got] == sorted(edge.time for edge in got)
            assert before <= got[0].time <= got[-1].time <= trio.current_time()
            assert [(await anext(aiter(more))).high for _ in range(6)] == [False, True] * 3
        assert pin.when_changed is None


async def test_a_waiting_reader_is_woken_by_a_thread(hardware: ZeroHardware, factory: Any) -> None:
    async with hardware.digital_input(SEVENTEEN, InputSettings("down")) as source, source.edges() as edges:
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, factory.pin(17).drive_high)
                assert (await anext(aiter(edges))).high is True


async def test_a_slow_reader_loses_the_oldest_edges(hardware: ZeroHardware, factory: Any) -> None:
    pin = factory.pin(17)
    async with hardware.digital_input(SEVENTEEN, InputSettings("down")) as source, source.edges() as edges:
        for _ in range(EDGE_BUFFER // 2 + 5):
            pin.drive_high()
            pin.drive_low()
        assert edges.dropped == 10
        got = [await anext(aiter(edges)) for _ in range(EDGE_BUFFER)]
        assert [edge.high for edge in got[:2]] == [True, False]
        with trio.move_on_after(0.01) as limit:
            await anext(aiter(edges))
        assert limit.cancelled_caught, "that was all"
        pin.drive_high()
        assert (await anext(aiter(edges))).high is True


async def test_waves_of_the_factory() -> None:
    factory = MockFactory(pin_class=MockPWMPin)
    hardware, pin = ZeroHardware(factory), factory.pin("GPIO18")
    async with hardware.pwm(Line(CHIP, 18)) as wave:
        assert (pin.frequency, pin.state) == (800, 0)
        wave.set_wave(0.25, 50)
        assert (pin.frequency, pin.state, wave.wave()) == (50, 0.25, (0.25, 50))
        for duty, frequency in ((-0.1, 50), (1.1, 50)):
            with pytest.raises(ValueError, match="0 to 1"):
                wave.set_wave(duty, frequency)
        with pytest.raises(HalError):
            wave.set_wave(0.5, 0)
        assert (pin.frequency, pin.state) == (50, 0.25)
    assert (pin.frequency, pin.state) == (None, False)


async def test_waves_by_software_where_the_factory_makes_none(hardware: ZeroHardware, factory: Any) -> None:
    pin = factory.pin(17)
    async with hardware.pwm(SEVENTEEN) as wave:
        pin.clear_states()
        wave.set_wave(0.5, 1000)
        with trio.fail_after(30):
            async with hardware.ticks(0.001) as beat:
                async for _ in beat:
                    if len(pin.states) > 6:
                        break
        pin.assert_states([False, True, False, True, False])
    assert pin.state is False


async def test_boards(hardware: ZeroHardware) -> None:
    board = hardware.board()
    assert board.pin("11").line == board.pin("gpio17").line == SEVENTEEN
    assert len([pin for pin in board.pins if pin.line is not None]) == 26 + 2
    named = hardware.board("raspberry-pi-4")
    assert named.title == "Raspberry Pi 4 Model B"
    assert named.pin("11").line == SEVENTEEN
    assert named.pin("12").pwm is None


async def test_the_rest_is_linux(hardware: ZeroHardware) -> None:
    assert hardware.family == "gpiozero"
    with pytest.raises(HalError, match="PWM chip"):
        await hardware.pwm(PwmChannel("pwmchip7", 0)).__aenter__()
    with trio.fail_after(30):
        async with hardware.ticks(0.001) as beat:
            assert await anext(aiter(beat)) >= 1


async def test_a_board_runs_on_it(factory: Any) -> None:
    document = {"components": [{
        "name": "board", "api": "rdk:component:board", "model": "rdk:builtin:linux",
        "attributes": {"digital_interrupts": [{"name": "door", "pin": "16", "bias": "down"}]},
    }]}  # fmt: skip
    with trio.fail_after(30):
        async with open_machine(document, hardware=ZeroHardware(factory)) as memory:
            await memory.machine.lifecycle.running.wait()
            client = memory.client()
            await client.call("rdk:component:board", "board", "set_gpio", pin="11", high=True)
            assert factory.pin(17).state is True
            door = factory.pin(23)
            ticks = client.stream("rdk:component:board", "board", "stream_ticks", pin_names=["door"])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_press_when_listened_to, memory, door)
                tick = await anext(ticks)
                await ticks.aclose()
            assert (tick["pin_name"], tick["high"]) == ("door", True)
        assert factory.pin(17).state is False


async def _press_when_listened_to(memory: Any, pin: Any) -> None:
    await trio.testing.wait_all_tasks_blocked(0.01)
    await trio.to_thread.run_sync(pin.drive_high)


def test_without_gpiozero_the_error_has_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gpiozero", None)
    with pytest.raises(HalError, match=r"pip install .*gpiozero"):
        ZeroHardware()


def test_without_access_to_the_pins_the_error_has_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPIOZERO_PIN_FACTORY", "nonesuch")
    monkeypatch.setattr(Device, "pin_factory", None)
    with pytest.raises(HalError, match="GPIOZERO_PIN_FACTORY"):
        ZeroHardware()


def test_the_default_factory_is_gpiozeros(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPIOZERO_PIN_FACTORY", "mock")
    monkeypatch.setattr(Device, "pin_factory", None)
    assert ZeroHardware().board().pin("11").line == SEVENTEEN
