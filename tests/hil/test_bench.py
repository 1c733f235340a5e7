"""The hardware layer compared with the raw libraries on real kernel drivers; prints figures.

The figures depend on the load of the computer: tests/unit/hal/linux/i2c/test_i2c_budget.py counts the operations.
"""

from __future__ import annotations

import re

from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant


async def test_measurements_of_a_real_bus_and_real_lines(guest: Guest, plant: Plant) -> None:
    adapter = await plant.i2c_adapter()
    await adapter.attach(0x48, "models.chips.lm75:Lm75Target", temperature_c=21.5)
    bank = await plant.gpio()
    pull = (await guest.run("ls /sys/devices/platform/gpio-sim.*/gpiochip*/sim_gpio5/pull")).stdout.strip()
    options = ["--i2c", f"{adapter.bus}:0x48", "--gpio", f"{bank.chip}:3:5:{pull}", "--count", "200", "--rounds", "3"]
    done = await guest.run(["python3", "-m", "bench.hal", *options], check=False, limit=300, fresh=True)
    print(done.output)
    said = done.stdout.split("I2C, a register of two bytes")[1]
    assert re.search(r"budget (kept|missed): \d", said.split("GPIO")[0], re.IGNORECASE)
    assert "GPIO, from setting a level to the edge" in said
    await adapter.unplug()
