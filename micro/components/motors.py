"""Motors and servos on pins, and models of both without pins."""

from micro.components.encoders import Encoder, SingleTrack
from micro.components.pins import MicroBoard, board_of
from micro.engine.attributes import Unfit
from micro.engine.resource import Resource, invalid
from micro.wire.faults import PRECONDITION, CallFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from micro.engine.attributes import Attributes
    from micro.engine.resource import Reply, Request
    from micro.hosts.port import Port

ABORTED = 10
STEP_MS = 10  # between two looks at the position of a motor that goes somewhere
LATE = 3  # times as long as at full speed, after which a motor that does not arrive is stopped
GRACE_MS = 2000
PAIRS = (["a", "b"], ["a", "b", "pwm"], ["dir", "pwm"])


class Motor(Resource):
    """A motor without pins: what all motors share. The speed is set open-loop, by the share of `max_rpm`."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self.power = 0.0
        self._flip = -1 if attributes.flag("dir_flip") else 1
        self._most = attributes.number("max_power_pct", 1.0, 0.001, 1)
        self._least = attributes.number("min_power_pct", 0.0, 0, self._most)
        self._max_rpm = attributes.number("max_rpm", 0.0, 0, 1e6)
        self._command = 0  # number of the last command, so that an older one sees that it is over
        self._target = 0.0
        self._until = 0
        self._zero = 0.0
        self.encoder: Encoder | None = None
        title = attributes.text("encoder", "")
        if title:
            encoder = deps.get(title)
            if not isinstance(encoder, Encoder):
                raise Unfit(f"attributes.encoder is {title!r}, which is not an encoder of this server")
            self.encoder = encoder
            self._per_rotation = attributes.whole("ticks_per_rotation", None, 1)

    @staticmethod
    def requires(attributes: "Attributes") -> "list[str]":
        """Require the board and the encoder, if they are configured."""
        return [name for name in (attributes.text("board", ""), attributes.text("encoder", "")) if name]

    def apply(self, power: float) -> None:
        """Drive the pins with a power from -1 to 1."""

    def turn(self, power: float) -> int:
        """Set the power, and return the number of this command, which ends the one before."""
        self._command += 1
        size = min(abs(power), self._most)
        size = 0.0 if size < 0.001 else max(size, self._least)
        power = size if power > 0 else -size
        if isinstance(self.encoder, SingleTrack) and power:
            self.encoder.direction = self._flip if power > 0 else -self._flip
        self.apply(power * self._flip)
        self.power = power
        return self._command

    def halt(self) -> None:
        """Stop."""
        self.turn(0.0)

    @property
    def position(self) -> float:
        """Revolutions; CallFailure without an encoder."""
        if self.encoder is None:
            raise CallFailure(PRECONDITION, f"{self.name} has no encoder, so it has no position")
        return self.encoder.count * self._flip / self._per_rotation - self._zero

    def begin(self, rpm: float, revolutions: float) -> int:
        """Begin to turn by some revolutions, and return the number of this command."""
        full = self._max_rpm or (100.0 if self.encoder is not None else 0.0)
        if not full:
            raise CallFailure(PRECONDITION, f"{self.name} has no max_rpm, so its speed is not known")
        if not rpm or abs(rpm) < 0.001:
            raise invalid(f"rpm is {rpm:g}: call stop instead")
        forward = (rpm > 0) == (revolutions > 0)
        share = min(1.0, abs(rpm) / full)
        took = abs(revolutions) * 60000 / (share * full)
        if self.encoder is not None:
            self._target = self.position + (abs(revolutions) if forward else -abs(revolutions))
            took = took * LATE + GRACE_MS
        self._until = self.port.now() + int(took)
        return self.turn(share if forward else -share)

    def arrived(self, command: int) -> bool:
        """Stop a motor that has arrived, and return whether it has; CallFailure if it cannot arrive any more."""
        if command != self._command:
            raise CallFailure(ABORTED, f"another command has taken over {self.name}")
        late = self.port.now() >= self._until
        if self.encoder is None:
            there = late
        else:
            left = self._target - self.position
            there = left <= 0 if self.power > 0 else left >= 0
            if late and not there:
                self.halt()
                raise CallFailure(ABORTED, f"{self.name} does not arrive: its encoder counts too slowly")
        if there:
            self.halt()
            self._command = command
        return there

    def set_power(self, request: "Request") -> "Reply":
        """Set the power."""
        power = request["power_pct"]
        if not -1 <= power <= 1:
            raise invalid(f"power_pct is {power:g}: expected -1 to 1")
        self.turn(power)
        return {}

    def set_rpm(self, request: "Request") -> "Reply":
        """Turn at a speed until the next command."""
        if not self._max_rpm:
            raise CallFailure(PRECONDITION, f"{self.name} has no max_rpm, so its speed is not known")
        if not -1e6 < request["rpm"] < 1e6:
            raise invalid(f"rpm is {request['rpm']:g}")
        self.turn(max(-1.0, min(1.0, request["rpm"] / self._max_rpm)))
        return {}

    async def go_for(self, request: "Request") -> "Reply":
        """Turn by some revolutions; without any, forever."""
        if request["revolutions"] == 0:
            return self.set_rpm(request)
        await wait([self], [self.begin(request["rpm"], request["revolutions"])])
        return {}

    async def go_to(self, request: "Request") -> "Reply":
        """Turn to a position."""
        distance = request["position_revolutions"] - self.position
        if distance:
            await wait([self], [self.begin(abs(request["rpm"]), distance)])
        return {}

    def reset_zero_position(self, request: "Request") -> "Reply":
        """Make the current position, less an offset, 0."""
        self._zero += self.position + request["offset"]
        return {}

    def get_position(self, request: "Request") -> "Reply":
        """Return the revolutions."""
        return {"position": self.position}

    def get_properties(self, request: "Request") -> "Reply":
        """Return whether there is a position."""
        return {"position_reporting": self.encoder is not None}

    def stop(self, request: "Request") -> "Reply":
        """Stop."""
        self.halt()
        return {}

    def is_powered(self, request: "Request") -> "Reply":
        """Return the power."""
        return {"is_on": self.power != 0, "power_pct": self.power}

    def is_moving(self, request: "Request") -> "Reply":
        """Return whether it turns."""
        return {"is_moving": self.power != 0}


async def wait(motors: "list[Motor]", commands: "list[int]") -> None:
    """Wait until all motors have arrived; stop those that this command still has if one cannot, or on cancellation."""
    going = list(range(len(motors)))
    try:
        while going:
            going = [index for index in going if not motors[index].arrived(commands[index])]
            if going:
                await motors[0].port.sleep(STEP_MS)
    finally:
        for index in going:
            if motors[index]._command == commands[index]:
                motors[index].halt()


class PinMotor(Motor):
    """A DC motor on a bridge: pins a and b, both with a pwm, or dir and pwm. Both inputs are never high together."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self.board: MicroBoard = board_of(deps, attributes.text("board"))
        pins = attributes.part("pins")
        self._frequency = attributes.whole("pwm_freq", 800)
        self._pins = {key: pins.text(key, "") for key in ("a", "b", "dir", "pwm", "en_high", "en_low")}
        configured = [key for key in ("a", "b", "dir", "pwm") if self._pins[key]]
        if configured not in PAIRS:
            raise Unfit(f"attributes.pins has {configured or 'no pins'}: use a and b, or a, b and pwm, or dir and pwm")
        used = [pin for pin in self._pins.values() if pin]
        if any(used.count(pin) > 1 for pin in used):
            raise Unfit("attributes.pins names a pin twice")
        self.apply(0.0)

    def apply(self, power: float) -> None:
        """Drive the pins: off first, then the direction, then the power."""
        pins, board, size = self._pins, self.board, abs(power)
        turned = (power > 0) != (self.power * self._flip > 0)
        if not power or turned:
            for key in ("pwm", "a", "b"):
                if pins[key]:
                    board.write(pins[key], False)
        for key, level in (("en_high", power != 0), ("en_low", power == 0)):
            if pins[key]:
                board.write(pins[key], level)
        if not power:
            return
        if pins["dir"]:
            board.write(pins["dir"], power > 0)
        forward = "a" if power > 0 else "b"
        if pins["pwm"]:
            if pins["a"]:
                board.write(pins[forward], True)
            board.drive(pins["pwm"], size, self._frequency)
        else:
            board.drive(pins[forward], size, self._frequency)


