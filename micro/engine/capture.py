"""Captured data: readings in a ring of bounded size until they are uploaded. Pure."""

from micro.engine.attributes import Attributes, Unfit
from micro.wire import protobuf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RING = 8192  # bytes of all readings; the oldest are removed for new ones
UPLOAD = 1024  # bytes of one upload: it needs several times as much for its message, in one piece
MIN_PERIOD_MS = 100
METHODS = {
    "Readings": ("sensor", "GetReadings"),
    "AngularVelocity": ("movement_sensor", "GetAngularVelocity"),
    "LinearAcceleration": ("movement_sensor", "GetLinearAcceleration"),
    "LinearVelocity": ("movement_sensor", "GetLinearVelocity"),
    "CompassHeading": ("movement_sensor", "GetCompassHeading"),
    "Voltage": ("power_sensor", "GetVoltage"),
    "Current": ("power_sensor", "GetCurrent"),
    "Power": ("power_sensor", "GetPower"),
    "TicksCount": ("encoder", "GetPosition"),
    "Position": ("motor", "GetPosition"),
}
"""Methods that can be captured: an API that has them, and their call."""


class Capture:
    """A method that is called at a period."""

    def __init__(self, key: "tuple[str, str]", method: str, period: int, tags: "list[str]") -> None:
        self.key = key
        self.method = method
        self.period = period
        self.tags = tags
        self.due = 0
        self.failing = ""


class Reading:
    """A reading: an encoded SensorData."""

    def __init__(self, capture: Capture, data: bytes) -> None:
        self.capture = capture
        self.data = data


class Ring:
    """All readings that have not been uploaded."""

    def __init__(self, most: int = RING) -> None:
        self.most = most
        self.size = 0
        self.lost = 0
        self.readings: list[Reading] = []

    def add(self, reading: Reading) -> None:
        """Add a reading, and remove the oldest ones until it fits."""
        size = len(reading.data)
        if size > self.most:
            self.lost += 1
            return
        while self.size + size > self.most:
            self.size -= len(self.readings.pop(0).data)
            self.lost += 1
        self.readings.append(reading)
        self.size += size

    def batch(self, most: int = UPLOAD) -> "list[Reading]":
        """Return the oldest readings of one capture, at most `most` bytes of them, but at least one."""
        taken: list[Reading] = []
        size = 0
        for reading in self.readings:
            if reading.capture is self.readings[0].capture and (not taken or size + len(reading.data) <= most):
                taken.append(reading)
                size += len(reading.data)
        return taken

    def remove(self, readings: "list[Reading]") -> None:
        """Remove readings that have been uploaded."""
        self.readings = [reading for reading in self.readings if reading not in readings]
        self.size = sum([len(reading.data) for reading in self.readings])


def captures_of(key: "tuple[str, str]", configs: "Any", low: int = MIN_PERIOD_MS) -> "list[Capture]":
    """Return the captures of a component from its `service_configs`; Unfit if one is not valid."""
    captures: list[Capture] = []
    if not isinstance(configs, list):
        raise Unfit("service_configs is not a list")
    for index in range(len(configs)):
        config = Attributes(configs[index], f"service_configs[{index}]")
        if not config.text("type", "").endswith("data_manager"):
            continue
        for entry in config.part("attributes", {}).parts("capture_methods"):
            if entry.flag("disabled"):
                continue
            method = entry.choice("method", tuple(METHODS))
            frequency = entry.number("capture_frequency_hz", 0, 0, 1000 / low)
            if frequency:
                captures.append(Capture(key, method, int(1000 / frequency), entry.texts("tags", [])))
    return captures


def sensor_data(number: int, begun: "tuple[int, int]", ended: "tuple[int, int]", values: "dict[str, Any]") -> bytes:
    """Return an encoded SensorData; `number` is that of its message."""
    metadata = {
        "time_requested": {"seconds": begun[0], "nanos": begun[1]},
        "time_received": {"seconds": ended[0], "nanos": ended[1]},
    }
    return bytes(protobuf.encode(number, {"metadata": metadata, "struct": values}))
