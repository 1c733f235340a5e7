"""Chips on a real kernel's I2C bus: read by machine-server and the official SDK, and by the kernel's own drivers.

The plant models behind the emulated USB adapter are tested twice: with our drivers, which were written independently
from the same data sheets, and with drivers of the kernel bound to the same objects.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
import trio
import trio.lowlevel
from grpclib.exceptions import GRPCError
from viam.components.board import Board
from viam.components.generic import Generic
from viam.components.movement_sensor import MovementSensor
from viam.components.power_sensor import PowerSensor
from viam.components.sensor import Sensor

from tests.hil.chips import TABLE, Kernel, bound, entry, machine, ours, ready, said, solder
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Adapter, Plant
from tests.hil.rig.record import Recorder


async def test_every_chip_through_the_official_sdk(guest: Guest, plant: Plant) -> None:
    adapter = await plant.i2c_adapter()
    chips = await solder(adapter, *TABLE)
    async with machine(guest, *TABLE) as (_, sdk):

        async def read(name: str, kind: Any = Sensor) -> Mapping[str, Any]:
            began = time.monotonic()
            readings = await sdk(kind.from_robot(sdk.robot, name).get_readings())
            print(f"{name}: {(time.monotonic() - began) * 1000:.0f} ms {dict(readings)}")
            return dict(readings)

        for celsius in (-40.0, 0.0, 25.5, 84.5):
            for name, step in (("tmp102", 0.0625), ("lm75", 0.5), ("tmp75", 0.0625)):
                await chips[name].set(temperature_c=celsius + step)
                assert await read(name) == {"temperature_c": celsius + step}

        weather = {"temperature_c": 31.25, "pressure_pa": 95500.0, "relative_humidity_pct": 62.0}
        await chips["bme280"].set(**weather)
        assert await read("bme280") == {
            "temperature_c": pytest.approx(31.25, abs=0.02),
            "pressure_pa": pytest.approx(95500, abs=12),
            "relative_humidity_pct": pytest.approx(62, abs=0.1),
        }
        await chips["bmp280"].set(temperature_c=-10.0, pressure_pa=50000.0)
        assert await read("bmp280") == {
            "temperature_c": pytest.approx(-10, abs=0.02),
            "pressure_pa": pytest.approx(50000, abs=12),
        }
        await chips["sht3x"].set(temperature_c=19.0, relative_humidity_pct=80.0)
        assert await read("sht3x") == {
            "temperature_c": pytest.approx(19, abs=0.003),
            "relative_humidity_pct": pytest.approx(80, abs=0.002),
        }

        for name, step in (("ina219", 1e-4), ("ina226", 3e-5)):
            await chips[name].set(volts=12.0, amperes=0.25)
            sensor = PowerSensor.from_robot(sdk.robot, name)
            assert await sdk(sensor.get_voltage()) == (pytest.approx(12.0), False)
            assert await sdk(sensor.get_current()) == (pytest.approx(0.25, abs=step), False)
            assert await sdk(sensor.get_power()) == pytest.approx(3.0, abs=0.003)
            await chips[name].set(amperes=-0.5)
            assert (await read(name, PowerSensor))["amps"] == pytest.approx(-0.5, abs=step)

        for name, step in (("ads1115", 125e-6), ("ads1015", 2e-3)):
            await chips[name].set(volts=[0.1, 1.0, 2.5, 3.3])
            assert await read(name) == {
                f"channel_{n}_v": pytest.approx(volts, abs=step) for n, volts in enumerate((0.1, 1.0, 2.5, 3.3))
            }

        for name, pull in (("mpu6050", 2), ("mpu6500", 16)):
            await chips[name].set(acceleration=[1.0, -2.0, 9.0], rotation=[5.0, -90.0, 180.0], temperature_c=33.0)
            imu = MovementSensor.from_robot(sdk.robot, name)
            felt = await sdk(imu.get_linear_acceleration())
            assert (felt.x, felt.y, felt.z) == pytest.approx((1, -2, 9), abs=pull * 3e-4)
            turned = await sdk(imu.get_angular_velocity())
            assert (turned.x, turned.y, turned.z) == pytest.approx((5, -90, 180), abs=0.15)
            assert (await read(name, MovementSensor))["temperature_c"] == pytest.approx(33, abs=0.01)

        board = Board.from_robot(sdk.robot, "pca9685")
        for number in (0, 7, 15):
            pin = await sdk(board.gpio_pin_by_name(str(number)))
            await sdk(pin.set_pwm(0.075))
            assert await chips["pca9685"].call("duty", number) == pytest.approx(0.075, abs=1 / 4096)
            assert await sdk(pin.get_pwm()) == pytest.approx(0.075, abs=1 / 4096)
            await sdk(pin.set(True))
            assert await chips["pca9685"].call("duty", number) == 1.0
            assert await sdk(pin.get()) is True
            await sdk(pin.set(False))
            assert await chips["pca9685"].call("duty", number) == 0.0
        pin = await sdk(board.gpio_pin_by_name("3"))
        await sdk(pin.set_pwm_frequency(400))
        assert await chips["pca9685"].get("frequency") == pytest.approx(400, rel=0.02)
        await sdk(pin.set_pwm(0.5))

        for name, size in (("at24c32", 4096), ("at24c02", 256)):
            memory = Generic.from_robot(sdk.robot, name)
            text = f"{name} " + "0123456789" * 10  # over several pages
            assert await sdk(memory.do_command({"write": {"offset": 61, "text": text}})) == {"written": len(text)}
            assert await sdk(memory.do_command({"read": {"offset": 61, "count": len(text)}})) == {
                "hex": text.encode().hex()
            }
            content = await chips[name].get("memory")
            assert content[61 : 61 + len(text)] == text.encode()
            assert content[:61] == b"\xff" * 61
            assert (await sdk(memory.do_command({"size": {}})))["bytes"] == size
    assert [await chips["pca9685"].call("duty", number) for number in range(16)] == [0.0] * 16, "off after the stop"


HWMON = "hwmon/hwmon*"
IIO = "iio:device*"


WEATHER = ("temperature_c", "pressure_pa", "relative_humidity_pct")


@pytest.fixture
async def adapter(plant: Plant) -> Adapter:
    return await plant.i2c_adapter()


@pytest.mark.parametrize(
    ("name", "module", "chip", "step"),
    [
        ("tmp102", "tmp102", "tmp102", 0.0625),
        ("lm75", "lm75", "lm75", 0.5),
        ("tmp75", "lm75", "tmp75", 0.0625),
        ("tmp75", "lm75", "tmp105", 0.0625),
    ],
)
async def test_thermometers_agree_with_the_kernel(
    guest: Guest, adapter: Adapter, name: str, module: str, chip: str, step: float
) -> None:
    target = (await solder(adapter, name))[name]
    degrees = [-55.0, -25.0625, -0.5, 0.0, 0.0625, 25.5, 99.9375, 124.5]
    kernels = []
    async with bound(guest, adapter, TABLE[name][2], module, chip) as kernel:
        await trio.sleep(0.35)  # the first conversion of the slowest of them
        for celsius in degrees:
            await target.set(temperature_c=celsius)
            # The driver of the LM75 caches a value for the duration of a conversion.
            await trio.sleep(0.35 if module == "lm75" else 0.0)
            kernels.append(await kernel.number_of(f"{HWMON}/temp1_input") / 1000)
    await target.call("power_cycle")
    mine = []
    async with guest.server({"components": [entry(name)]}) as server:
        for celsius in degrees:
            await target.set(temperature_c=celsius)
            mine.append((await ours(server, name))["temperature_c"])
    print(chip, list(zip(degrees, kernels, mine, strict=True)))
    assert mine == pytest.approx(kernels, abs=0.001)
    assert mine == pytest.approx(degrees, abs=step / 2)


async def test_sht3x_and_the_kernel_agree(guest: Guest, adapter: Adapter) -> None:
    target = (await solder(adapter, "sht3x"))["sht3x"]
    felt = [(-44.0, 1.0), (0.0, 50.0), (24.73, 61.9), (120.0, 99.0)]
    kernels = []
    async with bound(guest, adapter, 0x44, "sht3x", "sht3x") as kernel:
        for celsius, percent in felt:
            await target.set(temperature_c=celsius, relative_humidity_pct=percent)
            await trio.sleep(0.05)
            kernels.append([await kernel.number_of(f"{HWMON}/{what}_input") / 1000 for what in ("temp1", "humidity1")])
    mine = []
    async with guest.server({"components": [entry("sht3x")]}) as server:
        for celsius, percent in felt:
            await target.set(temperature_c=celsius, relative_humidity_pct=percent)
            mine.append(list((await ours(server, "sht3x")).values()))
    print(list(zip(felt, kernels, mine, strict=True)))
    for one, other in zip(mine, kernels, strict=True):
        assert sorted(one) == pytest.approx(sorted(other), abs=0.003)


@pytest.mark.qemu("the driver of Linux 6.12 rounds temperatures below zero up: -19.99 for -20.0047")
@pytest.mark.parametrize("name", ["bme280", "bmp280"])
async def test_bosch_sensors_and_the_kernel_agree(guest: Guest, adapter: Adapter, name: str) -> None:
    target = (await solder(adapter, name))[name]
    await trio.sleep(0.01)
    felt = [(-20.0, 40000.0, 10.0), (25.08, 100653.0, 50.0), (60.0, 108000.0, 90.0)]
    kernels = []
    async with bound(guest, adapter, TABLE[name][2], "bmp280-i2c", name) as kernel:
        for celsius, pascal, percent in felt:
            await target.set(temperature_c=celsius, pressure_pa=pascal)
            if name == "bme280":
                await target.set(relative_humidity_pct=percent)
            await trio.sleep(0.2)
            kernels.append(
                [
                    await kernel.number_of(f"{IIO}/in_temp_input") / 1000,
                    await kernel.number_of(f"{IIO}/in_pressure_input") * 1000,
                    *([await kernel.number_of(f"{IIO}/in_humidityrelative_input") / 1000] if name == "bme280" else []),
                ]
            )
    mine = []
    async with guest.server({"components": [entry(name)]}) as server:
        for celsius, pascal, percent in felt:
            await target.set(temperature_c=celsius, pressure_pa=pascal)
            if name == "bme280":
                await target.set(relative_humidity_pct=percent)
            readings = await ours(server, name)
            mine.append([readings[key] for key in WEATHER if key in readings])
    print(list(zip(felt, kernels, mine, strict=True)))
    for one, other in zip(mine, kernels, strict=True):
        assert one[0] == pytest.approx(other[0], abs=0.011)
        assert one[1] == pytest.approx(other[1], abs=12)
        assert one[2:] == pytest.approx(other[2:], abs=0.1)


@pytest.mark.parametrize("name", ["ads1115", "ads1015"])
async def test_converters_and_the_kernel_agree(guest: Guest, adapter: Adapter, name: str) -> None:
    target = (await solder(adapter, name))[name]
    volts = [0.1, 0.8, 1.5, 1.9]
    await target.set(volts=volts)
    kernels = []
    async with bound(guest, adapter, TABLE[name][2], "ti-ads1015", name) as kernel:
        for number in range(4):
            raw = await kernel.number_of(f"{IIO}/in_voltage{number}_raw")
            kernels.append(raw * await kernel.number_of(f"{IIO}/in_voltage{number}_scale") / 1000)
    async with guest.server({"components": [entry(name, full_scale_v=2.048)]}) as server:
        mine = list((await ours(server, name)).values())
    print(volts, kernels, mine)
    step = 2.048 / (32768 if name == "ads1115" else 2048)
    assert sorted(mine) == pytest.approx(kernels, abs=step)
    assert kernels == pytest.approx(volts, abs=step)


@pytest.mark.parametrize(("name", "chip"), [("mpu6050", "mpu6050"), ("mpu6500", "mpu6500")])
async def test_motion_sensors_and_the_kernel_agree(guest: Guest, adapter: Adapter, name: str, chip: str) -> None:
    target = (await solder(adapter, name))[name]
    acceleration, rotation, celsius = [3.0, -4.5, 9.0], [10.0, -60.0, 200.0], 41.0
    await target.set(acceleration=acceleration, rotation=rotation, temperature_c=celsius)
    async with bound(guest, adapter, TABLE[name][2], "inv-mpu6050-i2c", chip) as kernel:

        async def value(what: str, scale: str) -> float:
            return await kernel.number_of(f"{IIO}/{what}_raw") * await kernel.number_of(f"{IIO}/{scale}_scale")

        pull = [await value(f"in_accel_{axis}", "in_accel") for axis in "xyz"]
        turn = [await value(f"in_anglvel_{axis}", "in_anglvel") * 57.29577951 for axis in "xyz"]
        raw = await kernel.number_of(f"{IIO}/in_temp_raw") + await kernel.number_of(f"{IIO}/in_temp_offset")
        warmth = raw * await kernel.number_of(f"{IIO}/in_temp_scale") / 1000
    async with guest.server({"components": [entry(name)]}) as server:
        readings = await ours(server, name)
    print(pull, turn, warmth, readings)
    mine = [
        [vector[axis] for axis in "xyz"] for vector in (readings["linear_acceleration"], readings["angular_velocity"])
    ]
    # The kernel's scales have three digits (0.000598 m/s² per count), and data sheets say 131 for 131.072.
    assert mine[0] == pytest.approx(pull, abs=0.012)
    assert pull == pytest.approx(acceleration, abs=0.012)
    assert mine[1] == pytest.approx(turn, abs=0.25)
    assert turn == pytest.approx(rotation, abs=0.25)
    assert readings["temperature_c"] == pytest.approx(warmth, abs=0.05)


@pytest.mark.parametrize(("name", "chip"), [("at24c32", "24c32"), ("at24c02", "24c02")])
async def test_eeproms_and_the_kernel_agree(guest: Guest, adapter: Adapter, name: str, chip: str) -> None:
    target = (await solder(adapter, name))[name]
    async with guest.server({"components": [entry(name)]}) as server, server.client() as client:
        command = {"write": {"offset": 30, "text": "written by us, over a page's end"}}
        await client.call("rdk:component:generic", name, "do_command", command=command)
    async with bound(guest, adapter, TABLE[name][2], "at24", chip) as kernel:
        content = await guest.read(f"{kernel.folder}/eeprom")
        assert content == await target.get("memory")
        assert content[30:62] == b"written by us, over a page's end"
        await guest.run(
            f"printf 'written by the kernel, over a page as well' | dd of={kernel.folder}/eeprom bs=1 seek=100"
        )
    async with guest.server({"components": [entry(name)]}) as server, server.client() as client:
        command = {"read": {"offset": 100, "count": 42}}
        found = await client.call("rdk:component:generic", name, "do_command", command=command)
        assert bytes.fromhex(found["hex"]) == b"written by the kernel, over a page as well"


async def test_power_monitors_and_the_kernel_agree(guest: Guest, adapter: Adapter) -> None:
    chips = await solder(adapter, "ina219", "ina226")
    for name, step in (("ina219", 0.001), ("ina226", 0.0005)):
        await chips[name].set(volts=11.98, amperes=0.5, shunt_ohms=0.01)  # 10 mohm is the driver's default
        async with bound(guest, adapter, TABLE[name][2], "ina2xx", name) as kernel:
            await trio.sleep(0.1)
            bus = await kernel.number_of(f"{HWMON}/in1_input") / 1000
            current = await kernel.number_of(f"{HWMON}/curr1_input") / 1000
        assert bus == pytest.approx(11.98, abs=0.004)
        assert current == pytest.approx(0.5, abs=step)


async def test_outputs_and_the_kernel_agree(guest: Guest, adapter: Adapter) -> None:
    target = (await solder(adapter, "pca9685"))["pca9685"]
    async with bound(guest, adapter, 0x60, "pwm-pca9685", "pca9685") as kernel:
        chip = f"{kernel.folder}/pwm/pwmchip*"
        await guest.run(
            f"set -e; cd {chip}; echo 2 > export; cd pwm2;"
            " echo 5000000 > period; echo 1250000 > duty_cycle; echo 1 > enable"
        )
        assert await target.call("duty", 2) == pytest.approx(0.25, abs=1 / 4096)
        assert await target.get("frequency") == pytest.approx(200, rel=0.02)


async def test_a_chip_used_by_a_kernel_driver(guest: Guest, adapter: Adapter, record_recovery: Recorder) -> None:
    await solder(adapter, "tmp102")
    async with bound(guest, adapter, 0x48, "tmp102", "tmp102"):
        await trio.lowlevel.checkpoint()
        async with guest.server({"components": [entry("tmp102")]}) as server:
            with trio.fail_after(60):
                await server.wait_log("is used by the kernel driver tmp102")
            kernel = Kernel(guest, adapter.bus, 0x48)
            await guest.run(f"echo {kernel.folder.rpartition('/')[2]} > /sys/bus/i2c/drivers/tmp102/unbind")
            record_recovery(
                "I2C address taken by a driver of the kernel, then unbound",
                await ready(server, "tmp102"),
                seen="i2c-1 address 0x48 is used by the kernel driver tmp102: unbind it: `echo 1-0048 | sudo tee ...",
            )


async def test_a_missing_acknowledge_and_recovery(guest: Guest, adapter: Adapter, record_recovery: Recorder) -> None:
    await solder(adapter, "tmp102", "lm75")
    async with machine(guest, "tmp102", "lm75") as (server, sdk):
        await adapter.refuse(0x48)
        with pytest.raises(Exception, match="address 0x48: nobody answers") as caught:
            await sdk(Sensor.from_robot(sdk.robot, "tmp102").get_readings())
        assert await sdk(Sensor.from_robot(sdk.robot, "lm75").get_readings()) == {"temperature_c": 25.0}
        await adapter.refuse(0x48, False)
        record_recovery("I2C chip does not acknowledge", await ready(server, "tmp102"), seen=said(caught.value))


async def test_a_chip_without_power_for_a_moment(guest: Guest, adapter: Adapter, record_recovery: Recorder) -> None:
    names = ("tmp102", "tmp75", "bme280", "sht3x", "ina219", "ina226", "ads1115", "mpu6050")
    chips = await solder(adapter, *names)
    await chips["tmp102"].set(temperature_c=140.0)
    await chips["tmp75"].set(temperature_c=20.0625)
    await chips["ina219"].set(amperes=0.3)
    await chips["ina226"].set(amperes=0.3)
    async with machine(guest, *names) as (server, _):
        before = {name: await ours(server, name) for name in names}
        for name in names:
            await chips[name].call("power_cycle")
            await trio.sleep(0.05 if name in ("bme280", "sht3x") else 0.0)
            began = time.monotonic()
            assert await ours(server, name) == before[name], name
            if name == "tmp102":
                record_recovery(
                    "I2C chip without power for a moment",
                    time.monotonic() - began,
                    seen="a warning in the log: the chip has lost its settings; the next reading is right",
                )
        assert server.log.count("the chip has lost its settings") >= 4


async def test_a_wrong_check_sum(guest: Guest, adapter: Adapter, record_recovery: Recorder) -> None:
    target = (await solder(adapter, "sht3x"))["sht3x"]
    async with machine(guest, "sht3x") as (server, sdk):
        await target.set(garble=True)
        with pytest.raises(Exception, match="has the checksum") as caught:
            await sdk(Sensor.from_robot(sdk.robot, "sht3x").get_readings())
        record_recovery("wrong check sum of an SHT3x", await ready(server, "sht3x"), seen=said(caught.value))


async def test_wrong_chips_and_shared_addresses_are_reported(guest: Guest, adapter: Adapter) -> None:
    await solder(adapter, "ina226", "mpu6050")
    wrong = {**entry("ina226"), "name": "wrong", "model": "ina219"}
    other = {**entry("bmp280", i2c_address="0x68"), "name": "other"}
    rivals = [{**entry("mpu6050"), "name": "first"}, {**entry("mpu6050"), "name": "second"}]
    async with guest.server({"components": [wrong, other, *rivals[:1]]}) as server:
        with trio.fail_after(60):
            await server.wait_log("after a reset its configuration reads 0x4127, which is an INA226 or INA230")
            await server.wait_log(r"no BME280 or BMP280 at i2c-\d+ address 0x68|address 0x68 is wanted by .*/other")
            await server.write({"components": rivals})
            await server.wait_log(
                r"address 0x68 is wanted by \S+/(first|second) and already used by \S+/(first|second)"
            )
            await server.write({"components": [other]})
            await server.wait_log(r"no BME280 or BMP280 at i2c-\d+ address 0x68: its identity reads 0x00")
            await server.write({"components": [entry("ina226"), entry("mpu6050")]})
        assert await ready(server, "ina226") < 30
        assert await ready(server, "mpu6050") < 30


async def test_the_adapter_is_unplugged_and_reconnected(
    guest: Guest, plant: Plant, adapter: Adapter, record_recovery: Recorder
) -> None:
    chips = await solder(adapter, "tmp102", "pca9685")
    async with machine(guest, "tmp102", "pca9685") as (server, sdk):
        pin = await sdk(Board.from_robot(sdk.robot, "pca9685").gpio_pin_by_name("1"))
        await sdk(pin.set_pwm(0.5))
        await adapter.unplug()
        thermometer, reason = Sensor.from_robot(sdk.robot, "tmp102"), ""
        with trio.fail_after(60):
            while "adapter" not in reason:  # at first the log only says that it is stopping
                with pytest.raises(GRPCError) as caught:
                    await sdk(thermometer.get_readings())
                reason = said(caught.value)
        await chips["tmp102"].set(temperature_c=77.0)
        await adapter.plug()
        seconds = await ready(server, "tmp102")
        record_recovery("I2C adapter unplugged and back, with its chips", seconds, seen=reason)
        assert await ours(server, "tmp102") == {"temperature_c": 77.0}
        await ready(server, "pca9685", "get_gpio", pin="1")
        assert await chips["pca9685"].call("duty", 1) == 0.0


async def test_machine_server_is_killed_while_outputs_are_on(
    guest: Guest, adapter: Adapter, record_recovery: Recorder
) -> None:
    target = (await solder(adapter, "pca9685"))["pca9685"]
    async with machine(guest, "pca9685") as (server, sdk):
        pin = await sdk(Board.from_robot(sdk.robot, "pca9685").gpio_pin_by_name("1"))
        await sdk(pin.set_pwm(0.5))
        assert await target.call("duty", 1) == 0.5
        await server.stop(9)
    assert await target.call("duty", 1) == 0.5, "nobody is left who could switch a chip off"
    began = time.monotonic()
    async with machine(guest, "pca9685"):
        assert await target.call("duty", 1) == 0.0
        record_recovery(
            "machine-server killed while outputs of a PCA9685 are on, started again",
            time.monotonic() - began,
            seen="outputs stay as they were until machine-server is back, then they are off",
        )
