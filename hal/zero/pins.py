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

from hal.hardware import Hardware
from hal.ports.digital import Bias, DigitalInput, InputSettings, Line, OutputSettings
from support import ChangeSignal

_BIAS: Final[dict[str, Bias]] = {"floating": "none", "up": "up", "down": "down"}
_EDGES: Final = ("both", "rising", "falling", "none")
OWNER: Final = "gpiozero"  # in reservations


@dataclass(frozen=True, slots=True)
class PinRequest:
    """The state of a pin that gpiozero requests. A different request requires opening the line again."""

    function: Literal["closed", "input", "output", "wave"] = "closed"
    pull: str = "floating"
    bounce: float | None = None
    safe: bool = False  # initial state of an output


class PortPin(Pin):  # type: ignore[misc]
    """A pin that stores the requests of gpiozero, which a separate task applies.

    gpiozero makes requests in any thread and without waiting, but our lines are opened by tasks. So a request is stored
    at once and takes effect in the next iterations of the event loop; `settled` waits for that. An open output is
    written at once if the request comes from the thread of the loop. Errors of later steps are raised by the task, in
    the nursery of the factory.
    """

    def __init__(self, factory: Any, info: Any, line: Line, token: trio.lowlevel.TrioToken) -> None:
        super().__init__()
        self.factory = factory
        self.line = line
        self._info = info
        self._hardware: Hardware = factory.hardware
        self._token = token
        self._request = PinRequest()
        self._applied: PinRequest | None = None  # the request that was applied last
        self._open_as: PinRequest | None = None  # the request that is being applied
        self._state = 0.0  # the state of an output or a wave, as it was set
        self._frequency: float | None = None
        self._level: bool | None = None  # the last known level of an input
        self._edges = "both"
        self._when_changed: Callable[[], Callable[[float, bool], None] | None] = _none
        self._port: Any = None
        self._scope = trio.CancelScope()
        self._requested = trio.Event()
        self._changed = ChangeSignal()

    def __repr__(self) -> str:
        return str(self._info.name)

    # ---- the task

    async def run(self) -> None:
        """Apply the requests until cancelled."""
        while True:
            self._requested = trio.Event()
            request = self._request
            with trio.CancelScope() as self._scope:
                if request.function == "closed":
                    await self._release()
                else:
                    await self._keep_open(request)
            if request.function == "closed" and self._request == request:
                self._fulfilled(request)
                await self._requested.wait()

    async def _release(self) -> None:
        """Release the pin like gpiozero does when it closes one: an output is no longer driven."""
        if self._applied is not None and self._applied.function in ("output", "wave"):
            async with self._hardware.digital_input(self.line, InputSettings()):
                pass

    async def _keep_open(self, request: PinRequest) -> None:
        with self._hardware.reservations.hold(OWNER, f"control of {self.line}"):
            async with self._opening(request) as self._port:
                try:
                    self._open_as = request
                    if request.function == "input":
                        await self._follow(self._port)
                    while True:
                        self._requested = trio.Event()
                        self._apply()
                        self._fulfilled(request)
                        await self._requested.wait()
                finally:
                    self._port = self._open_as = None

    def _opening(self, request: PinRequest) -> AbstractAsyncContextManager[Any]:
        if request.function == "input":
            settings = InputSettings(_BIAS[request.pull], debounce=request.bounce or 0.0)
            return self._hardware.digital_input(self.line, settings)
        if request.function == "output":
            return self._hardware.digital_output(self.line, OutputSettings(request.safe))
        return self._hardware.pwm(self.line)

    async def _follow(self, source: DigitalInput) -> None:
        async with source.edges() as events:
            self._level_seen(source.read(), trio.current_time())
            self._fulfilled(self._open_as)
            async for edge in events:
                self._level_seen(edge.high, edge.time)

    def _level_seen(self, level: bool, time: float) -> None:
        before = self._resting() if self._level is None else self._level
        self._level = level
        if level != before and self._edges in ("both", "rising" if level else "falling"):
            callback = self._when_changed()
            if callback is not None:
                callback(time, level)

    def _apply(self) -> None:
        if self._open_as != self._request:
            return
        if self._request.function == "output":
            self._port.write(bool(self._state))
        elif self._request.function == "wave" and self._frequency:
            self._port.set_wave(self._state, self._frequency)

    def _fulfilled(self, request: PinRequest | None) -> None:
        self._applied = request
        self._changed.announce()

    async def settled(self) -> None:
        """Wait until the current request is applied."""
        while self._applied != self._request:
            await self._changed.next.wait()

    # ---- requests of gpiozero

    def _set_request(self, request: PinRequest) -> None:
        if request != self._request:
            self._request = request
            self._level = None
            self._in_loop(self._reopen)

    def _reopen(self) -> None:
        self._scope.cancel()
        self._requested.set()

    def _write(self) -> None:
        if self._in_loop_thread():
            self._apply()
        else:
            self._in_loop(self._notify)

    def _notify(self) -> None:
        self._requested.set()

    def _in_loop_thread(self) -> bool:
        try:
            return trio.lowlevel.current_trio_token() is self._token
        except RuntimeError:
            return False

    def _in_loop(self, action: Callable[[], None]) -> None:
        if self._in_loop_thread():
            action()
            return
        try:
            self._token.run_sync_soon(action)
        except trio.RunFinishedError:
            pass  # gpiozero closes its devices at the end of the program, after the loop

    def close(self) -> None:
        """Release the line without driving it."""
        self._when_changed = _none
        self._frequency = None
        self._set_request(PinRequest())

    def output_with_state(self, state: Any) -> None:
        """Make the pin an output with the initial `state`."""
        self._state = float(state)
        self._set_request(PinRequest("output", safe=bool(state)))

    def input_with_pull(self, pull: str) -> None:
        """Make the pin an input with a pull resistor."""
        self._set_request(PinRequest("input", _checked_pull(pull)))

    def _get_info(self) -> Any:
        return self._info

    def _get_function(self) -> str:
        return "output" if self._request.function in ("output", "wave") else "input"

    def _set_function(self, value: str) -> None:
        if value not in ("input", "output"):
            raise exc.PinInvalidFunction(f'invalid function "{value}" for pin {self!r}')
        if value != self._get_function() or self._request.function == "closed":
            self._state, self._frequency = 0.0, None
            self._set_request(PinRequest("input" if value == "input" else "output"))

    def _resting(self) -> bool:
        return self._request.pull == "up"

    def _get_state(self) -> Any:
        if self._request.function == "wave":
            return self._state
        if self._request.function == "output":
            return bool(self._state)
        if self._open_as == self._request and self._in_loop_thread():
            return self._port.read()
        return self._resting() if self._level is None else self._level

    def _set_state(self, value: Any) -> None:
        if self._request.function not in ("output", "wave"):
            raise exc.PinSetInput(f"cannot set state of pin {self!r}")
        if not 0 <= value <= 1:
            raise exc.PinInvalidState(f'invalid state "{value}" for pin {self!r}')
        self._state = float(value)
        self._write()

    def _get_pull(self) -> str:
        return self._request.pull

    def _set_pull(self, value: str) -> None:
        if self._request.function != "input":
            raise exc.PinFixedPull(f"cannot set pull on non-input pin {self!r}")
        self._set_request(replace(self._request, pull=_checked_pull(value)))

    def _get_bounce(self) -> float | None:
        return self._request.bounce

    def _set_bounce(self, value: float | None) -> None:
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise exc.PinInvalidBounce("bounce must be 0 or greater")
        self._set_request(replace(self._request, bounce=value))

    def _get_frequency(self) -> float | None:
        return self._frequency

    def _set_frequency(self, value: float | None) -> None:
        if self._request.function not in ("output", "wave"):
            raise exc.PinPWMFixedValue(f"cannot start PWM on pin {self!r}")
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise exc.PinPWMFixedValue(f"{value} Hz is not a valid frequency for pin {self!r}")
        self._frequency = float(value) if value else None
        self._set_request(replace(self._request, function="wave" if self._frequency else "output"))
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
        """Store a weak reference, so that an unused device is collected and closes its pin."""
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
