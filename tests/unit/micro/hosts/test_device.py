"""The port of a microcontroller against a model of MicroPython's modules `machine` and `network`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from micro.components.pins import MicroBoard
from micro.engine.attributes import Attributes
from micro.hosts.device import DevicePort, join


class Pin:
    IN, OUT, PULL_UP, PULL_DOWN, IRQ_RISING, IRQ_FALLING = 0, 1, 2, 3, 1, 2
    levels: ClassVar[dict[int | str, int]] = {}

    def __init__(self, number: int | str, mode: int = -1, pull: int | None = None) -> None:
        if isinstance(number, int) and number > 39:
            raise ValueError("invalid pin")
        self.number, self.mode, self.pull = number, mode, pull
        self.handler: Callable[[Pin], None] | None = None

    def init(self, mode: int) -> None:
        self.mode = mode

    def value(self, level: int | None = None) -> int:
        if level is not None:
            assert self.mode == self.OUT
            self.levels[self.number] = level
        return self.levels.get(self.number, 0)

    def irq(self, handler: Callable[[Pin], None] | None = None, trigger: int = 0) -> None:
        self.handler = handler


class Wave:
    def __init__(self, pin: Pin, freq: int, duty_u16: int) -> None:
        self.settings, self.ended = (freq, duty_u16), False

    def freq(self, value: int) -> None:
        self.settings = (value, self.settings[1])

    def duty_u16(self, value: int) -> None:
        self.settings = (self.settings[0], value)

    def deinit(self) -> None:
        self.ended = True


class Converter:
    ATTN_11DB = 3

    def __init__(self, pin: Pin) -> None:
        self.attenuation = 0

    def atten(self, value: int) -> None:
        self.attenuation = value

    def read_u16(self) -> int:
        return 1000 * self.attenuation


class Wires:
    def __init__(self, number: int, **options: Any) -> None:
        self.number, self.options, self.calls = number, options, list[Any]()

    def writeto(self, address: int, data: bytes, stop: bool = True) -> None:
        self.calls.append((address, data, stop))

    def readfrom(self, address: int, count: int) -> bytes:
        return bytes(count)


class Watchdog:
    def __init__(self, timeout: int) -> None:
        self.timeout, self.fed = timeout, 0

    def feed(self) -> None:
        self.fed += 1


class Module:
    def __init__(self) -> None:
        self.Pin, self.PWM, self.ADC, self.I2C, self.WDT = Pin, Wave, Converter, Wires, Watchdog
        self.resets = 0
        Pin.levels = {}

    def reset(self) -> None:
        self.resets += 1


@pytest.fixture
def port() -> DevicePort:
    return DevicePort(Module())


def test_outputs_inputs_and_pwm(port: DevicePort) -> None:
    port.set_level("5", True)
    assert Pin.levels[5] == 1
    port.set_pwm("5", 0.5, 1000)
    wave = port._pwms["5"]
    assert wave.settings == (1000, 32768)
    port.set_pwm("5", 0.25, 50)
    assert wave.settings == (50, 16384)
    port.set_level("5", False)
    assert wave.ended
    assert Pin.levels[5] == 0
    Pin.levels[6] = 1
    assert port.level("6")
    assert not port.level("LED")
    with pytest.raises(ValueError, match="invalid pin"):
        port.set_level("40", True)
    with pytest.raises(ValueError, match="no name"):
        port.level("")


def test_released_pins_are_inputs(port: DevicePort) -> None:
    port.set_pwm("5", 0.5, 1000)
    wave, pin = port._pwms["5"], port._pins["5"]
    port.release("5")
    assert wave.ended
    assert pin.mode == Pin.IN
    port.release("7")  # was never used


def test_analog_inputs_have_the_whole_range(port: DevicePort) -> None:
    assert port.analog("4") == 3000
    assert port.analog("4") == 3000


def test_edges(port: DevicePort) -> None:
    seen: list[bool] = []
    port.watch("7", "up", seen.append)
    pin = port._pins["7"]
    assert (pin.mode, pin.pull) == (Pin.IN, Pin.PULL_UP)
    for level in (1, 0):
        Pin.levels[7] = level
        pin.handler(pin)
    assert seen == [True, False]
    port.watch("7", "up", None)
    assert pin.handler is None


def test_buses(port: DevicePort) -> None:
    bus = port.i2c("0", {"sda": "4", "scl": "5"}, 100_000)
    assert port.i2c("0", {}, 100_000) is bus
    bus.write(0x48, b"\x01")
    assert bus.read(0x48, b"\x00", 2) == bytes(2)
    bus.read(0x48, b"", 1)
    wires = bus._bus  # type: ignore[attr-defined]
    assert wires.calls == [(0x48, b"\x01", True), (0x48, b"\x00", False)]
    assert {key: getattr(value, "number", value) for key, value in wires.options.items()} == {
        "freq": 100_000,
        "sda": 4,
        "scl": 5,
    }
    with pytest.raises(ValueError, match="not a number"):
        port.i2c("main", {}, 1)


def test_the_watchdog_is_fed_and_the_board_is_reset(port: DevicePort) -> None:
    port.alive()
    assert port._watchdog.fed == 1
    port.restart()
    assert port._machine.resets == 1


def test_a_board_runs_on_it(port: DevicePort) -> None:
    attributes = Attributes({"pins": {"lamp": "25"}, "i2cs": [{"name": "main", "bus": "1", "sda": 4, "scl": 5}]})
    board = MicroBoard("b", port, attributes, {})
    board.set_gpio({"pin": "lamp", "high": True})
    assert Pin.levels[25] == 1
    board.close()
    assert "25" not in port._pins


class Station:
    def __init__(self, after: int) -> None:
        self.after, self.words = after, ("", "")

    def active(self, on: bool) -> None:
        assert on

    def isconnected(self) -> bool:
        self.after -= 1
        return self.after < 0

    def connect(self, *words: str) -> None:
        self.words = words

    def ifconfig(self) -> tuple[str, ...]:
        return ("10.0.0.7", "", "", "")


@pytest.mark.parametrize(("after", "address"), [(5, "10.0.0.7"), (1000, "")])
def test_wifi_is_joined_or_not_within_a_time(after: int, address: str) -> None:
    station, pauses = Station(after), list[None]()
    network = type("network", (), {"STA_IF": 0, "WLAN": lambda _: station})
    assert join(network, {"ssid": "s", "password": "p"}, lambda: pauses.append(None)) == address
    assert station.words == ("s", "p")
    assert len(pauses) <= 60
