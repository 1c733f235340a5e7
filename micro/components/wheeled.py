"""A base on wheels: motors on the left and on the right."""

from micro.components.motors import Motor, wait
from micro.engine.attributes import Unfit
from micro.engine.resource import Resource, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from micro.engine.attributes import Attributes
    from micro.engine.resource import Reply, Request
    from micro.hosts.port import Port

ZERO = {"x": 0.0, "y": 0.0, "z": 0.0}
PI = 3.14159265
MIN_RPM = 0.1


class WheeledBase(Resource):
    """Drives the motors of both sides together. Distances in millimeters, angles in degrees."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self._width = attributes.number("width_mm", None, 0.001)
        self._circumference = attributes.number("wheel_circumference_mm", None, 0.001)
        self._slip = attributes.number("spin_slip_factor", 1.0, 0.001)
        self._left = _motors(deps, attributes.texts("left"))
        self._right = _motors(deps, attributes.texts("right"))

    @staticmethod
    def requires(attributes: "Attributes") -> "list[str]":
        """Require the motors."""
        return attributes.texts("left") + attributes.texts("right")

    def halt(self) -> None:
        """Stop every motor."""
        for motor in self._left + self._right:
            motor.halt()

    async def _go(self, left: float, right: float, seconds: float) -> None:
        """Turn the wheels by revolutions within some time."""
        motors, commands = [], []
        try:
            for side, revolutions in ((self._left, left), (self._right, right)):
                for motor in side:
                    commands.append(motor.begin(abs(revolutions) * 60 / seconds, revolutions))
                    motors.append(motor)
        except BaseException:
            self.halt()
            raise
        await wait(motors, commands)

    async def move_straight(self, request: "Request") -> "Reply":
        """Drive a distance."""
        distance, speed = _check(request["distance_mm"], request["mm_per_sec"])
        revolutions = distance / self._circumference
        await self._go(revolutions, revolutions, abs(distance) / speed)
        return {}

    async def spin(self, request: "Request") -> "Reply":
        """Turn on the spot; a positive angle is to the left."""
        angle, speed = _check(request["angle_deg"], request["degs_per_sec"])
        revolutions = angle / 360 * PI * self._width * self._slip / self._circumference
        await self._go(-revolutions, revolutions, abs(angle) / speed)
        return {}

    def set_power(self, request: "Request") -> "Reply":
        """Set the power of both sides: y is forward, z is to the left."""
        forward, turn = _vectors(request)
        scale = max(1.0, abs(forward - turn), abs(forward + turn))
        for motor in self._left:
            motor.turn((forward - turn) / scale)
        for motor in self._right:
            motor.turn((forward + turn) / scale)
        return {}

    def set_velocity(self, request: "Request") -> "Reply":
        """Set the velocity: millimeters per second forward, degrees per second to the left."""
        forward, turn = _vectors(request)
        edge = turn / 360 * PI * self._width * self._slip
        for side, speed in ((self._left, forward - edge), (self._right, forward + edge)):
            rpm = speed * 60 / self._circumference
            for motor in side:
                if abs(rpm) < MIN_RPM:
                    motor.halt()
                else:
                    motor.set_rpm({"rpm": rpm})
        return {}

    def stop(self, request: "Request") -> "Reply":
        """Stop."""
        self.halt()
        return {}

    def is_moving(self, request: "Request") -> "Reply":
        """Return whether a wheel turns."""
        return {"is_moving": any(motor.power != 0 for motor in self._left + self._right)}

    def get_properties(self, request: "Request") -> "Reply":
        """Return the dimensions."""
        return {"width_meters": self._width / 1000, "wheel_circumference_meters": self._circumference / 1000}


def _motors(deps: "dict[str, Resource]", names: "list[str]") -> "list[Motor]":
    motors = []
    for name in names:
        motor = deps.get(name)
        if not isinstance(motor, Motor):
            raise Unfit(f"attributes.left or right has {name!r}, which is not a motor of this server")
        motors.append(motor)
    return motors


def _check(distance: float, speed: float) -> "tuple[float, float]":
    """Return the distance with its sign, and the size of the speed."""
    if not distance or not speed:
        raise invalid("a base cannot move by nothing or without speed: call stop instead")
    return (distance if speed > 0 else -distance), abs(speed)


def _vectors(request: "dict[str, Any]") -> "tuple[float, float]":
    forward: float = (request["linear"] or ZERO)["y"]
    turn: float = (request["angular"] or ZERO)["z"]
    if not (-1e9 < forward < 1e9 and -1e9 < turn < 1e9):
        raise invalid("the power or velocity is not a finite number")
    return forward, turn
