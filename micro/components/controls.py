"""Buttons, switches and sensors on pins, and the sensor of the computer itself."""

from micro.components.pins import MicroBoard, board_of
from micro.engine.attributes import Unfit
from micro.engine.resource import Resource, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from micro.engine.attributes import Attributes
    from micro.engine.resource import Reply, Request
    from micro.hosts.port import Port


class OnPins(Resource):
    """A component on pins of a board."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self.board: MicroBoard = board_of(deps, attributes.text("board"))

    @staticmethod
    def requires(attributes: "Attributes") -> "list[str]":
        """Require the board."""
        return [attributes.text("board")]


class PinButton(OnPins):
    """A button that is pushed by a pin."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self._pin = attributes.text("pin")
        self._low = attributes.flag("active_low")
        self._press = attributes.whole("press_ms", 100, 1, 60000)
        self.halt()

    def halt(self) -> None:
        """Let go."""
        self.board.write(self._pin, self._low)

    async def push(self, request: "Request") -> "Reply":
        """Push, and let go after the time of the configuration."""
        self.board.write(self._pin, not self._low)
        try:
            await self.port.sleep(self._press)
        finally:
            self.halt()
        return {}


class PinSwitch(OnPins):
    """A switch whose positions are levels of pins: a pin for each, or the number in binary, lowest bit first."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self._pins = attributes.texts("pins")
        self._low = attributes.flag("active_low")
        self._binary = attributes.choice("encoding", ("one_hot", "binary"), "one_hot") == "binary"
        most = 1 << len(self._pins) if self._binary else len(self._pins)
        self._count = attributes.whole("position_count", most, 1, most)
        self._labels = attributes.texts("labels", [])
        if self._labels and len(self._labels) != self._count:
            raise Unfit(f"attributes.labels has {len(self._labels)} names for {self._count} positions")
        self._safe = attributes.whole("safe_position", 0, 0, self._count - 1)
        self.position = -1
        self.halt()

    def halt(self) -> None:
        """Move to the safe position."""
        self._turn(self._safe)

    def _turn(self, position: int) -> None:
        order = range(len(self._pins))
        for on in (False, True):  # all that goes off, before anything goes on
            for index in order:
                if bool(position >> index & 1 if self._binary else index == position) == on:
                    self.board.write(self._pins[index], on != self._low)
        self.position = position

    def set_position(self, request: "Request") -> "Reply":
        """Move to a position."""
        if request["position"] >= self._count:
            raise invalid(f"position is {request['position']}: expected 0 to {self._count - 1}")
        self._turn(request["position"])
        return {}

    def get_position(self, request: "Request") -> "Reply":
        """Return the position."""
        return {"position": self.position}

    def get_number_of_positions(self, request: "Request") -> "Reply":
        """Return the number of positions and their names."""
        return {"number_of_positions": self._count, "labels": self._labels}


class InputPins(OnPins):
    """A sensor whose readings are levels of pins."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self._pins = {key: self.board.pin(str(pin)) for key, pin in attributes.values("pins").items()}
        self._inverted = attributes.texts("invert", [])
        if not self._pins:
            raise Unfit("attributes.pins is empty")

    def get_readings(self, request: "Request") -> "Reply":
        """Return the levels."""
        return {"readings": {key: self.port.level(pin) != (key in self._inverted) for key, pin in self._pins.items()}}


class Computer(Resource):
    """A sensor of the microcontroller itself."""

    def get_readings(self, request: "Request") -> "Reply":
        """Return the free heap, and the time since the start."""
        return {"readings": {"heap_free_bytes": self.port.free(), "uptime_s": self.port.now() // 1000}}
