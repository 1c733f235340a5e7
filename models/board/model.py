"""Board `linux`: the pins of this computer, on any supported board."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Final

import trio

from engine import AnalogReading, Attributes, Board, Context, Extra, PowerMode, Started, Tick, Unsupported, model
from hal import HalError
from hal.boards import BoardDefinition, BoardPin
from hal.ports import InputSettings, Line
from models.board.analogs import AnalogInput, open_analogs
from models.board.attributes import LinuxBoardConfig
from models.board.pin import BoardContext, Pin
from models.board.ticks import TickQueue
from schema import ErrorKind, MachineError
from support import unwrap

_PIN_SUBSYSTEMS: Final = ("gpio", "pwm")  # subsystems of the devices that provide pins


@model("rdk:builtin:linux")
class LinuxBoard(Board):
    """A line is opened on first use and held until the board stops, when outputs go to their safe level.

    The board fails when a GPIO chip disappears, and restarts when the chip returns.
    """

    Config: ClassVar[type[Attributes]] = LinuxBoardConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config: LinuxBoardConfig = self.attributes
        self.definition: BoardDefinition = self.hardware.board(config.board)
        self._interrupts = {entry.name: entry for entry in config.digital_interrupts}
        self._safe_high = {self._find(name).line for name in config.safe_high}
        self._pins: dict[Line, Pin] = {}
        self._analogs: dict[str, AnalogInput] = {}
        for name in (*config.pins, *config.outputs):
            self._find(name)  # reject wrong names at once

    async def run(self, *, task_status: Started) -> None:
        """Run the board; ready when converters are open, interrupts are counted and configured outputs are safe."""
        config: LinuxBoardConfig = self.attributes
        try:
            async with AsyncExitStack() as stack, trio.open_nursery() as nursery:
                self._context = BoardContext(
                    str(self.name), self.hardware, nursery, self.log, partial(self._fail, nursery)
                )
                self._analogs = await open_analogs(config.analogs, self.hardware, str(self.name), stack)
                for analog in self._analogs.values():
                    if analog.period is not None:
                        nursery.start_soon(analog.sample, self.hardware)
                for entry in config.digital_interrupts:
                    pin = self._pin(entry.pin)
                    if pin.interrupt is not None:
                        raise MachineError(
                            f"interrupts {pin.interrupt[0]!r} and {entry.name!r} are both on pin {pin.title}",
                            kind=ErrorKind.INVALID,
                            remedy="use a separate pin for each",
                        )
                    pin.interrupt = entry.name, InputSettings(entry.bias, entry.active_low, entry.debounce_ms / 1000)
                    await pin.listen(_ignore_edge)
                for name in (*config.safe_high, *config.outputs):
                    await self._pin(name).make_output()
                nursery.start_soon(self._watch)
                task_status.started()
        except BaseExceptionGroup as group:
            raise unwrap(group) from None

    def _fail(self, nursery: trio.Nursery, error: HalError) -> None:
        async def fail() -> None:
            raise error

        nursery.start_soon(fail)

    async def _watch(self) -> None:
        """Check every line in use and update the board definition when a chip appears or disappears."""
        async with AsyncExitStack() as stack:
            try:
                events = await stack.enter_async_context(self.hardware.hotplug())
            except HalError as error:
                self.log.info(
                    "no hot-plug events; a GPIO chip that disappears is noticed when its lines are used",
                    reason=str(error),
                )
                await trio.sleep_forever()
            async for event in events:
                if event.action == "lost" or event.subsystem in _PIN_SUBSYSTEMS:
                    # A chip may have returned under another name, and another chip may have its old name.
                    self.definition = self.hardware.board(self.attributes.board)
                    for pin in self._pins.values():
                        pin.check()

    # ---- pins

    def _find(self, name: str) -> BoardPin:
        """Return a pin by the name of an interrupt, a configured name or a board's name. MachineError if unknown."""
        config: LinuxBoardConfig = self.attributes
        if name in self._interrupts:
            name = self._interrupts[name].pin
        return self.definition.pin(config.pins.get(name, name))

    def _pin(self, name: str) -> Pin:
        config: LinuxBoardConfig = self.attributes
        board_pin = self._find(name)
        assert board_pin.line is not None
        if board_pin.line not in self._pins:
            safe = board_pin.line in self._safe_high
            self._pins[board_pin.line] = Pin(
                self._context, board_pin, safe=safe, frequency=config.default_pwm_frequency_hz
            )
        return self._pins[board_pin.line]

    def identify(self, pin: str) -> str:
        """Return the line of `pin`, the same for all names of a pin. MachineError, with similar names, if unknown."""
        return str(self._find(pin).line)

    async def set_gpio(self, pin: str, high: bool, *, extra: Extra = None) -> None:
        """Set the level of a pin, replacing PWM. PRECONDITION while the pin is an interrupt."""
        await self._pin(pin).set(high)

    async def get_gpio(self, pin: str, *, extra: Extra = None) -> bool:
        """Return the level of a pin. A pin that is not an output becomes an input, with its pull resistor unchanged."""
        return await self._pin(pin).get()

    async def pwm(self, pin: str, *, extra: Extra = None) -> float:
        """Return the duty cycle: of an output without PWM 0 or 1, of any other pin 0."""
        await trio.lowlevel.checkpoint()
        return self._pin(pin).wave()[0]

    async def set_pwm(self, pin: str, duty_cycle_pct: float, *, extra: Extra = None) -> None:
        """Start PWM, by hardware where the board supports it on that pin, else by software, which is logged."""
        if not (math.isfinite(duty_cycle_pct) and 0 <= duty_cycle_pct <= 1):
            raise MachineError(
                f"{duty_cycle_pct:g} is not a valid duty cycle",
                kind=ErrorKind.INVALID,
                remedy="use 0 (always low) to 1 (always high)",
            )
        await self._pin(pin).set_duty(duty_cycle_pct)

    async def pwm_frequency(self, pin: str, *, extra: Extra = None) -> int:
        """Return the PWM frequency (Hz), also before PWM starts."""
        await trio.lowlevel.checkpoint()
        return round(self._pin(pin).wave()[1])

    async def set_pwm_frequency(self, pin: str, frequency_hz: int, *, extra: Extra = None) -> None:
        """Set the PWM frequency now, or for when PWM starts; 0 means `default_pwm_frequency_hz`."""
        if frequency_hz < 0:
            raise MachineError(
                f"{frequency_hz} Hz is not a valid frequency", kind=ErrorKind.INVALID, remedy="use more than 0 Hz"
            )
        await self._pin(pin).set_frequency(float(frequency_hz or self.attributes.default_pwm_frequency_hz))

    # ---- edges

    async def get_digital_interrupt_value(self, digital_interrupt_name: str, *, extra: Extra = None) -> int:
        """Return the rising edges since the board started; falling edges if the interrupt is active low."""
        await trio.lowlevel.checkpoint()
        if digital_interrupt_name not in self._interrupts:
            raise self._unknown("digital interrupt", digital_interrupt_name, self._interrupts)
        return self._pin(digital_interrupt_name).edges

    async def stream_ticks(self, pin_names: Sequence[str], *, extra: Extra = None) -> AsyncGenerator[Tick, None]:
        """Stream both edges of the named interrupts or pins, in order of time."""
        queue = TickQueue()
        listening = []
        try:
            for name in pin_names:
                pin, listener = self._pin(name), partial(queue.put, name)
                await pin.listen(listener)
                listening.append((pin, listener))
            while True:
                yield await queue.get()
        finally:
            for pin, listener in listening:
                pin.ignore(listener)
            if queue.dropped:
                self.log.warning(
                    "ticks were dropped because the client read them too slowly",
                    pins=list(pin_names),
                    dropped=queue.dropped,
                )

    # ---- analogs

    async def read_analog_reader(self, analog_reader_name: str, *, extra: Extra = None) -> AnalogReading:
        """Return the counts of the converter and their range in volts."""
        if analog_reader_name not in self._analogs:
            raise self._unknown("analog", analog_reader_name, self._analogs)
        return await self._analogs[analog_reader_name].read()

    async def write_analog(self, pin: str, value: int, *, extra: Extra = None) -> None:
        """Raise Unsupported: no supported computer has analog outputs."""
        raise Unsupported(
            f"{self.definition.title} has no analog outputs",
            remedy="use set_pwm, or a separate digital-to-analog converter",
        )

    # ---- the rest

    async def set_power_mode(
        self, power_mode: PowerMode, duration: timedelta | None = None, *, extra: Extra = None
    ) -> None:
        """Raise Unsupported: the board runs the machine itself."""
        raise Unsupported(
            f"{self.name} runs this machine and cannot switch itself off", remedy="use the system's power management"
        )

    async def get_status(self) -> Mapping[str, Any]:
        """Return the board type, the use of each pin, and the number of dropped edges."""
        await trio.lowlevel.checkpoint()
        return {
            "board": self.definition.name,
            "title": self.definition.title,
            "pins": {pin.title: pin.use for pin in self._pins.values()},
            "dropped_edges": {pin.title: pin.dropped for pin in self._pins.values() if pin.dropped},
        }

    def _unknown(self, kind_of_name: str, name: str, configured: Mapping[str, object]) -> MachineError:
        return MachineError(
            f"{self.name} has no {kind_of_name} called {name!r}",
            kind=ErrorKind.NOT_FOUND,
            remedy=f"configure it, or use one of: {', '.join(configured) or 'none is configured'}",
        )


def _ignore_edge(high: bool, time: float) -> None:
    """Ignore an edge; edges are counted as long as there is a listener."""
