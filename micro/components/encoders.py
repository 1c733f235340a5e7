"""Encoders: a shaft's position from edges of pins."""

from micro.components.pins import MicroBoard, board_of
from micro.engine.attributes import Unfit
from micro.engine.resource import Resource, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from micro.engine.attributes import Attributes
    from micro.engine.resource import Reply, Request
    from micro.hosts.port import Port

TICKS, DEGREES = 1, 2  # types of positions
STEPS = b"\x01\x00\x02\x01\x02\x01\x01\x00\x00\x01\x01\x02\x01\x02\x00\x01"
"""1 + the ticks of a change from one state of both tracks (a, b) to another; a change of both at once is none."""


class Encoder(Resource):
    """The calls that all encoders share."""

    count = 0

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self.per_rotation = attributes.whole("ticks_per_rotation", 0)
        self._zero = 0

    @property
    def ticks(self) -> int:
        """Ticks since the last reset."""
        return self.count - self._zero

    def get_position(self, request: "Request") -> "Reply":
        """Return ticks, or degrees if the ticks of a revolution are configured."""
        kind = request["position_type"] or TICKS
        if kind == DEGREES:
            if not self.per_rotation:
                raise invalid(f"{self.name} has no ticks_per_rotation, so it has no degrees: ask for ticks")
            return {"value": self.ticks * 360 / self.per_rotation, "position_type": DEGREES}
        return {"value": self.ticks, "position_type": TICKS}

    def reset_position(self, request: "Request") -> "Reply":
        """Make the current position 0."""
        self._zero = self.count
        return {}

    def get_properties(self, request: "Request") -> "Reply":
        """Return which types of positions there are."""
        return {"ticks_count_supported": True, "angle_degrees_supported": self.per_rotation > 0}


class PinEncoder(Encoder):
    """An encoder on pins of a board."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self.board: MicroBoard = board_of(deps, attributes.text("board"))
        self.tracks: list[str] = []

    @staticmethod
    def requires(attributes: "Attributes") -> "list[str]":
        """Require the board."""
        return [attributes.text("board")]

    def close(self) -> None:
        """Release the pins."""
        for pin in self.tracks:
            self.port.watch(pin, "as_is", None)
            self.port.release(pin)


class QuadratureEncoder(PinEncoder):
    """Counts every edge of two tracks."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        pins = attributes.part("pins")
        self.tracks = [self.board.pin(pins.text("a")), self.board.pin(pins.text("b"))]
        if self.tracks[0] == self.tracks[1]:
            raise Unfit(f"attributes.pins: a and b are both {self.tracks[0]}")
        port.watch(self.tracks[0], "up", self._a)
        port.watch(self.tracks[1], "up", self._b)
        self._state = 2 * port.level(self.tracks[0]) + port.level(self.tracks[1])

    def _a(self, level: bool) -> None:
        self._step(self._state & 1 | 2 * level)

    def _b(self, level: bool) -> None:
        self._step(self._state & 2 | level)

    def _step(self, state: int) -> None:
        self.count += STEPS[self._state << 2 | state] - 1
        self._state = state


class SingleTrack(PinEncoder):
    """Counts the rising edges of one track, in the direction of the motor that names it."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps)
        self.direction = 1
        self.tracks = [self.board.pin(attributes.part("pins").text("i"))]
        port.watch(self.tracks[0], "up", self._edge)

    def _edge(self, level: bool) -> None:
        if level:
            self.count += self.direction
