"""The hardware layer against the raw libraries on real kernel drivers; prints figures, and the I2C budget must hold."""

from __future__ import annotations

from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant


async def test_the_budget_of_an_i2c_register_read_holds_on_a_real_bus(guest: Guest, plant: Plant) -> None:
    adapter = await plant.i2c_adapter()
    await adapter.attach(0x48, "hal.sim.chips.lm75:Lm75Target", temperature_c=21.5)
    bank = await plant.gpio()
    pull = (await guest.run("ls /sys/devices/platform/gpio-sim.*/gpiochip*/sim_gpio5/pull")).stdout.strip()
    options = ["--i2c", f"{adapter.bus}:0x48", "--gpio", f"{bank.chip}:3:5:{pull}", "--count", "200", "--rounds", "3"]
    done = await guest.run(["python3", "-m", "bench.hal", *options], check=False, limit=300, fresh=True)
    print(done.output)
    said = done.stdout.split("I2C, a register of two bytes")[1]
    assert "budget kept" in said.split("GPIO")[0]
    assert "GPIO, from setting a level to the edge" in said
    await adapter.unplug()
