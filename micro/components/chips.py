"""Chips on I2C, each a row of a table: how it is recognized, set up and read. Formulas are those of the data sheets."""

import struct

from micro.components.pins import MicroBoard, board_of
from micro.engine.resource import Resource
from micro.wire.faults import UNAVAILABLE, UNIMPLEMENTED, CallFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from micro.engine.attributes import Attributes
    from micro.engine.resource import Reply, Request
    from micro.hosts.port import Port

    Axes = tuple[float, float, float]

FREQUENCY = 400000
GRAVITY = 9.80665  # m/s² of 1 g


class Row:
    """A chip: addresses, first writes, and the wait until the first values."""

    def __init__(
        self,
        addresses: "tuple[int, ...] | range",
        setup: "tuple[bytes, ...]" = (),
        setup_ms: int = 0,
        identity: "tuple[bytes, tuple[int, ...]] | None" = None,
        command: bytes = b"",
        ask_ms: int = 0,
        size: int = 2,
        decode: "Callable[[bytes], dict[str, Any]] | None" = None,
    ) -> None:
        self.addresses = addresses
        self.setup = setup
        self.setup_ms = setup_ms
        self.identity = identity  # register of one byte, and the values that it may have
        self.command = command  # before each reading
        self.ask_ms = ask_ms  # from the command to the reading; 0: both in one transaction
        self.size = size
        self.decode = decode


def crc8(data: bytes) -> int:
    """Return the checksum of SHT3x: polynomial 0x31, initial value 0xFF."""
    crc = 0xFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x31 if crc & 0x80 else crc << 1) & 0xFF
    return crc


def _lm75(data: bytes) -> "dict[str, Any]":
    return {"temperature_c": struct.unpack(">h", data)[0] / 256}


def _tmp102(data: bytes) -> "dict[str, Any]":
    return {"temperature_c": (struct.unpack(">h", data)[0] >> 3) * 0.0625}  # 13 bits in extended mode


def _sht3x(data: bytes) -> "dict[str, Any]":
    if crc8(data[0:2]) != data[2] or crc8(data[3:5]) != data[5]:
        raise CallFailure(UNAVAILABLE, "the answer of the SHT3x has a wrong checksum: shorten the wires")
    temperature, _, humidity, _ = struct.unpack(">HBHB", data)
    return {"temperature_c": -45 + 175 * temperature / 65535, "relative_humidity_pct": 100 * humidity / 65535}


READINGS = {
    "lm75": Row(range(0x48, 0x50), command=b"\x00", decode=_lm75),
    "tmp102": Row(range(0x48, 0x4C), setup=(b"\x01\x60\xd0",), setup_ms=160, command=b"\x00", decode=_tmp102),
    "sht3x": Row((0x44, 0x45), setup=(b"\x30\x93",), setup_ms=1, command=b"\x24\x00", ask_ms=16, size=6, decode=_sht3x),
}
POWER = {  # configuration, volts of one count of the shunt and of the bus, bits to shift the bus
    "ina219": (Row(range(0x40, 0x50), setup=(b"\x00\x3d\xdf",), setup_ms=10), 10e-6, 4e-3, 3),
    "ina226": (Row(range(0x40, 0x50), setup=(b"\x00\x45\x27",), setup_ms=40), 2.5e-6, 1.25e-3, 0),
}
INERTIAL = {  # register of the acceleration and its byte order, counts for g, register of the rotation, or none
    "mpu6050": (
        Row(
            (0x68, 0x69), (b"\x6b\x01", b"\x1a\x03", b"\x1b\x00", b"\x1c\x00"), 50, (b"\x75", (0x68, 0x70, 0x71, 0x73))
        ),
        b"\x3b",
        ">3h",
        16384.0,
        b"\x43",
    ),
    "accel-adxl345": (
        Row((0x53, 0x1D), (b"\x31\x08", b"\x2c\x0a", b"\x2d\x08"), 12, (b"\x00", (0xE5,))),
        b"\x32",
        "<3h",
        256.0,
        b"",
    ),
}
INERTIAL["gyro-mpu6050"] = INERTIAL["mpu6050"]
PER_DEGREE = 131.0  # counts of an MPU-6050 for a degree per second


