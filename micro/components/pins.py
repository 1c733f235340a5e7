"""The board: pins, PWM, analog inputs, counted edges, and the I2C buses of the other drivers."""

from micro.engine.attributes import Unfit
from micro.engine.resource import Resource, invalid, not_found
from micro.wire.faults import UNIMPLEMENTED, CallFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from micro.engine.attributes import Attributes
    from micro.engine.resource import Reply, Request
    from micro.hosts.port import I2cBus, Port

FREQUENCY = 800  # Hz, of pins without their own
MAX_FREQUENCY = 40_000_000
I2C_FREQUENCY = 400_000


class MicroBoard(Resource):
    """The pins of the computer. `pins` names some of them; outputs become inputs when the board closes."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self._names = attributes.values("pins")
        self._frequencies: dict[str, int] = {}
        self._duties: dict[str, float] = {}
        self._used: list[str] = []
        self._default = attributes.whole("default_pwm_frequency_hz", FREQUENCY, 1, MAX_FREQUENCY)
        self._analogs: dict[str, str] = {}
        for analog in attributes.parts("analogs"):
            self._analogs[analog.text("name")] = analog.text("pin", "") or analog.text("channel")
        self._buses: dict[str, I2cBus] = {}
        for bus in attributes.parts("i2cs"):
            pins = {key: bus.text(key, "") for key in ("sda", "scl")}
            frequency = bus.whole("frequency_hz", I2C_FREQUENCY, 1000, 1_000_000)
            self._buses[bus.text("name")] = port.i2c(bus.text("bus", "0"), pins, frequency)
        self._interrupts: dict[str, EdgeCounter] = {}
        for interrupt in attributes.parts("digital_interrupts"):
            pin = interrupt.text("pin")
            counter = EdgeCounter(interrupt.flag("active_low"))
            bias = interrupt.choice("bias", ("as_is", "up", "down", "none"), "as_is")
            self._interrupts[interrupt.text("name")] = counter
            port.watch(self.pin(pin), bias, counter.changed)
            self._used.append(self.pin(pin))

    def pin(self, name: str) -> str:
        """Return the pin of the port for a name of the configuration."""
        return str(self._names.get(name, name))

    def write(self, name: str, high: bool) -> None:
        """Set an output."""
        pin = self._output(name)
        self._duties.pop(pin, None)
        self.port.set_level(pin, high)

    def drive(self, name: str, duty: float, frequency: int = 0) -> None:
        """Set the PWM of an output; 0 and 1 are plain levels."""
        pin = self._output(name)
        self._duties[pin] = duty
        if 0 < duty < 1:
            self.port.set_pwm(pin, duty, frequency or self._frequencies.get(pin, self._default))
        else:
            self.port.set_level(pin, duty >= 1)

    def _output(self, name: str) -> str:
        pin = self.pin(name)
        if pin not in self._used:
            self._used.append(pin)
        return pin

    def bus(self, name: str) -> "I2cBus":
        """Return an I2C bus of the configuration."""
        if name not in self._buses:
            there = ", ".join(sorted(self._buses)) or "none"
            raise Unfit(f"attributes.i2c_bus is {name!r}: {self.name} has {there} in i2cs")
        return self._buses[name]

    def close(self) -> None:
        """Release every pin."""
        for pin in self._used:
            self.port.release(pin)

    def set_gpio(self, request: "Request") -> "Reply":
        """Set a pin."""
        self.write(request["pin"], request["high"])
        return {}

    def get_gpio(self, request: "Request") -> "Reply":
        """Return the level of a pin."""
        return {"high": self.port.level(self.pin(request["pin"]))}

    def set_pwm(self, request: "Request") -> "Reply":
        """Set the duty cycle of a pin."""
        duty = request["duty_cycle_pct"]
        if not 0 <= duty <= 1:
            raise invalid(f"duty_cycle_pct is {duty:g}: expected 0 to 1")
        self.drive(request["pin"], duty)
        return {}

    def pwm(self, request: "Request") -> "Reply":
        """Return the duty cycle of a pin."""
        return {"duty_cycle_pct": self._duties.get(self.pin(request["pin"]), 0.0)}

    def set_pwm_frequency(self, request: "Request") -> "Reply":
        """Set the PWM frequency of a pin; 0 is the default."""
        frequency = request["frequency_hz"]
        if frequency > MAX_FREQUENCY:
            raise invalid(f"frequency_hz is {frequency}: expected at most {MAX_FREQUENCY}")
        pin = self.pin(request["pin"])
        self._frequencies[pin] = frequency or self._default
        if pin in self._duties:
            self.drive(request["pin"], self._duties[pin])
        return {}

    def pwm_frequency(self, request: "Request") -> "Reply":
        """Return the PWM frequency of a pin."""
        return {"frequency_hz": self._frequencies.get(self.pin(request["pin"]), self._default)}

    def read_analog_reader(self, request: "Request") -> "Reply":
        """Read an analog input; `step_size` is the volts of one step."""
        name = request["analog_reader_name"]
        if name not in self._analogs:
            raise not_found("analog", name, self._analogs)
        port = self.port
        step = port.analog_volts / port.analog_most
        value = port.analog(self.pin(self._analogs[name]))
        return {"value": value, "min_range": 0.0, "max_range": port.analog_volts, "step_size": step}

    def get_digital_interrupt_value(self, request: "Request") -> "Reply":
        """Return the number of edges of an interrupt."""
        name = request["digital_interrupt_name"]
        if name not in self._interrupts:
            raise not_found("digital interrupt", name, self._interrupts)
        return {"value": self._interrupts[name].count}

    def set_power_mode(self, request: "Request") -> "Reply":
        """Refuse: a microcontroller that sleeps loses its connections."""
        raise CallFailure(UNIMPLEMENTED, "this board has no power modes")


class EdgeCounter:
    """Counts the edges that begin a level. `changed` may run within an interrupt, so it allocates nothing."""

    def __init__(self, low: bool) -> None:
        self.count = 0
        self._low = low

    def changed(self, level: bool) -> None:
        """Count an edge."""
        if level != self._low:
            self.count += 1


def board_of(deps: "dict[str, Resource]", name: str) -> MicroBoard:
    """Return the board that an attribute names; Unfit if it is another component."""
    board = deps.get(name)
    if not isinstance(board, MicroBoard):
        raise Unfit(f"attributes.board is {name!r}, which is not a board of this server")
    return board
