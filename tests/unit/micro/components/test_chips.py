"""The rows of the chips against the data sheets' formulas in models.chips."""

from __future__ import annotations

import struct

import pytest
from trio.testing import MockClock

from micro.components.models import MODELS
from micro.wire import faults
from micro.wire.faults import CallFailure
from models.chips.lm75 import chip as lm75
from models.chips.mpu6050 import chip as mpu6050
from models.chips.sht3x import chip as sht3x
from models.chips.tmp102 import chip as tmp102
from tests.unit.micro.bench import MicroBench, component


class RegisterChip:
    """A chip whose registers are bytes by number; commands of two bytes are answered by `answers`."""

    def __init__(self, registers: dict[int, bytes], answers: dict[bytes, bytes] | None = None) -> None:
        self.registers = registers
        self.answers = answers or {}
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def read(self, command: bytes, count: int) -> bytes:
        if not command:
            return self.answers[self.writes[-1]][:count]
        return self.registers[command[0]][:count]


def chip(api: str, model: str, address: int, wired: RegisterChip, **attributes: object) -> MicroBench:
    bench = MicroBench(component(api, "c", model, i2c_bus="1", **attributes))
    bench.port.i2c("1", {}, 0)
    bench.port.buses["1"].chips[address] = wired
    assert bench.states() == {"c": (3, "")}
    return bench


@pytest.mark.parametrize("raw", [0x0000, 0x1900, 0xE700, 0x7FF0, 0x8000])
async def test_lm75(raw: int, autojump_clock: MockClock) -> None:
    bench = chip("sensor", "lm75", 0x48, RegisterChip({0: raw.to_bytes(2, "big")}))
    readings = (await bench.call("sensor", "GetReadings", name="c"))["readings"]
    assert readings == {"temperature_c": pytest.approx(lm75.celsius(raw, 12), abs=0.07)}


@pytest.mark.parametrize("raw", [0x0C81, 0x3E81, 0xFE01, 0xE481])
async def test_tmp102(raw: int, autojump_clock: MockClock) -> None:
    wired = RegisterChip({0: raw.to_bytes(2, "big")})
    bench = chip("sensor", "tmp102", 0x49, wired, i2c_address="0x49")
    readings = (await bench.call("sensor", "GetReadings", name="c"))["readings"]
    assert readings == {"temperature_c": pytest.approx(tmp102.celsius(raw))}
    assert wired.writes == [b"\x01" + tmp102.SETTINGS.to_bytes(2, "big")]


async def test_sht3x(autojump_clock: MockClock) -> None:
    words = [struct.pack(">H", value) for value in (0x6666, 0x8000)]
    answer = b"".join(word + bytes([sht3x.crc8(word)]) for word in words)
    wired = RegisterChip({}, {sht3x.MEASURE: answer})
    bench = chip("sensor", "sht3x", 0x44, wired)
    readings = (await bench.call("sensor", "GetReadings", name="c"))["readings"]
    assert readings["temperature_c"] == pytest.approx(sht3x.celsius(0x6666))
    assert readings["relative_humidity_pct"] == pytest.approx(sht3x.percent(0x8000))
    wired.answers[sht3x.MEASURE] = answer[:-1] + b"\0"
    with pytest.raises(CallFailure, match="wrong checksum"):
        await bench.call("sensor", "GetReadings", name="c")


@pytest.mark.parametrize(
    ("model", "shunt", "bus", "volts", "amperes"),
    [("ina219", 2500, 1500 << 3, 6.0, 0.25), ("ina226", -4000, 4000, 5.0, -0.1)],
)
async def test_power_chips(
    model: str, shunt: int, bus: int, volts: float, amperes: float, autojump_clock: MockClock
) -> None:
    wired = RegisterChip({1: struct.pack(">h", shunt), 2: struct.pack(">H", bus)})
    bench = chip("power_sensor", model, 0x40, wired, shunt_ohms=0.1)
    readings = (await bench.call("power_sensor", "GetReadings", name="c"))["readings"]
    assert readings == {
        "volts": pytest.approx(volts),
        "amperes": pytest.approx(amperes),
        "watts": pytest.approx(volts * amperes),
        "is_ac": False,
    }
    assert (await bench.call("power_sensor", "GetPower", name="c"))["watts"] == pytest.approx(volts * amperes)


