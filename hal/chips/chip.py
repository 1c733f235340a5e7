"""What every chip on an I2C bus can be asked at its start and between readings."""

from __future__ import annotations

from hal.chips.addresses import others_at
from hal.errors import Fault, HalError
from hal.registers import Registers
from schema.errors import ErrorKind, MachineError


class Chip:
    """A chip behind its registers. Errors are HalError, those of the bus included.

    Its owner calls `identify`, then `configure`, then whatever the chip is for; and, where `configured` says False,
    `configure` again. One call at a time.
    """

    title = ""  # what people call it: "TMP102"

    def __init__(self, registers: Registers) -> None:
        self.registers = registers

    def __str__(self) -> str:
        return f"{self.title} at {self.registers}"

    async def identify(self) -> None:
        """Make sure that this chip answers, as far as it can be told; MachineError (precondition) otherwise."""

    async def configure(self) -> None:
        """Bring its settings about and return when values are valid; HalError (bus) if it does not keep them."""

    async def configured(self) -> bool:
        """Whether it still has its settings: False after it was without power. True where nothing tells."""
        return True

    def stranger(self, what: str, meaning: str = "") -> MachineError:
        """The error of `identify`: `what` answered, which may be `meaning`."""
        others = others_at(self.registers.address, self.title)
        return MachineError(
            f"no {self.title} at {self.registers}: {what}" + (f", which is {meaning}" if meaning else ""),
            kind=ErrorKind.PRECONDITION,
            remedy="choose that chip's model" if meaning else "check the address" + others,
        )

    def forgetful(self, register: str, wrote: int, reads: int, size: int = 2) -> HalError:
        """The error of `configure`: a register does not keep what was written."""
        digits = 2 * size
        return HalError(
            f"{self}: {register} reads 0x{reads:0{digits}x} after 0x{wrote:0{digits}x} was written",
            Fault.BUS,
            remedy="check wiring and power, and that this chip is at the address",
        )
