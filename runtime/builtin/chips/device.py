"""What the models of chips on an I2C bus share: an address, a start that knows the chip, one user at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar

import trio

from catalogue.chips.device import I2cAttributes
from hal.chips.chip import Chip
from hal.errors import HalError
from hal.registers import Registers
from runtime.resource import Context, Resource, Started

RELEASE_LIMIT: Final = 2.0  # seconds that a chip with outputs has to take them back when its driver stops

ChipT = TypeVar("ChipT", bound=Chip)


class I2cDevice(Resource, Generic[ChipT]):
    """Base of the models. `chip_of` says which chip; calls use it inside `async with self.chip()`."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._one = trio.Lock()
        self._whole = False  # the last configuring was not cut short, by an error or by the caller's end

    def chip_of(self, registers: Registers) -> ChipT:
        """The chip with this model's settings."""
        raise NotImplementedError

    def addresses(self) -> tuple[int, ...]:
        """Every address it answers at."""
        return (self.attributes.address(),)

    async def release(self, chip: ChipT) -> None:
        """Before the model is gone: take outputs back. Shielded, and bounded by RELEASE_LIMIT."""

    async def run(self, *, task_status: Started) -> None:
        """Ready when the chip is known and configured; fails with HalError (gone) when the adapter is unplugged."""
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
                    await self._let_go(chip)

    async def _let_go(self, chip: ChipT) -> None:
        failed = "its bus does not answer"
        with trio.move_on_after(RELEASE_LIMIT, shield=True) as limit:
            try:
                await self.release(chip)
            except HalError as error:
                failed = str(error)
            else:
                return
        self.log.error("what the chip drives may still be on", reason=failed, waited=limit.cancelled_caught)

    async def get_status(self) -> Mapping[str, Any]:
        """Which chip answered, and where."""
        await trio.lowlevel.checkpoint()
        return {"chip": self._chip.title, "place": str(self._chip.registers)}

    @asynccontextmanager
    async def chip(self) -> AsyncIterator[ChipT]:
        """The chip, alone, with its settings: configured again if it was without power."""
        async with self._one:
            if self._whole and not await self._chip.configured():
                self.log.warning("the chip has lost its settings, as after a power failure; configuring it again")
                self._whole = False
            if not self._whole:
                await self._configure()
            yield self._chip

    async def _configure(self) -> None:
        self._whole = False
        await self._chip.configure()
        self._whole = True
