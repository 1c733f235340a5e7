"""One pin of a board: closed, an input, an output or PWM, depending on the last call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

import structlog
import trio

from hal import Fault, HalError, Hardware
from hal.boards import BoardPin
from hal.ports import EdgeEvents, InputSettings, Line, OutputSettings, PwmOutput
from models.board.holding import Held, hold, stopping_error
from schema import ErrorKind, MachineError

T = TypeVar("T")
Use = Literal["closed", "input", "output", "pwm"]
AS_IS: Final = InputSettings()


@dataclass(frozen=True, slots=True)
class BoardContext:
    """State shared by the pins of one board."""

    owner: str  # name of the board in reservations
    hardware: Hardware
    nursery: trio.Nursery
    log: structlog.stdlib.BoundLogger
    failed: Callable[[HalError], None]  # called when a line no longer exists


class Pin:
    """A pin that has been used. A change of its use closes it first; an output then goes to its safe level."""

    def __init__(self, context: BoardContext, pin: BoardPin, *, safe: bool, frequency: int) -> None:
        assert pin.line is not None
        self.title = pin.names[0] if len(pin.names) == 1 else f"{pin.names[0]} ({pin.names[1]})"
        self.line: Line = pin.line
        self.frequency = float(frequency)  # Hz, of future PWM
        self.edges = 0  # rising edges since the first listener
        self.dropped = 0
        self.listeners: list[Callable[[bool, float], None]] = []
        self.interrupt: tuple[str, InputSettings] | None = None  # configured name and settings
        self._context = context
        self._pin = pin
        self._safe = safe
        self._changing = trio.Lock()
        self._use: Use = "closed"
        self._held: Held[Any] | None = None
        self._listening: Held[EdgeEvents] | None = None

    @property
    def use(self) -> Use:
        """The current use of the pin."""
        return self._use

    # ---- levels

    async def set(self, high: bool) -> None:
        """Set the level. A pin with PWM keeps its PWM output, with a duty cycle of 0 or 1."""
        await trio.lowlevel.checkpoint()
        self._writable()
        if self._use == "pwm":
            self._write_wave(float(high), self.frequency)
            return
        while self._use != "output":
            await self._change("output")
        self._use_line(lambda: self._value().write(high))

    async def make_output(self) -> None:
        """Make the pin an output at its safe level."""
        await trio.lowlevel.checkpoint()
        self._writable()
        await self._change("output")

    async def get(self) -> bool:
        """Return the level of the line; with PWM, whether the duty cycle is at least 0.5."""
        await trio.lowlevel.checkpoint()
        if self._use == "pwm":
            return self.wave()[0] >= 0.5
        while self._use not in ("input", "output"):
            await self._change("input")
        return self._use_line(lambda: bool(self._value().read()))

    def check(self) -> None:
        """Check that the line still exists; otherwise fail the board."""
        if self._use == "closed":
            return
        try:
            self._use_line(self._value().wave if self._use == "pwm" else self._value().read)
        except HalError:
            pass  # other errors are raised to users of the pin

    # ---- waves

    def wave(self) -> tuple[float, float]:
        """Return duty cycle (0 to 1) and frequency (Hz). The duty cycle of an output is 0 or 1, of any other pin 0."""
        if self._use == "pwm":
            wave: tuple[float, float] = self._use_line(self._value().wave)
            return wave
        high = self._use == "output" and self._use_line(lambda: bool(self._value().read()))
        return float(high), self.frequency

    async def set_duty(self, duty: float) -> None:
        """Set the duty cycle (0 to 1), starting PWM if necessary."""
        await trio.lowlevel.checkpoint()
        self._writable()
        while self._use != "pwm":
            await self._change("pwm")
        self._write_wave(duty, self.frequency)

    async def set_frequency(self, frequency: float) -> None:
        """Set the PWM frequency (Hz) now, or for when PWM starts."""
        await trio.lowlevel.checkpoint()
        self._writable()
        if self._use == "pwm":
            self._write_wave(self.wave()[0], frequency)
        self.frequency = frequency

    def _write_wave(self, duty: float, frequency: float) -> None:
        self._use_line(lambda: self._value().set_wave(duty, frequency))

    # ---- edges

    async def listen(self, listener: Callable[[bool, float], None]) -> None:
        """Call `listener` with level and time of each edge until `ignore`. PRECONDITION if the pin is an output."""
        await trio.lowlevel.checkpoint()
        while self._listening is None:
            async with self._changing:
                if self._use in ("output", "pwm"):
                    raise MachineError(
                        f"pin {self.title} is an output",
                        kind=ErrorKind.PRECONDITION,
                        remedy="use another pin; this one stays an output until the board restarts",
                    )
                if self._use == "closed":
                    await self._open("input")
                if self._listening is None:
                    self._listening = await hold(self._context.nursery, self._value().edges(), self._count)
        self.listeners.append(listener)

    def ignore(self, listener: Callable[[bool, float], None]) -> None:
        """Stop calling `listener`."""
        self.listeners.remove(listener)
        if not self.listeners and self._listening is not None:
            self._listening.cancel()
            self._listening = None

    async def _count(self, events: EdgeEvents) -> None:
        async for edge in events:
            self.edges += edge.high
            self.dropped = events.dropped
            for listener in tuple(self.listeners):
                listener(edge.high, edge.time)

    # ---- use

    def _writable(self) -> None:
        if self.interrupt is not None or self.listeners:
            user = f"digital interrupt {self.interrupt[0]!r}" if self.interrupt else "a stream of its ticks"
            raise MachineError(
                f"pin {self.title} is an input, used by {user}",
                kind=ErrorKind.PRECONDITION,
                remedy="write to another pin, or end the other use of this one",
            )

    def _value(self) -> Any:
        if self._held is None:
            raise stopping_error()
        return self._held.value

    def _use_line(self, action: Callable[[], T]) -> T:
        """Use the line, and fail the board if the line no longer exists."""
        try:
            return action()
        except HalError as error:
            if error.fault is Fault.GONE:
                self._context.failed(error)
            raise

    async def _change(self, use: Use) -> None:
        async with self._changing:
            if self._use != use:
                await self._close()
                await self._open(use)

    async def _open(self, use: Use) -> None:
        self._held = await hold(self._context.nursery, self._open_reserved(use))
        self._use = use

    async def _close(self) -> None:
        self._use = "closed"
        for held in (self._listening, self._held):
            if held is not None:
                await held.close()
        self._listening = self._held = None

    @asynccontextmanager
    async def _open_reserved(self, use: Use) -> AsyncIterator[Any]:
        """Open the line for `use` and reserve it against use by other boards."""
        owner = f"{self._context.owner} {self.title}"
        with self._context.hardware.reservations.hold(owner, f"control of {self.line}"):
            async with self._open_line(use) as value:
                yield value

    def _open_line(self, use: Use) -> AbstractAsyncContextManager[Any]:
        hardware = self._context.hardware
        if use == "input":
            return hardware.digital_input(self.line, self.interrupt[1] if self.interrupt else AS_IS)
        if use == "output":
            return hardware.digital_output(self.line, OutputSettings(safe=self._safe))
        return self._pwm()

    @asynccontextmanager
    async def _pwm(self) -> AsyncIterator[PwmOutput]:
        """Open the hardware channel of the pin, or software PWM if there is none or it cannot be opened."""
        hardware, log = self._context.hardware, self._context.log
        async with AsyncExitStack() as stack:
            output: PwmOutput | None = None
            reason = "the pin has no hardware PWM"
            if self._pin.pwm is not None:
                try:
                    output = await stack.enter_async_context(hardware.pwm(self._pin.pwm))
                except HalError as error:
                    reason = str(error)
            if output is None:
                log.info("using software PWM", pin=self.title, reason=reason)
                output = await stack.enter_async_context(hardware.pwm(self.line))
            yield output
