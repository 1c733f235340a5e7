"""A gpiozero pin on a line of our ports."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any, Final, Literal
from weakref import WeakMethod, ref

import trio
from gpiozero import exc
from gpiozero.pins import Pin

from hal.ports.digital import Bias, DigitalInput, InputSettings, Line, OutputSettings
from hal.ports.hardware import Hardware

_BIAS: Final[dict[str, Bias]] = {"floating": "none", "up": "up", "down": "down"}
_EDGES: Final = ("both", "rising", "falling", "none")
OWNER: Final = "gpiozero"  # in reservations


@dataclass(frozen=True, slots=True)
class Wish:
    """What gpiozero wants a pin to be. Two wishes that differ need the line to be opened anew."""

    function: Literal["closed", "input", "output", "wave"] = "closed"
    pull: str = "floating"
    bounce: float | None = None
    safe: bool = False  # of an output: the state it was made with


class PortPin(Pin):  # type: ignore[misc]
    """Keeps what gpiozero asked for; a task of its own makes it so.

    gpiozero asks without waiting and from any thread, but our lines are opened by tasks. So every request is noted at
    once and takes effect in the next turns of the loop; `settled` waits for that. An open output is written at once
    when the loop's own thread asks. What fails then is raised by the task, in the nursery of the factory.
    """

    def __init__(self, factory: Any, info: Any, line: Line, token: trio.lowlevel.TrioToken) -> None:
        super().__init__()
        self.factory = factory
        self.line = line
        self._info = info
        self._hardware: Hardware = factory.hardware
        self._token = token
        self._wish = Wish()
        self._had: Wish | None = None  # the wish that was fulfilled last
        self._open_as: Wish | None = None  # the wish that is being fulfilled
        self._state = 0.0  # of an output or a wave, as it was set
        self._frequency: float | None = None
        self._level: bool | None = None  # of an input, as it was seen last
        self._edges = "both"
        self._when_changed: Callable[[], Callable[[float, bool], None] | None] = _none
        self._port: Any = None
        self._scope = trio.CancelScope()
        self._asked = trio.Event()
        self._moved = trio.Event()

    def __repr__(self) -> str:
        return str(self._info.name)

    # ---- the task

    async def run(self) -> None:
        """Make the pin what it is wished to be, until cancelled."""
        while True:
            self._asked = trio.Event()
            wish = self._wish
            with trio.CancelScope() as self._scope:
                if wish.function == "closed":
                    await self._let_go()
                else:
                    await self._be(wish)
            if wish.function == "closed" and self._wish == wish:
                self._fulfilled(wish)
                await self._asked.wait()

    async def _let_go(self) -> None:
        """As gpiozero closes a pin: what was an output drives nothing any more."""
        if self._had is not None and self._had.function in ("output", "wave"):
            async with self._hardware.digital_input(self.line, InputSettings()):
                pass

    async def _be(self, wish: Wish) -> None:
        with self._hardware.reservations.hold(OWNER, f"control of {self.line}"):
            async with self._opening(wish) as self._port:
                try:
                    self._open_as = wish
                    if wish.function == "input":
                        await self._follow(self._port)
                    while True:
                        self._asked = trio.Event()
                        self._apply()
                        self._fulfilled(wish)
                        await self._asked.wait()
                finally:
                    self._port = self._open_as = None

    def _opening(self, wish: Wish) -> AbstractAsyncContextManager[Any]:
        if wish.function == "input":
            settings = InputSettings(_BIAS[wish.pull], debounce=wish.bounce or 0.0)
            return self._hardware.digital_input(self.line, settings)
        if wish.function == "output":
            return self._hardware.digital_output(self.line, OutputSettings(wish.safe))
        return self._hardware.pwm(self.line)

    async def _follow(self, source: DigitalInput) -> None:
        async with source.edges() as events:
            self._seen(source.read(), trio.current_time())
            self._fulfilled(self._open_as)
            async for edge in events:
                self._seen(edge.high, edge.time)

    def _seen(self, level: bool, time: float) -> None:
        before = self._resting() if self._level is None else self._level
        self._level = level
        if level != before and self._edges in ("both", "rising" if level else "falling"):
            callback = self._when_changed()
            if callback is not None:
                callback(time, level)

    def _apply(self) -> None:
        if self._open_as != self._wish:
            return
        if self._wish.function == "output":
            self._port.write(bool(self._state))
        elif self._wish.function == "wave" and self._frequency:
            self._port.set_wave(self._state, self._frequency)

    def _fulfilled(self, wish: Wish | None) -> None:
        self._had = wish
        self._moved.set()
        self._moved = trio.Event()

    async def settled(self) -> None:
        """Wait until the pin is what it is wished to be."""
        while self._had != self._wish:
            await self._moved.wait()

    # ---- what gpiozero asks

    def _ask(self, wish: Wish) -> None:
        if wish != self._wish:
            self._wish = wish
            self._level = None
            self._in_loop(self._reopen)

    def _reopen(self) -> None:
        self._scope.cancel()
        self._asked.set()

    def _write(self) -> None:
        if self._here():
            self._apply()
        else:
            self._in_loop(self._ask_again)

    def _ask_again(self) -> None:
        self._asked.set()

    def _here(self) -> bool:
        try:
            return trio.lowlevel.current_trio_token() is self._token
        except RuntimeError:
            return False

    def _in_loop(self, action: Callable[[], None]) -> None:
        if self._here():
            action()
            return
        try:
            self._token.run_sync_soon(action)
        except trio.RunFinishedError:
            pass  # gpiozero closes its devices at the end of the program

    def close(self) -> None:
        """Drive nothing and free the line."""
        self._when_changed = _none
        self._frequency = None
        self._ask(Wish())

    def output_with_state(self, state: Any) -> None:
        """An output that begins with `state`."""
        self._state = float(state)
        self._ask(Wish("output", safe=bool(state)))

    def input_with_pull(self, pull: str) -> None:
        """An input with a resistor."""
        self._ask(Wish("input", _checked_pull(pull)))

    def _get_info(self) -> Any:
        return self._info

    def _get_function(self) -> str:
        return "output" if self._wish.function in ("output", "wave") else "input"

    def _set_function(self, value: str) -> None:
        if value not in ("input", "output"):
            raise exc.PinInvalidFunction(f'invalid function "{value}" for pin {self!r}')
        if value != self._get_function() or self._wish.function == "closed":
            self._state, self._frequency = 0.0, None
            self._ask(Wish("input" if value == "input" else "output"))

    def _resting(self) -> bool:
        return self._wish.pull == "up"

    def _get_state(self) -> Any:
        if self._wish.function == "wave":
            return self._state
        if self._wish.function == "output":
            return bool(self._state)
        if self._open_as == self._wish and self._here():
            return self._port.read()
        return self._resting() if self._level is None else self._level

    def _set_state(self, value: Any) -> None:
        if self._wish.function not in ("output", "wave"):
            raise exc.PinSetInput(f"cannot set state of pin {self!r}")
        if not 0 <= value <= 1:
            raise exc.PinInvalidState(f'invalid state "{value}" for pin {self!r}')
        self._state = float(value)
        self._write()

    def _get_pull(self) -> str:
        return self._wish.pull

    def _set_pull(self, value: str) -> None:
        if self._wish.function != "input":
            raise exc.PinFixedPull(f"cannot set pull on non-input pin {self!r}")
        self._ask(replace(self._wish, pull=_checked_pull(value)))

    def _get_bounce(self) -> float | None:
        return self._wish.bounce

    def _set_bounce(self, value: float | None) -> None:
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise exc.PinInvalidBounce("bounce must be 0 or greater")
        self._ask(replace(self._wish, bounce=value))

    def _get_frequency(self) -> float | None:
        return self._frequency

    def _set_frequency(self, value: float | None) -> None:
        if self._wish.function not in ("output", "wave"):
            raise exc.PinPWMFixedValue(f"cannot start PWM on pin {self!r}")
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise exc.PinPWMFixedValue(f"{value} Hz is impossible on pin {self!r}")
        self._frequency = float(value) if value else None
        self._ask(replace(self._wish, function="wave" if self._frequency else "output"))
        self._write()

    def _get_edges(self) -> str:
        return self._edges

    def _set_edges(self, value: str) -> None:
        if value not in _EDGES:
            raise exc.PinInvalidEdges(f'invalid edges "{value}" for pin {self!r}')
        self._edges = value

    def _get_when_changed(self) -> Callable[[float, bool], None] | None:
        return self._when_changed()

    def _set_when_changed(self, value: Callable[[float, bool], None] | None) -> None:
        """A weak reference, so that a device that nobody has any more is collected and closes its pin."""
        if value is None:
            self._when_changed = _none
        else:
            self._when_changed = WeakMethod(value) if isinstance(value, MethodType) else ref(value)


def _none() -> None:
    return None


def _checked_pull(pull: str) -> str:
    if pull not in _BIAS:
        raise exc.PinInvalidPull(f'invalid pull "{pull}": use floating, up or down')
    return pull
