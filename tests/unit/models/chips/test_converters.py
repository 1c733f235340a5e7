"""ADS1115, ADS1015 and the MCP3008 family: conversions, failures, and the driver against the plant model."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from hal.errors import Fault, HalError
from hal.sim import World
from hal.sim.hardware import SimHardware
from models.chips.ads1115 import chip as ads1115
from models.chips.ads1115 import datasheet as ads_sheet
from models.chips.ads1115.attributes import Ads1115Config
from models.chips.ads1115.simulation import Ads1115Target
from models.chips.mcp3008 import chip as mcp3008
from models.chips.mcp3008 import datasheet as mcp_sheet
from models.chips.mcp3008.attributes import Mcp3008Config
from models.chips.mcp3008.simulation import Mcp3008Target
from nursery_graph.lifecycle import State
from runtime.server.memory import open_machine
from schema.attributes import decode_attributes
from schema.errors import ConfigError, ErrorKind, MachineError
from tests.unit.models.chips.bench import driving, registers_of, virtually

SENSOR = "rdk:component:sensor"


# SBAS444D, table 5 ("Input Signal Versus Ideal Output Code") and table 3 (LSB sizes).
@pytest.mark.parametrize(("raw", "count"), [(0x7FFF, 32767), (0x0001, 1), (0x0000, 0), (0xFFFF, -1), (0x8000, -32768)])
def test_codes_of_an_ads1115(raw: int, count: int) -> None:
    assert ads1115.count_of(raw, 16) == count


@pytest.mark.parametrize(
    ("full_scale", "microvolts"),
    [(6.144, 187.5), (4.096, 125), (2.048, 62.5), (1.024, 31.25), (0.512, 15.625), (0.256, 7.8125)],
)
def test_steps_of_an_ads1115(full_scale: float, microvolts: float) -> None:
    assert ads1115.step(full_scale, 16) * 1e6 == pytest.approx(microvolts)


# SBAS473E, table 3 and table 5: 12 bits, left-justified.
def test_codes_and_steps_of_an_ads1015() -> None:
    assert [ads1115.count_of(raw, 12) for raw in (0x7FF0, 0x0010, 0x0000, 0xFFF0, 0x8000)] == [2047, 1, 0, -1, -2048]
    assert ads1115.step(2.048, 12) == pytest.approx(1e-3)


# SBAS444D, section 10.1.7 ("quickstart guide"): 0x8483 starts AIN0 against AIN1 continuously; bits as in table 8.
def test_configuration_words() -> None:
    assert ads_sheet.config_word("0-1", 2.048, 128, ads_sheet.MODELS["ads1115"]) == 0x8583, "the value after a reset"
    assert ads_sheet.config_word("3", 6.144, 860, ads_sheet.MODELS["ads1115"]) == 0xF1E3
    assert ads_sheet.config_word("0", 4.096, 1600, ads_sheet.MODELS["ads1015"]) == 0xC383


@given(
    st.sampled_from(["ads1115", "ads1015"]),
    st.sampled_from(sorted(ads_sheet.GAINS)),
    st.floats(-1, 1),
    st.sampled_from(sorted(ads_sheet.INPUTS)),
)
def test_ads_says_what_it_feels(name: str, full_scale: float, share: float, inputs: str) -> None:
    model = ads_sheet.MODELS[name]
    volts = share * full_scale * (1 - 2.0 ** (2 - model.bits))

    async def measure() -> float:
        target = Ads1115Target(bits=model.bits)
        target.volts[int(inputs[0])] = volts / 2 if "-" in inputs else volts
        if "-" in inputs:
            target.volts[int(inputs[2])] = -volts / 2
        chip = ads1115.Ads1115(registers_of(0x48, target), model, full_scale, max(model.rates))
        await chip.identify()
        await chip.configure()
        return await chip.volts(inputs)

    assert abs(virtually(measure) - volts) <= ads1115.step(full_scale, model.bits) / 2 * 1.001


async def test_a_conversion_takes_its_time_and_no_longer(autojump_clock: MockClock) -> None:
    target = Ads1115Target()
    target.volts[2] = 1.5
    chip = ads1115.Ads1115(registers_of(0x48, target), ads_sheet.MODELS["ads1115"], 4.096, 8)
    began = trio.current_time()
    assert await chip.volts(2) == pytest.approx(1.5, abs=1e-4)
    assert 1 / 8 <= trio.current_time() - began < 0.14


@pytest.mark.parametrize(
    ("name", "rate"), [(name, rate) for name, model in ads_sheet.MODELS.items() for rate in model.rates]
)
async def test_every_rate_is_what_it_is_called(autojump_clock: MockClock, name: str, rate: int) -> None:
    model = ads_sheet.MODELS[name]
    target = Ads1115Target(bits=model.bits)
    target.volts[0] = 1.0
    chip = ads1115.Ads1115(registers_of(0x48, target), model, 4.096, rate)
    target.slowness = 1.1  # SBAS444D, section 7.5: the slowest chip allowed
    assert await chip.volts(0) == pytest.approx(1.0, abs=1e-3)
    assert target.period() == pytest.approx(1.1 / rate)


@pytest.mark.parametrize("chip", ["ads1115", "ads1015"])
async def test_readings_of_an_ads(autojump_clock: MockClock, chip: str) -> None:
    target = Ads1115Target(bits=16 if chip == "ads1115" else 12)
    target.volts = [0.5, 1.0, 1.5, 3.0]
    async with driving("sensor", "ads1115", 0x48, target, chip=chip) as driven:
        assert await driven.readings() == {
            f"channel_{n}_v": pytest.approx(volts, abs=2e-3) for n, volts in enumerate(target.volts)
        }
        target.power_cycle()
        assert (await driven.readings())["channel_3_v"] == pytest.approx(3, abs=2e-3)


async def test_channels_have_names_scales_and_pairs(autojump_clock: MockClock) -> None:
    target = Ads1115Target()
    target.volts = [2.0, 1.5, 0.75, 0.0]
    chosen = [
        {"name": "battery_v", "input": "0", "factor": 5.7},
        {"name": "bridge_v", "input": "0-1"},
        {"name": "temperature_c", "input": "2", "factor": 100, "offset": -50},
    ]
    async with driving("sensor", "ads1115", 0x48, target, channels=chosen) as driven:
        assert await driven.readings() == {
            "battery_v": pytest.approx(11.4, abs=1e-3),
            "bridge_v": pytest.approx(0.5, abs=1e-3),
            "temperature_c": pytest.approx(25, abs=0.02),
        }


async def test_one_that_converts_continuously_is_brought_to_order(autojump_clock: MockClock) -> None:
    target = Ads1115Target()
    target.volts = [1.0, 2.0, 0.0, 0.0]
    target.write(b"\x01\xc4\x83")  # another program writes the register
    await trio.sleep(0.1)
    async with driving("sensor", "ads1115", 0x48, target) as driven:
        assert (await driven.readings())["channel_1_v"] == pytest.approx(2.0, abs=1e-3)


async def test_power_down_makes_the_first_conversion_right(autojump_clock: MockClock) -> None:
    target = Ads1115Target()
    target.volts = [0.3, 2.0, 0.0, 0.0]
    registers = registers_of(0x48, target)
    model = ads_sheet.MODELS["ads1115"]
    target.write(b"\x01\xc4\x83")  # another program selects AIN0, continuous
    await trio.sleep(0.1)
    await ads1115.power_down(registers)
    count = await ads1115.read_channel(registers, 1, 4.096, 860, model)
    assert ads1115.volts(count, 4.096, 16) == pytest.approx(2.0, abs=1e-3)


async def test_two_callers_never_get_each_others_channel(autojump_clock: MockClock) -> None:
    target = Ads1115Target()
    target.volts = [0.1, 0.2, 0.3, 0.4]
    async with driving("sensor", "ads1115", 0x48, target) as driven:
        results: list[object] = []

        async def read() -> None:
            results.append(await driven.readings())

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(read)
        assert all(item == results[0] for item in results)
        assert results[0] == {f"channel_{n}_v": pytest.approx(0.1 * (n + 1), abs=1e-3) for n in range(4)}


async def test_a_chip_that_loses_power_during_a_conversion_is_an_error(autojump_clock: MockClock) -> None:
    target = Ads1115Target()
    chip = ads1115.Ads1115(registers_of(0x48, target), ads_sheet.MODELS["ads1115"], 4.096, 8)
    async with trio.open_nursery() as nursery:

        async def cut() -> None:
            await trio.sleep(0.05)
            target.power_cycle()

        nursery.start_soon(cut)
        with pytest.raises(HalError, match="or lost power: its configuration reads 0x8583") as caught:
            await chip.volts(0)
    assert caught.value.fault is Fault.BUS


async def test_a_conversion_that_never_ends(autojump_clock: MockClock) -> None:
    target = Ads1115Target()
    target.slowness = 1e6
    with pytest.raises(HalError, match="does not finish a conversion") as caught:
        await ads1115.read_channel(registers_of(0x48, target), 0, 4.096, 860, ads_sheet.MODELS["ads1115"])
    assert caught.value.fault is Fault.TIMEOUT


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"full_scale_v": 5}, "a full scale of 5 V is not valid: expected one of 6.144, 4.096"),
        ({"samples_per_sec": 100}, "100 samples/s is not a rate of the ADS1115: expected one of 8, 16"),
        ({"chip": "ads1015", "samples_per_sec": 860}, "is not a rate of the ADS1015"),
        ({"channels": [{"name": "x", "input": "4"}]}, "input '4' of 'x' is not one of"),
        ({"channels": [{"name": "x", "input": "1"}, {"name": "x", "input": "2"}]}, "two channels are called 'x'"),
    ],
)
def test_wrong_attributes_of_an_ads(attributes: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        decode_attributes(Ads1115Config, {"i2c_bus": "1", **attributes}, path="attributes")
    assert words in str(caught.value)


def test_wrong_inputs_of_an_ads_are_refused_before_the_bus() -> None:
    with pytest.raises(ValueError, match="inputs '7' are not valid: expected one of"):
        ads_sheet.config_word("7", 4.096, 128, ads_sheet.MODELS["ads1115"])


# DS21295D, figure 6-1 (8-bit segments): 0000 0001, then SGL D2 D1 D0 in the upper half; DS21298E, figure 6-1.
@pytest.mark.parametrize(
    ("bits", "channel", "sent"),
    [
        (10, 0, "018000"),
        (10, 5, "01d000"),
        (10, 7, "01f000"),
        (12, 0, "060000"),
        (12, 3, "06c000"),
        (12, 6, "078000"),
    ],
)
def test_requests_of_an_mcp(bits: int, channel: int, sent: str) -> None:
    assert mcp3008.request(channel, bits).hex() == sent


def test_differential_request_of_an_mcp3008() -> None:
    assert mcp3008.request(1, 10, differential=True).hex() == "011000"


def test_answers_of_an_mcp() -> None:
    assert mcp3008.count_of(bytes.fromhex("fffa55"), 10) == 0x255
    assert mcp3008.count_of(bytes.fromhex("ffffff"), 10) is None
    assert mcp3008.count_of(bytes.fromhex("ffeabc"), 12) == 0xABC


# DS21295D, equation 4-2: code = 1024 * Vin / Vref.
def test_volts_of_an_mcp3008() -> None:
    assert mcp_sheet.MODELS["mcp3008"].volts(512, 5.0) == 2.5
    assert mcp_sheet.MODELS["mcp3208"].volts(4095, 4.096) == pytest.approx(4.095)


@given(st.sampled_from(sorted(mcp_sheet.MODELS)), st.integers(0, 7), st.floats(0, 0.9999), st.floats(1, 5))
def test_mcp_says_what_it_feels(name: str, channel: int, share: float, reference: float) -> None:
    model = mcp_sheet.MODELS[name]
    channel %= model.channels

    async def measure() -> int:
        hardware = SimHardware(World())
        target = Mcp3008Target(channels=model.channels, bits=model.bits, reference=reference)
        target.volts[channel] = share * reference
        hardware.spi_bus("0").attach(0, target)
        async with hardware.spi("0", 0, mcp3008.SETTINGS) as device:
            return await mcp3008.read_channel(device, channel, model)

    volts = model.volts(virtually(measure), reference)
    assert 0 <= share * reference - volts <= reference / model.counts * 1.0001


def test_a_channel_that_does_not_exist_is_refused() -> None:
    async def measure() -> None:
        hardware = SimHardware(World())
        async with hardware.spi("0", 0, mcp3008.SETTINGS) as device:
            await mcp3008.read_channel(device, 4, mcp_sheet.MODELS["mcp3004"])

    with pytest.raises(ValueError, match="a MCP3004 has the channels 0 to 3, not 4"):
        virtually(measure)


def mcp(**attributes: object) -> dict[str, object]:
    return {"components": [{"name": "it", "api": SENSOR, "model": "mcp3008", "attributes": attributes}]}


async def test_readings_of_an_mcp3008(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    target = Mcp3008Target()
    hardware.spi_bus("0").attach(1, target)
    target.volts = [n * 0.4 for n in range(8)]
    async with open_machine(mcp(chip_select=1), hardware=hardware) as memory:
        await trio.testing.wait_all_tasks_blocked()
        answer = await memory.client().call("rdk:component:sensor", "it", "get_readings")
        assert answer == {f"channel_{n}_v": pytest.approx(n * 0.4, abs=3.3 / 1024) for n in range(8)}


async def test_pairs_of_an_mcp3208(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    target = Mcp3008Target(bits=12, reference=4.096)
    hardware.spi_bus("0").attach(0, target)
    target.volts[2:4] = [3.0, 1.0]
    pairs = [{"name": "forward_v", "input": "2-3"}, {"name": "backward_v", "input": "3-2"}]
    async with open_machine(mcp(chip="mcp3208", reference_v=4.096, channels=pairs), hardware=hardware) as memory:
        await trio.testing.wait_all_tasks_blocked()
        answer = await memory.client().call("rdk:component:sensor", "it", "get_readings")
        assert answer == {"forward_v": pytest.approx(2.0, abs=1e-3), "backward_v": 0.0}


async def test_an_mcp3008_that_is_not_there_is_an_error(autojump_clock: MockClock) -> None:
    async with open_machine(mcp(), hardware=SimHardware(World())) as memory:
        await trio.testing.wait_all_tasks_blocked()
        node = memory.graph.snapshot()["rdk:component:sensor/it"]
        assert node.state is State.UNHEALTHY
        assert "no MCP3008 answers on channel 0: the answer is ff ff ff" in node.reason


async def test_a_bus_that_vanishes_makes_the_sensor_unhealthy(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    bus = hardware.spi_bus("0")
    bus.attach(0, Mcp3008Target())
    async with open_machine(mcp(), hardware=hardware) as memory:
        await trio.testing.wait_all_tasks_blocked()
        bus.unplug()
        with pytest.raises(MachineError, match=r"spidev0\.0") as caught:
            await memory.client().call("rdk:component:sensor", "it", "get_readings")
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        await trio.testing.wait_all_tasks_blocked()
        assert memory.graph.snapshot()["rdk:component:sensor/it"].state is State.UNHEALTHY
        bus.plug()
        await trio.testing.wait_all_tasks_blocked()
        assert memory.graph.snapshot()["rdk:component:sensor/it"].state is State.READY


async def test_one_chip_select_has_one_user(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    hardware.spi_bus("0").attach(0, Mcp3008Target())
    document = mcp()
    document["components"].append({"name": "second", "api": SENSOR, "model": "mcp3008"})  # type: ignore[attr-defined]
    async with open_machine(document, hardware=hardware) as memory:
        await trio.testing.wait_all_tasks_blocked()
        nodes = memory.graph.snapshot().nodes
        reasons = [nodes[f"rdk:component:sensor/{name}"].reason for name in ("it", "second")]
        expected = [reason for reason in reasons if reason]
        assert len(expected) == 1
        assert "SPI bus 0 chip select 0 is wanted by" in expected[0]
        assert "and already used by" in expected[0]


def test_wrong_attributes_of_an_mcp() -> None:
    with pytest.raises(ConfigError, match="input '6' of 'x' is not one of 0, 1, 2, 3, 0-1, 1-0, 2-3, 3-2"):
        decode_attributes(
            Mcp3008Config, {"chip": "mcp3004", "channels": [{"name": "x", "input": "6"}]}, path="attributes"
        )


async def test_the_plant_converts_continuously_too(autojump_clock: MockClock) -> None:
    target = Ads1115Target()
    target.volts[0] = 1.024
    target.write(b"\x01\xc4\x83")  # AIN0, 2.048 V, continuous, 128 samples a second
    target.write(b"\x00")
    await trio.sleep(0.01)
    assert target.read(2) == b"\x40\x00"
    target.volts[0] = 0.0
    await trio.sleep(0.01)
    assert target.read(2) == b"\x00\x00"
    target.write(b"\x01\xc5\x83")
    assert target.read(1)[0] & 0x80, "powered down after the conversion"
    target.write(b"\x02")
    assert target.read(2) == b"\x80\x00"