async def test_mpu6050(autojump_clock: MockClock) -> None:
    data = struct.pack(">7h", 16384, -8192, 0, 0, 131, -262, 0)
    wired = RegisterChip({mpu6050.WHO_AM_I: b"\x68", mpu6050.DATA: data, 0x43: data[8:]})
    bench = chip("movement_sensor", "mpu6050", 0x68, wired)
    expected = mpu6050.motion_of(data, 250, 2, mpu6050.VARIANTS[0x68])
    acceleration = (await bench.call("movement_sensor", "GetLinearAcceleration", name="c"))["linear_acceleration"]
    assert list(acceleration.values()) == pytest.approx(list(expected.acceleration))
    rotation = (await bench.call("movement_sensor", "GetAngularVelocity", name="c"))["angular_velocity"]
    assert list(rotation.values()) == pytest.approx(list(expected.rotation))
    readings = (await bench.call("sensor", "GetReadings", name="c"))["readings"]
    assert set(readings) == {"linear_acceleration", "angular_velocity"}


async def test_adxl345(autojump_clock: MockClock) -> None:
    wired = RegisterChip({0: b"\xe5", 0x32: struct.pack("<3h", 256, 0, -128)})
    bench = chip("movement_sensor", "accel-adxl345", 0x1D, wired, use_alt_i2c_address=True)
    acceleration = (await bench.call("movement_sensor", "GetLinearAcceleration", name="c"))["linear_acceleration"]
    assert list(acceleration.values()) == pytest.approx([9.80665, 0, -9.80665 / 2])
    with pytest.raises(CallFailure, match="no gyroscope") as caught:
        await bench.call("movement_sensor", "GetAngularVelocity", name="c")
    assert caught.value.status == faults.UNIMPLEMENTED


async def test_missing_and_wrong_chips_have_a_reason_and_can_come_back(autojump_clock: MockClock) -> None:
    bench = MicroBench(component("movement_sensor", "c", "mpu6050", i2c_bus="1"))
    with pytest.raises(CallFailure, match=r"nothing answers at 0x68 of its bus: check the wires") as caught:
        await bench.call("movement_sensor", "GetReadings", name="c")
    assert caught.value.status == faults.UNAVAILABLE
    wired = RegisterChip({mpu6050.WHO_AM_I: b"\x12", mpu6050.DATA: bytes(6), 0x43: bytes(6)})
    bench.port.buses["1"].chips[0x68] = wired
    with pytest.raises(CallFailure, match="another chip: its identity is 0x12"):
        await bench.call("movement_sensor", "GetReadings", name="c")
    wired.registers[mpu6050.WHO_AM_I] = b"\x68"
    await bench.call("movement_sensor", "GetReadings", name="c")
    assert len(wired.writes) == 4
    del bench.port.buses["1"].chips[0x68]
    with pytest.raises(CallFailure):
        await bench.call("movement_sensor", "GetReadings", name="c")
    bench.port.buses["1"].chips[0x68] = wired
    await bench.call("movement_sensor", "GetReadings", name="c")
    assert len(wired.writes) == 8, "a chip that was away is set up again"


async def test_a_bus_of_a_board() -> None:
    board = component("board", "b", i2cs=[{"name": "main", "bus": "0", "sda": 4, "scl": 5}])
    sensor = component("sensor", "c", "lm75", board="b", i2c_bus="main")
    bench = MicroBench(board, sensor, component("sensor", "d", "lm75", board="b", i2c_bus="other"))
    assert bench.states()["c"] == (3, "")
    assert bench.states()["d"] == (5, "attributes.i2c_bus is 'other': b has main in i2cs")


async def test_addresses_of_other_chips_are_refused() -> None:
    bench = MicroBench(component("sensor", "c", "sht3x", i2c_bus="1", i2c_address="0x50"))
    assert bench.states()["c"] == (5, "attributes.i2c_address is '0x50': expected 0x44 or 0x45")


def test_every_model_is_loadable() -> None:
    for _, _, module, cls in MODELS:
        imported = __import__(f"micro.components.{module}", fromlist=[cls])
        assert isinstance(getattr(imported, cls), type)
