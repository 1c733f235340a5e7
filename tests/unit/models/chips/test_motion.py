"""MPU-6050 and related chips: conversions, failures, and the driver against the plant model."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from models.chips.mpu6050 import chip as mpu6050
from models.chips.mpu6050.simulation import Mpu6050Target
from nursery_graph.lifecycle import State
from schema.errors import MachineError
from tests.unit.models.chips.bench import driving, registers_of, virtually

VARIANT = mpu6050.VARIANTS[0x68]


# RM-MPU-6000A-00, sections 4.17 to 4.19, and PS-MPU-6000A-00, sections 6.1 and 6.2: sensitivities.
@pytest.mark.parametrize(("full_scale", "counts"), [(2, 16384), (4, 8192), (8, 4096), (16, 2048)])
def test_one_g(full_scale: int, counts: int) -> None:
    data = struct.pack(">7h", counts, -counts, 0, 0, 0, 0, 0)
    assert mpu6050.motion_of(data, 250, full_scale, VARIANT).acceleration == pytest.approx((9.80665, -9.80665, 0))


@pytest.mark.parametrize(("full_scale", "counts"), [(250, 131), (500, 65.5), (1000, 32.8), (2000, 16.4)])
def test_ten_degrees_a_second(full_scale: int, counts: float) -> None:
    data = struct.pack(">7h", 0, 0, 0, 0, round(10 * counts), 0, -round(10 * counts))
    assert mpu6050.motion_of(data, full_scale, 2, VARIANT).rotation == pytest.approx((10, 0, -10))


# RM-MPU-6000A-00, section 4.18: temperature = value / 340 + 36.53.
def test_temperature() -> None:
    data = struct.pack(">7h", 0, 0, 0, -3920, 0, 0, 0)
    assert mpu6050.motion_of(data, 250, 2, VARIANT).temperature == pytest.approx(25.0, abs=0.001)


G = 9.80665


@given(
    st.sampled_from(sorted(mpu6050.VARIANTS)),
    st.sampled_from([2, 4, 8, 16]),
    st.sampled_from([250, 500, 1000, 2000]),
    st.tuples(*[st.floats(-0.99, 0.99)] * 3),
    st.tuples(*[st.floats(-0.99, 0.99)] * 3),
    st.floats(-40, 85),
)
def test_it_says_what_it_feels(
    identity: int,
    pull: int,
    turn: int,
    acceleration: tuple[float, float, float],
    rotation: tuple[float, float, float],
    celsius: float,
) -> None:
    target = Mpu6050Target(who_am_i=identity)
    target.acceleration = tuple(a * pull * G for a in acceleration)
    target.rotation = tuple(w * turn for w in rotation)
    target.temperature_c = celsius

    async def measure() -> mpu6050.Motion:
        chip = mpu6050.Mpu6050(registers_of(0x68, target), turn, pull)
        await chip.identify()
        await chip.configure()
        return await chip.measure()

    motion = virtually(measure)
    assert motion.acceleration == pytest.approx(target.acceleration, abs=pull * G / 32768)
    # The sensitivities of PS section 6.1 are rounded: 131 counts for 131.072.
    assert motion.rotation == pytest.approx(target.rotation, abs=turn / 32768 + turn * 0.001)
    assert motion.temperature == pytest.approx(celsius, abs=0.01)


async def test_readings(autojump_clock: MockClock) -> None:
    target = Mpu6050Target()
    async with driving("movement_sensor", "mpu6050", 0x68, target) as driven:
        assert not target.asleep
        target.rotation = (1.0, -2.0, 90.0)
        assert await driven.call("get_linear_acceleration") == {"x": 0, "y": 0, "z": pytest.approx(9.80665, abs=1e-3)}
        assert await driven.call("get_angular_velocity") == pytest.approx({"x": 1, "y": -2, "z": 90}, abs=0.06)
        properties = await driven.call("get_properties")
        assert {name for name, value in properties.items() if value} == {
            "angular_velocity_supported",
            "linear_acceleration_supported",
        }
        readings = await driven.readings()
        assert readings["temperature_c"] == pytest.approx(25, abs=0.01)
        assert set(readings) == {"angular_velocity", "linear_acceleration", "temperature_c"}
        with pytest.raises(MachineError):
            await driven.call("get_position")


@pytest.mark.parametrize("identity", [0x68, 0x70, 0x71])
async def test_one_that_was_without_power_is_woken_up_again(autojump_clock: MockClock, identity: int) -> None:
    target = Mpu6050Target(who_am_i=identity)
    async with driving("movement_sensor", "mpu6050", 0x68, target, accel_range_g=8) as driven:
        target.power_cycle()
        answer = await driven.call("get_linear_acceleration")
        assert answer["z"] == pytest.approx(9.80665, abs=0.005), "neither 0 of one that sleeps, nor 4 times as much"


@pytest.mark.parametrize(
    ("identity", "words"), [(0x98, "which is an ICM-20689"), (0x00, "0x68 may also be PCA9685 or DS1307 or DS3231")]
)
async def test_another_chip_is_named(autojump_clock: MockClock, identity: int, words: str) -> None:
    target = Mpu6050Target(who_am_i=identity)
    async with driving("movement_sensor", "mpu6050", 0x68, target, ready=False) as driven:
        assert driven.node().state is State.UNHEALTHY
        assert f"WHO_AM_I reads 0x{identity:02x}" in driven.node().reason
        assert words in driven.node().reason


def test_data_of_one_message_are_of_one_moment() -> None:
    target = Mpu6050Target()
    target.write(b"\x6b\x01")
    target.write(b"\x3b")
    before = target.read(6)
    target.acceleration = (9.80665, 0.0, 0.0)
    target.write(b"\x3b")
    assert target.read(6) != before
    target.write(b"\x6b\x41")  # asleep: the registers keep the last values
    target.acceleration = (0.0, 0.0, 0.0)
    target.write(b"\x3b")
    assert target.read(2) == b"\x40\x00"
