"""A host without hardware, for tests and for trying out: pins are values, and wires connect outputs to inputs."""

from micro.hosts.port import I2cBus, Port

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PINS = 64
NO_ANSWER = 5  # EIO


class FakeBus(I2cBus):
    """A bus with simulated chips, which are objects with `write(data)` and `read(command, count)`."""

    def __init__(self) -> None:
        self.chips: dict[int, Any] = {}

    def write(self, address: int, data: bytes) -> None:
        """Write to a chip."""
        self._chip(address).write(data)

    def read(self, address: int, command: bytes, count: int) -> bytes:
        """Read from a chip."""
        data: bytes = self._chip(address).read(command, count)
        return data

    def _chip(self, address: int) -> "Any":
        if address not in self.chips:
            raise OSError(NO_ANSWER)
        return self.chips[address]


class FakePort(Port):
    """A host without hardware. Subclasses add clocks and chance; see hosts.loop."""

    platform = "fake"

    def __init__(self) -> None:
        self.levels: dict[str, bool] = {}
        self.pwm: dict[str, tuple[float, int]] = {}
        self.analogs: dict[str, int] = {}
        self.released: list[str] = []
        self.buses: dict[str, FakeBus] = {}
        self._watched: dict[str, Any] = {}
        self._wires: dict[str, str] = {}

    def connect(self, output: str, pin: str) -> None:
        """Let an output drive an input."""
        self._wires[output] = pin

    def drive(self, pin: str, high: bool) -> None:
        """Set the level of an input from outside."""
        before = self.levels.get(pin, False)
        self.levels[pin] = high
        if before != high and pin in self._watched:
            self._watched[pin](high)

    def set_level(self, pin: str, high: bool) -> None:
        """Make a pin an output, and set it."""
        _check(pin)
        self.pwm.pop(pin, None)
        self.drive(pin, high)
        if pin in self._wires:
            self.drive(self._wires[pin], high)

    def level(self, pin: str) -> bool:
        """Return the level of a pin."""
        _check(pin)
        return self.levels.get(pin, False)

    def set_pwm(self, pin: str, duty: float, frequency: int) -> None:
        """Make a pin a PWM output."""
        _check(pin)
        self.pwm[pin] = (duty, frequency)
        self.levels[pin] = duty > 0.5

    def analog(self, pin: str) -> int:
        """Return the value of an analog input."""
        _check(pin)
        return self.analogs.get(pin, 0)

    def watch(self, pin: str, pull: str, changed: "Any") -> None:
        """Call `changed(level)` for each edge of an input."""
        _check(pin)
        if changed is None:
            self._watched.pop(pin, None)
        else:
            self.levels.setdefault(pin, pull == "up")
            self._watched[pin] = changed

    def release(self, pin: str) -> None:
        """Make a pin an input again."""
        self.released.append(pin)
        self.pwm.pop(pin, None)
        self.levels.pop(pin, None)
        self._watched.pop(pin, None)

    def i2c(self, name: str, pins: "dict[str, str]", frequency: int) -> I2cBus:
        """Return a bus."""
        if name not in self.buses:
            self.buses[name] = FakeBus()
        return self.buses[name]


def _check(pin: str) -> None:
    if not pin.isdigit() or int(pin) >= PINS:
        raise ValueError(f"there is no pin {pin!r}: pins are 0 to {PINS - 1}")