class ModelMotor(Motor):
    """A motor without hardware, whose position follows from its power and the time."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self._max_rpm = self._max_rpm or 100.0
        self._moved = 0.0
        self._since = port.now()
        attributes.text("board", "")
        attributes.values("pins")

    def apply(self, power: float) -> None:
        """Add what has been turned until now."""
        self._moved = self._turned()
        self._since = self.port.now()

    def _turned(self) -> float:
        return self._moved + self.power * self._max_rpm * (self.port.now() - self._since) / 60000

    @property
    def position(self) -> float:
        """Revolutions."""
        return self._turned() - self._zero

    def get_properties(self, request: "Request") -> "Reply":
        """Return that there is a position."""
        return {"position_reporting": True}


class ModelServo(Resource):
    """A servo without pins: what all servos share."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self._low = attributes.number("min_angle_deg", 0.0, 0, 3600)
        self._high = attributes.number("max_angle_deg", 180.0, 0, 3600)
        if self._low >= self._high:
            raise Unfit(f"attributes.min_angle_deg {self._low:g} is not below max_angle_deg {self._high:g}")
        self.angle = attributes.number("starting_position_deg", self._low, self._low, self._high)

    def point(self, angle: float) -> None:
        """Move to an angle."""
        self.angle = angle

    def move(self, request: "Request") -> "Reply":
        """Move to an angle within the limits."""
        angle = request["angle_deg"]
        if not self._low <= angle <= self._high:
            raise invalid(f"angle_deg is {angle}: expected {self._low:g} to {self._high:g}")
        self.point(angle)
        return {}

    def get_position(self, request: "Request") -> "Reply":
        """Return the angle of the last command."""
        return {"position_deg": int(self.angle + 0.5)}

    def stop(self, request: "Request") -> "Reply":
        """Stop."""
        self.halt()
        return {}

    def is_moving(self, request: "Request") -> "Reply":
        """Return false: a servo does not report its movement."""
        return {"is_moving": False}


class PinServo(ModelServo):
    """A servo on a pin with PWM. `stop` holds the angle, or ends the pulses if `at_stop` is release."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self._board = board_of(deps, attributes.text("board"))
        self._pin = attributes.text("pin")
        self._frequency = attributes.whole("frequency_hz", 300, 50, 450)
        self._short = attributes.whole("min_width_us", 500, 1, 20000)
        self._long = attributes.whole("max_width_us", 2500, self._short + 1, 1000000 // self._frequency)
        self._releases = attributes.choice("at_stop", ("hold", "release"), "hold") == "release"
        if attributes.number("starting_position_deg", -1.0) >= 0:
            self.point(self.angle)

    @staticmethod
    def requires(attributes: "Attributes") -> "list[str]":
        """Require the board."""
        return [attributes.text("board")]

    def point(self, angle: float) -> None:
        """Send pulses for an angle."""
        width = self._short + (angle - self._low) / (self._high - self._low) * (self._long - self._short)
        self._board.drive(self._pin, width * self._frequency / 1000000, self._frequency)
        self.angle = angle

    def halt(self) -> None:
        """Stop."""
        if self._releases:
            self._board.write(self._pin, False)

    def close(self) -> None:
        """End the pulses."""
        self._board.write(self._pin, False)
