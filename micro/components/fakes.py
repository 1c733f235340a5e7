"""Components without hardware."""

from micro.components.encoders import Encoder
from micro.components.wheeled import ZERO
from micro.engine.attributes import Unfit
from micro.engine.resource import Resource, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from micro.engine.attributes import Attributes
    from micro.engine.resource import Reply, Request
    from micro.hosts.port import Port


class FakeWheels(Resource):
    """A base that only remembers whether it moves."""

    moving = False

    def halt(self) -> None:
        """Stop."""
        self.moving = False

    def set_power(self, request: "Request") -> "Reply":
        """Move, or stop if both vectors are zero."""
        self.moving = (request["linear"] or ZERO) != ZERO or (request["angular"] or ZERO) != ZERO
        return {}

    def set_velocity(self, request: "Request") -> "Reply":
        """Move, or stop if both vectors are zero."""
        return self.set_power(request)

    def move_straight(self, request: "Request") -> "Reply":
        """Arrive at once."""
        return {}

    def spin(self, request: "Request") -> "Reply":
        """Arrive at once."""
        return {}

    def stop(self, request: "Request") -> "Reply":
        """Stop."""
        self.halt()
        return {}

    def is_moving(self, request: "Request") -> "Reply":
        """Return whether it moves."""
        return {"is_moving": self.moving}

    def get_properties(self, request: "Request") -> "Reply":
        """Return the dimensions."""
        return {"width_meters": 0.6, "wheel_circumference_meters": 0.2}


class CountingButton(Resource):
    """A button that counts."""

    pushes = 0

    def push(self, request: "Request") -> "Reply":
        """Push."""
        self.pushes += 1
        return {}

    def do_command(self, request: "Request") -> "Reply":
        """Return how often it was pushed."""
        return {"result": {"pushes": self.pushes}}


class DialSwitch(Resource):
    """A switch."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self._count = attributes.whole("position_count", 2, 1, 100)
        self._labels = attributes.texts("labels", [])
        self._position = 0

    def set_position(self, request: "Request") -> "Reply":
        """Move to a position."""
        if request["position"] >= self._count:
            raise invalid(f"position is {request['position']}: expected 0 to {self._count - 1}")
        self._position = request["position"]
        return {}

    def get_position(self, request: "Request") -> "Reply":
        """Return the position."""
        return {"position": self._position}

    def get_number_of_positions(self, request: "Request") -> "Reply":
        """Return the number of positions."""
        return {"number_of_positions": self._count, "labels": self._labels}


class TurningEncoder(Encoder):
    """An encoder that turns at a constant speed."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        self._since = port.now()
        self._rate = attributes.number("update_rate_msec", 100, 1, 60000)
        super().__init__(name, port, attributes, deps)

    @property
    def count(self) -> int:  # type: ignore[override]  # counted by the drivers, derived from the time here
        """Ticks since the start."""
        return int((self.port.now() - self._since) / self._rate)


class Echo(Resource):
    """A generic component that returns commands."""

    def do_command(self, request: "Request") -> "Reply":
        """Return the command."""
        return {"result": request["command"] or {}}


class ConstantSensor(Resource):
    """A sensor with constant readings."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self._readings = attributes.values("readings") or {"a": 1, "b": 2, "c": 3}
        if len(self._readings) > 32:
            raise Unfit("attributes.readings has more than 32 readings")

    def get_readings(self, request: "Request") -> "Reply":
        """Return the readings."""
        return {"readings": self._readings}


class StillSensor(Resource):
    """A movement sensor that lies still."""

    def get_linear_acceleration(self, request: "Request") -> "Reply":
        """Return gravity."""
        return {"linear_acceleration": {"x": 0.0, "y": 0.0, "z": 9.80665}}

    def get_angular_velocity(self, request: "Request") -> "Reply":
        """Return no rotation."""
        return {"angular_velocity": ZERO}

    def get_properties(self, request: "Request") -> "Reply":
        """Return what is measured."""
        return {"angular_velocity_supported": True, "linear_acceleration_supported": True}

    def get_readings(self, request: "Request") -> "Reply":
        """Return both measurements."""
        both = {}
        both.update(self.get_linear_acceleration(request))
        both.update(self.get_angular_velocity(request))
        return {"readings": both}


class SteadySupply(Resource):
    """A power sensor of a constant supply."""

    def get_voltage(self, request: "Request") -> "Reply":
        """Return the volts."""
        return {"volts": 5.0, "is_ac": False}

    def get_current(self, request: "Request") -> "Reply":
        """Return the amperes."""
        return {"amperes": 0.5, "is_ac": False}

    def get_power(self, request: "Request") -> "Reply":
        """Return the watts."""
        return {"watts": 2.5}

    def get_readings(self, request: "Request") -> "Reply":
        """Return all."""
        return {"readings": {"volts": 5.0, "amperes": 0.5, "watts": 2.5, "is_ac": False}}
