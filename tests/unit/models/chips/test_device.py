"""Behavior common to all chip models: exclusive addresses, unplugging, callers' time limits, a bus that hangs."""

from __future__ import annotations

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from engine.registry import Registry
from models import BUILTIN
from models.chips.bme280.simulation import Bme280Target
from models.chips.common.attributes import I2cAttributes, parse_address
from models.chips.lm75.simulation import Lm75Target
from models.chips.pca9685.simulation import Pca9685Target
from models.chips.sht3x.simulation import Sht3xTarget
from models.chips.tmp102.simulation import Tmp102Target
from nursery_graph.lifecycle import State
from schema.errors import ErrorKind, MachineError
from schema.names import API, Model
from tests.unit.models.chips.bench import driving

SENSOR = "rdk:component:sensor"


@pytest.mark.parametrize(("value", "address"), [(0x48, 0x48), ("0x48", 0x48), ("72", 0x48), ("0x08", 8), (0x77, 0x77)])
def test_addresses(value: int | str, address: int) -> None:
    assert parse_address(value) == address


@pytest.mark.parametrize("value", ["", "48h", "x", 0x07, 0x78, "0x100", -1])
def test_wrong_addresses(value: int | str) -> None:
    with pytest.raises(ValueError, match="i2c_address"):
        parse_address(value)


@pytest.mark.parametrize(("api", "model"), [pair for pair, path in BUILTIN.items() if path.startswith("models.chips.")])
def test_every_model_has_by_default_an_address_of_its_chip(api: str, model: str) -> None:
    config = Registry(BUILTIN).find(API.parse(api), Model.parse(model)).Config
    if issubclass(config, I2cAttributes):
        extra = {"chip": "24c32"} if model.endswith("at24") else {}
        assert config.CHIPS
        for places in config.CHIPS.values():
            assert config(i2c_bus="1", **extra).address() in places


async def test_two_drivers_on_one_address(autojump_clock: MockClock) -> None:
    rival = {
        "name": "rival",
        "api": SENSOR,
        "model": "tmp102",
        "attributes": {"i2c_bus": "/dev/i2c-1", "i2c_address": 72},
        "depends_on": ["it"],
    }
    async with driving("sensor", "tmp102", 0x48, Tmp102Target(), rival) as driven:
        node = driven.node("rival")
        assert node.state is State.UNHEALTHY
        assert "i2c-1 address 0x48 is wanted by rdk:component:sensor/rival and already used by" in node.reason
        assert "rdk:component:sensor/it" in node.reason
        assert await driven.readings() == {"temperature_c": 25.0}


async def test_two_chips_on_one_bus(autojump_clock: MockClock) -> None:
    second = {"name": "second", "api": SENSOR, "model": "sht3x", "attributes": {"i2c_bus": "i2c-1"}}
    async with driving("sensor", "tmp102", 0x48, Tmp102Target(), second, ready=False) as driven:
        driven.bus.attach(0x44, Sht3xTarget(30.0))
        await driven.until(State.READY, "second")
        readings = await driven.memory.client().call(SENSOR, "second", "get_readings")
        assert readings["temperature_c"] == pytest.approx(30, abs=0.01)
        assert await driven.readings() == {"temperature_c": 25.0}


async def test_the_status_names_the_chip_that_answered(autojump_clock: MockClock) -> None:
    async with driving("sensor", "bme280", 0x77, Bme280Target(humid=False), i2c_address="0x77") as driven:
        assert await driven.call("get_status") == {"chip": "BMP280", "place": "i2c-1 address 0x77"}


async def test_unplugged_and_back(autojump_clock: MockClock) -> None:
    target = Tmp102Target(33.0)
    async with driving("sensor", "tmp102", 0x48, target) as driven:
        driven.bus.unplug()
        node = await driven.until(State.UNHEALTHY)
        assert "i2c-1: the adapter is gone" in node.reason
        with pytest.raises(MachineError) as caught:
            await driven.readings()
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        target.power_cycle()
        began = trio.current_time()
        driven.bus.plug()
        await driven.until(State.READY)
        assert trio.current_time() - began < 0.2, "by the notice of the adapter, not by a back-off"
        assert await driven.readings() == {"temperature_c": 33.0}


async def test_a_board_whose_adapter_is_unplugged_ends_without_a_wait(autojump_clock: MockClock) -> None:
    async with driving("board", "pca9685", 0x40, Pca9685Target()) as driven:
        began = trio.current_time()
        driven.bus.unplug()
        node = await driven.until(State.UNHEALTHY)
        assert "i2c-1: the adapter is gone" in node.reason
        assert trio.current_time() == began


async def test_a_bus_that_hangs_is_an_error_for_the_caller_and_over_when_it_is_released(
    autojump_clock: MockClock,
) -> None:
    async with driving("sensor", "tmp102", 0x48, Tmp102Target()) as driven:
        driven.bus.stall()
        with pytest.raises(MachineError, match="i2c-1 address 0x48") as caught:
            await driven.readings()
        assert caught.value.kind is ErrorKind.TIMEOUT
        driven.bus.release()
        assert await driven.readings() == {"temperature_c": 25.0}
        assert driven.node().state is State.READY


async def test_a_board_on_a_hanging_bus_stops_within_its_limit(autojump_clock: MockClock) -> None:
    async with driving("board", "pca9685", 0x40, Pca9685Target()) as driven:
        driven.bus.stall()
        began = trio.current_time()
        with capture_logs() as logs:
            driven.memory.write({"components": []})
            await trio.sleep(10)
            await driven.settle()
        assert not any(name.endswith("/it") for name in driven.memory.graph.snapshot().nodes)
        assert trio.current_time() - began <= 10
        assert [e["event"] for e in logs if e["log_level"] == "error"] == [
            "the outputs of the chip could not be switched off and may still be on"
        ]


async def test_a_board_that_cannot_be_switched_off_stops_and_says_so(autojump_clock: MockClock) -> None:
    async with driving("board", "pca9685", 0x40, Pca9685Target()) as driven:
        await driven.call("set_gpio", pin="0", high=True)
        driven.bus.detach(0x40)
        with capture_logs() as logs:
            driven.memory.write({"components": []})
            await trio.testing.wait_all_tasks_blocked()
        said = [entry for entry in logs if entry["log_level"] == "error"]
        assert [entry["event"] for entry in said] == [
            "the outputs of the chip could not be switched off and may still be on"
        ]
        assert "i2c-1 address 0x40" in said[0]["reason"]
        assert not any(name.endswith("/it") for name in driven.memory.graph.snapshot().nodes)


async def test_changed_attributes_give_the_address_to_another(autojump_clock: MockClock) -> None:
    async with driving("sensor", "tmp102", 0x48, Tmp102Target(20.0)) as driven:
        driven.bus.attach(0x49, Lm75Target(40.0))
        entry = {"name": "it", "api": SENSOR, "model": "lm75", "attributes": {"i2c_bus": "1", "i2c_address": "0x49"}}
        taken = {"name": "taken", "api": SENSOR, "model": "tmp102", "attributes": {"i2c_bus": "1"}}
        driven.memory.write({"components": [entry, taken]})
        await driven.until(State.READY, "taken")
        await driven.settle()
        assert await driven.readings() == {"temperature_c": 40.0}
        assert set(driven.hardware.reservations.all()) == {"i2c-1 address 0x48", "i2c-1 address 0x49"}
