"""A model of the box that the thermostat heats: air with a heater, a fan and a TMP102.

    heat capacity * dT/dt = heater power - (wall + fan * airing) * (T - ambient)

Between two changes of an input this has an exact solution, so the temperature is a function of time, without steps.
"""

from __future__ import annotations

import math

from hal.ports import Line
from hal.sim import SimHardware
from models.chips.tmp102 import Tmp102Target

CAPACITY = 30.0  # J/K, of the air and the objects in it
HEATER = 60.0  # W
WALL = 1.0  # W/K lost through the walls
AIRING = 3.0  # W/K in addition with the fan at full speed
NOISE = 0.05  # K, standard deviation of the measured temperature

HEATER_LINE = Line("pinctrl-bcm2711", 17)
FAN_LINE = Line("pinctrl-bcm2711", 27)


class Box:
    """`ambient_c` is the room temperature, `temperature_c` the air inside; `heating` and `fan` come from the pins."""

    RECORDED = ("temperature_c", "heating", "fan")

    def __init__(self, hardware: SimHardware) -> None:
        self._world = hardware.world
        self._ambient = self._air = 20.0
        self._since = self._world.now()
        self._heating, self._fan = False, 0.0
        self.switched = 0  # how often the heater turned on
        self.hottest_c = self._air
        self._pins = hardware.pin(HEATER_LINE), hardware.pin(FAN_LINE)
        for pin in self._pins:
            pin.watchers.append(self)
        self._chip = Tmp102Target(clock=self._world.now)
        hardware.bus("1").attach(0x48, self)

    # ---- the air

    def _at(self, t: float) -> float:
        loss = WALL + AIRING * self._fan
        rest = self._ambient + HEATER * self._heating / loss
        return rest + (self._air - rest) * math.exp(-(t - self._since) * loss / CAPACITY)

    def settle(self, t: float) -> None:
        """Compute the temperature up to now, because a pin is about to change."""
        self._air, self._since = self._at(t), t
        self.hottest_c = max(self.hottest_c, self._air)

    def changed(self, t: float) -> None:
        """Read the pins after a change."""
        heater, fan = (self._world.wiring.signal(pin) for pin in self._pins)
        self.switched += heater.level(t) and not self._heating
        self._heating, self._fan = heater.level(t), fan.mean(t)

    @property
    def temperature_c(self) -> float:
        """The current air temperature."""
        return self._at(self._world.now())

    @property
    def heating(self) -> bool:
        """Whether the relay switches the heater on."""
        return self._heating

    @property
    def fan(self) -> float:
        """The speed of the fan, 0 to 1."""
        return self._fan

    @property
    def ambient_c(self) -> float:
        """The room temperature."""
        return self._ambient

    @ambient_c.setter
    def ambient_c(self, value: float) -> None:
        self.settle(self._world.now())
        self._ambient = value

    # ---- the chip on the bus, which measures the air

    def _measure(self) -> None:
        noise = self._world.noise("air", NOISE) + self._world.faults.noise("temperature_c")
        self._chip.temperature_c = self.temperature_c + noise

    def write(self, data: bytes) -> None:
        """Pass a message to the TMP102."""
        self._measure()
        self._chip.write(data)

    def read(self, n: int) -> bytes:
        """Read a message from the TMP102."""
        self._measure()
        return self._chip.read(n)
