"""A simulated motor: a shaft, which may be driven through pins."""

from __future__ import annotations

from typing import ClassVar, Final

from hal.sim.bench.device import Device
from hal.sim.bench.encoder import SimEncoder
from hal.sim.gpio.wiring import Pin, Wiring
from hal.sim.mechanics.shaft import Shaft

NO_LOAD: Final = 0.1  # amperes at full speed
STALL: Final = 2.0  # amperes at full power and standstill


class MotorPins:
    """The inputs of a motor's bridge; sets the power of the shaft whenever one of them changes.

    With `direction`, its level is the direction and `pwm` the magnitude; otherwise the direction is `a` minus `b`, and
    `pwm`, if present, the magnitude.
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
        """Watch the pins."""
        for pin in self._pins():
            pin.watchers.append(self)
        self.changed(t)

    def _pins(self) -> list[Pin]:
        return [pin for pin in (self._a, self._b, self._direction, self._pwm) if pin is not None]

    def _mean(self, pin: Pin | None, t: float, missing: float) -> float:
        return missing if pin is None else self._wiring.signal(pin).mean(t)

    def power(self, t: float) -> float:
        """Return the power of the motor, -1 to 1."""
        magnitude = self._mean(self._pwm, t, 1.0)
        if self._direction is not None:
            return magnitude * (1 if self._mean(self._direction, t, 0.0) >= 0.5 else -1)
        return magnitude * (self._mean(self._a, t, 0.0) - self._mean(self._b, t, 0.0))

    def settle(self, t: float) -> None:
        """Do nothing: the shaft computes its position itself."""

    def changed(self, t: float) -> None:
        """Set the power of the shaft if it has changed."""
        power = self.power(t)
        if power != self._shaft.power:
            self._shaft.drive(power, t)

    def close(self) -> None:
        """Stop watching the pins."""
        for pin in self._pins():
            pin.watchers.remove(self)


class SimMotor(Device):
    """A motor on the bench. `mount` is -1 if it is mounted mirrored, so that forward is the shaft's reverse."""

    kind: ClassVar[str] = "motor"

    def __init__(self, name: str, max_rpm: float, now: float, *, mount: int = 1) -> None:
        super().__init__(name)
        self.shaft = Shaft(max_rpm, now)
        self.mount = mount
        self.pins: MotorPins | None = None
        self.encoder: SimEncoder | None = None
        self.ticks_per_rotation = 1.0

    def travel(self, t: float) -> float:
        """Return the revolutions forward."""
        return self.mount * self.shaft.position(t)

    def current(self, t: float) -> float:
        """Return the current in amperes, which is highest at standstill under power."""
        power = self.shaft.power
        if power == 0:
            return 0.0
        share = self.shaft.speed(t) * 60 / self.shaft.max_rpm / power
        return abs(power) * (NO_LOAD + (STALL - NO_LOAD) * min(1.0, max(0.0, 1 - share)))

    def open(self, t: float) -> None:
        """Watch the pins and mount the disc of the encoder."""
        if self.pins is not None:
            self.pins.open(t)
        if self.encoder is not None:
            self.encoder.attach(self.shaft, self.ticks_per_rotation, t)

    def close(self, t: float) -> None:
        """Stop the motor and disconnect it."""
        if self.pins is not None:
            self.pins.close()
        if self.encoder is not None:
            self.encoder.detach(t)
        self.shaft.drive(0.0, t)
        self.shaft.watchers.clear()
