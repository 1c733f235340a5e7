"""Board `pca9685`: a PCA9685 on an I2C bus, with 16 PWM outputs for servos, lamps and motor drivers."""

from __future__ import annotations

from typing import ClassVar

from engine import Attributes, Board, Context, Extra, model
from hal import Registers
from models.chips.common.device import I2cDevice
from models.chips.pca9685 import chip as pca9685
from models.chips.pca9685.attributes import Pca9685Config
from models.chips.pca9685.datasheet import pre_scale_of
from schema import ErrorKind, MachineError


@model("rdk:builtin:pca9685")
class Pca9685(I2cDevice[pca9685.Pca9685], Board):
    """Pins `0` to `15` are outputs only. All share ONE frequency: changing it for one pin changes it for all, and is
    refused while another pin carries PWM. Outputs are off at start, at stop, and after a power failure of the chip.
    """

    Config: ClassVar[type[Attributes]] = Pca9685Config

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._frequencies: dict[int, int] = {}  # pin -> frequency that was set for it

    def chip_of(self, registers: Registers) -> pca9685.Pca9685:
        """Create the driver of the chip."""
        config: Pca9685Config = self.attributes
        return pca9685.Pca9685(
            registers, config.pwm_frequency_hz, inverted=config.inverted, open_drain=config.open_drain
        )

    async def release(self, chip: pca9685.Pca9685) -> None:
        """Switch all outputs off."""
        await chip.all_off()

    def identify(self, pin: str) -> str:
        """Return the canonical name of a pin."""
        return f"pin {self._channel(pin)} of {self.name}"

    async def set_gpio(self, pin: str, high: bool, *, extra: Extra = None) -> None:
        """Set the output always on or always off."""
        await self._set(pin, 1.0 if high else 0.0)

    async def get_gpio(self, pin: str, *, extra: Extra = None) -> bool:
        """Return whether the output is always on."""
        return await self.pwm(pin) == 1.0

    async def pwm(self, pin: str, *, extra: Extra = None) -> float:
        """Return the duty cycle from the chip, in steps of 1/4096."""
        channel = self._channel(pin)
        async with self.chip() as chip:
            return await chip.duty(channel)

    async def set_pwm(self, pin: str, duty_cycle_pct: float, *, extra: Extra = None) -> None:
        """Set the duty cycle: 0 (always off) to 1 (always on), rounded to 1/4096."""
        if not 0 <= duty_cycle_pct <= 1:
            raise MachineError(
                f"{duty_cycle_pct:g} is not a valid duty cycle",
                kind=ErrorKind.INVALID,
                remedy="use 0 (always off) to 1 (always on)",
            )
        await self._set(pin, duty_cycle_pct)

    async def pwm_frequency(self, pin: str, *, extra: Extra = None) -> int:
        """Return the frequency of all pins (Hz)."""
        self._channel(pin)
        async with self.chip() as chip:
            return round(chip.frequency)

    async def set_pwm_frequency(self, pin: str, frequency_hz: int, *, extra: Extra = None) -> None:
        """Set the frequency of all pins (Hz). PRECONDITION if that would change PWM on another pin."""
        channel = self._channel(pin)
        frequency = frequency_hz or self.attributes.pwm_frequency_hz
        try:
            pre_scale = pre_scale_of(frequency)
        except ValueError as error:
            raise MachineError(str(error), kind=ErrorKind.INVALID) from None
        async with self.chip() as chip:
            if pre_scale != chip.pre_scale:
                for other in range(pca9685.CHANNELS):
                    if other != channel and 0 < await chip.duty(other) < 1:
                        raise self._frequency_conflict(
                            channel, frequency, f"because pin {other} has PWM of {chip.frequency:.0f} Hz"
                        )
                await chip.set_frequency(frequency)
            self._frequencies[channel] = frequency

    async def _set(self, pin: str, duty: float) -> None:
        channel = self._channel(pin)
        async with self.chip() as chip:
            frequency = self._frequencies.get(channel)
            if frequency is not None and 0 < duty < 1 and pre_scale_of(frequency) != chip.pre_scale:
                raise self._frequency_conflict(
                    channel, frequency, f"because it was changed to {chip.frequency:.0f} Hz for another pin"
                )
            await chip.set_duty(channel, duty)

    def _frequency_conflict(self, channel: int, frequency: int, reason: str) -> MachineError:
        return MachineError(
            f"{self.name}: pin {channel} cannot have {frequency} Hz {reason}",
            kind=ErrorKind.PRECONDITION,
            remedy="give all pins of one PCA9685 the same frequency",
        )

    def _channel(self, pin: str) -> int:
        if pin.strip().isdecimal() and int(pin) < pca9685.CHANNELS:
            return int(pin)
        raise MachineError(
            f"{self.name} has no pin {pin!r}", kind=ErrorKind.NOT_FOUND, remedy='its pins are "0" to "15"'
        )
