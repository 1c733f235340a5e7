"""What a micro server needs of its host: clocks, chance, pins and buses. `fake` and `device` implement it."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class I2cBus:
    """A bus. Errors are OSError. Its methods are declared for type checkers only, to save memory."""

    if TYPE_CHECKING:

        def write(self, address: int, data: bytes) -> None:
            """Write to a chip."""
            raise NotImplementedError

        def read(self, address: int, command: bytes, count: int) -> bytes:
            """Write `command`, if it is not empty, and read without a stop in between."""
            raise NotImplementedError


class Port:
    """The host. A pin is the text that the configuration has for it; an unknown pin is a ValueError."""

    platform = ""
    analog_volts = 3.3  # of the largest value of `analog`
    analog_most = 65535

    if TYPE_CHECKING:

        def now(self) -> int:
            """Return milliseconds since a time in the past; they never wrap around."""
            raise NotImplementedError

        def unix(self) -> "tuple[int, int]":
            """Return seconds and nanoseconds since 1970; (0, 0) while the time is not known."""
            raise NotImplementedError

        async def sleep(self, ms: int) -> None:
            """Wait."""
            raise NotImplementedError

        def random(self, count: int) -> bytes:
            """Return bytes that a peer cannot predict."""
            raise NotImplementedError

        def alive(self) -> None:
            """Say that the loop runs; for hosts with a watchdog."""
            raise NotImplementedError

        def free(self) -> int:
            """Return the bytes of the heap that are free after a collection."""
            raise NotImplementedError

        def restart(self) -> None:
            """Restart the computer, or the program where there is no computer of its own."""
            raise NotImplementedError

        def set_level(self, pin: str, high: bool) -> None:
            """Make a pin an output, and set it."""
            raise NotImplementedError

        def level(self, pin: str) -> bool:
            """Return the level of a pin; one that is neither input nor output becomes an input."""
            raise NotImplementedError

        def set_pwm(self, pin: str, duty: float, frequency: int) -> None:
            """Make a pin a PWM output with a duty cycle from 0 to 1."""
            raise NotImplementedError

        def analog(self, pin: str) -> int:
            """Return the value of an analog input, from 0 to `analog_most`."""
            raise NotImplementedError

        def watch(self, pin: str, pull: str, changed: "Any") -> None:
            """Call `changed(level)` for each edge of an input, perhaps within an interrupt; None ends that."""
            raise NotImplementedError

        def release(self, pin: str) -> None:
            """Make a pin an input again."""
            raise NotImplementedError

        def i2c(self, name: str, pins: "dict[str, str]", frequency: int) -> I2cBus:
            """Return a bus by its name; `pins` has sda and scl where the host does not know them."""
            raise NotImplementedError
