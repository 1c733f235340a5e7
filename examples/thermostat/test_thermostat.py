"""Test the thermostat with the model of the box. Times are seconds, virtual ones on the simulated rig."""

# ruff: noqa: D103 - names of tests say what they show
from __future__ import annotations

import pytest
import trio
from plant import HEATER_LINE, Box
from thermostat import OFF, Output, Thermostat, ThermostatConfig, decide

from engine import GenericService
from rig import Faults, Rig
from schema import MachineError

SENSOR = ("i2c-1", 0x48)

pytestmark = pytest.mark.machine("machine.json", plant=Box, models=[Thermostat], sample=0.5)


async def warm(rig: Rig) -> None:
    """Wait until the air has reached the set point."""
    await rig.until(lambda: above(rig, 36.9), within=30, what="the air warm")


async def above(rig: Rig, celsius: float) -> bool:
    return bool(await rig.plant.get("temperature_c") > celsius)


async def is_off(rig: Rig) -> bool:
    return not await rig.plant.get("heating")


async def is_on(rig: Rig) -> bool:
    return bool(await rig.plant.get("heating"))


async def recover(rig: Rig, since: float) -> None:
    """Wait until it heats again, and record the time since the fault ended."""
    await rig.until(lambda: is_on(rig), within=15, what="the heater on again")
    rig.recorder.add("recovery_s", trio.current_time() - since)


async def test_it_heats_to_the_set_point_and_stays_there(rig: Rig) -> None:
    await warm(rig)
    for _ in range(30):
        await trio.sleep(0.5)
        assert 35.3 < await rig.plant.get("temperature_c") < 38.2


async def test_hysteresis_keeps_the_relay_from_switching_often(rig: Rig) -> None:
    await warm(rig)
    before = await rig.plant.get("switched")
    await trio.sleep(20)
    assert 3 <= await rig.plant.get("switched") - before <= 10


async def test_the_fan_cools_when_the_room_is_too_warm(rig: Rig) -> None:
    await rig.plant.set("ambient_c", 45.0)
    await rig.until(lambda: above(rig, 38.5), within=60, what="the air too warm")
    await trio.sleep(20)
    assert await rig.plant.get("fan") > 0
    assert await is_off(rig)


async def test_a_new_set_point(rig: Rig) -> None:
    thermostat = rig.get(GenericService, "thermostat")
    await thermostat.do_command({"set_point_c": 25})
    await rig.until(lambda: above(rig, 24.9), within=15)
    await trio.sleep(10)
    assert await rig.plant.get("hottest_c") < 26.5
    with pytest.raises(MachineError, match=r"set_point_c 99\.0 is not a temperature up to 60"):
        await thermostat.do_command({"set_point_c": 99})


async def test_a_silent_sensor_ends_the_heating(rig: Rig, faults: Faults) -> None:
    await rig.until(lambda: is_on(rig), within=5)
    async with faults.no_acknowledge(*SENSOR):
        await rig.until(lambda: is_off(rig), within=3, what="the heater off")
        assert "0x48" in (await rig.get(GenericService, "thermostat").get_status())["fault"]
        over = trio.current_time()
    await recover(rig, over)


async def test_a_sensor_that_fails_now_and_then_is_enough(rig: Rig, faults: Faults) -> None:
    async with faults.no_acknowledge(*SENSOR, probability=0.3):
        await rig.until(lambda: above(rig, 36.5), within=60, what="the air warm in spite of the sensor")


async def test_a_stuck_bus_ends_the_heating(rig: Rig, faults: Faults) -> None:
    await rig.until(lambda: is_on(rig), within=5)
    async with faults.stuck("i2c-1"):
        await rig.until(lambda: is_off(rig), within=5, what="the heater off")
        over = trio.current_time()
    await recover(rig, over)


async def test_an_unplugged_sensor_ends_the_heating_until_it_is_back(rig: Rig, faults: Faults) -> None:
    await rig.until(lambda: is_on(rig), within=5)
    async with faults.unplugged("i2c-1"):
        await rig.until(lambda: is_off(rig), within=3, what="the heater off")
        await trio.sleep(5)
        assert await is_off(rig)
        over = trio.current_time()
    await recover(rig, over)
    await warm(rig)


async def test_noise_does_not_make_the_relay_chatter(rig: Rig, faults: Faults) -> None:
    async with faults.noise("temperature_c", 0.2):
        await warm(rig)
        before = await rig.plant.get("switched")
        await trio.sleep(20)
        assert await rig.plant.get("switched") - before <= 12


async def test_the_fan_works_against_a_welded_relay(rig: Rig, faults: Faults) -> None:
    async with faults.shorted(HEATER_LINE, True):
        await rig.until(lambda: above(rig, 39.0), within=60, what="the air too warm")
        await trio.sleep(30)
        assert await rig.plant.get("fan") > 0.3
        assert await rig.plant.get("hottest_c") < 42.0


async def test_the_heater_is_off_without_power(rig: Rig, faults: Faults) -> None:
    await warm(rig)
    async with faults.power_loss():
        await rig.until(lambda: is_off(rig), within=2, what="the heater off")  # the kernel releases the line
        await trio.sleep(20)
        assert not await above(rig, 30.0)
        over = trio.current_time()
    await recover(rig, over)
    await warm(rig)


CONFIG = ThermostatConfig(sensor="s", heater="h", board="b", fan_pin="f", set_point_c=37.0)


@pytest.mark.parametrize(
    ("now", "temperature", "expected"),
    [
        (OFF, 35.9, Output(heat=True)),
        (OFF, 36.1, OFF),
        (Output(heat=True), 36.1, Output(heat=True)),
        (Output(heat=True), 37.0, OFF),
        (OFF, 40.0, Output(fan=0.5)),
        (OFF, 50.0, Output(fan=1.0)),
        (Output(heat=True), 61.0, Output(fan=1.0)),
    ],
)
def test_decisions(now: Output, temperature: float, expected: Output) -> None:
    assert decide(now, temperature, 37.0, CONFIG) == expected
