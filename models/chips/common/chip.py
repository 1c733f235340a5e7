"""The common interface of drivers for chips on an I2C bus."""

from __future__ import annotations

from hal import Fault, HalError, Registers
from models.chips.common.addresses import others_at
from schema import ErrorKind, MachineError


class Chip:
    """A chip with registers. Errors are HalError, including those of the bus.

    Call `identify`, then `configure`, then the methods of the chip; call `configure` again whenever `configured`
    returns False. Make only one call at a time.
    """

    title = ""  # common name of the chip, such as "TMP102"

    def __init__(self, registers: Registers) -> None:
        self.registers = registers

    def __str__(self) -> str:
        return f"{self.title} at {self.registers}"

    async def identify(self) -> None:
        """Check, as far as possible, that this type of chip answers; MachineError (precondition) otherwise."""

    async def configure(self) -> None:
        """Write the settings and return when values are valid; HalError (bus) if the chip does not store them."""

    async def configured(self) -> bool:
        """Return whether the chip still has its settings: False after a loss of power, True if unknown."""
        return True

    def wrong_chip(self, evidence: str, meaning: str = "") -> MachineError:
        """Return the error of `identify`: `evidence` is what was read, `meaning` the chip that it indicates."""
        others = others_at(self.registers.address, self.title)
        return MachineError(
            f"no {self.title} at {self.registers}: {evidence}" + (f", which is {meaning}" if meaning else ""),
            kind=ErrorKind.PRECONDITION,
            remedy="choose that chip's model" if meaning else "check the address" + others,
        )

    def not_stored(self, register: str, wrote: int, reads: int, size: int = 2) -> HalError:
        """Return the error of `configure` for a register that does not store the written value."""
        digits = 2 * size
        return HalError(
            f"{self}: {register} reads 0x{reads:0{digits}x} after 0x{wrote:0{digits}x} was written",
            Fault.BUS,
            remedy="check wiring and power, and that this chip is at the address",
        )