class I2cChip(Resource):
    """A chip on a bus of a board, or on a bus of the host by its number. It is set up before its first reading."""

    def __init__(
        self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]", row: Row, alt: str = ""
    ) -> None:
        super().__init__(name, port, attributes, deps)
        self.row = row
        board = attributes.text("board", "")
        title = attributes.text("i2c_bus")
        if board:
            holder: MicroBoard = board_of(deps, board)
            self.bus = holder.bus(title)
        else:
            self.bus = port.i2c(title, {}, FREQUENCY)
        first = 1 if alt and attributes.flag(alt) else 0
        self.address = attributes.address("i2c_address", row.addresses[first], row.addresses)
        self._ready = False

    @staticmethod
    def requires(attributes: "Attributes") -> "list[str]":
        """Require the board, if it is named."""
        return [name for name in (attributes.text("board", ""),) if name]

    async def read(self, command: bytes, size: int, ask_ms: int = 0) -> bytes:
        """Set the chip up if that is necessary, and read; after an error it is set up again."""
        try:
            if not self._ready:
                await self._prepare()
            if ask_ms:
                self.bus.write(self.address, command)
                await self.port.sleep(ask_ms)
                return self.bus.read(self.address, b"", size)
            return self.bus.read(self.address, command, size)
        except OSError:
            self._ready = False
            raise CallFailure(
                UNAVAILABLE, f"nothing answers at 0x{self.address:02x} of its bus: check the wires and i2c_address"
            ) from None

    async def _prepare(self) -> None:
        row = self.row
        if row.identity is not None:
            value = self.bus.read(self.address, row.identity[0], 1)[0]
            if value not in row.identity[1]:
                raise CallFailure(
                    UNAVAILABLE, f"at 0x{self.address:02x} is another chip: its identity is 0x{value:02x}"
                )
        for data in row.setup:
            self.bus.write(self.address, data)
        if row.setup_ms:
            await self.port.sleep(row.setup_ms)
        self._ready = True


class ReadingChip(I2cChip):
    """A sensor."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        super().__init__(name, port, attributes, deps, READINGS[attributes.model])

    async def get_readings(self, request: "Request") -> "Reply":
        """Measure."""
        row = self.row
        data = await self.read(row.command, row.size, row.ask_ms)
        return {"readings": row.decode(data) if row.decode is not None else {}}


class PowerChip(I2cChip):
    """A power sensor with a shunt. The current follows from the voltage of the shunt."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        row, self._shunt_step, self._bus_step, self._shift = POWER[attributes.model]
        super().__init__(name, port, attributes, deps, row)
        ohms = attributes.number("shunt_resistance", 0.1, 1e-6)
        self._ohms = attributes.number("shunt_ohms", ohms, 1e-6)

    async def _volts(self) -> float:
        raw: int = struct.unpack(">H", await self.read(b"\x02", 2))[0]
        return (raw >> self._shift) * self._bus_step

    async def _amperes(self) -> float:
        raw: int = struct.unpack(">h", await self.read(b"\x01", 2))[0]
        return raw * self._shunt_step / self._ohms

    async def get_voltage(self, request: "Request") -> "Reply":
        """Measure the volts."""
        return {"volts": await self._volts(), "is_ac": False}

    async def get_current(self, request: "Request") -> "Reply":
        """Measure the amperes."""
        return {"amperes": await self._amperes(), "is_ac": False}

    async def get_power(self, request: "Request") -> "Reply":
        """Measure the watts."""
        return {"watts": await self._volts() * await self._amperes()}

    async def get_readings(self, request: "Request") -> "Reply":
        """Measure all."""
        volts, amperes = await self._volts(), await self._amperes()
        return {"readings": {"volts": volts, "amperes": amperes, "watts": volts * amperes, "is_ac": False}}


class InertialChip(I2cChip):
    """A movement sensor for acceleration, and for rotation if the chip has a gyroscope."""

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        row, self._acceleration, self._order, self._per_g, self._rotation = INERTIAL[attributes.model]
        super().__init__(name, port, attributes, deps, row, "use_alt_i2c_address")

    async def _axes(self, register: bytes, order: str, factor: float) -> "dict[str, float]":
        x, y, z = struct.unpack(order, await self.read(register, 6))
        return {"x": x * factor, "y": y * factor, "z": z * factor}

    async def get_linear_acceleration(self, request: "Request") -> "Reply":
        """Measure the acceleration in m/s², with gravity."""
        return {"linear_acceleration": await self._axes(self._acceleration, self._order, GRAVITY / self._per_g)}

    async def get_angular_velocity(self, request: "Request") -> "Reply":
        """Measure the rotation in degrees per second."""
        if not self._rotation:
            raise CallFailure(UNIMPLEMENTED, f"{self.name} has no gyroscope")
        return {"angular_velocity": await self._axes(self._rotation, ">3h", 1 / PER_DEGREE)}

    def get_properties(self, request: "Request") -> "Reply":
        """Return what is measured."""
        return {"linear_acceleration_supported": True, "angular_velocity_supported": bool(self._rotation)}

    async def get_readings(self, request: "Request") -> "Reply":
        """Measure all."""
        readings = {}
        readings.update(await self.get_linear_acceleration(request))
        if self._rotation:
            readings.update(await self.get_angular_velocity(request))
        return {"readings": readings}
