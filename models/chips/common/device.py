"""Base of the models of chips on an I2C bus: address, identification at start, exclusive access."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar

import trio

from engine import Context, Resource, Started
from hal import HalError, Registers
from models.chips.common.attributes import I2cAttributes
from models.chips.common.chip import Chip

RELEASE_LIMIT: Final = 2.0  # seconds to switch off the outputs of a chip when its driver stops

ChipT = TypeVar("ChipT", bound=Chip)


class I2cDevice(Resource, Generic[ChipT]):
    """Base class of the models. `chip_of` creates the chip's driver; calls use it in `async with self.chip()`."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._lock = trio.Lock()
        self._configured = False  # the last configuration was completed, not interrupted by an error or cancellation

    def chip_of(self, registers: Registers) -> ChipT:
        """Create the driver of the chip with the settings of this model."""
        raise NotImplementedError

    def addresses(self) -> tuple[int, ...]:
        """Return every address of the chip."""
        return (self.attributes.address(),)

    async def release(self, chip: ChipT) -> None:
        """Switch off the outputs when the resource stops. Shielded from cancellation, bounded by RELEASE_LIMIT."""

    async def run(self, *, task_status: Started) -> None:
        """Run the driver; ready when the chip is configured. HalError (GONE) if the adapter is unplugged."""
        config: I2cAttributes = self.attributes
        async with self.hardware.i2c(config.i2c_bus) as bus:
            with self.reserve(*(f"{bus.name} address 0x{address:02x}" for address in self.addresses())):
                self._chip = chip = self.chip_of(Registers(bus, config.address()))
                await chip.identify()
                try:
                    await self._configure()
                    task_status.started()
                    await bus.lost()
                finally:
                    await self._release_outputs(chip)

    async def _release_outputs(self, chip: ChipT) -> None:
        reason = "its bus does not answer"
        with trio.move_on_after(RELEASE_LIMIT, shield=True) as limit:
            try:
                await self.release(chip)
            except HalError as error:
                reason = str(error)
            else:
                return
        self.log.error(
            "the outputs of the chip could not be switched off and may still be on",
            reason=reason,
            waited=limit.cancelled_caught,
        )

    async def get_status(self) -> Mapping[str, Any]:
        """Return the type of the chip and its location."""
        await trio.lowlevel.checkpoint()
        return {"chip": self._chip.title, "place": str(self._chip.registers)}

    @asynccontextmanager
    async def chip(self) -> AsyncIterator[ChipT]:
        """Provide exclusive access to the chip, reconfiguring it first if it has lost power."""
        async with self._lock:
            if self._configured and not await self._chip.configured():
                self.log.warning("the chip has lost its settings, as after a power failure; configuring it again")
                self._configured = False
            if not self._configured:
                await self._configure()
            yield self._chip

    async def _configure(self) -> None:
        self._configured = False
        await self._chip.configure()
        self._configured = True
