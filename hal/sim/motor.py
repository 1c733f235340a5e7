"""A simulated motor: a shaft, and perhaps the pins that feed it."""

from __future__ import annotations

from typing import ClassVar, Final

from hal.sim.device import Device
from hal.sim.encoder import SimEncoder
from hal.sim.shaft import Shaft
from hal.sim.wiring import Pin, Wiring

NO_LOAD: Final = 0.1  # amperes at full speed
STALL: Final = 2.0  # amperes at full power and standstill


class MotorPins:
    """The inputs of a motor's bridge; feeds the shaft whenever one of them changes.

    With `direction`, its level is the sense and `pwm` the magnitude; otherwise the sense is `a` minus `b`,
    and `pwm`, if there is one, the magnitude.
    """

    def __init__(
        self,
        wiring: Wiring,
        shaft: Shaft,
        *,
        a: Pin | None = None,
        b: Pin | None = None,
        direction: Pin | None = None,
        pwm: Pin | None = None,
    ) -> None:
        self._wiring = wiring
        self._shaft = shaft
        self._a, self._b, self._direction, self._pwm = a, b, direction, pwm

    def open(self, t: float) -> None:
        """Take hold of the pins."""
        for pin in self._pins():
            pin.watchers.append(self)
        self.changed(t)

    def _pins(self) -> list[Pin]:
        return [pin for pin in (self._a, self._b, self._direction, self._pwm) if pin is not None]

    def _mean(self, pin: Pin | None, t: float, missing: float) -> float:
        return missing if pin is None else self._wiring.signal(pin).mean(t)

    def power(self, t: float) -> float:
        """What the bridge gives the motor: -1 to 1."""
        magnitude = self._mean(self._pwm, t, 1.0)
        if self._direction is not None:
            return magnitude * (1 if self._mean(self._direction, t, 0.0) >= 0.5 else -1)
        return magnitude * (self._mean(self._a, t, 0.0) - self._mean(self._b, t, 0.0))

    def settle(self, t: float) -> None:
        """The shaft keeps its own account."""

    def changed(self, t: float) -> None:
        """Feed the shaft if the power is another."""
        power = self.power(t)
        if power != self._shaft.power:
            self._shaft.drive(power, t)

    def close(self) -> None:
        """Let go of the pins."""
        for pin in self._pins():
            pin.watchers.remove(self)


class SimMotor(Device):
    """A motor on the bench. `mount` is -1 if it is built in mirrored: its forward is the shaft's reverse."""

    kind: ClassVar[str] = "motor"

    def __init__(self, name: str, max_rpm: float, now: float, *, mount: int = 1) -> None:
        super().__init__(name)
        self.shaft = Shaft(max_rpm, now)
        self.mount = mount
        self.pins: MotorPins | None = None
        self.encoder: SimEncoder | None = None
        self.ticks_per_rotation = 1.0

    def travel(self, t: float) -> float:
        """Revolutions forward."""
        return self.mount * self.shaft.position(t)

    def current(self, t: float) -> float:
        """More under power than at speed, most at standstill."""
        power = self.shaft.power
        if power == 0:
            return 0.0
        share = self.shaft.speed(t) * 60 / self.shaft.max_rpm / power
        return abs(power) * (NO_LOAD + (STALL - NO_LOAD) * min(1.0, max(0.0, 1 - share)))

    def open(self, t: float) -> None:
        """Take hold of the pins, and carry the disc of the encoder."""
        if self.pins is not None:
            self.pins.open(t)
        if self.encoder is not None:
            self.encoder.attach(self.shaft, self.ticks_per_rotation, t)

    def close(self, t: float) -> None:
        """Stop, and let go of the pins."""
        if self.pins is not None:
            self.pins.close()
        if self.encoder is not None:
            self.encoder.detach(t)
        self.shaft.drive(0.0, t)
        self.shaft.watchers.clear()
