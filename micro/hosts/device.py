"""The host on a microcontroller: pins and buses by MicroPython's module `machine`, Wi-Fi by `network`.

A board's `main.py` has two lines: `from micro.hosts.device import start` and `start("machine.json")`.
"""

import gc
import sys

from micro.hosts import settings
from micro.hosts.loop import Clock
from micro.hosts.main import PORT, run
from micro.hosts.port import I2cBus, Port

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WATCHDOG_MS = 8000  # RP2040: at most 8388
FULL = 65535
ON_BOARD = {"esp32": "esp32", "rp2": "rp2"}
JOIN_TRIES = 60  # each half a second


class DeviceBus(I2cBus):
    """A bus of the module `machine`."""

    def __init__(self, bus: "Any") -> None:
        self._bus = bus

    def write(self, address: int, data: bytes) -> None:
        """Write to a chip."""
        self._bus.writeto(address, data)

    def read(self, address: int, command: bytes, count: int) -> bytes:
        """Write `command`, if it is not empty, and read without a stop in between."""
        if command:
            self._bus.writeto(address, command, False)
        data: bytes = self._bus.readfrom(address, count)
        return data


class DevicePort(Clock, Port):
    """A microcontroller. `machine` is MicroPython's module, or a model of it in tests."""

    def __init__(self, machine: "Any", watchdog: bool = True) -> None:
        Clock.__init__(self)
        self.platform = ON_BOARD.get(sys.platform, sys.platform)
        self._machine = machine
        self._pins: dict[str, Any] = {}
        self._pwms: dict[str, Any] = {}
        self._inputs: dict[str, Any] = {}  # analog
        self._outputs: list[str] = []
        self._buses: dict[str, DeviceBus] = {}
        self._watchdog: Any = machine.WDT(timeout=WATCHDOG_MS) if watchdog else None

    def alive(self) -> None:
        """Feed the watchdog, which resets a program whose loop stands still."""
        if self._watchdog is not None:
            self._watchdog.feed()

    def restart(self) -> None:
        """Reset the microcontroller."""
        self._machine.reset()

    def free(self) -> int:
        """Return the bytes of the heap that are free after a collection."""
        gc.collect()
        return gc.mem_free()  # type: ignore[attr-defined, no-any-return]  # of MicroPython

    def _new(self, pin: str, *options: "Any") -> "Any":
        if not pin:
            raise ValueError("a pin has no name")
        self._pins[pin] = made = self._machine.Pin(int(pin) if pin.isdigit() else pin, *options)
        return made

    def set_level(self, pin: str, high: bool) -> None:
        """Make a pin an output, and set it."""
        self._end_pwm(pin)
        if pin not in self._outputs:
            # The level is set together with the direction, so that no other one is driven in between.
            self._new(pin, self._machine.Pin.OUT, None).value(int(high))
            self._outputs.append(pin)
        self._pins[pin].value(int(high))

    def level(self, pin: str) -> bool:
        """Return the level of a pin."""
        if pin not in self._pins:
            self._new(pin, self._machine.Pin.IN)
        return bool(self._pins[pin].value())

    def set_pwm(self, pin: str, duty: float, frequency: int) -> None:
        """Make a pin a PWM output."""
        value = int(duty * FULL + 0.5)
        pwm = self._pwms.get(pin)
        if pwm is None:
            if pin in self._outputs:
                self._outputs.remove(pin)
            self._pwms[pin] = self._machine.PWM(self._new(pin), freq=frequency, duty_u16=value)
            return
        pwm.freq(frequency)
        pwm.duty_u16(value)

    def _end_pwm(self, pin: str) -> None:
        pwm = self._pwms.pop(pin, None)
        if pwm is not None:
            pwm.deinit()

    def analog(self, pin: str) -> int:
        """Return the value of an analog input."""
        if pin not in self._inputs:
            adc = self._machine.ADC(self._new(pin))
            if hasattr(adc, "atten"):
                adc.atten(self._machine.ADC.ATTN_11DB)  # ESP32: the range up to 3.3 V
            self._inputs[pin] = adc
        return int(self._inputs[pin].read_u16())

    def watch(self, pin: str, pull: str, changed: "Any") -> None:
        """Call `changed(level)` for each edge of an input."""
        if changed is None:
            if pin in self._pins:
                self._pins[pin].irq(handler=None)
            return
        cls = self._machine.Pin
        pulls = {"up": cls.PULL_UP, "down": cls.PULL_DOWN}
        made = self._new(pin, cls.IN, pulls[pull]) if pull in pulls else self._new(pin, cls.IN)
        made.irq(handler=lambda each: changed(each.value() == 1), trigger=cls.IRQ_RISING | cls.IRQ_FALLING)

    def release(self, pin: str) -> None:
        """Make a pin an input again."""
        self._end_pwm(pin)
        if pin in self._outputs:
            self._outputs.remove(pin)
        self._inputs.pop(pin, None)
        made = self._pins.pop(pin, None)
        if made is not None:
            made.init(self._machine.Pin.IN)

    def i2c(self, name: str, pins: "dict[str, str]", frequency: int) -> I2cBus:
        """Return a bus by its number; `sda` and `scl` may be left out where the board has usual pins."""
        if not name.isdigit():
            raise ValueError(f"bus {name!r} is not a number")
        if name not in self._buses:
            options: dict[str, Any] = {"freq": frequency}
            for key in ("sda", "scl"):
                if pins.get(key):
                    options[key] = self._new(pins[key])
            self._buses[name] = DeviceBus(self._machine.I2C(int(name), **options))
        return self._buses[name]


def join(network: "Any", wifi: "dict[str, Any]", pause: "Any") -> str:
    """Join a Wi-Fi network and return the own address, "" if that has failed; `pause` waits half a second."""
    station = network.WLAN(network.STA_IF)
    station.active(True)
    if not station.isconnected():
        station.connect(str(wifi.get("ssid", "")), str(wifi.get("password", "")))
        for _ in range(JOIN_TRIES):
            if station.isconnected():
                break
            pause()
    return str(station.ifconfig()[0]) if station.isconnected() else ""


def start(path: str, slots: "str | None" = None) -> None:
    """Run the micro server of this board. `wifi` in the file has `ssid` and `password` of its network.

    `slots` is the folder of the slots, if the board boots by `micro.update.boot`.
    """
    import time

    import machine
    import network

    wifi: Any = {}
    try:
        wifi = settings.read_json(path).get("wifi") or {}
    except settings.BadFile as error:
        print(error)
    port = DevicePort(machine)

    def pause() -> None:
        port.alive()
        time.sleep(0.5)

    address = join(network, wifi if isinstance(wifi, dict) else {}, pause)
    if not address:
        print("the Wi-Fi network cannot be joined: restarting")
        machine.reset()
    try:
        import ntptime

        ntptime.settime()
    except (ImportError, OSError):
        print("the clock cannot be set: times of logs and readings are missing")
    run(port, path, address, PORT, slots)
